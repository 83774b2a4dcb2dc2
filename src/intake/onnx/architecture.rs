//! Guesses what kind of network a graph is.
//!
//! A histogram is not enough: a GRU written out in `Gemm`, `Sigmoid` and `Tanh` looks like a transformer,
//! and so does a network of three dense layers. So the guess looks for what does the work: convolutions and
//! dense layers by their weights, attention as a `Softmax` between two products of activations, recurrence
//! as `LSTM`, `GRU` and `RNN` nodes or as a gated `Tanh` that a gate scales again.

use std::collections::HashMap;

use crate::facts::{Graph, Node};
use crate::intake::onnx::kinds::Kinds;
use crate::vocab::Architecture;

/// The share of the weights that makes convolutions count beside attention or recurrence.
const CONV_SHARE: f64 = 0.15;
/// The share of the weights that makes recurrence count beside convolutions.
const RECURRENT_SHARE: f64 = 0.15;
/// One attention or cell for so many convolutions counts beside them.
const CONVS_PER_BLOCK: u64 = 10;
/// How many ops that only carry a value are followed.
const HOPS: usize = 8;
/// Nodes that one search backwards visits.
const SEARCH: usize = 32;

/// What does the work in a graph.
#[derive(Debug, Default, Clone, Copy)]
struct Work {
    convs: u64,
    dense: u64,
    recurrent: u64,
    attention: u64,
    /// Elements of their weights.
    conv_weights: u64,
    dense_weights: u64,
    recurrent_weights: u64,
}

/// Guesses the architecture; `node_kinds` are the numbers of the kinds of the nodes.
///
/// Names are looked up in all graphs together, the top graph first: branches of an `If` may reuse a name,
/// which costs no more than the weight of one layer.
pub fn guess(graph: &Graph, kinds: &Kinds, node_kinds: &[u32]) -> Architecture {
    let mut ops = kinds.map(|kind| Op::new(&kind.op_type));
    if !(kinds.has("Tanh") && kinds.has("Sigmoid")) {
        // Without gates there is no cell to end.
        ops.iter_mut().filter(|op| op.role == Role::Gate).for_each(|op| op.role = Role::Other);
    }
    if ops.iter().all(|op| op.role == Role::Other) {
        return Architecture::Unknown;
    }
    let ops: Vec<Op> = node_kinds.iter().map(|kind| ops[*kind as usize]).collect();
    decide(&Index::new(graph, &ops).work())
}

fn decide(work: &Work) -> Architecture {
    let weights = work.conv_weights + work.dense_weights + work.recurrent_weights;
    // Weights may be inputs, and then only counts are left.
    let share = |part: u64, count: u64| {
        if weights > 0 {
            part as f64 / weights as f64
        } else {
            count as f64 / (work.convs + work.dense + work.recurrent).max(1) as f64
        }
    };
    let convs_count = share(work.conv_weights, work.convs) >= CONV_SHARE;
    let blocks = work.attention + work.recurrent;
    if blocks == 0 {
        return match (work.convs, work.dense) {
            (0, 0) => Architecture::Unknown,
            (0, _) => Architecture::Mlp,
            // The dense layers of VGG outweigh its convolutions, which still do the work.
            (convs, dense) if convs_count || convs >= dense => Architecture::Cnn,
            _ => Architecture::Mlp,
        };
    }
    let blocks_count = blocks * CONVS_PER_BLOCK >= work.convs
        || share(work.recurrent_weights, work.recurrent) >= RECURRENT_SHARE;
    match (convs_count, blocks_count) {
        (true, true) => Architecture::Hybrid,
        (true, false) => Architecture::Cnn,
        (false, _) if work.recurrent >= work.attention => Architecture::Recurrent,
        (false, _) => Architecture::Transformer,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Conv,
    /// Dense by its definition.
    Dense,
    /// Dense when an operand is a weight.
    Product,
    Recurrent,
    Attention,
    /// The end of a recurrent cell that is written out, maybe.
    Gate,
    Softmax,
    Sigmoid,
    Tanh,
    Sub,
    Other,
}

/// What the guess has to know about an op type.
#[derive(Debug, Clone, Copy)]
struct Op {
    role: Role,
    /// It only carries a value to where it is used.
    carries: bool,
    /// It may stand between the products and the `Softmax` of an attention.
    passes_scores: bool,
    /// It may stand between a gate and the `Tanh` of a cell.
    passes_state: bool,
    /// A `Constant` makes a weight.
    makes_weight: bool,
}

impl Op {
    fn new(op_type: &str) -> Self {
        let carries = matches!(
            op_type,
            "Cast"
                | "DequantizeLinear"
                | "ExtendedDequantizeLinear"
                | "Identity"
                | "QuantizeLinear"
                | "Reshape"
                | "Squeeze"
                | "Transpose"
                | "Unsqueeze"
        );
        let passes_scores = carries
            || matches!(
                op_type,
                "Add"
                    | "Clip"
                    | "Concat"
                    | "Div"
                    | "Dropout"
                    | "Expand"
                    | "Max"
                    | "Min"
                    | "Mul"
                    | "QLinearAdd"
                    | "QLinearMul"
                    | "Slice"
                    | "Sub"
                    | "Tanh"
                    | "Trilu"
                    | "Where"
            );
        let passes_state =
            carries || matches!(op_type, "Add" | "Concat" | "Slice" | "Split" | "Sub");
        let makes_weight = op_type == "Constant";
        Self { role: role(op_type), carries, passes_scores, passes_state, makes_weight }
    }
}

fn role(op_type: &str) -> Role {
    match op_type {
        "Conv"
        | "ConvTranspose"
        | "ConvInteger"
        | "QLinearConv"
        | "QLinearConvTranspose"
        | "FusedConv"
        | "NhwcConv"
        | "NhwcFusedConv"
        | "DeformConv" => Role::Conv,
        "Gemm" | "QGemm" | "FusedGemm" | "MatMulNBits" | "MatMulBnb4" | "DynamicQuantizeMatMul" => {
            Role::Dense
        }
        "MatMul"
        | "FusedMatMul"
        | "TransposeMatMul"
        | "MatMulInteger"
        | "MatMulIntegerToFloat"
        | "QLinearMatMul"
        | "Einsum" => Role::Product,
        "LSTM" | "GRU" | "RNN" | "DynamicQuantizeLSTM" => Role::Recurrent,
        "Mul" => Role::Gate,
        "Softmax" | "QLinearSoftmax" => Role::Softmax,
        "Sigmoid" => Role::Sigmoid,
        "Tanh" => Role::Tanh,
        "Sub" => Role::Sub,
        _ if op_type.ends_with("Attention") => Role::Attention,
        _ => Role::Other,
    }
}

/// Who makes which value.
struct Index<'a> {
    nodes: &'a [Node],
    /// What each node is.
    ops: &'a [Op],
    /// The node that makes a value.
    producers: HashMap<&'a str, usize>,
    /// Elements of each weight.
    weights: HashMap<&'a str, u64>,
}

impl<'a> Index<'a> {
    fn new(graph: &'a Graph, ops: &'a [Op]) -> Self {
        let mut producers = HashMap::with_capacity(graph.nodes.len());
        for (at, node) in graph.nodes.iter().enumerate() {
            if !ops[at].makes_weight {
                for output in &node.outputs {
                    producers.entry(output.as_str()).or_insert(at);
                }
            }
        }
        let mut weights = HashMap::with_capacity(graph.tensors.len());
        for tensor in &graph.tensors {
            let elements = tensor.dims.iter().fold(1_u64, |all, dim| all.saturating_mul(*dim));
            // Sums of weights stay far from overflow.
            weights.entry(tensor.name.as_str()).or_insert(elements.min(1 << 40));
        }
        Self { nodes: &graph.nodes, ops, producers, weights }
    }

    fn work(&self) -> Work {
        let mut work = Work::default();
        for (at, op) in self.ops.iter().enumerate() {
            match op.role {
                Role::Conv => {
                    work.convs += 1;
                    work.conv_weights += self.weights_of(at);
                }
                Role::Dense => {
                    work.dense += 1;
                    work.dense_weights += self.weights_of(at);
                }
                Role::Product if self.multiplies_activations(at) => {
                    work.attention += u64::from(self.ends_attention(at));
                }
                Role::Product => {
                    work.dense += 1;
                    work.dense_weights += self.weights_of(at);
                }
                Role::Recurrent => {
                    work.recurrent += 1;
                    work.recurrent_weights += self.weights_of(at);
                }
                Role::Attention => {
                    work.attention += 1;
                    work.dense_weights += self.weights_of(at);
                }
                Role::Gate => work.recurrent += u64::from(self.ends_cell(at)),
                Role::Softmax | Role::Sigmoid | Role::Tanh | Role::Sub | Role::Other => {}
            }
        }
        work
    }

    fn weights_of(&self, at: usize) -> u64 {
        self.nodes[at].inputs.iter().filter_map(|input| self.weight(input)).sum()
    }

    /// The elements of the weight that `name` is, maybe after a cast or the like.
    fn weight(&self, name: &str) -> Option<u64> {
        let mut name = name;
        for _ in 0..HOPS {
            if let Some(elements) = self.weights.get(name) {
                return Some(*elements);
            }
            let producer = *self.producers.get(name)?;
            if !self.ops[producer].carries {
                return None;
            }
            name = self.nodes[producer].inputs.first()?;
        }
        None
    }

    /// The operands of a product, the second one first, which is the weight when one is.
    fn factors(&self, at: usize) -> impl Iterator<Item = &'a str> {
        let node = &self.nodes[at];
        // `QLinearMatMul` has scale and zero point after each.
        let second = if node.op_type == "QLinearMatMul" { 3 } else { 1 };
        [second, 0].into_iter().filter_map(|place| node.inputs.get(place)).map(String::as_str)
    }

    fn multiplies_activations(&self, at: usize) -> bool {
        self.factors(at).all(|input| self.weight(input).is_none())
    }

    /// Whether the product multiplies by the `Softmax` of another product of activations.
    fn ends_attention(&self, at: usize) -> bool {
        let is_scores =
            |at: usize| self.ops[at].role == Role::Product && self.multiplies_activations(at);
        let is_softmax = |at: usize| {
            let scores = self.nodes[at].inputs.first();
            self.ops[at].role == Role::Softmax
                && scores.is_some_and(|input| self.search(input, |op| op.passes_scores, is_scores))
        };
        self.factors(at).any(|input| self.search(input, |op| op.passes_scores, is_softmax))
    }

    /// Whether the multiplication is the last gate of a recurrent cell that is written out.
    fn ends_cell(&self, at: usize) -> bool {
        let [left, right] = self.nodes[at].inputs.as_slice() else { return false };
        let is_gate = |at: usize| {
            self.ops[at].role == Role::Gate
                && self.nodes[at].inputs.iter().any(|input| self.is_gate(input))
        };
        let is_gated_tanh = |name: &str| {
            self.nearly(name, Role::Tanh)
                .and_then(|tanh| self.nodes[tanh].inputs.first())
                .is_some_and(|input| self.search(input, |op| op.passes_state, is_gate))
        };
        (self.is_gate(left) && is_gated_tanh(right)) || (self.is_gate(right) && is_gated_tanh(left))
    }

    fn is_gate(&self, name: &str) -> bool {
        self.nearly(name, Role::Sigmoid).is_some()
    }

    /// The node of that role that makes `name`, with at most a subtraction between: `1 - z`, `h - n`.
    fn nearly(&self, name: &str, role: Role) -> Option<usize> {
        let maker = self.maker(name)?;
        match self.ops[maker].role {
            found if found == role => Some(maker),
            Role::Sub => {
                let mut makers =
                    self.nodes[maker].inputs.iter().filter_map(|name| self.maker(name));
                makers.find(|maker| self.ops[*maker].role == role)
            }
            _ => None,
        }
    }

    /// The node that makes `name`, before casts, Q/DQ pairs and the like.
    fn maker(&self, name: &str) -> Option<usize> {
        let mut at = *self.producers.get(name)?;
        for _ in 0..HOPS {
            if !self.ops[at].carries {
                break;
            }
            at = *self.producers.get(self.nodes[at].inputs.first()?.as_str())?;
        }
        Some(at)
    }

    /// Whether going back from `name` through the ops that `pass` allows leads to a `target`.
    fn search(
        &self,
        name: &str,
        pass: impl Fn(&Op) -> bool,
        target: impl Fn(usize) -> bool,
    ) -> bool {
        let mut open: Vec<usize> = self.producers.get(name).copied().into_iter().collect();
        for _ in 0..SEARCH {
            let Some(at) = open.pop() else { return false };
            if target(at) {
                return true;
            }
            if pass(&self.ops[at]) {
                let makers = self.nodes[at].inputs.iter().take(SEARCH);
                open.extend(makers.filter_map(|input| self.producers.get(input.as_str())));
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guess_follows_the_work() {
        let check =
            |work: Work, expected: Architecture| assert_eq!(decide(&work), expected, "{work:?}");
        let none = Work::default();
        check(none, Architecture::Unknown);
        check(Work { dense: 3, dense_weights: 9, ..none }, Architecture::Mlp);
        let vgg = Work { convs: 13, dense: 3, conv_weights: 14, dense_weights: 124, ..none };
        check(vgg, Architecture::Cnn);
        let vit =
            Work { convs: 1, dense: 48, attention: 12, conv_weights: 1, dense_weights: 85, ..none };
        check(vit, Architecture::Transformer);
        let conformer =
            Work { convs: 48, conv_weights: 25, dense_weights: 75, attention: 16, ..vit };
        check(conformer, Architecture::Hybrid);
        let detector_with_one_attention =
            Work { convs: 88, attention: 1, conv_weights: 99, dense_weights: 0, ..none };
        check(detector_with_one_attention, Architecture::Cnn);
        let crnn =
            Work { convs: 60, recurrent: 2, conv_weights: 60, recurrent_weights: 40, ..none };
        check(crnn, Architecture::Hybrid);
        let decoder = Work { recurrent: 2, attention: 1, dense: 5, dense_weights: 9, ..none };
        check(decoder, Architecture::Recurrent);
    }
}

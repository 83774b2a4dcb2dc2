//! Guesses what kind of network a graph is.
//!
//! A histogram is not enough: a GRU written out in `Gemm`, `Sigmoid` and `Tanh` looks like a transformer,
//! and so does a network of three dense layers. So the guess looks for what does the work: convolutions and
//! dense layers by their weights, attention as a `Softmax` between two products of activations, recurrence
//! as `LSTM`, `GRU` and `RNN` nodes or as a gated `Tanh` that a gate scales again.

use crate::facts::graph::{Graph, Value};
use crate::intake::onnx::kinds;
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
pub struct Work {
    convs: u64,
    dense: u64,
    recurrent: u64,
    attention: u64,
    /// The products by a weight among the dense layers.
    products: u64,
    /// Elements of their weights.
    conv_weights: u64,
    dense_weights: u64,
    recurrent_weights: u64,
}

/// Finds what does the work.
pub fn work(graph: &Graph) -> Work {
    let mut ops: Vec<Op> = graph.kinds().iter().map(|kind| Op::new(&kind.op_type)).collect();
    if !(kinds::has(graph, "Tanh") && kinds::has(graph, "Sigmoid")) {
        // Without gates there is no cell to end.
        ops.iter_mut().filter(|op| op.role == Role::Gate).for_each(|op| op.role = Role::Other);
    }
    if ops.iter().all(|op| op.role == Role::Other) {
        Work::default()
    } else {
        Index::new(graph, &ops).work()
    }
}

impl Work {
    /// Whether products by a weight (`MatMul`, not `Gemm`) are part of it.
    pub fn multiplies_by_weights(&self) -> bool {
        self.products > 0
    }

    /// What kind of network does such work.
    pub fn guess(&self) -> Architecture {
        let weights = self.conv_weights + self.dense_weights + self.recurrent_weights;
        // Weights may be inputs, and then only counts are left.
        let share = |part: u64, count: u64| {
            if weights > 0 {
                part as f64 / weights as f64
            } else {
                count as f64 / (self.convs + self.dense + self.recurrent).max(1) as f64
            }
        };
        let convs_count = share(self.conv_weights, self.convs) >= CONV_SHARE;
        let blocks = self.attention + self.recurrent;
        if blocks == 0 {
            return match (self.convs, self.dense) {
                (0, 0) => Architecture::Unknown,
                (0, _) => Architecture::Mlp,
                // The dense layers of VGG outweigh its convolutions, which still do the work.
                (convs, dense) if convs_count || convs >= dense => Architecture::Cnn,
                _ => Architecture::Mlp,
            };
        }
        let blocks_count = blocks * CONVS_PER_BLOCK >= self.convs
            || share(self.recurrent_weights, self.recurrent) >= RECURRENT_SHARE;
        match (convs_count, blocks_count) {
            (true, true) => Architecture::Hybrid,
            (true, false) => Architecture::Cnn,
            (false, _) if self.recurrent >= self.attention => Architecture::Recurrent,
            (false, _) => Architecture::Transformer,
        }
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
    /// Where its second operand stands: `QLinearMatMul` has scale and zero point after each.
    second: usize,
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
        Self {
            role: role(op_type),
            carries,
            passes_scores,
            passes_state: carries
                || matches!(op_type, "Add" | "Concat" | "Slice" | "Split" | "Sub"),
            makes_weight: op_type == "Constant",
            second: if op_type == "QLinearMatMul" { 3 } else { 1 },
        }
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
    graph: &'a Graph,
    /// What each node is.
    ops: Vec<&'a Op>,
    /// The node that makes each value.
    producers: Vec<Option<u32>>,
    /// The elements of each value that is a weight.
    weights: Vec<Option<u64>>,
}

impl<'a> Index<'a> {
    fn new(graph: &'a Graph, kinds: &'a [Op]) -> Self {
        let ops: Vec<&Op> = graph.nodes().map(|node| &kinds[node.kind()]).collect();
        let mut producers = vec![None; graph.value_count()];
        // Where a name is made twice, the top graph counts, and its nodes come first.
        for (at, node) in (0_u32..).zip(graph.nodes()) {
            if !ops[at as usize].makes_weight {
                for value in Graph::named(node.outputs()) {
                    producers[value as usize].get_or_insert(at);
                }
            }
        }
        let mut weights = vec![None; graph.value_count()];
        for tensor in &graph.tensors {
            if let Some(value) = graph.value(&tensor.name) {
                // Sums of weights stay far from overflow.
                weights[value as usize].get_or_insert(tensor.elements().min(1 << 40));
            }
        }
        Self { graph, ops, producers, weights }
    }

    fn work(&self) -> Work {
        let mut work = Work::default();
        for at in 0..self.ops.len() as u32 {
            match self.op(at).role {
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
                    work.products += 1;
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

    fn op(&self, at: u32) -> &Op {
        self.ops[at as usize]
    }

    fn inputs(&self, at: u32) -> &'a [Value] {
        self.graph.node(at as usize).map_or(&[], |node| node.inputs())
    }

    fn producer(&self, value: Value) -> Option<u32> {
        self.producers[value as usize]
    }

    fn weights_of(&self, at: u32) -> u64 {
        self.inputs(at).iter().filter_map(|input| self.weight(*input)).sum()
    }

    /// The elements of the weight that `value` is, maybe after a cast or the like.
    fn weight(&self, mut value: Value) -> Option<u64> {
        for _ in 0..HOPS {
            if let Some(elements) = self.weights[value as usize] {
                return Some(elements);
            }
            let producer = self.producer(value).filter(|at| self.op(*at).carries)?;
            value = *self.inputs(producer).first()?;
        }
        None
    }

    fn factors(&self, at: u32) -> impl Iterator<Item = Value> {
        let inputs = self.inputs(at);
        [0, self.op(at).second].into_iter().filter_map(|place| inputs.get(place)).copied()
    }

    fn multiplies_activations(&self, at: u32) -> bool {
        self.factors(at).all(|input| self.weight(input).is_none())
    }

    /// Whether the product multiplies by the `Softmax` of another product of activations.
    fn ends_attention(&self, at: u32) -> bool {
        let is_scores =
            |at: u32| self.op(at).role == Role::Product && self.multiplies_activations(at);
        let is_softmax = |at: u32| {
            let scores = self.inputs(at).first();
            self.op(at).role == Role::Softmax
                && scores.is_some_and(|value| self.search(*value, |op| op.passes_scores, is_scores))
        };
        self.factors(at).any(|value| self.search(value, |op| op.passes_scores, is_softmax))
    }

    /// Whether the multiplication is the last gate of a recurrent cell that is written out.
    fn ends_cell(&self, at: u32) -> bool {
        let [left, right] = *self.inputs(at) else { return false };
        let is_gate = |at: u32| {
            self.op(at).role == Role::Gate
                && self.inputs(at).iter().any(|value| self.is_gate(*value))
        };
        let is_gated_tanh = |value: Value| {
            self.nearly(value, Role::Tanh)
                .and_then(|tanh| self.inputs(tanh).first())
                .is_some_and(|value| self.search(*value, |op| op.passes_state, is_gate))
        };
        (self.is_gate(left) && is_gated_tanh(right)) || (self.is_gate(right) && is_gated_tanh(left))
    }

    fn is_gate(&self, value: Value) -> bool {
        self.nearly(value, Role::Sigmoid).is_some()
    }

    /// The node of that role that makes `value`, with at most a subtraction between: `1 - z`, `h - n`.
    fn nearly(&self, value: Value, role: Role) -> Option<u32> {
        let maker = self.maker(value)?;
        match self.op(maker).role {
            found if found == role => Some(maker),
            Role::Sub => {
                let mut makers = self.inputs(maker).iter().filter_map(|value| self.maker(*value));
                makers.find(|maker| self.op(*maker).role == role)
            }
            _ => None,
        }
    }

    /// The node that makes `value`, before casts, Q/DQ pairs and the like.
    fn maker(&self, value: Value) -> Option<u32> {
        let mut at = self.producer(value)?;
        for _ in 0..HOPS {
            if !self.op(at).carries {
                break;
            }
            at = self.producer(*self.inputs(at).first()?)?;
        }
        Some(at)
    }

    /// Whether going back from `value` through the ops that `pass` allows leads to a `target`.
    fn search(
        &self,
        value: Value,
        pass: impl Fn(&Op) -> bool,
        target: impl Fn(u32) -> bool,
    ) -> bool {
        let mut open: Vec<u32> = self.producer(value).into_iter().collect();
        for _ in 0..SEARCH {
            let Some(at) = open.pop() else { return false };
            if target(at) {
                return true;
            }
            if pass(self.op(at)) {
                let makers = self.inputs(at).iter().take(SEARCH);
                open.extend(makers.filter_map(|value| self.producer(*value)));
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
            |work: Work, expected: Architecture| assert_eq!(work.guess(), expected, "{work:?}");
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

//! Guesses what kind of network a graph is.
//!
//! A histogram is not enough: a GRU written out in `Gemm`, `Sigmoid` and `Tanh` looks like a transformer,
//! and so does a network of three dense layers. So the guess looks for what does the work: convolutions and
//! dense layers by their weights, attention as a `Softmax` between two products of activations, recurrence
//! as `LSTM`, `GRU` and `RNN` nodes or as a gated `Tanh` that a gate scales again.

use std::collections::HashMap;

use crate::facts::{Graph, Node};
use crate::vocab::Architecture;

/// The share of the weights that makes convolutions count beside attention or recurrence.
const CONV_SHARE: f64 = 0.15;
/// The share of the weights that makes recurrence count beside convolutions.
const RECURRENT_SHARE: f64 = 0.15;
/// One attention or cell for so many convolutions counts beside them.
const CONVS_PER_BLOCK: u64 = 10;
/// Ops that only carry a value, followed one after the other.
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

/// Guesses the architecture.
///
/// Names are looked up in all graphs together, the top graph first: branches of an `If` may reuse a name,
/// which costs no more than the weight of one layer.
pub fn guess(graph: &Graph) -> Architecture {
    if !graph.nodes.iter().any(|node| role(&node.op_type) != Role::Other) {
        return Architecture::Unknown;
    }
    decide(&Index::new(graph).work(graph))
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
    Other,
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
        _ if op_type.ends_with("Attention") => Role::Attention,
        _ => Role::Other,
    }
}

/// Ops that only carry a weight to where it is used.
fn carries_weight(op_type: &str) -> bool {
    matches!(
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
    )
}

/// Ops that stand between the products and the `Softmax` of an attention.
fn passes_scores(op_type: &str) -> bool {
    carries_weight(op_type)
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
        )
}

/// Ops between a gate and the `Tanh` of a cell.
fn passes_state(op_type: &str) -> bool {
    carries_weight(op_type) || matches!(op_type, "Add" | "Concat" | "Slice" | "Split" | "Sub")
}

/// Who makes which value.
struct Index<'a> {
    producers: HashMap<&'a str, &'a Node>,
    /// Elements of each weight.
    weights: HashMap<&'a str, u64>,
}

impl<'a> Index<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut producers = HashMap::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            // What a Constant makes is a weight.
            if node.op_type != "Constant" {
                for output in &node.outputs {
                    producers.entry(output.as_str()).or_insert(node);
                }
            }
        }
        let mut weights = HashMap::with_capacity(graph.tensors.len());
        for tensor in &graph.tensors {
            let elements = tensor.dims.iter().fold(1_u64, |all, dim| all.saturating_mul(*dim));
            // Sums of weights stay far from overflow.
            weights.entry(tensor.name.as_str()).or_insert(elements.min(1 << 40));
        }
        Self { producers, weights }
    }

    fn work(&self, graph: &Graph) -> Work {
        let mut work = Work::default();
        for node in &graph.nodes {
            match role(&node.op_type) {
                Role::Conv => {
                    work.convs += 1;
                    work.conv_weights += self.weights_of(node);
                }
                Role::Dense => {
                    work.dense += 1;
                    work.dense_weights += self.weights_of(node);
                }
                Role::Product if self.multiplies_activations(node) => {
                    work.attention += u64::from(self.ends_attention(node));
                }
                Role::Product => {
                    work.dense += 1;
                    work.dense_weights += self.weights_of(node);
                }
                Role::Recurrent => {
                    work.recurrent += 1;
                    work.recurrent_weights += self.weights_of(node);
                }
                Role::Attention => {
                    work.attention += 1;
                    work.dense_weights += self.weights_of(node);
                }
                Role::Other => work.recurrent += u64::from(self.ends_cell(node)),
            }
        }
        work
    }

    fn weights_of(&self, node: &Node) -> u64 {
        node.inputs.iter().filter_map(|input| self.weight(input)).sum()
    }

    /// The elements of the weight that `name` is, maybe after a cast or the like.
    fn weight(&self, name: &str) -> Option<u64> {
        let mut name = name;
        for _ in 0..HOPS {
            if let Some(elements) = self.weights.get(name) {
                return Some(*elements);
            }
            let producer = self.producers.get(name).filter(|node| carries_weight(&node.op_type))?;
            name = producer.inputs.first()?;
        }
        None
    }

    fn multiplies_activations(&self, node: &Node) -> bool {
        factors(node).all(|input| self.weight(input).is_none())
    }

    /// Whether `product` multiplies by the `Softmax` of another product of activations.
    fn ends_attention(&self, product: &Node) -> bool {
        let is_scores =
            |node: &Node| role(&node.op_type) == Role::Product && self.multiplies_activations(node);
        let is_softmax = |node: &Node| {
            matches!(node.op_type.as_str(), "Softmax" | "QLinearSoftmax")
                && node
                    .inputs
                    .first()
                    .is_some_and(|input| self.search(input, passes_scores, is_scores))
        };
        factors(product).any(|input| self.search(input, passes_scores, is_softmax))
    }

    /// Whether `node` is the last gate of a recurrent cell that is written out.
    fn ends_cell(&self, node: &Node) -> bool {
        let [left, right] = node.inputs.as_slice() else { return false };
        let is_gated_tanh = |name: &str| {
            self.nearly(name, "Tanh").is_some_and(|tanh| {
                let is_gate = |node: &Node| {
                    node.op_type == "Mul"
                        && node.inputs.iter().any(|input| self.nearly(input, "Sigmoid").is_some())
                };
                tanh.inputs.first().is_some_and(|input| self.search(input, passes_state, is_gate))
            })
        };
        node.op_type == "Mul"
            && ((self.nearly(left, "Sigmoid").is_some() && is_gated_tanh(right))
                || (self.nearly(right, "Sigmoid").is_some() && is_gated_tanh(left)))
    }

    /// The node of that op type that makes `name`, with at most a subtraction between: `1 - z`, `h - n`.
    fn nearly(&self, name: &str, op_type: &str) -> Option<&'a Node> {
        let node = self.maker(name)?;
        if node.op_type == op_type {
            return Some(node);
        }
        if node.op_type != "Sub" {
            return None;
        }
        node.inputs
            .iter()
            .filter_map(|input| self.maker(input))
            .find(|maker| maker.op_type == op_type)
    }

    /// The node that makes `name`, before casts, Q/DQ pairs and the like.
    fn maker(&self, name: &str) -> Option<&'a Node> {
        let mut node = *self.producers.get(name)?;
        for _ in 0..HOPS {
            if !carries_weight(&node.op_type) {
                break;
            }
            node = self.producers.get(node.inputs.first()?.as_str())?;
        }
        Some(node)
    }

    /// Whether going back from `name` through the ops that `pass` allows leads to a `target`.
    fn search(
        &self,
        name: &str,
        pass: impl Fn(&str) -> bool,
        target: impl Fn(&Node) -> bool,
    ) -> bool {
        let mut open: Vec<&Node> = self.producers.get(name).copied().into_iter().collect();
        for _ in 0..SEARCH {
            let Some(node) = open.pop() else { return false };
            if target(node) {
                return true;
            }
            if pass(&node.op_type) {
                let makers = node.inputs.iter().take(SEARCH);
                open.extend(makers.filter_map(|input| self.producers.get(input.as_str())));
            }
        }
        false
    }
}

/// The two operands of a product.
fn factors(node: &Node) -> impl Iterator<Item = &str> {
    // `QLinearMatMul` has scale and zero point after each.
    let step = if node.op_type == "QLinearMatMul" { 3 } else { 1 };
    node.inputs.iter().step_by(step).take(2).map(String::as_str)
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

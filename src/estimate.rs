//! Sizes, from the headers of real tensors and the bits of a preset.
//!
//! Pure: it reads no weight and knows no target.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod torch;

use std::collections::BTreeMap;

use crate::{
    catalogue::presets::Preset,
    facts::{
        ModelAnalysis,
        graph::{Graph, Node, Tensor, Value},
    },
};

/// Bytes of a Hugging Face model as it is stored; `None` when nothing tells them.
pub fn model_bytes(analysis: &ModelAnalysis) -> Option<u64> {
    let stored = analysis.model.torch_specific.as_ref().and_then(|facts| facts.weights.as_ref());
    stored.and_then(|weights| weights.tensor_bytes).or_else(|| {
        // Nine digits are exact in a double.
        let gigabytes = analysis.model.estimated_size_gb.filter(|size| *size >= 0.0)?;
        Some((gigabytes * 1e9).round() as u64)
    })
}

/// Bytes of the weights of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weights {
    /// Before quantization, every tensor.
    pub before: u64,
    /// After it.
    pub after: u64,
    /// How many tensors are stored smaller.
    pub quantized: u64,
}

/// The tensors of a graph, to be found by the values that they give.
#[derive(Debug)]
struct Tensors<'g> {
    all: &'g [Tensor],
    by_value: BTreeMap<Value, usize>,
}

impl<'g> Tensors<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut by_value = BTreeMap::new();
        for (at, tensor) in graph.tensors.iter().enumerate() {
            if let Some(value) = graph.value(&tensor.name) {
                by_value.entry(value).or_insert(at);
            }
        }
        Self { all: &graph.tensors, by_value }
    }

    fn position(&self, value: Value) -> Option<usize> {
        self.by_value.get(&value).copied()
    }
}

/// The input of a node that holds its weights, for the op types that have one.
fn weight_of(node: Node<'_>) -> Option<Value> {
    let position = match node.op_type() {
        "Conv" | "ConvTranspose" | "Gemm" | "MatMul" => 1,
        _ => return None,
    };
    node.inputs().get(position).copied()
}

/// Bytes before and after, when the weights of these nodes get the bits of the preset.
///
/// Float tensors with two or more dimensions count as weights; biases stay 32 bits wide.
pub fn weights<'g>(
    graph: &'g Graph,
    preset: &Preset,
    quantized: impl IntoIterator<Item = Node<'g>>,
) -> Weights {
    let tensors = Tensors::new(graph);
    let mut smaller = vec![false; tensors.all.len()];
    if !preset.weights_in_float {
        for node in quantized {
            if let Some(at) = weight_of(node).and_then(|value| tensors.position(value)) {
                let tensor = &tensors.all[at];
                smaller[at] = tensor.dims.len() > 1 && tensor.dtype.contains("float");
            }
        }
    }
    let mut sum = Weights::default();
    for (tensor, smaller) in tensors.all.iter().zip(smaller) {
        sum.before += tensor.bytes;
        sum.quantized += u64::from(smaller);
        sum.after += if smaller { quantized_bytes(tensor, preset) } else { tensor.bytes };
    }
    sum
}

fn quantized_bytes(tensor: &Tensor, preset: &Preset) -> u64 {
    let elements = tensor.elements();
    // Bits are exact in quarters, so thousandths lose nothing.
    let thousandths = (preset.weight.bits * 1000.0).round().max(0.0) as u64;
    let data = elements.saturating_mul(thousandths).div_ceil(8000);
    // A scale of four bytes and a zero point of one, for the tensor or for each channel.
    let scales = if preset.per_channel { tensor.dims.first().copied().unwrap_or(1) } else { 1 };
    data.saturating_add(scales.saturating_mul(5))
}

/// Bytes of the constant second inputs of MatMul, which four-bit weights can store.
pub fn constant_matmul_bytes(graph: &Graph) -> u64 {
    let tensors = Tensors::new(graph);
    let mut found: Vec<usize> = graph
        .nodes()
        .filter(|node| node.op_type() == "MatMul")
        .filter_map(|node| tensors.position(*node.inputs().get(1)?))
        .filter(|at| tensors.all[*at].dims.len() == 2)
        .collect();
    found.sort_unstable();
    found.dedup();
    found.iter().map(|at| tensors.all[*at].bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogue::Catalogue, facts::graph::NodeText};

    #[test]
    fn weights_shrink_by_the_bits_of_the_preset() {
        let tensor = |name: &str, dims: &[u64]| Tensor {
            name: name.to_owned(),
            dtype: "float32".to_owned(),
            dims: dims.to_vec(),
            bytes: 4 * dims.iter().product::<u64>(),
        };
        let node = |op_type: &str, inputs: &[&str]| NodeText {
            op_type: op_type.to_owned(),
            inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
            ..NodeText::default()
        };
        let nodes =
            [node("Conv", &["x", "w", "b"]), node("MatMul", &["y", "m"]), node("Add", &["z", "a"])];
        let tensors = vec![
            tensor("w", &[8, 3, 3, 3]),
            tensor("b", &[8]),
            tensor("m", &[256, 128]),
            tensor("a", &[1, 10]),
        ];
        let graph = Graph::new(nodes, tensors);
        let check = |preset: &str, after: u64, quantized: u64| {
            let preset = Catalogue.presets().get(preset).unwrap();
            let found = weights(&graph, preset, graph.nodes());
            assert_eq!(
                found,
                Weights { before: 864 + 32 + 131_072 + 40, after, quantized },
                "{}",
                preset.id
            );
        };
        check("XINT8", (216 + 5) + 32 + (32_768 + 5) + 40, 2);
        check("BF16", 864 + 32 + 131_072 + 40, 0);
        check("MATMUL_NBITS", (115 + 5) + 32 + (17_408 + 5) + 40, 2);
        assert_eq!(constant_matmul_bytes(&graph), 131_072);
    }
}

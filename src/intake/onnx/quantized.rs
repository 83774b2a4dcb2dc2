//! Looks for evidence that a model is quantized already.
//!
//! `QuantizeLinear` is not the only sign: dynamic quantization leaves `DynamicQuantizeLinear` and integer
//! products, ONNX Runtime and Quark have ops of their own, and some exporters store small integers as weights
//! and cast them. An input of type `uint8` that is cast is a picture, not evidence.

use std::collections::{BTreeMap, HashMap};

use crate::facts::graph::{Graph, Kind, Node, Tensor, Value};
use crate::intake::onnx::kinds;

/// Integer tensors below this many elements may be tables, masks or zero points.
const WEIGHT_ELEMENTS: u64 = 256;
/// How many ops that only carry a value are followed from a weight to its use.
const HOPS: usize = 4;

/// What was found, with counts; empty for a float model.
pub fn evidence(graph: &Graph, annotations: u64) -> BTreeMap<String, u64> {
    let is_evidence = |kind: &Kind| is_quantized_op(&kind.domain, &kind.op_type);
    let mut found = kinds::sum(
        graph,
        |kind| &kind.op_type,
        |kind| if is_evidence(kind) { kind.count } else { 0 },
    );
    for (dtype, count) in loose_weights(graph) {
        found.insert(format!("{dtype} weights"), count);
    }
    if annotations > 0 {
        found.insert("quantization annotations".to_owned(), annotations);
    }
    found
}

/// Whether an op is one of Quark's own.
pub fn is_quark_op(domain: &str, op: &str) -> bool {
    matches!(domain, "com.amd.quark" | "com.vai.quantize")
        || op.ends_with("FixNeuron")
        || matches!(
            op,
            "BFPQuantizeDequantize"
                | "MXQuantizeDequantize"
                | "ExtendedQuantizeLinear"
                | "ExtendedDequantizeLinear"
                | "VitisQuantizeLinear"
                | "VitisDequantizeLinear"
        )
}

fn is_quantized_op(domain: &str, op: &str) -> bool {
    is_quark_op(domain, op)
        || op.starts_with("QLinear")
        || op.starts_with("QOrdered")
        || op.starts_with("DynamicQuantize")
        || matches!(
            op,
            "QuantizeLinear"
                | "DequantizeLinear"
                | "ConvInteger"
                | "MatMulInteger"
                | "MatMulIntegerToFloat"
                | "MatMulNBits"
                | "MatMulBnb4"
                | "MatMulFpQ4"
                | "GatherBlockQuantized"
                | "QAttention"
                | "QEmbedLayerNormalization"
                | "QGemm"
                | "QMoE"
                | "QuantizeBFP"
                | "DequantizeBFP"
                | "QuantizeWithOrder"
                | "DequantizeWithOrder"
        )
}

fn is_small_type(dtype: &str) -> bool {
    matches!(dtype, "int8" | "uint8" | "int4" | "uint4" | "int2" | "uint2")
        || dtype.starts_with("float8")
        || dtype.starts_with("float6")
        || dtype.starts_with("float4")
}

/// Counts large tensors of small types that arithmetic uses, by type.
fn loose_weights(graph: &Graph) -> BTreeMap<&str, u64> {
    let mut found = BTreeMap::new();
    let is_weight =
        |tensor: &Tensor| is_small_type(&tensor.dtype) && tensor.elements() >= WEIGHT_ELEMENTS;
    // Which weight a value holds.
    let mut holds: HashMap<Value, usize> = graph
        .tensors
        .iter()
        .enumerate()
        .filter(|(_, tensor)| is_weight(tensor))
        .filter_map(|(index, tensor)| Some((graph.value(&tensor.name)?, index)))
        .collect();
    let mut counted = vec![false; graph.tensors.len()];
    let mut known = 0;
    for _ in 0..HOPS {
        if holds.len() == known {
            break;
        }
        known = holds.len();
        for node in graph.nodes() {
            let Some(&weight) = node.inputs().iter().find_map(|input| holds.get(input)) else {
                continue;
            };
            if carries(node.op_type()) {
                holds.extend(node.outputs().iter().map(|output| (*output, weight)));
            } else if is_arithmetic(node)
                && !is_quantized_op(node.domain(), node.op_type())
                && !counted[weight]
            {
                counted[weight] = true;
                *found.entry(graph.tensors[weight].dtype.as_str()).or_insert(0) += 1;
            }
        }
    }
    found
}

fn carries(op_type: &str) -> bool {
    matches!(
        op_type,
        "Cast" | "Gather" | "Identity" | "Reshape" | "Squeeze" | "Transpose" | "Unsqueeze"
    )
}

fn is_arithmetic(node: Node<'_>) -> bool {
    // An op of another domain that takes such a tensor is a quantized op with a name of its own.
    !node.domain().is_empty() && !node.domain().starts_with("ai.onnx")
        || matches!(
            node.op_type(),
            "Add" | "Conv" | "ConvTranspose" | "Div" | "Einsum" | "Gemm" | "MatMul" | "Mul" | "Sub"
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::graph::NodeText;

    fn node(op_type: &str, domain: &str, inputs: &[&str], outputs: &[&str]) -> NodeText {
        NodeText {
            op_type: op_type.into(),
            domain: domain.into(),
            inputs: inputs.iter().map(|name| (*name).into()).collect(),
            outputs: outputs.iter().map(|name| (*name).into()).collect(),
            ..NodeText::default()
        }
    }

    fn weight(dtype: &str, elements: u64) -> Tensor {
        Tensor { name: "w".into(), dtype: dtype.into(), dims: vec![elements], bytes: elements }
    }

    #[test]
    fn quantized_ops_and_loose_integer_weights_are_evidence() {
        let check = |nodes: Vec<NodeText>, tensors: Vec<Tensor>, expected: &[(&str, u64)]| {
            let found = evidence(&Graph::new(nodes, tensors), 0);
            let expected: BTreeMap<String, u64> =
                expected.iter().map(|(name, count)| ((*name).into(), *count)).collect();
            assert_eq!(found, expected);
        };
        check(vec![node("Cast", "", &["picture"], &["x"])], vec![], &[]);
        check(
            vec![node("DequantizeLinear", "", &["w", "s"], &["x"])],
            vec![],
            &[("DequantizeLinear", 1)],
        );
        check(
            vec![node("MatMulNBits", "com.microsoft", &["x", "w"], &["y"])],
            vec![],
            &[("MatMulNBits", 1)],
        );
        check(vec![node("QLinearConv", "", &["x"], &["y"])], vec![], &[("QLinearConv", 1)]);
        let cast_and_scaled =
            || vec![node("Cast", "", &["w"], &["f"]), node("Mul", "", &["f", "s"], &["y"])];
        check(cast_and_scaled(), vec![weight("int8", 4096)], &[("int8 weights", 1)]);
        check(cast_and_scaled(), vec![weight("int8", 16)], &[]);
        check(cast_and_scaled(), vec![weight("int64", 4096)], &[]);
        check(vec![node("Gather", "", &["w", "i"], &["y"])], vec![weight("uint8", 4096)], &[]);
        check(
            vec![node("QDense", "com.acme", &["x", "w"], &["y"])],
            vec![weight("uint4", 4096)],
            &[("uint4 weights", 1)],
        );
    }

    #[test]
    fn only_quark_ops_are_quark_ops() {
        assert!(is_quark_op("com.amd.quark", "BFPQuantizeDequantize"));
        assert!(is_quark_op("", "BFPFixNeuron"));
        assert!(is_quark_op("com.vai.quantize", "VitisQuantizeLinear"));
        assert!(!is_quark_op("", "QuantizeLinear"));
        assert!(!is_quark_op("com.microsoft", "QLinearAdd"));
    }
}

//! Guesses the order of the dimensions of an image input.

use crate::facts::graph::{Attribute, Graph, Node, Value};
use crate::facts::{Dim, TensorFacts};
use crate::vocab::Layout;

/// Ops that take their input as batch, channels, height, width.
const CHANNELS_FIRST: [&str; 9] = [
    "AveragePool",
    "BatchNormalization",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "GlobalAveragePool",
    "InstanceNormalization",
    "MaxPool",
    "QLinearConv",
];
/// Ops that normalize an image and keep its layout.
const KEEPS_LAYOUT: [&str; 9] =
    ["Add", "Cast", "DequantizeLinear", "Div", "Identity", "Mul", "Pad", "QuantizeLinear", "Sub"];
/// How many such ops are followed.
const HOPS: usize = 6;

/// The layout of the first input of rank four.
///
/// What the graph does with the input counts more than its sizes: ONNX convolutions are channels-first, and a
/// channels-last model transposes before them. Sizes decide only where there is a convolution at all.
pub fn guess(inputs: &[TensorFacts], graph: &Graph) -> Layout {
    let image = inputs
        .iter()
        .find_map(|input| Some((input, <&[Dim; 4]>::try_from(input.shape.as_deref()?).ok()?)));
    let Some((input, [_, second, _, last])) = image else { return Layout::Unknown };
    if let Some(layout) = by_use(&input.name, graph) {
        return layout;
    }
    let has_convs = graph.kinds().iter().any(|kind| kind.op_type.contains("Conv"));
    let is_channels = |dim: &Dim| matches!(dim.fixed(), Some(1 | 3 | 4));
    match (is_channels(second), is_channels(last)) {
        (true, false) if has_convs => Layout::Nchw,
        (false, true) if has_convs => Layout::Nhwc,
        _ => Layout::Unknown,
    }
}

fn by_use(input: &str, graph: &Graph) -> Option<Layout> {
    let mut value = graph.value(input)?;
    for _ in 0..HOPS {
        let mut users = graph.nodes().filter(|node| node.is_top() && takes(*node, value));
        let mut next = None;
        for user in users.by_ref() {
            let op = user.op_type();
            if CHANNELS_FIRST.contains(&op) {
                return Some(Layout::Nchw);
            }
            if op == "Transpose" {
                return match user.attribute("perm") {
                    Some(Attribute::Ints(perm)) if perm == &[0, 3, 1, 2] => Some(Layout::Nhwc),
                    // Towards channels-last: it came channels-first.
                    Some(Attribute::Ints(perm)) if perm == &[0, 2, 3, 1] => Some(Layout::Nchw),
                    _ => None,
                };
            }
            if KEEPS_LAYOUT.contains(&op) {
                next = next.or(user.outputs().first());
            }
        }
        value = *next?;
    }
    None
}

fn takes(node: Node<'_>, value: Value) -> bool {
    // Only the first two: the rest are scales, sizes and pads.
    node.inputs().iter().take(2).any(|input| *input == value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::graph::NodeText;

    fn node(op_type: &str, input: &str, output: &str) -> NodeText {
        NodeText {
            op_type: op_type.into(),
            inputs: vec![input.into()],
            outputs: vec![output.into()],
            top: true,
            ..NodeText::default()
        }
    }

    #[test]
    fn the_use_of_an_input_counts_before_its_sizes() {
        let check = |sizes: &[i64], nodes: Vec<NodeText>, expected: Layout| {
            let input = TensorFacts {
                name: "x".into(),
                dtype: "float32".into(),
                shape: Some(sizes.iter().map(|size| Dim::Size(*size)).collect()),
            };
            assert_eq!(guess(&[input], &Graph::new(nodes, vec![])), expected, "{sizes:?}");
        };
        let mut to_channels_first = node("Transpose", "x", "t");
        to_channels_first.attributes.insert("perm".into(), Attribute::Ints(vec![0, 3, 1, 2]));
        check(&[1, 3, 8, 8], vec![node("Conv", "x", "y")], Layout::Nchw);
        check(&[1, 8, 8, 3], vec![node("Conv", "x", "y")], Layout::Nchw);
        check(&[1, 8, 8, 3], vec![to_channels_first, node("Conv", "t", "y")], Layout::Nhwc);
        check(
            &[1, 3, 8, 8],
            vec![node("Cast", "x", "c"), node("Sub", "c", "s"), node("Conv", "s", "y")],
            Layout::Nchw,
        );
        check(
            &[-1, 76, 32, 1],
            vec![node("Reshape", "x", "r"), node("Conv", "r", "y")],
            Layout::Nhwc,
        );
        check(&[1, 8, 8, 3], vec![node("MatMul", "x", "y")], Layout::Unknown);
        check(&[1, 3, 8], vec![node("Conv", "x", "y")], Layout::Unknown);
    }
}

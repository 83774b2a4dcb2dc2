//! # What it does
//!
//! Finds the box decoding of a detector by its structure and proposes to leave it in float.
//!
//! # Why
//!
//! Boxes and confidences share one tensor after the last Concat: with one scale for both, confidences become 0.
//! The softmax over bins (DFL) of newer YOLOs loses accuracy in INT8 too. Node names differ from export to export,
//! so copied names do not help.
//!
//! # Example
//!
//! The output is a Concat of `/model.22/Mul_2` and `/model.22/Sigmoid` behind the last convolutions, so these nodes
//! are proposed for `nodes_to_exclude`.
//!
//! # Sources
//!
//! - microsoft/onnxruntime#14233; ultralytics/ultralytics#25306, #7516; wang-xinyu/tensorrtx#534
//! - 0.13, `examples/onnx/yolo_quantization/quantize_yolo.py` leaves the head in float

use std::collections::BTreeSet;

use serde_json::json;

use crate::{
    facts::graph::{Graph, Node, Value},
    plan::Alternative,
    rules::{
        Context, Stage,
        onnx::lookup::{Entry, Lookup},
        sheet::{Sheet, list},
    },
    vocab::{Architecture, Severity},
};

/// The reason code.
pub const ID: &str = "detector-head";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

const ROW: &str = "onnx_specific.nodes_to_exclude";
/// Ops that carry weights, where the walk from the outputs ends.
const WEIGHTED: [&str; 7] =
    ["Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "BatchNormalization"];
/// Ops that compute shapes and anchors, not boxes.
const ASIDE: [&str; 5] = ["Constant", "ConstantOfShape", "Expand", "Range", "Shape"];
/// Ops whose inputs after the first are sizes and indices.
const MOVES: [&str; 9] =
    ["Cast", "Gather", "Reshape", "Resize", "Slice", "Split", "Squeeze", "Tile", "Unsqueeze"];
/// A decoder is small; a walk that goes on is in something else.
const MOST: usize = 200;

/// Proposes.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let convolutional = matches!(sheet.architecture, Architecture::Cnn | Architecture::Hybrid);
    let integer = sheet.preset.as_ref().is_some_and(|preset| {
        preset.activation.bits <= 8.0
            && preset.uses_calibration_data
            && !preset.activation.r#type.is_block()
    });
    let graph = match ctx.graph {
        // Cheap counts first: most models have no decoder.
        Some(graph)
            if convolutional && integer && ctx.count("Concat") > 0 && ctx.count("Mul") > 0 =>
        {
            graph
        }
        _ => return,
    };
    let lookup = Lookup::new(graph);
    let (nodes, dfl) = decoder(ctx, &lookup);
    if nodes.is_empty() {
        return;
    }
    let excluded = sheet.value(ROW).and_then(|value| value.as_array()).cloned().unwrap_or_default();
    let excluded: Vec<Entry<'_>> =
        excluded.iter().filter_map(|entry| entry.as_str()).map(Entry::read).collect();
    let left: Vec<Node<'_>> = nodes
        .iter()
        .copied()
        .filter(|node| !excluded.iter().any(|entry| entry.means(*node)))
        .collect();
    let named = |nodes: &[Node<'_>], op_types: &[&str]| {
        let nodes = nodes.iter().filter(|node| {
            !node.name().is_empty() && (op_types.is_empty() || op_types.contains(&node.op_type()))
        });
        nodes.map(|node| node.name().to_owned()).collect::<Vec<_>>()
    };
    let names = named(&nodes, &[]);
    let still = named(&left, &[]);
    if still.is_empty() && !names.is_empty() {
        return;
    }
    let telling = named(&left, &["Softmax", "Sigmoid", "Concat"]);
    let shown = if telling.is_empty() { &still } else { &telling };
    let what = if dfl { "a box decoder with a softmax over bins" } else { "a box decoder" };
    if names.is_empty() {
        sheet.by(ID).risk(
            Severity::Medium,
            format!("behind the last convolutions is {what} of {} nodes, which loses accuracy in INT8, and none of them has a name to be excluded by", nodes.len()),
            Some("give the nodes names, for example with onnxsim, and exclude them".to_owned()),
        );
        return;
    }
    if let Some(decision) = sheet.decision_mut(ROW) {
        decision.alternatives.push(Alternative {
            value: json!(names),
            why_not: format!("behind the last convolutions is {what} that loses accuracy in INT8; take this to keep it in float"),
        });
    }
    let count = if left.len() == nodes.len() {
        format!("{} nodes", nodes.len())
    } else {
        format!("{} of its {} nodes are still quantized", left.len(), nodes.len())
    };
    sheet.by(ID).risk(
        Severity::Medium,
        format!("behind the last convolutions is {what} ({count}, {}): with 8-bit scales confidences can become 0 and boxes shift", list(shown, 4)),
        Some(format!("set `{ROW}` to the nodes that are proposed there, and check mAP")),
    );
}

/// The nodes between the last weighted ones and the outputs, when they decode boxes; whether by DFL.
fn decoder<'g>(ctx: &Context<'_>, lookup: &Lookup<'g>) -> (Vec<Node<'g>>, bool) {
    let mut found: Vec<Node<'_>> = Vec::new();
    let mut seen: BTreeSet<Value> = BTreeSet::new();
    let mut dfl = false;
    let outputs = ctx.onnx().outputs.iter();
    let mut next: Vec<Value> =
        outputs.filter_map(|output| lookup.graph.value(&output.name)).collect();
    while let Some(tensor) = next.pop() {
        let Some(node) = lookup.producer(tensor) else { continue };
        let Some(key) = node.outputs().first() else { continue };
        if !seen.insert(*key) {
            continue;
        }
        let op_type = node.op_type();
        let sums_bins = op_type == "Conv" && is_dfl(lookup.graph, node);
        if ASIDE.contains(&op_type) || (WEIGHTED.contains(&op_type) && !sums_bins) {
            continue;
        }
        dfl |= sums_bins;
        if found.len() == MOST {
            return (Vec::new(), false);
        }
        found.push(node);
        let follow = if MOVES.contains(&op_type) { 1 } else { node.inputs().len() };
        next.extend(node.inputs().iter().take(follow));
    }
    let has = |op: &str| found.iter().any(|node| node.op_type() == op);
    let decodes = has("Concat") && has("Mul") && (has("Sigmoid") || (dfl && has("Softmax")));
    if !decodes {
        return (Vec::new(), false);
    }
    found.sort_by_key(|node| node.name());
    (found, dfl)
}

/// A 1×1 convolution to one channel: the weighted sum over the bins of a DFL.
fn is_dfl(graph: &Graph, node: Node<'_>) -> bool {
    let Some(weight) = node.input(1) else { return false };
    let tensor = graph.tensors.iter().find(|tensor| tensor.name == weight);
    tensor.is_some_and(|tensor| matches!(tensor.dims[..], [1, bins, 1, 1] if bins > 1))
}

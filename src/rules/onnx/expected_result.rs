//! # What it does
//!
//! Estimates the result: bytes of the weights before and after, how many nodes are quantized, how long it takes.
//!
//! # Why
//!
//! Whoever agrees should know what comes out, and the validator that runs afterwards needs something to compare
//! with. Presets that only round in the graph make no file smaller.
//!
//! # Example
//!
//! The weights are 12.1 MB and `A8W8` stores them in 8 bits, so about 3.1 MB come out.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantizers/onnx_quantizer.py:168`: branches and functions only with `EnableSubgraph`
//! - Headers of the model's own tensors; bits and forms of the presets from the catalogue (0.13, measured)

use serde_json::Value;

use crate::{
    catalogue::{
        algorithms::TimeClass,
        presets::{Preset, PresetFamily},
    },
    estimate,
    facts::graph::Node,
    rules::{Context, Stage, onnx::lookup::Entry, sheet::Sheet},
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "expected-result";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Estimates.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(preset) = sheet.preset.clone() else { return };
    let scope = Scope::new(ctx, sheet, &preset);
    let nodes: Option<Vec<Node<'_>>> = ctx.graph.map(|graph| {
        // What stands in a branch or a function is quantized only where that is asked for.
        let inside = sheet.option_is_on(ctx, "EnableSubgraph");
        let reached = graph.nodes().filter(|node| inside || node.is_top());
        let computing = reached.filter(|node| node.op_type() != "Constant");
        computing.filter(|node| scope.admits(*node)).collect()
    });
    let quantized = match &nodes {
        Some(nodes) => nodes.len() as u64,
        None => {
            let types = ctx.targets().op_counts.iter().filter(|(op, _)| *op != "Constant");
            types.filter(|(op, _)| scope.admits_type(op)).map(|(_, count)| count).sum()
        }
    };
    let weights =
        ctx.graph.zip(nodes).map(|(graph, nodes)| estimate::weights(graph, &preset, nodes));
    let stated = ctx
        .onnx()
        .weights
        .as_ref()
        .map(|weights| weights.initializer_bytes + weights.constant_bytes);
    sheet.expected.quantized_nodes = Some(quantized);
    sheet.expected.weight_bytes_before = weights.map(|weights| weights.before).or(stated);
    sheet.expected.weight_bytes_after = weights.map(|weights| weights.after);
    let wishes_size =
        crate::rules::common::goal::read(ctx).says(&["smallest", "smaller", "small", "size"]);
    let slowest = sheet.algorithms.iter().map(|algorithm| algorithm.time).max();
    let mut pen = sheet.by(ID);
    if quantized == 0 {
        pen.risk(
            Severity::High,
            format!(
                "no node of the graph is quantized by `{}`, so the float model would come out",
                preset.id
            ),
            Some("choose another preset, or check the lists of nodes and op types".to_owned()),
        );
    }
    if preset.weights_in_float {
        pen.risk(
            if wishes_size { Severity::Medium } else { Severity::Low },
            format!("`{}` rounds weights in the graph and stores them as float, so the file gets no smaller", preset.id),
            None,
        );
    }
    let calibrates = preset.uses_calibration_data && !preset.dynamic;
    let time = slowest.max(Some(if calibrates { TimeClass::Minutes } else { TimeClass::Seconds }));
    sheet.expected.time_class = time.map(|time| match time {
        TimeClass::Seconds => "seconds".to_owned(),
        TimeClass::Minutes => "minutes".to_owned(),
        TimeClass::Hours => "hours".to_owned(),
    });
}

/// Which nodes a plan quantizes.
struct Scope<'a> {
    types: Option<Vec<&'a str>>,
    all_types: bool,
    only: Option<Vec<Entry<'a>>>,
    excluded: Vec<Entry<'a>>,
    counts: &'a std::collections::BTreeMap<String, u64>,
}

impl<'a> Scope<'a> {
    fn new(ctx: &Context<'a>, sheet: &'a Sheet, preset: &Preset) -> Self {
        let texts = |row: &str| {
            let list = sheet.value(row).and_then(Value::as_array);
            list.map(|list| list.iter().filter_map(Value::as_str).collect::<Vec<_>>())
        };
        let narrow = match preset.family {
            PresetFamily::WeightOnly => Some(vec!["MatMul"]),
            // What ONNX Runtime's dynamic quantization takes of the usual models.
            PresetFamily::Dynamic => Some(vec!["MatMul", "Gemm", "Conv", "LSTM"]),
            _ if preset.npu_transformer => Some(vec!["MatMul", "Gemm"]),
            _ => None,
        };
        let entries = |row: &str| {
            texts(row).map(|names| names.into_iter().map(Entry::read).collect::<Vec<_>>())
        };
        let all_types = preset.extra_options.get("QuantizeAllOpTypes") == Some(&Value::Bool(true));
        Self {
            types: texts("onnx_specific.op_types_to_quantize").or(narrow),
            all_types,
            only: entries("onnx_specific.nodes_to_quantize"),
            excluded: entries("onnx_specific.nodes_to_exclude").unwrap_or_default(),
            counts: &ctx.targets().quantizable_op_counts,
        }
    }

    fn admits_type(&self, op_type: &str) -> bool {
        match &self.types {
            Some(types) => types.contains(&op_type),
            None => self.all_types || self.counts.get(op_type).is_some_and(|count| *count > 0),
        }
    }

    fn admits(&self, node: Node<'_>) -> bool {
        self.admits_type(node.op_type())
            && self.only.as_ref().is_none_or(|only| only.iter().any(|entry| entry.means(node)))
            && !self.excluded.iter().any(|entry| entry.means(node))
    }
}

//! The rows of the decision tables: their order, their types and what they mean.

use crate::vocab::DecisionId;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Id: the path of the value in the plan.
    pub id: &'static str,
    /// What values it takes from a user.
    pub takes: Takes,
    /// One line about it.
    pub summary: &'static str,
}

/// What values a row takes from a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it is fixed, or follows from another row.
    Nothing(&'static str),
    /// The name of a catalogue entry of this kind.
    Name(Kind),
    /// A list of such names.
    Names(Kind),
    /// A whole number in a range.
    Count {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// `true` or `false`.
    Flag,
    /// A list of op types of the graph, or `null`.
    OpTypes,
    /// A list of node names or patterns of the graph, or `null`.
    Nodes,
    /// A list of pairs of lists of node names.
    Subgraphs,
    /// An object of extra options.
    Options,
    /// An object with the spec of a custom preset.
    CustomConfig,
    /// A list of execution providers.
    Providers,
    /// `none`, `smoke`, `full`, `mlperf` or `mAP`.
    Evaluation,
}

/// A kind of catalogue entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Deployment targets.
    Target,
    /// Presets.
    Preset,
    /// Calibration methods.
    Method,
    /// Algorithms.
    Algorithm,
    /// Releases of amd-quark.
    Release,
}

/// The rows of an ONNX plan, in the order of the table.
pub const ONNX: &[Row] = &[
    Row {
        id: "backend",
        takes: Takes::Nothing("this is the ONNX flow"),
        summary: "Which half of Quark the plan is for",
    },
    Row {
        id: "quark_version",
        takes: Takes::Name(Kind::Release),
        summary: "Release of amd-quark that will run the plan",
    },
    Row {
        id: "deployment_target",
        takes: Takes::Name(Kind::Target),
        summary: "Where the quantized model will run",
    },
    Row {
        id: "preset",
        takes: Takes::Name(Kind::Preset),
        summary: "Named config of Quark-ONNX, or `custom`",
    },
    Row {
        id: "onnx_specific.custom_config",
        takes: Takes::CustomConfig,
        summary: "Spec of a `custom` preset",
    },
    Row {
        id: "calibration.method",
        takes: Takes::Name(Kind::Method),
        summary: "How the ranges of activations are found",
    },
    Row {
        id: "calibration.data_size",
        takes: Takes::Count { min: 0, max: 1_000_000 },
        summary: "Number of calibration samples",
    },
    Row {
        id: "calibration.batch_size",
        takes: Takes::Count { min: 1, max: 4096 },
        summary: "Samples that the reader yields at once",
    },
    Row {
        id: "calibration.optimize_mem",
        takes: Takes::Flag,
        summary: "Whether calibration trades time for memory (`CalibOptimizeMem`)",
    },
    Row {
        id: "calibration.worker_num",
        takes: Takes::Count { min: 1, max: 256 },
        summary: "Worker processes of the calibrator (`CalibWorkerNum`)",
    },
    Row {
        id: "algorithms",
        takes: Takes::Names(Kind::Algorithm),
        summary: "Algorithms in the order in which they run",
    },
    Row {
        id: "onnx_specific.enable_npu_cnn",
        takes: Takes::Flag,
        summary: "Quantize for the NPU's CNN flow",
    },
    Row {
        id: "onnx_specific.enable_npu_transformer",
        takes: Takes::Flag,
        summary: "Quantize for the NPU's transformer flow",
    },
    Row {
        id: "onnx_specific.include_cle",
        takes: Takes::Flag,
        summary: "Whether cross-layer equalization runs",
    },
    Row {
        id: "onnx_specific.op_types_to_quantize",
        takes: Takes::OpTypes,
        summary: "Op types to restrict quantization to",
    },
    Row {
        id: "onnx_specific.nodes_to_quantize",
        takes: Takes::Nodes,
        summary: "Nodes to restrict quantization to",
    },
    Row {
        id: "onnx_specific.nodes_to_exclude",
        takes: Takes::Nodes,
        summary: "Nodes left in float",
    },
    Row {
        id: "onnx_specific.subgraphs_to_exclude",
        takes: Takes::Subgraphs,
        summary: "Subgraphs left in float, from start nodes to end nodes",
    },
    Row {
        id: "onnx_specific.use_external_data_format",
        takes: Takes::Flag,
        summary: "Whether weights are written beside the model",
    },
    Row {
        id: "onnx_specific.extra_options",
        takes: Takes::Options,
        summary: "`extra_options` on top of the preset's own",
    },
    Row {
        id: "onnx_specific.execution_providers",
        takes: Takes::Providers,
        summary: "ONNX Runtime providers for calibration",
    },
    Row {
        id: "evaluation_intent",
        takes: Takes::Evaluation,
        summary: "How the result will be evaluated",
    },
];

/// The row that a name means: its id, or the last part of it where that is unique.
pub fn find(name: &str) -> Option<&'static Row> {
    let same = |part: &str| part.eq_ignore_ascii_case(name);
    ONNX.iter().find(|row| same(row.id)).or_else(|| {
        let mut rows = ONNX.iter().filter(|row| row.id.rsplit('.').next().is_some_and(same));
        rows.next().filter(|_| rows.next().is_none())
    })
}

/// The id that a name means, when it means one.
pub fn resolve(name: &DecisionId) -> Option<DecisionId> {
    find(name.as_str()).map(|row| DecisionId::new(row.id))
}

//! The rows of the decision tables: their order, their types and what they mean.

use crate::vocab::{Backend, DecisionId};

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
    /// One of these words, or `null`.
    Choice(&'static [&'static str]),
    /// A number that is not negative.
    Number,
    /// A path, or `null`.
    Path,
    /// A data set that Quark-Torch can load.
    Dataset,
    /// `null` for the template's own list, a list of patterns in its place, or `[]` for none.
    Patterns,
    /// An object of patterns, each with a scheme.
    Overrides,
    /// `null`, an algorithm, or several in the order in which they run, as a list or with commas.
    Algorithms,
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
    /// Schemes of Quark-Torch.
    Scheme,
    /// Programs that carry a Torch plan out.
    EntryPoint,
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

/// The rows of a Torch plan, in the order of the table.
pub const TORCH: &[Row] = &[
    Row {
        id: "quark_version",
        takes: Takes::Name(Kind::Release),
        summary: "Release of amd-quark that will run the plan",
    },
    Row {
        id: "global_scheme",
        takes: Takes::Name(Kind::Scheme),
        summary: "Number formats of weights and activations of every layer that is not excluded",
    },
    Row {
        id: "kv_cache_scheme",
        takes: Takes::Choice(&["fp8"]),
        summary: "Number format of the KV cache: `fp8`, or `null` to leave it alone",
    },
    Row {
        id: "min_kv_scale",
        takes: Takes::Number,
        summary: "Least scale of the KV cache, against extreme values",
    },
    Row {
        id: "kv_cache_post_rope",
        takes: Takes::Flag,
        summary: "Whether the KV cache is quantized after the rotary embedding",
    },
    Row {
        id: "attention_scheme",
        takes: Takes::Choice(&["fp8"]),
        summary: "Number format of queries and of the softmax: `fp8`, or `null` to leave attention alone",
    },
    Row {
        id: "exclude_layers",
        takes: Takes::Patterns,
        summary: "Modules left in float: `null` keeps the template's list, a list replaces it, `[]` quantizes everything",
    },
    Row {
        id: "layer_quant_config",
        takes: Takes::Overrides,
        summary: "Schemes of single layers, by pattern",
    },
    Row {
        id: "algorithm",
        takes: Takes::Algorithms,
        summary: "Algorithms in the order in which they run, with commas between them, or `null`",
    },
    Row {
        id: "algorithm_config",
        takes: Takes::Path,
        summary: "Config file of an algorithm that has no built-in one for the model",
    },
    Row {
        id: "calibration.dataset",
        takes: Takes::Dataset,
        summary: "Text that calibration reads",
    },
    Row {
        id: "calibration.num_calib_data",
        takes: Takes::Count { min: 1, max: 1_000_000 },
        summary: "Number of calibration samples",
    },
    Row {
        id: "calibration.seq_len",
        takes: Takes::Count { min: 1, max: 1_048_576 },
        summary: "Tokens of a sample",
    },
    Row {
        id: "calibration.batch_size",
        takes: Takes::Count { min: 1, max: 4096 },
        summary: "Samples that go through the model at once",
    },
    Row {
        id: "device_strategy",
        takes: Takes::Choice(&["single", "multi_device", "multi_gpu", "cpu", "file_to_file"]),
        summary: "How the model is held while it is quantized",
    },
    Row {
        id: "export_format",
        takes: Takes::Choice(&["hf_format", "gguf", "none"]),
        summary: "What is written: a Hugging Face folder, a GGUF file, or nothing but an evaluation",
    },
    Row {
        id: "custom_mode",
        takes: Takes::Choice(&["quark", "awq", "fp8"]),
        summary: "Layout of the Hugging Face folder: Quark's own, AutoAWQ's, or vLLM's FP8",
    },
    Row {
        id: "trust_remote_code",
        takes: Takes::Flag,
        summary: "Whether Python code of the model's repository may run",
    },
    Row {
        id: "template_file",
        takes: Takes::Path,
        summary: "Template of a model family that Quark has none for",
    },
    Row {
        id: "entry_point",
        takes: Takes::Name(Kind::EntryPoint),
        summary: "Program that carries the plan out",
    },
    Row {
        id: "evaluation_intent",
        takes: Takes::Evaluation,
        summary: "How the result will be evaluated",
    },
];

/// Rows of Torch plans that are there only when something asks for them.
pub const AT_NEED: [&str; 6] = [
    "min_kv_scale",
    "kv_cache_post_rope",
    "attention_scheme",
    "algorithm_config",
    "custom_mode",
    "template_file",
];

/// The rows of the plans of one half of Quark.
pub fn of(backend: Backend) -> &'static [Row] {
    match backend {
        Backend::Onnx => ONNX,
        Backend::Torch => TORCH,
    }
}

/// Every row once: those of ONNX plans, then those that only Torch plans have.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let only_torch = |row: &&Row| ONNX.iter().all(|known| known.id != row.id);
    ONNX.iter().chain(TORCH.iter().filter(only_torch))
}

/// The half of Quark whose plans alone have a row; `None` when both have it.
pub fn only_of(row: &Row) -> Option<Backend> {
    let has = |rows: &[Row]| rows.iter().any(|known| known.id == row.id);
    match (has(ONNX), has(TORCH)) {
        (true, true) => None,
        (true, false) => Some(Backend::Onnx),
        _ => Some(Backend::Torch),
    }
}

/// The row that a name means: its id, or the last part of it where that is unique.
pub fn find(rows: &'static [Row], name: &str) -> Option<&'static Row> {
    let same = |part: &str| part.eq_ignore_ascii_case(name);
    rows.iter().find(|row| same(row.id)).or_else(|| {
        let mut rows = rows.iter().filter(|row| row.id.rsplit('.').next().is_some_and(same));
        rows.next().filter(|_| rows.next().is_none())
    })
}

/// The row that a name means in the plans of either half; ONNX is looked at first.
pub fn find_any(name: &str) -> Option<&'static Row> {
    find(ONNX, name).or_else(|| find(TORCH, name))
}

/// The id that a name means, when it means one.
pub fn resolve(backend: Backend, name: &DecisionId) -> Option<DecisionId> {
    find(of(backend), name.as_str()).map(|row| DecisionId::new(row.id))
}

//! What is so: the artefacts that intake, probing and other skills write.
//!
//! Shapes and names are those of the Quark skills (`model_analysis.json`, `env_context.json`,
//! `onnx_install_result.json`, `session_context.json`), so what those skills write is read as it is:
//! a field that is not known is `None`, a field that is not ours is kept in `other`.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod graph;
pub mod machine;
pub mod named_files;
pub mod torch;
pub mod torch_install;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    facts::machine::{
        Cpu, CustomOps, Gpu, Interpreter, Npu, Package, Toolkit, lenient, npu, packages,
    },
    facts::torch::{Exactness, TorchFacts},
    vocab::{Architecture, Layout, Severity},
};

/// `model_analysis.json`: the structural facts of a model, read without its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelAnalysis {
    /// Whether everything could be read.
    pub analysis_status: AnalysisStatus,
    /// The model itself.
    pub model: ModelFacts,
    /// What there is to quantize.
    pub quantization_targets: QuantizationTargets,
    /// What may go wrong later, as the intake saw it.
    #[serde(default)]
    pub risks: Vec<AnalysisRisk>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Whether an analysis is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnalysisStatus {
    /// Every fact was read.
    Complete,
    /// Some facts are missing; the risks say which.
    Partial,
}

/// The model: where it is and what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFacts {
    /// Path of the file or folder.
    pub model_path: String,
    /// `onnx`, or the Hugging Face `model_type`.
    pub model_type: String,
    /// What loads it in Python, for example `onnx.load` or `AutoModelForCausalLM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading_class: Option<String>,
    /// Whether a Hugging Face model brings Python code of its own (`auto_map`) that loading it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_remote_code: Option<bool>,
    /// The version of transformers that wrote the Hugging Face config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformers_version: Option<String>,
    /// The versions of transformers that can load the model, as other writers know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformers_version_required: Option<String>,
    /// Whether there is more than one expert to route to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_moe: Option<bool>,
    /// Layers of the language model, MTP layers not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_hidden_layers: Option<u64>,
    /// Width of the language model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_size: Option<u64>,
    /// Model and external data, or the weights as they are stored, in GB (10^9 bytes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_size_gb: Option<f64>,
    /// Facts of an ONNX graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx_specific: Option<OnnxFacts>,
    /// Facts of a Hugging Face model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch_specific: Option<TorchFacts>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Facts of an ONNX model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnnxFacts {
    /// `ModelProto.ir_version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ir_version: Option<i64>,
    /// `ModelProto.producer_name`; text from the file, not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer_name: Option<String>,
    /// `ModelProto.producer_version`; text from the file, not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer_version: Option<String>,
    /// The operator sets, one for each domain, in the order of the file; the empty domain is `ai.onnx`.
    #[serde(default)]
    pub opsets: Vec<Opset>,
    /// Whether any tensor lies in another file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_external_data: Option<bool>,
    /// The other files, as the model names them (relative to the model).
    #[serde(default)]
    pub external_data_files: Vec<String>,
    /// Those of them that are not there, too short, or outside of the model's folder; the risks say which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_data_missing: Vec<String>,
    /// The order of the dimensions of the image input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_layout_guess: Option<Layout>,
    /// Inputs that a caller must feed; initializers listed as inputs are left out.
    #[serde(default)]
    pub inputs: Vec<TensorFacts>,
    /// Outputs.
    #[serde(default)]
    pub outputs: Vec<TensorFacts>,
    /// Whether an input has a dimension that is not fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_dynamic_dims: Option<bool>,
    /// Whether the model is quantized already (Q/DQ, integer ops, quantized weights).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_qdq_already: Option<bool>,
    /// Whether Quark's custom ops are in the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_quark_custom_ops: Option<bool>,
    /// What was taken for evidence of quantization: an op type or kind of weight, with its count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantization_evidence: BTreeMap<String, u64>,
    /// What kind of network it looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture_guess: Option<Architecture>,
    /// Bytes of the `.onnx` file itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// SHA-256 over everything but weight bytes (their sizes and places count), as `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structural_digest: Option<String>,
    /// How many nodes there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// Domains of nodes other than `ai.onnx` and `ai.onnx.ml`, with the number of nodes; calls of the model's
    /// own functions are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom_domains: BTreeMap<String, u64>,
    /// The weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightFacts>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// An operator set that a model imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Opset {
    /// Domain; `ai.onnx` for the empty one.
    pub domain: String,
    /// Version.
    pub version: i64,
}

/// An input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TensorFacts {
    /// Name in the graph; text from the file.
    pub name: String,
    /// Element type in lower case, for example `float32`; `unknown` when the file does not say.
    pub dtype: String,
    /// Dimensions; `null` when the rank is not known.
    #[serde(default)]
    pub shape: Option<Vec<Dim>>,
}

/// One dimension of a shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Dim {
    /// A fixed size; zero and below (Paddle's -1) are not fixed.
    Size(i64),
    /// A symbol, or `?`.
    Symbol(String),
    /// Not stated.
    Unknown,
}

impl Dim {
    /// The size when it is fixed.
    pub fn fixed(&self) -> Option<u64> {
        match self {
            Self::Size(n) => u64::try_from(*n).ok().filter(|n| *n > 0),
            Self::Symbol(_) | Self::Unknown => None,
        }
    }
}

/// Counts of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCounts {
    /// Nodes of the top graph.
    pub top: u64,
    /// Nodes of everything: subgraphs of control flow and model functions too.
    pub all: u64,
    /// Nodes without a name, of everything.
    pub unnamed: u64,
    /// Model-local functions.
    #[serde(default)]
    pub functions: u64,
}

/// The weights of a model, by what the headers of the tensors say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WeightFacts {
    /// Number of initializers (top graph, subgraphs and functions; sparse ones too).
    pub initializers: u64,
    /// How many initializers each element type has, of everything.
    pub dtypes: BTreeMap<String, u64>,
    /// The same for the top graph alone, when that differs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dtypes_top: BTreeMap<String, u64>,
    /// Bytes of each element type, initializers and Constant attributes together.
    pub bytes: BTreeMap<String, u64>,
    /// Bytes of initializers.
    pub initializer_bytes: u64,
    /// Bytes of tensors in Constant attributes; `save as external data` does not move these.
    pub constant_bytes: u64,
    /// Tensors in other files.
    pub external_tensors: u64,
    /// Bytes that the model says lie in other files.
    pub external_bytes: u64,
    /// Initializers that are listed as inputs too.
    #[serde(default)]
    pub initializers_as_inputs: u64,
}

/// What there is to quantize.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantizationTargets {
    /// Linear layers that are known, output head and towers included, a stack of experts as one; for ONNX
    /// `MatMul` + `Gemm` + `Conv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear_layer_count: Option<u64>,
    /// How `linear_layer_count` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear_layer_count_from: Option<Exactness>,
    /// Whether experts are stacked in tensors of three dimensions instead of linear layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_non_linear_experts: Option<bool>,
    /// What is left in float by default.
    #[serde(default)]
    pub exclude_defaults: Vec<String>,
    /// Whether expert modules have to be prepared before quantization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_moe_preparation: Option<bool>,
    /// Facts of an ONNX graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx_specific: Option<OnnxTargets>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Operator counts of an ONNX graph.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnnxTargets {
    /// Nodes of each op type, of everything (subgraphs and functions too).
    #[serde(default)]
    pub op_counts: BTreeMap<String, u64>,
    /// Nodes of each op type in the top graph, when that differs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub op_counts_top: BTreeMap<String, u64>,
    /// Nodes of the op types that Quark quantizes.
    #[serde(default)]
    pub quantizable_op_counts: BTreeMap<String, u64>,
    /// One to three presets that are realistic for this graph, for any target.
    #[serde(default)]
    pub preset_candidates: Vec<String>,
    /// The same for each deployment target.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub preset_candidates_by_target: BTreeMap<String, Vec<String>>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A risk as an intake skill words it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnalysisRisk {
    /// How grave.
    pub severity: Severity,
    /// What.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_hint: Option<String>,
}

/// `env_context.json`: the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvContext {
    /// Operating system and Python.
    #[serde(default)]
    pub environment: Environment,
    /// Accelerators.
    #[serde(default)]
    pub hardware: Hardware,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Operating system and Python.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Family of the operating system: `linux`, `windows`, `macos` or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Name and release of the distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_release: Option<String>,
    /// Release of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether this is the Windows Subsystem for Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wsl: Option<bool>,
    /// Version of the Python that would run Quark; `unknown` when none is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Whether this is a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerized: Option<bool>,
    /// Which container runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_runtime: Option<String>,
    /// That Python.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<Interpreter>,
    /// Every Python that was found, in the order in which they would be taken.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    pub interpreters: Vec<Interpreter>,
    /// Packages of that Python that matter to Quark, by their names on PyPI.
    #[serde(default, deserialize_with = "packages", skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, Package>,
    /// Execution providers whose libraries came with its ONNX Runtime; `null` without one.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub execution_providers: Option<Vec<String>>,
    /// Libraries of Quark's custom ONNX ops that are built; `null` without amd-quark, empty when the first
    /// import will compile them.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub quark_custom_ops: Option<Vec<CustomOps>>,
    /// Compilers and build tools on `PATH`, with where they are.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "BTreeMap::is_empty")]
    pub compilers: BTreeMap<String, String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Accelerators.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hardware {
    /// `amd-rocm`, `nvidia-cuda`, `cpu` or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// Version of the CUDA toolkit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_version: Option<String>,
    /// ROCm version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocm_version: Option<String>,
    /// Number of GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u64>,
    /// Marketing name of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_model: Option<String>,
    /// Architecture of the GPUs, for example `gfx942`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_arch: Option<String>,
    /// Memory of one GPU, in GiB, as Quark's skill writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gb: Option<f64>,
    /// Main memory in GiB.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub system_memory_gb: Option<f64>,
    /// The main processor.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Every GPU, one entry a kind.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// The Ryzen AI NPU.
    #[serde(default, deserialize_with = "npu", skip_serializing_if = "Option::is_none")]
    pub npu: Option<Npu>,
    /// Drivers that are loaded, with their versions where they say.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "BTreeMap::is_empty")]
    pub drivers: BTreeMap<String, Option<String>>,
    /// CUDA toolkits.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    pub cuda_toolkits: Vec<Toolkit>,
    /// Installations of ROCm.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    pub rocm_toolkits: Vec<Toolkit>,
    /// Name of the board, for example a Jetson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// `onnx_install_result.json`: which ONNX Runtime is installed and whether Quark's custom ops compiled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstallResult {
    /// `ok`, `failed` or `skipped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `onnxruntime`, `onnxruntime-gpu`, `onnxruntime_rocm`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnxruntime_package: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnxruntime_version: Option<String>,
    /// For example `cpu`, `cuda-12`, `rocm-6.4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_tag: Option<String>,
    /// Version of `onnx`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx_version: Option<String>,
    /// Version of amd-quark, where the writer knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quark_version: Option<String>,
    /// What was tried.
    #[serde(default)]
    pub verification: Verification,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What an install skill tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Execution providers that ONNX Runtime lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_providers: Option<Vec<String>>,
    /// Whether the one that was wanted is among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_provider_present: Option<bool>,
    /// Whether Quark's custom-op library compiled; `None` when nobody tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_ops_compile_ok: Option<bool>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// `session_context.json`: what a router knows; only routers write it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionContext {
    /// The goal in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_goal: Option<String>,
    /// The workflow that the router chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// What is settled.
    #[serde(default)]
    pub constraints: Constraints,
    /// What is not.
    #[serde(default)]
    pub open_questions: Vec<String>,
    /// Path of `model_analysis.json`, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_analysis_ref: Option<String>,
    /// Path of `env_context.json`, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_context_ref: Option<String>,
    /// Path of `onnx_install_result.json`, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx_install_result_ref: Option<String>,
    /// Path of `pytorch_install_result.json`, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_install_result_ref: Option<String>,
    /// Path of `quark_install_result.json`, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quark_install_result_ref: Option<String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What a router has settled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Constraints {
    /// `onnx` or `torch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Where the model will run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_target: Option<String>,
    /// `plan_only`, `interactive_execute` or `batch_execute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

//! Reads an ONNX model into a [`ModelAnalysis`] and the [`Graph`] behind it, without reading a weight.
//!
//! [`wire`] reads bytes within limits, `proto` walks the messages once, and the rest of the submodules each
//! answer one question about what was found. The shape of the analysis is that of the
//! `quark-onnx-model-intake` skill.

mod architecture;
pub mod defect;
mod dtype;
mod external;
mod kinds;
mod layout;
mod presets;
mod proto;
mod quantized;
mod risks;
mod source;
pub mod wire;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use serde_json::Map;
use tracing::debug;

use crate::facts::graph::{Graph, Kind};
use crate::facts::{
    AnalysisStatus, ModelAnalysis, ModelFacts, NodeCounts, OnnxFacts, OnnxTargets, Opset,
    QuantizationTargets, TensorFacts, WeightFacts,
};
use crate::intake::onnx::defect::Defect;
use crate::intake::onnx::external::Missing;
use crate::intake::onnx::proto::Contents;
use crate::intake::onnx::risks::Findings;
use crate::intake::onnx::wire::{Limits, Wire};
use crate::intake::{IntakeError, formats, head, locate};
use crate::vocab::Architecture;

/// Op types that Quark quantizes, or folds before it does.
const QUANTIZABLE: [&str; 7] =
    ["Conv", "Gemm", "MatMul", "ConvTranspose", "Add", "Mul", "BatchNormalization"];
/// Op types that count as linear layers.
const LINEAR: [&str; 3] = ["MatMul", "Gemm", "Conv"];
/// Bytes that tell one format from another.
const HEAD: u64 = 512;

/// A model as it was read.
#[derive(Debug, Clone)]
pub struct Model {
    /// What is written to `model_analysis.json`.
    pub analysis: ModelAnalysis,
    /// The nodes one by one.
    pub graph: Graph,
}

/// Whether a file that starts with `head` may be an ONNX model: its first field is one of `ModelProto`.
pub fn sniff(head: &[u8]) -> bool {
    let Some(&tag) = head.first() else { return false };
    match tag {
        // Fields 1 and 5: integers. Fields 2, 3, 4, 6, 7, 8 and 14: bytes.
        0x08 | 0x28 => true,
        0x12 | 0x1a | 0x22 | 0x32 | 0x3a | 0x42 | 0x72 => true,
        // Fields 20, 25 and 26, in two bytes.
        0xa2 | 0xca | 0xd2 => head.get(1) == Some(&0x01),
        _ => false,
    }
}

/// Reads the model at `path`: a file, or a folder that holds one.
pub fn read(path: &Path, limits: &Limits) -> Result<Model, IntakeError> {
    let path = locate(path)?;
    let file = File::open(&path).map_err(|cause| IntakeError::io(&path, cause))?;
    let length = file.metadata().map_err(|cause| IntakeError::io(&path, cause))?.len();
    read_from(file, length, &path, limits)
}

/// Reads a model of `length` bytes from `source`; `path` names it and says where its external data are.
pub fn read_from<S: Read + Seek>(
    mut source: S,
    length: u64,
    path: &Path,
    limits: &Limits,
) -> Result<Model, IntakeError> {
    if length == 0 {
        return Err(IntakeError::Empty { path: path.to_owned() });
    }
    let head = head(&mut source, HEAD).map_err(|cause| IntakeError::io(path, cause))?;
    let other = formats::looks_like(&head);
    if other.is_some() || !sniff(&head) {
        let looks_like = other.unwrap_or("no known format");
        return Err(IntakeError::NotOnnx { path: path.to_owned(), looks_like });
    }
    source.rewind().map_err(|cause| IntakeError::io(path, cause))?;
    let mut wire = Wire::new(source, length, *limits);
    let contents = proto::read(&mut wire).map_err(|defect| refuse(path, defect))?;
    let digest = format!("sha256:{}", wire.digest());
    let folder = path.parent().unwrap_or(Path::new(""));
    let missing = external::missing(folder, &contents.external);
    let model = describe(contents, &missing, path, length, digest);
    debug!(nodes = model.graph.nodes().len(), tensors = model.graph.tensors.len(), "read a model");
    Ok(model)
}

/// Whether an input has a dimension that is not fixed, or no known rank.
fn is_dynamic(input: &TensorFacts) -> bool {
    input.shape.as_ref().is_none_or(|dims| dims.iter().any(|dim| dim.fixed().is_none()))
}

fn refuse(path: &Path, defect: Defect) -> IntakeError {
    let path = path.to_owned();
    match defect {
        Defect::Io { cause, .. } => IntakeError::Io { path, cause },
        defect if defect.is_limit() => IntakeError::Limit { path, defect },
        defect => IntakeError::Malformed { path, defect },
    }
}

fn describe(
    contents: Contents,
    missing: &[Missing],
    path: &Path,
    length: u64,
    digest: String,
) -> Model {
    let (opsets, repeated_domains) = one_for_each_domain(contents.opsets);
    let mut weights = contents.weights;
    let graph = contents.graph.finish(contents.tensors);
    let initialized: Vec<&str> =
        contents.top_initializers.iter().map(|at| graph.tensors[*at].name.as_str()).collect();
    if contents.top_initializers.len() as u64 != weights.initializers {
        let top = contents.top_initializers.iter().map(|at| graph.tensors[*at].dtype.as_str());
        weights.dtypes_top = count(top);
    }
    let inputs = without_initializers(contents.inputs, &initialized, &mut weights);

    let op_counts = kinds::sum(&graph, |kind| &kind.op_type, |kind| kind.count);
    let mut op_counts_top = kinds::sum(&graph, |kind| &kind.op_type, |kind| kind.count_top);
    if op_counts_top == op_counts {
        op_counts_top.clear();
    }
    let of = |op: &str| op_counts.get(op).copied().unwrap_or(0);
    let evidence = quantized::evidence(&graph, contents.annotations);
    let work = architecture::work(&graph);
    let architecture = work.guess();
    let external_bytes = weights.external_bytes;
    let facts = OnnxFacts {
        ir_version: contents.ir_version,
        producer_name: Some(contents.producer_name),
        producer_version: Some(contents.producer_version),
        opsets,
        uses_external_data: Some(weights.external_tensors > 0),
        external_data_files: contents.external.into_keys().collect(),
        external_data_missing: missing.iter().map(|one| one.location.clone()).collect(),
        input_layout_guess: Some(layout::guess(&inputs, &graph)),
        has_dynamic_dims: Some(inputs.iter().any(is_dynamic)),
        inputs,
        outputs: contents.outputs,
        has_qdq_already: Some(!evidence.is_empty()),
        has_quark_custom_ops: Some(
            graph.kinds().iter().any(|kind| quantized::is_quark_op(&kind.domain, &kind.op_type)),
        ),
        quantization_evidence: evidence,
        architecture_guess: Some(architecture),
        file_size_bytes: Some(length),
        structural_digest: Some(digest),
        nodes: Some(NodeCounts {
            top: graph.kinds().iter().map(|kind| kind.count_top).sum(),
            all: graph.nodes().len() as u64,
            unnamed: graph.nodes().filter(|node| node.name().is_empty()).count() as u64,
            functions: contents.functions.len() as u64,
        }),
        custom_domains: custom_domains(&graph, &contents.functions),
        weights: Some(weights),
        other: Map::new(),
    };
    let findings = Findings {
        facts: &facts,
        op_counts: &op_counts,
        missing,
        repeated_domains: &repeated_domains,
    };
    let risks = risks::risks(&findings);
    let quantizable =
        QUANTIZABLE.into_iter().map(|op| (op.to_owned(), of(op))).collect::<BTreeMap<_, _>>();
    let linear = LINEAR.into_iter().map(of).sum();
    let is_float = facts.has_qdq_already == Some(false);
    let candidates_for = if is_float { architecture } else { Architecture::Unknown };
    let (preset_candidates, preset_candidates_by_target) =
        presets::candidates(candidates_for, work.multiplies_by_weights());
    let analysis = ModelAnalysis {
        analysis_status: if missing.is_empty() {
            AnalysisStatus::Complete
        } else {
            AnalysisStatus::Partial
        },
        model: ModelFacts {
            model_path: path.display().to_string(),
            model_type: "onnx".to_owned(),
            loading_class: Some("onnx.load".to_owned()),
            trust_remote_code: None,
            transformers_version: None,
            transformers_version_required: None,
            is_moe: None,
            num_hidden_layers: None,
            hidden_size: None,
            estimated_size_gb: Some((length as f64 + external_bytes as f64) / 1e9),
            onnx_specific: Some(facts),
            torch_specific: None,
            other: Map::new(),
        },
        quantization_targets: QuantizationTargets {
            linear_layer_count: Some(linear),
            linear_layer_count_from: None,
            has_non_linear_experts: None,
            needs_moe_preparation: None,
            exclude_defaults: Vec::new(),
            onnx_specific: Some(OnnxTargets {
                op_counts,
                op_counts_top,
                quantizable_op_counts: quantizable,
                preset_candidates,
                preset_candidates_by_target,
                other: Map::new(),
            }),
            other: Map::new(),
        },
        risks,
        other: Map::new(),
    };
    Model { analysis, graph }
}

/// One import for each domain, in file order, and the domains that had several.
///
/// Of several versions the highest stays, as ONNX Runtime does it.
fn one_for_each_domain(imports: Vec<Opset>) -> (Vec<Opset>, Vec<String>) {
    let mut opsets: Vec<Opset> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut repeated = Vec::new();
    for import in imports {
        match places.get(&import.domain) {
            Some(&place) => {
                opsets[place].version = opsets[place].version.max(import.version);
                repeated.push(import.domain);
            }
            None => {
                places.insert(import.domain.clone(), opsets.len());
                opsets.push(import);
            }
        }
    }
    repeated.sort();
    repeated.dedup();
    (opsets, repeated)
}

/// The inputs that a caller must feed. Before IR version 4 every initializer was listed as an input too.
fn without_initializers(
    inputs: Vec<TensorFacts>,
    initialized: &[&str],
    weights: &mut WeightFacts,
) -> Vec<TensorFacts> {
    let initialized: HashSet<&str> = initialized.iter().copied().collect();
    let (listed, fed): (Vec<_>, Vec<_>) =
        inputs.into_iter().partition(|input| initialized.contains(input.name.as_str()));
    weights.initializers_as_inputs = listed.len() as u64;
    fed
}

fn count<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for name in names {
        proto::add(&mut counts, name, 1);
    }
    counts
}

/// Nodes of each domain that is not ONNX's own; calls of the model's functions need no library.
fn custom_domains(graph: &Graph, functions: &[(String, String)]) -> BTreeMap<String, u64> {
    let functions: HashSet<(&str, &str)> =
        functions.iter().map(|(domain, name)| (domain.as_str(), name.as_str())).collect();
    let is_custom = |kind: &Kind| {
        let (domain, op) = (kind.domain.as_str(), kind.op_type.as_str());
        !matches!(domain, "" | "ai.onnx.ml") && !functions.contains(&(domain, op))
    };
    kinds::sum(graph, |kind| &kind.domain, |kind| if is_custom(kind) { kind.count } else { 0 })
}

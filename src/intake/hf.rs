//! Reads a Hugging Face model, a folder or a `config.json`, into a [`ModelAnalysis`] and the [`Modules`]
//! behind it, without reading a weight.
//!
//! `config` reads the JSON, `describe` finds the facts in it, `quantized` every trace of quantization;
//! `named_files` reads what a request names beside the model.
//! `modules` turns the headers of the weights into linear modules and `layouts` does so from the config alone,
//! for families whose naming is certain. The shape of the analysis is that of `quark-torch-model-intake`.

mod config;
mod describe;
mod files;
mod layouts;
mod modules;
pub mod named_files;
mod quantized;
mod risks;

use std::path::{Path, PathBuf};

use serde_json::Map;
use tracing::debug;

use crate::facts::torch::{
    Exactness, ExistingQuantization, LinearKind, Modules, Role, TorchFacts, TorchWeights,
};
use crate::facts::{AnalysisStatus, ModelAnalysis, ModelFacts, QuantizationTargets};
use crate::intake::IntakeError;
use crate::intake::hf::config::{Config, short, text};
use crate::intake::hf::files::{Folder, Source};
use crate::intake::hf::modules::Model;
use crate::intake::hf::risks::Findings;
use crate::intake::safetensors::dtype;
use crate::intake::safetensors::problem::Problem;
use crate::intake::safetensors::shards::{self, Weights};
use crate::intake::safetensors::{Limits, Reader};

/// Bytes of a config; real ones have a few hundred kilobytes at most.
const CONFIG: u64 = 32 << 20;
/// The `model_type` of a model that does not say.
const UNKNOWN: &str = "unknown";

/// A model as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchModel {
    /// What is written to `model_analysis.json`.
    pub analysis: ModelAnalysis,
    /// The linear modules one by one; `None` when neither weights nor a known naming tell them.
    pub modules: Option<Modules>,
}

/// The Hub id that a text is, when it is one and not a path: `Qwen/Qwen3-8B`.
///
/// Whether there is such a model only the Hub knows; nothing is asked over the network.
pub fn hub_id(path: &Path) -> Option<&str> {
    const FILES: [&str; 7] = [".onnx", ".json", ".safetensors", ".gguf", ".bin", ".pt", ".pth"];
    let text = path.to_str()?;
    let (owner, name) = text.split_once('/')?;
    let is_name = |part: &str| {
        part.chars().next().is_some_and(char::is_alphanumeric)
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && part.len() <= 96
    };
    let is_file = FILES.iter().any(|end| name.ends_with(end));
    (is_name(owner) && is_name(name) && !is_file).then_some(text)
}

/// Reads the model at `path`: a folder, its `config.json`, or a safetensors or GGUF file.
pub fn read(path: &Path, limits: &Limits) -> Result<TorchModel, IntakeError> {
    if let (Err(_), Some(id)) = (path.metadata(), hub_id(path)) {
        return Err(IntakeError::HubId { id: id.to_owned() });
    }
    let folder = Folder::of(path)?;
    let mut reader = Reader::new(*limits);
    let config = match &folder.config {
        Some(file) => {
            let bytes = files::small(file, CONFIG)?;
            reader.also_digest("config.json", &bytes);
            Some(Config::parse(&bytes).map_err(|fault| fault.at(file))?)
        }
        None => None,
    };
    let mut quantization =
        config.as_ref().map(|one| quantized::in_config(&one.top)).unwrap_or_default();
    let mut unreadable = Vec::new();
    for name in quantized::SIDE_FILES {
        match side_file(&folder, name, &mut reader) {
            Some(Ok(stated)) => quantization.extend(stated),
            Some(Err(())) => unreadable.push(name),
            None => {}
        }
    }
    let mut weights =
        folder.safetensors.clone().map(|plan| shards::read(&folder.path, plan, &mut reader));
    if let (Source::Weights, Some(weights)) = (folder.source, &mut weights) {
        refuse_single(path, weights)?;
    }
    let model = describe_model(path, &folder, config, quantization, &unreadable, weights, reader);
    debug!(modules = model.modules.as_ref().map_or(0, |all| all.linears.len()), "read a model");
    Ok(model)
}

/// A single file without a config that cannot be read is an error, because nothing else is known.
fn refuse_single(path: &Path, weights: &mut Weights) -> Result<(), IntakeError> {
    if !weights.tensors.is_empty() {
        return Ok(());
    }
    match weights.problems.pop() {
        Some(problem) => Err(IntakeError::Weights { path: path.to_owned(), problem }),
        None => Ok(()),
    }
}

fn side_file(
    folder: &Folder,
    name: &str,
    reader: &mut Reader,
) -> Option<Result<Option<ExistingQuantization>, ()>> {
    if folder.source == Source::Config || !folder.has(name) {
        return None;
    }
    let stated = files::small(&folder.path.join(name), CONFIG).ok().and_then(|bytes| {
        reader.also_digest(name, &bytes);
        Some(quantized::in_side_file(name, &Config::parse(&bytes).ok()?.top))
    });
    Some(stated.ok_or(()))
}

fn describe_model(
    path: &Path,
    folder: &Folder,
    config: Option<Config>,
    quantization: Vec<ExistingQuantization>,
    unreadable: &[&str],
    weights: Option<Weights>,
    reader: Reader,
) -> TorchModel {
    let config = config.unwrap_or(Config { top: Map::new(), text_path: Vec::new() });
    let mut facts = TorchFacts { quantization, ..describe::facts(&config) };
    let (layers, width) = (describe::layers(&config), describe::width(&config));
    if let Some(weights) = &weights {
        facts.quantization.extend(quantized::in_weights(&weights.tensors));
    }
    facts.weights = stored(folder, weights.as_ref());
    facts.has_tokenizer = (folder.source == Source::Folder).then(|| folder.has_tokenizer());
    facts.structural_digest = Some(reader.finish());
    let stated_type = text(&config.top, &["model_type"]);
    let model_type = stated_type.clone().unwrap_or_else(|| {
        if folder.gguf.is_empty() || folder.config.is_some() { UNKNOWN } else { "gguf" }.to_owned()
    });

    let whole = weights
        .as_ref()
        .filter(|one| !one.tensors.is_empty() && !one.problems.iter().any(Problem::is_loss));
    let model = Model { facts: &facts, layers, width };
    let known = match whole {
        Some(weights) => Some(modules::from_tensors(&weights.tensors, model)),
        None => layouts::from_config(&model_type, config.text(), model),
    };
    let (modules, parameters) = known.unzip();
    facts.parameters = parameters;
    let exactness = modules.as_ref().map_or(Exactness::Unknown, |all| all.exactness);
    let linears = modules.as_ref().map_or(&[][..], |all| &all.linears);
    let head = linears.iter().find(|linear| linear.role == Role::Head);
    if exactness == Exactness::Weights {
        facts.has_head_weight = Some(head.is_some_and(|head| head.kind != LinearKind::Tied));
    }
    let is_moe = folder.config.is_some().then(|| {
        facts.experts.as_ref().and_then(|experts| experts.routed).is_some_and(|routed| routed > 1)
    });
    let stacked = linears.iter().any(|linear| linear.stacked > 1);
    let has_stacked = if exactness == Exactness::Unknown {
        is_moe.filter(|is_moe| !is_moe)
    } else {
        Some(stacked)
    };
    let bytes = size(&facts, modules.as_ref());
    let findings = Findings {
        facts: &facts,
        folder,
        model_type: stated_type.as_deref(),
        layers,
        width,
        weights: weights.as_ref(),
        modules: modules.as_ref(),
        is_moe: is_moe == Some(true),
        bytes,
        unreadable,
        config: &config.top,
    };
    let (risks, complete) = risks::risks(&findings);
    let analysis = ModelAnalysis {
        analysis_status: if complete { AnalysisStatus::Complete } else { AnalysisStatus::Partial },
        model: ModelFacts {
            model_path: path.display().to_string(),
            model_type,
            loading_class: loading_class(&facts),
            trust_remote_code: folder.config.is_some().then_some(!facts.auto_map.is_empty()),
            transformers_version: config
                .levels()
                .find_map(|one| text(one, &["transformers_version"])),
            transformers_version_required: None,
            is_moe,
            num_hidden_layers: layers,
            hidden_size: width,
            estimated_size_gb: bytes.map(|bytes| bytes as f64 / 1e9),
            onnx_specific: None,
            torch_specific: Some(facts),
            other: Map::new(),
        },
        quantization_targets: QuantizationTargets {
            linear_layer_count: Some(linears.len() as u64),
            linear_layer_count_from: Some(exactness),
            has_non_linear_experts: has_stacked,
            exclude_defaults: head.map(|head| short(&head.name)).into_iter().collect(),
            needs_moe_preparation: is_moe,
            onnx_specific: None,
            other: Map::new(),
        },
        risks,
        other: Map::new(),
    };
    TorchModel { analysis, modules }
}

/// What loads the model in Python, where the config says it.
fn loading_class(facts: &TorchFacts) -> Option<String> {
    const CAUSAL: &str = "AutoModelForCausalLM";
    let class = facts.architectures.first();
    let is_causal =
        class.is_some_and(|name| name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel"));
    if is_causal || facts.auto_map.contains_key(CAUSAL) {
        Some(CAUSAL.to_owned())
    } else {
        class.cloned()
    }
}

/// What is known of the weights in the folder.
fn stored(folder: &Folder, weights: Option<&Weights>) -> Option<TorchWeights> {
    let Some(weights) = weights else {
        let (format, files) = if folder.gguf.is_empty() {
            ("pytorch", &folder.pickled)
        } else {
            ("gguf", &folder.gguf)
        };
        let sizes = files.iter().filter_map(|name| folder.path.join(name).metadata().ok());
        return (!files.is_empty()).then(|| TorchWeights {
            format: format.to_owned(),
            files: files.len() as u64,
            file_bytes: sizes.map(|metadata| metadata.len()).sum(),
            ..TorchWeights::default()
        });
    };
    let mut stored = TorchWeights {
        format: "safetensors".to_owned(),
        files: weights.files.len() as u64,
        file_bytes: weights.file_bytes,
        tensors: Some(weights.tensors.len() as u64),
        unusable_files: weights.unusable(),
        ..TorchWeights::default()
    };
    let mut types: Vec<(&dtype::Dtype, u64, u64)> = Vec::new();
    let mut all = 0_u64;
    for tensor in &weights.tensors {
        all = all.saturating_add(tensor.bytes());
        match types.iter_mut().find(|(dtype, ..)| *dtype == tensor.dtype) {
            Some((_, count, bytes)) => {
                *count += 1;
                *bytes = bytes.saturating_add(tensor.bytes());
            }
            None => types.push((tensor.dtype, 1, tensor.bytes())),
        }
    }
    for (dtype, count, bytes) in types {
        stored.dtypes.insert(dtype.name.to_owned(), count);
        stored.bytes.insert(dtype.name.to_owned(), bytes);
    }
    let is_whole = stored.unusable_files.is_empty();
    stored.tensor_bytes = if is_whole { Some(all) } else { weights.stated_bytes };
    Some(stored)
}

/// Bytes of the weights: real ones, else those of the files, else by the config.
///
/// By the config alone nothing is said of a quantized model, whose files are smaller.
fn size(facts: &TorchFacts, modules: Option<&Modules>) -> Option<u64> {
    let by_config = || {
        let modules = modules.filter(|_| facts.quantization.is_empty())?;
        Some(modules.total_bytes).filter(|bytes| *bytes > 0)
    };
    match &facts.weights {
        Some(weights) => weights.tensor_bytes.or_else(|| {
            Some(weights.file_bytes).filter(|bytes| *bytes > 0 && weights.unusable_files.is_empty())
        }),
        None => by_config(),
    }
}

/// The folder of a path that names a file.
fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

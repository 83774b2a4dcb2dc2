//! What may go wrong with a Hugging Face model later, as the intake skill words it.
//!
//! Names from files appear escaped and short.

use serde_json::{Map, Value};

use crate::facts::AnalysisRisk;
use crate::facts::torch::{Exactness, ExistingQuantization, Modules, Role, TorchFacts};
use crate::intake::hf::files::{Folder, Source, Special};
use crate::intake::safetensors::dtype;
use crate::intake::safetensors::shards::Weights;
use crate::intake::{escape, list};
use crate::vocab::Severity;

/// Parameters beyond which one accelerator does not hold the model in 16 bits.
const LARGE: u64 = 70_000_000_000;
/// Problems of files that are told one by one.
const SHOWN: usize = 5;

/// What the risks are derived from.
pub struct Findings<'a> {
    /// The facts as they will be written.
    pub facts: &'a TorchFacts,
    /// The files.
    pub folder: &'a Folder,
    /// `model_type`, when the config states one.
    pub model_type: Option<&'a str>,
    /// Layers of the language model.
    pub layers: Option<u64>,
    /// Its width.
    pub width: Option<u64>,
    /// The headers.
    pub weights: Option<&'a Weights>,
    /// The linear modules.
    pub modules: Option<&'a Modules>,
    /// Whether there are experts.
    pub is_moe: bool,
    /// Bytes of the weights.
    pub bytes: Option<u64>,
    /// Side files that cannot be read.
    pub unreadable: &'a [&'a str],
    /// The whole config.
    pub config: &'a Map<String, Value>,
}

/// The risks, gravest first, in a fixed order within one severity; and whether the analysis is complete.
pub fn risks(findings: &Findings<'_>) -> (Vec<AnalysisRisk>, bool) {
    let mut found = Risks { list: Vec::new(), complete: true };
    quantized(findings, &mut found);
    kind(findings, &mut found);
    files(findings, &mut found);
    unknown(findings, &mut found);
    structure(findings, &mut found);
    size(findings, &mut found);
    found.list.sort_by_key(|risk| std::cmp::Reverse(risk.severity));
    (found.list, found.complete)
}

struct Risks {
    list: Vec<AnalysisRisk>,
    complete: bool,
}

impl Risks {
    fn push(&mut self, severity: Severity, message: String, hint: &str) {
        self.list.push(AnalysisRisk { severity, message, recovery_hint: Some(hint.to_owned()) });
    }

    /// A risk because of which a material fact is not known.
    fn partial(&mut self, severity: Severity, message: String, hint: &str) {
        self.complete = false;
        self.push(severity, message, hint);
    }
}

fn quantized(findings: &Findings<'_>, found: &mut Risks) {
    let stated = &findings.facts.quantization;
    if stated.is_empty() {
        return;
    }
    let places: Vec<String> = stated.iter().map(place).collect();
    found.push(
        Severity::High,
        format!("Model is quantized already: {}.", places.join("; ")),
        "Plan from the unquantized model; only some formats can be dequantized on load.",
    );
}

fn place(stated: &ExistingQuantization) -> String {
    let words = [&stated.method, &stated.format];
    let mut words: Vec<String> = words.into_iter().flatten().map(|word| escape(word)).collect();
    words.dedup();
    words.extend(stated.weight_bits.map(|bits| format!("{bits} bits")));
    words.extend(
        stated.evidence.iter().take(SHOWN).map(|(what, count)| format!("{count} × {what}")),
    );
    let place = escape(&stated.found_in);
    if words.is_empty() {
        format!("`{place}`")
    } else {
        format!("`{place}` says {}", words.join(", "))
    }
}

/// Folders that are something else than a model with safetensors.
fn kind(findings: &Findings<'_>, found: &mut Risks) {
    let folder = findings.folder;
    match folder.special() {
        Some(Special::Diffusers) => found.partial(
            Severity::High,
            "Folder is a diffusers pipeline of several models, not one model.".to_owned(),
            "Give the folder of one component, for example `transformer` or `text_encoder`.",
        ),
        Some(Special::Adapter) => found.partial(
            Severity::High,
            "Folder holds an adapter (LoRA), which is a difference to another model.".to_owned(),
            "Merge the adapter into its base model and analyze the result.",
        ),
        None => {}
    }
    if findings.weights.is_some() {
        return;
    }
    if !folder.gguf.is_empty() {
        found.partial(
            Severity::High,
            format!("Weights are GGUF files ({}), which Quark cannot load.", list(&folder.gguf)),
            "Use the Hugging Face model that the GGUF file was made from.",
        );
    } else if !folder.pickled.is_empty() {
        found.partial(
            Severity::Medium,
            format!(
                "Weights are pickled files ({}): shapes are not read, because unpickling runs code.",
                list(&folder.pickled)
            ),
            "Convert the weights to safetensors, or use the safetensors revision of the model.",
        );
    } else if folder.source == Source::Folder && folder.special().is_none() {
        // A config without weights is a model to be; only the folder itself promises more.
        found.push(
            Severity::Medium,
            "No weights are in the folder: layers and sizes are those of the config.".to_owned(),
            "Download the safetensors files (their headers are enough for exact sizes).",
        );
    }
}

fn files(findings: &Findings<'_>, found: &mut Risks) {
    for name in findings.unreadable {
        found.partial(
            Severity::High,
            format!("`{name}` cannot be read, and it may say that the model is quantized."),
            "Download the file again.",
        );
    }
    let problems = findings.weights.map_or(&[][..], |weights| &weights.problems);
    let hint = "Download the model again; `git lfs pull` or `hf download` fetches what is missing.";
    for problem in problems.iter().take(SHOWN) {
        found.partial(Severity::High, format!("Weights: {problem}."), hint);
    }
    if let Some(more) = problems.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        found.partial(Severity::High, format!("Weights: {more} more problems of this kind."), hint);
    }
    if findings.facts.has_tokenizer == Some(false) && findings.folder.special().is_none() {
        found.push(
            Severity::Medium,
            "No tokenizer files are in the folder; calibration needs them.".to_owned(),
            "Download the tokenizer files of the model.",
        );
    }
}

/// Facts that are missing.
fn unknown(findings: &Findings<'_>, found: &mut Risks) {
    let facts = findings.facts;
    if findings.folder.config.is_none() {
        if findings.folder.special().is_none() {
            found.partial(
                Severity::High,
                "No config.json: architecture and model type are not known.".to_owned(),
                "Put the model's config.json beside the weights.",
            );
        }
        return;
    }
    let mut missing = Vec::new();
    if findings.model_type.is_none() {
        missing.push("model_type");
    }
    if findings.layers.is_none() {
        missing.push("num_hidden_layers");
    }
    if findings.width.is_none() {
        missing.push("hidden_size");
    }
    if !missing.is_empty() {
        let default =
            "the config leaves them to the defaults of the model class, or is of another kind";
        found.partial(
            Severity::Medium,
            format!("Config does not state {}: {default}.", list(&missing)),
            "Save the config with transformers (`config.to_json_file(path, use_diff=False)`).",
        );
    }
    if findings.modules.is_none() {
        found.partial(
            Severity::Medium,
            "Linear layers are not counted: there are no usable safetensors headers, and the config alone does \
             not tell the modules of this architecture."
                .to_owned(),
            "Put the safetensors files beside the config, or run quark-torch-model-intake.",
        );
    }
    let dtype = facts.dtype.as_deref();
    match dtype.map(dtype::by_name) {
        Some(Some(_)) => {}
        _ if facts.weights.as_ref().is_some_and(|weights| !weights.dtypes.is_empty()) => {}
        _ => found.push(
            Severity::Low,
            match dtype {
                Some(name) => format!("Element type `{}` is not known.", escape(name)),
                None => "Config does not state the element type of the weights.".to_owned(),
            },
            "State the type when loading, for example torch_dtype=bfloat16.",
        ),
    }
}

fn structure(findings: &Findings<'_>, found: &mut Risks) {
    let facts = findings.facts;
    if !facts.auto_map.is_empty() {
        let files: Vec<&str> = facts.auto_map.values().map(String::as_str).collect();
        found.push(
            Severity::Medium,
            format!("Model brings its own Python code ({}), which loading may run.", list(&files)),
            "Review the code; pass trust_remote_code=True only with the user's consent.",
        );
    }
    let stacked: Vec<&str> = findings
        .modules
        .iter()
        .flat_map(|modules| &modules.linears)
        .filter(|linear| linear.stacked > 1)
        .map(|linear| linear.name.as_str())
        .collect();
    if let Some(first) = stacked.first() {
        found.push(
            Severity::Medium,
            format!(
                "Experts are fused: {} tensors of three dimensions (for example `{}`) are no linear layers.",
                stacked.len(),
                escape(first)
            ),
            "Run prepare_for_moe_quant() before quantization; check that expert layers were replaced.",
        );
    } else if findings.is_moe {
        found.push(
            Severity::Medium,
            "Model is a mixture of experts: expert modules need preparation, and calibration must reach all."
                .to_owned(),
            "Run prepare_for_moe_quant(); keep the routers out of quantization.",
        );
    }
    if let Some(layers) = facts.mtp_layers.filter(|layers| *layers > 0) {
        let by_config = findings.modules.is_some_and(|all| all.exactness == Exactness::Config);
        let uncounted = if by_config { " They are not in the counts." } else { "" };
        found.push(
            Severity::Medium,
            format!("Model has {layers} multi-token-prediction layers.{uncounted}"),
            "Exclude them explicitly, or serving engines may expect them quantized.",
        );
    }
    if !facts.towers.is_empty() {
        let keys: Vec<&str> = facts.towers.iter().map(|tower| tower.key.as_str()).collect();
        found.push(
            Severity::Medium,
            format!("Model is multimodal ({}).", list(&keys)),
            "Keep towers and projectors out of quantization unless they were calibrated.",
        );
    }
    if facts.tie_word_embeddings == Some(true)
        || facts.has_head_weight == Some(false) && has_head(findings)
    {
        found.push(
            Severity::Low,
            "Input embeddings and output head share one weight.".to_owned(),
            "Keep the output head out of quantization, or the embeddings change with it.",
        );
    }
    if findings.folder.config.is_some() && facts.is_causal() == Some(false) {
        let class = facts.architectures.first().map_or("", String::as_str);
        found.push(
            Severity::Medium,
            format!(
                "`{}` is no decoder language model, which the Quark LLM flow is made for.",
                escape(class)
            ),
            "Check that Quark has a template for it; ONNX may be the better way.",
        );
    }
    let nested =
        facts.quantization.iter().filter(|one| one.found_in.ends_with(".quantization_config"));
    if nested.count() > 1 {
        found.push(
            Severity::High,
            "Several nested configs state a quantization; Quark accepts one.".to_owned(),
            "Plan from the unquantized model.",
        );
    }
    if findings.model_type.is_none() && findings.config.contains_key("_class_name") {
        found.partial(
            Severity::High,
            "Config is that of a diffusers component, not of a transformers model.".to_owned(),
            "Quark-Torch diffusion models are planned by another workflow.",
        );
    }
}

fn has_head(findings: &Findings<'_>) -> bool {
    findings.modules.iter().flat_map(|all| &all.linears).any(|linear| linear.role == Role::Head)
}

fn size(findings: &Findings<'_>, found: &mut Risks) {
    let parameters = findings.facts.parameters;
    let bytes = findings.bytes;
    let gigabytes =
        bytes.map(|bytes| format!(", {:.0} GB", bytes as f64 / 1e9)).unwrap_or_default();
    match (parameters, bytes) {
        (Some(parameters), _) if parameters > LARGE => found.push(
            Severity::High,
            format!(
                "Model is very large ({:.0} billion parameters{gigabytes}).",
                parameters as f64 / 1e9
            ),
            "Use --multi_gpu, or --file2file_quantization when memory is short.",
        ),
        (None, Some(bytes)) if bytes > LARGE * 2 => found.push(
            Severity::High,
            format!("Model is very large ({:.0} GB).", bytes as f64 / 1e9),
            "Use --multi_gpu, or --file2file_quantization when memory is short.",
        ),
        (_, Some(bytes)) if bytes <= 20_000_000_000 => found.push(
            Severity::Low,
            format!(
                "Model has {:.1} GB of weights and fits on one accelerator with 24 GB.",
                bytes as f64 / 1e9
            ),
            "Use --multi_gpu for calibration with long sequences if memory runs out.",
        ),
        _ => {}
    }
}

//! The linear modules of a checkpoint, from the names, shapes and types of its tensors.

use std::collections::{BTreeMap, HashMap};

use crate::facts::torch::{Exactness, LinearKind, LinearModule, Modules, Role, TorchFacts};
use crate::intake::safetensors::Tensor;

/// Last parts of the names of embeddings.
const EMBEDDINGS: [&str; 8] = [
    "embed",
    "embedding",
    "embeddings",
    "embed_tokens",
    "embed_positions",
    "embed_tokens_per_layer",
    "embed_in",
    "relative_attention_bias",
];
/// Ends of the names of what belongs to quantized weights.
const SCALES: [&str; 10] = [
    "scale",
    "scales",
    "scale_inv",
    "scale_2",
    "scale_second",
    "zero_point",
    "qzeros",
    "g_idx",
    "absmax",
    "SCB",
];

/// What names and shapes are read against.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    /// What the config states.
    pub facts: &'a TorchFacts,
    /// Layers of the language model.
    pub layers: Option<u64>,
    /// Its width.
    pub width: Option<u64>,
}

/// Modules of a whole checkpoint, and its number of parameters.
pub fn from_tensors(tensors: &[Tensor], model: Model<'_>) -> (Modules, u64) {
    let mut found = Modules {
        exactness: Exactness::Weights,
        linears: Vec::new(),
        other_bytes: BTreeMap::new(),
        total_bytes: 0,
        draft: None,
    };
    // Only packed weights need the shapes of their scales.
    let scales: HashMap<&str, &Tensor> = tensors
        .iter()
        .filter_map(|tensor| Some((tensor.name.strip_suffix(".scales")?, tensor)))
        .collect();
    let mut parameters = 0_u64;
    let mut embeddings: Option<&Tensor> = None;
    for tensor in tensors {
        found.total_bytes = found.total_bytes.saturating_add(tensor.bytes());
        let shape = linear(tensor, &scales, model);
        if let Some((name, linear)) = shape {
            let elements = linear.out.saturating_mul(linear.into).saturating_mul(linear.stacked);
            parameters = parameters.saturating_add(elements);
            found.linears.push(LinearModule {
                name: name.to_owned(),
                out_features: linear.out,
                in_features: linear.into,
                stacked: linear.stacked,
                dtype: tensor.dtype.name,
                bytes: tensor.bytes(),
                role: role(name, linear.out, model),
                kind: linear.kind,
            });
            continue;
        }
        let group = group(tensor);
        if group != "scales" {
            parameters = parameters.saturating_add(tensor.elements());
        }
        if group == "embeddings" && tensor.shape.first().copied() == model.facts.vocab_size {
            embeddings = embeddings.or(Some(tensor));
        }
        let bytes = found.other_bytes.entry(group).or_insert(0);
        *bytes = bytes.saturating_add(tensor.bytes());
    }
    let has_head = found.linears.iter().any(|linear| linear.role == Role::Head);
    if let (false, Some(tensor)) = (has_head || !ends_in_a_head(model.facts), embeddings) {
        found.linears.extend(tied_head(tensor));
    }
    (found, parameters)
}

/// Whether the model class multiplies by an output head, so that a missing weight means a shared one.
fn ends_in_a_head(facts: &TorchFacts) -> bool {
    let class = facts.architectures.first().map_or("", String::as_str);
    facts.tie_word_embeddings != Some(false)
        && (class.ends_with("ForCausalLM") || class.ends_with("ForConditionalGeneration"))
}

/// The head that shares the weight of the embeddings, where the naming says what it is called.
fn tied_head(embeddings: &Tensor) -> Option<LinearModule> {
    let name = match embeddings.name.strip_suffix(".weight")? {
        "model.embed_tokens"
        | "model.language_model.embed_tokens"
        | "model.decoder.embed_tokens"
        | "transformer.wte" => "lm_head",
        "language_model.model.embed_tokens" => "language_model.lm_head",
        _ => return None,
    };
    Some(LinearModule {
        name: name.to_owned(),
        out_features: *embeddings.shape.first()?,
        in_features: *embeddings.shape.get(1)?,
        stacked: 1,
        dtype: embeddings.dtype.name,
        bytes: 0,
        role: Role::Head,
        kind: LinearKind::Tied,
    })
}

struct Linear {
    out: u64,
    into: u64,
    stacked: u64,
    kind: LinearKind,
}

/// The name and the logical shape of a tensor that is the weight of linear modules.
fn linear<'a>(
    tensor: &'a Tensor,
    scales: &HashMap<&str, &Tensor>,
    model: Model<'_>,
) -> Option<(&'a str, Linear)> {
    let name = tensor.name.as_str();
    let plain = |out, into| Linear { out, into, stacked: 1, kind: LinearKind::Plain };
    let packed = |out, into| Linear { out, into, stacked: 1, kind: LinearKind::Packed };
    if let Some(module) = name.strip_suffix(".qweight") {
        let (rows, columns) = pair(&tensor.shape)?;
        let out = *scales.get(module)?.shape.get(1)?;
        // GPTQ packs along the inputs, AWQ along the outputs.
        let into = if columns == out { rows.checked_mul(32)? / stated_bits(model)? } else { rows };
        return Some((module, packed(out, into)));
    }
    if let Some(module) = name.strip_suffix(".weight_packed") {
        let (out, columns) = pair(&tensor.shape)?;
        let bits = if tensor.dtype.bits == 8 { 4 } else { stated_bits(model)? };
        return Some((module, packed(out, columns.checked_mul(tensor.dtype.bits)? / bits)));
    }
    if let Some(module) = name.strip_suffix("_blocks") {
        // MXFP4 of gpt-oss: experts, rows, blocks of 32, 16 bytes each.
        let [experts, out, blocks, 16] = tensor.shape[..] else { return None };
        let into = blocks.checked_mul(32)?;
        return Some((module, Linear { stacked: experts, ..packed(out, into) }));
    }
    if is_scale(name) || name.ends_with("bias") || is_embedding(name) {
        return None;
    }
    let module = name.strip_suffix(".weight");
    match (module, &tensor.shape[..]) {
        (Some(module), &[out, columns]) => {
            let bits = match tensor.dtype.code {
                "U8" | "I8" => narrow_bits(tensor, model)?,
                "U32" | "I32" => stated_bits(model)?,
                _ => return Some((module, plain(out, columns))),
            };
            if bits == tensor.dtype.bits {
                return Some((module, plain(out, columns)));
            }
            // One column is bitsandbytes' flat storage, which has no shape.
            let columns = Some(columns).filter(|columns| *columns > 1)?;
            Some((module, packed(out, columns.checked_mul(tensor.dtype.bits)? / bits)))
        }
        (module, &[experts, first, second]) => {
            let module = module.unwrap_or(name);
            let routed = model.facts.experts.as_ref().and_then(|experts| experts.routed);
            let named = ["expert", "moe"].iter().any(|part| module.contains(part));
            if !named || module.contains("conv") || routed.is_some_and(|routed| routed != experts) {
                return None;
            }
            let (out, into) = oriented(module, first, second, model.width);
            Some((module, Linear { out, into, stacked: experts, kind: LinearKind::StackedExperts }))
        }
        // DBRX stores the experts of a layer below each other.
        (None, &[rows, columns]) if name.contains(".experts.mlp.") => {
            let experts = model.facts.experts.as_ref()?.routed?;
            let inner = rows.checked_div(experts).filter(|inner| inner * experts == rows)?;
            let (out, into) =
                if name.ends_with("w2") { (columns, inner) } else { (inner, columns) };
            Some((name, Linear { out, into, stacked: experts, kind: LinearKind::StackedExperts }))
        }
        _ => None,
    }
}

fn pair(shape: &[u64]) -> Option<(u64, u64)> {
    if let [first, second] = shape { Some((*first, *second)) } else { None }
}

/// Outputs and inputs of stacked experts; families differ in the order of their dimensions.
///
/// The first projections take in the width of the model and the last one gives it out.
fn oriented(module: &str, first: u64, second: u64, width: Option<u64>) -> (u64, u64) {
    let is_last = module.ends_with("down_proj") || module.ends_with("output_linear");
    let rows_first = if is_last { width == Some(first) } else { width == Some(second) };
    let columns_first = if is_last { width == Some(second) } else { width == Some(first) };
    if columns_first && !rows_first { (second, first) } else { (first, second) }
}

/// Bits of a weight where the model states one number for all.
fn stated_bits(model: Model<'_>) -> Option<u64> {
    let bits = model.facts.quantization.iter().find_map(|stated| stated.weight_bits)?;
    matches!(bits, 2..=8).then_some(bits)
}

/// Bits of a weight in elements of one byte: what the model states, and four for packed floats.
fn narrow_bits(tensor: &Tensor, model: Model<'_>) -> Option<u64> {
    let stated: Vec<u64> =
        model.facts.quantization.iter().filter_map(|stated| stated.weight_bits).collect();
    let has = |bits: u64| stated.contains(&bits);
    match tensor.dtype.code {
        _ if has(4) => Some(4),
        _ if has(6) => Some(6),
        "I8" => Some(8),
        _ => has(8).then_some(8),
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn is_scale(name: &str) -> bool {
    let last = last_part(name);
    SCALES.iter().any(|end| {
        last.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    })
}

fn is_embedding(name: &str) -> bool {
    let module = name.strip_suffix(".weight").unwrap_or(name);
    let last = last_part(module);
    module == "shared"
        || matches!(last, "wte" | "wpe")
        || EMBEDDINGS.iter().any(|end| {
            last.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
        })
}

/// The group of a tensor that is no weight of a linear module.
fn group(tensor: &Tensor) -> &'static str {
    let name = tensor.name.as_str();
    let packed = [".qweight", ".weight_packed", "_blocks"].iter().any(|end| name.ends_with(end));
    if packed || (tensor.shape.len() == 2 && name.ends_with(".weight") && !is_embedding(name)) {
        "packed"
    } else if is_scale(name) || name.ends_with("global_scale") || name.contains("quant_state") {
        "scales"
    } else if is_embedding(name) {
        "embeddings"
    } else if name.ends_with("bias") {
        "biases"
    } else if tensor.shape.len() <= 1 && (name.contains("norm") || name.contains("ln_")) {
        "norms"
    } else if tensor.shape.len() >= 3 {
        "convolutions"
    } else {
        "other"
    }
}

/// What a linear module does, by the parts of its name and, for routers, its rows.
pub fn role(name: &str, out: u64, model: Model<'_>) -> Role {
    let mut layer = None;
    let mut before = "";
    let mut found = Role::Other;
    for part in name.split('.') {
        let of_part = part_role(part);
        if before == "layers" {
            layer = layer.or(part.parse::<u64>().ok());
        }
        before = part;
        found = stronger(found, of_part);
    }
    if matches!(found, Role::Vision | Role::Audio | Role::Projector) {
        return found;
    }
    let is_draft = layer.zip(model.layers).is_some_and(|(layer, layers)| layer >= layers)
        && model.facts.mtp_layers.is_none_or(|layers| layers > 0);
    if found == Role::Draft || is_draft {
        return Role::Draft;
    }
    let last = last_part(name);
    if matches!(last, "lm_head" | "output_layer" | "embed_out")
        || name == "head"
        || name == "output"
    {
        return Role::Head;
    }
    let routed = model.facts.experts.as_ref().and_then(|experts| experts.routed);
    let named = last == "gate" || name.rsplit('.').take(2).any(|part| part.contains("router"));
    if named && routed == Some(out) && found != Role::Expert {
        return Role::Router;
    }
    found
}

/// What one part of a name says; the parts that most names have come first.
fn part_role(part: &str) -> Role {
    match part {
        "model" | "layers" | "weight" | "language_model" | "gate" => Role::Other,
        _ if part.starts_with(|c: char| c.is_ascii_digit()) => Role::Other,
        "experts" => Role::Expert,
        "self_attn" | "q_proj" | "k_proj" | "v_proj" | "o_proj" | "qkv_proj" => Role::Attention,
        "mlp" | "feed_forward" | "fc1" | "fc2" => Role::Mlp,
        "up_proj" | "down_proj" | "gate_proj" | "gate_up_proj" => Role::Mlp,
        "shared_expert" | "shared_experts" | "shared_mlp" | "shared_expert_gate" => {
            Role::SharedExpert
        }
        "mtp" | "mtp_layers" | "mtp_block" | "nextn" => Role::Draft,
        "visual" | "sam_model" | "vpm" => Role::Vision,
        "mm_projector"
        | "multi_modal_projector"
        | "projector"
        | "merger"
        | "connector"
        | "patch_merge_mlp"
        | "embed_vision"
        | "embed_audio"
        | "vision_projection" => Role::Projector,
        _ if part.starts_with("vision") || part.starts_with("image_encoder") => Role::Vision,
        _ if part.starts_with("audio") || part.starts_with("speech") => Role::Audio,
        _ if part.contains("attn") || part.contains("attention") => Role::Attention,
        _ if part.contains("mlp") || part.starts_with("ffn") => Role::Mlp,
        _ => Role::Other,
    }
}

/// Of two roles the one that says more: a projection inside of an expert inside of a tower is the tower's.
fn stronger(first: Role, second: Role) -> Role {
    let rank = |role: Role| match role {
        Role::Projector => 6,
        Role::Vision | Role::Audio => 5,
        Role::Draft => 4,
        Role::SharedExpert => 3,
        Role::Expert => 2,
        Role::Attention | Role::Mlp => 1,
        Role::Router | Role::Head | Role::Other => 0,
    };
    if rank(second) > rank(first) { second } else { first }
}

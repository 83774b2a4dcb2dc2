//! Sizes of Hugging Face models: of the linear modules after quantization, and of the KV cache.

use std::collections::BTreeMap;

use crate::{
    catalogue::schemes::Scheme,
    facts::{
        ModelAnalysis,
        torch::{LinearKind, LinearModule, Modules, TorchFacts},
    },
};

/// Bytes of the weights of a model, before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// As they are stored now.
    pub before: u64,
    /// After quantization.
    pub after: u64,
    /// What that is made of: `weights`, `scales`, `zero points`, `excluded`, `embeddings`, ….
    pub parts: BTreeMap<String, u64>,
    /// Linear modules that get quantized, a stack of experts as one.
    pub quantized: u64,
    /// Numbers in the weights of linear modules and embeddings.
    pub parameters: u64,
}

/// Sizes when each linear module gets the scheme that `scheme_of` gives it; without one it stays as it is.
pub fn sizes<'s>(
    modules: &Modules,
    scheme_of: impl Fn(usize, &LinearModule) -> Option<&'s Scheme>,
) -> Sizes {
    let mut sizes = Sizes { before: modules.total_bytes, ..Sizes::default() };
    let mut parts: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, linear) in modules.linears.iter().enumerate() {
        let elements = linear
            .out_features
            .saturating_mul(linear.in_features)
            .saturating_mul(linear.stacked.max(1));
        if linear.kind != LinearKind::Tied {
            sizes.parameters = sizes.parameters.saturating_add(elements);
        }
        let scheme = scheme_of(at, linear);
        sizes.quantized += u64::from(scheme.is_some());
        let Some(storage) = scheme.and_then(|scheme| scheme.storage.as_ref()) else {
            add(&mut parts, "excluded", linear.bytes);
            continue;
        };
        let wide = element_bytes(linear);
        for tensor in &storage.tensors {
            let part = match tensor.name.as_str() {
                "weight" => "weights",
                name if name.ends_with("zero_point") => "zero points",
                _ => "scales",
            };
            let bytes = tensor.bytes(linear.out_features, linear.in_features, storage.group, wide);
            add(&mut parts, part, bytes.saturating_mul(linear.stacked.max(1)));
        }
    }
    for (name, bytes) in &modules.other_bytes {
        // The scales of a checkpoint that is quantized already go with its weights.
        if sizes.quantized == 0 || !matches!(*name, "scales" | "packed") {
            add(&mut parts, name, *bytes);
        }
        if *name == "embeddings" {
            sizes.parameters = sizes.parameters.saturating_add(bytes / 2);
        }
    }
    sizes.after = parts.values().fold(0, |all, bytes| all.saturating_add(*bytes));
    sizes.parts = parts
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect();
    sizes
}

fn add<'p>(parts: &mut BTreeMap<&'p str, u64>, part: &'p str, bytes: u64) {
    let sum = parts.entry(part).or_default();
    *sum = sum.saturating_add(bytes);
}

/// Bytes of a number of the model's own type.
fn element_bytes(linear: &LinearModule) -> u64 {
    if linear.dtype == "float32" { 4 } else { 2 }
}

/// Bytes of the model when it is loaded in 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// So many.
    Bytes(u64),
    /// At least so many: what the config states of its layers.
    AtLeast(u64),
    /// Nothing tells.
    Unknown,
}

impl Loaded {
    /// The number; `None` when nothing tells.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) | Self::AtLeast(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }
}

/// Bytes of the model when it is loaded in 16 bits.
pub fn loaded(analysis: &ModelAnalysis) -> Loaded {
    let facts = analysis.model.torch_specific.as_ref();
    let parameters = facts.and_then(|facts| facts.parameters);
    let known = parameters
        .map(|parameters| parameters.saturating_mul(2))
        .or_else(|| super::model_bytes(analysis));
    match known {
        Some(bytes) => Loaded::Bytes(bytes),
        None => facts
            .and_then(|facts| least(analysis, facts))
            .map_or(Loaded::Unknown, |parameters| Loaded::AtLeast(parameters.saturating_mul(2))),
    }
}

/// Parameters that the config states for certain: two matrices in each feed-forward block or expert.
fn least(analysis: &ModelAnalysis, facts: &TorchFacts) -> Option<u64> {
    let width = analysis.model.hidden_size?;
    let layers = analysis.model.num_hidden_layers?;
    let experts = facts.experts.as_ref();
    let (blocks, inner) = match experts.and_then(|experts| experts.routed) {
        Some(routed) => {
            let layers = experts.and_then(|experts| experts.layers).unwrap_or(layers);
            let inner = experts.and_then(|experts| experts.intermediate_size);
            (layers.checked_mul(routed)?, inner.or(facts.intermediate_size)?)
        }
        None => (layers, facts.intermediate_size?),
    };
    blocks.checked_mul(inner)?.checked_mul(width)?.checked_mul(2)
}

/// Bytes of the KV cache for one token; `None` when the config does not say enough.
///
/// Latent attention keeps its compressed vector and the rotary part; layers without attention keep nothing
/// that grows.
pub fn kv_cache_per_token(
    analysis: &ModelAnalysis,
    facts: &TorchFacts,
    value_bytes: u64,
) -> Option<u64> {
    // An encoder keeps no cache, and one beside a decoder makes another.
    if facts.is_causal() == Some(false) {
        return None;
    }
    let layers = attention_layers(analysis, facts)?;
    let values = match &facts.latent_attention {
        Some(latent) => latent.kv_lora_rank?.checked_add(latent.qk_rope_head_dim?)?,
        None => {
            let heads = facts.num_attention_heads?;
            let width = match facts.head_dim {
                Some(width) => width,
                None => analysis.model.hidden_size?.checked_div(heads)?,
            };
            facts.num_key_value_heads.unwrap_or(heads).checked_mul(width)?.checked_mul(2)?
        }
    };
    layers.checked_mul(values)?.checked_mul(value_bytes)
}

fn attention_layers(analysis: &ModelAnalysis, facts: &TorchFacts) -> Option<u64> {
    if facts.layer_kinds.is_empty() {
        return analysis.model.num_hidden_layers;
    }
    let attends = |kind: &str| {
        (kind.contains("attention") && !kind.contains("linear")) || kind == "attn" || kind == "full"
    };
    let known: u64 =
        facts.layer_kinds.iter().filter(|(kind, _)| attends(kind)).map(|(_, count)| count).sum();
    (known > 0).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::Catalogue,
        facts::torch::{Exactness, Role},
    };

    #[test]
    fn a_decoder_keeps_a_cache_and_an_encoder_none() {
        let analysis: ModelAnalysis = serde_json::from_value(serde_json::json!({
            "analysis_status": "partial",
            "model": { "model_path": "m", "model_type": "any", "num_hidden_layers": 2 },
            "quantization_targets": {}
        }))
        .unwrap();
        let check = |class: &str, is_encoder_decoder: bool, expected: Option<u64>| {
            let facts = TorchFacts {
                architectures: vec![class.to_owned()],
                is_encoder_decoder: Some(is_encoder_decoder),
                num_attention_heads: Some(4),
                head_dim: Some(8),
                ..TorchFacts::default()
            };
            assert_eq!(kv_cache_per_token(&analysis, &facts, 2), expected, "`{class}`");
        };
        check("LlamaForCausalLM", false, Some(2 * 4 * 8 * 2 * 2));
        check("BertModel", false, None);
        check("T5ForConditionalGeneration", true, None);
    }

    #[test]
    fn a_layer_takes_what_its_scheme_stores() {
        let linear = LinearModule {
            name: "model.layers.0.mlp.down_proj".to_owned(),
            out_features: 64,
            in_features: 160,
            stacked: 1,
            dtype: "bfloat16",
            bytes: 64 * 160 * 2,
            role: Role::Mlp,
            kind: LinearKind::Plain,
        };
        let modules = Modules {
            exactness: Exactness::Weights,
            linears: vec![linear],
            other_bytes: BTreeMap::from([("embeddings", 1000)]),
            total_bytes: 64 * 160 * 2 + 1000,
            draft: None,
        };
        let check = |scheme: &str, after: u64| {
            let scheme = Catalogue.schemes().get(scheme).unwrap();
            assert_eq!(sizes(&modules, |_, _| Some(scheme)).after, after + 1000, "{}", scheme.id);
        };
        // Half a byte an element, a scale of two bytes and half a byte of zero point a group.
        check("int4_wo_32", 64 * 160 / 2 + 64 * 5 * 2 + 64 * 5 / 2);
        check("fp8", 64 * 160 + 2 + 2);
        check("ptpc_fp8", 64 * 160 + 64 * 2);
        check("mxfp4", 64 * 160 / 2 + 64 * 5);
        assert_eq!(sizes(&modules, |_, _| None).after, modules.total_bytes);
    }
}

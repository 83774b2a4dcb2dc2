//! The linear modules of a model without weights, for architectures whose naming is certain.
//!
//! Every size comes from the config; a size that is not there, or a family that is not here, gives nothing.
//! Norms and biases are left out of the bytes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::facts::torch::{Exactness, LinearKind, LinearModule, Modules};
use crate::intake::hf::config::number;
use crate::intake::hf::describe::{MOST_LAYERS, has_experts};
use crate::intake::hf::modules::{Model, role};
use crate::intake::safetensors::dtype::{self, Dtype};

/// Linear modules that a model may have; more is nonsense.
const MOST: usize = 500_000;
/// Experts that a layer may have.
const MOST_EXPERTS: u64 = 4096;

/// How the layers of a family are built and named.
#[derive(Debug, Clone, Copy)]
struct Family {
    /// What stands before the number of a layer.
    layers: &'static str,
    attention: Attention,
    dense: Dense,
    experts: Option<Experts>,
    head: &'static str,
    /// What draft layers for multi-token prediction are called, where that is known.
    draft: Option<Draft>,
    /// Whether the head shares the embeddings' weight when the config does not say.
    tied: bool,
    /// Whether a head is `hidden_size / heads` wide when the config does not say.
    even_heads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attention {
    /// Queries, keys and values apart; the prefix and the name of the output.
    Split(&'static str, &'static str),
    /// All three in one; the prefix, its name and the name of the output.
    Fused(&'static str, &'static str, &'static str),
    /// Multi-head latent attention.
    Latent,
    /// The same with the indexer of DeepSeek V3.2.
    LatentIndexed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draft {
    /// They go on counting after the last layer.
    AfterLast,
    /// A pattern.
    Named(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dense {
    /// `mlp.gate_proj`, `mlp.up_proj`, `mlp.down_proj`.
    Gated,
    /// Gate and up in one: the names of both matrices.
    FusedGate(&'static str, &'static str),
    /// Gate, up and down, each half as wide as the config says: their names.
    Halves([&'static str; 3]),
    /// Two matrices: their names.
    Two(&'static str, &'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Experts {
    /// What holds gate and experts.
    block: &'static str,
    /// Names of the gate, up and down projection.
    names: [&'static str; 3],
    /// The shared expert; its width is the one it states, or that of the routed ones times their number.
    shared: Option<&'static str>,
    /// Whether the shared expert has a gate of its own.
    shared_gate: bool,
    /// Whether every layer has experts when the config does not say which; unknown where releases differ.
    everywhere: Option<bool>,
}

const PROJECTIONS: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];

const LLAMA: Family = Family {
    layers: "model.layers",
    attention: Attention::Split("self_attn", "o_proj"),
    dense: Dense::Gated,
    experts: None,
    head: "lm_head",
    draft: None,
    tied: false,
    even_heads: true,
};
const MIXTRAL: Experts = Experts {
    block: "block_sparse_moe",
    names: ["w1", "w3", "w2"],
    shared: None,
    shared_gate: false,
    everywhere: Some(true),
};
const QWEN_EXPERTS: Experts = Experts {
    block: "mlp",
    names: PROJECTIONS,
    shared: None,
    shared_gate: false,
    everywhere: Some(true),
};
const DEEPSEEK: Family = Family {
    attention: Attention::Latent,
    draft: Some(Draft::AfterLast),
    experts: Some(Experts { shared: Some("shared_experts"), everywhere: None, ..QWEN_EXPERTS }),
    ..LLAMA
};

/// The family of a `model_type`.
fn family(model_type: &str) -> Option<Family> {
    Some(match model_type {
        "llama" | "mistral" | "qwen2" | "internlm" | "olmo" | "olmo2" | "granite" => LLAMA,
        // Their heads are wider or narrower than the even share.
        "qwen3" => Family { even_heads: false, ..LLAMA },
        "mimo" => {
            Family { even_heads: false, draft: Some(Draft::Named("model.mtp_layers.*")), ..LLAMA }
        }
        "gemma" | "gemma2" | "gemma3_text" => Family { even_heads: false, tied: true, ..LLAMA },
        "cohere" | "cohere2" => Family { tied: true, ..LLAMA },
        "baichuan" => {
            Family { attention: Attention::Fused("self_attn", "W_pack", "o_proj"), ..LLAMA }
        }
        "phi3" => Family {
            attention: Attention::Fused("self_attn", "qkv_proj", "o_proj"),
            dense: Dense::FusedGate("mlp.gate_up_proj", "mlp.down_proj"),
            ..LLAMA
        },
        "starcoder2" => Family { dense: Dense::Two("mlp.c_fc", "mlp.c_proj"), tied: true, ..LLAMA },
        "phi" => Family {
            attention: Attention::Split("self_attn", "dense"),
            dense: Dense::Two("mlp.fc1", "mlp.fc2"),
            ..LLAMA
        },
        "gptj" => Family {
            layers: "transformer.h",
            attention: Attention::Split("attn", "out_proj"),
            dense: Dense::Two("mlp.fc_in", "mlp.fc_out"),
            ..LLAMA
        },
        "chatglm" => Family {
            layers: "transformer.encoder.layers",
            attention: Attention::Fused("self_attention", "query_key_value", "dense"),
            dense: Dense::FusedGate("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
            head: "transformer.output_layer",
            ..LLAMA
        },
        // `intermediate_size` is the width of gate and up together.
        "qwen" => Family {
            layers: "transformer.h",
            attention: Attention::Fused("attn", "c_attn", "c_proj"),
            dense: Dense::Halves(["w2", "w1", "c_proj"]),
            ..LLAMA
        },
        "mixtral" => Family { experts: Some(MIXTRAL), ..LLAMA },
        "minimax_m2" => Family { experts: Some(MIXTRAL), even_heads: false, ..LLAMA },
        "qwen3_moe" => Family { experts: Some(QWEN_EXPERTS), even_heads: false, ..LLAMA },
        "olmoe" => Family { experts: Some(QWEN_EXPERTS), ..LLAMA },
        "qwen2_moe" => Family {
            experts: Some(Experts {
                shared: Some("shared_expert"),
                shared_gate: true,
                ..QWEN_EXPERTS
            }),
            ..LLAMA
        },
        "deepseek" => Family { attention: LLAMA.attention, ..DEEPSEEK },
        "deepseek_v2" | "deepseek_v3" | "kimi_k2" => DEEPSEEK,
        "deepseek_v32" => Family { attention: Attention::LatentIndexed, ..DEEPSEEK },
        _ => return None,
    })
}

/// Modules by the config, and the number of their parameters.
///
/// MTP layers are left out. Without an element type in the config the bytes are 0.
pub fn from_config(
    model_type: &str,
    of: &Map<String, Value>,
    model: Model<'_>,
) -> Option<(Modules, u64)> {
    let family = family(model_type)?;
    let facts = model.facts;
    if facts.text_config_key.is_some() || !facts.towers.is_empty() {
        return None;
    }
    let layers = model.layers.filter(|layers| *layers <= MOST_LAYERS)?;
    let vocabulary = facts.vocab_size?;
    let width = model.width?;
    let tied = facts.tie_word_embeddings.unwrap_or(family.tied);
    let dtype = facts.dtype.as_deref().and_then(dtype::by_name).unwrap_or(dtype::UNKNOWN);
    let sizes = sizes(of, &family, model, width)?;
    let mut build = Build { linears: Vec::new(), model, dtype };
    for at in 0..layers {
        let layer = format!("{}.{at}", family.layers);
        attention(&mut build, &layer, &family, &sizes)?;
        match family.experts.filter(|_| facts.experts.is_some()) {
            Some(experts) if has_experts(of, at).or(experts.everywhere)? => {
                add_experts(&mut build, &layer, experts, &sizes)?;
            }
            _ => dense(&mut build, &layer, family.dense, &sizes)?,
        }
        if build.linears.len() > MOST {
            return None;
        }
    }
    build.add(family.head.to_owned(), vocabulary, width)?;
    let embeddings = vocabulary.checked_mul(width)?;
    let mut parameters = embeddings;
    let head = build.linears.last_mut()?;
    if tied {
        (head.kind, head.bytes) = (LinearKind::Tied, 0);
    }
    for linear in build.linears.iter().filter(|linear| linear.kind != LinearKind::Tied) {
        parameters =
            parameters.checked_add(linear.out_features.checked_mul(linear.in_features)?)?;
    }
    let embedding_bytes = embeddings.checked_mul(dtype.bits)? / 8;
    let total_bytes = parameters.checked_mul(dtype.bits)? / 8;
    let modules = Modules {
        exactness: Exactness::Config,
        linears: build.linears,
        other_bytes: BTreeMap::from([("embeddings", embedding_bytes)]),
        total_bytes,
        draft: facts.mtp_layers.filter(|count| *count > 0).and(family.draft).map(
            |draft| match draft {
                Draft::AfterLast => format!("{}.{layers}.*", family.layers),
                Draft::Named(pattern) => pattern.to_owned(),
            },
        ),
    };
    Some((modules, parameters))
}

struct Sizes {
    width: u64,
    heads: u64,
    key_value_heads: u64,
    head: u64,
    inner: Option<u64>,
    expert_inner: Option<u64>,
    shared_inner: Option<u64>,
    indexer: Option<(u64, u64)>,
}

fn sizes(of: &Map<String, Value>, family: &Family, model: Model<'_>, width: u64) -> Option<Sizes> {
    let facts = model.facts;
    let heads = facts.num_attention_heads?;
    let even = || family.even_heads.then(|| width.checked_div(heads)).flatten();
    let latent = matches!(family.attention, Attention::Latent | Attention::LatentIndexed);
    let head = if latent { 0 } else { facts.head_dim.or_else(even)? };
    let experts = facts.experts.as_ref();
    let expert_inner =
        experts.and_then(|experts| experts.intermediate_size).or(facts.intermediate_size);
    let shared = experts.and_then(|experts| experts.shared).unwrap_or(0);
    Some(Sizes {
        width,
        heads,
        key_value_heads: facts.num_key_value_heads.unwrap_or(heads),
        head,
        inner: facts.intermediate_size.or_else(|| {
            // GPT-J leaves the usual factor out.
            (family.layers == "transformer.h").then(|| width.checked_mul(4)).flatten()
        }),
        expert_inner,
        shared_inner: experts
            .and_then(|experts| experts.shared_intermediate_size)
            .or_else(|| expert_inner?.checked_mul(shared))
            .filter(|inner| *inner > 0),
        indexer: number(of, &["index_n_heads"]).zip(number(of, &["index_head_dim"])),
    })
}

struct Build<'a> {
    linears: Vec<LinearModule>,
    model: Model<'a>,
    dtype: &'static Dtype,
}

impl Build<'_> {
    /// Adds a linear module; nothing when its size overflows.
    fn add(&mut self, name: String, out: u64, into: u64) -> Option<()> {
        let bytes = out.checked_mul(into)?.checked_mul(self.dtype.bits)? / 8;
        let role = role(&name, out, self.model);
        self.linears.push(LinearModule {
            name,
            out_features: out,
            in_features: into,
            stacked: 1,
            dtype: self.dtype.name,
            bytes,
            role,
            kind: LinearKind::Plain,
        });
        Some(())
    }
}

fn attention(build: &mut Build<'_>, layer: &str, family: &Family, sizes: &Sizes) -> Option<()> {
    let width = sizes.width;
    let queries = sizes.heads.checked_mul(sizes.head)?;
    let keys = sizes.key_value_heads.checked_mul(sizes.head)?;
    match family.attention {
        Attention::Split(prefix, output) => {
            build.add(format!("{layer}.{prefix}.q_proj"), queries, width)?;
            build.add(format!("{layer}.{prefix}.k_proj"), keys, width)?;
            build.add(format!("{layer}.{prefix}.v_proj"), keys, width)?;
            build.add(format!("{layer}.{prefix}.{output}"), width, queries)
        }
        Attention::Fused(prefix, fused, output) => {
            let all = keys.checked_mul(2)?.checked_add(queries)?;
            build.add(format!("{layer}.{prefix}.{fused}"), all, width)?;
            build.add(format!("{layer}.{prefix}.{output}"), width, queries)
        }
        Attention::Latent | Attention::LatentIndexed => {
            latent(build, &format!("{layer}.self_attn"), family, sizes)
        }
    }
}

fn latent(build: &mut Build<'_>, prefix: &str, family: &Family, sizes: &Sizes) -> Option<()> {
    let facts = build.model.facts;
    let ranks = facts.latent_attention.as_ref()?;
    let (rotary, rest) = (ranks.qk_rope_head_dim?, ranks.qk_nope_head_dim?);
    let (rank, value) = (ranks.kv_lora_rank?, ranks.v_head_dim?);
    let (width, heads, query_rank) = (sizes.width, sizes.heads, ranks.q_lora_rank);
    let queries = heads.checked_mul(rotary.checked_add(rest)?)?;
    match query_rank {
        Some(query_rank) => {
            build.add(format!("{prefix}.q_a_proj"), query_rank, width)?;
            build.add(format!("{prefix}.q_b_proj"), queries, query_rank)?;
        }
        None => build.add(format!("{prefix}.q_proj"), queries, width)?,
    }
    build.add(format!("{prefix}.kv_a_proj_with_mqa"), rank.checked_add(rotary)?, width)?;
    build.add(format!("{prefix}.kv_b_proj"), heads.checked_mul(rest.checked_add(value)?)?, rank)?;
    build.add(format!("{prefix}.o_proj"), width, heads.checked_mul(value)?)?;
    if family.attention == Attention::LatentIndexed {
        let (heads, head) = sizes.indexer?;
        build.add(format!("{prefix}.indexer.wq_b"), heads.checked_mul(head)?, query_rank?)?;
        build.add(format!("{prefix}.indexer.wk"), head, width)?;
        build.add(format!("{prefix}.indexer.weights_proj"), heads, width)?;
    }
    Some(())
}

fn dense(build: &mut Build<'_>, layer: &str, dense: Dense, sizes: &Sizes) -> Option<()> {
    let (width, inner) = (sizes.width, sizes.inner?);
    match dense {
        Dense::Gated => gated(build, &format!("{layer}.mlp"), PROJECTIONS, width, inner),
        Dense::Halves(names) => gated(build, &format!("{layer}.mlp"), names, width, inner / 2),
        Dense::FusedGate(first, last) => {
            build.add(format!("{layer}.{first}"), inner.checked_mul(2)?, width)?;
            build.add(format!("{layer}.{last}"), width, inner)
        }
        Dense::Two(first, last) => {
            build.add(format!("{layer}.{first}"), inner, width)?;
            build.add(format!("{layer}.{last}"), width, inner)
        }
    }
}

fn gated(
    build: &mut Build<'_>,
    prefix: &str,
    [gate, up, down]: [&str; 3],
    width: u64,
    inner: u64,
) -> Option<()> {
    build.add(format!("{prefix}.{gate}"), inner, width)?;
    build.add(format!("{prefix}.{up}"), inner, width)?;
    build.add(format!("{prefix}.{down}"), width, inner)
}

fn add_experts(build: &mut Build<'_>, layer: &str, experts: Experts, sizes: &Sizes) -> Option<()> {
    let block = format!("{layer}.{}", experts.block);
    let routed =
        build.model.facts.experts.as_ref()?.routed.filter(|routed| *routed <= MOST_EXPERTS)?;
    build.add(format!("{block}.gate"), routed, sizes.width)?;
    for expert in 0..routed {
        let prefix = format!("{block}.experts.{expert}");
        gated(build, &prefix, experts.names, sizes.width, sizes.expert_inner?)?;
    }
    if let (Some(name), Some(inner)) = (experts.shared, sizes.shared_inner) {
        gated(build, &format!("{block}.{name}"), PROJECTIONS, sizes.width, inner)?;
        if experts.shared_gate {
            build.add(format!("{block}.shared_expert_gate"), 1, sizes.width)?;
        }
    }
    Some(())
}

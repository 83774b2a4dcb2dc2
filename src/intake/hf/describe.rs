//! What a config states of the architecture, under every name that families give the same fact.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::facts::torch::{ExpertFacts, LatentAttention, Modality, TorchFacts, Tower};
use crate::intake::hf::config::{Config, flag, list, number, short, table, text};

/// Names of the number of layers.
const LAYERS: [&str; 7] = [
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "decoder_layers",
    "depth",
    "vt_num_hidden_layers",
];
/// Names of the width.
const WIDTH: [&str; 6] = ["hidden_size", "n_embd", "d_model", "dim", "vt_hidden_size", "embed_dim"];
/// Names of the width inside a feed-forward block.
const INNER: [&str; 8] = [
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "d_ff",
    "ffn_dim",
    "decoder_ffn_dim",
    "hidden_dim",
    "vt_intermediate_size",
];
/// Names of the number of attention heads.
const HEADS: [&str; 6] = [
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "decoder_attention_heads",
    "attention_heads",
];
/// Names of the number of routed experts.
const EXPERTS: [&str; 5] =
    ["n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "num_moe_experts"];
/// Keys of encoders of other modalities.
const TOWERS: [(&str, Modality); 14] = [
    ("vision_config", Modality::Vision),
    ("vision_model_config", Modality::Vision),
    ("vision_tower_config", Modality::Vision),
    ("vision_encoder_config", Modality::Vision),
    ("vit_config", Modality::Vision),
    ("visual", Modality::Vision),
    ("image_config", Modality::Vision),
    ("video_config", Modality::Vision),
    ("img_processor", Modality::Vision),
    ("audio_config", Modality::Audio),
    ("audio_encoder_config", Modality::Audio),
    ("audio_processor", Modality::Audio),
    ("speech_config", Modality::Audio),
    ("sound_config", Modality::Audio),
];
/// Architectures that a config may list; more is nonsense.
const MOST_NAMES: usize = 32;
/// Layers that a model may have; more is nonsense.
pub const MOST_LAYERS: u64 = 4096;

/// Layers of the language model.
pub fn layers(config: &Config) -> Option<u64> {
    let of = config.text();
    number(of, &LAYERS).or_else(|| Some(list(of, "layers_block_type")?.len() as u64))
}

/// Width of the language model.
pub fn width(config: &Config) -> Option<u64> {
    number(config.text(), &WIDTH)
}

/// What the config states; the weights are for the caller to add.
pub fn facts(config: &Config) -> TorchFacts {
    let of = config.text();
    let nested = !config.text_path.is_empty();
    let mut facts = TorchFacts {
        text_config_key: nested.then(|| config.text_path.join(".")),
        text_model_type: text(of, &["model_type"]).filter(|_| nested),
        architectures: names(&config.top, "architectures"),
        auto_map: auto_map(config),
        dtype: config
            .levels()
            .rev()
            .find_map(|level| text(level, &["dtype", "torch_dtype"]))
            .map(|name| name.strip_prefix("torch.").map_or(name.clone(), str::to_owned)),
        is_encoder_decoder: flag(&config.top, &["is_encoder_decoder"]),
        intermediate_size: number(of, &INNER),
        num_attention_heads: number(of, &HEADS),
        num_key_value_heads: key_value_heads(of),
        head_dim: number(of, &["head_dim", "kv_channels", "d_kv", "attention_head_dim"]),
        vocab_size: number(of, &["vocab_size", "padded_vocab_size"])
            .or_else(|| number(&config.top, &["vocab_size"])),
        max_position_embeddings: number(
            of,
            &[
                "max_position_embeddings",
                "n_positions",
                "max_sequence_length",
                "model_max_length",
                "seq_length",
                "max_target_positions",
                "n_ctx",
            ],
        ),
        tie_word_embeddings: config
            .levels()
            .find_map(|level| flag(level, &["tie_word_embeddings"])),
        mtp_layers: mtp_layers(of),
        latent_attention: latent_attention(of),
        layer_kinds: layer_kinds(of),
        towers: towers(config),
        ..TorchFacts::default()
    };
    facts.experts = experts(of, layers(config));
    facts
}

fn names(of: &Map<String, Value>, key: &str) -> Vec<String> {
    list(of, key)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(MOST_NAMES)
        .map(short)
        .collect()
}

/// The classes of own code; a value may be a list, for slow and fast tokenizers.
fn auto_map(config: &Config) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (class, code) in config.levels().filter_map(|level| table(level, "auto_map")).flatten() {
        let code = code.as_str().or_else(|| code.as_array()?.iter().find_map(Value::as_str));
        if let (Some(code), true) = (code, found.len() < MOST_NAMES) {
            found.entry(short(class)).or_insert_with(|| short(code));
        }
    }
    found
}

fn key_value_heads(of: &Map<String, Value>) -> Option<u64> {
    if flag(of, &["multi_query_attention"]) == Some(true) {
        return number(of, &["multi_query_group_num"]);
    }
    // Falcon's newer architecture groups heads; its older one has a single pair of keys and values.
    if flag(of, &["multi_query"]) == Some(true)
        && flag(of, &["new_decoder_architecture"]) != Some(true)
    {
        return Some(1);
    }
    number(of, &["num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"])
        .or_else(|| grouped_heads(of))
}

/// Heads of keys and values where each block says how many queries share one, and all say the same.
fn grouped_heads(of: &Map<String, Value>) -> Option<u64> {
    let mut groups = list(of, "block_configs")?
        .iter()
        .filter_map(|block| block.pointer("/attention/n_heads_in_group")?.as_u64());
    let group = groups.next()?;
    let heads = number(of, &["num_attention_heads"])?;
    groups.all(|other| other == group).then(|| heads.checked_div(group)).flatten()
}

/// Kinds of blocks that may leave attention out, or have something simpler in its place.
fn block_kinds(blocks: &[Value]) -> impl Iterator<Item = &'static str> {
    blocks.iter().map(|block| {
        let is = |what: &str| block["attention"][what] == Value::Bool(true);
        if is("no_op") {
            "no_op"
        } else if is("replace_with_linear") {
            "linear"
        } else {
            "attention"
        }
    })
}

fn mtp_layers(of: &Map<String, Value>) -> Option<u64> {
    number(
        of,
        &["num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers"],
    )
    .or_else(|| Some(list(of, "mtp_layers_block_type")?.len() as u64))
}

fn latent_attention(of: &Map<String, Value>) -> Option<LatentAttention> {
    let ranks = LatentAttention {
        kv_lora_rank: number(of, &["kv_lora_rank"]),
        q_lora_rank: number(of, &["q_lora_rank"]),
        qk_rope_head_dim: number(of, &["qk_rope_head_dim"]),
        qk_nope_head_dim: number(of, &["qk_nope_head_dim"]),
        v_head_dim: number(of, &["v_head_dim"]),
    };
    (ranks.kv_lora_rank.is_some() || ranks.q_lora_rank.is_some()).then_some(ranks)
}

/// Kinds of layers, where the config lists them or says by which rule they alternate.
fn layer_kinds(of: &Map<String, Value>) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    let mut add = |kind: &str, count: u64| *kinds.entry(short(kind)).or_insert(0) += count;
    let texts = ["layer_types", "layers_block_type"].into_iter().find_map(|key| list(of, key));
    let pattern = of.get("hybrid_override_pattern").and_then(Value::as_str);
    let numbered = [
        ("hybrid_layer_pattern", ["full_attention", "sliding_attention"]),
        ("attn_type_list", ["linear_attention", "full_attention"]),
    ];
    let linear = table(of, "linear_attn_config");
    let count = number(of, &LAYERS);
    if let Some(blocks) = list(of, "block_configs") {
        block_kinds(blocks).for_each(|kind| add(kind, 1));
    } else if let Some(texts) = texts {
        texts.iter().filter_map(Value::as_str).for_each(|kind| add(kind, 1));
    } else if let Some(pattern) = pattern {
        for letter in pattern.chars() {
            match letter {
                'M' => add("mamba", 1),
                'E' => add("moe", 1),
                '*' => add("attention", 1),
                '-' => add("mlp", 1),
                _ => {}
            }
        }
    } else if let Some((list, [zero, one])) =
        numbered.into_iter().find_map(|(key, names)| Some((list(of, key)?, names)))
    {
        for kind in list.iter().filter_map(Value::as_u64) {
            match kind {
                0 => add(zero, 1),
                1 => add(one, 1),
                _ => {}
            }
        }
    } else if let Some(linear) = linear {
        let known = [("full_attn_layers", "full_attention"), ("kda_layers", "linear_attention")];
        for (key, kind) in known {
            if let Some(layers) = list(linear, key) {
                add(kind, layers.len() as u64);
            }
        }
    } else if let (Some(count), Some(period)) = (count, number(of, &["attn_layer_period"])) {
        let offset = number(of, &["attn_layer_offset"]).unwrap_or(0);
        let attention = every(count, period, offset);
        add("attention", attention);
        add("mamba", count - attention);
    } else if let (Some(count), Some(interval)) = (count, number(of, &["full_attention_interval"]))
    {
        let full = count.checked_div(interval).unwrap_or(0);
        add("full_attention", full);
        add("linear_attention", count - full);
    } else if let (Some(count), Some(crossed)) = (count, list(of, "cross_attention_layers")) {
        let crossed = (crossed.len() as u64).min(count);
        add("cross_attention", crossed);
        add("full_attention", count - crossed);
    }
    kinds
}

/// How many of the first `count` numbers are `offset` past a multiple of `period`.
fn every(count: u64, period: u64, offset: u64) -> u64 {
    if period == 0 || offset >= count { 0 } else { (count - offset).div_ceil(period) }
}

fn experts(of: &Map<String, Value>, layers: Option<u64>) -> Option<ExpertFacts> {
    // Gemma states numbers of experts for a block that may be off.
    if flag(of, &["enable_moe_block"]) == Some(false) {
        return None;
    }
    // DBRX nests the numbers of its feed-forward blocks.
    let inner = table(of, "ffn_config").unwrap_or(of);
    let routed =
        number(of, &EXPERTS).or_else(|| number(inner, &EXPERTS)).filter(|count| *count > 0)?;
    let shared_intermediate_size = number(
        of,
        &[
            "shared_expert_intermediate_size",
            "moe_shared_expert_intermediate_size",
            "shared_intermediate_size",
            "share_expert_dim",
        ],
    );
    let shared = number(
        of,
        &["n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"],
    )
    // Qwen states only the width of its one shared expert; a width of 0 means that there is none.
    .or_else(|| {
        let width = number(of, &["shared_expert_intermediate_size"])
            .or_else(|| shared_intermediate_size.filter(|width| *width == 0))?;
        Some(u64::from(width > 0))
    });
    Some(ExpertFacts {
        routed: Some(routed),
        shared,
        per_token: number(
            of,
            &[
                "num_experts_per_tok",
                "num_experts_per_token",
                "experts_per_token",
                "num_selected_experts",
                "top_k_experts",
                "moe_topk",
                "moe_k",
                "moe_router_topk",
            ],
        )
        .or_else(|| number(inner, &["moe_top_k"])),
        intermediate_size: number(
            of,
            &["moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size"],
        )
        .or_else(|| number(inner, &["ffn_hidden_size"]).filter(|_| of.contains_key("ffn_config"))),
        shared_intermediate_size: shared_intermediate_size.filter(|width| *width > 0),
        first_dense_layers: number(of, &["first_k_dense_replace", "moe_layer_start_index"]),
        layers: layers.and_then(|layers| expert_layers(of, layers)),
    })
}

/// Layers with experts, when the config says which.
fn expert_layers(of: &Map<String, Value>, layers: u64) -> Option<u64> {
    let layers = Some(layers).filter(|layers| *layers <= MOST_LAYERS)?;
    (0..layers)
        .map(|at| has_experts(of, at))
        .try_fold(0, |count, has| Some(count + u64::from(has?)))
}

/// Whether layer `at` has experts, by whichever rule the config states.
pub fn has_experts(of: &Map<String, Value>, at: u64) -> Option<bool> {
    let place = usize::try_from(at).ok()?;
    if let Some(kinds) = list(of, "layers_block_type") {
        return Some(kinds.get(place)?.as_str()? == "moe");
    }
    if let Some(pattern) = of.get("hybrid_override_pattern").and_then(Value::as_str) {
        return Some(*pattern.as_bytes().get(place)? == b'E');
    }
    if let Some(kinds) = list(of, "mlp_layer_types") {
        return Some(kinds.get(place)?.as_str()? == "sparse");
    }
    if let Some(marks) = list(of, "moe_layer_freq") {
        return Some(marks.get(place)?.as_u64()? == 1);
    }
    if let Some(chosen) = list(of, "moe_layers") {
        return Some(chosen.iter().any(|one| one.as_u64() == Some(at)));
    }
    if let Some(dense) = number(of, &["first_k_dense_replace"]) {
        let step = number(of, &["moe_layer_freq"]).unwrap_or(1);
        return Some(at >= dense && at.checked_rem(step)? == 0);
    }
    let dense = list(of, "mlp_only_layers");
    let step = number(of, &["decoder_sparse_step", "interleave_moe_layer_step"]);
    // A list of dense layers alone says that all others have experts.
    if let Some(step) = step.or(dense.map(|_| 1)) {
        let is_dense = dense.is_some_and(|all| all.iter().any(|one| one.as_u64() == Some(at)));
        return Some(!is_dense && (at + 1).checked_rem(step)? == 0);
    }
    let period = number(of, &["expert_layer_period"])?;
    let offset = number(of, &["expert_layer_offset"]).unwrap_or(0);
    Some(at >= offset && (at - offset).checked_rem(period)? == 0)
}

fn towers(config: &Config) -> Vec<Tower> {
    let mut found = Vec::new();
    let mut path = String::new();
    for (depth, level) in config.levels().enumerate() {
        for (key, modality) in TOWERS {
            let Some(of) = table(level, key).filter(|of| !of.is_empty()) else { continue };
            found.push(Tower {
                key: format!("{path}{key}"),
                modality,
                model_type: text(of, &["model_type", "name", "model_name"]),
                layers: number(of, &LAYERS).or_else(|| number(of, &["encoder_layers", "layers"])),
                hidden_size: number(of, &WIDTH),
                intermediate_size: number(of, &INNER).or_else(|| number(of, &["encoder_ffn_dim"])),
            });
        }
        if let Some(key) = config.text_path.get(depth) {
            path.push_str(key);
            path.push('.');
        }
    }
    found
}

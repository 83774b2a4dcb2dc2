//! # What it does
//!
//! Looks whether tensor parallelism divides the model at all: its attention heads, its KV heads, and the widths
//! inside its feed-forward blocks. It names the numbers of ranks that do.
//!
//! # Why
//!
//! vLLM gives each rank whole heads and an equal share of every width, and stops at start-up when that cannot be,
//! hours after the quantization. Fewer KV heads than ranks are copied, so that the cache is kept more than once.
//!
//! # Example
//!
//! 28 attention heads and `tensor_parallel` 8: 28 is no multiple of 8; 2, 4 and 7 ranks would do.
//!
//! # Sources
//!
//! - vllm-project/vllm#414, #2652, #11797: "Total number of attention heads must be divisible by tensor parallel size"
//! - vllm 0035bdf2, `vllm/model_executor/models/llama.py`; vllm 01996904, `vllm/distributed/utils.py`, `divide`

use crate::{
    facts::torch::TorchFacts,
    rules::{
        Context, Stage,
        common::goal,
        sheet::{Sheet, list},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "tensor-parallel";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// The most ranks that are looked at for a remedy.
const MOST: u64 = 16;

/// Looks.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let ranks = goal::tensor_parallel(ctx).unwrap_or(1);
    let per_rank = sheet.torch.engine.and_then(|engine| engine.heads_per_rank);
    if ranks < 2 || per_rank == Some(false) {
        return;
    }
    let uneven = uneven(ctx, ranks);
    let kv = kv_heads(ctx.torch()).filter(|kv| *kv < ranks);
    let mut pen = sheet.by(ID);
    if !uneven.is_empty() {
        let (severity, who) = match per_rank {
            Some(true) => (Severity::High, "and the engine stops at start-up"),
            _ => (Severity::Medium, "and vLLM stops at start-up; other engines may pad"),
        };
        let text =
            format!("{ranks} tensor-parallel ranks do not divide {}, {who}", uneven.join(", nor "));
        let fit: Vec<String> = (2..=MOST)
            .filter(|ranks| self::uneven(ctx, *ranks).is_empty())
            .map(|ranks| ranks.to_string())
            .collect();
        let remedy = if fit.is_empty() {
            "take one rank".to_owned()
        } else {
            format!("numbers of ranks that do: {}", list(&fit, 9))
        };
        pen.risk(severity, text, Some(remedy));
    } else if let Some(kv) = kv {
        pen.risk(
            Severity::Low,
            format!("{kv} KV heads for {ranks} tensor-parallel ranks: each is kept {} times, and the cache of a rank gets no smaller beyond {kv} ranks", ranks / kv),
            None,
        );
    }
}

/// Its KV heads; latent attention has one latent for all heads.
fn kv_heads(facts: &TorchFacts) -> Option<u64> {
    facts.num_key_value_heads.filter(|kv| *kv > 0 && facts.latent_attention.is_none())
}

/// What a number of ranks does not divide.
fn uneven(ctx: &Context<'_>, ranks: u64) -> Vec<String> {
    let facts = ctx.torch();
    let experts = facts.experts.as_ref();
    let mut found = Vec::new();
    let heads = facts.num_attention_heads.filter(|heads| !heads.is_multiple_of(ranks));
    found.extend(heads.map(|heads| format!("its {heads} attention heads")));
    let kv = kv_heads(facts).filter(|kv| !kv.is_multiple_of(ranks) && !ranks.is_multiple_of(*kv));
    found.extend(kv.map(|kv| format!("its {kv} KV heads")));
    for (name, width) in [
        ("intermediate_size", facts.intermediate_size),
        ("moe_intermediate_size", experts.and_then(|experts| experts.intermediate_size)),
    ] {
        let width = width.filter(|width| !width.is_multiple_of(ranks));
        found.extend(width.map(|width| format!("`{name}` {width}")));
    }
    found
}

//! # What it does
//!
//! Settles whether the KV cache is quantized: `fp8` when you or the goal ask for it, else not. Says what it needs:
//! layers in the template, calibration, and for `min_kv_scale` and the cache after RoPE `quantize_quark.py`.
//!
//! # Why
//!
//! FP8 is the only format that Quark takes for the cache. Its scales come from calibration data: without them
//! Qwen2-7B went from a perplexity of 22.6 to 34.8. Some engines have no place for the scales of some models.
//!
//! # Example
//!
//! The goal asks for a quantized KV cache, `llama` has `k_proj` and `v_proj` for it, so `fp8`: 64 kB a token
//! instead of 128.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/config/template.py:904`
//! - vllm-project/vllm#5493, #11906, #15784, #25047; NVIDIA/Model-Optimizer#20; sgl-project/sglang#6518

use serde_json::{Value, json};

use crate::{
    estimate,
    plan::Alternative,
    rules::{
        Context, Stage,
        sheet::{Asked, Check, Fallback, Sheet, list, size},
        torch::{lookup, wishes},
    },
    vocab::{EvaluationIntent, Origin, Severity},
};

/// The reason code.
pub const ID: &str = "kv-cache";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "kv_cache_scheme";
/// Families whose keys have a bias, and with it outliers.
const BIASED_KEYS: [&str; 3] = ["qwen", "qwen2", "qwen2_moe"];

/// Settles the rows of the cache.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let per_token =
        |bytes: u64| estimate::torch::kv_cache_per_token(ctx.analysis, ctx.torch(), bytes);
    let saves = match (per_token(2), per_token(1)) {
        (Some(wide), Some(narrow)) => format!("{} a token instead of {}", size(narrow), size(wide)),
        _ => "half the memory of the cache".to_owned(),
    };
    let value = json!("fp8");
    let asked = match ctx.requested(ROW) {
        Some(Value::Null) => {
            sheet.by(ID).decide(ROW, Value::Null, Origin::User, "you want it left alone");
            None
        }
        Some(_) => Some("you asked for it"),
        None if wishes::read(ctx).kv_cache => Some("the goal asks for it"),
        None => {
            sheet
                .by(ID)
                .decide(
                    ROW,
                    Value::Null,
                    Origin::Default,
                    "nothing was asked for, and the cache stays as it is",
                )
                .alternatives
                .push(Alternative {
                    value: value.clone(),
                    why_not: format!("for long contexts: {saves}; it needs calibrated scales"),
                });
            None
        }
    };
    if let Some(said) = asked {
        let check = verdict(ctx, sheet);
        let asked = Asked { value: &value, origin: Origin::User, said: format!("{said}: {saves}") };
        let fallback =
            Fallback::Value(Value::Null, Origin::Rule, "the cache stays as it is".to_owned());
        let stands = sheet.by(ID).settle(ctx, ROW, &asked, check, fallback);
        sheet.torch.kv_cache = stands == Some(value);
    }
    options(ctx, sheet);
    if sheet.torch.kv_cache {
        risks(ctx, sheet);
    }
}

fn verdict(ctx: &Context<'_>, sheet: &Sheet) -> Check {
    let template = sheet.torch.template_name().unwrap_or_default();
    match sheet.torch.kv_layers() {
        Some([]) => {
            return Check::Impossible(format!(
                "{template} names no KV layers, and Quark would leave the cache alone without a word"
            ));
        }
        Some(patterns) if lookup::none_match(ctx.modules, patterns) => {
            return Check::Impossible(format!(
                "the KV layers of {template} ({}) match no module, and Quark would leave the cache alone without a word",
                list(patterns, 3)
            ));
        }
        None if ctx.answer("custom_template").is_none()
            && ctx.requested("template_file").is_none() =>
        {
            return Check::Unwise("there is no template that names the KV layers".to_owned());
        }
        _ => {}
    }
    if sheet.torch.strategy == "file_to_file" {
        return Check::Unwise(
            "file-to-file quantization runs no calibration, so its scales would mean nothing"
                .to_owned(),
        );
    }
    match sheet.torch.engine {
        Some(engine) if !engine.kv_cache.iter().any(|scheme| scheme == "fp8") => Check::Risky(
            Severity::Medium,
            format!("`{}` is not known to load its scales from the checkpoint", engine.id),
        ),
        _ => Check::Fine,
    }
}

/// `min_kv_scale` and the cache after RoPE: flags of one program only.
fn options(ctx: &Context<'_>, sheet: &mut Sheet) {
    for (row, flag) in
        [("min_kv_scale", "--min_kv_scale"), ("kv_cache_post_rope", "--kv_cache_post_rope")]
    {
        let Some(asked) = ctx.requested(row) else { continue };
        if sheet.torch.kv_cache {
            let reason = format!("you asked for it; only `quantize_quark.py` has {flag}");
            sheet.by(ID).decide(row, asked.clone(), Origin::User, reason);
            sheet.torch.needs_script.push(format!("`{flag}`"));
        } else {
            sheet.by(ID).risk(
                Severity::Low,
                format!("`{row}` is left out: the KV cache is not quantized"),
                Some(format!("set `{ROW}` to `fp8`")),
            );
        }
    }
}

fn risks(ctx: &Context<'_>, sheet: &mut Sheet) {
    let full = ctx.intent.evaluation_intent.is_some_and(|intent| intent == EvaluationIntent::Full)
        || ctx.requested("evaluation_intent").and_then(Value::as_str) == Some("full");
    let excluded: Vec<String> = match (ctx.modules, sheet.torch.kv_layers()) {
        (Some(modules), Some(layers)) => layers
            .iter()
            .filter(|pattern| lookup::all_excluded(modules, sheet, pattern))
            .cloned()
            .collect(),
        _ => Vec::new(),
    };
    let biased = sheet.torch.family.is_some_and(|family| BIASED_KEYS.contains(&family.id.as_str()));
    let vllm = sheet.torch.engine.is_some_and(|engine| engine.id == *"vllm");
    let mut pen = sheet.by(ID);
    if !full {
        pen.risk(
            if biased { Severity::Medium } else { Severity::Low },
            if biased {
                "keys of this family have a bias and with it outliers: an FP8 cache without good scales costs much (vllm-project/vllm#11906)"
            } else {
                "the scales of the cache come from calibration data: what it does to long contexts only an evaluation tells"
            },
            Some("set `evaluation_intent` to `full`, and consider `min_kv_scale`".to_owned()),
        );
    }
    if !excluded.is_empty() {
        pen.risk(
            Severity::Medium,
            format!("its layers ({}) are excluded, and exclusion wins in Quark: the checkpoint may hold no scales of the cache", list(&excluded, 3)),
            Some("look for `k_scale` in the result before it is served".to_owned()),
        );
    }
    if vllm {
        pen.risk(
            Severity::Low,
            "a model class of vLLM without a mapping for KV scales fails with a KeyError (vllm-project/vllm#15784)",
            None,
        );
    }
}

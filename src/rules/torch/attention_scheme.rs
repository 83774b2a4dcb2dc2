//! # What it does
//!
//! Takes your wish for attention in FP8: the outputs of the query projections and of the softmax. It is never
//! planned unasked, and it needs `quantize_quark.py`.
//!
//! # Why
//!
//! `fp8` is all that Quark takes, and quark-cli has no flag for it. The softmax is quantized in the `eager`
//! implementation of attention only. vLLM and SGLang refuse a checkpoint with quantized outputs; they make an
//! exception for the queries, when the KV cache is quantized too and the family's pattern for them is `*q_proj`.
//!
//! # Example
//!
//! `attention_scheme: fp8` for vLLM without `kv_cache_scheme` is left out: the checkpoint would not load.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/config/template.py:906,1046`; `model_transformation.py:466-482`
//! - amd/Quark 1d27b558, `quantize_quark.py`, `--attention_dtype`, `--model_attn_implementation`
//! - vllm 006bce4e, `vllm/model_executor/layers/quantization/quark/quark.py`, `from_config`, `get_cache_scale`; sglang 02bd1130,
//!   `python/sglang/srt/layers/quantization/quark/quark.py`

use serde_json::{Value, json};

use crate::{
    rules::{
        Context, Stage,
        sheet::{Asked, Check, Fallback, Sheet, list},
        torch::lookup,
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "attention-scheme";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "attention_scheme";

/// Settles the row, when somebody asked for it.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(asked) = ctx.requested(ROW) else { return };
    if asked.is_null() {
        sheet.by(ID).decide(ROW, Value::Null, Origin::User, "you want it left alone");
        return;
    }
    let value = json!("fp8");
    let check = verdict(ctx, sheet);
    let request = Asked {
        value: &value,
        origin: Origin::User,
        said: "you asked for it; only `quantize_quark.py` has --attention_dtype".to_owned(),
    };
    let fallback =
        Fallback::Value(Value::Null, Origin::Rule, "attention stays as it is".to_owned());
    let stands = sheet.by(ID).settle(ctx, ROW, &request, check, fallback);
    if stands != Some(value) {
        return;
    }
    sheet.torch.needs_script.push("attention in FP8 (`--attention_dtype`)".to_owned());
    let excluded = excluded(ctx, sheet);
    let mut pen = sheet.by(ID);
    pen.risk(
        Severity::Low,
        "the softmax is quantized only where attention runs as `eager`, which is the script's default",
        Some("do not give --model_attn_implementation `sdpa` or `flash_attention_2`".to_owned()),
    );
    if !excluded.is_empty() {
        pen.risk(
            Severity::Medium,
            format!(
                "its query layers ({}) are excluded, and Quark passes over excluded layers: of attention only the softmax would be quantized",
                list(&excluded, 3)
            ),
            None,
        );
    }
}

fn verdict(ctx: &Context<'_>, sheet: &Sheet) -> Check {
    if sheet.torch.strategy == "file_to_file" {
        return Check::Unwise(
            "file-to-file quantization runs no calibration, so its scales would mean nothing"
                .to_owned(),
        );
    }
    let (Some(layers), Some(template)) = (sheet.torch.q_layers(), sheet.torch.template_name())
    else {
        if ctx.requested("template_file").is_none() && ctx.answer("custom_template").is_none() {
            return Check::Unwise("there is no template that names the query layers".to_owned());
        }
        return Check::Fine;
    };
    let Some(engine) = sheet.torch.engine else { return Check::Fine };
    let Some(passes) = &engine.query_outputs else {
        return Check::Risky(
            Severity::Medium,
            format!("`{}` is not known to load its scales from the checkpoint", engine.id),
        );
    };
    if passes.needs_kv_cache && !sheet.torch.kv_cache {
        return Check::Unwise(format!(
            "`{}` refuses quantized outputs (NotImplementedError) unless the KV cache is quantized too; set `kv_cache_scheme` to `fp8` with it",
            engine.id
        ));
    }
    if passes.pattern != "*" && layers.iter().any(|own| *own != passes.pattern) {
        return Check::Unwise(format!(
            "`{}` lets quantized queries pass under the pattern `{}` only, and {template} writes {}",
            engine.id,
            passes.pattern,
            list(layers, 3)
        ));
    }
    Check::Fine
}

/// The patterns of query layers that mean excluded modules only.
fn excluded(ctx: &Context<'_>, sheet: &Sheet) -> Vec<String> {
    let (Some(modules), Some(patterns)) = (ctx.modules, sheet.torch.q_layers()) else {
        return Vec::new();
    };
    patterns
        .iter()
        .filter(|pattern| lookup::all_excluded(modules, sheet, pattern))
        .cloned()
        .collect()
}

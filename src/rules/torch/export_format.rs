//! # What it does
//!
//! Settles what is written: a Hugging Face folder with safetensors, a GGUF file when the goal asks for one and
//! Quark can write it, or nothing; and in which layout.
//!
//! # Why
//!
//! quark-cli writes safetensors in Quark's own layout only. GGUF comes from `quantize_quark.py`, for
//! `uint4_wo_32` and three architectures. AutoAWQ's layout needs the algorithm `awq` and groups, vLLM's FP8
//! layout the scheme `fp8`.
//!
//! # Example
//!
//! The goal asks for GGUF and the model is a `LlamaForCausalLM`, so `gguf`, with `uint4_wo_32`.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/export/gguf_export/gguf_model_writer.py:124`; `quark/torch/export/main_export/quant_config_parser.py:205-246`

use serde_json::{Value, json};

use crate::{
    catalogue::schemes::CustomMode,
    rules::{
        Context, Stage,
        sheet::{Asked, Check, Fallback, Sheet, list},
        torch::wishes::{self, Wish},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "export-format";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const ROW: &str = "export_format";
const MODE: &str = "custom_mode";

/// Settles format and layout.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let goal = wishes::read(ctx).wish == Some(Wish::Gguf)
        || sheet.torch.engine.is_some_and(|engine| engine.id == *"llama.cpp");
    let gguf = json!("gguf");
    let (value, said) = match ctx.requested(ROW).filter(|value| !value.is_null()) {
        Some(value) => (Some(value), "you asked for it"),
        None if goal => (Some(&gguf), "the goal asks for it"),
        None => (None, ""),
    };
    let hf = "Hugging Face safetensors, which engines and Quark's other skills read";
    let standing = match value {
        Some(value) => {
            let check = verdict(ctx, sheet, value.as_str().unwrap_or_default());
            let refused = matches!(check, Check::Impossible(_));
            let asked = Asked { value, origin: Origin::User, said: said.to_owned() };
            let fallback = Fallback::Value(json!("hf_format"), Origin::Rule, hf.to_owned());
            let stands = sheet.by(ID).settle(ctx, ROW, &asked, check, fallback);
            if refused {
                sheet.by(ID).risk(
                    Severity::High,
                    "Quark cannot write the GGUF file that is asked for, so this plan makes another format",
                    Some("make a GGUF file of the float model with llama.cpp's own converter and quantizer".to_owned()),
                );
            }
            stands.unwrap_or_default()
        }
        None => {
            sheet.by(ID).decide(ROW, json!("hf_format"), Origin::Default, hf);
            json!("hf_format")
        }
    };
    sheet.torch.export = standing.as_str().unwrap_or("hf_format").to_owned();
    match sheet.torch.export.as_str() {
        "gguf" => sheet.torch.needs_script.push("GGUF (`--model_export gguf`)".to_owned()),
        "none" => sheet.torch.needs_script.push("no export".to_owned()),
        _ => {}
    }
    layout(ctx, sheet);
}

fn verdict(ctx: &Context<'_>, sheet: &Sheet, format: &str) -> Check {
    if format != "gguf" {
        return Check::Fine;
    }
    let Some(scheme) = sheet.torch.scheme else { return Check::Fine };
    if scheme.gguf.is_none() {
        return Check::Impossible(format!(
            "the GGUF writer takes unsigned four-bit weights in groups of 32 only (`uint4_wo_32`), not `{}`",
            scheme.id
        ));
    }
    let engine = ctx.catalogue.engines().get("llama.cpp");
    let known = engine.map(|engine| engine.architectures.as_slice()).unwrap_or_default();
    let own = ctx.torch().architectures.first();
    match own {
        Some(own) if !known.contains(own) => Check::Impossible(format!(
            "the GGUF writer knows {} only, not `{own}` (NotImplementedError)",
            list(known, 5)
        )),
        _ => Check::Fine,
    }
}

/// The layout of the folder, when one is asked for.
fn layout(ctx: &Context<'_>, sheet: &mut Sheet) {
    let asked = ctx.requested(MODE).filter(|value| !value.is_null() && *value != "quark");
    let Some(value) = asked else { return };
    let mode = if value == "awq" { CustomMode::Awq } else { CustomMode::Fp8 };
    let fits = sheet.torch.scheme.is_some_and(|scheme| scheme.custom_modes.contains(&mode));
    let check = if !fits {
        Check::Impossible("the scheme does not go with that layout, a ValueError at the export: `awq` is for four-bit integers in groups, `fp8` for the scheme `fp8`".to_owned())
    } else if mode == CustomMode::Awq && !sheet.torch.runs("awq") {
        Check::Impossible(
            "AutoAWQ's layout needs the algorithm `awq`, a ValueError at the export without it"
                .to_owned(),
        )
    } else {
        Check::Fine
    };
    let fallback =
        Fallback::Value(json!("quark"), Origin::Default, "Quark's own layout".to_owned());
    let stands = sheet.by(ID).settle(ctx, MODE, &Asked::by_user(value), check, fallback);
    if stands.as_ref().and_then(Value::as_str).is_some_and(|mode| mode != "quark") {
        sheet.torch.needs_script.push("another layout (`--custom_mode`)".to_owned());
    }
}

//! # What it does
//!
//! Looks after presets that write custom ops of Quark: whether the library compiled here, and that whoever runs
//! the result has to load it. When nobody tried to compile it, the request goes to `quark-onnx-install` first.
//!
//! # Why
//!
//! Plain ONNX Runtime does not load such a model: "Fatal error: com.amd.quark:ExtendedQuantizeLinear". Beside the
//! block formats this holds for FP16, BF16 and MX9_INT8. BF16 escapes with `BF16QDQToCast`.
//!
//! # Example
//!
//! `BFP16` is asked for and `onnx_install_result.json` says that the compile failed, so it is not taken, and the
//! risk points to `quark-onnx-install`.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Rules": custom-op
//!   preconditions
//! - 0.13, run on a small CNN: presets by the ops they write (measured)
//! - amd/Quark#19; amd/RyzenAI-SW#287

use serde_json::json;

use crate::{
    catalogue::presets::{ElementType, Preset},
    plan::Choice,
    rules::{
        Context, Stage,
        sheet::{Route, Sheet, list, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "custom-ops";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

/// Options that make bfloat16 free of custom ops.
const ESCAPES: [&str; 2] = ["BF16QDQToCast", "EnableVaimlBF16"];

/// Whether bfloat16 rounding can be written as Cast nodes, so that no custom op is left.
pub fn escapes(preset: &Preset) -> bool {
    preset.activation.r#type == ElementType::QBFloat16
        && preset.weight.r#type == ElementType::QBFloat16
        && !preset.algorithms.iter().any(|algorithm| *algorithm == "AutoMixprecision")
}

/// Whether the result will hold custom ops: the preset writes them and no option takes them away again.
pub fn remain(ctx: &Context<'_>, preset: &Preset) -> bool {
    let options = ctx.requested("onnx_specific.extra_options");
    let set =
        |key: &str| options.and_then(|options| options.get(key)).and_then(|value| value.as_bool());
    // `bf16-cast` sets BF16QDQToCast unless the user switches it off.
    let escaped =
        escapes(preset) && (set(ESCAPES[0]) != Some(false) || set(ESCAPES[1]) == Some(true));
    !preset.custom_ops.is_empty() && !escaped
}

/// Whether the custom-op library compiles here; `None` when nobody tried.
fn verified(ctx: &Context<'_>) -> Option<bool> {
    let found = ctx.install.and_then(|install| install.verification.custom_ops_compile_ok);
    found.or_else(|| (ctx.answer("custom_ops") == Some("verified")).then_some(true))
}

/// Why a preset is not to be taken here.
pub fn refusal(ctx: &Context<'_>, sheet: &Sheet, preset: &Preset) -> Option<String> {
    (remain(ctx, preset) && verified(ctx) == Some(false)).then(|| {
        let on = sheet.target.map_or(String::new(), |target| format!(" for `{}`", target.id));
        format!(
            "`{}` writes {}, and the custom-op library did not compile{on} (`onnx_install_result.json`); quark-onnx-install can repair that",
            preset.id,
            list(&preset.custom_ops, 2)
        )
    })
}

/// Asks for a verified library, and tells who needs it.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let failed = verified(ctx) == Some(false);
    let asked = ctx.requested("preset").and_then(|value| value.as_str());
    let route = |why: String| Route {
        skill: "quark-onnx-install",
        reason: why,
        artefact: Some("onnx_install_result.json"),
        bring_back:
            "`verification.custom_ops_compile_ok: true` for the execution provider of the target"
                .to_owned(),
        resume: (
            "propose_plan",
            propose_again(
                ctx,
                ("onnx_install_result_path", json!("<path of onnx_install_result.json>")),
            ),
        ),
    };
    let refused = asked
        .and_then(|name| ctx.catalogue.presets().get(name))
        .filter(|preset| remain(ctx, preset));
    if failed && let Some(refused) = refused {
        let mut pen = sheet.by(ID);
        pen.risk(
            Severity::High,
            format!(
                "`{}` was asked for, but the custom-op library that it needs did not compile",
                refused.id
            ),
            Some("run quark-onnx-install, then propose again with its result".to_owned()),
        );
        pen.hand_off(route(format!(
            "the custom-op library did not compile, and `{}` needs it",
            refused.id
        )));
        return;
    }
    let Some(preset) = sheet.preset.clone().filter(|preset| remain(ctx, preset)) else {
        if failed {
            sheet.by(ID).risk(
                Severity::Low,
                "the custom-op library did not compile, so presets that need it were left out; with torch 2.10 or newer `import quark.onnx` itself needs it",
                Some("run quark-onnx-install to repair it".to_owned()),
            );
        }
        return;
    };
    let ops = list(&preset.custom_ops, 3);
    if verified(ctx).is_none() {
        let mut pen = sheet.by(ID);
        pen.hand_off(route(format!(
            "`{}` writes {ops}, and nobody has tried whether the library compiles",
            preset.id
        )));
        if ctx.insists("preset") {
            pen.risk(
                Severity::High,
                format!("`{}` is kept at your insistence although nobody has tried whether its custom ops compile", preset.id),
                Some("run quark-onnx-install before the plan is executed".to_owned()),
            );
        } else {
            pen.ask(
                "custom_ops",
                format!("`{}` needs Quark's custom-op library. Does it compile on the machine that quantizes?", preset.id),
                vec![Choice { value: "verified".to_owned(), meaning: "it was compiled there; else run quark-onnx-install, or choose a preset without custom ops".to_owned() }],
            );
        }
    }
    sheet.by(ID).risk(
        Severity::Medium,
        format!("the result holds {ops}: whoever runs it has to register Quark's library, plain ONNX Runtime does not load it"),
        Some("register `quark.onnx.get_library_path(<device>)` in the session options of the consumer".to_owned()),
    );
}

//! # What it does
//!
//! Settles where the quantized model will run: what you say, else what the session context holds, else the one
//! target that the goal names, else a question. It is never guessed.
//!
//! # Why
//!
//! Everything else hangs on it. A provider that is not installed is no error: ONNX Runtime silently uses the
//! CPU. The NPU's CNN flow leaves models with fewer than two convolutions on the CPU, and the first NPU
//! generation (PHX, HPT) runs INT8 CNNs only.
//!
//! # Example
//!
//! The goal says "INT8 for CPU" and no other target stands in it, so `cpu`.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Deployment-Target Gating"
//! - amd/RyzenAI-SW#126, #85: at least two convolutions, `minimum_num_of_conv`
//! - amd/RyzenAI-SW#350, #190: PHX and HPT run no transformers
//! - amd/ryzen-ai-documentation 00742a2d, `docs/relnotes.rst`

use serde_json::{Value, json};

use crate::{
    catalogue::targets::Target,
    plan::Choice,
    rules::{
        Context, Stage,
        common::{goal, machine},
        sheet::{Asked, Check, Fallback, Sheet},
    },
    vocab::{Architecture, Origin, Severity},
};

/// The reason code.
pub const ID: &str = "deployment-target";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "deployment_target";

/// Settles the target, or asks.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some((target, origin, said)) = wanted(ctx) else {
        let mut pen = sheet.by(ID);
        pen.leave_open(ROW, "nothing says where the quantized model will run");
        ask(ctx, sheet, None);
        return;
    };
    let (check, route) = verdict(ctx, target);
    let value = json!(target.id);
    let asked = Asked { value: &value, origin, said };
    let fallback = Fallback::Open("where the model will run has to be settled anew".to_owned());
    let stands = sheet.by(ID).settle(ctx, ROW, &asked, check, fallback);
    if stands.is_none() {
        match route {
            Conflict::FewConvs(convs, least) => ask_offload(sheet, convs, least),
            Conflict::Other => ask(ctx, sheet, Some(target)),
        }
        return;
    }
    sheet.target = Some(target);
    sheet.profile = target.profiles.first();
    mismatch(sheet, target);
}

/// The target that was asked for, by whom and in which words.
fn wanted(ctx: &Context<'_>) -> Option<(&'static Target, Origin, String)> {
    let targets = ctx.catalogue.targets();
    let find = |name: &str| targets.find(name);
    if ctx.answer("npu_offload") == Some("cpu") {
        return Some((
            find("cpu")?,
            Origin::User,
            "you chose the CPU for a model with so few convolutions".to_owned(),
        ));
    }
    if let Some(target) = ctx.requested(ROW).and_then(Value::as_str).and_then(find) {
        return Some((target, Origin::User, "you asked for it".to_owned()));
    }
    if let Some(target) = ctx.answer(ROW).and_then(find) {
        return Some((target, Origin::User, "you answered so".to_owned()));
    }
    if let Some(target) = ctx.intent.deployment_target.as_deref().and_then(find) {
        return Some((target, Origin::User, "you asked for it".to_owned()));
    }
    let settled =
        ctx.session_context.and_then(|session| session.constraints.deployment_target.as_deref());
    if let Some(target) = settled.and_then(find) {
        return Some((target, Origin::Environment, "the session context settled it".to_owned()));
    }
    let goal = goal::read(ctx);
    let named: Vec<&Target> =
        targets.all().iter().filter(|target| goal.says(&[target.id.as_str()])).collect();
    let [target] = named[..] else { return None };
    Some((target, Origin::User, format!("the goal names `{}` and no other target", target.id)))
}

enum Conflict {
    FewConvs(u64, u64),
    Other,
}

fn verdict(ctx: &Context<'_>, target: &'static Target) -> (Check, Conflict) {
    let missing = missing_provider(ctx, target);
    if let Some(why) = missing {
        return (Check::Unwise(why), Conflict::Other);
    }
    if let Some((device, _, said)) = machine::npu_device(ctx)
        && target.npu
        && !target.devices.contains(&device.id)
    {
        let why = format!(
            "{said}, and {} runs INT8 CNNs only, so `{}` does not work there",
            device.id, target.id
        );
        return (Check::Unwise(why), Conflict::Other);
    }
    let convs = ctx.count("Conv");
    if let Some(least) = target.min_conv_nodes
        && convs < least
    {
        let why = format!(
            "the graph has {convs} Conv and the NPU's CNN flow leaves models with fewer than {least} on the CPU"
        );
        let check = if ctx.answer("npu_offload") == Some("keep") {
            Check::Risky(
                Severity::High,
                format!(
                    "{why} unless `minimum_num_of_conv` is lowered in the execution provider's configuration"
                ),
            )
        } else {
            Check::Unwise(why)
        };
        return (check, Conflict::FewConvs(convs, least));
    }
    (Check::Fine, Conflict::Other)
}

/// Why the provider that runs the result is not there; `None` when it is, or nobody knows.
fn missing_provider(ctx: &Context<'_>, target: &Target) -> Option<String> {
    // The NPU's provider is on the deployment machine; calibration does not need it.
    if target.npu || target.accelerators.is_empty() {
        return None;
    }
    let provider = &target.execution_provider;
    if machine::has_provider(ctx, provider) == Some(false) {
        return Some(format!(
            "ONNX Runtime here has no {provider}, so it would silently run on the CPU; the package {} brings it",
            target.runtime_packages.join(" or ")
        ));
    }
    let accelerator = machine::accelerator(ctx)?;
    let fits = target.accelerators.iter().any(|known| known == accelerator);
    let installed = machine::has_provider(ctx, provider) == Some(true);
    (!fits && !installed).then(|| {
        format!("the machine has `{accelerator}` and not what {provider} needs, so it would silently run on the CPU")
    })
}

fn ask(ctx: &Context<'_>, sheet: &mut Sheet, refused: Option<&Target>) {
    let goal = goal::read(ctx);
    let on_npu = goal.says(&["npu", "ryzen ai", "ryzen", "ryzenai", "xdna"])
        || machine::npu_device(ctx).is_some();
    let mut options: Vec<&Target> = ctx
        .catalogue
        .targets()
        .all()
        .iter()
        .filter(|target| refused.is_none_or(|refused| refused.id != target.id))
        .filter(|target| missing_provider(ctx, target).is_none())
        .collect();
    let npu =
        if sheet.architecture == Architecture::Transformer { "npu_transformer" } else { "npu_cnn" };
    let accelerator = machine::accelerator(ctx);
    options.sort_by_key(|target| {
        let fits_here = target.accelerators.iter().any(|known| Some(known.as_str()) == accelerator);
        match (on_npu, target.npu) {
            (true, true) => u8::from(target.id != npu),
            (true, false) => 4,
            (false, _) if fits_here => 0,
            (false, false) => 2,
            (false, true) => 3,
        }
    });
    let choices = options
        .iter()
        .map(|target| Choice { value: target.id.to_string(), meaning: target.summary.clone() })
        .collect();
    sheet.by(ID).ask(ROW, "Where will the quantized model run?", choices);
}

fn ask_offload(sheet: &mut Sheet, convs: u64, least: u64) {
    let choice = |value: &str, meaning: String| Choice { value: value.to_owned(), meaning };
    sheet.by(ID).ask(
        "npu_offload",
        format!("The graph has {convs} Conv, so the NPU's CNN flow will not take it. What shall be done?"),
        vec![
            choice("cpu", "plan for the CPU instead".to_owned()),
            choice(
                "keep",
                format!("keep `npu_cnn` and lower `minimum_num_of_conv` (default {least}) in the execution provider's configuration"),
            ),
        ],
    );
}

/// A graph that is not what the NPU flow is made for.
fn mismatch(sheet: &mut Sheet, target: &Target) {
    let (kind, flow, other) = match (target.id.as_str(), sheet.architecture) {
        ("npu_cnn", Architecture::Transformer) => ("a transformer", "CNNs", "npu_transformer"),
        ("npu_transformer", Architecture::Cnn) => ("a CNN", "transformers", "npu_cnn"),
        _ => return,
    };
    sheet.by(ID).risk(
        Severity::Medium,
        format!("the model looks like {kind}, and `{}` is the flow for {flow}, so much of it may stay on the CPU", target.id),
        Some(format!("set `{ROW}` to `{other}` if that is what you mean")),
    );
}

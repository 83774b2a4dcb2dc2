//! # What it does
//!
//! Looks at a source that is quantized already: stops where Quark does not bring its weights back, asks where
//! it does.
//!
//! # Why
//!
//! Quark's ordinary flow turns FP8 with scales of blocks, compressed-tensors and the MXFP4 experts of gpt-oss
//! back into floats. Of AWQ, GPTQ, bitsandbytes, ModelOpt and its own checkpoints it does not, and
//! file-to-file quantization takes them as if they were floats. Quantizing twice loses twice.
//!
//! # Example
//!
//! DeepSeek-V3 ships in FP8: the plan asks whether to quantize that anew. A GPTQ checkpoint goes back to the
//! intake for the float model.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/inverse_quantizer.py:276-340`, `file2file_quantization.py:1280-1312`
//! - 0.13, `get_quantization_config`: two nested configs raise NotImplementedError
//! - vllm-project/llm-compressor#1482, #2560, #2907; QwenLM/Qwen3#698

use serde_json::json;

use crate::{
    catalogue::prequantized::{Prequantized, Recovery},
    plan::Choice,
    rules::{
        Context, Stage,
        common::machine,
        sheet::{Route, Sheet, list, lower, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "quantized-source";
/// When it runs.
pub const STAGE: Stage = Stage::Gate;

/// Stops, asks, or does nothing.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let found = &ctx.torch().quantization;
    if found.is_empty() {
        return;
    }
    let nested =
        found.iter().filter(|one| one.found_in.contains('.') && !one.found_in.ends_with(".json"));
    if nested.clone().count() > 1 {
        let places = list(nested.map(|one| one.found_in.as_str()), 4);
        stop(
            ctx,
            sheet,
            format!(
                "there are several quantization configs ({places}), which Quark stops at with NotImplementedError"
            ),
        );
        return;
    }
    let methods: Vec<&str> = found.iter().filter_map(|one| one.method.as_deref()).collect();
    let Some(method) = methods.first() else {
        stop(
            ctx,
            sheet,
            "its weights are packed or have quantized types, and nothing says how to read them"
                .to_owned(),
        );
        return;
    };
    let Some(known) = ctx.catalogue.prequantized().find(method) else {
        stop(
            ctx,
            sheet,
            format!("it is quantized with `{method}`, which Quark does not bring back to floats"),
        );
        return;
    };
    let release = &sheet.release.id;
    let since = known.in_memory_since.as_ref();
    let in_time = since.is_none_or(|since| ctx.catalogue.not_before(since, release));
    let for_family = known.families.is_empty()
        || known.families.iter().any(|family| *family == *ctx.analysis.model.model_type);
    let in_memory = known.in_memory == Recovery::Recovers && in_time && for_family;
    let in_files = known.file_to_file == Recovery::Recovers;
    if !in_memory && !in_files {
        let reason = format!(
            "it is quantized already ({}), and amd-quark {release} does not bring its weights back to floats",
            lower(&known.summary)
        );
        stop(ctx, sheet, reason);
        return;
    }
    sheet.torch.file_to_file_only = !in_memory;
    sheet.torch.source_needs_one_gpu = known.file_to_file_needs_one_gpu;
    ask(ctx, sheet, known, in_memory);
}

fn ask(ctx: &Context<'_>, sheet: &mut Sheet, known: &Prequantized, in_memory: bool) {
    let how = if in_memory { "loads it as floats" } else { "reads it file by file only" };
    let agreed = ctx.answer("requantize").is_some();
    let missing = known.packages.iter().find(|package| {
        let name = package.split(['>', '=', '<']).next().unwrap_or(package);
        ctx.environment.is_some() && machine::package(ctx, name).is_none()
    });
    let mut pen = sheet.by(ID);
    if !agreed {
        pen.ask(
            "requantize",
            format!("The source is quantized already ({}). Quark {how} and quantizes that anew, with the loss of both. Go on with it?", lower(&known.summary)),
            vec![Choice {
                value: "proceed".to_owned(),
                meaning: "quantize it anew; otherwise propose again with the float model".to_owned(),
            }],
        );
    }
    pen.risk(
        Severity::High,
        format!(
            "the source is quantized already ({}), so the loss of two quantizations adds up",
            lower(&known.summary)
        ),
        Some("prefer the 16-bit model that it was made from, and evaluate with `full`".to_owned()),
    );
    if let Some(package) = missing {
        pen.risk(
            Severity::Medium,
            format!("reading the source needs `{package}`, which the environment does not list"),
            Some(format!("install `{package}`")),
        );
    }
}

fn stop(ctx: &Context<'_>, sheet: &mut Sheet, reason: String) {
    sheet.by(ID).stop(Route {
        skill: "quark-torch-model-intake",
        reason,
        artefact: Some("model_analysis.json"),
        bring_back: "an analysis of the float model that this one was made from".to_owned(),
        resume: (
            "propose_plan",
            propose_again(ctx, ("analysis_path", json!("<path of the new model_analysis.json>"))),
        ),
    });
}

//! # What it does
//!
//! Says where layers that are excluded come out quantized nevertheless.
//!
//! # Why
//!
//! Quark loads gpt-oss as a model in MXFP4, whatever the folder holds, and quantizes excluded layers back to what it
//! takes them to have been. Only modules that the config of a quantized source names as not quantized are spared.
//!
//! # Example
//!
//! A gpt-oss in BF16 has no `modules_to_not_convert`, so its `lm_head` comes out in MXFP4 although it is excluded.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/export/prequantized_layer_handler.py:52-101,164-202` (measured on a tiny gpt-oss in BF16)
//! - 0.13, `quark/torch/utils/llm/model_preparation.py:529-533`

use crate::{
    facts::torch::ExistingQuantization,
    rules::{
        Context, Stage,
        sheet::{Sheet, list},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "excluded-anyway";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Looks whether the exclusions hold.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(becomes) = sheet.torch.family.and_then(|family| family.excluded_become.as_ref())
    else {
        return;
    };
    let spares = |one: &ExistingQuantization| !one.excluded.is_empty();
    if !ctx.catalogue.not_before(&becomes.since, &sheet.release.id)
        || sheet.torch.strategy == "file_to_file"
        || sheet.torch.excludes.is_empty()
        || ctx.torch().quantization.iter().any(spares)
    {
        return;
    }
    sheet.torch.excluded_become = ctx.catalogue.schemes().get(becomes.scheme.as_str());
    let text = format!(
        "Quark takes any `{}` for a model in MXFP4, so what is excluded ({}) comes out as `{}`, and not in float",
        ctx.analysis.model.model_type,
        list(&sheet.torch.excludes, 3),
        becomes.scheme
    );
    let hint = format!("run `quantize_quark.py` with {}", becomes.unless);
    sheet.by(ID).risk(Severity::High, text, Some(hint));
}

//! # What it does
//!
//! Estimates the result: bytes of each part of the weights, bits a parameter, the KV cache of a token, and
//! whether it fits the devices.
//!
//! # Why
//!
//! Whoever agrees should know what comes out, and the validator that runs afterwards needs something to compare
//! with: a plan that silently left most layers alone shows in the size.
//!
//! # Example
//!
//! Of 16.1 GB in 16 bits `fp8` leaves 8.7 GB: 7.2 GB of weights, 1.5 GB of embeddings and head.
//!
//! # Sources
//!
//! - Shapes from the headers of the weights, or from the config of families with a known naming
//! - 0.13, what an export stores for each scheme (measured)

use crate::{
    catalogue::algorithms::TimeClass,
    estimate,
    facts::torch::Exactness,
    plan::{Fits, Part},
    rules::{
        Context, Stage,
        sheet::{Sheet, size},
        torch::{choice::Target, wishes},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "result-size";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Tokens of context when none are stated.
const CONTEXT: u64 = 8192;
/// Bytes that are read and written in less than a minute.
const SECONDS: u64 = 20_000_000_000;

/// Estimates.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(scheme) = sheet.torch.scheme else { return };
    let value_bytes = if sheet.torch.kv_cache { 1 } else { 2 };
    let per_token = estimate::torch::kv_cache_per_token(ctx.analysis, ctx.torch(), value_bytes);
    sheet.expected.kv_cache_bytes_per_token = per_token;
    time(ctx, sheet, scheme.needs_calibration_data);
    let Some(modules) = ctx.modules else {
        sheet.expected.weight_bytes_before = estimate::model_bytes(ctx.analysis);
        return;
    };
    let sizes = estimate::torch::sizes(modules, sheet.torch.written(scheme));
    sheet.expected.linear_modules = Some(modules.linears.len() as u64);
    sheet.expected.quantized_modules = Some(sizes.quantized);
    if sizes.quantized == 0 {
        sheet.by(ID).risk(
            Severity::High,
            "no layer of the model is quantized by this plan",
            Some("look at `exclude_layers`, and at how the experts are stored".to_owned()),
        );
    }
    if modules.total_bytes == 0 || scheme.storage.is_none() {
        return;
    }
    // From a config the weights are known as floats only, and this source is quantized.
    let as_stored = modules.exactness == Exactness::Weights || ctx.torch().quantization.is_empty();
    sheet.expected.weight_bytes_before =
        if as_stored { Some(sizes.before) } else { estimate::model_bytes(ctx.analysis) };
    sheet.expected.weight_bytes_after = Some(sizes.after);
    sheet.expected.parts = sizes
        .parts
        .iter()
        .map(|(name, bytes)| Part { name: name.clone(), bytes: *bytes })
        .collect();
    sheet.expected.centibits_per_weight =
        (sizes.after.saturating_mul(800)).checked_div(sizes.parameters);
    fits(ctx, sheet, sizes.after, per_token);
}

fn time(ctx: &Context<'_>, sheet: &mut Sheet, calibrates: bool) {
    let slowest = sheet.torch.algorithms.iter().map(|one| one.time).max();
    let bytes = estimate::torch::loaded(ctx.analysis).bytes();
    let large = bytes.is_none_or(|bytes| bytes > SECONDS);
    let least = if calibrates || sheet.torch.kv_cache || large {
        TimeClass::Minutes
    } else {
        TimeClass::Seconds
    };
    let word = match slowest.max(Some(least)) {
        Some(TimeClass::Hours) => "hours",
        Some(TimeClass::Minutes) => "minutes",
        _ => "seconds",
    };
    sheet.expected.time_class = Some(word.to_owned());
}

fn fits(ctx: &Context<'_>, sheet: &mut Sheet, after: u64, per_token: Option<u64>) {
    let stated = wishes::read(ctx).context;
    let longest = ctx.torch().max_position_embeddings.unwrap_or(CONTEXT);
    let context = stated.unwrap_or_else(|| longest.min(CONTEXT));
    let cache = per_token.map_or(0, |bytes| bytes.saturating_mul(context));
    let needed = after.saturating_add(cache);
    let targets: Vec<Target> = sheet.torch.devices.clone();
    for target in targets {
        let Some(memory) = target.memory else { continue };
        let sharing = target.sharing(ctx);
        let all = memory.saturating_mul(sharing);
        let fits = needed <= all / 10 * 9;
        let context = if per_token.is_some() { context } else { 0 };
        sheet.expected.fits.push(Fits {
            device: target.name.clone(),
            memory_bytes: all,
            needed_bytes: needed,
            context,
            fits,
        });
        if !fits {
            let text = format!(
                "the result needs about {} with the cache of {context} tokens, and {sharing} x {} have {}",
                size(needed),
                target.name,
                size(all)
            );
            sheet.by(ID).risk(
                Severity::Medium,
                text,
                Some("state `tensor_parallel`, or take a smaller scheme".to_owned()),
            );
        }
    }
}

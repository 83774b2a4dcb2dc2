//! # What it does
//!
//! Writes the whole `FastFinetune` block when AdaRound or AdaQuant runs: iterations, learning rate, device, and
//! no more samples than calibration has.
//!
//! # Why
//!
//! The class, the named configs and quark-cli have different defaults, so a block that is not complete means
//! another run each time. `cuda:0` on a machine without a GPU fails; AMD GPUs are `cuda:0` too.
//!
//! # Example
//!
//! AdaRound runs and no GPU is known, so `OptimDevice` is `cpu`; calibration has 200 samples, so `DataSize` is 200.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/quantization/config/custom_config.py:203`, `algorithm.py:222`, `:414`

use serde_json::{Map, Value, json};

use crate::rules::{Context, Stage, common::machine, sheet::Sheet};

/// The reason code.
pub const ID: &str = "fast-finetune";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// The key in `extra_options`.
const BLOCK: &str = "FastFinetune";

/// Writes the block.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(algorithm) =
        sheet.algorithms.iter().copied().find(|algorithm| algorithm.fast_finetune)
    else {
        return;
    };
    let Some(preset) = sheet.preset.clone() else { return };
    let name = algorithm.id.as_str().to_lowercase();
    let of = |options: &Map<String, Value>| {
        options
            .get(BLOCK)
            .and_then(Value::as_object)
            .filter(|block| block.get("OptimAlgorithm") == Some(&json!(name)))
            .cloned()
    };
    // Named configs agree on the numbers of each algorithm, so any of them is the model.
    let model = of(&preset.extra_options).or_else(|| {
        ctx.catalogue.presets().all().iter().find_map(|preset| of(&preset.extra_options))
    });
    let Some(mut block) = model else { return };
    let (device, fact) = machine::torch_device(ctx);
    block.insert("OptimDevice".to_owned(), json!(device));
    block.insert("InferDevice".to_owned(), json!(device));
    let samples = sheet.value("calibration.data_size").and_then(Value::as_u64);
    let own = block.get("DataSize").and_then(Value::as_u64);
    if let Some(size) = samples.map(|samples| own.map_or(samples, |own| own.min(samples))) {
        block.insert("DataSize".to_owned(), json!(size));
    }
    let iterations = block.get("NumIterations").cloned().unwrap_or_default();
    let reason = format!(
        "{} runs {iterations} iterations on {device}, since {fact}; DataSize is no more than the calibration samples",
        algorithm.id
    );
    sheet.by(ID).option(BLOCK, Value::Object(block), reason);
}

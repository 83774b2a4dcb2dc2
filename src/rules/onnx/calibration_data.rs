//! # What it does
//!
//! Settles how many samples calibration sees and how many at once, lists what the reader must yield for each
//! input, and asks for data when there is none.
//!
//! # Why
//!
//! Static quantization is only as good as its samples. Every static preset demands a reader, also those whose
//! result does not depend on the data. Quark itself takes all samples unless `CalibDataSize` is set. Histogram
//! methods fail on batches larger than one.
//!
//! # Example
//!
//! You have 64 samples, so `calibration.data_size` is 64; the method keeps histograms, so the batch is 1.
//!
//! # Sources
//!
//! - 0.13, `quark/onnx/calibration/data_readers.py:572` (measured: ValueError without a reader)
//! - 0.13, `quark/onnx/calibration/data_readers.py:58-77`: samples are transposed to NHWC when the model is (measured)
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Recovery"
//! - huggingface/optimum#409: batches with Percentile; ultralytics/ultralytics#25260: data of another domain

use serde_json::json;

use crate::{
    catalogue::presets::Preset,
    facts::TensorFacts,
    plan::{CalibrationInput, Choice},
    rules::{
        Context, Stage,
        common::machine,
        onnx::{npu_batch, shapes},
        sheet::{Check, Sheet},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "calibration-data";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

const SIZE: &str = "calibration.data_size";
const BATCH: &str = "calibration.batch_size";
/// What the decision table of Quark's skill takes unless something speaks for another number.
const USUAL: u64 = 200;
/// "A few dozen": below this the ranges depend on chance.
const FEW: u64 = 32;

/// Settles the sizes, and asks for data.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(preset) = sheet.preset.clone() else {
        let mut pen = sheet.by(ID);
        pen.leave_open(SIZE, "it follows from the preset, which is open");
        pen.leave_open(BATCH, "it follows from the preset, which is open");
        return;
    };
    let needs = preset.uses_calibration_data
        || sheet.algorithms.iter().any(|algorithm| algorithm.needs_data);
    let size = default_size(ctx, &preset, needs);
    let data = ctx.intent.calibration_data.as_ref();
    let known = data.and_then(|data| data.samples);
    let dynamic = preset.dynamic;
    let check = move |asked: &serde_json::Value| {
        let asked = asked.as_u64().unwrap_or(0);
        if dynamic {
            return Check::Risky(Severity::Low, "a dynamic preset uses no samples".to_owned());
        }
        if asked == 0 {
            return Check::Impossible("a static preset demands at least one sample".to_owned());
        }
        if let Some(known) = known.filter(|known| asked > *known) {
            return Check::Impossible(format!("there are only {known} samples"));
        }
        Check::Fine
    };
    let taken = sheet.by(ID).settle_or(ctx, SIZE, size, check).as_u64().unwrap_or(0);
    batch(ctx, sheet);
    if dynamic {
        return;
    }
    sheet.expected.calibration_inputs =
        ctx.onnx().inputs.iter().map(|input| reader_yields(sheet, ctx, input)).collect();
    ask(ctx, sheet, &preset, needs, taken);
}

fn default_size(
    ctx: &Context<'_>,
    preset: &Preset,
    needs: bool,
) -> (serde_json::Value, Origin, String) {
    if preset.dynamic {
        return (
            json!(0),
            Origin::Rule,
            format!(
                "`{}` quantizes activations while the model runs, so no samples are used",
                preset.id
            ),
        );
    }
    if !needs {
        let reason = format!(
            "the result of `{}` does not depend on the data, but Quark demands a reader, so one sample",
            preset.id
        );
        return (json!(1), Origin::Rule, reason);
    }
    if let Some(own) = preset.extra_options.get("CalibDataSize").and_then(|size| size.as_u64()) {
        return (
            json!(own),
            Origin::Rule,
            format!("`{}` itself calibrates on {own} sample (`CalibDataSize`)", preset.id),
        );
    }
    let known = ctx.intent.calibration_data.as_ref().and_then(|data| data.samples);
    let mut size = USUAL;
    let mut reason =
        format!("{USUAL} samples are usual; without this number Quark would take all there are");
    let mut origin = Origin::Default;
    if let Some(known) = known.filter(|known| *known < USUAL) {
        size = known;
        reason = format!("you have {known} samples, so all of them");
        origin = Origin::User;
    }
    let memory = machine::memory_gb(ctx);
    if let (Some(memory), Some(bytes)) = (memory, sample_bytes(ctx)) {
        // A quarter of the memory for inputs leaves room for the activations.
        let fits = ((memory * 0.25e9) as u64 / bytes.max(1)).max(1);
        if fits < size {
            size = fits;
            reason = format!(
                "one sample has {:.1} MB and the machine {memory} GB, so {fits} samples, which fill a quarter of it",
                bytes as f64 / 1e6
            );
            origin = Origin::Environment;
        }
    }
    (json!(size), origin, reason)
}

/// Bytes of one sample of all inputs, when every size is known.
fn sample_bytes(ctx: &Context<'_>) -> Option<u64> {
    let inputs = &ctx.onnx().inputs;
    if inputs.is_empty() {
        return None;
    }
    inputs.iter().try_fold(0_u64, |sum, input| {
        let elements = input
            .shape
            .as_ref()?
            .iter()
            .try_fold(1_u64, |all, dim| all.checked_mul(dim.fixed()?))?;
        let width = match input.dtype.as_str() {
            "float32" | "int32" | "uint32" => 4,
            "float16" | "bfloat16" | "int16" | "uint16" => 2,
            "int64" | "uint64" | "float64" => 8,
            _ => 1,
        };
        sum.checked_add(elements.checked_mul(width)?)
    })
}

fn batch(ctx: &Context<'_>, sheet: &mut Sheet) {
    let fixed = npu_batch::fixed(ctx, sheet);
    let npu = sheet.target.and_then(|target| target.batch);
    let histogram = sheet.method.is_some_and(|method| method.histogram);
    let default = match fixed {
        Some(n) if n > 1 => (
            json!(n),
            Origin::Analysis,
            format!("the model has a fixed batch of {n}, so the reader must yield {n} at once"),
        ),
        _ => (
            json!(1),
            Origin::Default,
            "one sample at a time needs the least memory and suits every method".to_owned(),
        ),
    };
    let check = move |asked: &serde_json::Value| {
        let asked = asked.as_u64().unwrap_or(1);
        if let Some(n) = fixed.filter(|n| *n != asked) {
            return Check::Impossible(format!("the batch of the model is fixed to {n}"));
        }
        if let Some(n) = npu.filter(|n| *n != asked) {
            return Check::Unwise(format!("the target runs batch {n} only"));
        }
        if histogram && asked > 1 {
            return Check::Unwise(
                "the method keeps histograms and fails on batches larger than one".to_owned(),
            );
        }
        Check::Fine
    };
    sheet.by(ID).settle_or(ctx, BATCH, default, check);
}

fn reader_yields(sheet: &Sheet, ctx: &Context<'_>, input: &TensorFacts) -> CalibrationInput {
    let fixed = sheet.fixed_shapes.get(&input.name);
    let fixed = fixed.map(|dims| dims.iter().map(u64::to_string).collect::<Vec<_>>());
    let shape = match fixed.or_else(|| shapes::dims(input)) {
        None => "of unknown rank".to_owned(),
        // With `ConvertNCHWToNHWC` too: Quark turns each sample over itself (`CachedDataReader`).
        Some(dims) => dims.join("x"),
    };
    let half = input.dtype == "float16" && sheet.option_is_on(ctx, "ConvertFP16ToFP32");
    let dtype = if half { "float32".to_owned() } else { input.dtype.clone() };
    CalibrationInput { name: input.name.clone(), dtype, shape }
}

fn ask(ctx: &Context<'_>, sheet: &mut Sheet, preset: &Preset, needs: bool, taken: u64) {
    let data = ctx.intent.calibration_data.as_ref();
    let answer = ctx.answer("calibration_data");
    let available = data.and_then(|data| {
        data.available.or_else(|| {
            (data.samples.is_some() || data.path.is_some() || data.dataset.is_some())
                .then_some(true)
        })
    });
    let random_option = || Choice {
        value: "random".to_owned(),
        meaning: "random numbers: the ranges then mean nothing, only for trying out".to_owned(),
    };
    let option = ctx
        .requested("onnx_specific.extra_options")
        .and_then(|options| options.get("UseRandomData"));
    let random = answer == Some("random") || option == Some(&json!(true));
    let mut pen = sheet.by(ID);
    if random {
        pen.option(
            "UseRandomData",
            true,
            "you chose random numbers, as there is no calibration data",
        );
        if needs {
            pen.risk(
                Severity::High,
                "calibration runs on random numbers: the ranges have nothing to do with real inputs, so expect a useless result",
                Some("bring a few dozen real samples".to_owned()),
            );
        }
        return;
    }
    if !needs {
        if available == Some(false) {
            pen.option("UseRandomData", true, format!("there is no data and the result of `{}` does not depend on it, but Quark demands a reader", preset.id));
        }
        return;
    }
    if available == Some(false) && answer.is_none() {
        pen.ask(
            "calibration_data",
            format!(
                "Static quantization needs representative inputs to find scales, and there are none. Which data can be used (path or data set; at least a few dozen samples, {USUAL} are usual)?"
            ),
            vec![random_option()],
        );
        pen.risk(
            Severity::High,
            "there is no calibration data, so the scales of a static preset cannot be found",
            Some("bring a few dozen samples, or choose a dynamic preset such as `UINT8_DYNAMIC_QUANT`".to_owned()),
        );
        return;
    }
    if available.is_none() && answer.is_none() {
        pen.wonder(
            "calibration_data",
            "Which data will calibrate it (path or data set, and how many samples)?",
            vec![random_option()],
        );
        pen.risk(
            Severity::Low,
            format!("nothing is known of calibration data; the plan counts on {taken} representative samples"),
            Some("say which data there is".to_owned()),
        );
    }
    let in_domain = match ctx.answer("calibration_domain") {
        Some(answer) => Some(answer == "yes"),
        None => data.and_then(|data| data.in_domain),
    };
    match in_domain {
        Some(false) => pen.risk(
            Severity::Medium,
            "the calibration data does not look like what the model will see, which can cost all that fine-tuning gains",
            Some("calibrate on inputs from the application".to_owned()),
        ),
        None if available == Some(true) || answer.is_some() => {
            let choice = |value: &str, meaning: &str| Choice { value: value.to_owned(), meaning: meaning.to_owned() };
            pen.wonder(
                "calibration_domain",
                "Does the calibration data look like what the model will see in use?",
                vec![choice("yes", "it comes from the application"), choice("no", "it is other data; a risk is recorded")],
            );
        }
        _ => {}
    }
    let own = preset.extra_options.contains_key("CalibDataSize");
    if taken < FEW && !own {
        pen.risk(
            Severity::Medium,
            format!("{taken} samples are few for finding ranges; a few dozen are the least that is advised"),
            Some(format!("raise `{SIZE}`")),
        );
    }
}

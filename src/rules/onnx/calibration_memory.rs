//! # What it does
//!
//! Settles whether calibration saves memory (`CalibOptimizeMem`) and how many processes it uses
//! (`CalibWorkerNum`), from the defaults of the method in this release. Only what differs is set.
//!
//! # Why
//!
//! Methods keep activations of all samples; cached on disk they fit into memory. More processes are faster and
//! take more of it. Not every method reads both options.
//!
//! # Example
//!
//! The method is MinMax, which does not read `CalibWorkerNum`, so one process.
//!
//! # Sources
//!
//! - 0.13, 0.12.post1, 0.11.2, `quark/onnx/calibration/calibrators.py:52-104`

use serde_json::{Value, json};

use crate::{
    catalogue::methods::{Method, MethodParam},
    rules::{
        Context, Stage,
        sheet::{Check, Sheet},
    },
    vocab::{Origin, ReleaseId, Severity},
};

/// The reason code.
pub const ID: &str = "calibration-memory";
/// When it runs.
pub const STAGE: Stage = Stage::Tune;

/// Settles both rows.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    row(ctx, sheet, "calibration.optimize_mem", "CalibOptimizeMem", json!(false));
    row(ctx, sheet, "calibration.worker_num", "CalibWorkerNum", json!(1));
}

fn row(ctx: &Context<'_>, sheet: &mut Sheet, row: &'static str, option: &'static str, none: Value) {
    let method = sheet.method;
    let read = method.and_then(|method| param(ctx, method, option, &sheet.release.id));
    let default = read.map(|param| param.default.clone());
    let reason = match (method, &default) {
        (None, _) => "nothing is calibrated, so it has no effect".to_owned(),
        (Some(method), None) => format!("{} does not read `{option}`", method.id),
        (Some(method), Some(value)) => {
            format!("{value} is the default of `{option}` for {}", method.id)
        }
    };
    let value = default.clone().unwrap_or(none);
    let ignored = default.is_none();
    let taken = sheet.by(ID).settle_or(ctx, row, (value.clone(), Origin::Default, reason), |_| {
        if ignored {
            Check::Risky(
                Severity::Low,
                format!("the method does not read `{option}`, so it has no effect"),
            )
        } else {
            Check::Fine
        }
    });
    if taken != value && !ignored {
        sheet.by(ID).option(option, taken, "you asked for it");
    }
}

/// What a method says about an option in a release.
fn param<'m>(
    ctx: &Context<'_>,
    method: &'m Method,
    option: &str,
    release: &ReleaseId,
) -> Option<&'m MethodParam> {
    let order = |id: &ReleaseId| ctx.catalogue.releases().ids().position(|known| *id == *known);
    let at = order(release)?;
    method.params.iter().find(|param| {
        param.option == *option
            && param.since.as_ref().and_then(order).is_none_or(|since| since <= at)
            && param.until.as_ref().and_then(order).is_none_or(|until| at <= until)
    })
}

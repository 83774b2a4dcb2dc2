//! Writing: the plan file and the artefacts beside it.
//!
//! [`emit`] is the only function that writes a plan, and it takes a `&Confirmed`. Everything lands inside
//! the allowed roots, never through a symlink, never over another file unasked, and whole or not at all.

pub mod destination;

use std::cmp::Reverse;

use crate::{
    emit::destination::{Destination, EmitError},
    plan::{
        Risk,
        quant_plan::{Provenance, QuantPlan, assemble},
    },
    session::Confirmed,
    vocab::{Channel, RuleId, Severity},
};

/// The plan that a confirmed session makes, with its text.
///
/// # Errors
///
/// When the draft does not make a plan.
pub fn plan_of(
    confirmed: &Confirmed,
    analysis_ref: &str,
) -> Result<(QuantPlan, String), EmitError> {
    let draft = confirmed.draft();
    let provenance = Provenance {
        quantplan_version: confirmed.quantplan_version().to_owned(),
        catalogue_version: draft.catalogue_version.clone(),
        session_id: confirmed.id().clone(),
        revision: confirmed.revision(),
        digest: confirmed.confirmation().digest.clone(),
        inputs: confirmed.inputs().to_vec(),
        confirmation: confirmed.confirmation().clone(),
    };
    let mut plan = assemble(draft, analysis_ref, provenance)?;
    if let Some(risk) = relayed(confirmed) {
        plan.risks_mut().push(risk);
        plan.risks_mut().sort_by_key(|risk| Reverse(risk.severity));
    }
    let mut text = serde_json::to_string_pretty(&plan).unwrap_or_default();
    text.push('\n');
    Ok((plan, text))
}

/// What a plan says of itself when an agent passed the yes on.
fn relayed(confirmed: &Confirmed) -> Option<Risk> {
    (confirmed.confirmation().channel == Channel::Relayed).then(|| Risk {
        severity: Severity::Medium,
        message: "the confirmation was passed on by an agent; no person was asked here".to_owned(),
        recovery_hint: Some("have the user read the plan before it is carried out".to_owned()),
        rule: RuleId::new("relayed-answer"),
    })
}

/// Writes the plan that somebody confirmed.
///
/// A file with the very same content counts as written: that is what a process leaves behind that died
/// between writing the file and noting it in the log.
///
/// # Errors
///
/// When the draft does not make a plan, another file is there and `overwrite` was not asked for, or the
/// file system refuses.
pub fn emit(
    confirmed: &Confirmed,
    analysis_ref: &str,
    destination: &Destination,
    overwrite: Overwrite,
) -> Result<(), EmitError> {
    let (_, text) = plan_of(confirmed, analysis_ref)?;
    destination.write(text.as_bytes(), overwrite)
}

/// What to do with another file at the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Leave it and fail.
    No,
    /// Replace it.
    Yes,
}

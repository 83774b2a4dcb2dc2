//! Writing: the plan file and the artefacts beside it.
//!
//! [`prepare`] is the only way to a plan that can be written, and it takes a `&Confirmed`. Everything lands
//! inside the allowed roots, never through a symlink, never over another file unasked, and whole or not at all.

pub mod destination;

use std::cmp::Reverse;

use crate::{
    emit::destination::{Destination, EmitError},
    plan::{
        Risk,
        digest::Digest,
        quant_plan::{Provenance, QuantPlan, assemble},
    },
    session::Confirmed,
    vocab::{Channel, RuleId, Severity},
};

/// A plan that somebody confirmed, ready to be written; only [`prepare`] makes one.
#[derive(Debug, Clone)]
pub struct Prepared {
    plan: QuantPlan,
    text: String,
    sha256: Digest,
}

/// The plan that a confirmed session makes, with its text.
///
/// # Errors
///
/// When the draft does not make a plan.
pub fn prepare(confirmed: &Confirmed, analysis_ref: &str) -> Result<Prepared, EmitError> {
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
    let sha256 = Digest::of_bytes(text.as_bytes());
    Ok(Prepared { plan, text, sha256 })
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

impl Prepared {
    /// What it says.
    pub fn plan(&self) -> &QuantPlan {
        &self.plan
    }

    /// The bytes of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The digest of the file.
    pub fn sha256(&self) -> &Digest {
        &self.sha256
    }

    /// Whether the file is there already, with just this content.
    pub fn is_at(&self, destination: &Destination) -> bool {
        destination.holds(self.text.as_bytes())
    }

    /// Writes the file.
    ///
    /// A file with the very same content counts as written: that is what a process leaves behind that died
    /// between writing the file and noting it in the log.
    ///
    /// # Errors
    ///
    /// When another file is there and `overwrite` was not asked for, or the file system refuses.
    pub fn emit(&self, destination: &Destination, overwrite: Overwrite) -> Result<(), EmitError> {
        destination.write(self.text.as_bytes(), overwrite)
    }
}

/// What to do with another file at the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Leave it and fail.
    No,
    /// Replace it.
    Yes,
}

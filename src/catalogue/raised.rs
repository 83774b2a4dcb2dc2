//! Messages that libraries raise, by the file that raises them: who says it tells what it is about.
//!
//! A text is the longest fixed part of a message, folded as [`crate::catalogue::recoveries`] folds texts.
//! Only those are listed that one half of Quark alone raises.

use serde::{Deserialize, Serialize};

use crate::vocab::{Backend, SkillId};

/// The messages of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raised {
    /// The newest release that has them: of amd-quark, or another package with its version.
    pub release: String,
    /// The file in the package.
    pub path: String,
    /// The half of Quark.
    pub backend: Backend,
    /// Skills to go to, the likeliest first.
    pub skills: Vec<SkillId>,
    /// Parts of messages.
    pub texts: Vec<String>,
}

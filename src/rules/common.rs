//! Rules for both halves of Quark, and what rules need to read words, versions and machines.

pub mod evaluation_intent;
pub mod goal;
pub mod machine;
pub mod quark_release;
pub mod versions;

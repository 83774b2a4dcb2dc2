//! # What it does
//!
//! Writes that the plan is for Quark-ONNX.
//!
//! # Why
//!
//! The plan goes to a step that runs either `quark.onnx` or `quark.torch`, and has to know which.
//!
//! # Example
//!
//! `backend` is `onnx`, because the model is an `.onnx` file.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/onnx/quark-onnx-quant-plan/SKILL.md`, "Decision Table"

use crate::{
    rules::{Context, Stage, sheet::Sheet},
    vocab::Origin,
};

/// The reason code.
pub const ID: &str = "backend";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

/// Writes the row.
pub fn apply(_: &Context<'_>, sheet: &mut Sheet) {
    sheet.by(ID).decide(
        "backend",
        "onnx",
        Origin::Analysis,
        "the model is an ONNX file, and an ONNX file is to come out",
    );
}

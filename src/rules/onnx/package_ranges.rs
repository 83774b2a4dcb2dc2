//! # What it does
//!
//! Compares the installed Python, onnx and ONNX Runtime with the ranges of the release, and sends to
//! `quark-onnx-install` when one is outside.
//!
//! # Why
//!
//! Quark breaks on versions that it does not know, often late and with an error that names something else.
//!
//! # Example
//!
//! onnx 1.19 is installed and amd-quark 0.13 needs 1.21 to 1.22, so the installation comes first.
//!
//! # Sources
//!
//! - amd_quark-0.13, -0.12.post1, -0.11.2 `dist-info/METADATA`
//! - amd/RyzenAI-SW#287, #235; microsoft/Olive#629

use serde_json::json;

use crate::{
    rules::{
        Context, Stage,
        common::{machine, versions},
        sheet::{Route, Sheet, propose_again},
    },
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "package-ranges";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Compares.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let release = sheet.release;
    let installed = |field: Option<&'_ str>, package: &str| {
        field.map(str::to_owned).or_else(|| machine::package(ctx, package).map(str::to_owned))
    };
    let python = ctx.environment.and_then(|environment| environment.environment.python.as_deref());
    let python =
        python.map(|text| text.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned());
    let install = ctx.install;
    let found = [
        ("Python", python, Some(release.python.as_str())),
        (
            "onnx",
            installed(install.and_then(|i| i.onnx_version.as_deref()), "onnx"),
            release.onnx.as_deref(),
        ),
        (
            "ONNX Runtime",
            installed(install.and_then(|i| i.onnxruntime_version.as_deref()), "onnxruntime")
                .or_else(|| installed(None, "onnxruntime-gpu")),
            release.onnxruntime.as_deref(),
        ),
    ];
    let outside: Vec<String> = found
        .iter()
        .filter_map(|(name, version, range)| {
            let (version, range) = (version.as_deref()?, (*range)?);
            (versions::within(version, range) == Some(false))
                .then(|| format!("{name} is {version} and must be {range}"))
        })
        .collect();
    let failed = install.and_then(|install| install.status.as_deref()) == Some("failed");
    if outside.is_empty() && !failed {
        return;
    }
    let what = if outside.is_empty() {
        let why = install
            .and_then(|install| install.failure_reason.as_deref())
            .unwrap_or("it does not say why");
        format!("the installation failed ({})", why.chars().take(200).collect::<String>())
    } else {
        format!(
            "amd-quark {} does not go with what is installed: {}",
            release.id,
            outside.join(", ")
        )
    };
    let mut pen = sheet.by(ID);
    pen.risk(
        Severity::High,
        what.clone(),
        Some("run quark-onnx-install before the plan is executed".to_owned()),
    );
    pen.hand_off(Route {
        skill: "quark-onnx-install",
        reason: what,
        artefact: Some("onnx_install_result.json"),
        bring_back: format!("an installation within the ranges of amd-quark {}", release.id),
        resume: (
            "propose_plan",
            propose_again(
                ctx,
                ("onnx_install_result_path", json!("<path of onnx_install_result.json>")),
            ),
        ),
    });
}

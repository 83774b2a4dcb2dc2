//! # What it does
//!
//! Compares the versions of transformers that are stated (installed, and the one that wrote the config) with what
//! the release and the family ask for.
//!
//! # Why
//!
//! A class that transformers does not have, or not any more, fails when the model is loaded.
//!
//! # Example
//!
//! transformers 4.52 is installed and amd-quark 0.13 asks for `>5,<5.17`: a high risk.
//!
//! # Sources
//!
//! - amd_quark-0.13 `dist-info/METADATA`; `quark/torch/utils/llm/model_preparation.py`
//! - amd/RyzenAI-SW#211; amd/Quark#18

use crate::{
    rules::{
        Context, Stage,
        common::{machine, versions},
        sheet::Sheet,
    },
    vocab::{Severity, versions::within},
};

/// The reason code.
pub const ID: &str = "tool-versions";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Compares.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let installed = machine::package(ctx, "transformers");
    let wrote = ctx.analysis.model.transformers_version.as_deref();
    let release = sheet.release;
    let least = sheet.torch.family.and_then(|family| family.transformers.as_deref());
    let family = sheet.torch.family.map_or("", |family| family.id.as_str());
    let old = ctx.catalogue.releases().ids().position(|id| id == "0.12.post1")
        > ctx.catalogue.releases().ids().position(|id| release.id == *id);
    let kimi = family.starts_with("kimi") && old;
    let mut pen = sheet.by(ID);
    if let (Some(version), Some(range)) = (installed, release.transformers.as_deref())
        && within(version, range) == Some(false)
    {
        pen.risk(
            Severity::High,
            format!(
                "transformers {version} is installed, and amd-quark {} asks for {range}",
                release.id
            ),
            Some(format!("install transformers {range}")),
        );
    }
    if let Some(least) = least {
        if installed.is_some_and(|version| versions::at_least(version, least) == Some(false)) {
            pen.risk(
                Severity::High,
                format!(
                    "`{family}` needs transformers {least} or newer, and {} is installed",
                    installed.unwrap_or_default()
                ),
                Some(format!("install transformers {least} or newer")),
            );
        } else if installed.is_none() {
            pen.risk(
                Severity::Low,
                format!("`{family}` needs transformers {least} or newer"),
                None,
            );
        }
    }
    if let (Some(wrote), Some(installed)) = (wrote, installed)
        && versions::at_least(installed, wrote) == Some(false)
    {
        pen.risk(
            Severity::Medium,
            format!(
                "transformers {wrote} wrote the config, and the older {installed} is installed"
            ),
            None,
        );
    }
    if kimi {
        pen.risk(
            Severity::Medium,
            format!("amd-quark {} wrote incomplete configs for this family (amd/Quark#18); 0.12.post1 and newer do not", release.id),
            Some("set `quark_version` to 0.13".to_owned()),
        );
    }
}

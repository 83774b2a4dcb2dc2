//! # What it does
//!
//! Chooses the release of amd-quark that the plan is for: the one asked for, else the installed one, else the
//! newest that the catalogue knows.
//!
//! # Why
//!
//! Releases differ in what they have: element types, keys of `extra_options`, the whole interface of
//! AutoMixprecision. A plan for the wrong one fails or is silently read differently.
//!
//! # Example
//!
//! `onnx_install_result.json` says amd-quark 0.12.post1, so the plan is for `0.12.post1`, and an
//! `AutoMixprecision` block with `TargetLayerConfig`, which only 0.13 has, is refused.
//!
//! # Sources
//!
//! - amd_quark-0.11.2, -0.12.post1 and -0.13 `dist-info/METADATA`
//! - 0.13 and 0.12.post1, `quark/onnx/quantization/config/custom_config.py`, `algorithm.py` (compared)

use crate::{
    catalogue::{Entry, releases::Release},
    rules::{
        Context, Stage,
        common::{machine, versions},
        release_named,
        request::Defect,
        sheet::Sheet,
    },
    vocab::{DecisionId, Origin, Severity, near_names},
};

/// The reason code.
pub const ID: &str = "quark-release";
/// When it runs.
pub const STAGE: Stage = Stage::Gate;

/// A release, and why.
#[derive(Debug)]
pub struct Pick {
    /// The release.
    pub release: &'static Release,
    origin: Origin,
    reason: String,
    concern: Option<String>,
}

/// The release that a request is planned for.
///
/// # Errors
///
/// When a release is asked for by a name that is no version.
pub fn pick(ctx: &Context<'_>) -> Result<Pick, Defect> {
    let newest = ctx.catalogue.newest_release();
    let Some((name, origin, who)) = named(ctx) else {
        return Ok(Pick {
            release: newest,
            origin: Origin::Default,
            reason: format!(
                "no release is named or installed, so the newest known, `{}`",
                newest.id
            ),
            concern: None,
        });
    };
    if let Some(release) = release_named(ctx.catalogue, name) {
        let reason = format!("{who} `{name}`, so `{}`", release.id);
        return Ok(Pick { release, origin, reason, concern: None });
    }
    let known: Vec<&str> = ctx.catalogue.releases().ids().collect();
    if versions::parse(name).is_none() {
        let near = near_names(name, known.iter().copied());
        let choices = if near.is_empty() { known } else { near };
        return Err(Defect {
            message: format!("`{name}` is no release of amd-quark"),
            hint: Some(format!("choose one of {}", crate::rules::sheet::list(choices, 5))),
            row: Some(DecisionId::new("quark_version")),
        });
    }
    Ok(Pick {
        release: newest,
        origin,
        reason: format!(
            "{who} `{name}`, which the catalogue does not know, so the newest known, `{}`",
            newest.id
        ),
        concern: Some(format!(
            "amd-quark {name} is not known here; the plan holds what {} has, so names and defaults may differ",
            newest.id
        )),
    })
}

fn named<'a>(ctx: &Context<'a>) -> Option<(&'a str, Origin, &'static str)> {
    let asked = ctx.requested("quark_version").and_then(|value| value.as_str());
    let asked = asked.or(ctx.intent.quark_version.as_deref());
    let installed = || {
        ctx.install
            .and_then(|install| install.quark_version.as_deref())
            .or_else(|| machine::package(ctx, "amd-quark"))
    };
    asked.map(|name| (name, Origin::User, "you asked for")).or_else(|| {
        installed().map(|name| (name, Origin::Environment, "the environment has amd-quark"))
    })
}

/// Writes the row.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    // `request::checked` refuses what `pick` cannot resolve, before any rule runs.
    let Ok(pick) = pick(ctx) else { return };
    sheet.release = pick.release;
    let mut pen = sheet.by(ID);
    pen.decide("quark_version", pick.release.id(), pick.origin, pick.reason);
    if let Some(concern) = pick.concern {
        let hint = format!(
            "install amd-quark {}, or check the plan's names against yours",
            pick.release.id
        );
        pen.risk(Severity::Medium, concern, Some(hint));
    }
}

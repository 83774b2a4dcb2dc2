//! Whether a scheme fits: its export, the shapes of the model, the engine and the devices.
//!
//! On a device a format is native, emulated or impossible, and these are three different answers.

use serde_json::Value;

use crate::{
    catalogue::{
        engines::ExportFormat,
        schemes::{CustomMode, Fit, Loads, Scheme, WithoutNative},
    },
    rules::{
        Context,
        sheet::{Check, Sheet, list, lower},
        torch::{
            choice::Target,
            groups::{self, Dim, Uneven},
        },
    },
    vocab::Severity,
};

/// Which layers a scheme is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Linear layers of any kind.
    Anywhere,
    /// Experts of a mixture alone.
    Experts,
}

/// Whether a scheme may be planned for layers with these input dimensions.
pub fn verdict(
    ctx: &Context<'_>,
    sheet: &Sheet,
    scheme: &Scheme,
    dims: &[Dim],
    place: Place,
) -> Check {
    if let Some(error) = scheme.export_error.as_deref().filter(|_| exports(ctx)) {
        return Check::Impossible(format!(
            "its export fails ({error}) after the whole model was quantized; to evaluate it without an export set `export_format` to `none`"
        ));
    }
    if let Some(broken) = &scheme.broken {
        return Check::Unwise(lower(broken));
    }
    if let Some(uneven) = groups::uneven(ctx, sheet, scheme, dims) {
        let remedy = remedy(ctx, sheet, scheme, dims);
        return match uneven {
            Uneven::Quark(why) => Check::Impossible(format!("{why}{remedy}")),
            Uneven::Ranks(why) | Uneven::Padded(why) => Check::Unwise(format!("{why}{remedy}")),
        };
    }
    let engine = engine(ctx, sheet, scheme, place);
    if let Some(check @ (Check::Unwise(_) | Check::Impossible(_))) = engine {
        return check;
    }
    match (device(ctx, sheet, scheme), engine, &scheme.same_as) {
        (Check::Fine, None | Some(Check::Fine), Some(same)) => Check::Risky(
            Severity::Low,
            format!("it is another name of `{same}`, which is the usual one"),
        ),
        (Check::Fine, Some(check), _) => check,
        (Check::Risky(one, device), Some(Check::Risky(other, engine)), _) => {
            Check::Risky(one.max(other), format!("{device}; and {engine}"))
        }
        (check, ..) => check,
    }
}

/// Schemes of the same kind whose groups divide.
fn remedy(ctx: &Context<'_>, sheet: &Sheet, scheme: &Scheme, dims: &[Dim]) -> String {
    let fit: Vec<&str> = ctx
        .catalogue
        .schemes()
        .all()
        .iter()
        .filter(|other| other.family == scheme.family && other.id != scheme.id)
        .filter(|other| {
            sheet.has(ctx, *other) && other.broken.is_none() && other.export_error.is_none()
        })
        .filter(|other| groups::uneven(ctx, sheet, other, dims).is_none())
        .filter(|other| {
            let engine = engine(ctx, sheet, other, Place::Anywhere);
            !matches!(engine, Some(Check::Unwise(_) | Check::Impossible(_)))
        })
        .map(|other| other.id.as_str())
        .collect();
    if fit.is_empty() {
        return "; exclude those layers, or take a scheme without groups".to_owned();
    }
    format!("; {} would do", list(fit, 4))
}

/// What the engine makes of it; `None` when there is nothing to say.
fn engine(ctx: &Context<'_>, sheet: &Sheet, scheme: &Scheme, place: Place) -> Option<Check> {
    let Some(engine) = sheet.torch.engine else { return served(ctx, scheme) };
    // In AutoAWQ's layout it is not Quark's loader that reads it.
    let awq = ctx.requested("custom_mode").is_some_and(|mode| mode == "awq");
    if awq
        && scheme.custom_modes.contains(&CustomMode::Awq)
        && engine.reads.contains(&ExportFormat::Awq)
    {
        return Some(Check::Fine);
    }
    let support = scheme.engines.get(&engine.id)?;
    let note =
        support.note.as_deref().map(|note| format!(" ({})", lower(note))).unwrap_or_default();
    Some(match support.loads {
        Loads::No => Check::Unwise(format!("`{}` does not load it{note}", engine.id)),
        Loads::ExpertsOnly if place == Place::Experts => Check::Fine,
        Loads::ExpertsOnly => {
            let instead = if ctx.analysis.model.is_moe == Some(true) {
                format!(
                    "; give it to them alone, with `layer_quant_config` `{{\"*experts*\": \"{}\"}}`",
                    scheme.id
                )
            } else {
                String::new()
            };
            Check::Unwise(format!("`{}` loads it for experts only{note}{instead}", engine.id))
        }
        Loads::Yes if support.always_emulated => Check::Risky(
            Severity::Medium,
            format!(
                "`{}` rounds to it and computes in a wider format on every device{note}",
                engine.id
            ),
        ),
        Loads::Yes => match &support.since {
            Some(since) => Check::Risky(
                Severity::Low,
                format!("`{}` loads it since {since} only{note}", engine.id),
            ),
            None => Check::Fine,
        },
    })
}

/// Whether a file is written.
fn exports(ctx: &Context<'_>) -> bool {
    ctx.requested("export_format").and_then(Value::as_str) != Some("none")
}

/// Whether any engine loads it, when none is named.
fn served(ctx: &Context<'_>, scheme: &Scheme) -> Option<Check> {
    if !exports(ctx) {
        return None;
    }
    let nobody = !scheme.engines.is_empty()
        && scheme.engines.values().all(|support| support.loads == Loads::No);
    nobody.then(|| {
        Check::Risky(
            Severity::Medium,
            format!(
                "no engine that is known loads it ({})",
                list(scheme.engines.keys().map(|id| id.as_str()), 4)
            ),
        )
    })
}

/// What the devices make of it, the worst first.
fn device(ctx: &Context<'_>, sheet: &Sheet, scheme: &Scheme) -> Check {
    if scheme.needs.is_empty() {
        return Check::Fine;
    }
    if sheet.torch.on_cpu
        && !scheme.needs.iter().all(|need| need.any_of.iter().any(|f| f == "int8"))
    {
        return Check::Risky(
            Severity::Medium,
            "a CPU has no units for it: the arithmetic runs in a wider format, so it gets smaller and no faster".to_owned(),
        );
    }
    let engine = sheet.torch.engine.and_then(|engine| scheme.engines.get(&engine.id));
    // Without a named engine the most forgiving one decides: what has a fallback is not impossible.
    let emulates = match engine {
        Some(support) => support.without_native == Some(WithoutNative::Emulates),
        None => scheme.engines.values().any(|support| {
            support.loads == Loads::Yes && support.without_native == Some(WithoutNative::Emulates)
        }),
    };
    let mut worst = Check::Fine;
    for target in &sheet.torch.devices {
        let fit = scheme.on(target.device);
        let formats = list(scheme.needs.iter().flat_map(|need| &need.any_of), 4);
        let check = match fit {
            Fit::Native => continue,
            Fit::Emulated => Check::Risky(
                Severity::Medium,
                format!(
                    "{} has no units for {formats}: it runs emulated, smaller but not faster{}",
                    target.name,
                    native(ctx, target)
                ),
            ),
            Fit::NotSupported if emulates => Check::Risky(
                Severity::Medium,
                format!(
                    "{} has no units for {formats}: an engine can store the weights small and compute in 16 bits, no faster than now{}",
                    target.name,
                    native(ctx, target)
                ),
            ),
            Fit::NotSupported => Check::Unwise(format!(
                "{} has no units for {formats}, and no engine is known to emulate it there{}",
                target.name,
                native(ctx, target)
            )),
            Fit::Unknown => Check::Risky(
                Severity::Low,
                format!("nobody documents whether {} computes with {formats}", target.name),
            ),
        };
        if matches!(check, Check::Unwise(_)) || worst == Check::Fine {
            worst = check;
        }
    }
    worst
}

/// What a device computes with as it is, of the schemes that an engine loads.
fn native(ctx: &Context<'_>, target: &Target) -> String {
    let fits = |scheme: &&Scheme| {
        !scheme.needs.is_empty()
            && scheme.same_as.is_none()
            && scheme.on(target.device) == Fit::Native
            && scheme.engines.values().any(|support| support.loads == Loads::Yes)
    };
    let schemes: Vec<&str> = ctx
        .catalogue
        .schemes()
        .all()
        .iter()
        .filter(fits)
        .map(|scheme| scheme.id.as_str())
        .collect();
    if schemes.is_empty() {
        return "; weight-only schemes run everywhere".to_owned();
    }
    format!("; native there are {}", list(&schemes, 5))
}

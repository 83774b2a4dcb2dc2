//! The schemes that fit a goal, its devices and the model, and what a goal does not want or cannot have.

use serde_json::json;

use crate::{
    catalogue::{
        devices::Device,
        schemes::{Fit, Scheme},
    },
    estimate,
    plan::Alternative,
    rules::{
        Context,
        sheet::{Check, Sheet, list, lower},
        torch::{
            device_strategy,
            fitness::{Place, verdict},
            groups::{self, Dim},
            guide::{self, Abilities},
            wishes::{Wish, Wishes},
        },
    },
    vocab::Severity,
};

/// What all devices compute with.
fn abilities(ctx: &Context<'_>, sheet: &Sheet) -> Abilities {
    let devices: Vec<&Device> = sheet.torch.devices.iter().map(|target| target.device).collect();
    let all = |scheme: &str| {
        ctx.catalogue
            .schemes()
            .get(scheme)
            .is_some_and(|scheme| devices.iter().all(|device| scheme.on(device) == Fit::Native))
    };
    if devices.is_empty() {
        return if sheet.torch.on_cpu { Abilities::Without } else { Abilities::Unknown };
    }
    if all("mxfp4") {
        Abilities::Fp4
    } else if all("nvfp4") {
        Abilities::Nvfp4
    } else if all("fp8") {
        Abilities::Fp8
    } else {
        Abilities::Without
    }
}

/// The schemes of the guide that nothing speaks against, best first: those that fit the memory before others.
pub fn ranked(
    ctx: &Context<'_>,
    sheet: &Sheet,
    wishes: &Wishes,
    dims: &[Dim],
) -> Vec<(&'static Scheme, &'static str)> {
    let wish = wishes.wish.or_else(|| sheet.torch.on_cpu.then_some(Wish::Cpu));
    let named: Vec<(&'static Scheme, &'static str)> =
        wishes.schemes.iter().map(|scheme| (*scheme, "the goal names it")).collect();
    let guide = guide::schemes(wish, abilities(ctx, sheet));
    let guide =
        guide.into_iter().filter_map(|(id, why)| Some((ctx.catalogue.schemes().get(id)?, why)));
    // A plain plan that nothing fits still has something to offer.
    let rest = guide::schemes(None, abilities(ctx, sheet))
        .into_iter()
        .filter_map(|(id, why)| Some((ctx.catalogue.schemes().get(id)?, why)));
    let mut found: Vec<(&Scheme, &str)> = Vec::new();
    for one in named.into_iter().chain(guide).chain(rest) {
        let known = found.iter().any(|(scheme, _)| scheme.id == one.0.id);
        if !known && sheet.has(ctx, one.0) && !wishes.refuses(one.0) {
            found.push(one);
        }
    }
    let by_file = device_strategy::needs_files(ctx, sheet);
    let rank = |scheme: &Scheme| {
        let verdict = match verdict(ctx, sheet, scheme, dims, Place::Anywhere) {
            Check::Fine | Check::Risky(Severity::Low, _) => 0,
            Check::Risky(..) => 1,
            Check::Unwise(_) | Check::Impossible(_) => 2,
        };
        let too_big = fits(ctx, sheet, scheme) == Some(false);
        (verdict, too_big, by_file && !device_strategy::whole_in_files(scheme))
    };
    let mut ranks: Vec<_> = found.into_iter().map(|one| (rank(one.0), one)).collect();
    ranks.retain(|((verdict, ..), _)| *verdict < 2);
    ranks.sort_by_key(|(rank, _)| *rank);
    ranks.into_iter().map(|(_, one)| one).collect()
}

/// Whether the weights fit the devices with a fifth left; `None` when either is not known.
fn fits(ctx: &Context<'_>, sheet: &Sheet, scheme: &Scheme) -> Option<bool> {
    let modules = ctx.modules?;
    let after = estimate::torch::sizes(modules, sheet.torch.schemes(scheme)).after;
    let devices = sheet.torch.devices.iter();
    let memory = devices
        .filter_map(|target| Some(target.memory?.saturating_mul(target.sharing(ctx))))
        .min()?;
    Some(after <= memory / 5 * 4)
}

/// The two next best, with when they would be taken.
pub fn others(ranked: &[(&'static Scheme, &'static str)], best: &Scheme) -> Vec<Alternative> {
    ranked
        .iter()
        .filter(|(scheme, _)| scheme.id != best.id)
        .take(2)
        .map(|(scheme, _)| Alternative {
            value: json!(scheme.id),
            why_not: format!(
                "`{}` comes first; this one is for: {}",
                best.id,
                lower(&scheme.use_when)
            ),
        })
        .collect()
}

/// Of the same kind the scheme with the largest groups that divide, where those that were asked for do not.
pub fn nearest(
    ctx: &Context<'_>,
    sheet: &Sheet,
    wishes: &Wishes,
    asked: &Scheme,
    dims: &[Dim],
) -> Option<&'static Scheme> {
    let group = asked.group_size()?;
    groups::uneven(ctx, sheet, asked, dims)?;
    let fits = |scheme: &&'static Scheme| {
        let check = verdict(ctx, sheet, scheme, dims, Place::Anywhere);
        scheme.family == asked.family
            && scheme.group_size().is_some_and(|own| own < group)
            && sheet.has(ctx, *scheme)
            && !wishes.refuses(scheme)
            && matches!(check, Check::Fine | Check::Risky(Severity::Low, _))
    };
    ctx.catalogue.schemes().all().iter().filter(fits).max_by_key(|scheme| scheme.group_size())
}

/// Why no scheme is left.
pub fn nothing_fits(wishes: &Wishes) -> String {
    let nothing = "no scheme of the release fits devices, engine and shapes";
    match wishes.refused() {
        Some(refused) => format!("{nothing}, and the goal does not want {refused}"),
        None => nothing.to_owned(),
    }
}

/// What the goal asks for and `chosen` is not, what speaks against it, and the first scheme that would be it.
pub fn unmet(
    ctx: &Context<'_>,
    sheet: &Sheet,
    wishes: &Wishes,
    chosen: &Scheme,
    dims: &[Dim],
) -> Option<(String, String, Option<&'static Scheme>)> {
    let schemes = ctx.catalogue.schemes();
    let (asks, wished) = if wishes.schemes.is_empty() {
        let wish = wishes.wish.filter(|wish| !wish.is_met_by(chosen));
        match (wish, wishes.unknown.first()) {
            (Some(wish), _) => {
                let guide = guide::schemes(Some(wish), abilities(ctx, sheet));
                let found = guide.iter().filter_map(|(id, _)| schemes.get(id));
                (wish.words().to_owned(), found.filter(|one| wish.is_met_by(one)).collect())
            }
            (None, Some(name)) => (format!("`{name}`"), Vec::new()),
            (None, None) => return None,
        }
    } else if wishes.schemes.iter().any(|scheme| scheme.id == chosen.id) {
        return None;
    } else {
        (list(wishes.schemes.iter().map(|scheme| scheme.id.as_str()), 3), wishes.schemes.clone())
    };
    let Some(wished) = wished.into_iter().find(|one: &&Scheme| sheet.has(ctx, *one)) else {
        let against = format!("amd-quark {} has no scheme of that name", sheet.release.id);
        return Some((asks, against, None));
    };
    let why = match verdict(ctx, sheet, wished, dims, Place::Anywhere) {
        Check::Unwise(why) | Check::Impossible(why) | Check::Risky(_, why) => why,
        Check::Fine if wishes.refuses(wished) => "the goal does not want it either".to_owned(),
        Check::Fine => "another one fits better".to_owned(),
    };
    Some((asks, format!("`{}` is not taken: {why}", wished.id), Some(wished)))
}

//! Other names that belong to a thing, and what else has its name.

use crate::{
    catalogue::Catalogue,
    planner::explain::{cards::half, things::Thing},
    vocab::fold,
};

/// Other names that belong to it.
pub(super) fn related(first: Thing, second: Option<Thing>, also: &[Thing]) -> Vec<String> {
    let twins = namesakes(first, second, also);
    let others = also.iter().filter(|thing| !twins.iter().any(|twin| twin.is(**thing)));
    let mut names: Vec<String> = others.map(|thing| thing.id().to_owned()).collect();
    for thing in [Some(first), second].into_iter().flatten() {
        match thing {
            Thing::Preset(preset) => {
                names.push(preset.calibration.to_string());
                names.extend(preset.algorithms.iter().map(ToString::to_string));
                let stem = format!("{}_", preset.id);
                let family = Catalogue.presets().ids().filter(|id| id.starts_with(&stem));
                names.extend(family.map(str::to_owned));
            }
            Thing::Method(method) => {
                names.extend(method.params.iter().map(|param| param.option.to_string()));
            }
            Thing::Option(option) => {
                names.extend(option.parents.iter().map(ToString::to_string));
                let key = option.id.as_str();
                let algorithms = Catalogue.algorithms().all().iter();
                let readers = algorithms
                    .filter(|a| a.params.iter().any(|p| p.legacy.as_deref() == Some(key)))
                    .map(|algorithm| algorithm.id.to_string());
                let methods = Catalogue.methods().all().iter();
                let methods = methods
                    .filter(|m| m.params.iter().any(|p| p.option == option.id))
                    .map(|method| method.id.to_string());
                names.extend(readers.chain(methods));
            }
            Thing::Decision(row) => {
                let topics = Catalogue.topics().all().iter();
                let about = topics.filter(|topic| topic.decisions.iter().any(|d| *d == *row.id));
                names.extend(about.map(|topic| topic.id.clone()));
            }
            Thing::Target(target) => names.extend(target.devices.iter().map(ToString::to_string)),
            Thing::Recovery(recovery) => {
                names.push(recovery.skill.to_string());
                names.extend(recovery.decisions.iter().map(ToString::to_string));
            }
            Thing::Topic(topic) => {
                names.extend(topic.cases.iter().flat_map(|case| case.take.clone()));
            }
            Thing::Scheme(scheme) => {
                names.extend(scheme.same_as.iter().map(ToString::to_string));
                let algorithms = Catalogue.torch_algorithms().all().iter();
                let suited = algorithms.filter(|one| one.suits.contains(&scheme.family));
                names.extend(suited.map(|one| one.id.to_string()));
                let kin = Catalogue.schemes().all().iter();
                let kin = kin.filter(|one| one.family == scheme.family && one.broken.is_none());
                names.extend(kin.map(|one| one.id.to_string()));
            }
            Thing::Family(family) => {
                let newest = &Catalogue.newest_release().id;
                let algorithms = Catalogue.algorithms_for(&family.id, newest);
                names.extend(algorithms.into_iter().map(|one| one.id.to_string()));
            }
            Thing::EntryPoint(entry) => {
                let all = Catalogue.entry_points().ids();
                names.extend(all.filter(|id| entry.id != **id).map(str::to_owned));
            }
            _ => {}
        }
    }
    let own = |name: &str| name == first.id() || second.is_some_and(|second| name == second.id());
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !own(&name) && !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// What else has the name: things of other kinds, and topics of the other half of Quark.
pub(super) fn namesakes(first: Thing, second: Option<Thing>, also: &[Thing]) -> Vec<Thing> {
    let topics = matches!(first, Thing::Topic(_));
    let same = |thing: &Thing, own: Thing| {
        thing.kind() != own.kind() && fold(thing.id()) == fold(own.id())
    };
    let own = [Some(first), second];
    also.iter()
        .filter(|thing| match thing {
            Thing::Topic(topic) => topics || topic.backend != first.backend(),
            thing => own.iter().flatten().any(|own| same(thing, *own)),
        })
        .copied()
        .collect()
}

/// What else has the name, in words; empty when nothing has.
pub(super) fn namesakes_line(namesakes: &[Thing]) -> String {
    let (topics, names): (Vec<Thing>, Vec<Thing>) =
        namesakes.iter().partition(|thing| matches!(thing, Thing::Topic(_)));
    let mut out = String::new();
    if !names.is_empty() {
        let each =
            names.iter().map(|one| format!("{} (ask for `{}`)", a(one.kind()), one.address()));
        out.push_str(&format!(
            "\nThe same name also has {}.\n",
            each.collect::<Vec<_>>().join(", and ")
        ));
    }
    for topic in topics {
        let half = half(topic.backend());
        out.push_str(&format!("\nFor {half} there is the topic `{}`.\n", topic.id()));
    }
    out
}

fn a(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u', 'O']) { "an" } else { "a" };
    format!("{article} {kind}")
}

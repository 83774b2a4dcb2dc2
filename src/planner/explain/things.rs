//! Everything that has a name: catalogue entries, rules and rows of the table.

use serde_json::{Value, json};

use crate::{
    catalogue::{
        Catalogue, Entry, Kind, Source, algorithms::Algorithm, devices::Device, methods::Method,
        npu_ops::NpuOp, options::ExtraOption, presets::Preset, recoveries::Recovery,
        releases::Release, skills::Skill, targets::Target, topics::Topic,
    },
    planner::VERSION,
    rules::{
        self, RULES, Rule,
        rows::{self, Row},
    },
};

/// Something that has a name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Thing {
    Preset(&'static Preset),
    Method(&'static Method),
    Algorithm(&'static Algorithm),
    Target(&'static Target),
    Decision(&'static Row),
    Option(&'static ExtraOption),
    Device(&'static Device),
    Release(&'static Release),
    Rule(&'static Rule),
    Skill(&'static Skill),
    Recovery(&'static Recovery),
    Topic(&'static Topic),
    Op(&'static NpuOp),
}

impl Thing {
    /// What it is, for people.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Preset(_) => "preset",
            Self::Method(_) => "calibration method",
            Self::Algorithm(_) => "algorithm",
            Self::Target(_) => "deployment target",
            Self::Decision(_) => "decision",
            Self::Option(_) => "extra option",
            Self::Device(_) => "device",
            Self::Release(_) => "release",
            Self::Rule(_) => "rule",
            Self::Skill(_) => "skill",
            Self::Recovery(_) => "known error",
            Self::Topic(_) => "topic",
            Self::Op(_) => "op type on the NPU",
        }
    }

    /// The entry, where it is one of the catalogue.
    pub(super) fn entry(self) -> Option<&'static dyn Entry> {
        Some(match self {
            Self::Preset(entry) => entry,
            Self::Method(entry) => entry,
            Self::Algorithm(entry) => entry,
            Self::Target(entry) => entry,
            Self::Option(entry) => entry,
            Self::Device(entry) => entry,
            Self::Release(entry) => entry,
            Self::Skill(entry) => entry,
            Self::Recovery(entry) => entry,
            Self::Topic(entry) => entry,
            Self::Op(entry) => entry,
            Self::Decision(_) | Self::Rule(_) => return None,
        })
    }

    /// The name as it is spelled.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Decision(row) => row.id,
            Self::Rule(rule) => rule.id,
            _ => self.entry().map_or("", Entry::id),
        }
    }

    /// One line about it.
    pub(super) fn summary(self) -> String {
        match self {
            Self::Decision(row) => row.summary.to_owned(),
            Self::Rule(rule) => first_sentence(&rule.documentation()),
            Self::Op(op) if op.precisions.is_empty() => {
                "The NPU runs it at no precision".to_owned()
            }
            Self::Op(op) => format!("The NPU runs it as {}", op.precisions.join(", ")),
            _ => self.entry().map_or("", Entry::summary).to_owned(),
        }
    }

    /// When to pick it, where that can be said.
    pub(super) fn use_when(self) -> Option<&'static str> {
        match self {
            Self::Preset(entry) => Some(&entry.use_when),
            Self::Method(entry) => Some(&entry.use_when),
            Self::Algorithm(entry) => Some(&entry.use_when),
            Self::Skill(entry) => Some(&entry.use_when),
            _ => None,
        }
    }

    /// Other things to know.
    pub(super) fn notes(self) -> &'static [String] {
        match self {
            Self::Preset(entry) => &entry.notes,
            Self::Method(entry) => &entry.notes,
            Self::Algorithm(entry) => &entry.constraints,
            Self::Target(entry) => &entry.notes,
            Self::Device(entry) => &entry.notes,
            Self::Skill(entry) => &entry.notes,
            Self::Topic(entry) => &entry.notes,
            _ => &[],
        }
    }

    /// Where the facts come from.
    pub(super) fn sources(self) -> Vec<Source> {
        let here = |path: String| {
            vec![Source { release: format!("quantplan {VERSION}"), path, measured: false }]
        };
        match self {
            Self::Decision(_) => here("src/rules/rows.rs".to_owned()),
            Self::Rule(rule) => here(format!("src/rules/{}", rule.file)),
            _ => self.entry().map_or(&[][..], Entry::sources).to_vec(),
        }
    }

    /// The facts as data.
    pub(super) fn facts(self) -> Value {
        let value = match self {
            Self::Preset(entry) => serde_json::to_value(entry),
            Self::Method(entry) => serde_json::to_value(entry),
            Self::Algorithm(entry) => serde_json::to_value(entry),
            Self::Target(entry) => serde_json::to_value(entry),
            Self::Option(entry) => serde_json::to_value(entry),
            Self::Device(entry) => serde_json::to_value(entry),
            Self::Release(entry) => serde_json::to_value(entry),
            Self::Skill(entry) => serde_json::to_value(entry),
            Self::Recovery(entry) => serde_json::to_value(entry),
            Self::Topic(entry) => serde_json::to_value(entry),
            Self::Op(entry) => serde_json::to_value(entry),
            Self::Decision(row) => Ok(json!({ "id": row.id, "summary": row.summary })),
            Self::Rule(rule) => Ok(json!({
                "id": rule.id,
                "stage": rule.stage.as_str(),
                "backend": rule.backend,
                "file": rule.file,
                "documentation": rule.documentation(),
            })),
        };
        value.unwrap_or_default()
    }

    /// The same name and kind.
    pub(super) fn is(self, other: Self) -> bool {
        self.id() == other.id() && self.kind() == other.kind()
    }
}

/// The first sentence under its first heading.
fn first_sentence(documentation: &str) -> String {
    let mut paragraph = documentation
        .lines()
        .skip_while(|line| line.is_empty() || line.starts_with('#'))
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if let Some(end) = paragraph.find(". ") {
        paragraph.truncate(end);
    }
    paragraph.trim_end_matches('.').to_owned()
}

/// Everything, the kinds that people mean first before the others.
pub(super) fn all() -> Vec<Thing> {
    let c = Catalogue;
    let mut all = Vec::new();
    add(&mut all, c.presets(), Thing::Preset);
    add(&mut all, c.methods(), Thing::Method);
    add(&mut all, c.algorithms(), Thing::Algorithm);
    add(&mut all, c.targets(), Thing::Target);
    all.extend(rows::all().map(Thing::Decision));
    add(&mut all, c.options(), Thing::Option);
    add(&mut all, c.devices(), Thing::Device);
    add(&mut all, c.releases(), Thing::Release);
    all.extend(RULES.iter().map(Thing::Rule));
    add(&mut all, c.skills(), Thing::Skill);
    add(&mut all, c.recoveries(), Thing::Recovery);
    add(&mut all, c.topics(), Thing::Topic);
    add(&mut all, c.npu_ops(), Thing::Op);
    all
}

fn add<T: Entry>(all: &mut Vec<Thing>, kind: &'static Kind<T>, thing: fn(&'static T) -> Thing) {
    all.extend(kind.all().iter().map(thing));
}

/// Everything that a name means: what has it as its id, else what it is an alias or another spelling of.
pub(super) fn named(name: &str) -> Vec<Thing> {
    let c = Catalogue;
    let exact: Vec<Thing> = all().into_iter().filter(|thing| thing.id() == name).collect();
    if !exact.is_empty() {
        return exact;
    }
    let found = [
        c.presets().find(name).map(Thing::Preset),
        c.methods().find(name).map(Thing::Method),
        c.algorithms().find(name).map(Thing::Algorithm),
        c.targets().find(name).map(Thing::Target),
        rows::find_any(&name.replace(' ', "_")).map(Thing::Decision),
        c.options().find(name).map(Thing::Option),
        c.devices().find(name).map(Thing::Device),
        c.releases().find(name).map(Thing::Release),
        rules::find(name).map(Thing::Rule),
        c.skills().find(name).map(Thing::Skill),
        c.recoveries().find(name).map(Thing::Recovery),
        c.topics().find(name).map(Thing::Topic),
        c.npu_ops().find(name).map(Thing::Op),
    ];
    found.into_iter().flatten().collect()
}

//! Everything that has a name: catalogue entries, rules and rows of the table.

use serde_json::{Value, json};

use crate::{
    catalogue::{
        Catalogue, Entry, Kind, Source, algorithms::Algorithm, devices::Device, engines::Engine,
        entry_points::EntryPoint, families::Family, methods::Method, npu_ops::NpuOp,
        options::ExtraOption, prequantized::Prequantized, presets::Preset, recoveries::Recovery,
        releases::Release, schemes::Scheme, skills::Skill, targets::Target, topics::Topic,
        torch_algorithms::TorchAlgorithm,
    },
    planner::VERSION,
    rules::{
        self, RULES, Rule,
        rows::{self, Row},
    },
    vocab::{Backend, fold},
};

/// Something that has a name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Thing {
    Preset(&'static Preset),
    Method(&'static Method),
    Algorithm(&'static Algorithm),
    Target(&'static Target),
    Scheme(&'static Scheme),
    TorchAlgorithm(&'static TorchAlgorithm),
    Family(&'static Family),
    EntryPoint(&'static EntryPoint),
    Engine(&'static Engine),
    Decision(&'static Row),
    Option(&'static ExtraOption),
    Device(&'static Device),
    Release(&'static Release),
    Rule(&'static Rule),
    Skill(&'static Skill),
    Recovery(&'static Recovery),
    Topic(&'static Topic),
    Op(&'static NpuOp),
    Prequantized(&'static Prequantized),
}

impl Thing {
    /// What it is, for people.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Preset(_) => "preset",
            Self::Method(_) => "calibration method",
            Self::Algorithm(_) => "ONNX algorithm",
            Self::Target(_) => "deployment target",
            Self::Scheme(_) => "scheme",
            Self::TorchAlgorithm(_) => "Torch algorithm",
            Self::Family(_) => "model family",
            Self::EntryPoint(_) => "entry point",
            Self::Engine(_) => "serving engine",
            Self::Decision(_) => "decision",
            Self::Option(_) => "extra option",
            Self::Device(_) => "device",
            Self::Release(_) => "release",
            Self::Rule(_) => "rule",
            Self::Skill(_) => "skill",
            Self::Recovery(_) => "known error",
            Self::Topic(_) => "topic",
            Self::Op(_) => "op type on the NPU",
            Self::Prequantized(_) => "quantized source",
        }
    }

    /// The kind in one word, as it stands before the name in `scheme:mxfp4`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Preset(_) => "preset",
            Self::Method(_) => "method",
            Self::Algorithm(_) => "onnx_algorithm",
            Self::Target(_) => "target",
            Self::Scheme(_) => "scheme",
            Self::TorchAlgorithm(_) => "torch_algorithm",
            Self::Family(_) => "family",
            Self::EntryPoint(_) => "entry_point",
            Self::Engine(_) => "engine",
            Self::Decision(_) => "decision",
            Self::Option(_) => "option",
            Self::Device(_) => "device",
            Self::Release(_) => "release",
            Self::Rule(_) => "rule",
            Self::Skill(_) => "skill",
            Self::Recovery(_) => "error",
            Self::Topic(_) => "topic",
            Self::Op(_) => "op",
            Self::Prequantized(_) => "source",
        }
    }

    /// The name with its kind, which nothing else has; topics need none.
    pub(super) fn address(self) -> String {
        match self {
            Self::Topic(_) => self.id().to_owned(),
            _ => format!("{}:{}", self.word(), self.id()),
        }
    }

    /// The half of Quark that it is for; `None` when it is for both.
    pub(super) fn backend(self) -> Option<Backend> {
        match self {
            Self::Preset(_)
            | Self::Method(_)
            | Self::Algorithm(_)
            | Self::Target(_)
            | Self::Option(_)
            | Self::Op(_) => Some(Backend::Onnx),
            Self::Scheme(_)
            | Self::TorchAlgorithm(_)
            | Self::Family(_)
            | Self::EntryPoint(_)
            | Self::Engine(_)
            | Self::Prequantized(_) => Some(Backend::Torch),
            Self::Decision(row) => rows::only_of(row),
            Self::Rule(rule) => rule.backend,
            Self::Skill(skill) => skill.backend,
            Self::Recovery(recovery) => recovery.backend,
            Self::Topic(topic) => topic.backend,
            Self::Device(_) | Self::Release(_) => None,
        }
    }

    /// The entry, where it is one of the catalogue.
    pub(super) fn entry(self) -> Option<&'static dyn Entry> {
        Some(match self {
            Self::Preset(entry) => entry,
            Self::Method(entry) => entry,
            Self::Algorithm(entry) => entry,
            Self::Target(entry) => entry,
            Self::Scheme(entry) => entry,
            Self::TorchAlgorithm(entry) => entry,
            Self::Family(entry) => entry,
            Self::EntryPoint(entry) => entry,
            Self::Engine(entry) => entry,
            Self::Option(entry) => entry,
            Self::Device(entry) => entry,
            Self::Release(entry) => entry,
            Self::Skill(entry) => entry,
            Self::Recovery(entry) => entry,
            Self::Topic(entry) => entry,
            Self::Op(entry) => entry,
            Self::Prequantized(entry) => entry,
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
            Self::Scheme(entry) => Some(&entry.use_when),
            Self::TorchAlgorithm(entry) => Some(&entry.use_when),
            Self::EntryPoint(entry) => Some(&entry.use_when),
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
            Self::Scheme(entry) => &entry.notes,
            Self::TorchAlgorithm(entry) => &entry.constraints,
            Self::Family(entry) => &entry.notes,
            Self::EntryPoint(entry) => &entry.behaviour,
            Self::Engine(entry) => &entry.constraints,
            Self::Prequantized(entry) => &entry.notes,
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
            Self::Scheme(entry) => serde_json::to_value(entry),
            Self::TorchAlgorithm(entry) => serde_json::to_value(entry),
            Self::Family(entry) => serde_json::to_value(entry),
            Self::EntryPoint(entry) => serde_json::to_value(entry),
            Self::Engine(entry) => serde_json::to_value(entry),
            Self::Option(entry) => serde_json::to_value(entry),
            Self::Device(entry) => serde_json::to_value(entry),
            Self::Release(entry) => serde_json::to_value(entry),
            Self::Skill(entry) => serde_json::to_value(entry),
            Self::Recovery(entry) => serde_json::to_value(entry),
            Self::Topic(entry) => serde_json::to_value(entry),
            Self::Op(entry) => serde_json::to_value(entry),
            Self::Prequantized(entry) => serde_json::to_value(entry),
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

    /// Whether a word names its kind, whole or by its last part, in the singular or plural.
    fn is_called(self, word: &str) -> bool {
        let kind = self.kind();
        let word = fold(word);
        [self.word(), kind, kind.rsplit(' ').next().unwrap_or(kind)].into_iter().any(|known| {
            let known = fold(known);
            let stem = known.strip_suffix('y').map(|stem| format!("{stem}ies"));
            word == known || word.strip_suffix('s') == Some(&known) || Some(word.clone()) == stem
        })
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
    add(&mut all, c.schemes(), Thing::Scheme);
    add(&mut all, c.torch_algorithms(), Thing::TorchAlgorithm);
    add(&mut all, c.families(), Thing::Family);
    add(&mut all, c.entry_points(), Thing::EntryPoint);
    add(&mut all, c.engines(), Thing::Engine);
    all.extend(rows::all().map(Thing::Decision));
    add(&mut all, c.options(), Thing::Option);
    add(&mut all, c.devices(), Thing::Device);
    add(&mut all, c.releases(), Thing::Release);
    all.extend(RULES.iter().map(Thing::Rule));
    add(&mut all, c.skills(), Thing::Skill);
    add(&mut all, c.recoveries(), Thing::Recovery);
    add(&mut all, c.topics(), Thing::Topic);
    add(&mut all, c.npu_ops(), Thing::Op);
    add(&mut all, c.prequantized(), Thing::Prequantized);
    all
}

fn add<T: Entry>(all: &mut Vec<Thing>, kind: &'static Kind<T>, thing: fn(&'static T) -> Thing) {
    all.extend(kind.all().iter().map(thing));
}

/// Everything that a name means: what has it as its id, then what it is an alias or another spelling of;
/// each in the order of [`all`].
///
/// `scheme:mxfp4` means what is of that kind only; `algorithm:gptq` is for either half.
pub(super) fn named(name: &str) -> Vec<Thing> {
    if let Some((word, id)) = name.split_once(':')
        && all().into_iter().any(|thing| thing.is_called(word))
    {
        return spelled(id.trim()).into_iter().filter(|thing| thing.is_called(word)).collect();
    }
    spelled(name)
}

fn spelled(name: &str) -> Vec<Thing> {
    let c = Catalogue;
    let mut found: Vec<Thing> = all().into_iter().filter(|thing| thing.id() == name).collect();
    let near = [
        c.presets().find(name).map(Thing::Preset),
        c.methods().find(name).map(Thing::Method),
        c.algorithms().find(name).map(Thing::Algorithm),
        c.targets().find(name).map(Thing::Target),
        c.schemes().find(name).map(Thing::Scheme),
        c.torch_algorithms().find(name).map(Thing::TorchAlgorithm),
        c.families().find(name).map(Thing::Family),
        c.entry_points().find(name).map(Thing::EntryPoint),
        c.engines().find(name).map(Thing::Engine),
        rows::find_any(&name.replace(' ', "_")).map(Thing::Decision),
        c.options().find(name).map(Thing::Option),
        c.devices().find(name).map(Thing::Device),
        c.releases().find(name).map(Thing::Release),
        rules::find(name).map(Thing::Rule),
        c.skills().find(name).map(Thing::Skill),
        c.recoveries().find(name).map(Thing::Recovery),
        c.topics().find(name).map(Thing::Topic),
        c.npu_ops().find(name).map(Thing::Op),
        c.prequantized().find(name).map(Thing::Prequantized),
    ];
    for thing in near.into_iter().flatten() {
        if !found.iter().any(|known| known.is(thing)) {
            found.push(thing);
        }
    }
    found
}

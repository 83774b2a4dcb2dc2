//! What there is to say about a thing, in Markdown.

mod onnx;
mod torch;

use serde_json::Value;

use crate::{
    catalogue::{Catalogue, Entry, Source, algorithms::TimeClass},
    planner::explain::things::Thing,
    rules::{
        rows::{Kind, Row, Takes},
        sheet::{list, show},
    },
    vocab::{Backend, ReleaseId},
};

/// The whole answer about one thing, without its sources.
pub(super) fn card(thing: Thing) -> String {
    if let Thing::Rule(rule) = thing {
        return format!(
            "**`{}`** is a rule ({}, {}).\n\n{}",
            rule.id,
            rule.stage.as_str(),
            rule.backend.map_or("both halves", Backend::as_str),
            rule.documentation()
        );
    }
    let mut out =
        format!("**`{}`** ({}): {}.\n", thing.id(), thing.kind(), prose(&thing.summary()));
    if let Thing::Topic(topic) = thing {
        out.push_str("\n| When | Take | Because |\n|---|---|---|\n");
        for case in &topic.cases {
            let take = list(&case.take, 9);
            out.push_str(&format!(
                "| {} | {} | {} |\n",
                prose(&case.when),
                take,
                prose(&case.because)
            ));
        }
    } else {
        let facts = facts(thing);
        let (params, facts): (Vec<_>, Vec<_>) =
            facts.into_iter().partition(|fact| fact.0.starts_with("parameter "));
        if !facts.is_empty() {
            out.push_str("\n| | |\n|---|---|\n");
            for (what, value) in &facts {
                out.push_str(&format!("| {} | {} |\n", prose(what), prose(value)));
            }
        }
        if !params.is_empty() {
            out.push_str("\nParameters:\n\n");
            for (what, value) in &params {
                out.push_str(&format!(
                    "- {}: {}\n",
                    prose(what.trim_start_matches("parameter ")),
                    prose(value)
                ));
            }
        }
    }
    if let Some(when) = thing.use_when() {
        out.push_str(&format!("\n**When to pick it:** {}.\n", prose(when.trim_end_matches('.'))));
    }
    push_notes(&mut out, thing.notes());
    out
}

/// "Notes" as a list.
fn push_notes(out: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        out.push_str("\nTo know:\n\n");
        for note in notes {
            out.push_str(&format!("- {}\n", prose(note)));
        }
    }
}

/// "Sources" as a line, each once.
pub(super) fn sources_line(sources: &[Source]) -> String {
    let mut named: Vec<String> = Vec::new();
    for source in sources {
        let measured = if source.measured { " (seen in a run)" } else { "" };
        let text = prose(&format!("{} `{}`{measured}", source.release, source.path));
        if !named.contains(&text) {
            named.push(text);
        }
    }
    format!("\nSources: {}.\n", named.join("; "))
}

/// Text of the catalogue, which is ours: only what would break a table or begin emphasis is escaped.
pub(super) fn prose(text: &str) -> String {
    let mut code = true;
    let parts = text.split('`').map(|part| {
        code = !code;
        let part = part.replace('|', "\\|");
        if code { part } else { part.replace('*', "\\*").replace('<', "&lt;") }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The facts of a thing as rows; what begins with `parameter` is a list of its own.
pub(super) fn facts(thing: Thing) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |what: &str, value: String| {
        if !value.is_empty() {
            rows.push((what.to_owned(), value));
        }
    };
    match thing {
        Thing::Preset(preset) => onnx::preset(preset, &mut add),
        Thing::Method(method) => onnx::method(method, &mut add),
        Thing::Algorithm(algorithm) => onnx::algorithm(algorithm, &mut add),
        Thing::Target(target) => onnx::target(target, &mut add),
        Thing::Op(op) => onnx::op(op, &mut add),
        Thing::Scheme(scheme) => torch::scheme(scheme, &mut add),
        Thing::TorchAlgorithm(algorithm) => torch::algorithm(algorithm, &mut add),
        Thing::Family(family) => torch::family(family, &mut add),
        Thing::EntryPoint(entry) => torch::entry_point(entry, &mut add),
        Thing::Engine(engine) => torch::engine(engine, &mut add),
        Thing::Prequantized(source) => torch::prequantized(source, &mut add),
        Thing::Decision(row) => {
            add("takes", takes(row));
            if let Takes::Name(kind) | Takes::Names(kind) = row.takes {
                add("names", names(kind));
            }
            add("to set it", format!("`revise_plan` with `{{\"values\": {{\"{}\": …}}}}`", row.id));
        }
        Thing::Option(option) => onnx::option(option, &mut add),
        Thing::Device(device) => {
            add("also called", list(&device.aliases, 12));
            add("computes", list(&device.native, 20));
            add("emulates", list(&device.emulated, 20));
            add("does not run, or nobody documents it", list(&device.not_supported, 20));
        }
        Thing::Release(release) => {
            add("Python", format!("`{}`", release.python));
            let range = |range: &Option<String>| range.iter().map(|r| format!("`{r}`")).collect();
            add("onnx", range(&release.onnx));
            add("ONNX Runtime", range(&release.onnxruntime));
            add("transformers", range(&release.transformers));
        }
        Thing::Skill(skill) => {
            add("half of Quark", half(skill.backend).to_owned());
            add("writes", list(skill.produces.iter().map(|a| &a.name), 9));
            add("reads", list(&skill.needs, 9));
            for named in &skill.names {
                add(&format!("in {}", named.release), format!("`{}`", named.name));
            }
        }
        Thing::Recovery(recovery) => {
            add("half of Quark", half(recovery.backend).to_owned());
            add("looks like", format!("`{}`", recovery.example.replace('`', "'")));
            add("cause", recovery.cause.clone());
            add("remedy", recovery.remedy.clone());
            add("goes on in", format!("`{}`", recovery.skill));
            add("decisions to look at", list(recovery.decisions.iter().map(|d| d.as_str()), 9));
        }
        Thing::Rule(_) | Thing::Topic(_) => {}
    }
    rows
}

fn takes(row: &Row) -> String {
    match row.takes {
        Takes::Nothing(why) => format!("nothing: {why}"),
        Takes::Name(_) => "one name".to_owned(),
        Takes::Names(_) => "a list of names".to_owned(),
        Takes::Count { min, max } => format!("a whole number from {min} to {max}"),
        Takes::Flag => "`true` or `false`".to_owned(),
        Takes::OpTypes => "a list of op types of the graph, or `null`".to_owned(),
        Takes::Nodes => "a list of node names or patterns of the graph, or `null`".to_owned(),
        Takes::Subgraphs => "a list of pairs: start nodes and end nodes".to_owned(),
        Takes::Options => "an object of extra options".to_owned(),
        Takes::CustomConfig => "an object with the spec of a `custom` preset".to_owned(),
        Takes::Providers => "a list of execution providers".to_owned(),
        Takes::Evaluation => "`none`, `smoke`, `full`, `mlperf` or `mAP`".to_owned(),
        Takes::Choice(words) => format!("one of {}, or `null`", list(words, words.len())),
        Takes::Number => "a number from 0".to_owned(),
        Takes::Path => "a path, or `null`".to_owned(),
        Takes::Dataset => "the name of a data set that Quark-Torch can load".to_owned(),
        Takes::Patterns => {
            "`null` for the template's list, a list of patterns in its place, or `[]` for none"
                .to_owned()
        }
        Takes::Overrides => "an object of patterns, each with a scheme".to_owned(),
        Takes::Algorithms => {
            "`null`, an algorithm, or several in their order, as a list or with commas".to_owned()
        }
    }
}

fn names(kind: Kind) -> String {
    let c = Catalogue;
    match kind {
        Kind::Target => list(c.targets().ids(), 20),
        Kind::Preset => list(c.presets().ids(), 12),
        Kind::Method => list(c.methods().ids(), 20),
        Kind::Algorithm => list(c.algorithms().ids(), 20),
        Kind::Release => list(c.releases().ids(), 20),
        Kind::Scheme => list(c.schemes().ids(), 30),
        Kind::EntryPoint => list(c.entry_points().ids(), 20),
    }
}

/// A half of Quark by its name.
pub(super) fn half(backend: Option<Backend>) -> &'static str {
    match backend {
        Some(Backend::Onnx) => "Quark-ONNX",
        Some(Backend::Torch) => "Quark-Torch",
        None => "both",
    }
}

fn releases(entry: &impl Entry) -> String {
    let with = Catalogue.releases_with(entry);
    let all = Catalogue.releases().all().len();
    let names = with.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
    if with.len() == all { format!("all known ({names})") } else { names }
}

fn only_in(since: Option<&ReleaseId>, until: Option<&ReleaseId>) -> Option<String> {
    let oldest = Catalogue.releases().all().first().map(|release| &release.id);
    let since = since.filter(|since| Some(*since) != oldest);
    match (since, until) {
        (None, None) => None,
        (Some(since), None) => Some(format!("from {since}")),
        (None, Some(until)) => Some(format!("until {until}")),
        (Some(since), Some(until)) => Some(format!("from {since} until {until}")),
    }
}

fn time(class: TimeClass) -> &'static str {
    match class {
        TimeClass::Seconds => "seconds",
        TimeClass::Minutes => "minutes",
        TimeClass::Hours => "up to hours, above all on a CPU",
    }
}

fn values(values: &[Value]) -> String {
    values.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn yes_or_nothing(is: bool) -> String {
    if is { "yes" } else { "" }.to_owned()
}

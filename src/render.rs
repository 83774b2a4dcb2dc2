//! The decision table as people see it: one view, three dialects (Markdown, terminal, HTML).
//!
//! Text that came from a model file is data. Every dialect escapes every cell.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod html;
pub mod markdown;
pub mod terminal;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    plan::{Draft, Expected, Match, digest::Digest},
    vocab::{Backend, Origin, SessionId, Severity},
};

/// The question under every table.
pub const ASK: &str = "Confirm this plan? Any changes?";

/// How much of a line of a message hosts show at least.
const NUTSHELL_COLUMNS: usize = 110;

/// What is shown, before it has a dialect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct View {
    /// The plan in three lines of at most about 110 columns: hosts that cut messages show no more.
    pub nutshell: [String; 3],
    /// The decision table.
    pub rows: Vec<RowView>,
    /// Values that were not taken.
    pub alternatives: Vec<[String; 3]>,
    /// What may go wrong, gravest first.
    pub risks: Vec<RiskView>,
    /// What only the user can answer.
    pub questions: Vec<QuestionView>,
    /// Skills to go to.
    pub handoffs: Vec<String>,
    /// What to expect of the result.
    pub expected: Vec<[String; 2]>,
    /// The question under the table, or what keeps it from being asked.
    pub ask: String,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RowView {
    /// Name of the decision.
    pub decision: String,
    /// Value, as JSON without the quotes of a plain text.
    pub value: String,
    /// Why.
    pub reason: String,
    /// Where it came from.
    pub origin: Origin,
    /// The rule that took it.
    pub rule: String,
}

/// A risk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RiskView {
    /// How grave.
    pub severity: Severity,
    /// What, with what to do about it.
    pub text: String,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionView {
    /// Id to answer by.
    pub id: String,
    /// The question, with its options.
    pub text: String,
    /// Whether the draft cannot be confirmed before it is answered.
    pub blocking: bool,
}

/// What a draft looks like to a user.
pub fn view(draft: &Draft, session: &SessionId, revision: u64, digest: &Digest) -> View {
    let rows = draft
        .decisions
        .iter()
        .map(|decision| RowView {
            decision: decision.id.to_string(),
            value: if decision.set { plain(&decision.value) } else { "(open)".to_owned() },
            reason: decision.reason.clone(),
            origin: decision.origin,
            rule: decision.rule.to_string(),
        })
        .collect();
    let alternatives = draft
        .decisions
        .iter()
        .flat_map(|decision| {
            let name = decision.id.to_string();
            decision
                .alternatives
                .iter()
                .map(move |a| [name.clone(), cut(&plain(&a.value), 80), a.why_not.clone()])
        })
        .collect();
    let risks = draft
        .risks
        .iter()
        .map(|risk| RiskView {
            severity: risk.severity,
            text: match &risk.recovery_hint {
                Some(hint) => format!("{}; {hint}", risk.message),
                None => risk.message.clone(),
            },
        })
        .collect();
    let questions = draft
        .questions
        .iter()
        .map(|question| {
            let mut text = question.text.clone();
            for option in &question.options {
                text.push_str(&format!(" [`{}`: {}]", option.value, option.meaning));
            }
            QuestionView { id: question.id.to_string(), text, blocking: question.blocking }
        })
        .collect();
    let handoffs = draft
        .handoffs
        .iter()
        .map(|handoff| {
            format!("`{}`: {}; bring back {}", handoff.skill, handoff.reason, handoff.bring_back)
        })
        .collect();
    let missing = draft.missing();
    let ask = if missing.is_empty() {
        ASK.to_owned()
    } else {
        format!("This plan cannot be confirmed yet: {}", missing.join("; "))
    };
    View {
        nutshell: nutshell(draft, session, revision, digest),
        rows,
        alternatives,
        risks,
        questions,
        handoffs,
        expected: expected(&draft.expected),
        ask,
    }
}

fn nutshell(draft: &Draft, session: &SessionId, revision: u64, digest: &Digest) -> [String; 3] {
    let value = |row: &str| draft.decision(row).filter(|d| d.set).map(|d| plain(&d.value));
    let or_open = |row: &str| value(row).unwrap_or_else(|| "(open)".to_owned());
    let file = draft.model.path.rsplit(['/', '\\']).next().unwrap_or(&draft.model.path);
    let size = draft.model.bytes.map(|b| format!(", {}", bytes(b))).unwrap_or_default();
    let kind = match draft.backend {
        Backend::Onnx => draft.model.architecture.as_str().to_owned(),
        Backend::Torch => clean(&draft.model.model_type),
    };
    let rest = format!(
        " ({kind}{size}) · revision {revision} · table {} · session {session}",
        digest.short(),
    );
    // The id must stay whole, so a long file name gives way.
    let room = NUTSHELL_COLUMNS.saturating_sub(rest.chars().count()).clamp(12, 40);
    let first = format!("{}{rest}", cut(&clean(file), room));
    let second = match draft.backend {
        Backend::Onnx => onnx_line(draft, &or_open),
        Backend::Torch => torch_line(draft, &or_open),
    };
    let yours: Vec<&str> = draft
        .decisions
        .iter()
        .filter(|d| d.origin == Origin::User)
        .map(|d| d.id.as_str())
        .collect();
    let yours = if yours.is_empty() {
        "nothing set by you".to_owned()
    } else {
        format!("set by you: {}", yours.join(", "))
    };
    let risks = match draft.risks.first() {
        None => "no risks".to_owned(),
        Some(gravest) => format!(
            "{} {}, gravest {}: {}",
            draft.risks.len(),
            if draft.risks.len() == 1 { "risk" } else { "risks" },
            gravest.severity.as_str(),
            clean(&gravest.message)
        ),
    };
    let third = format!("{} · {risks}", cut(&yours, 50));
    [first, second, third].map(|line| cut(&line, NUTSHELL_COLUMNS))
}

/// What an ONNX plan does, in a line.
fn onnx_line(draft: &Draft, or_open: &dyn Fn(&str) -> String) -> String {
    let algorithms = match draft.decision("algorithms").map(|d| &d.value) {
        Some(Value::Array(list)) if !list.is_empty() => {
            list.iter().map(plain).collect::<Vec<_>>().join(" + ")
        }
        _ => "no algorithms".to_owned(),
    };
    let method = match draft.decision("calibration.method") {
        Some(d) if d.set && d.value.is_null() => "no calibration".to_owned(),
        _ => {
            let size = or_open("calibration.data_size");
            let noun = if size == "1" { "sample" } else { "samples" };
            format!("{}, {size} {noun}", or_open("calibration.method"))
        }
    };
    format!(
        "{} for {} · {method} · {algorithms} · amd-quark {}",
        or_open("preset"),
        or_open("deployment_target"),
        draft.quark_version,
    )
}

/// What a Torch plan does, in a line.
fn torch_line(draft: &Draft, or_open: &dyn Fn(&str) -> String) -> String {
    let set = |row: &str| draft.decision(row).is_some_and(|d| d.set && !d.value.is_null());
    let algorithm = if set("algorithm") { or_open("algorithm") } else { "no algorithm".to_owned() };
    let cache = if set("kv_cache_scheme") {
        format!(" with {} KV cache", or_open("kv_cache_scheme"))
    } else {
        String::new()
    };
    format!(
        "{}{cache} · {algorithm} · {}, {} x {} tokens · {}, {} · amd-quark {}",
        or_open("global_scheme"),
        or_open("calibration.dataset"),
        or_open("calibration.num_calib_data"),
        or_open("calibration.seq_len"),
        or_open("device_strategy"),
        or_open("export_format"),
        draft.quark_version,
    )
}

fn expected(expected: &Expected) -> Vec<[String; 2]> {
    let mut lines: Vec<[String; 2]> = Vec::new();
    let mut line = |what: &str, text: String| lines.push([what.to_owned(), text]);
    match (expected.weight_bytes_before, expected.weight_bytes_after) {
        (Some(before), Some(after)) => {
            let percent = if before == 0 { 100.0 } else { after as f64 * 100.0 / before as f64 };
            line(
                "weights",
                format!("{} now, about {} after ({percent:.0} %)", bytes(before), bytes(after)),
            );
        }
        (Some(before), None) => line("weights", bytes(before)),
        (None, Some(after)) => line("weights", format!("about {} after", bytes(after))),
        (None, None) => {}
    }
    if !expected.parts.is_empty() {
        let parts =
            expected.parts.iter().map(|part| format!("{} {}", part.name, bytes(part.bytes)));
        line("after, by part", parts.collect::<Vec<_>>().join(", "));
    }
    if let Some(bits) = expected.centibits_per_weight {
        line("bits a parameter", format!("{}.{:02}", bits / 100, bits % 100));
    }
    if let (Some(some), Some(all)) = (expected.quantized_modules, expected.linear_modules) {
        line("quantized modules", format!("{some} of {all}"));
    }
    if let Some(each) = expected.kv_cache_bytes_per_token {
        line("KV cache of a token", bytes(each));
    }
    for fit in &expected.fits {
        line(
            &clean(&fit.device),
            format!(
                "{}: {} of {} with the cache of {} tokens",
                if fit.fits { "fits" } else { "does not fit" },
                bytes(fit.needed_bytes),
                bytes(fit.memory_bytes),
                fit.context
            ),
        );
    }
    if let (Some(some), Some(all)) = (expected.quantized_nodes, expected.compute_nodes) {
        line("quantized nodes", format!("{some} of {all}"));
    }
    if let (Some(some), Some(all)) = (expected.npu_nodes, expected.compute_nodes) {
        let percent = if all == 0 { 0.0 } else { some as f64 * 100.0 / all as f64 };
        line("nodes the NPU runs", format!("{some} of {all} ({percent:.0} %), by the op table"));
    }
    if !expected.cpu_ops.is_empty() {
        let ops: Vec<String> = expected.cpu_ops.iter().map(|(op, n)| format!("{op} {n}")).collect();
        line("on the CPU", ops.join(", "));
    }
    for input in &expected.calibration_inputs {
        line(
            "calibration input",
            format!("`{}`: {} {}", clean(&input.name), input.dtype, clean(&input.shape)),
        );
    }
    for entry in &expected.matches {
        line(&entry.decision.to_string(), meaning(entry));
    }
    if let Some(time) = &expected.time_class {
        line("time", time.clone());
    }
    lines
}

/// What a pattern or name means in the model.
fn meaning(entry: &Match) -> String {
    let thing = if entry.bytes.is_some() { "module" } else { "node" };
    let pattern = clean(&entry.pattern);
    if entry.nodes == 0 {
        return format!("`{pattern}` means no {thing} that is known");
    }
    let plural = if entry.nodes == 1 { "" } else { "s" };
    // A head that shares the embeddings' weight has no bytes of its own, nor has what is of no known type.
    let size = entry.bytes.filter(|size| *size > 0);
    let size = size.map_or(String::new(), |size| format!(" ({})", bytes(size)));
    let examples = clean(&entry.examples.join(", "));
    format!("`{pattern}` means {} {thing}{plural}{size}: {examples}", entry.nodes)
}

/// A value as people read it: text without quotes, anything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        other => clean(&other.to_string()),
    }
}

/// Bytes with a unit, in powers of ten.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    for (unit, size) in UNITS {
        if count as f64 >= size {
            return format!("{:.1} {unit}", count as f64 / size);
        }
    }
    format!("{count} bytes")
}

/// Text without anything that acts on a screen: control characters, and marks that turn its direction.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                '\u{fffd}'
            }
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(columns.saturating_sub(1)).collect();
    short.push('…');
    short
}

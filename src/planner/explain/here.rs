//! What a name means for one model, or in one session.

use serde_json::{Value, json};

use crate::{
    catalogue::{Catalogue, devices::DeviceKind, families::Family},
    facts::torch::ExistingQuantization,
    intent::Intent,
    plan::{Decision, Draft, Expected},
    planner::{
        error::Error,
        explain::{cards, things::Thing},
        reading::Reading,
    },
    render::{bytes, markdown::cell, plain},
    rules::{
        Outcome,
        sheet::{list, show},
        torch::lookup,
    },
    vocab::{Backend, DecisionId},
};

/// The half of Quark that plans the model of a reading.
pub(super) fn half(reading: &Reading) -> Backend {
    reading.context().backend()
}

/// What a thing means for the model of a reading, in lines; the draft is the session's, when there is one.
///
/// # Errors
///
/// When the request of the session itself is refused.
pub(super) fn verdict(
    thing: Thing,
    reading: &mut Reading,
    session: Option<&Draft>,
) -> Result<Vec<String>, Error> {
    let own = half(reading);
    if let Some(other) = thing.backend().filter(|other| *other != own) {
        let what = match own {
            Backend::Onnx => "an ONNX model, which Quark-ONNX plans",
            Backend::Torch => "a Hugging Face model, which Quark-Torch plans",
        };
        let belongs = cards::half(Some(other));
        return Ok(vec![format!(
            "`{}` belongs to {belongs}, and this is {what}: it has no part in its plan",
            thing.id()
        )]);
    }
    let mut lines = Vec::new();
    let name = json!(thing.id());
    match thing {
        Thing::Preset(_) => wished(thing, "preset", name, reading, &mut lines)?,
        Thing::Method(_) => wished(thing, "calibration.method", name, reading, &mut lines)?,
        Thing::Algorithm(_) => wished(thing, "algorithms", json!([name]), reading, &mut lines)?,
        Thing::Target(_) => wished(thing, "deployment_target", name, reading, &mut lines)?,
        Thing::Scheme(_) => wished(thing, "global_scheme", name, reading, &mut lines)?,
        Thing::TorchAlgorithm(_) => wished(thing, "algorithm", name, reading, &mut lines)?,
        Thing::EntryPoint(_) => wished(thing, "entry_point", name, reading, &mut lines)?,
        Thing::Family(family) => of_family(family, reading, &mut lines),
        Thing::Engine(engine) => {
            let with = |intent: &mut Intent| intent.serving_engine = Some(engine.id.to_string());
            scheme_with(thing, with, reading, &mut lines)?;
        }
        Thing::Device(device) if own == Backend::Torch && device.kind == DeviceKind::Gpu => {
            let with = |intent: &mut Intent| intent.hardware = vec![device.id.to_string()];
            scheme_with(thing, with, reading, &mut lines)?;
        }
        Thing::Prequantized(source) => {
            let found = &reading.context().torch().quantization;
            let known = |one: &ExistingQuantization| {
                let entry = Catalogue.prequantized().find(one.method.as_deref()?)?;
                Some(entry.id == source.id)
            };
            let is = found.iter().any(|one| known(one) == Some(true));
            lines.push(
                if is {
                    "The checkpoint says that it is one of these"
                } else {
                    "The checkpoint is none of these"
                }
                .to_owned(),
            );
        }
        Thing::Decision(row) => {
            let drafted = drafted(reading, session, &mut lines)?;
            by_row(row.id, "It", session.is_some(), drafted.as_ref(), &mut lines);
        }
        Thing::Topic(topic) => {
            let drafted = drafted(reading, session, &mut lines)?;
            for row in &topic.decisions {
                let name = format!("`{row}`");
                by_row(row.as_str(), &name, session.is_some(), drafted.as_ref(), &mut lines);
            }
        }
        Thing::Rule(rule) => {
            if let Some(draft) = session {
                by_rule(rule.id, draft, &mut lines);
            }
        }
        Thing::Option(option) => {
            let value = session
                .and_then(|draft| draft.decision("onnx_specific.extra_options"))
                .and_then(|row| row.value.get(option.id.as_str()));
            if let Some(value) = value {
                lines.push(format!("The draft sets it to {}", cell(&show(value))));
            }
        }
        Thing::Op(op) => {
            let targets = &reading.bundle.analysis.quantization_targets.onnx_specific;
            let counts = targets.as_ref().map(|targets| &targets.op_counts);
            let count = counts.and_then(|counts| counts.get(&op.id)).copied().unwrap_or(0);
            lines.push(format!("The model has {count} of them"));
        }
        _ => {}
    }
    Ok(lines)
}

/// The draft of the session, or the one that the model alone leads to.
fn drafted(
    reading: &Reading,
    session: Option<&Draft>,
    lines: &mut Vec<String>,
) -> Result<Option<Draft>, Error> {
    Ok(match session {
        Some(draft) => Some(draft.clone()),
        None => draft_of(reading, lines)?.map(|draft| *draft),
    })
}

/// What a row is, or would be.
fn by_row(row: &str, name: &str, decided: bool, draft: Option<&Draft>, lines: &mut Vec<String>) {
    let is = if decided { "is now" } else { "would be" };
    match draft.and_then(|draft| draft.decision(row)) {
        Some(row) if row.set => {
            let value = cell(&show(&row.value));
            lines.push(format!("{name} {is} {value}: {}", cell(&row.reason)));
        }
        Some(row) => lines.push(format!("{name} has no value yet: {}", cell(&row.reason))),
        None => {}
    }
}

/// What a family's template means for the model.
fn of_family(family: &Family, reading: &Reading, lines: &mut Vec<String>) {
    let model_type = &reading.bundle.analysis.model.model_type;
    if family.id != *model_type.as_str() {
        let own = cell(&format!("`{}`", model_type.replace('`', "'")));
        lines.push(format!(
            "The model is of another family, {own}: Quark takes a template by its `model_type` only"
        ));
        return;
    }
    lines.push("The model is of this family".to_owned());
    let Some(modules) = &reading.modules else { return };
    for pattern in &family.exclude_layers {
        let count = lookup::matching(modules, pattern).count();
        let all = modules.linears.len();
        lines.push(format!("`{pattern}` means {count} of its {all} linear modules"));
    }
}

/// What the scheme would be with something else in the intent.
fn scheme_with(
    thing: Thing,
    change: impl Fn(&mut Intent),
    reading: &mut Reading,
    lines: &mut Vec<String>,
) -> Result<(), Error> {
    let Some(draft) = draft_after(change, reading, lines)? else { return Ok(()) };
    if let Some(row) = draft.decision("global_scheme").filter(|row| row.set) {
        let value = cell(&show(&row.value));
        lines.push(format!(
            "With `{}` the scheme would be {value}: {}",
            thing.id(),
            cell(&row.reason)
        ));
    }
    risks_about(thing, &draft, lines);
    Ok(())
}

/// What the rules say when the user wishes for a value.
fn wished(
    thing: Thing,
    row: &str,
    value: Value,
    reading: &mut Reading,
    lines: &mut Vec<String>,
) -> Result<(), Error> {
    let Some(draft) = draft_with(row, &value, None, reading, lines)? else { return Ok(()) };
    let open = |id: &str| draft.decision(id).is_some_and(|decision| !decision.set);
    match draft.decision(row) {
        Some(decision) if decision.set => {
            lines.push(format!("`{}` {}", thing.id(), taken(decision, &value)));
        }
        Some(_) if matches!(thing, Thing::Preset(_)) && open("deployment_target") => {
            by_target(row, &value, reading, lines)?;
        }
        Some(decision) => {
            lines.push(format!("`{}` is not decided: {}", thing.id(), cell(&decision.reason)));
        }
        None => lines.push("No rule decides about it".to_owned()),
    }
    risks_about(thing, &draft, lines);
    expected(&draft.expected, lines);
    Ok(())
}

fn risks_about(thing: Thing, draft: &Draft, lines: &mut Vec<String>) {
    let risks = draft.risks.iter().filter(|risk| risk.message.contains(thing.id()));
    lines.extend(
        risks.take(3).map(|r| format!("Risk ({}): {}", r.severity.as_str(), cell(&r.message))),
    );
}

/// The same for each target, where none is given.
fn by_target(
    row: &str,
    value: &Value,
    reading: &mut Reading,
    lines: &mut Vec<String>,
) -> Result<(), Error> {
    for target in Catalogue.targets().ids() {
        let mut refused = Vec::new();
        let draft = draft_with(row, value, Some(target), reading, &mut refused)?;
        let decision = draft.as_ref().and_then(|draft| draft.decision(row)).filter(|d| d.set);
        match decision {
            Some(decision) => {
                let name = plain(value);
                lines.push(format!("On `{target}` `{name}` {}", taken(decision, value)));
            }
            None => lines.extend(refused.into_iter().map(|why| format!("On `{target}`: {why}"))),
        }
    }
    Ok(())
}

/// The draft that a wish leads to; without one, the lines say why.
fn draft_with(
    row: &str,
    value: &Value,
    target: Option<&str>,
    reading: &mut Reading,
    lines: &mut Vec<String>,
) -> Result<Option<Box<Draft>>, Error> {
    let wish = |intent: &mut Intent| {
        intent.values.insert(DecisionId::new(row), value.clone());
        if let Some(target) = target {
            intent.deployment_target = Some(target.to_owned());
        }
    };
    draft_after(wish, reading, lines)
}

/// The draft of another intent, which is put back afterwards.
fn draft_after(
    change: impl Fn(&mut Intent),
    reading: &mut Reading,
    lines: &mut Vec<String>,
) -> Result<Option<Box<Draft>>, Error> {
    let kept = reading.bundle.intent.clone();
    change(&mut reading.bundle.intent);
    let outcome = draft_of(reading, lines);
    reading.bundle.intent = kept;
    outcome
}

/// The draft of a reading; without one, the lines say why.
fn draft_of(reading: &Reading, lines: &mut Vec<String>) -> Result<Option<Box<Draft>>, Error> {
    match reading.reason() {
        Ok(Outcome::Draft(draft)) => return Ok(Some(draft)),
        Ok(Outcome::Handoff(handoff)) => lines.push(format!(
            "Nothing can be planned for it yet: {}; go to `{}`",
            cell(&handoff.reason),
            handoff.skill
        )),
        Err(Error::Request(defects)) => {
            lines
                .extend(defects.iter().map(|defect| format!("Refused: {}", cell(&defect.message))));
        }
        Err(error) => return Err(error),
    }
    Ok(None)
}

/// Whether a wish is granted, and why.
fn taken(decision: &Decision, wished: &Value) -> String {
    let reason = match decision.reason.as_str() {
        // The user has not asked yet.
        "you asked for it" => "nothing speaks against it".to_owned(),
        reason => cell(reason),
    };
    if holds(&decision.value, wished) {
        format!("would be taken: {reason}")
    } else {
        format!("would not be taken, but {}: {reason}", cell(&show(&decision.value)))
    }
}

/// Whether a decision is what was wished for, or a list with it.
fn holds(decided: &Value, wished: &Value) -> bool {
    match (decided, wished) {
        (Value::Array(all), Value::Array(wished)) => wished.iter().all(|one| all.contains(one)),
        _ => decided == wished,
    }
}

fn expected(expected: &Expected, lines: &mut Vec<String>) {
    if let (Some(before), Some(after)) = (expected.weight_bytes_before, expected.weight_bytes_after)
    {
        lines.push(format!("Weights: {} before, about {} after", bytes(before), bytes(after)));
    }
    if let (Some(quantized), Some(all)) = (expected.quantized_nodes, expected.compute_nodes) {
        lines.push(format!("{quantized} of {all} nodes would be quantized"));
    }
    if let (Some(npu), Some(all)) = (expected.npu_nodes, expected.compute_nodes) {
        let cpu = expected.cpu_ops.iter().map(|(op, count)| format!("{op} ({count})"));
        let cpu = list(cpu, 6);
        let rest =
            if cpu.is_empty() { String::new() } else { format!("; to the CPU: {}", cell(&cpu)) };
        lines.push(format!("{npu} of {all} nodes are of a type that the NPU runs{rest}"));
    }
}

fn by_rule(id: &str, draft: &Draft, lines: &mut Vec<String>) {
    for decision in draft.decisions.iter().filter(|decision| decision.rule == *id) {
        let reason = cell(&decision.reason);
        lines.push(format!(
            "It decided `{}`: {}: {reason}",
            decision.id,
            cell(&show(&decision.value))
        ));
    }
    for risk in draft.risks.iter().filter(|risk| risk.rule == *id) {
        lines.push(format!("It saw a risk ({}): {}", risk.severity.as_str(), cell(&risk.message)));
    }
    for question in draft.questions.iter().filter(|question| question.rule == *id) {
        lines.push(format!("It asks: {}", cell(&question.text)));
    }
}

/// The model in a few words.
pub(super) fn about(reading: &Reading) -> String {
    let model = &reading.bundle.analysis.model;
    let mut words = vec![cell(&format!("`{}`", model.model_path.replace('`', "'")))];
    if let Some(facts) = &model.onnx_specific {
        words.extend(facts.architecture_guess.map(|guess| guess.as_str().to_owned()));
        let opset = facts.opsets.iter().find(|o| o.domain == "ai.onnx" || o.domain.is_empty());
        words.extend(opset.map(|opset| format!("opset {}", opset.version)));
        words.extend(facts.nodes.map(|nodes| format!("{} nodes", nodes.all)));
    }
    if let Some(facts) = &model.torch_specific {
        words.push(cell(&format!("`{}`", model.model_type.replace('`', "'"))));
        words.extend(facts.parameters.map(|count| format!("{count} parameters")));
    }
    words.join(", ")
}

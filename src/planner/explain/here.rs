//! What a name means for one model, or in one session.

use serde_json::{Value, json};

use crate::{
    plan::{Draft, Expected},
    planner::{
        error::Error,
        explain::things::Thing,
        propose::{Reading, reason},
    },
    render::{bytes, markdown::cell},
    rules::{
        Outcome,
        sheet::{list, show},
    },
    vocab::DecisionId,
};

/// What a thing means for the model of a reading, in Markdown; the draft is the session's, when there is one.
///
/// # Errors
///
/// When the request of the session itself is refused.
pub(super) fn verdict(
    thing: Thing,
    reading: &mut Reading,
    session: Option<&Draft>,
) -> Result<String, Error> {
    let mut lines = Vec::new();
    match thing {
        Thing::Preset(_) => wished(thing, "preset", json!(thing.id()), reading, &mut lines)?,
        Thing::Method(_) => {
            wished(thing, "calibration.method", json!(thing.id()), reading, &mut lines)?;
        }
        Thing::Algorithm(_) => {
            wished(thing, "algorithms", json!([thing.id()]), reading, &mut lines)?
        }
        Thing::Target(_) => {
            wished(thing, "deployment_target", json!(thing.id()), reading, &mut lines)?;
        }
        Thing::Decision(row) => match session.and_then(|draft| draft.decision(row.id)) {
            Some(row) if row.set => {
                lines.push(format!("It is {} now: {}", cell(&show(&row.value)), cell(&row.reason)));
            }
            Some(row) => lines.push(format!("It has no value yet: {}", cell(&row.reason))),
            None => {}
        },
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
    let mut out = format!("\n**For this model** ({}):\n\n", about(reading));
    if lines.is_empty() {
        lines.push("Nothing depends on it here".to_owned());
    }
    for line in lines {
        out.push_str(&format!("- {line}\n"));
    }
    Ok(out)
}

/// What the rules say when the user wishes for a value.
fn wished(
    thing: Thing,
    row: &str,
    value: Value,
    reading: &mut Reading,
    lines: &mut Vec<String>,
) -> Result<(), Error> {
    let kept = reading.bundle.intent.clone();
    reading.bundle.intent.values.insert(DecisionId::new(row), value.clone());
    let outcome = reason(reading);
    let target_given = kept.deployment_target.is_some()
        || kept.values.contains_key(&DecisionId::new("deployment_target"));
    reading.bundle.intent = kept;
    let draft = match outcome {
        Ok(Outcome::Draft(draft)) => draft,
        Ok(Outcome::Handoff(handoff)) => {
            lines.push(format!(
                "Nothing can be planned for it yet: {}; go to `{}`",
                cell(&handoff.reason),
                handoff.skill
            ));
            return Ok(());
        }
        Err(Error::Request(defects)) => {
            lines
                .extend(defects.iter().map(|defect| format!("Refused: {}", cell(&defect.message))));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match draft.decision(row) {
        Some(decision) if decision.set && holds(&decision.value, &value) => {
            lines.push(format!("`{}` would be taken: {}", thing.id(), cell(&decision.reason)));
        }
        Some(decision) if decision.set => {
            lines.push(format!(
                "`{}` would not be taken, but {}: {}",
                thing.id(),
                cell(&show(&decision.value)),
                cell(&decision.reason)
            ));
        }
        Some(decision) => lines.push(format!("Not decided: {}", cell(&decision.reason))),
        None => lines.push("No rule decides about it".to_owned()),
    }
    let risks = draft.risks.iter().filter(|risk| risk.message.contains(thing.id()));
    lines.extend(
        risks
            .take(3)
            .map(|risk| format!("Risk ({}): {}", risk.severity.as_str(), cell(&risk.message))),
    );
    expected(&draft.expected, lines);
    let open = draft.decision("deployment_target").is_none_or(|decision| !decision.set);
    if !target_given && open && row != "deployment_target" {
        lines.push(
            "No deployment target is given, and it decides more than anything else: an NPU takes few presets"
                .to_owned(),
        );
    }
    Ok(())
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
fn about(reading: &Reading) -> String {
    let model = &reading.bundle.analysis.model;
    let mut words = vec![cell(&format!("`{}`", model.model_path.replace('`', "'")))];
    if let Some(facts) = &model.onnx_specific {
        words.extend(facts.architecture_guess.map(|guess| guess.as_str().to_owned()));
        let opset = facts.opsets.iter().find(|o| o.domain == "ai.onnx" || o.domain.is_empty());
        words.extend(opset.map(|opset| format!("opset {}", opset.version)));
        words.extend(facts.nodes.map(|nodes| format!("{} nodes", nodes.all)));
    }
    words.join(", ")
}

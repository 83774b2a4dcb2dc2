//! Whether a plan has the fields that its readers expect, and whether they say the same thing.

use serde_json::Value;

use crate::{
    plan::quant_plan,
    planner::check::{Check, Finding, Grade, Subject},
    render::plain,
    rules::{
        review::{Review, at, same},
        rows,
        sheet::list,
    },
    schema::contract::{Contract, Violation, fields},
    vocab::{Backend, near_names},
};

pub(super) fn findings(subject: &Subject, judged: &Review) -> Vec<Finding> {
    let mut findings = violations(subject, judged);
    findings.extend(stray_metric(&subject.value));
    findings.extend(torn_off(subject));
    if !subject.is_own {
        findings.extend(unknown_fields(subject));
    }
    findings.extend(against_itself(subject, judged));
    findings
}

fn violations(subject: &Subject, judged: &Review) -> Vec<Finding> {
    let first = if subject.is_own {
        Contract::Own(subject.backend)
    } else {
        Contract::Skill(subject.backend)
    };
    let broken = first.violations(&subject.value);
    let shipped = Contract::Shipped.violations(&subject.value);
    let shipped: Vec<&Violation> = shipped.iter().filter(|new| !broken.contains(new)).collect();
    // Names and ranges say better what such a field takes.
    let said = |place: &str| {
        judged.defects.iter().any(|defect| defect.row.as_ref().is_some_and(|row| *row == *place))
    };
    let mut findings: Vec<Finding> = broken
        .iter()
        .filter(|violation| !said(&violation.place))
        .map(|violation| found(Grade::Defect, violation, &violation.message))
        .collect();
    if subject.is_own || subject.backend == Backend::Torch {
        let end = " (schema that amd-quark 0.13 ships)";
        let rest = shipped.iter().filter(|violation| !said(&violation.place));
        findings.extend(rest.map(|violation| {
            found(Grade::Defect, violation, &format!("{}{end}", violation.message))
        }));
    } else if !shipped.is_empty() {
        let what: Vec<&str> = shipped.iter().map(|violation| violation.message.as_str()).collect();
        let what = what.join("; ");
        findings.push(
            Finding::new(
                Grade::Warning,
                Check::Schema,
                format!("the schema that amd-quark 0.13 ships does not take this ONNX plan: {what}"),
            )
            .hint(
                "plans of quantplan carry `global_scheme` (the preset), `exclude_layers` (the excluded nodes) and \
                 `layer_quant_config` (`{}`) for it",
            ),
        );
    }
    findings
}

fn found(grade: Grade, violation: &Violation, message: &str) -> Finding {
    let finding = Finding::new(grade, Check::Schema, message);
    if violation.place.is_empty() { finding } else { finding.at(violation.place.clone()) }
}

/// A procedure of evaluation beside an intent that runs none.
fn stray_metric(plan: &Value) -> Option<Finding> {
    let metric = plan["evaluation_metric"].as_str()?;
    let intent = &plan["evaluation_intent"];
    (intent != "full").then(|| {
        Finding::new(
            Grade::Defect,
            Check::Schema,
            format!("`{metric}` is run by the intent `full` only, and this is `{}`", plain(intent)),
        )
        .at("evaluation_metric")
    })
}

/// A plan of quantplan from which somebody took who agreed to it.
fn torn_off(subject: &Subject) -> Option<Finding> {
    let has = |field: &str| subject.value.get(field).is_some();
    (!subject.is_own && (has("reasons") || has("expected"))).then(|| {
        Finding::new(
            Grade::Warning,
            Check::Confirmation,
            "it has fields that only quantplan writes, and not its record of who confirmed it",
        )
        .at("provenance")
    })
}

/// Fields that nobody reads, most often misspelt ones.
fn unknown_fields(subject: &Subject) -> Vec<Finding> {
    let known = fields(subject.backend);
    let is_section = |name: &str| known.iter().any(|field| field.starts_with(&format!("{name}.")));
    let mut there = Vec::new();
    for (name, value) in subject.value.as_object().into_iter().flatten() {
        there.push(name.clone());
        if is_section(name) {
            let inner = value.as_object().into_iter().flatten();
            there.extend(inner.map(|(part, _)| format!("{name}.{part}")));
        }
    }
    there
        .into_iter()
        .filter(|name| !known.contains(name))
        .map(|name| {
            let near = near_names(&name, known.iter().map(String::as_str));
            let finding = Finding::new(
                Grade::Warning,
                Check::Schema,
                "no reader of quant_plan.json is known to look at this field",
            )
            .at(name);
            if near.is_empty() {
                finding
            } else {
                finding.hint(format!("did you mean {}?", list(near, 3)))
            }
        })
        .collect()
}

/// Fields that say another thing than the decisions of the same plan, and decisions that it leaves out.
fn against_itself(subject: &Subject, judged: &Review) -> Vec<Finding> {
    let Some(draft) = judged.draft.as_ref().filter(|draft| draft.decisions.iter().all(|d| d.set))
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut absent = Vec::new();
    for (path, value) in leaves(&quant_plan::values(draft, "")) {
        let is_row = rows::of(subject.backend).iter().any(|row| row.id == path);
        match at(&subject.value, &path) {
            None if is_row => absent.push((path, value)),
            // Rows are the rules' to judge.
            Some(given) if !is_row && !same(given, &value) => findings.push(
                Finding::new(
                    Grade::Defect,
                    Check::Schema,
                    format!(
                        "it is `{}`, and the decisions of this plan make it `{}`",
                        plain(given),
                        plain(&value)
                    ),
                )
                .at(path),
            ),
            _ => {}
        }
    }
    if !absent.is_empty() {
        let shown: Vec<String> =
            absent.iter().map(|(path, value)| format!("{path} = {}", plain(value))).collect();
        findings.push(
            Finding::new(
                Grade::Note,
                Check::Schema,
                format!(
                    "{} decisions are not in the plan, so whoever carries it out takes them",
                    absent.len()
                ),
            )
            .hint(format!(
                "the planner would write {}",
                list(shown.iter().map(String::as_str), 12)
            )),
        );
    }
    findings
}

/// The values of a plan by their paths: sections are opened, rows and other values are not.
pub(in crate::planner) fn leaves(plan: &Value) -> Vec<(String, Value)> {
    /// Judged elsewhere, or not a decision.
    const OTHER: [&str; 5] =
        ["risks", "reasons", "expected", "provenance", "requires_confirmation"];
    const SECTIONS: [&str; 3] = ["model", "calibration", "onnx_specific"];
    let mut found = Vec::new();
    for (name, value) in plan.as_object().into_iter().flatten() {
        if SECTIONS.contains(&name.as_str()) {
            let inner = value.as_object().into_iter().flatten();
            found.extend(inner.map(|(part, value)| (format!("{name}.{part}"), value.clone())));
        } else if !OTHER.contains(&name.as_str()) {
            found.push((name.clone(), value.clone()));
        }
    }
    found.retain(|(path, _)| path != "model.analysis_ref");
    found
}

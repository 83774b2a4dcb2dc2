//! Plans that exist already, judged again.

use quantplan::{
    intent::Intent,
    plan::Draft,
    rules::{
        Context, Outcome,
        review::{Review, requested, review},
    },
    vocab::Severity,
};
use serde_json::{Value, json};

use super::{assembled, fixture::Case};

/// Every scenario whose draft can be confirmed, with the plan that it becomes.
fn plans() -> impl Iterator<Item = (String, Case, Draft, Value)> {
    Case::all().into_iter().filter_map(|(name, case)| match case.plan() {
        Ok(Outcome::Draft(draft)) if draft.is_confirmable() => {
            let plan = serde_json::to_value(assembled(&draft)).unwrap();
            Some((name, case, *draft, plan))
        }
        _ => None,
    })
}

fn reviewed(case: &Case, plan: &Value, intent: &Intent) -> Review {
    let context = Context { intent, ..case.context() };
    review(&context, &requested(context.backend(), plan))
}

#[test]
fn a_plan_stands_up_to_the_rules_that_made_it() {
    let mut wrong = Vec::new();
    for (name, case, draft, plan) in plans() {
        let found = reviewed(&case, &plan, case.context().intent);
        let fine =
            found.defects.is_empty() && found.impossible.is_empty() && found.handoff.is_none();
        if !fine || !found.unwise.is_empty() {
            wrong.push(format!(
                "{name}: {:?} {:?} {:?} {:?}",
                found.defects, found.impossible, found.unwise, found.handoff
            ));
            continue;
        }
        let grave = found.risks.iter().filter(|risk| risk.severity > Severity::Low);
        let new: Vec<_> = grave.filter(|risk| !draft.risks.contains(risk)).collect();
        if !new.is_empty() {
            wrong.push(format!("{name}: new risks {new:?}"));
        }
        let again = assembled(&found.draft.unwrap());
        let again = serde_json::to_value(again).unwrap();
        for (field, value) in plan.as_object().unwrap() {
            let judged = !["risks", "reasons", "expected"].contains(&field.as_str());
            // A default that somebody asked for by name is no row of its own.
            if judged && again.get(field).is_some_and(|again| again != value) {
                wrong.push(format!("{name}: {field}: {value} became {}", again[field]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn a_value_that_no_insistence_keeps_is_impossible_and_one_against_advice_is_unwise() {
    let (_, case, _, mut plan) =
        plans().find(|(name, ..)| name == "onnx_guide_npu_cnn").expect("the scenario is there");
    plan["calibration"]["method"] = json!("MinMax");
    let found = reviewed(&case, &plan, case.context().intent);
    let rows: Vec<&str> = found.impossible.iter().map(|objection| objection.row.as_str()).collect();
    assert_eq!(rows, ["calibration.method"], "{found:?}");
    assert!(found.impossible[0].why.contains("powers of two"), "{:?}", found.impossible[0]);
    assert!(found.unwise.is_empty());
}

#[test]
fn every_defect_is_found_at_once_and_the_sound_values_are_still_judged() {
    let (_, case, _, mut plan) =
        plans().find(|(name, ..)| name == "onnx_guide_npu_cnn").expect("the scenario is there");
    plan["preset"] = json!("XINT9");
    plan["algorithms"] = json!(["CLEE"]);
    plan["calibration"]["worker_num"] = json!("many");
    plan["onnx_specific"]["enable_npu_cnn"] = json!(false);
    let found = reviewed(&case, &plan, case.context().intent);
    let messages: Vec<&str> = found.defects.iter().map(|defect| defect.message.as_str()).collect();
    for part in ["`XINT9`", "`CLEE`", "`calibration.worker_num`"] {
        assert!(messages.iter().any(|message| message.contains(part)), "{part}: {messages:?}");
    }
    let draft = found.draft.as_ref().expect("the rest makes a draft");
    assert_eq!(draft.decision("deployment_target").unwrap().value, "npu_cnn");
    assert!(
        found
            .impossible
            .iter()
            .chain(&found.unwise)
            .any(|o| o.row == "onnx_specific.enable_npu_cnn"),
        "{found:?}"
    );
}

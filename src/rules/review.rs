//! Looks at values that are decided already as the rules would have judged a request for them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    intent::Intent,
    plan::{Decision, Draft, Handoff, Risk},
    rules::{
        self, Context, Outcome,
        request::{self, Defect},
        rows::{self, Kind, Row, Takes},
    },
    vocab::{Backend, DecisionId, RuleId},
};

/// What the rules say of the values of a plan.
#[derive(Debug, Clone, Default)]
pub struct Review {
    /// Names, types and ranges that are wrong; such values are left out of everything below.
    pub defects: Vec<Defect>,
    /// Values that the rules do not let stand, whoever insists.
    pub impossible: Vec<Objection>,
    /// Values that the rules advise against.
    pub unwise: Vec<Objection>,
    /// What may go wrong with these very values.
    pub risks: Vec<Risk>,
    /// The draft with these values; `None` when the rules stop before there is one.
    pub draft: Option<Draft>,
    /// Where the rules send the model instead.
    pub handoff: Option<Handoff>,
}

/// A value that a rule does not take.
#[derive(Debug, Clone, PartialEq)]
pub struct Objection {
    /// The row.
    pub row: DecisionId,
    /// The value in the plan.
    pub value: Value,
    /// What the rule would put there; `None` when it leaves the row open.
    pub instead: Option<Value>,
    /// Why.
    pub why: String,
    /// The rule.
    pub rule: RuleId,
}

/// The values that a plan has for the rows of its table, as a user would ask for them.
///
/// Rows that the plan does not have, and `null` where a row takes none, are left out.
pub fn requested(backend: Backend, plan: &Value) -> BTreeMap<DecisionId, Value> {
    let mut values = BTreeMap::new();
    for row in rows::of(backend) {
        let Some(value) = at(plan, row.id) else { continue };
        if can_be_asked(row, value) {
            values.insert(DecisionId::new(row.id), value.clone());
        }
    }
    // `mlperf` and `mAP` are written as `full` with the metric beside it.
    if let Some(metric) = plan.get("evaluation_metric").filter(|metric| metric.is_string()) {
        values.insert(DecisionId::new("evaluation_intent"), metric.clone());
    }
    values
}

/// The value at a path with points.
pub fn at<'a>(plan: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(plan, |value, part| value.get(part))
}

fn can_be_asked(row: &Row, value: &Value) -> bool {
    let takes_null = match row.takes {
        Takes::Nothing(_) => return false,
        Takes::Name(kind) => kind == Kind::Method,
        Takes::Names(_)
        | Takes::OpTypes
        | Takes::Nodes
        | Takes::Choice(_)
        | Takes::Path
        | Takes::Overrides
        | Takes::Algorithms => true,
        // `null` keeps the template's list, as leaving the row out does.
        Takes::Patterns
        | Takes::Count { .. }
        | Takes::Flag
        | Takes::Subgraphs
        | Takes::Options
        | Takes::CustomConfig
        | Takes::Providers
        | Takes::Evaluation
        | Takes::Number
        | Takes::Dataset => false,
    };
    takes_null || !value.is_null()
}

/// Judges `values` with the intent of `ctx` for everything else.
pub fn review(ctx: &Context<'_>, values: &BTreeMap<DecisionId, Value>) -> Review {
    let mut review = Review::default();
    let mut intent = ctx.intent.clone();
    intent.values.clone_from(values);
    intent.deployment_target = None;
    intent.evaluation_intent = None;
    intent.insist.retain(|row| values.contains_key(row));
    if let Err(defects) = request::checked(&Context { intent: &intent, ..*ctx }) {
        review.defects = defects;
        keep_sound_values(ctx, &mut intent);
    }
    let insistent = Intent { insist: intent.values.keys().cloned().collect(), ..intent.clone() };
    let (advised, kept) = match (outcome(ctx, &intent), outcome(ctx, &insistent)) {
        (Ok(Outcome::Draft(advised)), Ok(Outcome::Draft(kept))) => (*advised, *kept),
        (_, Ok(Outcome::Handoff(handoff))) => {
            review.handoff = Some(*handoff);
            return review;
        }
        (Err(defects), _) | (_, Err(defects)) => {
            let new = |defect: &Defect| !review.defects.contains(defect);
            let new: Vec<Defect> = defects.into_iter().filter(new).collect();
            review.defects.extend(new);
            return review;
        }
        (Ok(Outcome::Handoff(handoff)), _) => {
            review.handoff = Some(*handoff);
            return review;
        }
    };
    review.impossible = objections(&intent.values, &kept);
    review.unwise = objections(&intent.values, &advised);
    review.unwise.retain(|objection| review.impossible.iter().all(|o| o.row != objection.row));
    // What only one of them has comes from a value that the other does not have, or from the insistence.
    review.risks = kept.risks.iter().filter(|risk| advised.risks.contains(risk)).cloned().collect();
    review.draft = Some(kept);
    review
}

fn outcome(ctx: &Context<'_>, intent: &Intent) -> Result<Outcome, Vec<Defect>> {
    rules::plan(&Context { intent, ..*ctx })
}

/// Takes out every value that is a defect by itself; the release decides what names there are.
fn keep_sound_values(ctx: &Context<'_>, intent: &mut Intent) {
    const NEEDED: [&str; 3] = ["quark_version", "preset", "onnx_specific.custom_config"];
    let sound = |ids: &[&DecisionId]| {
        let values = ids
            .iter()
            .filter_map(|id| Some(((*id).clone(), intent.values.get(*id)?.clone())))
            .collect();
        let alone = Intent { values, insist: Default::default(), ..intent.clone() };
        request::checked(&Context { intent: &alone, ..*ctx }).is_ok()
    };
    let needed: Vec<DecisionId> = NEEDED.iter().map(|id| DecisionId::new(*id)).collect();
    let mut base: Vec<&DecisionId> = Vec::new();
    for id in &needed {
        base.push(id);
        if !sound(&base) {
            base.pop();
        }
    }
    let kept: Vec<DecisionId> = intent
        .values
        .keys()
        .filter(|id| match base.contains(id) {
            true => true,
            false if needed.contains(id) => false,
            false => sound(&base.iter().copied().chain([*id]).collect::<Vec<_>>()),
        })
        .cloned()
        .collect();
    intent.values.retain(|id, _| kept.contains(id));
}

fn objections(values: &BTreeMap<DecisionId, Value>, draft: &Draft) -> Vec<Objection> {
    let judged =
        values.iter().filter_map(|(id, value)| Some((value, draft.decision(id.as_str())?)));
    judged
        .filter(|(value, decision)| !decision.set || !same(value, &decision.value))
        .map(|(value, decision)| Objection {
            row: decision.id.clone(),
            value: value.clone(),
            instead: decision.set.then(|| decision.value.clone()),
            why: why(value, decision),
            rule: decision.rule.clone(),
        })
        .collect()
}

/// The reason against a value, or else the reason for the one in its place.
fn why(value: &Value, decision: &Decision) -> String {
    let against = decision.alternatives.iter().find(|other| same(value, &other.value));
    against.map_or_else(|| decision.reason.clone(), |other| other.why_not.clone())
}

/// Whether two values mean the same: `null`, `[]` and `{}` do, and so do 1 and 1.0.
pub fn same(left: &Value, right: &Value) -> bool {
    fn canonical(value: &Value) -> Value {
        match value {
            Value::Array(items) if items.is_empty() => Value::Null,
            Value::Object(fields) if fields.is_empty() => Value::Null,
            Value::Array(items) => items.iter().map(canonical).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), canonical(field))).collect()
            }
            Value::Number(number) => number.as_f64().map_or_else(|| value.clone(), Value::from),
            other => other.clone(),
        }
    }
    left == right || canonical(left) == canonical(right)
}

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
        sheet::show,
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
    /// The rule; `None` where no rule makes anything of the row.
    pub rule: Option<RuleId>,
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
    let metric = plan.get("evaluation_metric").filter(|metric| metric.is_string());
    if let Some(metric) = metric.filter(|_| plan["evaluation_intent"] == "full") {
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
    let mut ctx = Context { intent: &Intent::default(), ..*ctx };
    if let Err(defects) = request::checked(&Context { intent: &intent, ..ctx }) {
        review.defects = defects;
        if request::checked(&ctx).is_err() {
            // A file that the plan names is the defect; the values can be judged without it.
            ctx.files = None;
        }
        keep_sound_values(&ctx, &mut intent);
    }
    if let Ok(spelled) = request::checked(&Context { intent: &intent, ..ctx }) {
        review.defects.extend(misspelt(&intent.values, &spelled.values));
        intent.values = spelled.values;
    }
    let ctx = &ctx;
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
    // Rows that are open because a value was left out say nothing of their own.
    let whole = review.defects.is_empty();
    review.impossible.retain(|o| o.rule.is_some() && (whole || o.instead.is_some()));
    review.unwise = objections(&intent.values, &advised);
    review.unwise.retain(|objection| {
        (whole || objection.instead.is_some())
            && review.impossible.iter().all(|other| other.row != objection.row)
    });
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
    const NEEDED: [&[&str]; 4] = [
        &["quark_version"],
        &["preset", "onnx_specific.custom_config"],
        &["preset"],
        &["onnx_specific.custom_config"],
    ];
    let sound = |ids: &[&DecisionId]| {
        let values = ids
            .iter()
            .filter_map(|id| Some(((*id).clone(), intent.values.get(*id)?.clone())))
            .collect();
        let alone = Intent { values, insist: Default::default(), ..intent.clone() };
        request::checked(&Context { intent: &alone, ..*ctx }).is_ok()
    };
    // What the others are judged by goes first, a custom preset together with its spec.
    let mut base: Vec<&DecisionId> = Vec::new();
    for group in NEEDED {
        let found = intent.values.keys().filter(|id| group.contains(&id.as_str()));
        let new: Vec<&DecisionId> = found.filter(|id| !base.contains(id)).collect();
        let tried = [base.clone(), new].concat();
        if sound(&tried) {
            base = tried;
        }
    }
    let is_needed = |id: &DecisionId| NEEDED.iter().any(|group| group.contains(&id.as_str()));
    let others = intent.values.keys().filter(|id| !is_needed(id));
    let others = others.filter(|id| sound(&[base.clone(), vec![*id]].concat()));
    let kept: Vec<DecisionId> = base.iter().copied().chain(others).cloned().collect();
    intent.values.retain(|id, _| kept.contains(id));
}

/// Values that are understood, and that whoever carries the plan out may not understand.
fn misspelt(
    given: &BTreeMap<DecisionId, Value>,
    spelled: &BTreeMap<DecisionId, Value>,
) -> Vec<Defect> {
    let other = |(id, value): (&DecisionId, &Value)| {
        if *id == *"quark_version" {
            // `0.13.0` and `0.13+cpu` are builds of 0.13.
            return None;
        }
        let right = spelled.get(id).filter(|right| !same(value, right))?;
        let mut defect = Defect::new(format!(
            "`{id}` is `{}`, which the library spells `{}`",
            show(value),
            show(right)
        ));
        defect.row = Some(id.clone());
        Some(defect)
    };
    given.iter().filter_map(other).collect()
}

fn objections(values: &BTreeMap<DecisionId, Value>, draft: &Draft) -> Vec<Objection> {
    values.iter().filter_map(|(id, value)| objection(id, value, draft)).collect()
}

fn objection(id: &DecisionId, value: &Value, draft: &Draft) -> Option<Objection> {
    let Some(decision) = draft.decision(id.as_str()) else {
        return (!says_nothing(id, value)).then(|| Objection {
            row: id.clone(),
            value: value.clone(),
            instead: Some(Value::Null),
            why: "nothing else in this plan makes use of it".to_owned(),
            rule: None,
        });
    };
    (!decision.set || !same(value, &decision.value)).then(|| Objection {
        row: id.clone(),
        value: value.clone(),
        instead: decision.set.then(|| decision.value.clone()),
        why: why(value, decision),
        rule: Some(decision.rule.clone()),
    })
}

/// Whether a value is what holds without it: a row that is there at need only may be spelled out.
fn says_nothing(id: &DecisionId, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => *id == *"custom_mode" && text == "quark",
        Value::Array(_) | Value::Object(_) | Value::Bool(true) => false,
    }
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

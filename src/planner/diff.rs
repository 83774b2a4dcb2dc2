//! Two plans beside each other: decision by decision, with the reasons.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::{
    planner::{
        Planner,
        check::{Subject, agreement},
        error::Error,
    },
    rules::{
        review::{at, same},
        rows,
    },
    vocab::Backend,
};

/// Fields beside the decisions that are worth comparing.
const FACTS: [&str; 5] = [
    "model.model_type",
    "model.architecture_guess",
    "expected.weight_bytes_after",
    "expected.quantized_nodes",
    "expected.quantized_modules",
];

/// Two plans, decision by decision.
#[derive(Debug, Clone, Serialize)]
pub struct Reply {
    /// The first plan.
    pub left: String,
    /// The second plan.
    pub right: String,
    /// Whether they decide the same.
    pub same: bool,
    /// The decisions that differ, in the order of the table.
    pub decisions: Vec<Difference>,
    /// Other facts that differ: of the model, and what to expect of the result.
    pub facts: Vec<Difference>,
    /// Risks that only the first has.
    pub risks_only_left: Vec<String>,
    /// Risks that only the second has.
    pub risks_only_right: Vec<String>,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Path of the field, with points.
    pub field: String,
    /// One plan's.
    pub left: Side,
    /// The other plan's.
    pub right: Side,
}

/// A field in one of the plans.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Its value; `null` also when it is not there.
    pub value: Value,
    /// Why, where the plan says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Planner {
    /// Compares two plans.
    ///
    /// # Errors
    ///
    /// When one of the files is no plan, or they are for different halves of Quark.
    pub fn diff(&self, left: &Path, right: &Path) -> Result<Reply, Error> {
        let (one, other) = (self.subject(left)?, self.subject(right)?);
        let backend = one.backend;
        if backend != other.backend {
            return Err(Error::Arguments {
                message: format!(
                    "`{}` is for {}, `{}` for {}",
                    left.display(),
                    backend.as_str(),
                    right.display(),
                    other.backend.as_str()
                ),
                hint: "compare two plans of the same half of Quark".to_owned(),
            });
        }
        let by_hand = [self.edited_fields(&one), self.edited_fields(&other)];
        let (one, other) = (one.value, other.value);
        let differing = |field: &str| {
            let left = side(&one, field, &by_hand[0]);
            let right = side(&other, field, &by_hand[1]);
            (!same(&left.value, &right.value)).then(|| Difference {
                field: field.to_owned(),
                left,
                right,
            })
        };
        let decisions: Vec<Difference> = decision_fields(backend).filter_map(differing).collect();
        let only = |plan: &Value, than: &Value| {
            let known = risks(than);
            risks(plan).into_iter().filter(|risk| !known.contains(risk)).collect()
        };
        Ok(Reply {
            left: left.display().to_string(),
            right: right.display().to_string(),
            same: decisions.is_empty(),
            decisions,
            facts: FACTS.into_iter().filter_map(differing).collect(),
            risks_only_left: only(&one, &other),
            risks_only_right: only(&other, &one),
        })
    }

    fn edited_fields(&self, plan: &Subject) -> Vec<String> {
        let (agreement, _) = agreement::of(plan, &self.known_session(plan));
        agreement.edits.into_iter().map(|edit| edit.field).collect()
    }
}

/// The rows of the table; the metric is part of the decision about evaluation.
fn decision_fields(backend: Backend) -> impl Iterator<Item = &'static str> {
    rows::of(backend).iter().map(|row| row.id).chain(["evaluation_metric"])
}

/// A reason is that of the value which was decided, and not of one that somebody wrote over it.
fn side(plan: &Value, field: &str, by_hand: &[String]) -> Side {
    let reason = if by_hand.iter().any(|edited| edited == field) {
        Some("edited after it was confirmed")
    } else {
        plan["reasons"][field]["reason"].as_str()
    };
    Side { value: at(plan, field).cloned().unwrap_or_default(), reason: reason.map(str::to_owned) }
}

fn risks(plan: &Value) -> Vec<String> {
    let all = plan["risks"].as_array().into_iter().flatten();
    all.filter_map(|risk| {
        let message = risk["message"].as_str()?;
        Some(match risk["severity"].as_str() {
            Some(severity) => format!("{severity}: {message}"),
            None => message.to_owned(),
        })
    })
    .collect()
}

//! Two plans beside each other: decision by decision, with the reasons.

use std::{collections::BTreeSet, path::Path};

use serde::Serialize;
use serde_json::Value;

use crate::{
    planner::{
        Planner,
        check::{Subject, shape::leaves},
        error::Error,
    },
    rules::{
        review::{at, same},
        rows,
    },
};

/// What to expect of the result; it follows from the model and the decisions.
const EXPECTED: [&str; 3] =
    ["expected.weight_bytes_after", "expected.quantized_nodes", "expected.quantized_modules"];

/// Two plans, decision by decision.
#[derive(Debug, Clone, Serialize)]
pub struct Reply {
    /// The first plan.
    pub left: String,
    /// The second plan.
    pub right: String,
    /// Whether they say the same of the model and what to do with it.
    pub same: bool,
    /// The decisions that differ, in the order of the table.
    pub decisions: Vec<Difference>,
    /// Other fields that differ: of the model, the library's own words for decisions, what to expect.
    pub fields: Vec<Difference>,
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
    /// Its value; left out when it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
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
        let by_hand = [self.edited_fields(&one)?, self.edited_fields(&other)?];
        let (one, other) = (one.value, other.value);
        let differing = |field: &str| {
            let left = side(&one, field, &by_hand[0]);
            let right = side(&other, field, &by_hand[1]);
            let is_same = match field {
                // `null` keeps the template's list, and an empty one excludes nothing.
                "exclude_layers" => left.value == right.value,
                _ => same(
                    left.value.as_ref().unwrap_or(&Value::Null),
                    right.value.as_ref().unwrap_or(&Value::Null),
                ),
            };
            (!is_same).then(|| Difference { field: field.to_owned(), left, right })
        };
        let is_row = |field: &str| rows::of(backend).iter().any(|row| row.id == field);
        let decisions = rows::of(backend).iter().filter_map(|row| differing(row.id));
        let decisions: Vec<Difference> = decisions.collect();
        let others: BTreeSet<String> =
            [&one, &other].into_iter().flat_map(leaves).map(|(field, _)| field).collect();
        let mut fields: Vec<Difference> = others
            .iter()
            .filter(|field| !is_row(field))
            .filter_map(|field| differing(field))
            .collect();
        let same = decisions.is_empty() && fields.is_empty();
        fields.extend(EXPECTED.into_iter().filter_map(differing));
        let only = |plan: &Value, than: &Value| {
            let known = risks(than);
            risks(plan).into_iter().filter(|risk| !known.contains(risk)).collect()
        };
        Ok(Reply {
            left: left.display().to_string(),
            right: right.display().to_string(),
            same,
            decisions,
            fields,
            risks_only_left: only(&one, &other),
            risks_only_right: only(&other, &one),
        })
    }

    fn edited_fields(&self, plan: &Subject) -> Result<Vec<String>, Error> {
        let (agreement, _) = self.agreement(plan, &self.known_session(plan)?)?;
        Ok(agreement.edits.into_iter().map(|edit| edit.field).collect())
    }
}

/// A reason is that of the value which was decided, and not of one that somebody wrote over it.
fn side(plan: &Value, field: &str, by_hand: &[String]) -> Side {
    let inside = |edited: &String| {
        edited.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let reason = if by_hand.iter().any(inside) {
        Some("edited after it was confirmed")
    } else {
        plan["reasons"][field]["reason"].as_str()
    };
    Side { value: at(plan, field).cloned(), reason: reason.map(str::to_owned) }
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

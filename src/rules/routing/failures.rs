//! Ways out of a failure: by the known errors, then by who raises the message, then by the library.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde_json::{Value, json};

use crate::{
    catalogue::{
        raised::Raised,
        recoveries::Recovery,
        skills::{Role, Skill},
    },
    plan::{Handoff, Resume},
    rules::{
        errors,
        routing::{Router, Routes, handoffs::resume},
        rows,
    },
    vocab::{Backend, DecisionId},
};

impl Router<'_> {
    pub(super) fn by_error(&self, text: &str) -> Routes {
        let seen = errors::backend_of(self.catalogue, text);
        let backend = self.asked.backend.or(seen);
        if let Some(recovery) = errors::recognise(self.catalogue, text, backend) {
            return self.recovered(recovery, backend.or(recovery.backend));
        }
        let raised = errors::raised(self.catalogue, text)
            .filter(|raised| backend.is_none_or(|half| half == raised.backend));
        if let Some(raised) = raised {
            return self.raised(raised);
        }
        let sources = match seen {
            Some(Backend::Onnx) => "it was raised in Quark-ONNX, ONNX Runtime or `onnx`",
            Some(Backend::Torch) => "it was raised in Quark-Torch, PyTorch or transformers",
            None => "it does not show in which half of Quark it was raised",
        };
        let reason = format!("the text is none of the known errors; {sources}");
        let halves = match backend {
            Some(backend) => vec![backend],
            None => vec![Backend::Onnx, Backend::Torch],
        };
        let ways: Vec<Handoff> = halves
            .into_iter()
            .filter_map(|half| Some((self.with_role(Role::Debug, half)?, half)))
            .map(|(skill, half)| self.handoff(skill, reason.clone(), "route-by-library", half))
            .collect();
        let ask = (ways.len() > 1).then(|| {
            "Which run failed: the ONNX flow (an `.onnx` model) or the Torch flow (a Hugging Face model)? \
             Paste the whole traceback and the command"
                .to_owned()
        });
        Routes { ways, recovery: None, ask }
    }

    fn recovered(&self, recovery: &'static Recovery, backend: Option<Backend>) -> Routes {
        let half = backend.unwrap_or(Backend::Onnx);
        let mut ways = Vec::new();
        if let Some(skill) = self.catalogue.skills().find(recovery.skill.as_str()) {
            let reason = format!("{}: {}", recovery.summary, recovery.remedy);
            ways.push(self.handoff(skill, reason, recovery.id.as_str(), half));
        }
        let planned: Vec<&DecisionId> = recovery
            .decisions
            .iter()
            .filter(|row| rows::of(half).iter().any(|known| known.id == row.as_str()))
            .collect();
        if let Some(skill) = self.with_role(Role::Plan, half).filter(|_| !planned.is_empty()) {
            let named: Vec<String> = planned.iter().map(|row| format!("`{row}`")).collect();
            let named = named.join(", ");
            let reason = format!("what leads to it is in the plan: look at {named}");
            let mut way = self.handoff(skill, reason, recovery.id.as_str(), half);
            way.bring_back = format!("other values for {named}");
            way.resume = self.revision(&planned);
            // With a session at hand the plan can be changed right here.
            let first = if self.asked.session.is_some() { 0 } else { ways.len() };
            ways.insert(first, way);
        }
        Routes { ways, recovery: Some(recovery), ask: None }
    }

    /// A message of a library that is no known error: the file that raises it says what it is about.
    fn raised(&self, raised: &'static Raised) -> Routes {
        let reason = format!("`{}` ({}) raises this message", raised.path, raised.release);
        let mut skills: Vec<&'static Skill> = raised
            .skills
            .iter()
            .filter_map(|id| self.catalogue.skills().get(id.as_str()))
            .collect();
        // With a session at hand the plan can be changed right here.
        if self.asked.session.is_some() {
            skills.sort_by_key(|skill| skill.role != Role::Plan);
        }
        self.routes(&skills, |_| reason.clone(), "route-by-message", Some(raised.backend), None)
    }

    fn revision(&self, rows: &[&DecisionId]) -> Resume {
        let values: serde_json::Map<String, Value> =
            rows.iter().map(|row| (row.to_string(), json!("<another value>"))).collect();
        match self.asked.session {
            Some(session) => {
                resume("revise_plan", json!({ "session_id": session, "values": values }))
            }
            None => resume(
                "propose_plan",
                json!({ "model_path": "<path of the model>", "intent": { "values": values } }),
            ),
        }
    }
}

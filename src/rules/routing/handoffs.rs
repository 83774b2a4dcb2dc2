//! What a route says: why, what to bring back, and the call that goes on.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde_json::{Value, json};

use crate::{
    catalogue::{
        Entry,
        skills::{Role, Skill},
    },
    plan::{Handoff, Resume},
    rules::routing::{Router, Routes},
    vocab::{Backend, RuleId},
};

impl Router<'_> {
    pub(super) fn routes(
        &self,
        ways: &[&'static Skill],
        reason: impl Fn(&Skill) -> String,
        rule: &str,
        backend: Option<Backend>,
        ask: Option<String>,
    ) -> Routes {
        let ways = ways
            .iter()
            .map(|skill| {
                let half = skill.backend.or(backend).unwrap_or(Backend::Onnx);
                self.handoff(skill, reason(skill), rule, half)
            })
            .collect();
        Routes { ways, recovery: None, ask }
    }

    pub(super) fn handoff(
        &self,
        skill: &'static Skill,
        mut reason: String,
        rule: &str,
        half: Backend,
    ) -> Handoff {
        let newest = self.catalogue.newest_release();
        let name = skill.name_in(&newest.id);
        if name != skill.id() {
            reason.push_str(&format!("; Quark {} calls it `{name}`", newest.id));
        }
        for needed in &skill.needs {
            let maker = self.skills().iter().find(|maker| {
                maker.produces.iter().any(|a| a.name == *needed)
                    && maker.backend.is_none_or(|b| b == half)
            });
            // L0 facts come first; everything else the skill asks for itself.
            if let Some(maker) =
                maker.filter(|m| matches!(m.role, Role::Preflight | Role::Workspace))
            {
                reason.push_str(&format!(
                    "; it needs `{needed}`, which `{}` writes when there is none",
                    maker.id
                ));
            }
        }
        let artefact = skill.produces.first().map(|artefact| artefact.name.clone());
        let schema = skill.produces.first().and_then(|artefact| artefact.schema.as_ref());
        let bring_back = match (&artefact, schema) {
            (Some(name), Some(schema)) => format!("`{name}` (schema `{schema}`)"),
            (Some(name), None) => format!("`{name}`"),
            (None, _) => "what it found".to_owned(),
        };
        Handoff {
            skill: skill.id.clone(),
            reason,
            artefact,
            bring_back,
            resume: self.resume_after(skill, half),
            rule: RuleId::new(rule),
        }
    }

    fn resume_after(&self, skill: &Skill, half: Backend) -> Resume {
        let path = skill.produces.first().map_or("result", |artefact| artefact.name.as_str());
        let path = format!("<path of {path}>");
        let role = match (skill.role, half) {
            (Role::Preflight, _) => Some("environment_path"),
            (Role::Install, Backend::Onnx) => Some("onnx_install_result_path"),
            _ => None,
        };
        match (self.asked.session, role) {
            (Some(session), Some(role)) => {
                return resume("revise_plan", json!({ "session_id": session, role: path }));
            }
            (Some(session), None)
                if !matches!(skill.role, Role::Intake | Role::Router | Role::Validate) =>
            {
                return resume("revise_plan", json!({ "session_id": session }));
            }
            _ => {}
        }
        let mut arguments = match skill.role {
            Role::Router => json!({ "session_context_path": path }),
            Role::Intake => json!({ "analysis_path": path }),
            Role::QuarkInstall => {
                json!({ "model_path": "<path of the model>", "quark_install_result_path": path })
            }
            Role::Preflight | Role::Install if role.is_some() => {
                json!({ "model_path": "<path of the model>", role.unwrap_or_default(): path })
            }
            Role::Debug | Role::Validate => {
                return resume("route_recovery", json!({ "error": "<what the report found>" }));
            }
            _ => json!({ "model_path": "<path of the model>" }),
        };
        if half == Backend::Torch {
            arguments["backend"] = json!(half);
        }
        resume("propose_plan", arguments)
    }
}

pub(super) fn resume(tool: &str, arguments: Value) -> Resume {
    Resume { tool: tool.to_owned(), arguments }
}

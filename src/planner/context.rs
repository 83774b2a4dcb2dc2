//! A router's `session_context.json`: what a plan takes from it, and what comes back as a patch.

use serde_json::{Map, Value, json};

use crate::{
    emit::destination::Destination,
    facts::SessionContext,
    plan::digest::Digest,
    planner::reading::{Bundle, bundle_of},
    session::{Confirmed, Session},
    vocab::Backend,
};

/// The digest of what a plan takes from a router's file; the rest of it the router writes at any time.
pub(super) fn digest(context: &SessionContext) -> String {
    Digest::of_json(&json!({
        "user_goal": context.user_goal,
        "backend": context.constraints.backend,
        "deployment_target": context.constraints.deployment_target,
    }))
    .to_string()
}

/// A router's file without what it has from this very session: the constraints that a plan settles.
pub(super) fn without_echo(mut context: SessionContext, session: &Session) -> SessionContext {
    let before = bundle_of(session).ok().and_then(|bundle| bundle.session_context);
    let before = before.unwrap_or_default().constraints;
    let draft = session.draft();
    let target = draft.decision("deployment_target").and_then(|row| row.value.as_str());
    let now = &mut context.constraints;
    if now.backend.as_deref() == Some(draft.backend.as_str()) {
        now.backend = before.backend;
    }
    if now.deployment_target.is_some() && now.deployment_target.as_deref() == target {
        now.deployment_target = before.deployment_target;
    }
    context
}

/// The half of Quark that a router has settled on.
pub(super) fn backend(context: &SessionContext) -> Option<Backend> {
    match context.constraints.backend.as_deref() {
        Some("onnx") => Some(Backend::Onnx),
        Some("torch") => Some(Backend::Torch),
        _ => None,
    }
}

/// What the router should know from now on.
pub(super) fn patch(
    bundle: &Bundle,
    confirmed: &Confirmed,
    path: &str,
    analysis: Option<&Destination>,
) -> Map<String, Value> {
    let draft = confirmed.draft();
    let mut constraints = json!({ "backend": draft.backend.as_str() });
    if let Some(target) = draft.decision("deployment_target") {
        constraints["deployment_target"] = target.value.clone();
    }
    let mut patch = Map::new();
    patch.insert("quant_plan_ref".to_owned(), json!(path));
    patch.insert("constraints".to_owned(), constraints);
    if let Some(analysis) = analysis {
        patch.insert("model_analysis_ref".to_owned(), json!(analysis.path()));
    }
    // A merge patch replaces a list whole, so without the router's own it must not bring one.
    if let Some(context) = &bundle.session_context {
        // The target is settled now; what else was open still is.
        let settled = |question: &&String| question.to_lowercase().contains("deployment target");
        let mut open: Vec<&String> =
            context.open_questions.iter().filter(|question| !settled(question)).collect();
        let asked = draft.questions.iter().map(|question| &question.text);
        let new: Vec<&String> = asked.filter(|question| !open.contains(question)).collect();
        open.extend(new);
        patch.insert("open_questions".to_owned(), json!(open));
    }
    patch
}

//! `emit_plan`: the confirmed plan as a file, and what the router should merge into its context.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    emit::{
        self,
        destination::{Destination, EmitError},
    },
    plan::{Handoff, Resume, quant_plan::QuantPlan},
    planner::{
        Planner,
        analyze::{analysis_text, overwrite},
        error::Error,
        propose::{Bundle, bundle_of},
    },
    session::{Confirmed, Session, event::Event},
    vocab::{RuleId, SessionId, SkillId},
};

/// Arguments of `emit_plan`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The session.
    pub session_id: SessionId,
    /// Where to write `quant_plan.json`; inside the workspace, or beside the model.
    pub output_path: PathBuf,
    /// Whether another file at `output_path` may be replaced.
    #[serde(default)]
    pub overwrite: bool,
}

/// The answer of `emit_plan`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The file.
    pub path: String,
    /// The digest of the file.
    pub sha256: String,
    /// `model_analysis.json`, when it was written beside the plan because there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis_written_to: Option<String>,
    /// What is in the file.
    pub plan: QuantPlan,
    /// A JSON merge patch for the router's `session_context.json`; the router owns that file.
    pub session_context_patch: Map<String, Value>,
    /// Who carries the plan out.
    pub handoff: Handoff,
}

impl Planner {
    /// Writes the plan that the user confirmed.
    ///
    /// # Errors
    ///
    /// When nobody confirmed the current table, what it was derived from has changed, or the destination is
    /// not allowed or taken.
    pub fn write(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let id = &arguments.session_id;
        let (session, log) = self.load(id)?;
        let confirmed = match &session {
            Session::Confirmed(confirmed) => confirmed,
            Session::Emitted(emitted) => emitted.confirmed(),
            Session::Drafted(_) | Session::Presented(_) => {
                return Err(Error::NotConfirmed { session: id.clone(), state: session.state() });
            }
        };
        let changed = self.changed_inputs(&session);
        if !changed.is_empty() {
            return Err(Error::Stale { session: id.clone(), changed });
        }
        let bundle = bundle_of(&session)?;
        let roots = self.roots(
            bundle
                .analysis_path
                .iter()
                .cloned()
                .chain([self.whole(Path::new(&bundle.analysis.model.model_path))]),
        );
        let destination =
            Destination::resolve(&arguments.output_path, &self.options().current_dir, &roots)?;
        let path = destination.path().display().to_string();
        let beside = analysis_beside(&bundle, &destination);
        let analysis_ref = analysis_ref(&bundle, &destination, beside.as_ref());
        let (plan, text) = emit::plan_of(confirmed, &analysis_ref)?;
        let sha256 = crate::plan::digest::Digest::of_bytes(text.as_bytes());

        if let Session::Emitted(emitted) = &session
            && !arguments.overwrite
            && (emitted.path() != path || *emitted.sha256() != sha256)
        {
            return Err(Error::AlreadyEmitted { path: emitted.path().to_owned() });
        }
        let event = Event::Emitted { path: path.clone(), sha256: sha256.clone() };
        let now = self.now();
        let may = overwrite(arguments.overwrite);
        self.with_store(|store| {
            let done = store.append_with(id, &log, now, &event, || {
                if let Some(beside) = &beside {
                    beside.write(analysis_text(&bundle.analysis).as_bytes(), may)?;
                }
                emit::emit(confirmed, &analysis_ref, &destination, may)
            })?;
            done.map_err(|error: EmitError| Error::Emit(error))
        })?;
        Ok(Reply {
            sha256: sha256.to_string(),
            analysis_written_to: beside.map(|beside| beside.path().display().to_string()),
            session_context_patch: patch(&bundle, confirmed, &path),
            handoff: execution(&path, &plan),
            plan,
            path,
        })
    }
}

/// Where the analysis goes when there is no file of it: the plan refers to it, so it must be somewhere.
fn analysis_beside(bundle: &Bundle, plan: &Destination) -> Option<Destination> {
    if bundle.analysis_path.is_some() {
        return None;
    }
    let stem =
        plan.path().file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match stem.as_str() {
        "quant_plan" => "model_analysis.json".to_owned(),
        other => format!("{other}.model_analysis.json"),
    };
    Some(plan.sibling(name))
}

fn analysis_ref(bundle: &Bundle, plan: &Destination, beside: Option<&Destination>) -> String {
    let file = match (beside, &bundle.analysis_path) {
        (Some(beside), _) => beside.path(),
        (None, Some(path)) => path.canonicalize().unwrap_or_else(|_| path.clone()),
        (None, None) => PathBuf::from(&bundle.analysis.model.model_path),
    };
    match file.strip_prefix(plan.parent()) {
        Ok(inside) => format!("./{}", inside.display()),
        Err(_) => file.display().to_string(),
    }
}

/// What the router should know from now on.
fn patch(bundle: &Bundle, confirmed: &Confirmed, path: &str) -> Map<String, Value> {
    let draft = confirmed.draft();
    let mut constraints = json!({ "backend": draft.backend.as_str() });
    if let Some(target) = draft.decision("deployment_target") {
        constraints["deployment_target"] = target.value.clone();
    }
    let mut patch = Map::new();
    patch.insert("quant_plan_ref".to_owned(), json!(path));
    patch.insert("constraints".to_owned(), constraints);
    if let Some(context) = &bundle.session_context {
        // The target is settled now; what else was open still is.
        let open: Vec<&String> = context
            .open_questions
            .iter()
            .filter(|question| !question.to_lowercase().contains("deployment target"))
            .collect();
        patch.insert("open_questions".to_owned(), json!(open));
    }
    patch
}

/// Who carries a plan out: the workflow of its half, or file-to-file quantization where the plan asks for it.
fn execution(path: &str, plan: &QuantPlan) -> Handoff {
    let (skill, validator) = match plan {
        QuantPlan::Onnx(_) => ("quark-onnx-ptq-workflow", "quark-onnx-result-validator"),
        QuantPlan::Torch(plan) if plan.device_strategy == "file_to_file" => {
            ("quark-torch-file2file-quantization", "quark-torch-result-validator")
        }
        QuantPlan::Torch(_) => ("quark-torch-ptq", "quark-torch-result-validator"),
    };
    Handoff {
        skill: SkillId::new(skill),
        reason: format!(
            "`{}` is confirmed; carrying it out is another skill's work",
            plan.global_scheme()
        ),
        artefact: Some("quant_plan.json".to_owned()),
        bring_back: format!("the quantized model and its `run_manifest`, for `{validator}`"),
        resume: Resume { tool: skill.to_owned(), arguments: json!({ "quant_plan_ref": path }) },
        rule: RuleId::new("plan-only"),
    }
}

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
    plan::{Handoff, Resume, digest::Digest, quant_plan::QuantPlan},
    planner::{
        Planner,
        analyze::{analysis_text, overwrite},
        artefacts::digest_of_file,
        context,
        error::Error,
        reading::{Bundle, bundle_of},
    },
    session::{PlanFile, Session, event::Event},
    store::Log,
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
    /// Whether an earlier plan at `output_path` may be replaced.
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
    /// What is in the file; its schema is `quantplan://schemas/quant_plan_onnx` or `…/quant_plan_torch`.
    #[schemars(with = "Map<String, Value>")]
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
        let prepared = emit::prepare(confirmed, &analysis_ref)?;
        let analysis = analysis_text(&bundle.analysis);
        let written = matches!(&session, Session::Emitted(emitted) if emitted.file().path == path)
            && prepared.is_at(&destination)
            && beside.as_ref().is_none_or(|beside| beside.holds(analysis.as_bytes()));
        if !written {
            if !arguments.overwrite
                && let Some(path) = elsewhere(&session, &path, prepared.sha256())
            {
                return Err(Error::AlreadyEmitted { path });
            }
            let may = overwrite(arguments.overwrite);
            self.emitted(id, &log, &path, prepared.sha256(), || {
                if let Some(beside) = &beside {
                    beside.write(analysis.as_bytes(), may)?;
                }
                prepared.emit(&destination, may)
            })?;
        }
        let plan = prepared.plan().clone();
        Ok(Reply {
            sha256: prepared.sha256().to_string(),
            session_context_patch: context::patch(&bundle, confirmed, &path, beside.as_ref()),
            analysis_written_to: beside.map(|beside| beside.path().display().to_string()),
            handoff: execution(&path, &plan),
            plan,
            path,
        })
    }

    /// Notes where the file will be, then writes it and notes that it is there, together.
    ///
    /// A process that dies in between leaves the first note: whoever comes next sees whether the file was
    /// finished, and makes no second one elsewhere.
    fn emitted(
        &self,
        id: &SessionId,
        log: &Log,
        path: &str,
        sha256: &Digest,
        write: impl FnOnce() -> Result<(), EmitError>,
    ) -> Result<(), Error> {
        let (path, sha256) = (path.to_owned(), sha256.clone());
        let begun = Event::Emitting { path: path.clone(), sha256: sha256.clone() };
        let log = self.append(id, log, &begun)?;
        let now = self.now();
        self.with_store(|store| {
            store.append_with(id, &log, now, &Event::Emitted { path, sha256 }, write)??;
            Ok(())
        })
    }
}

/// Where the plan was written already, if that is not this file.
fn elsewhere(session: &Session, path: &str, sha256: &Digest) -> Option<String> {
    let (confirmed, emitted) = match session {
        Session::Emitted(emitted) => (emitted.confirmed(), Some(emitted.file())),
        Session::Confirmed(confirmed) => (confirmed, None),
        Session::Drafted(_) | Session::Presented(_) => return None,
    };
    let finished = |file: &&PlanFile| {
        file.path != path && digest_of_file(Path::new(&file.path)).as_ref() == Some(&file.sha256)
    };
    emitted
        .filter(|file| file.path != path || file.sha256 != *sha256)
        .or_else(|| confirmed.begun().filter(finished))
        .map(|file| file.path.clone())
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

//! `propose_plan` and `revise_plan`: from facts and wishes to a draft in a session, or to a handoff.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    catalogue::Catalogue,
    facts::{
        EnvContext, InstallResult, ModelAnalysis, SessionContext, graph::Graph,
        named_files::NamedFiles, torch::Modules, torch_install::TorchInstallResult,
    },
    intake::{AnyModel, IntakeError},
    intent::{Changes, Intent},
    plan::{Draft, Handoff, Input, Resume, digest::Digest},
    planner::{
        Planner, VERSION,
        artefacts::{Artefact, digest_of_file},
        context,
        error::Error,
        unguessable,
    },
    render,
    rules::{self, Context, Outcome, rows},
    session::{
        Session,
        event::{Basis, Event},
    },
    vocab::{Backend, DecisionId, QuestionId, RuleId, SessionId, SkillId},
};

/// The role of PyTorch's install result.
const TORCH_INSTALL: &str = "pytorch_install_result";

/// Arguments of `propose_plan`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Path of the model; it is analysed now. Give this, `analysis_path` or `analysis`.
    #[serde(default)]
    pub model_path: Option<PathBuf>,
    /// Path of a `model_analysis.json`.
    #[serde(default)]
    pub analysis_path: Option<PathBuf>,
    /// A `model_analysis` as an object.
    #[serde(default)]
    pub analysis: Option<Map<String, Value>>,
    /// Path of an `env_context.json`.
    #[serde(default)]
    pub environment_path: Option<PathBuf>,
    /// An `env_context` as an object.
    #[serde(default)]
    pub environment: Option<Map<String, Value>>,
    /// Path of an `onnx_install_result.json`.
    #[serde(default)]
    pub onnx_install_result_path: Option<PathBuf>,
    /// An `onnx_install_result` as an object.
    #[serde(default)]
    pub onnx_install_result: Option<Map<String, Value>>,
    /// Path of a `quark_install_result.json`.
    #[serde(default)]
    pub quark_install_result_path: Option<PathBuf>,
    /// A `quark_install_result` as an object.
    #[serde(default)]
    pub quark_install_result: Option<Map<String, Value>>,
    /// Path of a `pytorch_install_result.json`.
    #[serde(default)]
    pub pytorch_install_result_path: Option<PathBuf>,
    /// A `pytorch_install_result` as an object.
    #[serde(default)]
    pub pytorch_install_result: Option<Map<String, Value>>,
    /// Path of a router's `session_context.json`; the artefacts that it refers to are read too.
    #[serde(default)]
    pub session_context_path: Option<PathBuf>,
    /// A `session_context` as an object.
    #[serde(default)]
    pub session_context: Option<Map<String, Value>>,
    /// `onnx` or `torch`; told from the model when left out.
    #[serde(default)]
    pub backend: Option<Backend>,
    /// What the user wants. Put in only what they said.
    #[serde(default)]
    pub intent: Intent,
}

/// Arguments of `revise_plan`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevisionArguments {
    /// The session.
    pub session_id: SessionId,
    /// Values to set, by decision, for example `{"preset": "A8W8", "calibration.data_size": 64}`.
    #[serde(default)]
    pub values: BTreeMap<DecisionId, Value>,
    /// Answers to questions of the draft, by question id. Only what the user has answered.
    #[serde(default)]
    pub answers: BTreeMap<QuestionId, String>,
    /// Decisions whose requested value the user keeps against advice; each becomes a recorded risk.
    #[serde(default)]
    pub insist: BTreeSet<DecisionId>,
    /// Decisions whose requested value is taken back.
    #[serde(default)]
    pub withdraw: BTreeSet<DecisionId>,
    /// Path of an `onnx_install_result.json` that `quark-onnx-install` has brought meanwhile.
    #[serde(default)]
    pub onnx_install_result_path: Option<PathBuf>,
    /// The same as an object.
    #[serde(default)]
    pub onnx_install_result: Option<Map<String, Value>>,
    /// Path of a `pytorch_install_result.json` that `quark-torch-install` has brought meanwhile.
    #[serde(default)]
    pub pytorch_install_result_path: Option<PathBuf>,
    /// The same as an object.
    #[serde(default)]
    pub pytorch_install_result: Option<Map<String, Value>>,
    /// Path of an `env_context.json` that has been made meanwhile.
    #[serde(default)]
    pub environment_path: Option<PathBuf>,
    /// The same as an object.
    #[serde(default)]
    pub environment: Option<Map<String, Value>>,
}

impl RevisionArguments {
    /// A revision without changes.
    pub fn of(session_id: SessionId) -> Self {
        Self {
            session_id,
            values: BTreeMap::new(),
            answers: BTreeMap::new(),
            insist: BTreeSet::new(),
            withdraw: BTreeSet::new(),
            onnx_install_result_path: None,
            onnx_install_result: None,
            pytorch_install_result_path: None,
            pytorch_install_result: None,
            environment_path: None,
            environment: None,
        }
    }
}

/// The value that a text means for a row: JSON where it is JSON, else a text; a list where the row takes
/// one, with its members separated by commas.
pub fn value_from_text(row: &str, text: &str) -> Value {
    use rows::Takes;
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let takes_list = rows::find_any(row).is_some_and(|row| {
        matches!(
            row.takes,
            Takes::Names(_) | Takes::OpTypes | Takes::Nodes | Takes::Providers | Takes::Patterns
        )
    });
    match value {
        Value::String(text) if takes_list && text.eq_ignore_ascii_case("none") => Value::Null,
        Value::String(text) if takes_list => {
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
        }
        other => other,
    }
}

/// Whether a name means a row of the table.
pub fn is_row(name: &str) -> bool {
    rows::find_any(name).is_some()
}

/// The answer of `propose_plan` and `revise_plan`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Whether there is a draft now, or another skill has to do something first.
    pub outcome: OutcomeKind,
    /// The session; keep it, every other tool takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The number of the draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The digest of the table that the draft makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Whether a yes may be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmable: Option<bool>,
    /// What stands between the draft and a confirmation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The draft in three lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the revision changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
    /// The draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Box<Draft>>,
    /// Where to go instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Box<Handoff>>,
    /// What to do next.
    pub next: String,
}

/// What a proposal led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeKind {
    /// There is a draft.
    Draft,
    /// Another skill has to do something first.
    Handoff,
}

/// A row that a revision changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The row.
    pub decision: String,
    /// Its value before; `null` also when there was none.
    pub before: Value,
    /// Its value now.
    pub after: Value,
    /// Why.
    pub reason: String,
}

/// Facts and intent of a session: what its drafts are reasoned from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bundle {
    pub(super) analysis: ModelAnalysis,
    /// The analysis file; `None` when the model was analysed on the way or the analysis came inline.
    #[serde(default)]
    pub(super) analysis_path: Option<PathBuf>,
    /// Whether the analysis was made here, so that revisions may make it again.
    pub(super) analysed_here: bool,
    #[serde(default)]
    pub(super) environment: Option<EnvContext>,
    #[serde(default)]
    pub(super) install: Option<InstallResult>,
    #[serde(default)]
    pub(super) torch_install: Option<TorchInstallResult>,
    #[serde(default)]
    pub(super) session_context: Option<SessionContext>,
    pub(super) intent: Intent,
}

/// A bundle with what is read again for every draft.
pub(super) struct Reading {
    pub(super) bundle: Bundle,
    pub(super) graph: Option<Graph>,
    pub(super) modules: Option<Modules>,
    pub(super) files: NamedFiles,
    inputs: Vec<Input>,
}

impl Reading {
    /// Facts and intent without the model: its nodes or modules are not at hand.
    pub(super) fn of(bundle: Bundle) -> Self {
        let files = NamedFiles::default();
        Self { bundle, graph: None, modules: None, files, inputs: Vec::new() }
    }
}

impl Planner {
    /// Makes a first draft, in a session of its own; or says who must do something first.
    ///
    /// # Errors
    ///
    /// When an artefact or the model cannot be read, or the intent names unknown or impossible values.
    pub fn propose(&self, arguments: &Arguments) -> Result<Reply, Error> {
        if let Some(handoff) = self.missing_analysis(arguments)? {
            return Ok(handed_off(handoff));
        }
        let reading = match self.first_reading(arguments) {
            Err(Error::Intake(IntakeError::HubId { id })) => {
                return Ok(handed_off(on_the_hub(&id)));
            }
            reading => reading?,
        };
        let settled = reading.bundle.session_context.as_ref().and_then(context::backend);
        if let Some(handoff) = other_half(arguments.backend.or(settled), &reading.bundle) {
            return Ok(handed_off(handoff));
        }
        match reason(&reading)? {
            Outcome::Handoff(handoff) => Ok(handed_off(*handoff)),
            Outcome::Draft(draft) => {
                let id = SessionId::new(unguessable("qp-")?);
                let event = Event::Proposed { basis: Box::new(basis(&reading, *draft)) };
                let now = self.now();
                self.with_store(|store| {
                    store.prune(now)?;
                    let log = store.empty_log();
                    Ok(store.append(&id, &log, now, &event)?)
                })?;
                let session = self.session(&id)?;
                Ok(drafted(&session, Vec::new()))
            }
        }
    }

    /// Changes a draft; any yes is gone afterwards.
    ///
    /// Without changes it reads the files again, which is the way out when they changed.
    ///
    /// # Errors
    ///
    /// When there is no such session, a file cannot be read, or a value is unknown or impossible; the draft
    /// stays as it was.
    pub fn revise(&self, arguments: &RevisionArguments) -> Result<Reply, Error> {
        let id = &arguments.session_id;
        let (session, log) = self.load(id)?;
        let mut reading = self.next_reading(&session)?;
        let asked = Changes {
            values: arguments.values.clone(),
            answers: arguments.answers.clone(),
            insist: arguments.insist.clone(),
            withdraw: arguments.withdraw.clone(),
        };
        let asked = rules::request::resolved(&context(&reading), &asked).map_err(Error::Request)?;
        reading.bundle.intent = reading.bundle.intent.after(&asked);
        reading.files = self.named_files(&reading.bundle.intent, &mut reading.inputs);
        let install = self.artefact::<InstallResult>(
            "onnx_install_result",
            arguments.onnx_install_result_path.as_deref(),
            arguments.onnx_install_result.as_ref(),
        )?;
        if let Some(artefact) = install {
            replace(&mut reading.inputs, artefact.input);
            reading.bundle.install = Some(artefact.value);
        }
        let torch = self.artefact::<TorchInstallResult>(
            TORCH_INSTALL,
            arguments.pytorch_install_result_path.as_deref(),
            arguments.pytorch_install_result.as_ref(),
        )?;
        if let Some(artefact) = torch {
            replace(&mut reading.inputs, artefact.input);
            reading.bundle.torch_install = Some(artefact.value);
        }
        let environment = self.artefact::<EnvContext>(
            "environment",
            arguments.environment_path.as_deref(),
            arguments.environment.as_ref(),
        )?;
        if let Some(artefact) = environment {
            replace(&mut reading.inputs, artefact.input);
            reading.bundle.environment = Some(artefact.value);
        }
        match reason(&reading)? {
            Outcome::Handoff(handoff) => Ok(handed_off(*handoff)),
            Outcome::Draft(draft) => {
                let changed = changes(session.draft(), &draft);
                let event = Event::Revised { basis: Box::new(basis(&reading, *draft)) };
                let session = self.advance(id, &log, &event)?;
                Ok(drafted(&session, changed))
            }
        }
    }

    /// Without any analysis there is nothing to reason about.
    fn missing_analysis(&self, arguments: &Arguments) -> Result<Option<Handoff>, Error> {
        let given = [
            arguments.model_path.is_some(),
            arguments.analysis_path.is_some(),
            arguments.analysis.is_some(),
        ];
        match given.iter().filter(|given| **given).count() {
            1 => return Ok(None),
            0 => {}
            _ => {
                return Err(Error::Arguments {
                    message: "the model is given more than once".to_owned(),
                    hint: "give one of `model_path`, `analysis_path` and `analysis`".to_owned(),
                });
            }
        }
        let context = self.session_context(arguments)?;
        if context.as_ref().is_some_and(|context| context.value.model_analysis_ref.is_some()) {
            return Ok(None);
        }
        let settled = context.and_then(|context| context::backend(&context.value));
        let skill = match arguments.backend.or(settled) {
            Some(Backend::Torch) => "quark-torch-model-intake",
            Some(Backend::Onnx) | None => "quark-onnx-model-intake",
        };
        let mut resume = json!({ "analysis_path": "<path of model_analysis.json>" });
        if arguments.intent != Intent::default() {
            resume["intent"] = json!(arguments.intent);
        }
        Ok(Some(Handoff {
            skill: SkillId::new(skill),
            reason: "there is no model analysis, and without the architecture, the op histogram and the \
                     quantization state no decision can be reasoned"
                .to_owned(),
            artefact: Some("model_analysis.json".to_owned()),
            bring_back: "`model_analysis.json`, or the path of the model: `analyze_model` reads it here in \
                         milliseconds"
                .to_owned(),
            resume: Resume { tool: "propose_plan".to_owned(), arguments: resume },
            rule: RuleId::new("analysis-first"),
        }))
    }

    fn session_context(
        &self,
        arguments: &Arguments,
    ) -> Result<Option<Artefact<SessionContext>>, Error> {
        let mut artefact = self.artefact(
            "session_context",
            arguments.session_context_path.as_deref(),
            arguments.session_context.as_ref(),
        )?;
        if let Some(artefact) = &mut artefact {
            artefact.input.digest = context::digest(&artefact.value);
        }
        Ok(artefact)
    }

    pub(super) fn first_reading(&self, arguments: &Arguments) -> Result<Reading, Error> {
        let mut inputs = Vec::new();
        let context = self.session_context(arguments)?;
        // A router's references are relative to its own file.
        let base = context.as_ref().and_then(|c| c.path.as_deref()).and_then(Path::parent);
        let referred = |named: Option<&PathBuf>, inline: bool, reference: Option<&String>| {
            named.cloned().or_else(|| {
                let reference = reference.filter(|_| !inline)?;
                Some(base.map_or_else(|| PathBuf::from(reference), |base| base.join(reference)))
            })
        };
        let refs = context.as_ref().map(|c| c.value.clone()).unwrap_or_default();

        let environment = self.artefact::<EnvContext>(
            "environment",
            referred(
                arguments.environment_path.as_ref(),
                arguments.environment.is_some(),
                refs.env_context_ref.as_ref(),
            )
            .as_deref(),
            arguments.environment.as_ref(),
        )?;
        let install = self.artefact::<InstallResult>(
            "onnx_install_result",
            referred(
                arguments.onnx_install_result_path.as_ref(),
                arguments.onnx_install_result.is_some(),
                refs.onnx_install_result_ref.as_ref(),
            )
            .as_deref(),
            arguments.onnx_install_result.as_ref(),
        )?;
        let quark = self.artefact::<Map<String, Value>>(
            "quark_install_result",
            referred(
                arguments.quark_install_result_path.as_ref(),
                arguments.quark_install_result.is_some(),
                refs.quark_install_result_ref.as_ref(),
            )
            .as_deref(),
            arguments.quark_install_result.as_ref(),
        )?;
        let torch = self.artefact::<TorchInstallResult>(
            TORCH_INSTALL,
            referred(
                arguments.pytorch_install_result_path.as_ref(),
                arguments.pytorch_install_result.is_some(),
                refs.pytorch_install_result_ref.as_ref(),
            )
            .as_deref(),
            arguments.pytorch_install_result.as_ref(),
        )?;
        let given_model = arguments.model_path.is_some();
        let analysis_path = referred(
            arguments.analysis_path.as_ref(),
            arguments.analysis.is_some() || given_model,
            refs.model_analysis_ref.as_ref(),
        );

        let (analysis, structure, analysis_file, analysed_here) = match &arguments.model_path {
            Some(path) => {
                let model = self.read_model(path)?;
                inputs.push(model_input(model.analysis()));
                let (analysis, structure) = split(model);
                (analysis, structure, None, true)
            }
            None => {
                let artefact = self
                    .artefact::<ModelAnalysis>(
                        "model_analysis",
                        analysis_path.as_deref(),
                        arguments.analysis.as_ref(),
                    )?
                    .ok_or_else(|| Error::Arguments {
                        message: "there is no model".to_owned(),
                        hint: "give `model_path`, `analysis_path` or `analysis`".to_owned(),
                    })?;
                inputs.push(artefact.input);
                let folder = artefact.path.as_deref().and_then(Path::parent);
                let (structure, input) = self.structure_of(&artefact.value, folder)?;
                inputs.extend(input);
                (artefact.value, structure, artefact.path, false)
            }
        };
        let mut install_result = None;
        if let Some(artefact) = install {
            inputs.push(artefact.input);
            install_result = Some(artefact.value);
        }
        if let Some(artefact) = quark {
            inputs.push(artefact.input);
            if let Some(version) = quark_version_in(&artefact.value) {
                let result = install_result.get_or_insert_default();
                result.quark_version.get_or_insert(version);
            }
        }
        let torch_install = torch.map(|artefact| {
            inputs.push(artefact.input);
            artefact.value
        });
        let mut intent = arguments.intent.clone();
        let session_context = context.map(|artefact| {
            inputs.push(artefact.input);
            artefact.value
        });
        if intent.goal.is_none() {
            intent.goal = session_context.as_ref().and_then(|context| context.user_goal.clone());
        }
        let environment = environment.map(|artefact| {
            inputs.push(artefact.input);
            artefact.value
        });
        let bundle = Bundle {
            analysis,
            analysis_path: analysis_file,
            analysed_here,
            environment,
            install: install_result,
            torch_install,
            session_context,
            intent,
        };
        let (graph, modules) = structure;
        let files = self.named_files(&bundle.intent, &mut inputs);
        Ok(Reading { bundle, graph, modules, files, inputs })
    }

    /// Reads everything of a session again, as it is now.
    pub(super) fn next_reading(&self, session: &Session) -> Result<Reading, Error> {
        let mut bundle = bundle_of(session)?;
        let mut inputs: Vec<Input> = session.inputs().to_vec();
        let (graph, modules) = if bundle.analysed_here {
            let model = self.read_model(Path::new(&bundle.analysis.model.model_path))?;
            replace(&mut inputs, model_input(model.analysis()));
            let (analysis, structure) = split(model);
            bundle.analysis = analysis;
            structure
        } else {
            if let Some(path) = bundle.analysis_path.clone() {
                let artefact = self.artefact_at::<ModelAnalysis>("model_analysis", &path)?;
                replace(&mut inputs, artefact.input);
                bundle.analysis = artefact.value;
            }
            let folder = bundle.analysis_path.as_deref().and_then(Path::parent);
            let (structure, input) = self.structure_of(&bundle.analysis, folder)?;
            if let Some(input) = input {
                replace(&mut inputs, input);
            }
            structure
        };
        let at = |inputs: &[Input], role: &str| {
            inputs.iter().find(|input| input.role == role).and_then(|input| input.path.clone())
        };
        if let Some(path) = at(&inputs, "environment") {
            let artefact = self.artefact_at::<EnvContext>("environment", Path::new(&path))?;
            replace(&mut inputs, artefact.input);
            bundle.environment = Some(artefact.value);
        }
        let known = bundle.install.as_mut().and_then(|install| install.quark_version.take());
        if let Some(path) = at(&inputs, "onnx_install_result") {
            let artefact =
                self.artefact_at::<InstallResult>("onnx_install_result", Path::new(&path))?;
            replace(&mut inputs, artefact.input);
            bundle.install = Some(artefact.value);
        }
        let mut stated = None;
        if let Some(path) = at(&inputs, "quark_install_result") {
            let artefact =
                self.artefact_at::<Map<String, Value>>("quark_install_result", Path::new(&path))?;
            stated = quark_version_in(&artefact.value);
            replace(&mut inputs, artefact.input);
        }
        if let Some(version) = stated.or(known) {
            bundle.install.get_or_insert_default().quark_version.get_or_insert(version);
        }
        if let Some(path) = at(&inputs, "session_context") {
            let mut artefact =
                self.artefact_at::<SessionContext>("session_context", Path::new(&path))?;
            artefact.input.digest = context::digest(&artefact.value);
            replace(&mut inputs, artefact.input);
            // A goal that was taken from there follows it.
            let before = bundle.session_context.as_ref().and_then(|c| c.user_goal.as_ref());
            if bundle.intent.goal.as_ref() == before {
                bundle.intent.goal.clone_from(&artefact.value.user_goal);
            }
            bundle.session_context = Some(artefact.value);
        }
        if let Some(path) = at(&inputs, TORCH_INSTALL) {
            let artefact =
                self.artefact_at::<TorchInstallResult>(TORCH_INSTALL, Path::new(&path))?;
            replace(&mut inputs, artefact.input);
            bundle.torch_install = Some(artefact.value);
        }
        let files = self.named_files(&bundle.intent, &mut inputs);
        Ok(Reading { bundle, graph, modules, files, inputs })
    }

    /// The nodes or modules of the model that an analysis is about, when it is at hand and still the same.
    fn structure_of(
        &self,
        analysis: &ModelAnalysis,
        folder: Option<&Path>,
    ) -> Result<(Structure, Option<Input>), Error> {
        let named = Path::new(&analysis.model.model_path);
        let candidates =
            folder.map(|folder| folder.join(named)).into_iter().chain([self.whole(named)]);
        let Some(path) = candidates.into_iter().find(|path| path.exists()) else {
            return Ok(((None, None), None));
        };
        // An analysis of another writer may name a folder that has no model any more, or another one.
        let foreign = structural_digest(analysis).is_none();
        let model = match self.read_model(&path) {
            Err(_) if foreign => return Ok(((None, None), None)),
            model => model?,
        };
        if model.analysis().model.model_type != analysis.model.model_type && foreign {
            return Ok(((None, None), None));
        }
        let input = model_input(model.analysis());
        let recorded = structural_digest(analysis);
        if recorded.is_some_and(|recorded| *recorded != input.digest) {
            return Err(Error::ArtefactInvalid {
                role: "model_analysis",
                place: None,
                detail: format!("`{}` has changed since it was analysed", path.display()),
            });
        }
        Ok((split(model).1, Some(input)))
    }

    /// What of the inputs of a session is not as it was.
    pub(super) fn changed_inputs(&self, session: &Session) -> Vec<String> {
        let mut changed = Vec::new();
        if session.draft().catalogue_version != crate::catalogue::VERSION {
            changed.push(format!(
                "the catalogue is version {} now, the draft was reasoned with {}",
                crate::catalogue::VERSION,
                session.draft().catalogue_version
            ));
        }
        changed.extend(self.changed_files(session.inputs(), Some(session)));
        changed
    }

    /// Which of the files that something was derived from are not as they were.
    ///
    /// A router writes to its file at any time, so that one is looked at only for a session, which tells what
    /// of it counts.
    pub(super) fn changed_files(&self, inputs: &[Input], session: Option<&Session>) -> Vec<String> {
        let mut changed = Vec::new();
        for input in inputs {
            let Some(path) = &input.path else { continue };
            let path = Path::new(path);
            let now = match input.role.as_str() {
                "model" => {
                    self.read_model(path).ok().map(|model| model_input(model.analysis()).digest)
                }
                "session_context" => {
                    let Some(session) = session else { continue };
                    self.artefact_at::<SessionContext>("session_context", path).ok().map(
                        |artefact| context::digest(&context::without_echo(artefact.value, session)),
                    )
                }
                _ => digest_of_file(path).map(|digest| digest.to_string()),
            };
            let path = path.display();
            match now {
                Some(now) if now == input.digest => {}
                Some(_) => changed.push(format!("the {} `{path}` is another one", input.role)),
                None => {
                    changed.push(format!("the {} `{path}` cannot be read any more", input.role))
                }
            }
        }
        changed
    }
}

/// Facts and intent as the log has them.
pub(super) fn bundle_of(session: &Session) -> Result<Bundle, Error> {
    serde_json::from_value(session.context().clone()).map_err(|error| Error::ArtefactInvalid {
        role: "session",
        place: Some(session.id().to_string()),
        detail: error.to_string(),
    })
}

pub(super) fn reason(reading: &Reading) -> Result<Outcome, Error> {
    rules::plan(&context(reading)).map_err(Error::Request)
}

pub(super) fn context(reading: &Reading) -> Context<'_> {
    let bundle = &reading.bundle;
    Context {
        analysis: &bundle.analysis,
        graph: reading.graph.as_ref(),
        modules: reading.modules.as_ref(),
        files: Some(&reading.files),
        environment: bundle.environment.as_ref(),
        install: bundle.install.as_ref(),
        torch_install: bundle.torch_install.as_ref(),
        session_context: bundle.session_context.as_ref(),
        intent: &bundle.intent,
        catalogue: Catalogue,
    }
}

fn basis(reading: &Reading, draft: Draft) -> Basis {
    Basis {
        quantplan_version: VERSION.to_owned(),
        context: serde_json::to_value(&reading.bundle).unwrap_or_default(),
        inputs: reading.inputs.clone(),
        draft,
    }
}

fn model_input(analysis: &ModelAnalysis) -> Input {
    Input {
        role: "model".to_owned(),
        path: Some(analysis.model.model_path.clone()),
        digest: structural_digest(analysis).cloned().unwrap_or_default(),
    }
}

/// What of a model is not part of its analysis.
type Structure = (Option<Graph>, Option<Modules>);

fn split(model: AnyModel) -> (ModelAnalysis, Structure) {
    match model {
        AnyModel::Onnx(model) => (model.analysis, (Some(model.graph), None)),
        AnyModel::Torch(model) => (model.analysis, (None, model.modules)),
    }
}

fn structural_digest(analysis: &ModelAnalysis) -> Option<&String> {
    let model = &analysis.model;
    let onnx = model.onnx_specific.as_ref().and_then(|facts| facts.structural_digest.as_ref());
    onnx.or_else(|| model.torch_specific.as_ref()?.structural_digest.as_ref())
}

fn quark_version_in(result: &Map<String, Value>) -> Option<String> {
    let version = result.get("quark_version").or_else(|| result.get("version"));
    version.and_then(Value::as_str).map(str::to_owned)
}

/// A model that is not here: nothing is fetched over the network.
fn on_the_hub(id: &str) -> Handoff {
    Handoff {
        skill: SkillId::new("quark-torch-model-intake"),
        reason: format!(
            "`{id}` looks like a model on the Hugging Face Hub; it is not here, and nothing is fetched"
        ),
        artefact: Some("model_analysis.json".to_owned()),
        bring_back:
            "the analysis of that model, or its folder with `config.json` and the safetensors files"
                .to_owned(),
        resume: Resume {
            tool: "propose_plan".to_owned(),
            arguments: json!({ "analysis_path": "<path of model_analysis.json>" }),
        },
        rule: RuleId::new("analysis-first"),
    }
}

/// A request for the one half of Quark with a model of the other.
fn other_half(asked: Option<Backend>, bundle: &Bundle) -> Option<Handoff> {
    let is_onnx = bundle.analysis.model.model_type == "onnx";
    let own = if is_onnx { Backend::Onnx } else { Backend::Torch };
    if asked.is_none_or(|asked| asked == own) {
        return None;
    }
    let (skill, what, bring) = if is_onnx {
        (
            "quark-torch-model-intake",
            "an ONNX file, and the Torch flow takes Hugging Face models",
            "an analysis of the Hugging Face model that the file was exported from",
        )
    } else {
        (
            "quark-onnx-model-intake",
            "a Hugging Face model, and the ONNX flow takes `.onnx` files",
            "an analysis of the exported `.onnx` file; or propose again without `backend`",
        )
    };
    Some(Handoff {
        skill: SkillId::new(skill),
        reason: format!("the model is {what}"),
        artefact: Some("model_analysis.json".to_owned()),
        bring_back: bring.to_owned(),
        resume: Resume {
            tool: "propose_plan".to_owned(),
            arguments: json!({ "analysis_path": "<path of model_analysis.json>" }),
        },
        rule: RuleId::new("analysis-first"),
    })
}

fn replace(inputs: &mut Vec<Input>, input: Input) {
    match inputs.iter_mut().find(|known| known.role == input.role) {
        Some(known) => *known = input,
        None => inputs.push(input),
    }
}

fn handed_off(handoff: Handoff) -> Reply {
    let next = format!(
        "go to `{}`, bring back {}, then call `{}`",
        handoff.skill, handoff.bring_back, handoff.resume.tool
    );
    Reply {
        outcome: OutcomeKind::Handoff,
        session_id: None,
        revision: None,
        digest: None,
        confirmable: None,
        missing: Vec::new(),
        summary: None,
        changed: Vec::new(),
        draft: None,
        handoff: Some(Box::new(handoff)),
        next,
    }
}

fn drafted(session: &Session, changed: Vec<Change>) -> Reply {
    let draft = session.draft();
    let digest = session.digest();
    let view = render::view(draft, session.id(), session.revision(), &digest);
    let missing = draft.missing();
    let next = if missing.is_empty() {
        "call `render_decision_table` and show the whole table to the user, then `confirm_plan`"
            .to_owned()
    } else {
        "ask the user what is missing and call `revise_plan` with the answers".to_owned()
    };
    Reply {
        outcome: OutcomeKind::Draft,
        session_id: Some(session.id().clone()),
        revision: Some(session.revision()),
        digest: Some(digest),
        confirmable: Some(missing.is_empty()),
        missing,
        summary: Some(view.nutshell.join("\n")),
        changed,
        draft: Some(Box::new(draft.clone())),
        handoff: None,
        next,
    }
}

/// Rows whose value is another one.
fn changes(before: &Draft, after: &Draft) -> Vec<Change> {
    let old = |id: &str| before.decision(id).map(|d| d.value.clone());
    let mut changed: Vec<Change> = after
        .decisions
        .iter()
        .filter(|decision| old(decision.id.as_str()).as_ref() != Some(&decision.value))
        .map(|decision| Change {
            decision: decision.id.to_string(),
            before: old(decision.id.as_str()).unwrap_or_default(),
            after: decision.value.clone(),
            reason: decision.reason.clone(),
        })
        .collect();
    let gone = before.decisions.iter().filter(|d| after.decision(d.id.as_str()).is_none());
    changed.extend(gone.map(|decision| Change {
        decision: decision.id.to_string(),
        before: decision.value.clone(),
        after: Value::Null,
        reason: "the row is gone".to_owned(),
    }));
    changed
}

//! What a draft is reasoned from: the model, the artefacts of other skills and the wishes, as they are now.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    catalogue::Catalogue,
    facts::{
        EnvContext, InstallResult, ModelAnalysis, SessionContext, graph::Graph,
        named_files::NamedFiles, torch::Modules, torch_install::TorchInstallResult,
    },
    intake::AnyModel,
    intent::Intent,
    plan::{Draft, Input},
    planner::{Planner, VERSION, artefacts::Artefact, context, error::Error, propose::Arguments},
    rules::{self, Context, Outcome},
    session::{Session, event::Basis},
};

/// The role of PyTorch's install result.
pub(super) const TORCH_INSTALL: &str = "pytorch_install_result";

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
    pub(super) inputs: Vec<Input>,
}

impl Reading {
    /// Puts another model in the place of the one that was read.
    pub(super) fn replace_model(&mut self, model: AnyModel) {
        let (analysis, (graph, modules)) = split(model);
        self.bundle.analysis = analysis;
        (self.graph, self.modules) = (graph, modules);
    }

    /// What the rules look at.
    pub(super) fn context(&self) -> Context<'_> {
        let bundle = &self.bundle;
        Context {
            analysis: &bundle.analysis,
            graph: self.graph.as_ref(),
            modules: self.modules.as_ref(),
            files: Some(&self.files),
            environment: bundle.environment.as_ref(),
            install: bundle.install.as_ref(),
            torch_install: bundle.torch_install.as_ref(),
            session_context: bundle.session_context.as_ref(),
            intent: &bundle.intent,
            catalogue: Catalogue,
        }
    }

    /// What the rules make of it.
    ///
    /// # Errors
    ///
    /// When the intent names unknown or impossible values.
    pub(super) fn reason(&self) -> Result<Outcome, Error> {
        rules::plan(&self.context()).map_err(Error::Request)
    }

    /// A draft with what it was made from, for the log.
    pub(super) fn basis(&self, draft: Draft) -> Basis {
        Basis {
            quantplan_version: VERSION.to_owned(),
            context: serde_json::to_value(&self.bundle).unwrap_or_default(),
            inputs: self.inputs.clone(),
            draft,
        }
    }

    /// Facts and intent without the model: its nodes or modules are not at hand.
    pub(super) fn of(bundle: Bundle) -> Self {
        let files = NamedFiles::default();
        Self { bundle, graph: None, modules: None, files, inputs: Vec::new() }
    }
}

impl Planner {
    pub(super) fn session_context(
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

    /// An artefact that is given, or else the one that a router refers to.
    fn given_or_referred<T: DeserializeOwned>(
        &self,
        role: &'static str,
        path: Option<&Path>,
        inline: Option<&Map<String, Value>>,
        reference: Option<PathBuf>,
    ) -> Result<Option<Artefact<T>>, Error> {
        let reference = reference.filter(|_| inline.is_none());
        self.artefact(role, path.or(reference.as_deref()), inline)
    }

    /// An artefact that an input was read from, as it is now; `None` when there was none, or no file of it.
    fn read_again<T: DeserializeOwned>(
        &self,
        role: &'static str,
        inputs: &mut Vec<Input>,
    ) -> Result<Option<T>, Error> {
        let known = inputs.iter().find(|input| input.role == role);
        let Some(path) = known.and_then(|input| input.path.clone()) else { return Ok(None) };
        let artefact = self.artefact_at::<T>(role, Path::new(&path))?;
        replace(inputs, artefact.input);
        Ok(Some(artefact.value))
    }

    /// An artefact that came later takes the place of the one before.
    pub(super) fn brought<T: DeserializeOwned>(
        &self,
        role: &'static str,
        path: Option<&Path>,
        inline: Option<&Map<String, Value>>,
        inputs: &mut Vec<Input>,
    ) -> Result<Option<T>, Error> {
        Ok(self.artefact::<T>(role, path, inline)?.map(|artefact| {
            replace(inputs, artefact.input);
            artefact.value
        }))
    }

    pub(super) fn first_reading(&self, arguments: &Arguments) -> Result<Reading, Error> {
        let mut inputs = Vec::new();
        let context = self.session_context(arguments)?;
        // A router's references are relative to its own file.
        let base = context.as_ref().and_then(|c| c.path.as_deref()).and_then(Path::parent);
        let referred = |reference: &Option<String>| {
            let reference = reference.as_ref()?;
            Some(base.map_or_else(|| PathBuf::from(reference), |base| base.join(reference)))
        };
        let refs = context.as_ref().map(|c| c.value.clone()).unwrap_or_default();

        let environment = self.given_or_referred::<EnvContext>(
            "environment",
            arguments.environment_path.as_deref(),
            arguments.environment.as_ref(),
            referred(&refs.env_context_ref),
        )?;
        let install = self.given_or_referred::<InstallResult>(
            "onnx_install_result",
            arguments.onnx_install_result_path.as_deref(),
            arguments.onnx_install_result.as_ref(),
            referred(&refs.onnx_install_result_ref),
        )?;
        let quark = self.given_or_referred::<Map<String, Value>>(
            "quark_install_result",
            arguments.quark_install_result_path.as_deref(),
            arguments.quark_install_result.as_ref(),
            referred(&refs.quark_install_result_ref),
        )?;
        let torch = self.given_or_referred::<TorchInstallResult>(
            TORCH_INSTALL,
            arguments.pytorch_install_result_path.as_deref(),
            arguments.pytorch_install_result.as_ref(),
            referred(&refs.pytorch_install_result_ref),
        )?;

        let (analysis, structure, analysis_file, analysed_here) = match &arguments.model_path {
            Some(path) => {
                let model = self.read_model(path)?;
                inputs.push(model_input(model.analysis()));
                let (analysis, structure) = split(model);
                (analysis, structure, None, true)
            }
            None => {
                let artefact = self
                    .given_or_referred::<ModelAnalysis>(
                        "model_analysis",
                        arguments.analysis_path.as_deref(),
                        arguments.analysis.as_ref(),
                        referred(&refs.model_analysis_ref),
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
        if let Some(environment) = self.read_again("environment", &mut inputs)? {
            bundle.environment = Some(environment);
        }
        let known = bundle.install.as_mut().and_then(|install| install.quark_version.take());
        if let Some(install) = self.read_again("onnx_install_result", &mut inputs)? {
            bundle.install = Some(install);
        }
        let quark = self.read_again::<Map<String, Value>>("quark_install_result", &mut inputs)?;
        let stated = quark.as_ref().and_then(quark_version_in);
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
        if let Some(torch) = self.read_again(TORCH_INSTALL, &mut inputs)? {
            bundle.torch_install = Some(torch);
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
}

/// Facts and intent as the log has them.
pub(super) fn bundle_of(session: &Session) -> Result<Bundle, Error> {
    serde_json::from_value(session.context().clone()).map_err(|error| Error::ArtefactInvalid {
        role: "session",
        place: Some(session.id().to_string()),
        detail: error.to_string(),
    })
}

pub(super) fn model_input(analysis: &ModelAnalysis) -> Input {
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

fn replace(inputs: &mut Vec<Input>, input: Input) {
    match inputs.iter_mut().find(|known| known.role == input.role) {
        Some(known) => *known = input,
        None => inputs.push(input),
    }
}

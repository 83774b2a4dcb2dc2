//! The model, the machine and the wishes that a plan is held against.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{
    facts::{EnvContext, ModelAnalysis},
    intent::Intent,
    plan::Input,
    planner::{
        Planner,
        check::{Arguments, Check, Finding, Grade, Subject, agreement::Known},
        error::Error,
        propose,
        reading::{Bundle, Reading, bundle_of},
    },
    rules::review,
    session::Session,
    vocab::Backend,
};

/// What a plan is held against.
pub(super) struct Surroundings {
    pub(super) reading: Reading,
    /// In words.
    pub(super) held_against: Vec<String>,
    pub(super) model: Model,
    pub(super) findings: Vec<Finding>,
}

/// What is known of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    /// Its facts, and its nodes or modules where they could be read.
    Known,
    /// Its type, from the plan.
    TypeOnly,
}

impl Model {
    pub(super) fn is_known(self) -> bool {
        self == Self::Known
    }
}

impl Planner {
    /// Reads the model, the machine and the wishes that a plan was made for, or those that the caller names.
    ///
    /// # Errors
    ///
    /// When a model or environment that the caller named cannot be read.
    pub(super) fn surroundings(
        &self,
        arguments: &Arguments,
        subject: &Subject,
        known: &Known,
    ) -> Result<Surroundings, Error> {
        let mut findings = Vec::new();
        let (mut reading, mut model) = match known.session() {
            Some(session) => (self.reading_of(session, &mut findings)?, Model::Known),
            None => match self.found(subject, &mut findings) {
                Some(reading) => (reading, Model::Known),
                None => (Reading::of(nothing_but_its_type(subject)?), Model::TypeOnly),
            },
        };
        if let Some(path) = &arguments.model_path {
            reading.replace_model(self.read_model(path)?);
            model = Model::Known;
        } else if !model.is_known() {
            findings.push(
                Finding::new(
                    Grade::Warning,
                    Check::Inputs,
                    "the model is not at hand, so only names and values were checked: no nodes or modules, no memory, \
                     no state of quantization",
                )
                .at("model.analysis_ref")
                .hint("name the model (`model_path`, `--model`) and check again"),
            );
        }
        let environment = self.artefact::<EnvContext>(
            "environment",
            arguments.environment_path.as_deref(),
            arguments.environment.as_ref(),
        )?;
        if let Some(environment) = environment {
            reading.bundle.environment = Some(environment.value);
        }
        findings.extend(known.session().and_then(|_| leads_nowhere(subject)));
        findings.extend(other_model(subject, &reading.bundle.analysis));
        // The model decides which rules speak, and those of the other half cannot judge this plan.
        if reading.context().backend() != subject.backend {
            model = Model::TypeOnly;
            let environment = reading.bundle.environment.take();
            reading = Reading::of(nothing_but_its_type(subject)?);
            reading.bundle.environment = environment;
        }
        let named = Intent {
            values: review::requested(subject.backend, &subject.value),
            ..reading.bundle.intent.clone()
        };
        reading.files = self.named_files(&named, &mut Vec::new());
        let held_against = held_against(&reading, model);
        Ok(Surroundings { reading, held_against, model, findings })
    }

    /// What a session was reasoned from, as it is now, or else as it was.
    fn reading_of(&self, session: &Session, findings: &mut Vec<Finding>) -> Result<Reading, Error> {
        let error = match self.next_reading(session) {
            Ok(reading) => return Ok(reading),
            Err(error) => error,
        };
        findings.push(unreadable(&error));
        let mut reading = Reading::of(bundle_of(session)?);
        if let Ok(model) = self.read_model(Path::new(&reading.bundle.analysis.model.model_path)) {
            reading.replace_model(model);
        }
        Ok(reading)
    }

    /// The model and the artefacts that a plan refers to, as far as they can be read.
    fn found(&self, subject: &Subject, findings: &mut Vec<Finding>) -> Option<Reading> {
        let all = self.recorded(subject);
        if all.model_path.is_none() && all.analysis_path.is_none() {
            return None;
        }
        let model_alone = propose::Arguments {
            model_path: all.model_path.clone(),
            analysis_path: all.analysis_path.clone(),
            ..propose::Arguments::default()
        };
        for arguments in [all, model_alone] {
            match self.first_reading(&arguments) {
                Ok(reading) => return Some(reading),
                Err(error) => {
                    let finding = unreadable(&error);
                    if !findings.contains(&finding) {
                        findings.push(finding);
                    }
                }
            }
        }
        None
    }

    /// The arguments that a plan was proposed with, as far as it tells and the files are there.
    fn recorded(&self, subject: &Subject) -> propose::Arguments {
        let inputs: Vec<Input> =
            serde_json::from_value(subject.value["provenance"]["inputs"].clone())
                .unwrap_or_default();
        let there = |role: &str| {
            let path = inputs.iter().find(|input| input.role == role)?.path.as_ref()?;
            Some(self.whole(Path::new(path))).filter(|path| path.exists())
        };
        let mut arguments = propose::Arguments {
            analysis_path: there("model_analysis"),
            environment_path: there("environment"),
            onnx_install_result_path: there("onnx_install_result"),
            quark_install_result_path: there("quark_install_result"),
            pytorch_install_result_path: there("pytorch_install_result"),
            session_context_path: there("session_context"),
            ..propose::Arguments::default()
        };
        if arguments.analysis_path.is_none() {
            arguments.model_path = there("model");
        }
        if arguments.analysis_path.is_none() && arguments.model_path.is_none() {
            let reference = subject.value["model"]["analysis_ref"].as_str().map(PathBuf::from);
            let path = reference.map(|path| subject.folder().join(path));
            if let Some(path) = path.filter(|path| path.exists()) {
                if is_analysis(&path) {
                    arguments.analysis_path = Some(path);
                } else {
                    arguments.model_path = Some(path);
                }
            }
        }
        arguments
    }

    /// What a plan was derived from and is not as it was.
    pub(super) fn changed_since(&self, subject: &Subject, known: &Known) -> Vec<Finding> {
        let provenance = &subject.value["provenance"];
        let inputs: Vec<Input> =
            serde_json::from_value(provenance["inputs"].clone()).unwrap_or_default();
        // A yes is to the facts that were there.
        let grade = if subject.is_own { Grade::Defect } else { Grade::Warning };
        let mut findings: Vec<Finding> = self
            .changed_files(&inputs, known.session())
            .into_iter()
            .map(|changed| {
                Finding::new(grade, Check::Inputs, format!("{changed}, since the plan was made"))
                    .at("provenance.inputs")
                    .hint(
                        "plan again, so that somebody confirms the decisions for what is there now",
                    )
            })
            .collect();
        if let Some(version) = provenance["catalogue_version"].as_str()
            && version != crate::catalogue::VERSION
        {
            findings.push(
                Finding::new(
                    Grade::Note,
                    Check::Inputs,
                    format!(
                        "it was reasoned with catalogue {version}, and is checked with catalogue {}",
                        crate::catalogue::VERSION
                    ),
                )
                .at("provenance.catalogue_version"),
            );
        }
        findings
    }
}

/// Whether a reference leads to an analysis, and not to a model.
pub(super) fn is_analysis(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
        && path.file_name().is_some_and(|name| name != "config.json")
}

/// A confirmed plan whose analysis is not where it says.
fn leads_nowhere(subject: &Subject) -> Option<Finding> {
    let reference = subject.value["model"]["analysis_ref"].as_str()?;
    (!subject.folder().join(reference).exists()).then(|| {
        Finding::new(
            Grade::Defect,
            Check::Inputs,
            format!("`{reference}` leads nowhere from the folder of the plan"),
        )
        .at("model.analysis_ref")
        .hint("keep the analysis with the plan: it is all that says which model it is for")
    })
}

fn unreadable(error: &Error) -> Finding {
    Finding::new(
        Grade::Warning,
        Check::Inputs,
        format!("what the plan was derived from cannot be read: {}", error.whole()),
    )
    .hint(error.hint())
}

/// The facts of a model of which a plan tells the type.
fn nothing_but_its_type(subject: &Subject) -> Result<Bundle, Error> {
    let model_type = match (subject.backend, subject.value["model"]["model_type"].as_str()) {
        (Backend::Onnx, _) => "onnx",
        (Backend::Torch, None | Some("onnx")) => "unknown",
        (Backend::Torch, Some(family)) => family,
    };
    let analysis = json!({
        "analysis_status": "partial",
        "model": { "model_path": "", "model_type": model_type },
        "quantization_targets": {},
    });
    let analysis: ModelAnalysis = serde_json::from_value(analysis).map_err(|error| {
        Error::ArtefactInvalid { role: "quant_plan", place: None, detail: error.to_string() }
    })?;
    Ok(Bundle {
        analysis,
        analysis_path: None,
        analysed_here: false,
        environment: None,
        install: None,
        torch_install: None,
        session_context: None,
        intent: Intent::default(),
    })
}

/// A plan for another model than the one at hand.
fn other_model(subject: &Subject, analysis: &ModelAnalysis) -> Option<Finding> {
    let found = analysis.model.model_type.as_str();
    let planned = match subject.value["model"]["model_type"].as_str() {
        Some(planned) if planned.eq_ignore_ascii_case(found) => return None,
        Some(planned) => format!("a model of type `{planned}`"),
        None if (subject.backend == Backend::Onnx) == (found == "onnx") => return None,
        None => format!("the {} half of Quark", subject.backend.as_str()),
    };
    Some(
        Finding::new(
            Grade::Defect,
            Check::Inputs,
            format!("the plan is for {planned}, and the model is of type `{found}`"),
        )
        .at("model.model_type"),
    )
}

fn held_against(reading: &Reading, model: Model) -> Vec<String> {
    let bundle = &reading.bundle;
    let mut what = Vec::new();
    if model.is_known() {
        let structure = match (&reading.graph, &reading.modules) {
            (Some(graph), _) => format!("{} nodes", graph.nodes().len()),
            (None, Some(modules)) => format!("{} linear modules", modules.linears.len()),
            (None, None) => "its analysis only".to_owned(),
        };
        what.push(format!("the model `{}` ({structure})", bundle.analysis.model.model_path));
    }
    if bundle.environment.is_some() {
        what.push("an environment".to_owned());
    }
    if bundle.install.is_some() {
        what.push("an install result".to_owned());
    }
    what
}

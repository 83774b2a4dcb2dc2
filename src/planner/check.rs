//! `check_plan`: whether a `quant_plan.json` holds, whoever wrote it.
//!
//! Four questions, all answered at once: has it the shape that its readers expect, does the release know
//! every name in it, do the rules let its values stand for the model and machine of today, and is it what
//! somebody confirmed.

pub mod agreement;
pub mod report;
pub(super) mod shape;
mod surroundings;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    plan::{Match, Risk},
    planner::{
        Planner,
        check::{agreement::Agreement, surroundings::Surroundings},
        error::Error,
    },
    render::plain,
    rules::review::{self, Objection, Review},
    vocab::{Backend, Severity},
};

/// Arguments of `check_plan`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The `quant_plan.json`.
    pub path: PathBuf,
    /// The model to hold it against; without it, the one that the plan refers to.
    #[serde(default)]
    pub model_path: Option<PathBuf>,
    /// Path of the `env_context.json` of the machine that will run it; without it, the one that the plan was
    /// made with.
    #[serde(default)]
    pub environment_path: Option<PathBuf>,
    /// The same as an object.
    #[serde(default)]
    pub environment: Option<Map<String, Value>>,
}

/// The answer of `check_plan`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The plan.
    pub path: String,
    /// Which half of Quark it is for.
    pub backend: Backend,
    /// Whether it says that quantplan wrote it.
    pub written_by_quantplan: bool,
    /// Whether nothing of it is a defect; warnings and notes may remain.
    pub clean: bool,
    /// Everything there is to say, gravest first.
    pub findings: Vec<Finding>,
    /// Whether somebody confirmed this very content.
    pub agreement: Agreement,
    /// For each excluded or selected name, what it means in the model.
    pub matches: Vec<Match>,
    /// What the plan was held against: the release, and the model when it could be read.
    pub held_against: Vec<String>,
    /// All of it in Markdown. Show it to the user.
    pub report_markdown: String,
    /// What to do next.
    pub next: String,
}

/// Something that was found in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// How grave.
    pub grade: Grade,
    /// Which of the checks found it.
    pub check: Check,
    /// Path of the field, with points, when it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What.
    pub message: String,
    /// The one thing to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// The plan must not be carried out as it is.
    Defect,
    /// Somebody should know it before it is carried out.
    Warning,
    /// Good to know.
    Note,
}

/// One of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// Fields and types.
    Schema,
    /// Names, ranges and patterns, against the release and the model.
    Names,
    /// The rules.
    Rules,
    /// What the plan was derived from.
    Inputs,
    /// Who agreed to it.
    Confirmation,
}

impl Grade {
    /// A word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Defect => "defect",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Finding {
    fn new(grade: Grade, check: Check, message: impl Into<String>) -> Self {
        Self { grade, check, field: None, message: message.into(), hint: None }
    }

    fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A plan as it was read.
pub(super) struct Subject {
    path: PathBuf,
    /// Of the bytes of the file.
    digest: String,
    pub(super) value: Value,
    pub(super) backend: Backend,
    is_own: bool,
}

impl Subject {
    /// Where its references start.
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

impl Planner {
    /// Holds a plan against its schema, the release, the rules and the log of sessions.
    ///
    /// # Errors
    ///
    /// When the file is no plan at all, or the model or environment that was named cannot be read. What is
    /// wrong with the plan is no error but a finding.
    pub fn check(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let subject = self.subject(&arguments.path)?;
        let known = self.known_session(&subject)?;
        let (agreement, said) = self.agreement(&subject, &known)?;
        let Surroundings { reading, mut held_against, model, mut findings } =
            self.surroundings(arguments, &subject, &known)?;
        findings.extend(said);
        findings.extend(self.changed_since(&subject, &known));

        let values = review::requested(subject.backend, &subject.value);
        let mut judged = review::review(&reading.context(), &values);
        if !model.is_known() {
            // Without a model the rules can only speak of names.
            judged.handoff = None;
            judged.risks.clear();
        }
        let shape = shape::findings(&subject, &judged);
        let about_rules = rule_findings(&subject, &judged);
        findings.extend(shape.into_iter().chain(about_rules));
        findings.sort_by_key(|finding| (finding.grade, finding.check));

        if let Some(draft) = &judged.draft {
            held_against.insert(0, format!("amd-quark {}", draft.quark_version));
        }
        let clean = findings.iter().all(|finding| finding.grade != Grade::Defect);
        let matches = judged.draft.map(|draft| draft.expected.matches).unwrap_or_default();
        let mut reply = Reply {
            path: subject.path.display().to_string(),
            backend: subject.backend,
            written_by_quantplan: subject.is_own,
            clean,
            next: next(&findings, &agreement),
            findings,
            agreement,
            matches,
            held_against,
            report_markdown: String::new(),
        };
        reply.report_markdown = report::markdown(&reply);
        Ok(reply)
    }

    /// A plan as it was read.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is no plan.
    pub(super) fn subject(&self, path: &Path) -> Result<Subject, Error> {
        let file = self.artefact_at::<Value>("quant_plan", path)?;
        if !file.value.is_object() {
            return Err(Error::ArtefactInvalid {
                role: "quant_plan",
                place: Some(path.display().to_string()),
                detail: "it is no JSON object".to_owned(),
            });
        }
        let is_own = file.value["provenance"]["quantplan_version"].is_string();
        let backend = backend_of(&file.value).ok_or_else(|| no_plan(path))?;
        Ok(Subject {
            path: self.whole(path),
            digest: file.input.digest,
            value: file.value,
            backend,
            is_own,
        })
    }
}

fn no_plan(path: &Path) -> Error {
    Error::ArtefactInvalid {
        role: "quant_plan",
        place: Some(path.display().to_string()),
        detail: "it has neither a `preset`, as ONNX plans have, nor a `global_scheme`, as Torch plans have"
            .to_owned(),
    }
}

/// Which half of Quark a plan is for; `None` when it is no plan.
fn backend_of(plan: &Value) -> Option<Backend> {
    let says = |value: &Value| value.as_str().map(str::to_ascii_lowercase);
    match (says(&plan["backend"]).as_deref(), says(&plan["model"]["model_type"]).as_deref()) {
        (Some("onnx"), _) | (None, Some("onnx")) => return Some(Backend::Onnx),
        (Some("torch"), _) => return Some(Backend::Torch),
        _ => {}
    }
    if plan.get("preset").is_some() || plan.get("onnx_specific").is_some() {
        Some(Backend::Onnx)
    } else {
        plan.get("global_scheme").map(|_| Backend::Torch)
    }
}

/// What the rules have against the values of a plan.
fn rule_findings(subject: &Subject, judged: &Review) -> Vec<Finding> {
    use Check::{Names, Rules};
    let mut findings = Vec::new();
    for defect in &judged.defects {
        let finding = Finding::new(Grade::Defect, Names, defect.message.clone());
        let field = defect.row.as_ref().map(ToString::to_string);
        findings.push(Finding { field, hint: defect.hint.clone(), ..finding });
    }
    if let Some(handoff) = &judged.handoff {
        findings.push(
            Finding::new(Grade::Defect, Rules, handoff.reason.clone())
                .hint(format!("go to `{}` and bring back {}", handoff.skill, handoff.bring_back)),
        );
    }
    for objection in &judged.impossible {
        findings.push(
            Finding::new(
                Grade::Defect,
                Rules,
                format!("{} cannot stand: {}", shown(objection), objection.why),
            )
            .at(objection.row.as_str())
            .hint(remedy(objection)),
        );
    }
    let recorded: Vec<Risk> =
        serde_json::from_value(subject.value["risks"].clone()).unwrap_or_default();
    for objection in &judged.unwise {
        let accepted = recorded.iter().any(|risk| {
            risk.severity == Severity::High && Some(&risk.rule) == objection.rule.as_ref()
        });
        let grade = if accepted { Grade::Note } else { Grade::Warning };
        let end = if accepted { "; the plan records that as a risk" } else { "" };
        findings.push(
            Finding::new(
                grade,
                Rules,
                format!("{} is advised against: {}{end}", shown(objection), objection.why),
            )
            .at(objection.row.as_str())
            .hint(remedy(objection)),
        );
    }
    let grave = judged.risks.iter().filter(|risk| risk.severity > Severity::Low);
    for risk in grave.filter(|risk| recorded.iter().all(|known| known.message != risk.message)) {
        let message = format!("{} risk: {}", risk.severity.as_str(), risk.message);
        let finding = Finding::new(Grade::Warning, Rules, message);
        findings.push(Finding { hint: risk.recovery_hint.clone(), ..finding });
    }
    findings
}

fn shown(objection: &Objection) -> String {
    format!("`{}` = `{}`", objection.row, plain(&objection.value))
}

fn remedy(objection: &Objection) -> String {
    match &objection.instead {
        Some(value) => format!("the planner would take `{}`", plain(value)),
        None => "the planner leaves it open and asks".to_owned(),
    }
}

fn next(findings: &[Finding], agreement: &Agreement) -> String {
    let has = |grade| findings.iter().any(|finding| finding.grade == grade);
    if has(Grade::Defect) {
        "do not carry it out; make a plan of the same model with `propose_plan` and let the user confirm it"
    } else if !agreement.is_confirmed() {
        "show the user the report: nothing here proves that somebody agreed to this content"
    } else if has(Grade::Warning) {
        "show the user the report, and ask them whether it shall be carried out all the same"
    } else {
        "it can be carried out"
    }
    .to_owned()
}

//! The sheet that rules write on: decisions, risks, questions, and what was chosen so far.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, json};

use crate::{
    catalogue::{
        self,
        algorithms::Algorithm,
        devices::Device,
        methods::Method,
        presets::Preset,
        releases::Release,
        targets::{Profile, Target},
    },
    estimate,
    facts::AnalysisRisk,
    plan::{
        Alternative, Choice, Decision, Draft, Expected, Handoff, ModelLine, Question, Resume, Risk,
    },
    rules::{Context, rows, torch::choice::TorchChoice},
    vocab::{
        Architecture, Backend, DecisionId, Origin, QuestionId, RuleId, ScaleKind, Severity, SkillId,
    },
};

/// What rules have decided so far.
#[derive(Debug)]
pub struct Sheet {
    decisions: BTreeMap<DecisionId, Decision>,
    risks: Vec<Risk>,
    questions: Vec<Question>,
    handoffs: Vec<Handoff>,
    stop: Option<Handoff>,
    /// What the validator can expect.
    pub expected: Expected,
    /// The release that is planned for.
    pub release: &'static Release,
    /// What kind of network it is, by the analysis or by the user's answer.
    pub architecture: Architecture,
    /// Where it will run.
    pub target: Option<&'static Target>,
    /// Which set of conditions holds there.
    pub profile: Option<&'static Profile>,
    /// On which device generation.
    pub device: Option<&'static Device>,
    /// The preset.
    pub preset: Option<Cow<'static, Preset>>,
    /// The calibration method.
    pub method: Option<&'static Method>,
    /// Algorithms in the order in which they run.
    pub algorithms: Vec<&'static Algorithm>,
    /// Extra options that rules set, with the reason for each.
    pub extra_options: BTreeMap<String, (Value, String)>,
    /// Shapes that inputs are fixed to, by name.
    pub fixed_shapes: BTreeMap<String, Vec<u64>>,
    /// What was chosen for a Torch plan.
    pub torch: TorchChoice,
}

/// The verdict of a rule on a value that the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Nothing against it.
    Fine,
    /// Kept, with a recorded risk.
    Risky(Severity, String),
    /// Not taken unless the user insists; then kept with a high risk.
    Unwise(String),
    /// Not taken, whatever the user says.
    Impossible(String),
}

/// A value that was asked for.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The value.
    pub value: &'a Value,
    /// Who asked.
    pub origin: Origin,
    /// The same as the beginning of a reason.
    pub said: String,
}

impl<'a> Asked<'a> {
    /// A value that the user set for the row.
    pub fn by_user(value: &'a Value) -> Self {
        Self { value, origin: Origin::User, said: "you asked for it".to_owned() }
    }
}

/// What stands when a value that was asked for does not.
#[derive(Debug, Clone)]
pub enum Fallback {
    /// This value, from there, for that reason.
    Value(Value, Origin, String),
    /// Nothing, for that reason: the row is left open.
    Open(String),
}

impl Sheet {
    /// An empty sheet.
    pub fn new(release: &'static Release) -> Self {
        Self {
            decisions: BTreeMap::new(),
            risks: Vec::new(),
            questions: Vec::new(),
            handoffs: Vec::new(),
            stop: None,
            expected: Expected::default(),
            release,
            architecture: Architecture::Unknown,
            target: None,
            profile: None,
            device: None,
            preset: None,
            method: None,
            algorithms: Vec::new(),
            extra_options: BTreeMap::new(),
            fixed_shapes: BTreeMap::new(),
            torch: TorchChoice::default(),
        }
    }

    /// Writes in the name of a rule.
    pub fn by(&mut self, rule: &'static str) -> Pen<'_> {
        Pen { sheet: self, rule }
    }

    /// The value of a decision that was taken.
    pub fn value(&self, row: &str) -> Option<&Value> {
        self.decisions.get(&DecisionId::new(row)).filter(|d| d.set).map(|d| &d.value)
    }

    /// A decision that was taken, to add to it.
    pub fn decision_mut(&mut self, row: &str) -> Option<&mut Decision> {
        self.decisions.get_mut(&DecisionId::new(row))
    }

    /// Whether a question is asked already.
    pub fn asks(&self, question: &str) -> bool {
        self.questions.iter().any(|known| known.id == *question)
    }

    /// Whether an algorithm will run.
    pub fn runs(&self, algorithm: &str) -> bool {
        self.algorithms.iter().any(|a| a.id == *algorithm)
    }

    /// Whether the release has an entry.
    pub fn has(&self, ctx: &Context<'_>, entry: &impl catalogue::Entry) -> bool {
        ctx.catalogue.in_release(entry, &self.release.id)
    }

    /// Whether the calibration method yields scales of this kind.
    pub fn scales_are(&self, kind: ScaleKind) -> bool {
        self.method.is_some_and(|method| method.scale == kind)
    }

    /// The value that an extra option will have: what the user set, else a rule, else the preset.
    pub fn option_given<'v>(&'v self, ctx: &Context<'v>, key: &str) -> Option<&'v Value> {
        let asked =
            ctx.requested("onnx_specific.extra_options").and_then(|options| options.get(key));
        let ruled = || self.extra_options.get(key).map(|(value, _)| value);
        let own = || self.preset.as_ref().and_then(|preset| preset.extra_options.get(key));
        asked.or_else(ruled).or_else(own)
    }

    /// Whether an extra option will be `true`.
    pub fn option_is_on(&self, ctx: &Context<'_>, key: &str) -> bool {
        self.option_given(ctx, key) == Some(&Value::Bool(true))
    }

    /// Whether the target is an NPU.
    pub fn on_npu(&self) -> bool {
        self.target.is_some_and(|target| target.npu)
    }

    /// The handoff that ends planning, when a rule asked for one.
    pub fn stopped(&mut self) -> Option<Handoff> {
        self.stop.take()
    }

    /// The draft, with its rows in the order of the table and its risks gravest first.
    pub fn into_draft(mut self, ctx: &Context<'_>) -> Draft {
        let mut decisions = Vec::with_capacity(self.decisions.len());
        for row in rows::of(ctx.backend()) {
            decisions.extend(self.decisions.remove(&DecisionId::new(row.id)));
        }
        debug_assert!(self.decisions.is_empty(), "every decision has a row: {:?}", self.decisions);
        let mut risks = self.risks;
        risks.sort_by_key(|risk| std::cmp::Reverse(risk.severity));
        let (architecture, bytes, nodes) = match ctx.backend() {
            Backend::Onnx => {
                let facts = ctx.onnx();
                let external = facts.weights.as_ref().map_or(0, |w| w.external_bytes);
                let bytes = facts.file_size_bytes.map(|bytes| bytes + external);
                (self.architecture, bytes, facts.nodes.map(|nodes| nodes.all))
            }
            Backend::Torch => {
                let attends = ctx.torch().num_attention_heads.is_some();
                let kind = if attends { Architecture::Transformer } else { Architecture::Unknown };
                (kind, estimate::model_bytes(ctx.analysis), ctx.analysis.model.num_hidden_layers)
            }
        };
        Draft {
            backend: ctx.backend(),
            quark_version: self.release.id.clone(),
            catalogue_version: catalogue::VERSION.to_owned(),
            model: ModelLine {
                path: ctx.analysis.model.model_path.clone(),
                model_type: ctx.analysis.model.model_type.clone(),
                architecture,
                bytes,
                nodes,
            },
            decisions,
            risks,
            questions: self.questions,
            handoffs: self.handoffs,
            expected: self.expected,
            requires_confirmation: true,
        }
    }
}

/// Writes on a sheet in the name of one rule.
#[derive(Debug)]
pub struct Pen<'a> {
    sheet: &'a mut Sheet,
    rule: &'static str,
}

impl Pen<'_> {
    /// What was decided so far.
    pub fn sheet(&self) -> &Sheet {
        self.sheet
    }

    /// Takes a decision.
    pub fn decide(
        &mut self,
        row: &'static str,
        value: impl Into<Value>,
        origin: Origin,
        reason: impl Into<String>,
    ) -> &mut Decision {
        self.write(row, value.into(), true, origin, reason.into())
    }

    /// Leaves a row open: it has no value, so the draft cannot be confirmed.
    pub fn leave_open(&mut self, row: &'static str, reason: impl Into<String>) -> &mut Decision {
        self.write(row, Value::Null, false, Origin::Rule, reason.into())
    }

    fn write(
        &mut self,
        row: &'static str,
        value: Value,
        set: bool,
        origin: Origin,
        reason: String,
    ) -> &mut Decision {
        let id = DecisionId::new(row);
        let decision = Decision {
            id: id.clone(),
            value,
            set,
            reason,
            origin,
            rule: RuleId::new(self.rule),
            alternatives: Vec::new(),
            also: BTreeMap::new(),
        };
        let slot = self.sheet.decisions.entry(id).or_insert_with(|| decision.clone());
        *slot = decision;
        slot
    }

    /// Takes the value that was asked for, or the fallback, by the verdict on it; returns what stands,
    /// `None` when the row is left open.
    pub fn settle(
        &mut self,
        ctx: &Context<'_>,
        row: &'static str,
        asked: &Asked<'_>,
        check: Check,
        fallback: Fallback,
    ) -> Option<Value> {
        let insists = ctx.insists(row);
        let shown = show(asked.value);
        let said = &asked.said;
        let (why, can_insist) = match check {
            Check::Fine => {
                self.decide(row, asked.value.clone(), asked.origin, said.clone());
                return Some(asked.value.clone());
            }
            Check::Risky(severity, why) => {
                self.decide(
                    row,
                    asked.value.clone(),
                    asked.origin,
                    format!("{said}; note that {why}"),
                );
                self.risk(severity, format!("`{row}` is {shown}: {why}"), None);
                return Some(asked.value.clone());
            }
            Check::Unwise(why) if insists => {
                self.decide(
                    row,
                    asked.value.clone(),
                    asked.origin,
                    format!("you insist on it although {why}"),
                );
                let hint = match &fallback {
                    Fallback::Value(value, ..) => {
                        format!("withdraw `{row}` to get {}", show(value))
                    }
                    Fallback::Open(_) => format!("withdraw `{row}`, or set it to something else"),
                };
                self.risk(
                    Severity::High,
                    format!("`{row}` is {shown} at your insistence: {why}"),
                    Some(hint),
                );
                return Some(asked.value.clone());
            }
            Check::Unwise(why) => (why, true),
            Check::Impossible(why) => (why, false),
        };
        let mut not_taken = format!("{shown} was asked for, but {why}");
        if insists && !can_insist {
            not_taken.push_str("; insisting cannot change that");
        }
        let why_not = if can_insist {
            format!("{why}; insist on `{row}` to keep it all the same")
        } else {
            why
        };
        let (decision, value) = match fallback {
            Fallback::Value(value, origin, reason) => (
                self.decide(row, value.clone(), origin, format!("{reason}; {not_taken}")),
                Some(value),
            ),
            Fallback::Open(reason) => {
                (self.leave_open(row, format!("{reason}; {not_taken}")), None)
            }
        };
        decision.alternatives.push(Alternative { value: asked.value.clone(), why_not });
        value
    }

    /// Settles a row whose default is known and whose requested value needs no other check than `check`.
    pub fn settle_or(
        &mut self,
        ctx: &Context<'_>,
        row: &'static str,
        default: (Value, Origin, String),
        check: impl FnOnce(&Value) -> Check,
    ) -> Value {
        let (value, origin, reason) = default;
        match ctx.requested(row) {
            // What would be decided anyway keeps the better reason.
            Some(asked) if *asked != value => {
                let verdict = check(asked);
                let fallback = Fallback::Value(value.clone(), origin, reason);
                self.settle(ctx, row, &Asked::by_user(asked), verdict, fallback).unwrap_or(value)
            }
            Some(_) => {
                self.decide(
                    row,
                    value.clone(),
                    Origin::User,
                    format!("you asked for it, and {reason}"),
                );
                value
            }
            None => {
                self.decide(row, value.clone(), origin, reason);
                value
            }
        }
    }

    /// Records a risk.
    pub fn risk(&mut self, severity: Severity, message: impl Into<String>, hint: Option<String>) {
        let risk = Risk {
            severity,
            message: message.into(),
            recovery_hint: hint,
            rule: RuleId::new(self.rule),
        };
        if !self.sheet.risks.iter().any(|known| known.message == risk.message) {
            self.sheet.risks.push(risk);
        }
    }

    /// Records the intake's own risks of weight, but for topics that rules judge with the target in mind.
    pub fn carry_over(&mut self, risks: &[AnalysisRisk], judged_elsewhere: &[&str]) {
        /// More of a message is not worth a row.
        const LONGEST: usize = 300;
        let short =
            |text: &str| text.trim_end_matches('.').chars().take(LONGEST).collect::<String>();
        for risk in risks.iter().filter(|risk| risk.severity >= Severity::Medium) {
            if !judged_elsewhere.iter().any(|topic| risk.message.contains(topic)) {
                let hint = risk.recovery_hint.as_deref().map(short);
                self.risk(risk.severity, short(&risk.message), hint);
            }
        }
    }

    /// Asks the user something without which the plan cannot be confirmed.
    pub fn ask(&mut self, id: &str, text: impl Into<String>, options: Vec<Choice>) {
        self.question(id, text.into(), true, options);
    }

    /// Asks the user something that would make the plan better.
    pub fn wonder(&mut self, id: &str, text: impl Into<String>, options: Vec<Choice>) {
        self.question(id, text.into(), false, options);
    }

    fn question(&mut self, id: &str, text: String, blocking: bool, options: Vec<Choice>) {
        self.sheet.questions.push(Question {
            id: QuestionId::new(id),
            text,
            blocking,
            options,
            rule: RuleId::new(self.rule),
        });
    }

    /// Sends to another skill, and goes on drafting.
    pub fn hand_off(&mut self, route: Route<'_>) {
        let handoff = route.handoff(self.rule);
        self.sheet.handoffs.push(handoff);
    }

    /// Sends to another skill instead of drafting anything.
    pub fn stop(&mut self, route: Route<'_>) {
        self.sheet.stop = Some(route.handoff(self.rule));
    }

    /// Sets a key of `extra_options`, with its reason.
    pub fn option(&mut self, key: &str, value: impl Into<Value>, reason: impl Into<String>) {
        self.sheet.extra_options.insert(key.to_owned(), (value.into(), reason.into()));
    }
}

/// Where to go, and what to come back with.
#[derive(Debug, Clone)]
pub struct Route<'a> {
    /// Skill to go to.
    pub skill: &'a str,
    /// Why.
    pub reason: String,
    /// The artefact it must bring.
    pub artefact: Option<&'a str>,
    /// What exactly is wanted.
    pub bring_back: String,
    /// Tool that resumes here, with its arguments.
    pub resume: (&'a str, Value),
}

impl Route<'_> {
    fn handoff(self, rule: &'static str) -> Handoff {
        Handoff {
            skill: SkillId::new(self.skill),
            reason: self.reason,
            artefact: self.artefact.map(str::to_owned),
            bring_back: self.bring_back,
            resume: Resume { tool: self.resume.0.to_owned(), arguments: self.resume.1 },
            rule: RuleId::new(rule),
        }
    }
}

/// A value as a reason shows it: names and numbers in backticks, lists in brackets.
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Null => "nothing".to_owned(),
        other => format!("`{other}`"),
    }
}

/// A sentence from the catalogue, to go on with after a colon; acronyms and names such as `ValueError` keep
/// their case.
pub fn lower(text: &str) -> String {
    let mut chars = text.chars();
    let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if word.chars().skip(1).any(char::is_uppercase) {
        return text.to_owned();
    }
    match (chars.next(), chars.clone().next()) {
        // Acronyms keep their case.
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

/// Bytes with a unit, in powers of ten.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let unit = UNITS.iter().find(|(_, one)| bytes as f64 >= *one);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(unit, one)| format!("{:.1} {unit}", bytes as f64 / one),
    )
}

/// Names in backticks, joined by commas; at most `most`, then the number of the others.
pub fn list<S: AsRef<str>>(names: impl IntoIterator<Item = S>, most: usize) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    let rest = names.len().saturating_sub(most);
    let mut text = names[..names.len() - rest].join(", ");
    if rest > 0 {
        text.push_str(&format!(" and {rest} more"));
    }
    text
}

/// The arguments that propose the same model again.
pub fn propose_again(ctx: &Context<'_>, more: (&str, Value)) -> Value {
    let mut arguments = json!({ "model_path": ctx.analysis.model.model_path });
    arguments[more.0] = more.1;
    arguments
}

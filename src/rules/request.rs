//! Checks a request before any rule runs: names, types and ranges, all defects at once.

pub mod layers;
pub mod named_files;
pub mod nodes;
pub mod options;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    catalogue::{Entry, Kind as Entries, devices::DeviceKind, releases::Release},
    intent::{Changes, Intent},
    rules::{
        Context,
        common::quark_release,
        onnx::{custom_config, shapes},
        rows::{self, Kind, Row, Takes},
        sheet::{list, show},
    },
    vocab::{Backend, DecisionId, EvaluationIntent, QuestionId, near_names},
};

/// Something wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// What is wrong, with the thing named.
    pub message: String,
    /// The one thing to do about it.
    pub hint: Option<String>,
    /// The row whose value it is about, when it is about one.
    pub row: Option<DecisionId>,
}

impl Defect {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, row: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The questions that rules ask, with the answers they take; any text when none are listed.
///
/// Answers that a catalogue lists (targets, devices) or that are parsed (shapes) are not repeated here.
pub const QUESTIONS: &[(&str, &[&str])] = &[
    ("architecture", &["cnn", "transformer", "hybrid", "recurrent", "mlp"]),
    ("calibration_data", &[]),
    ("calibration_domain", &["yes", "no"]),
    ("custom_op_library", &[]),
    ("custom_template", &[]),
    ("custom_ops", &["verified"]),
    ("deployment_target", &[]),
    ("execution_provider", &[]),
    ("hardware", &[]),
    ("input_shapes", &[]),
    ("integer_io", &["no", "yes"]),
    ("npu_batch", &["keep"]),
    ("npu_device", &[]),
    ("npu_offload", &["keep", "cpu"]),
    ("opset", &["keep"]),
    ("requantize", &["proceed"]),
    ("rotation_config", &[]),
    ("scheme", &[]),
    ("trust_remote_code", &["yes", "no"]),
];

/// The intent with every name spelled as the catalogue spells it and every row by its full id.
///
/// # Errors
///
/// Every defect.
pub fn checked(ctx: &Context<'_>) -> Result<Intent, Vec<Defect>> {
    let mut check = Checker { ctx, release: ctx.catalogue.newest_release(), defects: Vec::new() };
    let mut intent = ctx.intent.clone();
    intent.values = check.rows(&ctx.intent.values);
    intent.insist = check.row_names(&ctx.intent.insist);
    match quark_release::pick(&Context { intent: &intent, ..*ctx }) {
        Ok(pick) => check.release = pick.release,
        Err(defect) => check.defects.push(defect),
    }
    let values = std::mem::take(&mut intent.values);
    for (id, value) in &values {
        // `row_names` kept known rows only.
        let Some(row) = rows::find(rows::of(ctx.backend()), id.as_str()) else { continue };
        let before = check.defects.len();
        if let Some(value) = check.value(row, value, &values) {
            intent.values.insert(id.clone(), value);
        }
        for defect in &mut check.defects[before..] {
            defect.row = Some(id.clone());
        }
    }
    match (&ctx.intent.deployment_target, ctx.backend()) {
        (Some(target), Backend::Onnx) => intent.deployment_target = check.target(target),
        (Some(target), Backend::Torch) => check.other_half(
            &format!("the deployment target `{target}`"),
            "name devices in `hardware` and the engine in `serving_engine`; for the target itself, export the model to ONNX first",
        ),
        (None, _) => {}
    }
    if ctx.backend() == Backend::Onnx && ctx.intent.serving_engine.is_some() {
        check.other_half("`serving_engine`", "leave it out: ONNX Runtime runs the result");
    }
    if ctx.intent.calibration_data.as_ref().is_some_and(|data| data.samples == Some(0)) {
        check.defects.push(
            Defect::new("`calibration_data.samples` is 0, which is no calibration data")
                .hint("leave `samples` out, or set `available` to false"),
        );
    }
    intent.answers = check.answers(&ctx.intent.answers);
    check.defects.extend(named_files::defects(ctx));
    if check.defects.is_empty() { Ok(intent) } else { Err(check.defects) }
}

/// Changes with every row by its full id; the values are checked with the intent that they become part of.
///
/// # Errors
///
/// Every name that is no row.
pub fn resolved(ctx: &Context<'_>, changes: &Changes) -> Result<Changes, Vec<Defect>> {
    let mut check = Checker { ctx, release: ctx.catalogue.newest_release(), defects: Vec::new() };
    let changes = Changes {
        values: check.rows(&changes.values),
        answers: changes.answers.clone(),
        insist: check.row_names(&changes.insist),
        withdraw: check.row_names(&changes.withdraw),
        said: Intent {
            values: check.rows(&changes.said.values),
            insist: check.row_names(&changes.said.insist),
            ..changes.said.clone()
        },
    };
    if check.defects.is_empty() { Ok(changes) } else { Err(check.defects) }
}

struct Checker<'a> {
    ctx: &'a Context<'a>,
    release: &'static Release,
    defects: Vec<Defect>,
}

impl Checker<'_> {
    fn row(&mut self, name: &DecisionId) -> Option<DecisionId> {
        let own = rows::of(self.ctx.backend());
        let found = rows::resolve(self.ctx.backend(), name);
        if found.is_none() && rows::find_any(name.as_str()).is_some() {
            let settable = own.iter().filter(|row| !matches!(row.takes, Takes::Nothing(_)));
            let hint = format!("choose one of {}", list(settable.map(|row| row.id), 20));
            self.other_half(&format!("the row `{name}`"), &hint);
        } else if found.is_none() {
            let near = near_names(name.as_str(), own.iter().map(|row| row.id));
            let settable = own.iter().filter(|row| !matches!(row.takes, Takes::Nothing(_)));
            let hint = if near.is_empty() {
                format!("choose one of {}", list(settable.map(|row| row.id), 20))
            } else {
                format!("did you mean {}?", list(near, 3))
            };
            self.defects.push(Defect::new(format!("there is no row `{name}`")).hint(hint));
        }
        found
    }

    /// Notes that something belongs to the plans of the other half of Quark.
    fn other_half(&mut self, what: &str, hint: &str) {
        let (own, other) = match self.ctx.backend() {
            Backend::Onnx => ("ONNX", "Torch"),
            Backend::Torch => ("Torch", "ONNX"),
        };
        self.defects.push(
            Defect::new(format!("{what} is for {other} plans, and this model gets a {own} plan"))
                .hint(hint),
        );
    }

    fn rows(&mut self, values: &BTreeMap<DecisionId, Value>) -> BTreeMap<DecisionId, Value> {
        values.iter().filter_map(|(name, value)| Some((self.row(name)?, value.clone()))).collect()
    }

    fn row_names(&mut self, names: &BTreeSet<DecisionId>) -> BTreeSet<DecisionId> {
        names.iter().filter_map(|name| self.row(name)).collect()
    }

    /// The value in its canonical spelling.
    fn value(
        &mut self,
        row: &Row,
        value: &Value,
        all: &BTreeMap<DecisionId, Value>,
    ) -> Option<Value> {
        match row.takes {
            Takes::Nothing(why) => {
                self.defects.push(Defect::new(format!("`{}` cannot be set: {why}", row.id)));
                None
            }
            Takes::Name(Kind::Preset) if is_custom(value) => {
                if !all.contains_key(&DecisionId::new("onnx_specific.custom_config")) {
                    self.defects.push(
                        Defect::new("`preset` is `custom`, but its spec is missing").hint(
                            "set `onnx_specific.custom_config` to {activation_type, weight_type, \
                             calibrate_method, quant_format}",
                        ),
                    );
                }
                Some(json!(custom_config::NAME))
            }
            Takes::Name(Kind::Method) if value.is_null() => Some(Value::Null),
            Takes::Name(kind) => match value.as_str() {
                Some(name) => self.name(row, kind, name).map(Value::from),
                None => self.wrong_type(row, value, "a name"),
            },
            Takes::Names(kind) => self.names(row, kind, value),
            Takes::Count { min, max } => match value.as_u64() {
                Some(n) if (min..=max).contains(&n) => Some(value.clone()),
                _ => self.wrong_type(row, value, &format!("a whole number from {min} to {max}")),
            },
            Takes::Flag => match value {
                Value::Bool(_) => Some(value.clone()),
                _ => self.wrong_type(row, value, "true or false"),
            },
            Takes::OpTypes => self.lists(row, value, nodes::op_types),
            Takes::Nodes => self.lists(row, value, nodes::entries),
            Takes::Subgraphs => {
                let checked = nodes::subgraphs(self.ctx, row.id, value);
                self.defects.extend(checked.1);
                checked.0
            }
            Takes::Options => match value.as_object() {
                Some(given) => {
                    self.defects.extend(options::defects(self.ctx, self.release, given));
                    Some(value.clone())
                }
                None => self.wrong_type(row, value, "an object of extra options"),
            },
            Takes::CustomConfig => match value.as_object() {
                Some(config) => {
                    if let Err(defects) = custom_config::read(self.ctx, &self.release.id, config) {
                        self.defects.extend(defects);
                    }
                    let preset = all.get(&DecisionId::new("preset"));
                    if !preset.is_some_and(is_custom) {
                        self.defects.push(
                            Defect::new(
                                "`onnx_specific.custom_config` is only for the preset `custom`",
                            )
                            .hint("set `preset` to `custom`, or leave the config out"),
                        );
                    }
                    Some(value.clone())
                }
                None => self.wrong_type(row, value, "an object"),
            },
            Takes::Providers => match texts(value) {
                Some(names) if !names.is_empty() => {
                    let targets = self.ctx.catalogue.targets().all();
                    let known = targets.iter().map(|target| target.execution_provider.as_str());
                    // ONNX Runtime has more of them than the targets name, all spelled like these.
                    let misspelt = |name: &&&str| {
                        !name.ends_with("ExecutionProvider")
                            || known
                                .clone()
                                .any(|known| known.eq_ignore_ascii_case(name) && known != **name)
                    };
                    for name in names.iter().filter(misspelt) {
                        let near = near_names(name, known.clone());
                        let mut defect = Defect::new(format!("`{name}` is no execution provider"));
                        defect.hint =
                            (!near.is_empty()).then(|| format!("did you mean {}?", list(near, 3)));
                        self.defects.push(defect);
                    }
                    Some(value.clone())
                }
                _ => self.wrong_type(row, value, "a list of execution providers"),
            },
            Takes::Choice(words) => self.choice(row, value, words),
            Takes::Number => match value.as_f64() {
                Some(number) if number >= 0.0 => Some(value.clone()),
                _ => self.wrong_type(row, value, "a number from 0"),
            },
            Takes::Path => match value {
                Value::Null => Some(Value::Null),
                Value::String(path) if !path.trim().is_empty() => Some(value.clone()),
                _ => self.wrong_type(row, value, "a path, or null"),
            },
            Takes::Dataset => self.dataset(row, value),
            Takes::Patterns => match (value, texts(value)) {
                (Value::Null, _) => Some(Value::Null),
                (_, Some(patterns)) => {
                    self.defects.extend(layers::patterns(self.ctx, row.id, &patterns));
                    Some(value.clone())
                }
                _ => self.wrong_type(row, value, "a list of patterns, or null"),
            },
            Takes::Overrides => self.overrides(row, value),
            Takes::Algorithms => self.algorithms(row, value),
            Takes::Evaluation => {
                if serde_json::from_value::<EvaluationIntent>(value.clone()).is_ok() {
                    return Some(value.clone());
                }
                let known = ["none", "smoke", "full", "mlperf", "mAP"];
                let near = near_names(value.as_str().unwrap_or_default(), known);
                if let [one] = near[..]
                    && value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(one))
                {
                    return Some(json!(one));
                }
                self.wrong_type(row, value, "`none`, `smoke`, `full`, `mlperf` or `mAP`")
            }
        }
    }

    fn scheme_answer(&mut self, answer: &str) -> Option<String> {
        let row = rows::find(rows::TORCH, "global_scheme")?;
        self.name(row, Kind::Scheme, answer)
    }

    fn choice(&mut self, row: &Row, value: &Value, words: &[&str]) -> Option<Value> {
        let found = match value {
            Value::Null => return Some(Value::Null),
            Value::String(text) => words.iter().find(|word| word.eq_ignore_ascii_case(text)),
            _ => None,
        };
        match found {
            Some(word) => Some(json!(word)),
            None => self.wrong_type(row, value, &format!("one of {}, or null", list(words, 9))),
        }
    }

    fn dataset(&mut self, row: &Row, value: &Value) -> Option<Value> {
        let Some(name) = value.as_str() else {
            return self.wrong_type(row, value, "the name of a data set");
        };
        let Some(flag) = layers::dataset_flag(self.ctx.catalogue) else { return Some(json!(name)) };
        if let Some(failing) = flag.failing.iter().find(|failing| failing.value == name) {
            self.defects.push(
                Defect::new(format!(
                    "Quark accepts the data set `{name}` and then fails: {}",
                    failing.error
                ))
                .hint(format!("choose one of {}", list(flag.usable_choices(), 9))),
            );
            return None;
        }
        if let Some(known) = flag.choices.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            return Some(json!(known));
        }
        self.defects.push(
            Defect::new(format!("Quark-Torch cannot load a data set `{name}`"))
                .hint(format!("choose one of {}", list(flag.usable_choices(), 9))),
        );
        None
    }

    fn overrides(&mut self, row: &Row, value: &Value) -> Option<Value> {
        if value.is_null() {
            return Some(json!({}));
        }
        let Some(given) = value.as_object() else {
            return self.wrong_type(row, value, "an object of patterns with schemes");
        };
        let patterns: Vec<&str> = given.keys().map(String::as_str).collect();
        self.defects.extend(layers::patterns(self.ctx, row.id, &patterns));
        let mut checked = serde_json::Map::new();
        for (pattern, scheme) in given {
            match scheme.as_str() {
                Some(name) => {
                    let name = self.name(row, Kind::Scheme, name);
                    checked.extend(name.map(|name| (pattern.clone(), json!(name))));
                }
                None => {
                    self.wrong_type(row, scheme, "a scheme for each pattern");
                }
            }
        }
        Some(Value::Object(checked))
    }

    /// One text, as Quark's `--quant_algo` takes it.
    fn algorithms(&mut self, row: &Row, value: &Value) -> Option<Value> {
        let names: Vec<&str> = match value {
            Value::Null => return Some(Value::Null),
            Value::String(names) if names.eq_ignore_ascii_case("none") => return Some(Value::Null),
            Value::String(names) => names.split(',').map(str::trim).collect(),
            other => match texts(other) {
                Some(names) if names.is_empty() => return Some(Value::Null),
                Some(names) => names,
                None => return self.wrong_type(row, value, "null, a name or a list of names"),
            },
        };
        let mut found: Vec<String> = Vec::new();
        for name in names {
            let known = self.ctx.catalogue.torch_algorithms();
            let Some(name) = self.entry(row, "algorithm of Quark-Torch", known, name) else {
                continue;
            };
            if found.contains(&name) {
                self.defects.push(Defect::new(format!("`{}` names `{name}` twice", row.id)));
            } else {
                found.push(name);
            }
        }
        Some(json!(found.join(",")))
    }

    fn wrong_type(&mut self, row: &Row, value: &Value, expected: &str) -> Option<Value> {
        self.defects.push(Defect::new(format!(
            "`{}` takes {expected}, not {}",
            row.id,
            show(value)
        )));
        None
    }

    fn names(&mut self, row: &Row, kind: Kind, value: &Value) -> Option<Value> {
        let names = match value {
            Value::Null => Vec::new(),
            Value::String(names) => names.split(',').map(str::trim).collect(),
            other => match texts(other) {
                Some(names) => names,
                None => return self.wrong_type(row, value, "a list of names"),
            },
        };
        let mut found: Vec<String> = Vec::new();
        for name in names {
            let Some(name) = self.name(row, kind, name) else { continue };
            if found.contains(&name) {
                self.defects.push(Defect::new(format!("`{}` names `{name}` twice", row.id)));
            } else {
                found.push(name);
            }
        }
        Some(json!(found))
    }

    fn lists(
        &mut self,
        row: &Row,
        value: &Value,
        check: fn(&Context<'_>, &str, &[&str]) -> Vec<Defect>,
    ) -> Option<Value> {
        if value.is_null() {
            return Some(Value::Null);
        }
        let Some(names) = texts(value) else {
            return self.wrong_type(row, value, "a list of names, or null");
        };
        self.defects.extend(check(self.ctx, row.id, &names));
        // An empty list restricts nothing, which the plan says with `null`.
        Some(if names.is_empty() { Value::Null } else { value.clone() })
    }

    fn name(&mut self, row: &Row, kind: Kind, name: &str) -> Option<String> {
        let catalogue = self.ctx.catalogue;
        match kind {
            // `quark_release::pick` reads it, with builds and unknown versions.
            Kind::Release => Some(name.to_owned()),
            Kind::Target => self.target(name),
            Kind::Preset => self.entry(row, "preset", catalogue.presets(), name),
            Kind::Algorithm => self.entry(row, "algorithm", catalogue.algorithms(), name),
            Kind::Scheme => self.entry(row, "scheme", catalogue.schemes(), name),
            Kind::EntryPoint => self.entry(row, "entry point", catalogue.entry_points(), name),
            Kind::Method => {
                let found = self.entry(row, "calibration method", catalogue.methods(), name)?;
                if catalogue.methods().get(&found).is_some_and(|method| method.weights_only) {
                    self.defects.push(
                        Defect::new(format!(
                            "`{found}` finds ranges of weights only and is no `{}`",
                            row.id
                        ))
                        .hint("set the extra option `WeightCalibrateMethod` instead"),
                    );
                    return None;
                }
                Some(found)
            }
        }
    }

    fn target(&mut self, name: &str) -> Option<String> {
        let targets = self.ctx.catalogue.targets();
        if let Some(target) = targets.find(name) {
            return Some(target.id.to_string());
        }
        self.defects.push(unknown("deployment target", targets, name));
        None
    }

    fn entry<T: Entry>(
        &mut self,
        row: &Row,
        what: &str,
        kind: &'static Entries<T>,
        name: &str,
    ) -> Option<String> {
        let Some(entry) = kind.find(name) else {
            self.defects.push(unknown(what, kind, name));
            return None;
        };
        if !self.ctx.catalogue.in_release(entry, &self.release.id) {
            let with = self.ctx.catalogue.releases_with(entry);
            self.defects.push(
                Defect::new(format!(
                    "amd-quark {} has no {what} `{}`",
                    self.release.id,
                    entry.id()
                ))
                .hint(format!(
                    "it is in {}; set `quark_version`, or choose another `{}`",
                    list(with.iter().map(|id| id.as_str()), 5),
                    row.id
                )),
            );
            return None;
        }
        Some(entry.id().to_owned())
    }

    fn answers(&mut self, answers: &BTreeMap<QuestionId, String>) -> BTreeMap<QuestionId, String> {
        let mut checked = BTreeMap::new();
        for (id, answer) in answers {
            let Some((name, choices)) = QUESTIONS.iter().find(|(known, _)| *id == *known) else {
                let near = near_names(id.as_str(), QUESTIONS.iter().map(|(id, _)| *id));
                let hint = if near.is_empty() {
                    "answer the questions of the draft, by their ids".to_owned()
                } else {
                    format!("did you mean {}?", list(near, 3))
                };
                self.defects.push(Defect::new(format!("there is no question `{id}`")).hint(hint));
                continue;
            };
            let answer = answer.trim();
            let answer = match *name {
                "deployment_target" => self.target(answer),
                "npu_device" => {
                    let device = self.ctx.catalogue.devices().find(answer);
                    let device = device.filter(|device| device.kind == DeviceKind::Npu);
                    if device.is_none() {
                        self.defects.push(
                            Defect::new(format!("`{answer}` is no NPU generation that is known"))
                                .hint("answer `npu_device` with `PHX`, `HPT`, `STX` or `KRK`"),
                        );
                    }
                    device.map(|device| device.id.to_string())
                }
                "scheme" => self.scheme_answer(answer),
                "input_shapes" => match shapes::parse(self.ctx, answer) {
                    Ok(_) => Some(answer.to_owned()),
                    Err(wrong) => {
                        let hint = format!("answer like `{}`", shapes::example(self.ctx));
                        self.defects.extend(
                            wrong
                                .into_iter()
                                .map(|message| Defect::new(message).hint(hint.clone())),
                        );
                        None
                    }
                },
                _ if answer.is_empty() => {
                    self.defects.push(Defect::new(format!("the answer to `{id}` is empty")));
                    None
                }
                _ if choices.is_empty() => Some(answer.to_owned()),
                _ => {
                    let choice = choices.iter().find(|choice| choice.eq_ignore_ascii_case(answer));
                    if choice.is_none() {
                        self.defects.push(
                            Defect::new(format!("`{answer}` is no answer to `{id}`"))
                                .hint(format!("answer with one of {}", list(*choices, 5))),
                        );
                    }
                    choice.map(|choice| (*choice).to_owned())
                }
            };
            checked.extend(answer.map(|answer| (id.clone(), answer)));
        }
        checked
    }
}

fn is_custom(value: &Value) -> bool {
    value.as_str().is_some_and(|name| name.eq_ignore_ascii_case(custom_config::NAME))
}

fn unknown<T: Entry>(what: &str, kind: &'static Entries<T>, name: &str) -> Defect {
    let near = near_names(name, kind.ids());
    let hint = if near.is_empty() {
        format!("choose one of {}", list(kind.ids(), 12))
    } else {
        format!("did you mean {}?", list(near, 3))
    };
    Defect::new(format!("there is no {what} `{name}`")).hint(hint)
}

/// A list of texts; `None` when it is anything else.
fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

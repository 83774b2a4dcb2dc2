//! The rules: their registry, their determinism, and whole requests as directories under `tests/scenarios/`.

mod fixture;
mod review;
mod torch;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::LazyLock,
};

use proptest::prelude::*;
use quantplan::{
    catalogue::{Catalogue, Entry},
    intake,
    intent::{Accuracy, CalibrationData, Intent},
    plan::{Draft, quant_plan},
    rules::{self, Context, Outcome, RULES, request, rows},
    vocab::{Backend, DecisionId, QuestionId},
};
use serde_json::{Value, json};

use fixture::Case;

/// Files under the folders of rules that are no rules.
const HELPERS: [&str; 16] = [
    "common/goal.rs",
    "common/machine.rs",
    "common/versions.rs",
    "onnx/candidates.rs",
    "onnx/custom_config.rs",
    "onnx/guide.rs",
    "onnx/lookup.rs",
    "onnx/shapes.rs",
    "torch/algorithm_configs.rs",
    "torch/candidates.rs",
    "torch/choice.rs",
    "torch/fitness.rs",
    "torch/groups.rs",
    "torch/guide.rs",
    "torch/lookup.rs",
    "torch/wishes.rs",
];

#[test]
fn every_file_is_a_registered_rule_or_a_known_helper() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
    let mut files = BTreeSet::new();
    for folder in ["onnx", "torch", "common"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            files.insert(format!("{folder}/{name}"));
        }
    }
    let registered: BTreeSet<String> = RULES.iter().map(|rule| rule.file.to_owned()).collect();
    let helpers: BTreeSet<String> = HELPERS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files, registered.union(&helpers).cloned().collect());
}

#[test]
fn rules_are_registered_under_their_names_and_run_stage_by_stage() {
    let mut ids = BTreeSet::new();
    for rule in RULES {
        assert!(ids.insert(rule.id), "`{}` is registered twice", rule.id);
        let stem = rule.file.rsplit('/').next().unwrap().trim_end_matches(".rs");
        assert_eq!(rule.id.replace('-', "_"), stem);
    }
    assert!(RULES.is_sorted_by_key(|rule| rule.stage));
}

#[test]
fn every_rule_says_what_why_an_example_and_its_sources() {
    for rule in RULES {
        let text = rule.documentation();
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
        assert_eq!(headings, ["# What it does", "# Why", "# Example", "# Sources"], "{}", rule.id);
        for part in text.split("\n# ") {
            let body = part.split_once('\n').map_or("", |(_, body)| body).trim();
            assert!(!body.is_empty(), "`{}` has an empty part", rule.id);
        }
        assert!(text.split("# Sources").nth(1).unwrap().contains("\n- "), "{}", rule.id);
    }
}

#[test]
fn every_question_that_is_asked_can_be_answered() {
    let known: BTreeSet<&str> = request::QUESTIONS.iter().map(|(id, _)| *id).collect();
    for (name, case) in Case::all() {
        if let Ok(Outcome::Draft(draft)) = case.plan() {
            for question in &draft.questions {
                assert!(known.contains(question.id.as_str()), "{name}: {}", question.id);
            }
        }
    }
}

/// Everything that must hold of any draft.
fn sound(draft: &Draft) {
    let ids: Vec<&str> = draft.decisions.iter().map(|decision| decision.id.as_str()).collect();
    let custom = draft.decision("preset").is_some_and(|preset| preset.value == "custom");
    let expected: Vec<&str> = rows::of(draft.backend)
        .iter()
        .map(|row| row.id)
        .filter(|id| custom || !id.ends_with("custom_config"))
        .filter(|id| !rows::AT_NEED.contains(id) || ids.contains(id))
        .collect();
    assert_eq!(ids, expected, "every row is there, in order");
    assert!(draft.risks.is_sorted_by_key(|risk| std::cmp::Reverse(risk.severity)));
    for decision in &draft.decisions {
        assert!(!decision.reason.is_empty(), "{}", decision.id);
        assert!(!decision.reason.ends_with('.'), "{}: {}", decision.id, decision.reason);
        assert!(rules::find(decision.rule.as_str()).is_some(), "{}", decision.rule);
    }
    for question in &draft.questions {
        let times = draft.questions.iter().filter(|other| other.id == question.id).count();
        assert_eq!(times, 1, "`{}` is asked once", question.id);
    }
}

#[test]
fn whole_requests_come_out_as_their_directories_say() {
    let update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let mut wrong = Vec::new();
    for (name, case) in Case::all() {
        let (file, value) = match case.plan() {
            Ok(Outcome::Draft(draft)) => {
                sound(&draft);
                ("draft.json", serde_json::to_value(draft).unwrap())
            }
            Ok(Outcome::Handoff(handoff)) => {
                ("handoff.json", serde_json::to_value(handoff).unwrap())
            }
            Err(defects) => {
                let shown = |defect: &request::Defect| json!({"message": defect.message, "hint": defect.hint});
                ("refused.json", defects.iter().map(shown).collect())
            }
        };
        let text = format!("{}\n", serde_json::to_string_pretty(&value).unwrap());
        let path = case.folder.join(file);
        if update {
            for other in ["draft.json", "handoff.json", "refused.json"] {
                let _ = fs::remove_file(case.folder.join(other));
            }
            fs::write(&path, &text).unwrap();
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            wrong.push(format!("{name}/{file}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{wrong:#?} differ; look at what changed, then run with UPDATE_SCENARIOS=1"
    );
}

#[test]
fn no_scenario_is_forgotten_or_incomplete() {
    let known = [
        "analysis.json",
        "intent.json",
        "environment.json",
        "install.json",
        "torch_install.json",
        "session_context.json",
        "graph.json",
        "config.json",
        "tensors.json",
        "template.json",
        "algorithm.json",
        "draft.json",
        "handoff.json",
        "refused.json",
    ];
    let folders = fixture::folders();
    assert!(folders.len() > 30, "the scenarios are there");
    for folder in folders {
        let files: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        for file in &files {
            assert!(known.contains(&file.as_str()), "{} has a file {file}", folder.display());
        }
        let has = |name: &str| files.iter().any(|file| file == name);
        assert!(
            has("analysis.json") != has("config.json") && has("intent.json"),
            "{} is incomplete",
            folder.display()
        );
        let results =
            ["draft.json", "handoff.json", "refused.json"].iter().filter(|name| has(name)).count();
        assert_eq!(results, 1, "{} has one result", folder.display());
    }
}

/// The plan that a draft becomes when somebody agrees to it.
fn assembled(draft: &Draft) -> quant_plan::QuantPlan {
    let provenance = json!({
        "quantplan_version": "0", "catalogue_version": "0", "session_id": "s", "revision": 1,
        "digest": "sha256:0", "inputs": [],
        "confirmation": {"channel": "flag", "attended": false, "at": "2026-01-01T00:00:00Z", "digest": "sha256:0"}
    });
    quant_plan::assemble(draft, "model_analysis.json", serde_json::from_value(provenance).unwrap())
        .unwrap()
}

/// A plan is valid for Quark's own skills and against the schema that is published here.
fn valid(plan: &quant_plan::QuantPlan, name: &str) {
    static VALIDATORS: LazyLock<[jsonschema::Validator; 3]> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        [
            "src/schema/quark-0.13.quant_plan.schema.json",
            "schemas/quant_plan_onnx.schema.json",
            "schemas/quant_plan_torch.schema.json",
        ]
        .map(|path| {
            let text = fs::read_to_string(root.join(path)).unwrap();
            jsonschema::draft202012::new(&serde_json::from_str(&text).unwrap()).unwrap()
        })
    });
    let [shipped, onnx, torch] = &*VALIDATORS;
    let own = match plan {
        quant_plan::QuantPlan::Onnx(_) => onnx,
        quant_plan::QuantPlan::Torch(_) => torch,
    };
    let value = serde_json::to_value(plan).unwrap();
    assert_eq!(value["requires_confirmation"], false, "{name}");
    for validator in [shipped, own] {
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    let back: quant_plan::QuantPlan = serde_json::from_value(value).unwrap();
    assert_eq!(&back, plan, "{name}");
}

#[test]
fn every_confirmable_draft_becomes_a_plan() {
    let mut confirmable = 0;
    for (name, case) in Case::all() {
        let Ok(Outcome::Draft(draft)) = case.plan() else { continue };
        if draft.is_confirmable() {
            confirmable += 1;
            let plan = assembled(&draft);
            valid(&plan, &name);
        }
    }
    assert!(confirmable > 20);
}

#[test]
fn real_models_are_planned_for_every_target() {
    let Some(corpus) = std::env::var_os("QUANTPLAN_CORPUS") else {
        eprintln!("skipped: QUANTPLAN_CORPUS is not set");
        return;
    };
    let mut files: Vec<_> = fs::read_dir(Path::new(&corpus).join("onnx"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    files.sort();
    for path in files {
        let model = intake::onnx::read(&path, &Default::default()).unwrap();
        for target in ["cpu", "cuda", "rocm", "npu_cnn", "npu_transformer"] {
            let intent: Intent = serde_json::from_value(json!({
                "deployment_target": target, "hardware": ["STX"],
                "calibration_data": {"available": true, "samples": 300, "in_domain": true}
            }))
            .unwrap();
            let context = Context {
                analysis: &model.analysis,
                graph: Some(&model.graph),
                modules: None,
                files: None,
                environment: None,
                install: None,
                torch_install: None,
                session_context: None,
                intent: &intent,
                catalogue: Catalogue,
            };
            let shown = path.file_name().unwrap().to_string_lossy().into_owned();
            match rules::plan(&context).unwrap() {
                Outcome::Draft(draft) => {
                    sound(&draft);
                    if draft.is_confirmable() {
                        valid(&assembled(&draft), &shown);
                    }
                    let preset = draft.decision("preset").unwrap();
                    let open: Vec<&str> = draft
                        .questions
                        .iter()
                        .filter(|q| q.blocking)
                        .map(|q| q.id.as_str())
                        .collect();
                    eprintln!(
                        "{shown} {target}: {} {open:?} {:?}",
                        preset.value,
                        draft
                            .risks
                            .iter()
                            .filter(|risk| risk.severity > quantplan::vocab::Severity::Low)
                            .map(|risk| &risk.message)
                            .collect::<Vec<_>>()
                    );
                }
                Outcome::Handoff(handoff) => {
                    eprintln!("{shown} {target}: {} {}", handoff.skill, handoff.reason)
                }
            }
        }
    }
}

fn some<T: Clone + std::fmt::Debug + 'static>(values: Vec<T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(proptest::sample::select(values))
}

fn ids<T: Entry>(entries: &'static [T]) -> Vec<String> {
    entries.iter().map(|entry| entry.id().to_owned()).collect()
}

/// A value for a row: mostly one that it takes, sometimes nonsense.
fn value_for(row: &'static rows::Row) -> BoxedStrategy<Value> {
    use rows::{Kind, Takes};
    let catalogue = Catalogue;
    let names = |kind: Kind| match kind {
        Kind::Target => ids(catalogue.targets().all()),
        Kind::Preset => ids(catalogue.presets().all()),
        Kind::Method => ids(catalogue.methods().all()),
        Kind::Algorithm => ids(catalogue.algorithms().all()),
        Kind::Release => ids(catalogue.releases().all()),
        Kind::Scheme => ids(catalogue.schemes().all()),
        Kind::EntryPoint => ids(catalogue.entry_points().all()),
    };
    let good = match row.takes {
        Takes::Name(kind) => proptest::sample::select(names(kind)).prop_map(Value::from).boxed(),
        Takes::Names(kind) => {
            proptest::collection::vec(proptest::sample::select(names(kind)), 0..4)
                .prop_map(Value::from)
                .boxed()
        }
        Takes::Count { .. } => (0_u64..600).prop_map(Value::from).boxed(),
        Takes::Flag => any::<bool>().prop_map(Value::from).boxed(),
        Takes::OpTypes => Just(json!(["Conv"])).boxed(),
        Takes::Options => (proptest::sample::select(ids(catalogue.options().all())), any::<bool>())
            .prop_map(|(key, on)| json!({ key: on }))
            .boxed(),
        Takes::Providers => Just(json!(["CUDAExecutionProvider"])).boxed(),
        Takes::Evaluation => Just(json!("full")).boxed(),
        Takes::Choice(words) => proptest::sample::select(words).prop_map(Value::from).boxed(),
        Takes::Number => Just(json!(0.01)).boxed(),
        Takes::Path => Just(json!("a.json")).boxed(),
        Takes::Dataset => Just(json!("wikitext")).boxed(),
        Takes::Patterns => proptest::sample::select(vec![
            json!(null),
            json!([]),
            json!(["lm_head"]),
            json!(["*gate*", "lm_head"]),
            json!(["*mlp*"]),
        ])
        .boxed(),
        Takes::Overrides => (proptest::sample::select(ids(catalogue.schemes().all())))
            .prop_map(|scheme| json!({"*down_proj": scheme}))
            .boxed(),
        Takes::Algorithms => {
            let names = ids(catalogue.torch_algorithms().all());
            proptest::collection::vec(proptest::sample::select(names), 0..3)
                .prop_map(Value::from)
                .boxed()
        }
        _ => Just(Value::Null).boxed(),
    };
    prop_oneof![9 => good, 1 => prop_oneof![Just(json!(7)), Just(json!("no such")), Just(json!([[]]))]].boxed()
}

fn values(backend: Backend) -> impl Strategy<Value = BTreeMap<DecisionId, Value>> {
    let pair = proptest::sample::select(rows::of(backend).iter().collect::<Vec<_>>())
        .prop_flat_map(|row| {
            value_for(row).prop_map(move |value| (DecisionId::new(row.id), value))
        });
    proptest::collection::vec(pair, 0..5).prop_map(|pairs| pairs.into_iter().collect())
}

fn intents(backend: Backend) -> impl Strategy<Value = Intent> {
    let goals = [
        "INT8 for the Ryzen AI NPU",
        "best accuracy",
        "smallest",
        "weights-only INT4",
        "dynamic",
        "MXFP4",
        "XINT8 on npu_cnn",
        "integer io on xnnpack",
        "smallest on MI355X with vLLM",
        "GGUF with awq",
        "fp8 with a quantized KV cache and 32k context on H100",
    ];
    let answers = [
        ("architecture", "hybrid"),
        ("npu_device", "STX"),
        ("npu_offload", "keep"),
        ("calibration_data", "random"),
        ("custom_ops", "verified"),
        ("npu_batch", "keep"),
        ("input_shapes", "images=1x3x640x640"),
        ("nobody", "asked"),
        ("custom_template", "t.json"),
        ("requantize", "proceed"),
        ("trust_remote_code", "yes"),
        ("hardware", "MI300X"),
    ];
    (
        some(goals.map(str::to_owned).to_vec()),
        targets(backend),
        proptest::collection::vec(
            proptest::sample::select(vec![
                "STX", "Phoenix", "MI300X", "MI355X", "cpu", "B200", "toaster",
            ]),
            0..2,
        ),
        some(vec![Accuracy::Standard, Accuracy::Tight, Accuracy::Critical]),
        some(["1.5", "1.6", "2", "new"].map(str::to_owned).to_vec()),
        (proptest::option::of(any::<bool>()), proptest::option::of(0_u64..400)),
        values(backend),
        proptest::collection::vec(proptest::sample::select(answers.to_vec()), 0..3),
        proptest::collection::vec(
            proptest::sample::select(
                rows::of(backend).iter().map(|row| row.id).collect::<Vec<_>>(),
            ),
            0..3,
        ),
    )
        .prop_map(
            |(
                goal,
                deployment_target,
                hardware,
                accuracy,
                ryzen_ai_version,
                (available, samples),
                values,
                answers,
                insist,
            )| Intent {
                goal,
                deployment_target,
                hardware: hardware.into_iter().map(str::to_owned).collect(),
                accuracy,
                ryzen_ai_version,
                calibration_data: available.map(|available| CalibrationData {
                    available: Some(available),
                    samples,
                    ..CalibrationData::default()
                }),
                values,
                answers: answers
                    .into_iter()
                    .map(|(id, answer)| (QuestionId::new(id), answer.to_owned()))
                    .collect(),
                insist: insist.into_iter().map(DecisionId::new).collect(),
                ..Intent::default()
            },
        )
}

/// A deployment target, for the half of Quark that takes one.
fn targets(backend: Backend) -> BoxedStrategy<Option<String>> {
    match backend {
        Backend::Onnx => some(ids(Catalogue.targets().all())).boxed(),
        Backend::Torch => Just(None).boxed(),
    }
}

fn same_twice(backend: Backend, intent: &Intent, at: usize) -> Result<(), TestCaseError> {
    let cases: Vec<&Case> =
        fixture::models().iter().filter(|case| case.context().backend() == backend).collect();
    let case = cases[at % cases.len()];
    let context = Context { intent, ..case.context() };
    let once = rules::plan(&context);
    prop_assert_eq!(format!("{once:?}"), format!("{:?}", rules::plan(&context)));
    if let Ok(Outcome::Draft(draft)) = once {
        sound(&draft);
        let text = serde_json::to_string(&draft).unwrap();
        prop_assert_eq!(serde_json::from_str::<Draft>(&text).unwrap(), (*draft).clone());
        if draft.is_confirmable() && backend == Backend::Torch {
            valid(&assembled(&draft), "a random request");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_request_gives_the_same_bytes_and_no_request_panics(intent in intents(Backend::Onnx), at in 0_usize..1000) {
        same_twice(Backend::Onnx, &intent, at)?;
    }

    #[test]
    fn the_same_torch_request_gives_the_same_bytes_and_none_panics(intent in intents(Backend::Torch), at in 0_usize..1000) {
        same_twice(Backend::Torch, &intent, at)?;
    }
}

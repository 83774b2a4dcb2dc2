//! Torch plans of real configs.

use std::{collections::BTreeMap, fs, path::Path};

use quantplan::{
    catalogue::Catalogue,
    intake::{hf, safetensors::Limits},
    intent::Intent,
    rules::{self, Context, Outcome},
};
use serde_json::json;

use super::{assembled, sound, valid};

#[test]
fn every_config_of_the_corpus_gives_a_plan_a_question_or_a_handoff() {
    let Some(corpus) = std::env::var_os("QUANTPLAN_CORPUS") else {
        eprintln!("skipped: QUANTPLAN_CORPUS is not set");
        return;
    };
    let folder = Path::new(&corpus).join("hf");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(files.len() > 80, "the corpus is there");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for path in files {
        let model = hf::read(&path, &Limits::default()).unwrap();
        for goal in ["best accuracy", "smallest", "AMD MI355X"] {
            let intent: Intent = serde_json::from_value(json!({ "goal": goal })).unwrap();
            let context = Context {
                analysis: &model.analysis,
                graph: None,
                modules: model.modules.as_ref(),
                files: None,
                environment: None,
                install: None,
                torch_install: None,
                session_context: None,
                intent: &intent,
                catalogue: Catalogue,
            };
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let outcome = rules::plan(&context).unwrap();
            let (kind, text) = match &outcome {
                Outcome::Draft(draft) => {
                    sound(draft);
                    let confirmable = draft.is_confirmable();
                    if confirmable {
                        valid(&assembled(draft), &name);
                    } else {
                        assert!(
                            draft.questions.iter().any(|question| question.blocking),
                            "{name}, {goal}: {:?} and nothing is asked",
                            draft.missing()
                        );
                    }
                    let value = |row: &str| draft.decision(row).map(|d| d.value.to_string());
                    (
                        if confirmable { "plan" } else { "question" },
                        format!(
                            "{} {} {} {} {:?}",
                            value("global_scheme").unwrap_or_default(),
                            value("algorithm").unwrap_or_default(),
                            value("exclude_layers").unwrap_or_default(),
                            value("device_strategy").unwrap_or_default(),
                            draft
                                .questions
                                .iter()
                                .filter(|q| q.blocking)
                                .map(|q| q.id.as_str())
                                .collect::<Vec<_>>()
                        ),
                    )
                }
                Outcome::Handoff(handoff) => {
                    ("handoff", format!("{}: {}", handoff.skill, handoff.reason))
                }
            };
            *counts.entry(kind).or_default() += 1;
            eprintln!("{name} [{}] {goal}: {kind} {text}", model.analysis.model.model_type);
        }
    }
    eprintln!("{counts:?}");
}

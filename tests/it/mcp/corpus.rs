//! The whole flow on real models, where `QUANTPLAN_CORPUS` names a folder with them under `onnx`.

use std::{path::PathBuf, thread};

use serde_json::{Value, json};

use crate::mcp::{VERSIONS, World, client::Person, shown_for};

const MODELS: [&str; 4] =
    ["nudenet_320n.onnx", "ch_PP-OCRv4_det_infer.onnx", "magika.onnx", "silero_vad.onnx"];

#[test]
fn real_models_go_from_file_to_plan_in_every_protocol() {
    let Some(corpus) = std::env::var_os("QUANTPLAN_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: QUANTPLAN_CORPUS is not set");
        return;
    };
    type Case = (fn() -> Person, Option<&'static str>);
    let persons: [Case; 5] = [
        (Person::accepting, None),
        (Person::declining, Some("DECLINED")),
        (Person::cancelling, Some("CANCELLED")),
        (Person::too_fast, Some("NO_PERSON")),
        (Person::nobody, Some("NO_ELICITATION")),
    ];
    thread::scope(|scope| {
        for version in VERSIONS {
            for (person, refusal) in persons {
                let corpus = &corpus;
                scope.spawn(move || {
                    for model in MODELS {
                        let path = corpus.join("onnx").join(model);
                        let world = World::new();
                        let mut client = world.client(version, person());
                        let table = shown_for(&mut client, &path);
                        let emit = json!({ "session_id": table.session, "output_path": "quant_plan.json" });
                        assert_eq!(client.failure("emit_plan", emit.clone()).0, "NOT_CONFIRMED");
                        let file = world.work().join("quant_plan.json");
                        if let Some(code) = refusal {
                            let refused = client.failure("confirm_plan", table.arguments());
                            assert_eq!(refused.0, code, "{model} in {version}");
                            assert_eq!(client.failure("emit_plan", emit).0, "NOT_CONFIRMED");
                            assert!(!file.exists(), "{model} in {version} after {code}");
                            continue;
                        }
                        client.reply("confirm_plan", table.arguments());
                        client.reply("emit_plan", emit);
                        let plan: Value =
                            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
                        assert_eq!(plan["deployment_target"], "cpu", "{model} in {version}");
                    }
                });
            }
        }
    });
}

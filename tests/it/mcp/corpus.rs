//! The whole flow on real models, where `QUANTPLAN_CORPUS` names a folder of them.

use std::{path::PathBuf, thread};

use serde_json::{Value, json};

use crate::mcp::{VERSIONS, World, asking::drafts_make_plans, client::Person, shown_for};

const MODELS: [&str; 4] =
    ["nudenet_320n.onnx", "ch_PP-OCRv4_det_infer.onnx", "magika.onnx", "silero_vad.onnx"];

#[test]
fn real_models_go_from_file_to_plan_in_every_protocol() {
    let Some(corpus) = std::env::var_os("QUANTPLAN_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: QUANTPLAN_CORPUS is not set");
        return;
    };
    thread::scope(|scope| {
        for version in VERSIONS {
            for model in MODELS {
                let path = corpus.join(model);
                scope.spawn(move || {
                    let world = World::new();
                    let mut client = world.client(version, Person::accepting());
                    let table = shown_for(&mut client, &path);
                    let emit =
                        json!({ "session_id": table.session, "output_path": "quant_plan.json" });
                    assert_eq!(client.failure("emit_plan", emit.clone()).0, "NOT_CONFIRMED");
                    client.reply("confirm_plan", table.arguments());
                    if drafts_make_plans() {
                        client.reply("emit_plan", emit);
                        let file = std::fs::read(world.work().join("quant_plan.json")).unwrap();
                        let plan: Value = serde_json::from_slice(&file).unwrap();
                        assert_eq!(plan["deployment_target"], "cpu", "{model} in {version}");
                    }
                });
            }
        }
    });
}

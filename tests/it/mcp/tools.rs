//! What tools make of good and bad arguments.

use std::fs;

use serde_json::{Value, json};

use crate::mcp::{STATELESS, VERSIONS, World, client::Person, fixture, shown};

#[test]
fn every_result_matches_its_schema_and_comes_as_text_too() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, Person::accepting());
        let tools = client.request("tools/list", json!({})).unwrap();
        let table = shown(&mut client);
        let session = json!({ "session_id": table.session });
        let calls: Vec<(&str, Value)> = vec![
            ("probe_environment", json!({})),
            (
                "analyze_model",
                json!({ "path": "model.onnx", "output_path": "model_analysis.json" }),
            ),
            (
                "propose_plan",
                json!({ "analysis_path": "model_analysis.json", "intent": super::intent() }),
            ),
            ("propose_plan", json!({})),
            ("propose_plan", json!({ "model_path": fixture("good/qdq.onnx") })),
            ("confirm_plan", table.arguments()),
            ("render_decision_table", session.clone()),
            ("render_decision_table", json!({ "session_id": table.session, "format": "html" })),
            ("emit_plan", json!({ "session_id": table.session, "output_path": "quant_plan.json" })),
            ("check_plan", json!({ "path": "quant_plan.json" })),
            (
                "check_plan",
                json!({ "path": "quant_plan.json", "model_path": fixture("good/qdq.onnx") }),
            ),
            ("revise_plan", session),
            ("explain", json!({ "id": "XINT8", "compare_with": "A8W8" })),
            ("route_recovery", json!({ "missing": "model_analysis.json" })),
        ];
        for (tool, arguments) in calls {
            let result = client.call(tool, arguments);
            assert_ne!(result["isError"], true, "{tool}: {result:#}");
            let definition = tools["tools"]
                .as_array()
                .unwrap()
                .iter()
                .find(|known| known["name"] == tool)
                .unwrap();
            let schema = jsonschema::draft202012::new(&definition["outputSchema"]).unwrap();
            let structured = &result["structuredContent"];
            let defects: Vec<String> =
                schema.iter_errors(structured).map(|error| error.to_string()).collect();
            assert_eq!(defects, Vec::<String>::new(), "{tool}: {structured:#}");
            let text: Value =
                serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!(text, *structured);
        }
    }
}

#[test]
fn bad_arguments_are_named_with_what_was_meant() {
    let mut client = World::new().client(STATELESS, Person::nobody());
    let mut check = |tool: &str, arguments: Value, expected: &[&str]| {
        let (code, text) = client.failure(tool, arguments);
        assert_eq!(code, "BAD_ARGUMENTS");
        for part in expected {
            assert!(text.contains(part), "`{part}` is not in `{text}`");
        }
    };
    check("analyze_model", json!({}), &["missing field `path`"]);
    check("analyze_model", json!({ "path": 1 }), &["`path`", "expected path string"]);
    check("propose_plan", json!({ "model": "x.onnx" }), &["`model`", "did you mean `model_path`?"]);
    check(
        "propose_plan",
        json!({ "model_path": "x", "intent": { "calibration_data": { "sample": 3 } } }),
        &["`intent.calibration_data.sample`", "did you mean `samples`?"],
    );
    check(
        "propose_plan",
        json!({ "model_path": "x", "intent": { "calibration_data": { "samples": "many" } } }),
        &["`intent.calibration_data.samples`", "a whole number"],
    );
    check("propose_plan", json!({ "backend": "onxx" }), &["`backend`", "did you mean `onnx`?"]);
    check("propose_plan", json!({ "model_path": "x", "analysis_path": "y" }), &["more than once"]);
    check("render_decision_table", json!({ "session_id": "x", "format": "pdf" }), &["`format`"]);
    check("emit_plan", json!({ "session_id": "x" }), &["missing field `output_path`"]);
    check("route_recovery", json!({}), &["nothing to go by"]);
}

#[test]
fn what_is_no_model_is_an_error_and_the_server_lives_on() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::nobody());
    fs::create_dir(world.work().join("empty")).unwrap();
    let mut paths: Vec<_> =
        fs::read_dir(fixture("bad")).unwrap().map(|f| f.unwrap().path()).collect();
    paths.sort();
    paths.push(world.work().join("empty"));
    paths.push(world.work().join("missing.onnx"));
    assert!(paths.len() > 10);
    for path in paths {
        for (tool, argument) in [("analyze_model", "path"), ("propose_plan", "model_path")] {
            let (code, text) = client.failure(tool, json!({ argument: path }));
            assert_ne!(code, "INTERNAL", "{}: {text}", path.display());
        }
    }
    let (code, text) = client.failure("analyze_model", json!({ "path": "missing.onnx" }));
    assert_eq!(code, "MODEL_NOT_FOUND", "{text}");
    assert!(text.contains("missing.onnx"), "{text}");
    shown(&mut client);
}

#[test]
fn an_analysis_with_missing_or_wrong_fields_is_an_error_that_names_them() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::nobody());
    fs::write(world.work().join("a.json"), "{").unwrap();
    let mut check = |arguments: Value, code: &str, part: &str| {
        let (found, text) = client.failure("propose_plan", arguments);
        assert_eq!(found, code, "{text}");
        assert!(text.contains(part), "`{part}` is not in `{text}`");
    };
    check(json!({ "analysis": {} }), "ARTEFACT_INVALID", "missing field");
    check(json!({ "analysis": { "model": 3 } }), "ARTEFACT_INVALID", "`model`");
    check(json!({ "analysis_path": "a.json" }), "ARTEFACT_INVALID", "a.json");
    check(json!({ "analysis_path": "none.json" }), "ARTEFACT_NOT_FOUND", "none.json");
}

#[cfg(unix)]
#[test]
fn a_plan_is_written_inside_the_workspace_only_and_over_nothing_unasked() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    client.reply("confirm_plan", table.arguments());
    let outside = world.root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let work = world.work();
    std::os::unix::fs::symlink(&outside, work.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.join("plan.json"), work.join("link.json")).unwrap();
    let older = json!({ "requires_confirmation": false }).to_string();
    fs::write(work.join("taken.json"), &older).unwrap();
    fs::write(work.join("mine.json"), "mine").unwrap();
    let mut emit = |path: &str, overwrite: bool| {
        let arguments =
            json!({ "session_id": table.session, "output_path": path, "overwrite": overwrite });
        let result = client.call("emit_plan", arguments);
        match result["isError"] == true {
            true => crate::mcp::client::failure_of(&result).0,
            false => "written".to_owned(),
        }
    };
    for overwrite in [false, true] {
        assert_eq!(emit("../outside/plan.json", overwrite), "OUTSIDE_WORKSPACE");
        assert_eq!(
            emit(&outside.join("plan.json").display().to_string(), overwrite),
            "OUTSIDE_WORKSPACE"
        );
        assert_eq!(emit("link/plan.json", overwrite), "OUTSIDE_WORKSPACE");
        assert_eq!(emit("link.json", overwrite), "SYMLINK");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(emit("taken.json", false), "OUTPUT_EXISTS");
    assert_eq!(fs::read_to_string(work.join("taken.json")).unwrap(), older);
    assert_eq!(emit("mine.json", true), "OUTPUT_OTHER_KIND");
    assert_eq!(fs::read_to_string(work.join("mine.json")).unwrap(), "mine");
    assert_eq!(emit("taken.json", true), "written");
    assert_eq!(emit("taken.json", false), "written");
}

#[test]
fn text_from_a_model_cannot_act_on_a_screen() {
    let mut client = World::new().client(STATELESS, Person::nobody());
    let (_, text) =
        client.failure("analyze_model", json!({ "path": "a\u{1b}[31m\u{202e}\nhint: x.onnx" }));
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert_eq!(text.lines().count(), 2, "{text:?}");
}

//! Plans that are there already: of this planner, edited, moved, of others.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use quantplan::planner::check::agreement::Status;
use quantplan::planner::check::{Arguments, Check, Finding, Grade, Reply};
use quantplan::planner::{Options, Planner};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a model, a state directory and plans.
struct World {
    folder: TempDir,
}

impl World {
    /// With a small CNN, and a plan for it that was confirmed by `--yes`.
    fn with_plan() -> Self {
        let world = Self { folder: TempDir::new().unwrap() };
        let model =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx/good/small_cnn.onnx");
        fs::copy(model, world.path("model.onnx")).unwrap();
        let output =
            world.run(&["plan", "model.onnx", "--target", "cpu", "--yes", "--output", "plan.json"]);
        assert!(output.status.success(), "{output:?}");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_quantplan"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env("QUANTPLAN_STATE_DIR", self.path("state"))
            .env("COLUMNS", "100")
            .output()
            .unwrap()
    }

    /// A plan over whatever is at `output`.
    fn plan_over(&self, output: &str) -> Output {
        let fixed = ["plan", "model.onnx", "--target", "cpu", "--yes", "--overwrite", "--output"];
        self.run(&[&fixed[..], &[output]].concat())
    }

    fn planner(&self, state: &str) -> Planner {
        Planner::new(Options {
            workspaces: Vec::new(),
            state_dir: self.path(state),
            current_dir: self.folder.path().to_path_buf(),
            session_days: 30,
            now: || 1_900_000_000_000,
        })
    }

    fn plan(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path("plan.json")).unwrap()).unwrap()
    }

    /// Writes another plan beside the first.
    fn save(&self, name: &str, plan: &Value) {
        fs::write(self.path(name), plan.to_string()).unwrap();
    }

    fn check(&self, name: &str) -> Reply {
        self.check_with("state", Arguments { path: name.into(), ..Arguments::default() })
    }

    fn check_with(&self, state: &str, arguments: Arguments) -> Reply {
        // The log was written by a process with a real clock.
        Planner::new(Options { now: real_now, ..self.planner(state).options().clone() })
            .check(&arguments)
            .unwrap()
    }
}

fn real_now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn of_grade(reply: &Reply, grade: Grade) -> Vec<&Finding> {
    reply.findings.iter().filter(|finding| finding.grade == grade).collect()
}

#[test]
fn a_plan_as_it_was_written_is_clean_and_says_who_confirmed_it() {
    let world = World::with_plan();
    let reply = world.check("plan.json");
    assert!(reply.clean && reply.written_by_quantplan, "{:?}", reply.findings);
    assert_eq!(reply.agreement.status, Status::Confirmed);
    let given = reply.agreement.confirmation.as_ref().unwrap();
    assert_eq!(given.channel.as_str(), "flag");
    assert!(of_grade(&reply, Grade::Warning).is_empty(), "{:?}", reply.findings);
    assert!(
        reply.held_against.iter().any(|what| what.contains("nodes")),
        "{:?}",
        reply.held_against
    );
    assert!(reply.report_markdown.contains("no defect"));
}

#[test]
fn a_plan_that_was_only_reformatted_or_moved_with_its_analysis_is_still_the_confirmed_one() {
    let world = World::with_plan();
    world.save("one_line.json", &world.plan());
    assert_eq!(world.check("one_line.json").agreement.status, Status::Confirmed);
    fs::create_dir(world.path("moved")).unwrap();
    for name in ["plan.json", "plan.model_analysis.json"] {
        fs::copy(world.path(name), world.path("moved").join(name)).unwrap();
    }
    let reply = world.check("moved/plan.json");
    assert!(reply.clean, "{:?}", reply.findings);
    assert_eq!(reply.agreement.status, Status::Confirmed);
}

#[test]
fn what_the_plan_refers_to_is_part_of_the_yes() {
    let world = World::with_plan();
    let mut plan = world.plan();
    plan["model"]["analysis_ref"] = json!("./nowhere.json");
    world.save("dangling.json", &plan);
    let reply = world.check("dangling.json");
    let defects = of_grade(&reply, Grade::Defect);
    assert_eq!(defects[0].field.as_deref(), Some("model.analysis_ref"), "{defects:?}");

    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx/good/qdq.onnx");
    fs::copy(other, world.path("other.onnx")).unwrap();
    plan["model"]["analysis_ref"] = json!("other.onnx");
    world.save("other.json", &plan);
    assert_eq!(world.check("other.json").agreement.status, Status::Edited);

    let analysis = world.path("plan.model_analysis.json");
    let text = fs::read_to_string(&analysis).unwrap();
    fs::write(&analysis, text.replace("\"cnn\"", "\"transformer\"")).unwrap();
    let reply = world.check("plan.json");
    assert_eq!(reply.agreement.status, Status::Edited);
    assert_eq!(reply.agreement.edits[0].field, "model.analysis_ref");
}

#[test]
fn every_edit_after_the_yes_is_named() {
    let world = World::with_plan();
    let mut plan = world.plan();
    plan["calibration"]["data_size"] = json!(7);
    plan["provenance"]["confirmation"]["channel"] = json!("terminal");
    plan["risks"] = json!([]);
    world.save("edited.json", &plan);
    let reply = world.check("edited.json");
    assert!(!reply.clean);
    assert_eq!(reply.agreement.status, Status::Edited);
    let fields: Vec<&str> = reply.agreement.edits.iter().map(|edit| edit.field.as_str()).collect();
    assert!(fields.contains(&"calibration.data_size"), "{fields:?}");
    assert!(fields.contains(&"provenance.confirmation.channel"), "{fields:?}");
    assert!(fields.contains(&"risks"), "{fields:?}");
}

#[test]
fn a_plan_cannot_borrow_the_yes_of_another_session_or_table() {
    let world = World::with_plan();
    let mut plan = world.plan();
    plan["provenance"]["digest"] = json!(format!("sha256:{}", "0".repeat(64)));
    world.save("digest.json", &plan);
    assert_eq!(world.check("digest.json").agreement.status, Status::Edited);
    plan["provenance"]["session_id"] = json!("qp-nobody");
    world.save("nobody.json", &plan);
    let reply = world.check("nobody.json");
    assert_eq!(reply.agreement.status, Status::UnknownSession);
    assert!(of_grade(&reply, Grade::Warning).iter().any(|f| f.check == Check::Confirmation));
}

#[test]
fn a_plan_of_another_machine_is_checked_and_nothing_is_claimed_about_its_yes() {
    let world = World::with_plan();
    let arguments = Arguments { path: "plan.json".into(), ..Arguments::default() };
    let reply = world.check_with("another_state", arguments);
    assert!(reply.clean, "{:?}", reply.findings);
    assert_eq!(reply.agreement.status, Status::UnknownSession);
    assert!(reply.agreement.confirmation.is_none());
}

#[test]
fn all_defects_come_at_once() {
    let world = World::with_plan();
    let mut plan = world.plan();
    plan["preset"] = json!("INT8_CNN_DEFUALT");
    plan["onnx_specific"]["nodes_to_exclude"] = json!(["no_such_node"]);
    plan["calibration"]["batch_size"] = json!("two");
    plan["onnx_specific"]["include_fast_ft"] = json!(true);
    plan.as_object_mut().unwrap().remove("requires_confirmation");
    plan["global_schema"] = json!("x");
    world.save("broken.json", &plan);
    let reply = world.check("broken.json");
    let defects: Vec<String> = of_grade(&reply, Grade::Defect)
        .iter()
        .map(|f| {
            format!(
                "{} {} {}",
                f.field.as_deref().unwrap_or(""),
                f.message,
                f.hint.as_deref().unwrap_or("")
            )
        })
        .collect();
    let said = |part: &str| defects.iter().any(|defect| defect.contains(part));
    for part in [
        "INT8_CNN_DEFUALT",
        "no_such_node",
        "calibration.batch_size",
        "include_fast_ft",
        "requires_confirmation",
        "global_schema",
    ] {
        assert!(said(part), "{part}: {defects:#?}");
    }
}

#[test]
fn a_model_that_changed_since_takes_the_yes_away_and_another_kind_of_model_is_named() {
    let world = World::with_plan();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx/good");
    let mut names: Vec<PathBuf> =
        fs::read_dir(&fixtures).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    let other = names.iter().find(|path| {
        path.extension().is_some_and(|e| e == "onnx") && !path.ends_with("small_cnn.onnx")
    });
    fs::copy(other.unwrap(), world.path("model.onnx")).unwrap();
    let reply = world.check("plan.json");
    assert!(
        of_grade(&reply, Grade::Defect).iter().any(|f| f.check == Check::Inputs),
        "{:?}",
        reply.findings
    );

    fs::create_dir(world.path("hf")).unwrap();
    fs::write(
        world.path("hf/config.json"),
        json!({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64}).to_string(),
    )
    .unwrap();
    let arguments = Arguments {
        path: "plan.json".into(),
        model_path: Some("hf".into()),
        ..Arguments::default()
    };
    let reply = world.check_with("state", arguments);
    assert!(
        of_grade(&reply, Grade::Defect).iter().any(|f| f.message.contains("`llama`")),
        "{:?}",
        reply.findings
    );
}

/// A plan as the ONNX skill of the seeds writes it.
fn plan_of_the_onnx_skill() -> Value {
    json!({
        "model": {"model_type": "onnx", "architecture_guess": "cnn", "analysis_ref": "./model_analysis.json"},
        "backend": "onnx", "deployment_target": "npu_cnn", "preset": "XINT8",
        "calibration": {"method": "PowerOfTwo_MinMSE", "data_size": 200, "batch_size": 1,
            "use_external_data_format": false, "optimize_mem": false, "worker_num": 1},
        "algorithms": ["CLE"],
        "onnx_specific": {"enable_npu_cnn": true, "enable_npu_transformer": false, "include_cle": true,
            "include_fast_ft": false, "op_types_to_quantize": null, "nodes_to_quantize": null,
            "nodes_to_exclude": null, "subgraphs_to_exclude": [],
            "extra_options": {"OpTypesToExcludeOutputQuantization": []},
            "use_external_data_format": false, "execution_providers": ["CPUExecutionProvider"]},
        "evaluation_intent": "smoke", "requires_confirmation": false
    })
}

/// A plan as the Torch skill of the seeds writes it.
fn plan_of_the_torch_skill() -> Value {
    json!({
        "model": {"model_type": "qwen3", "analysis_ref": "./model_analysis.json"},
        "global_scheme": "fp8", "kv_cache_scheme": "fp8", "exclude_layers": ["lm_head"],
        "layer_quant_config": {}, "algorithm": null,
        "calibration": {"dataset": "pileval", "num_calib_data": 128, "seq_len": 512},
        "evaluation_intent": "smoke", "requires_confirmation": false
    })
}

#[test]
fn plans_of_the_skills_are_clean_and_what_was_not_checked_is_said() {
    let world = World::with_plan();
    world.save("onnx.json", &plan_of_the_onnx_skill());
    world.save("torch.json", &plan_of_the_torch_skill());
    for name in ["onnx.json", "torch.json"] {
        let reply = world.check(name);
        assert!(reply.clean && !reply.written_by_quantplan, "{name}: {:?}", reply.findings);
        assert_eq!(reply.agreement.status, Status::Unrecorded);
        let warnings = of_grade(&reply, Grade::Warning);
        assert!(warnings.iter().any(|f| f.message.contains("not at hand")), "{name}: {warnings:?}");
    }
    // The schema that ships with Quark wants fields that no ONNX plan of the skills has.
    let warned = world.check("onnx.json");
    assert!(of_grade(&warned, Grade::Warning).iter().any(|f| f.message.contains("global_scheme")));
}

#[test]
fn a_torch_plan_of_others_is_held_against_family_and_release() {
    let world = World::with_plan();
    let mut plan = plan_of_the_torch_skill();
    plan["algorithm"] = json!("awq");
    plan["global_scheme"] = json!("fp7");
    plan["calibration"]["num_calib_datas"] = json!(3);
    world.save("torch.json", &plan);
    let reply = world.check("torch.json");
    let text = reply.report_markdown.clone();
    assert!(!reply.clean, "{text}");
    for part in ["fp7", "num_calib_datas", "awq"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_is_no_plan_is_an_error_that_names_the_file() {
    let world = World::with_plan();
    world.save("list.json", &json!({"hello": 1}));
    for (name, code) in [("list.json", "ARTEFACT_INVALID"), ("missing.json", "ARTEFACT_NOT_FOUND")]
    {
        let error =
            world.planner("state").check(&Arguments { path: name.into(), ..Arguments::default() });
        let error = error.unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.whole().contains(name), "{}", error.whole());
    }
}

#[test]
fn the_exit_code_tells_clean_from_defective_from_unreadable() {
    let world = World::with_plan();
    let mut plan = world.plan();
    plan["preset"] = json!("nothing");
    world.save("bad.json", &plan);
    let code = |arguments: &[&str]| world.run(arguments).status.code();
    assert_eq!(code(&["check", "plan.json"]), Some(0));
    assert_eq!(code(&["check", "bad.json"]), Some(1));
    assert_eq!(code(&["check", "nowhere.json"]), Some(2));
    assert_eq!(code(&["diff", "plan.json", "plan.json"]), Some(0));
    assert_eq!(code(&["diff", "plan.json", "bad.json"]), Some(1));
    assert_eq!(code(&["diff", "plan.json", "nowhere.json"]), Some(2));
    let json = world.run(&["check", "bad.json", "--json"]);
    let reply: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(reply["clean"], false);
}

#[test]
fn a_diff_shows_both_values_with_their_reasons() {
    let world = World::with_plan();
    let output = world.run(&[
        "plan",
        "model.onnx",
        "--target",
        "cpu",
        "--set",
        "calibration.data_size=64",
        "--yes",
        "--output",
        "other.json",
    ]);
    assert!(output.status.success(), "{output:?}");
    let planner =
        Planner::new(Options { now: real_now, ..world.planner("state").options().clone() });
    let reply = planner.diff(Path::new("plan.json"), Path::new("other.json")).unwrap();
    let fields: Vec<&str> = reply.decisions.iter().map(|d| d.field.as_str()).collect();
    assert_eq!(fields, ["calibration.data_size"]);
    assert_eq!(reply.decisions[0].right.value, Some(json!(64)));
    assert!(reply.decisions[0].right.reason.as_ref().unwrap().contains("you asked for it"));
    assert!(reply.decisions[0].left.reason.is_some());

    // A value that was written over the decided one has no reason of the rules any more.
    let mut plan = world.plan();
    plan["calibration"]["data_size"] = json!(9);
    world.save("edited.json", &plan);
    let reply = planner.diff(Path::new("plan.json"), Path::new("edited.json")).unwrap();
    assert!(reply.decisions[0].right.reason.as_ref().unwrap().contains("edited"));

    world.save("torch.json", &plan_of_the_torch_skill());
    assert!(planner.diff(Path::new("plan.json"), Path::new("torch.json")).is_err());
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_stops_nothing() {
    let world = World::with_plan();
    let mut child = Command::new(env!("CARGO_BIN_EXE_quantplan"))
        .args(["plan", "model.onnx", "--target", "cpu", "--yes", "--output", "late.json"])
        .current_dir(world.folder.path())
        .env("QUANTPLAN_STATE_DIR", world.path("state"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(world.path("late.json").exists());
}

#[test]
fn what_is_no_earlier_plan_is_never_replaced() {
    let world = World::with_plan();
    let before = fs::read(world.path("model.onnx")).unwrap();
    for output in ["model.onnx", "plan.model_analysis.json"] {
        let done = world.plan_over(output);
        assert_eq!(done.status.code(), Some(1), "{output}: {done:?}");
    }
    assert_eq!(fs::read(world.path("model.onnx")).unwrap(), before);
    let again = world.run(&["analyze", "model.onnx", "--overwrite", "--output", "model.onnx"]);
    assert_eq!(again.status.code(), Some(1));
    let done = world.plan_over("plan.json");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_diff_tells_an_empty_exclude_list_from_none_and_looks_at_every_field() {
    let world = World::with_plan();
    let planner = world.planner("state");
    let mut plan = plan_of_the_torch_skill();
    world.save("a.json", &plan);
    plan["exclude_layers"] = json!([]);
    world.save("b.json", &plan);
    plan["exclude_layers"] = Value::Null;
    plan["arguments"] = json!(["--quant_scheme", "int8"]);
    world.save("c.json", &plan);
    let reply = planner.diff(Path::new("b.json"), Path::new("c.json")).unwrap();
    assert!(!reply.same);
    assert_eq!(reply.decisions[0].field, "exclude_layers");
    assert_eq!(reply.fields[0].field, "arguments");
}

//! The planner as a link in a chain of skills: what others write is read as it is, and what they need comes back.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
};

use quantplan::{
    intent::{CalibrationData, Intent},
    plan::Decision,
    planner::{
        Options, Planner,
        confirm::{self, Inquiry},
        error::Error,
        propose::{self, RevisionArguments},
        route, show, write,
    },
    session::event::{Answer, Reply},
    vocab::{Channel, SessionId},
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_800_000_000_000) };
}

/// A folder with artefacts in the shapes that Quark's skills write, and a model.
struct World {
    planner: Planner,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        fs::copy(fixtures.join("onnx/good/small_cnn.onnx"), folder.path().join("model.onnx"))
            .unwrap();
        for entry in fs::read_dir(fixtures.join("artefacts")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
        let planner = Self::another(folder.path());
        Self { planner, folder }
    }

    fn another(folder: &Path) -> Planner {
        Planner::new(Options {
            workspaces: vec![folder.to_path_buf()],
            state_dir: folder.join("state"),
            current_dir: folder.to_path_buf(),
            session_days: 30,
            now: || NOW.get(),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }

    fn write(&self, name: &str, value: &Value) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    fn confirm(&self, id: &SessionId) {
        let arguments = show::Arguments { session_id: id.clone(), format: show::Format::Markdown };
        let digest = self.planner.show(&arguments).unwrap().digest;
        let arguments = confirm::Arguments { session_id: id.clone(), digest: digest.clone() };
        let Inquiry::Ask(asked) = self.planner.ask(&arguments, Channel::Elicited).unwrap() else {
            panic!("confirmed already")
        };
        NOW.set(NOW.get() + 2_000);
        let answer = Answer {
            nonce: Some(asked.nonce),
            channel: Channel::Elicited,
            digest,
            reply: Reply::Yes,
            client: None,
        };
        self.planner.answer(id, answer).unwrap();
    }

    fn emit(&self, id: &SessionId, name: &str) -> Result<write::Reply, Error> {
        self.planner.write(&write::Arguments {
            session_id: id.clone(),
            output_path: name.into(),
            overwrite: false,
        })
    }
}

fn for_cpu() -> Intent {
    Intent {
        deployment_target: Some("cpu".into()),
        calibration_data: Some(CalibrationData {
            available: Some(true),
            samples: Some(256),
            ..CalibrationData::default()
        }),
        ..Intent::default()
    }
}

fn row<'a>(reply: &'a propose::Reply, id: &str) -> &'a Decision {
    let draft = reply.draft.as_ref().unwrap_or_else(|| panic!("{:?}", reply.handoff));
    draft.decision(id).unwrap_or_else(|| panic!("no row `{id}`"))
}

#[test]
fn an_analysis_and_a_machine_as_the_onnx_skills_write_them_are_used() {
    let world = World::new();
    let reply = world
        .planner
        .propose(&propose::Arguments {
            analysis_path: Some("model_analysis_onnx.json".into()),
            environment_path: Some("env_context_cuda.json".into()),
            onnx_install_result_path: Some("onnx_install_result.json".into()),
            quark_install_result_path: Some("quark_install_result.json".into()),
            intent: Intent { deployment_target: Some("cuda".into()), ..for_cpu() },
            ..propose::Arguments::default()
        })
        .unwrap();
    assert_eq!(row(&reply, "deployment_target").value, "cuda");
    assert_eq!(row(&reply, "quark_version").value, "0.12.post1");
    let providers = &row(&reply, "onnx_specific.execution_providers").value;
    assert_eq!(providers[0], "CUDAExecutionProvider");
    let draft = reply.draft.as_ref().unwrap();
    assert!(draft.risks.iter().any(|risk| risk.message.contains("share one branch")));
}

#[test]
fn an_analysis_as_the_torch_skill_writes_it_is_used() {
    let world = World::new();
    for machine in ["env_context_rocm.json", "env_context_cuda.json"] {
        let reply = world
            .planner
            .propose(&propose::Arguments {
                analysis_path: Some("model_analysis_torch.json".into()),
                environment_path: Some(machine.into()),
                quark_install_result_path: Some("quark_install_result_new.json".into()),
                session_context_path: Some("session_context_torch.json".into()),
                ..propose::Arguments::default()
            })
            .unwrap();
        assert_eq!(row(&reply, "quark_version").value, "0.13", "{machine}");
        let scheme = row(&reply, "global_scheme");
        assert!(scheme.value.as_str().unwrap().contains("fp8"), "{machine}: {scheme:?}");
    }
}

#[test]
fn every_artefact_of_another_skill_is_read_whatever_else_is_in_it() {
    let world = World::new();
    type Set = fn(&mut propose::Arguments, PathBuf, Map<String, Value>, bool);
    let check = |name: &str, set: Set| {
        let with = |inline: bool, more: bool| {
            let Value::Object(mut object) = world.read(name) else { panic!("{name}") };
            if more {
                object.insert("a_field_of_tomorrow".into(), json!({ "x": [1, null] }));
                object.insert("notes".into(), json!("free text"));
                world.write("with_more.json", &Value::Object(object.clone()));
            }
            let file = if more { "with_more.json" } else { name };
            let mut arguments = propose::Arguments {
                model_path: (!name.starts_with("model_analysis")).then(|| "model.onnx".into()),
                intent: if name.contains("torch") { Intent::default() } else { for_cpu() },
                ..propose::Arguments::default()
            };
            set(&mut arguments, file.into(), object, inline);
            let reply = world.planner.propose(&arguments);
            let reply = reply.unwrap_or_else(|e| panic!("{name}: {}", e.whole()));
            assert!(reply.draft.is_some() || reply.handoff.is_some(), "{name}");
        };
        for inline in [false, true] {
            for more in [false, true] {
                with(inline, more);
            }
        }
    };
    macro_rules! by {
        ($path:ident, $inline:ident) => {
            |arguments, path, object, inline| {
                if inline {
                    arguments.$inline = Some(object);
                } else {
                    arguments.$path = Some(path);
                }
            }
        };
    }
    check("model_analysis_onnx.json", by!(analysis_path, analysis));
    check("model_analysis_torch.json", by!(analysis_path, analysis));
    check("env_context_cuda.json", by!(environment_path, environment));
    check("env_context_rocm.json", by!(environment_path, environment));
    check("onnx_install_result.json", by!(onnx_install_result_path, onnx_install_result));
    check("quark_install_result.json", by!(quark_install_result_path, quark_install_result));
    check("quark_install_result_new.json", by!(quark_install_result_path, quark_install_result));
    check("session_context_onnx.json", by!(session_context_path, session_context));
}

#[test]
fn a_routers_context_brings_goal_constraints_and_artefacts_relative_to_itself() {
    let world = World::new();
    world.write("runs/7/analysis/model_analysis.json", &world.read("model_analysis_onnx.json"));
    world.write("runs/7/env_context.json", &world.read("env_context_cuda.json"));
    world.write("runs/7/ort.json", &world.read("onnx_install_result.json"));
    world.write("runs/7/quark.json", &world.read("quark_install_result.json"));
    let mut context = world.read("session_context_onnx.json");
    context["constraints"]["deployment_target"] = json!("cuda");
    context["model_analysis_ref"] = json!("analysis/model_analysis.json");
    context["env_context_ref"] = json!("./env_context.json");
    context["onnx_install_result_ref"] = json!("ort.json");
    context["quark_install_result_ref"] = json!("quark.json");
    world.write("runs/7/session_context.json", &context);
    let reply = world
        .planner
        .propose(&propose::Arguments {
            session_context_path: Some("runs/7/session_context.json".into()),
            ..propose::Arguments::default()
        })
        .unwrap();
    let target = row(&reply, "deployment_target");
    assert_eq!(target.value, "cuda");
    assert!(target.reason.contains("session context"), "{}", target.reason);
    // The goal of the context names the preset.
    assert_eq!(row(&reply, "preset").value, "A8W8");
    assert_eq!(row(&reply, "quark_version").value, "0.12.post1");
    let roles: Vec<String> = world
        .planner
        .session(reply.session_id.as_ref().unwrap())
        .unwrap()
        .inputs()
        .iter()
        .map(|input| input.role.clone())
        .collect();
    for role in [
        "model_analysis",
        "environment",
        "onnx_install_result",
        "quark_install_result",
        "session_context",
    ] {
        assert!(roles.iter().any(|found| found == role), "{role}: {roles:?}");
    }
}

#[test]
fn a_settled_half_of_quark_is_not_left() {
    let world = World::new();
    let with = |model: Option<&str>, analysis: Option<&str>, context: &str| {
        let reply = world.planner.propose(&propose::Arguments {
            model_path: model.map(Into::into),
            analysis_path: analysis.map(Into::into),
            session_context_path: Some(context.into()),
            ..propose::Arguments::default()
        });
        reply.unwrap().handoff.unwrap().skill.to_string()
    };
    let mut torch = world.read("session_context_torch.json");
    torch["constraints"]["backend"] = json!("torch");
    world.write("torch.json", &torch);
    assert_eq!(with(Some("model.onnx"), None, "torch.json"), "quark-torch-model-intake");
    let onnx = "session_context_onnx.json";
    assert_eq!(with(None, Some("model_analysis_torch.json"), onnx), "quark-onnx-model-intake");
    assert_eq!(with(None, None, "torch.json"), "quark-torch-model-intake");
    assert_eq!(with(None, None, onnx), "quark-onnx-model-intake");
}

/// A JSON merge patch (RFC 7396).
fn merged(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merged(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[test]
fn the_patch_tells_the_router_what_is_settled_and_keeps_what_is_its_own() {
    let world = World::new();
    let mut context = world.read("session_context_onnx.json");
    context["constraints"]["offline"] = json!(true);
    context["open_questions"] =
        json!(["Deployment target is not confirmed", "Who signs the accuracy off?"]);
    context["my_own"] = json!({ "kept": true });
    world.write("session_context.json", &context);
    let reply = world
        .planner
        .propose(&propose::Arguments {
            model_path: Some("model.onnx".into()),
            session_context_path: Some("session_context.json".into()),
            intent: for_cpu(),
            ..propose::Arguments::default()
        })
        .unwrap();
    let id = reply.session_id.unwrap();
    // What the router adds about other work takes no yes away.
    world.confirm(&id);
    context["workspace_context_ref"] = json!("workspace_context.json");
    world.write("session_context.json", &context);
    let emitted = world.emit(&id, "quant_plan.json").unwrap();
    let mut after = context.clone();
    merged(&mut after, &json!(emitted.session_context_patch));
    assert_eq!(after["quant_plan_ref"], emitted.path);
    assert_eq!(after["model_analysis_ref"], emitted.analysis_written_to.unwrap());
    assert_eq!(after["constraints"]["deployment_target"], "cpu");
    assert_eq!(after["constraints"]["backend"], "onnx");
    assert_eq!(after["constraints"]["offline"], true);
    assert_eq!(after["constraints"]["execution_mode"], "interactive_execute");
    assert_eq!(after["my_own"], json!({ "kept": true }));
    let open = after["open_questions"].as_array().unwrap();
    assert_eq!(open[0], "Who signs the accuracy off?");
    assert!(open.iter().all(|q| !q.as_str().unwrap().contains("Deployment target")), "{open:?}");
    for question in reply.draft.unwrap().questions {
        assert!(open.contains(&json!(question.text)), "{open:?}");
    }
    // The router merges it, and the plan still stands.
    world.write("session_context.json", &after);
    world.emit(&id, "quant_plan.json").unwrap();
}

#[test]
fn another_goal_or_constraint_of_the_router_makes_the_yes_stale_and_a_revision_reads_it() {
    let world = World::new();
    let mut context = world.read("session_context_onnx.json");
    context["constraints"]["deployment_target"] = json!("cpu");
    world.write("session_context.json", &context);
    let intent = Intent { deployment_target: None, ..for_cpu() };
    let reply = world
        .planner
        .propose(&propose::Arguments {
            model_path: Some("model.onnx".into()),
            session_context_path: Some("session_context.json".into()),
            intent,
            ..propose::Arguments::default()
        })
        .unwrap();
    assert_eq!(row(&reply, "deployment_target").value, "cpu");
    let id = reply.session_id.clone().unwrap();
    world.confirm(&id);
    context["user_goal"] = json!("Quantize model.onnx with XINT8");
    context["constraints"]["deployment_target"] = json!("npu_cnn");
    world.write("session_context.json", &context);
    assert_eq!(world.emit(&id, "p.json").unwrap_err().code(), "STALE_INPUTS");
    let reply = world.planner.revise(&RevisionArguments::of(id.clone())).unwrap();
    assert_eq!(row(&reply, "deployment_target").value, "npu_cnn");
    assert_eq!(row(&reply, "preset").value, "XINT8");
}

#[test]
fn another_quark_that_was_installed_meanwhile_is_read_by_a_revision() {
    let world = World::new();
    let reply = world
        .planner
        .propose(&propose::Arguments {
            model_path: Some("model.onnx".into()),
            quark_install_result_path: Some("quark_install_result.json".into()),
            onnx_install_result_path: Some("onnx_install_result.json".into()),
            intent: for_cpu(),
            ..propose::Arguments::default()
        })
        .unwrap();
    assert_eq!(row(&reply, "quark_version").value, "0.12.post1");
    let id = reply.session_id.clone().unwrap();
    world.confirm(&id);
    let newer = world.read("quark_install_result_new.json");
    world.write("quark_install_result.json", &newer);
    assert_eq!(world.emit(&id, "p.json").unwrap_err().code(), "STALE_INPUTS");
    let reply = world.planner.revise(&RevisionArguments::of(id)).unwrap();
    assert_eq!(row(&reply, "quark_version").value, "0.13");
}

#[test]
fn a_session_goes_to_another_agent_after_a_restart_by_its_id_alone() {
    let world = World::new();
    let reply = world
        .planner
        .propose(&propose::Arguments {
            model_path: Some("model.onnx".into()),
            intent: for_cpu(),
            ..propose::Arguments::default()
        })
        .unwrap();
    let id = reply.session_id.unwrap();
    world.confirm(&id);
    // Another process, in another folder: the id is all that it gets.
    let elsewhere = TempDir::new().unwrap();
    let other = Planner::new(Options {
        workspaces: Vec::new(),
        state_dir: world.path("state"),
        current_dir: elsewhere.path().to_path_buf(),
        session_days: 30,
        now: || NOW.get(),
    });
    assert_eq!(other.session(&id).unwrap().state(), "confirmed");
    let output_path = world.path("quant_plan.json");
    let arguments = write::Arguments { session_id: id.clone(), output_path, overwrite: false };
    let emitted = other.write(&arguments).unwrap();
    assert_eq!(world.read("quant_plan.json"), json!(emitted.plan));
    assert_eq!(world.planner.session(&id).unwrap().state(), "emitted");
}

#[test]
fn a_torch_session_leads_to_torch_skills_and_torch_rows() {
    let world = World::new();
    let reply = world
        .planner
        .propose(&propose::Arguments {
            analysis_path: Some("model_analysis_torch.json".into()),
            environment_path: Some("env_context_rocm.json".into()),
            ..propose::Arguments::default()
        })
        .unwrap();
    let session_id = reply.session_id.clone();
    let ask = |error: Option<&str>| {
        let error = error.map(str::to_owned);
        let arguments = route::Arguments {
            session_id: session_id.clone(),
            error,
            ..route::Arguments::default()
        };
        world.planner.route(&arguments).unwrap().routes.remove(0)
    };
    assert_eq!(ask(None).skill, "quark-torch-quant-plan");
    let way = ask(Some("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB"));
    assert_eq!(way.skill, "quark-torch-quant-plan");
    assert_eq!(way.resume.tool, "revise_plan");
    assert!(way.resume.arguments["values"].get("device_strategy").is_some(), "{way:?}");
    // An error of the other half goes to the other router and no further.
    let way = ask(Some("quark.onnx: ValueError: No data is collected."));
    assert_eq!(way.skill, "quark-onnx-router");
}

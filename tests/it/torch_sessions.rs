//! From a Hugging Face folder to a confirmed plan file, through the same gate as an ONNX model.

use std::{cell::Cell, fs, path::Path};

use quantplan::{
    intent::Intent,
    plan::quant_plan::QuantPlan,
    planner::{
        Options, Planner, analyze,
        confirm::{self, Inquiry},
        propose::{self, OutcomeKind},
        show, write,
    },
    session::event::{Answer, Reply},
    vocab::{Backend, Channel, SessionId},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::torch_fixtures::{self, Tensor, tensor};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_800_000_000_000) };
}

fn now() -> i64 {
    NOW.get()
}

fn tensors() -> Vec<Tensor> {
    let mut all = vec![tensor("model.embed_tokens.weight", "BF16", &[96, 64])];
    for layer in 0..2 {
        let mut add = |name: &str, shape: &[u64]| {
            all.push(tensor(&format!("model.layers.{layer}.{name}.weight"), "BF16", shape));
        };
        add("self_attn.q_proj", &[64, 64]);
        add("self_attn.k_proj", &[32, 64]);
        add("self_attn.v_proj", &[32, 64]);
        add("self_attn.o_proj", &[64, 64]);
        add("mlp.gate_proj", &[160, 64]);
        add("mlp.up_proj", &[160, 64]);
        add("mlp.down_proj", &[64, 160]);
        add("input_layernorm", &[64]);
    }
    all.push(tensor("lm_head.weight", "BF16", &[96, 64]));
    all
}

fn planner(folder: &Path) -> Planner {
    Planner::new(Options {
        workspaces: vec![folder.to_path_buf()],
        state_dir: folder.join("state"),
        current_dir: folder.to_path_buf(),
        session_days: 30,
        now,
    })
}

fn confirmed(planner: &Planner, model: &str) -> SessionId {
    let reply = planner
        .propose(&propose::Arguments {
            model_path: Some(model.into()),
            intent: Intent { goal: Some("smallest model".to_owned()), ..Intent::default() },
            ..propose::Arguments::default()
        })
        .unwrap();
    assert_eq!(reply.outcome, OutcomeKind::Draft);
    let id = reply.session_id.unwrap();
    let arguments = show::Arguments { session_id: id.clone(), format: show::Format::Markdown };
    let shown = planner.show(&arguments).unwrap();
    assert!(shown.table_markdown.contains("int4_wo_32"), "{}", shown.table_markdown);
    let arguments = confirm::Arguments { session_id: id.clone(), digest: shown.digest.clone() };
    let Inquiry::Ask(asked) = planner.ask(&arguments, Channel::Elicited).unwrap() else {
        panic!("confirmed already")
    };
    NOW.set(NOW.get() + 2_000);
    let answer = Answer {
        nonce: Some(asked.nonce),
        channel: Channel::Elicited,
        digest: shown.digest,
        reply: Reply::Yes,
        client: None,
    };
    planner.answer(&id, answer).unwrap();
    id
}

fn emit(
    planner: &Planner,
    id: &SessionId,
) -> Result<write::Reply, quantplan::planner::error::Error> {
    planner.write(&write::Arguments {
        session_id: id.clone(),
        output_path: "quant_plan.json".into(),
        overwrite: false,
    })
}

#[test]
fn a_folder_becomes_a_confirmed_plan_file() {
    let home = TempDir::new().unwrap();
    let model = torch_fixtures::folder(&torch_fixtures::llama(), &tensors());
    let planner = planner(home.path());
    let id = confirmed(&planner, model.path().to_str().unwrap());
    let reply = emit(&planner, &id).unwrap();
    let QuantPlan::Torch(plan) = &reply.plan else { panic!("not a Torch plan") };
    assert_eq!(plan.global_scheme, "int4_wo_32");
    assert_eq!(plan.exclude_layers, ["lm_head"]);
    assert_eq!(plan.algorithm.as_deref(), Some("awq"));
    assert_eq!(reply.handoff.skill.as_str(), "quark-torch-ptq");
    assert_eq!(reply.session_context_patch["constraints"]["backend"], "torch");
    let text = fs::read_to_string(home.path().join("quant_plan.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value["model"],
        json!({"model_type": "llama", "analysis_ref": "./model_analysis.json"})
    );
    assert!(home.path().join("model_analysis.json").exists());
    // Headers of 2 layers: half a byte an element, a scale and half a byte of zero point a group of 32.
    let elements: u64 = 2 * (64 * 64 * 2 + 32 * 64 * 2 + 160 * 64 * 3);
    let groups = elements / 32;
    let rest: u64 = 2 * 96 * 64 * 2 + 2 * 64 * 2;
    assert_eq!(
        plan.expected.weight_bytes_after,
        Some(elements / 2 + groups * 2 + groups / 2 + rest)
    );
}

#[test]
fn a_plan_is_stale_when_a_shape_of_the_model_changes() {
    let home = TempDir::new().unwrap();
    let model = torch_fixtures::folder(&torch_fixtures::llama(), &tensors());
    let planner = planner(home.path());
    let id = confirmed(&planner, model.path().to_str().unwrap());
    let mut other = tensors();
    other.push(tensor("model.extra.weight", "BF16", &[8, 8]));
    torch_fixtures::write(model.path(), "model.safetensors", torch_fixtures::safetensors(&other));
    assert_eq!(emit(&planner, &id).unwrap_err().code(), "STALE_INPUTS");
}

#[test]
fn an_analysis_of_a_folder_leads_to_the_same_plan() {
    let home = TempDir::new().unwrap();
    let model = torch_fixtures::folder(&torch_fixtures::llama(), &tensors());
    let planner = planner(home.path());
    let written = planner
        .analyze(&analyze::Arguments {
            path: model.path().to_path_buf(),
            output_path: Some("model_analysis.json".into()),
            overwrite: false,
        })
        .unwrap();
    assert_eq!(written.model_analysis.model.model_type, "llama");
    let reply = planner
        .propose(&propose::Arguments {
            analysis_path: Some("model_analysis.json".into()),
            ..propose::Arguments::default()
        })
        .unwrap();
    let draft = reply.draft.unwrap();
    // The modules were read again from the folder that the analysis names.
    assert_eq!(draft.expected.linear_modules, Some(15));
}

#[test]
fn a_hub_id_and_the_other_half_are_handed_off() {
    let home = TempDir::new().unwrap();
    let planner = planner(home.path());
    let propose = |path: &str, backend: Option<Backend>| {
        let arguments = propose::Arguments {
            model_path: Some(path.into()),
            backend,
            ..propose::Arguments::default()
        };
        let reply = planner.propose(&arguments).unwrap();
        reply.handoff.map(|handoff| (handoff.skill.to_string(), handoff.reason))
    };
    let (skill, reason) = propose("Qwen/Qwen3-8B", None).unwrap();
    assert_eq!(skill, "quark-torch-model-intake");
    assert!(reason.contains("Qwen/Qwen3-8B"), "{reason}");
    let model = torch_fixtures::folder(&torch_fixtures::llama(), &tensors());
    let path = model.path().to_str().unwrap();
    let (skill, _) = propose(path, Some(Backend::Onnx)).unwrap();
    assert_eq!(skill, "quark-onnx-model-intake");
    assert!(propose(path, Some(Backend::Torch)).is_none());
    let onnx = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx/good/mlp.onnx");
    let (skill, _) = propose(onnx.to_str().unwrap(), Some(Backend::Torch)).unwrap();
    assert_eq!(skill, "quark-torch-model-intake");
}

#[test]
fn files_that_a_request_names_are_read_and_watched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let mut config = torch_fixtures::llama();
    config["model_type"] = json!("llama_of_mine");
    let model = torch_fixtures::folder(&config, &tensors());
    let template = path.join("mine.json");
    fs::write(&template, r#"{"model_type": "llama_of_mine", "exclude_layers_name": ["lm_head"]}"#)
        .unwrap();
    let torch = json!({"status": "ok", "pytorch_version": "2.9.0+cpu", "accelerator_tag": "cpu"});
    fs::write(path.join("torch.json"), torch.to_string()).unwrap();
    let planner = planner(path);
    let arguments = |template: &str| {
        let intent = json!({"goal": "best accuracy", "answers": {"custom_template": template}});
        propose::Arguments {
            model_path: Some(model.path().to_path_buf()),
            pytorch_install_result_path: Some("torch.json".into()),
            intent: serde_json::from_value(intent).unwrap(),
            ..propose::Arguments::default()
        }
    };
    let reply = planner.propose(&arguments("mine.json")).unwrap();
    let draft = reply.draft.unwrap();
    let row = draft.decision("template_file").unwrap();
    assert_eq!(row.value, template.display().to_string(), "the path is whole");
    assert_eq!(draft.decision("exclude_layers").unwrap().value, json!(["lm_head"]));
    let id = reply.session_id.unwrap();
    let session = planner.session(&id).unwrap();
    let roles: Vec<&str> = session.inputs().iter().map(|input| input.role.as_str()).collect();
    assert_eq!(roles, ["model", "pytorch_install_result", "template_file"]);
    // A file that is changed is read again by a revision, one that is broken refuses it.
    fs::write(&template, r#"{"model_type": "llama"}"#).unwrap();
    let refused = planner.revise(&propose::RevisionArguments::of(id.clone())).unwrap_err();
    assert!(refused.whole().contains("is a template for `llama`"), "{}", refused.whole());
    fs::write(&template, r#"{"model_type": "llama_of_mine", "exclude_layers_name": ["*o_proj"]}"#)
        .unwrap();
    let revised = planner.revise(&propose::RevisionArguments::of(id)).unwrap();
    assert_eq!(revised.changed[0].decision, "exclude_layers");
    // A file that is on another machine is a risk and no reason to refuse.
    let elsewhere = planner.propose(&arguments("/nowhere/else.json")).unwrap().draft.unwrap();
    let risk = elsewhere.risks.iter().find(|risk| risk.message.contains("is not on this machine"));
    assert!(risk.is_some(), "{:?}", elsewhere.risks);
}

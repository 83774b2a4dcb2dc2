//! `route_recovery`: goals, errors, missing artefacts and sessions, and the data behind them.

use quantplan::{
    catalogue::{Catalogue, Entry, skills::Role},
    plan::Handoff,
    planner::{
        Planner, propose,
        route::{Arguments, Reply},
        show,
    },
    rules::{errors, routing, rows},
    vocab::{Backend, SessionId},
};

use crate::{explain::planner, onnx_fixtures};

const CATALOGUE: Catalogue = Catalogue;

pub fn ask(arguments: Arguments) -> Reply {
    planner().1.route(&arguments).unwrap()
}

fn skills(reply: &Reply) -> Vec<&str> {
    reply.routes.iter().map(|way| way.skill.as_str()).collect()
}

fn goal(goal: &str) -> Reply {
    ask(Arguments { goal: Some(goal.to_owned()), ..Arguments::default() })
}

pub fn error(text: &str) -> Reply {
    ask(Arguments { error: Some(text.to_owned()), ..Arguments::default() })
}

fn missing(name: &str, backend: Option<Backend>) -> Reply {
    ask(Arguments { missing: Some(name.to_owned()), backend, ..Arguments::default() })
}

#[test]
fn the_skill_maps_and_examples_of_both_routers_lead_where_they_say() {
    let check = |backend: Backend, text: &str, skill: &str| {
        let reply = ask(Arguments {
            goal: Some(text.to_owned()),
            backend: Some(backend),
            ..Arguments::default()
        });
        assert_eq!(skills(&reply), [skill], "{text}");
    };
    let onnx = |text: &str, skill: &str| check(Backend::Onnx, text, skill);
    onnx(
        "Quantize a .onnx vision/CNN model (YOLO / ResNet / MobileNet / …)",
        "quark-onnx-ptq-workflow",
    );
    onnx("Full end-to-end ONNX PTQ: from `.onnx` to quantized `.onnx`", "quark-onnx-ptq-workflow");
    onnx("Install ONNX Runtime, fix CPU/GPU variant, missing CUDA/ROCm EP", "quark-onnx-install");
    onnx("Install Quark, set up Quark dependencies", "quark-install");
    onnx(
        "Inspect a `.onnx` model, check opset / IR / op-type histogram, NPU compatibility",
        "quark-onnx-model-intake",
    );
    onnx(
        "Choose preset (XINT8 / A8W8 / BFP16 / MX* / MatMulNBits), calibration method, algorithm",
        "quark-onnx-quant-plan",
    );
    onnx(
        "Debug a failed ONNX quantization, ORT EP error, custom-op load failure, calibration crash",
        "quark-onnx-debug",
    );
    onnx(
        "Validate quantized `.onnx`, verify QDQ insertion, check non-quantized initializers",
        "quark-onnx-result-validator",
    );
    onnx("Check environment, detect GPU, verify setup", "quark-env-preflight");
    onnx("Validate `.onnx` / `.onnx_data` paths, output directory", "quark-workspace-validate");
    onnx("quantize yolov8n.onnx with XINT8 for Ryzen AI", "quark-onnx-ptq-workflow");
    onnx("quantize resnet50 .onnx with A8W8", "quark-onnx-ptq-workflow");
    onnx("run ONNX PTQ on my image-classification model", "quark-onnx-ptq-workflow");
    onnx("I want to quantize yolov8n.onnx with XINT8 for CPU", "quark-onnx-ptq-workflow");
    onnx(
        "Quantize ./models/yolov8n.onnx with XINT8 for Ryzen AI deployment, output to ./output/yolov8n-xint8.onnx",
        "quark-onnx-ptq-workflow",
    );
    onnx(
        "Quantize ./models/yolov8n.onnx with XINT8 and validate against the FP32 baseline",
        "quark-onnx-ptq-workflow",
    );
    onnx("I need to install onnxruntime-rocm 7.1", "quark-onnx-install");
    onnx(
        "`quantize_static` is failing with 'CUDAExecutionProvider not available'",
        "quark-onnx-debug",
    );
    onnx(
        "Here's the quantized output — did the QDQ insertion actually happen?",
        "quark-onnx-result-validator",
    );
    onnx("Quantize Qwen/Qwen3-8B with FP8", "quark-torch-router");
    onnx("install onnxruntime", "quark-onnx-install");
    onnx("analyze my .onnx model", "quark-onnx-model-intake");
    onnx("choose a preset for my YOLO model", "quark-onnx-quant-plan");
    onnx("plan ONNX PTQ", "quark-onnx-quant-plan");
    onnx("quantize this .onnx with XINT8/BFP16/MXFP4", "quark-onnx-ptq-workflow");
    onnx("validate my quantized .onnx", "quark-onnx-result-validator");
    onnx("debug a failed ONNX quantization", "quark-onnx-debug");

    let torch = |text: &str, skill: &str| check(Backend::Torch, text, skill);
    torch("Quantize a model (any scheme, any model)", "quark-torch-ptq");
    torch("Full end-to-end PTQ: from model to quantized output", "quark-torch-ptq");
    torch("Install PyTorch, set up torch, fix torch version", "quark-torch-install");
    torch("Install Quark, set up Quark dependencies, check Quark packages", "quark-install");
    torch("Inspect a model, check architecture, validate model path", "quark-torch-model-intake");
    torch("Choose quantization scheme, build a quant plan", "quark-torch-quant-plan");
    torch("Check environment, detect GPU, verify setup", "quark-env-preflight");
    torch("Validate paths, check model directory", "quark-workspace-validate");
    for text in [
        "quantize X with Y",
        "quantize X to FP8/INT4/...",
        "run PTQ on X",
        "run quantization on X",
        "help me quantize",
        "I want to quantize Llama-2 with INT4",
        "Help me quantize Qwen/Qwen3-8B to FP8, output to ./output/qwen3-8b-fp8",
        "run the full PTQ pipeline",
        "run model quantization",
    ] {
        torch(text, "quark-torch-ptq");
    }
    torch("How do I install Quark? I'm on Ubuntu with ROCm 7.1", "quark-install");
    torch("I need to install PyTorch for ROCm 7.1", "quark-torch-install");
    torch("analyze my model", "quark-torch-model-intake");
    torch("build a PTQ plan", "quark-torch-quant-plan");
    torch("quantize ./yolov8n.onnx with XINT8", "quark-onnx-router");
    torch("run file2file quantization on DeepSeek", "quark-torch-file2file-quantization");
    torch("validate the exported weights", "quark-torch-result-validator");
}

#[test]
fn without_a_backend_the_words_of_the_goal_tell_it() {
    let check = |text: &str, expected: &str| assert_eq!(skills(&goal(text))[0], expected, "{text}");
    check("Quantize Qwen/Qwen3-8B with FP8", "quark-torch-ptq");
    check("quantize yolov8n.onnx with XINT8 for Ryzen AI", "quark-onnx-ptq-workflow");
    check("weights-only INT4 for my .onnx LLM", "quark-onnx-ptq-workflow");
    check("install onnxruntime for ROCm", "quark-onnx-install");
    check("set up torch for CUDA", "quark-torch-install");
    check("set up Quark dependencies", "quark-install");
    check("what GPU do I have", "quark-env-preflight");
    check("is my setup ready for Quark", "quark-env-preflight");
    check("where should I put outputs", "quark-workspace-validate");
    check("is my model path right", "quark-workspace-validate");
    check("what opset is this", "quark-onnx-model-intake");
    check("is my model NPU-compatible", "quark-onnx-model-intake");
    check("does my model already have QDQ", "quark-onnx-model-intake");
    check("is my .onnx larger than 2 GB", "quark-onnx-model-intake");
    check("choose XINT8 vs A8W8", "quark-onnx-quant-plan");
    check("what preset should I use for my ONNX model", "quark-onnx-quant-plan");
    check("should I use AdaRound or AdaQuant", "quark-onnx-quant-plan");
    check("calibration method for Ryzen AI", "quark-onnx-quant-plan");
    check(
        "quantize without loading the model, it is a huge safetensors",
        "quark-torch-file2file-quantization",
    );
    check("Set up AMD Quark in the active Python environment for this GPU", "quark-install");
    check(
        "are the non-quantized weights byte-identical in the onnx",
        "quark-onnx-result-validator",
    );
    check("my ONNX quantization crashed", "quark-onnx-debug");
    check("onnxruntime providers list missing CUDAExecutionProvider", "quark-onnx-install");
    check("quantise my resnet50 for the NPU", "quark-onnx-ptq-workflow");
    check("Convert my resnet18.onnx to INT8 for Ryzen AI", "quark-onnx-ptq-workflow");
    check("I have a quantized model.onnx, is it correct?", "quark-onnx-result-validator");
    check("please check whether the Q/DQ nodes are in the output", "quark-onnx-result-validator");
    check("How big is my model and what ops does it use? model.onnx", "quark-onnx-model-intake");
    check("upgrade the opset of my model to 17", "quark-onnx-model-intake");
    check("compress Llama-3 to 4 bit for vLLM", "quark-torch-ptq");
    check("Is Phi-3 supported by Quark?", "quark-torch-model-intake");
    check("FP8 or MXFP4 for Llama 70B?", "quark-torch-quant-plan");
    check("exclude lm_head from quantization of my safetensors", "quark-torch-quant-plan");
    check("the exported model gives garbage output in vLLM", "quark-torch-debug");
    check("is ROCm installed on this machine", "quark-env-preflight");
    check("compile the custom ops for onnxruntime", "quark-onnx-install");
    check("make a quantization plan for detector.onnx", "quark-onnx-quant-plan");
}

#[test]
fn what_is_not_clear_is_asked_and_not_guessed() {
    let check = |reply: &Reply, expected: &[&str], word: &str| {
        assert_eq!(skills(reply), expected);
        let ask = reply.ask.as_deref().unwrap();
        assert!(ask.contains(word), "{ask}");
        assert!(reply.next.contains("`ask`"), "{}", reply.next);
    };
    check(
        &goal("I want to use Quark with my ONNX model"),
        &["quark-onnx-model-intake", "quark-onnx-ptq-workflow", "quark-install"],
        "validate an already quantized output",
    );
    check(
        &ask(Arguments {
            goal: Some("I want to use Quark with my model".to_owned()),
            backend: Some(Backend::Torch),
            ..Arguments::default()
        }),
        &["quark-torch-model-intake", "quark-torch-ptq", "quark-install"],
        "set up Quark first",
    );
    check(
        &goal("I want to use Quark with my model"),
        &["quark-torch-router", "quark-onnx-router"],
        "Hugging Face",
    );
    check(
        &goal("quantize my model"),
        &["quark-torch-ptq", "quark-onnx-ptq-workflow"],
        "Hugging Face",
    );
    check(
        &ask(Arguments {
            goal: Some("I want to set up Quark".to_owned()),
            backend: Some(Backend::Torch),
            ..Arguments::default()
        }),
        &["quark-install", "quark-torch-ptq"],
        "(b)",
    );
    check(
        &goal("export Qwen/Qwen3-8B to onnx and quantize both"),
        &["quark-onnx-router", "quark-torch-router"],
        "Hugging Face",
    );
    check(
        &missing("model_analysis.json", None),
        &["quark-onnx-model-intake", "quark-torch-model-intake"],
        "Hugging Face",
    );
}

#[test]
fn a_missing_artefact_leads_to_the_skill_that_writes_it() {
    let check = |name: &str, backend: Option<Backend>, skill: &str, key: &str| {
        let reply = missing(name, backend);
        assert_eq!(skills(&reply)[0], skill, "{name}");
        let arguments = reply.routes[0].resume.arguments.to_string();
        assert!(arguments.contains(key), "{name}: {arguments}");
    };
    let onnx = Some(Backend::Onnx);
    let torch = Some(Backend::Torch);
    check("model_analysis.json", onnx, "quark-onnx-model-intake", "analysis_path");
    check("./ctx/model_analysis.json", torch, "quark-torch-model-intake", "analysis_path");
    check("env_context.json", None, "quark-env-preflight", "environment_path");
    check("env_context", onnx, "quark-env-preflight", "environment_path");
    check("workspace_context.json", None, "quark-workspace-validate", "model_path");
    check("onnx_install_result.json", None, "quark-onnx-install", "onnx_install_result_path");
    check("onnx_install_result_ref", None, "quark-onnx-install", "onnx_install_result_path");
    check("quark_install_result.json", None, "quark-install", "quark_install_result_path");
    check("pytorch_install_result.json", None, "quark-torch-install", "torch");
    check("quant_plan.json", onnx, "quark-onnx-quant-plan", "model_path");
    check("quant_plan.json", torch, "quark-torch-quant-plan", "torch");
    check("session_context.json", onnx, "quark-onnx-router", "session_context_path");
    check("run_manifest.yaml", onnx, "quark-onnx-ptq-workflow", "model_path");
    check("run_manifest.yaml", torch, "quark-torch-ptq", "torch");
    check("validation_report.md", onnx, "quark-onnx-result-validator", "error");
    check("onnxruntime", None, "quark-onnx-install", "");
    check("amd-quark", None, "quark-install", "");
    check("pytorch", None, "quark-torch-install", "");
    check("custom ops", onnx, "quark-onnx-install", "");
    check("./models/resnet50.onnx", None, "quark-workspace-validate", "");
    assert!(missing("calibration data", onnx).ask.unwrap().contains("few dozen samples"));
    let wrong = Arguments { missing: Some("model_analisys".to_owned()), ..Arguments::default() };
    let refused = planner().1.route(&wrong).unwrap_err();
    assert_eq!(refused.code(), "UNKNOWN_NAME");
    assert!(refused.hint().contains("model_analysis.json"), "{}", refused.hint());
}

#[test]
fn backends_are_never_mixed() {
    let check = |arguments: Arguments, expected: &str| {
        let reply = ask(arguments);
        assert_eq!(skills(&reply), [expected]);
        assert!(reply.next.ends_with("and stop here"), "{}", reply.next);
    };
    let with = |goal: Option<&str>, error: Option<&str>, backend| Arguments {
        goal: goal.map(str::to_owned),
        error: error.map(str::to_owned),
        backend: Some(backend),
        ..Arguments::default()
    };
    let (onnx, torch) = (Backend::Onnx, Backend::Torch);
    check(with(Some("quantize meta-llama/Llama-3.1-8B"), None, onnx), "quark-torch-router");
    check(
        with(Some("plan this safetensors checkpoint for vLLM"), None, onnx),
        "quark-torch-router",
    );
    check(
        with(Some("why does quantize_quark.py need a template"), None, onnx),
        "quark-torch-router",
    );
    check(with(Some("choose an opset for my QDQ model"), None, torch), "quark-onnx-router");
    let traceback = "Traceback (most recent call last):\n  File \"quantize_quark.py\", line 9, in <module>\n    main(args)\n  File \"/v/lib/python3.12/site-packages/transformers/modeling_utils.py\", line 3, in x\n    raise\nOSError: Can't load tokenizer for '/m'";
    check(with(None, Some(traceback), onnx), "quark-torch-router");
    let traceback = "Traceback (most recent call last):\n  File \"/v/lib/python3.12/site-packages/quark/onnx/quantization/api.py\", line 3, in x\n    raise\nValueError: No data is collected.";
    check(with(None, Some(traceback), torch), "quark-onnx-router");
}

#[test]
fn a_hub_id_is_not_a_path_and_not_a_list_of_formats() {
    let check = |text: &str, expected: bool| {
        assert_eq!(routing::names_a_hub_model(text), expected, "{text}");
    };
    check("use Qwen/Qwen3-8B, please", true);
    check("mistralai/Mistral-7B-v0.1", true);
    check("`meta-llama/Llama-2-7b-hf`", true);
    check("XINT8/BFP16", false);
    check("./models/yolov8-n1.onnx", false);
    check("models/resnet-50", false);
    check("nvidia/amd", false);
    check("/models/Qwen3-8B", false);
    check("yolov8/resnet50", false);
}

#[test]
fn a_session_says_what_it_lacks() {
    let (folder, planner) = planner();
    let model = folder.path().join("small_cnn.onnx");
    std::fs::write(&model, onnx_fixtures::small_cnn()).unwrap();
    let proposed = planner
        .propose(&propose::Arguments { model_path: Some(model.clone()), ..Default::default() })
        .unwrap();
    let id: SessionId = proposed.session_id.unwrap();
    let next = |planner: &Planner| -> (String, Handoff) {
        let arguments = Arguments { session_id: Some(id.clone()), ..Arguments::default() };
        let reply = planner.route(&arguments).unwrap();
        let way = reply.routes[0].clone();
        (way.resume.tool.clone(), way)
    };
    if proposed.confirmable == Some(true) {
        assert_eq!(next(&planner).0, "render_decision_table");
        planner
            .show(&show::Arguments { session_id: id.clone(), format: show::Format::Markdown })
            .unwrap();
        let (tool, way) = next(&planner);
        assert_eq!(tool, "confirm_plan");
        assert_eq!(way.resume.arguments["session_id"], id.as_str());
        assert!(way.resume.arguments["digest"].as_str().unwrap().starts_with("sha256:"));
    } else {
        let (tool, way) = next(&planner);
        assert_eq!(tool, "revise_plan");
        assert!(way.resume.arguments["answers"].is_object());
    }
    std::fs::remove_file(&model).unwrap();
    let (tool, way) = next(&planner);
    assert_eq!(tool, "revise_plan");
    assert!(way.reason.contains("cannot be read any more"), "{}", way.reason);

    let text = "ValueError: Unexpected config name: MXFP4";
    let reply = planner
        .route(&Arguments {
            error: Some(text.to_owned()),
            session_id: Some(id.clone()),
            ..Arguments::default()
        })
        .unwrap();
    assert_eq!(skills(&reply), ["quark-onnx-quant-plan", "quark-onnx-debug"]);
    let resume = &reply.routes[0].resume;
    assert_eq!(resume.tool, "revise_plan");
    assert!(resume.arguments["values"]["preset"].is_string());

    let unknown = Arguments { session_id: Some(SessionId::new("qp-none")), ..Arguments::default() };
    assert_eq!(planner.route(&unknown).unwrap_err().code(), "UNKNOWN_SESSION");
    assert_eq!(planner.route(&Arguments::default()).unwrap_err().code(), "BAD_ARGUMENTS");
}

#[test]
fn messages_of_the_libraries_are_sound() {
    let mut defects = Vec::new();
    let all = CATALOGUE.raised();
    for raised in all {
        let place = format!("{} of {}", raised.path, raised.release);
        for id in &raised.skills {
            let skill = CATALOGUE.skills().get(id.as_str());
            if skill.is_none_or(|s| s.backend.is_some_and(|half| half != raised.backend)) {
                defects.push(format!("{place}: `{id}` is no skill of this half"));
            }
        }
        if raised.skills.is_empty() || raised.texts.is_empty() {
            defects.push(format!("{place}: leads nowhere"));
        }
        let known = CATALOGUE.releases().ids().any(|release| release == raised.release);
        if !known && !raised.release.starts_with("onnxruntime ") {
            defects.push(format!("{place}: there is no such release"));
        }
        for text in &raised.texts {
            let folded = text.to_lowercase().replace('\\', "/");
            if folded.split_whitespace().collect::<Vec<_>>().join(" ") != *text || text.len() < 26 {
                defects.push(format!("{place}: `{text}` is not folded, or too short"));
            }
            let other = all.iter().find(|other| {
                other.backend != raised.backend && other.texts.iter().any(|t| t.contains(text))
            });
            if let Some(other) = other {
                defects.push(format!("{place}: `{}` says `{text}` too", other.path));
            }
        }
    }
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

#[test]
fn skills_and_known_errors_are_sound() {
    let mut defects = Vec::new();
    let skills = CATALOGUE.skills();
    for skill in skills.all() {
        let id = skill.id();
        for named in &skill.names {
            if skills.find(&named.name).is_none() && named.name != id {
                defects
                    .push(format!("{id}: `{}` in `{}` leads nowhere", named.name, named.release));
            }
        }
        for needed in &skill.needs {
            if !skills.all().iter().any(|s| s.produces.iter().any(|a| a.name == *needed)) {
                defects.push(format!("{id}: nobody writes `{needed}`"));
            }
        }
        let phrases = skill.goals.iter().chain(&skill.signals).chain(&skill.hints);
        for phrase in phrases {
            if *phrase != phrase.to_lowercase() || phrase.contains(['-', '.', '/']) {
                defects.push(format!("{id}: `{phrase}` finds nothing"));
            }
        }
        if skill.goals.is_empty() != (skill.role == Role::Router) {
            defects.push(format!("{id}: has no goals, or is a router with goals"));
        }
    }
    for half in [Backend::Onnx, Backend::Torch] {
        for role in [
            Role::Router,
            Role::Intake,
            Role::Install,
            Role::Plan,
            Role::Workflow,
            Role::Debug,
            Role::Validate,
        ] {
            let any = skills.all().iter().any(|s| s.role == role && s.backend == Some(half));
            if !any {
                defects.push(format!("{half:?} has no {role:?}"));
            }
        }
    }
    for entry in CATALOGUE.recoveries().all() {
        let id = entry.id();
        match skills.get(entry.skill.as_str()) {
            None => defects.push(format!("{id}: there is no skill `{}`", entry.skill)),
            Some(skill)
                if skill.backend.is_some()
                    && entry.backend.is_some()
                    && skill.backend != entry.backend =>
            {
                defects.push(format!("{id}: `{}` is of the other half", entry.skill));
            }
            Some(_) => {}
        }
        for row in &entry.decisions {
            let halves =
                entry.backend.map_or(vec![Backend::Onnx, Backend::Torch], |half| vec![half]);
            let in_half = |half: &Backend| rows::of(*half).iter().any(|r| r.id == row.as_str());
            if !halves.iter().any(in_half) {
                defects.push(format!("{id}: there is no decision `{row}`"));
            }
        }
        for part in entry.patterns.iter().flatten() {
            let folded = part.to_lowercase().replace('\\', "/");
            if folded.split_whitespace().collect::<Vec<_>>().join(" ") != part.trim()
                || part.trim().len() < 3
            {
                defects.push(format!("{id}: `{part}` is not folded, or too short"));
            }
        }
        if entry.patterns.is_empty() || entry.patterns.iter().any(Vec::is_empty) {
            defects.push(format!("{id}: has an empty group"));
        }
        let seen = errors::recognise(
            CATALOGUE,
            &entry.example,
            errors::backend_of(CATALOGUE, &entry.example),
        );
        if seen.is_none_or(|seen| seen.id != entry.id) {
            defects
                .push(format!("{id}: its example is taken for {:?}", seen.map(|s| s.id.as_str())));
        }
    }
    assert!(CATALOGUE.recoveries().all().len() >= 40);
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

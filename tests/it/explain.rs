//! `explain`: names, questions and free words; what the answers look like.

use quantplan::{
    catalogue::{Catalogue, Entry},
    planner::{
        Options, Planner,
        explain::{Arguments, Reply},
    },
    rules::rows,
};

use crate::{onnx_fixtures, torch_fixtures};

pub fn planner() -> (tempfile::TempDir, Planner) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        workspaces: Vec::new(),
        state_dir: folder.path().join("state"),
        current_dir: folder.path().to_path_buf(),
        session_days: 30,
        now: || 1_764_000_000_000,
    };
    (folder, Planner::new(options))
}

fn about(id: &str) -> Arguments {
    Arguments { id: id.to_owned(), compare_with: None, model_path: None, session_id: None }
}

fn explain(id: &str) -> Reply {
    planner().1.explain(&about(id)).unwrap()
}

fn compare(a: &str, b: &str) -> Reply {
    let arguments = Arguments { compare_with: Some(b.to_owned()), ..about(a) };
    planner().1.explain(&arguments).unwrap()
}

#[test]
fn names_questions_and_free_words_find_what_is_meant() {
    let check = |text: &str, kind: &str, id: &str| {
        let reply = explain(text);
        assert_eq!((reply.kind.as_str(), reply.id.as_str()), (kind, id), "{text}");
        assert!(!reply.sources.is_empty(), "{text} has no source");
        assert!(reply.markdown.contains("Sources: "), "{text}");
    };
    let topic = |text: &str, id: &str| check(text, "topic", id);
    topic("what preset should I use for my ONNX model", "choose-a-preset");
    topic("which preset is best for a CNN?", "choose-a-preset");
    topic("plan ONNX PTQ", "choose-a-preset");
    topic("smallest model", "choose-a-preset");
    topic("best accuracy on an AMD GPU", "choose-a-preset");
    topic("INT4 BFP16 / MXFP4 for my model", "block-formats");
    topic("BFP16 / MXFP4 for my model", "block-formats");
    topic("calibration method for Ryzen AI", "calibration-method");
    topic("calibration method choice (MinMax / Entropy / Percentile)", "calibration-method");
    topic("SmoothQuant alpha", "smoothquant-alpha");
    topic("what alpha does SmoothQuant take", "smoothquant-alpha");
    topic("static or dynamic", "static-or-dynamic");
    topic("dynamic vs static quantization", "static-or-dynamic");
    topic("weights-only INT4", "weights-only-int4");
    topic("weights-only INT4 (MatMulNBits) decisions", "weights-only-int4");
    topic("which op types are excluded", "excluded-ops");
    topic("op-type include/exclude lists", "excluded-ops");
    topic("how do I keep a layer in float", "excluded-ops");
    topic("how many calibration samples", "calibration-data");
    topic("I have no calibration data", "calibration-data");
    topic("Ryzen AI", "deployment-target");
    topic("mobilenet accuracy drops after INT8", "which-algorithms");
    topic("custom ops", "custom-ops");

    let preset = |text: &str, id: &str| check(text, "preset", id);
    preset("XINT8", "XINT8");
    preset("xint-8", "XINT8");
    preset("`A8W8`", "A8W8");
    preset("BF16", "BF16");
    preset("what is XINT8_ADAROUND for", "XINT8_ADAROUND");
    preset("choose XINT8 vs A8W8", "XINT8 vs A8W8");
    preset("MATMUL_NBITS or BFP16", "MATMUL_NBITS vs BFP16");
    check("should I use AdaRound or AdaQuant", "ONNX algorithm", "AdaRound vs AdaQuant");
    check("CLE or BiasCorrection", "ONNX algorithm", "CLE vs BiasCorrection");
    check("AdaRound", "ONNX algorithm", "AdaRound");
    check("should I use adaround", "ONNX algorithm", "AdaRound");
    check("mixed precision", "ONNX algorithm", "AutoMixprecision");
    check("MinMax", "calibration method", "MinMax");
    check("MinMSE", "calibration method", "PowerOfTwo_MinMSE");
    check("Percentile", "calibration method", "Percentile");
    check(
        "the difference between MinMSE and NonOverflow",
        "calibration method",
        "PowerOfTwo_MinMSE vs PowerOfTwo_NonOverflow",
    );
    check("npu_cnn", "deployment target", "npu_cnn");
    check("preset", "decision", "preset");
    check("calibration.method", "decision", "calibration.method");
    check("nodes_to_exclude", "decision", "onnx_specific.nodes_to_exclude");
    check("execution providers", "decision", "onnx_specific.execution_providers");
    check("SmoothAlpha", "extra option", "SmoothAlpha");
    check("what does CalibOptimizeMem do", "extra option", "CalibOptimizeMem");
    check("learning rate", "extra option", "LearningRate");
    check("what can Hawk Point run", "device", "HPT");
    check("MI300X", "device", "gfx942");
    check("which onnx version does 0.13 need", "release", "0.13");
    check("is HardSwish supported by the NPU", "op type on the NPU", "HardSwish");
    check("quark-onnx-ptq", "skill", "quark-onnx-ptq-workflow");
    check("reader-required", "known error", "reader-required");
    check("KeyError: 'c1_DequantizeLinear_Output'", "known error", "bias-correction-extended");
}

#[test]
fn a_name_of_several_kinds_names_the_others() {
    let reply = explain("Percentile");
    assert_eq!(reply.related[0], "option:Percentile");
    assert!(reply.markdown.contains("(ask for `option:Percentile`)"), "{}", reply.markdown);
    // Two names that mean several things each are compared as what they both are.
    assert_eq!(compare("Percentile", "NumBins").kind, "extra option");
    assert_eq!(compare("XINT8", "AdaRound").kind, "preset and ONNX algorithm");
}

#[test]
fn names_of_both_halves_go_by_spelling_then_by_the_model_then_by_kind() {
    let check = |text: &str, kind: &str, id: &str, other: &str| {
        let reply = explain(text);
        assert_eq!((reply.kind.as_str(), reply.id.as_str()), (kind, id), "{text}");
        assert!(reply.related.contains(&other.to_owned()), "{text}: {:?}", reply.related);
        assert!(reply.markdown.contains(&format!("`{other}`")), "{}", reply.markdown);
        // What is named there can be asked for.
        assert_eq!(explain(other).id, other.rsplit(':').next().unwrap());
    };
    check("GPTQ", "ONNX algorithm", "GPTQ", "torch_algorithm:gptq");
    check("gptq", "Torch algorithm", "gptq", "onnx_algorithm:GPTQ");
    check("Gptq", "ONNX algorithm", "GPTQ", "torch_algorithm:gptq");
    check("BFP16", "preset", "BFP16", "scheme:bfp16");
    check("bfp16", "scheme", "bfp16", "preset:BFP16");
    check("MXFP4", "scheme", "mxfp4", "block-formats");
    check("mxfp4", "scheme", "mxfp4", "source:mxfp4");
    check("SmoothQuant", "ONNX algorithm", "SmoothQuant", "torch_algorithm:smoothquant");
    check("MX6", "preset", "MX6", "scheme:mx6");
    check("smallest model", "topic", "choose-a-preset", "choose-a-scheme");
    for asked in ["scheme:MX6", "schemes: mx6", "Scheme:mx6"] {
        assert_eq!((explain(asked).kind.as_str(), explain(asked).id.as_str()), ("scheme", "mx6"));
    }
    assert_eq!(compare("scheme:mxfp4", "source:mxfp4").id, "mxfp4 vs mxfp4");
    assert_eq!(explain("algorithm:gptq").id, "gptq");
    let (folder, planner) = planner();
    let onnx = folder.path().join("small.onnx");
    std::fs::write(&onnx, onnx_fixtures::small_cnn()).unwrap();
    let llama = llama();
    let at = |text: &str, model: &std::path::Path| {
        let arguments = Arguments { model_path: Some(model.to_path_buf()), ..about(text) };
        planner.explain(&arguments).unwrap()
    };
    for (text, of_onnx, of_torch) in [
        ("Gptq", "GPTQ", "gptq"),
        ("smallest model", "choose-a-preset", "choose-a-scheme"),
        ("which algorithm should I use", "which-algorithms", "torch-algorithms"),
        ("MXFP4", "block-formats", "mxfp4"),
        ("how do I keep a layer in float", "excluded-ops", "excluded-layers"),
    ] {
        assert_eq!(at(text, &onnx).id, of_onnx, "{text}");
        assert_eq!(at(text, llama.path()).id, of_torch, "{text}");
    }
    // The spelling is the name's own, whatever the model.
    let preset = at("BFP16", llama.path());
    assert_eq!(preset.kind, "preset");
    assert!(preset.markdown.contains("`BFP16` belongs to Quark-ONNX"), "{}", preset.markdown);
}

/// A small Llama with its weights.
fn llama() -> tempfile::TempDir {
    torch_fixtures::folder(&torch_fixtures::llama(), &torch_fixtures::llama_tensors())
}

#[test]
fn names_and_questions_of_the_torch_half_find_what_is_meant() {
    let check = |text: &str, kind: &str, id: &str| {
        let reply = explain(text);
        assert_eq!((reply.kind.as_str(), reply.id.as_str()), (kind, id), "{text}");
        assert!(!reply.sources.is_empty(), "{text} has no source");
    };
    check("ptpc_fp8", "scheme", "ptpc_fp8");
    check("PTPC-FP8", "scheme", "ptpc_fp8");
    check("fp8 or int8", "scheme", "fp8 vs int8");
    check("what is amdfp4 for", "scheme", "amdfp4");
    check("int4_wo_32 vs mxfp4", "scheme", "int4_wo_32 vs mxfp4");
    check("awq or gptq", "Torch algorithm", "awq vs gptq");
    check("AWQ vs GPTQ", "Torch algorithm", "awq vs gptq");
    check("rotation", "Torch algorithm", "rotation");
    check("qwen3", "model family", "qwen3");
    check("deepseek_v3", "model family", "deepseek_v3");
    check("vLLM", "serving engine", "vllm");
    check("sgl", "serving engine", "sglang");
    check("quark-cli", "entry point", "quark-cli torch-llm-ptq");
    check("bitsandbytes", "quantized source", "bitsandbytes");
    check("kv_cache_scheme", "decision", "kv_cache_scheme");
    check("attention_scheme", "decision", "attention_scheme");
    let topic = |text: &str, id: &str| check(text, "topic", id);
    topic("which scheme should I use for my LLM", "choose-a-scheme");
    topic("which scheme for llama on MI300X", "choose-a-scheme");
    topic("plan torch PTQ", "choose-a-scheme");
    topic("how do I quantize the kv cache", "kv-cache");
    topic("can I combine algorithms for my LLM", "torch-algorithms");
    topic("does quark quantize attention in fp8", "attention-in-fp8");
    topic("which layers are excluded for an LLM", "excluded-layers");
    topic("what about lm_head", "excluded-layers");
    topic("I want a GGUF file", "gguf");
    topic("the model does not fit", "large-models");
    topic("int4 weights only for an LLM", "weight-only-int4-llm");
    topic("calibration dataset for an LLM", "torch-calibration-data");
    topic("the checkpoint is already quantized", "quantized-already");
    topic("a different scheme for attention layers", "layer-overrides");
}

#[test]
fn a_hugging_face_model_says_what_a_name_means_there() {
    let model = llama();
    let (_folder, planner) = planner();
    let at = |text: &str| {
        let arguments = Arguments { model_path: Some(model.path().to_path_buf()), ..about(text) };
        planner.explain(&arguments).unwrap().markdown
    };
    let check = |text: &str, expected: &str| {
        let markdown = at(text);
        assert!(markdown.contains("**For this model** (`"), "{markdown}");
        assert!(markdown.contains(expected), "{text}: {markdown}");
    };
    check("fp8", "`fp8` would be taken: nothing speaks against it");
    check("mx6", "`mx6` would not be taken, but ");
    check("awq", "`awq` would not be taken, but ");
    check("llama", "The model is of this family");
    check("llama", "`lm_head` means 1 of its ");
    check("qwen3", "The model is of another family, `llama`");
    check("vllm", "With `vllm` the scheme would be ");
    check("MI300X", "With `gfx942` the scheme would be ");
    check("source:awq", "The checkpoint is none of these");
    check("global_scheme", "It would be `fp8`: ");
    check("which scheme should I use", "`global_scheme` would be `fp8`: ");
    check("XINT8", "`XINT8` belongs to Quark-ONNX, and this is a Hugging Face model");
    check("fp8 vs int8", "`int8` would be taken");
}

#[test]
fn an_unknown_name_gets_near_ones() {
    let check = |text: &str, near: &str| {
        let refused = planner().1.explain(&about(text)).unwrap_err();
        assert_eq!(refused.code(), "UNKNOWN_NAME");
        assert!(refused.hint().contains(near), "{text}: {}", refused.hint());
    };
    check("XINT9", "`XINT8`");
    check("smothquant", "`SmoothQuant`");
    check("blorp", "quantplan explain");
    check("?", "quantplan explain");
}

#[test]
fn everything_that_has_a_name_can_be_explained() {
    let (_folder, planner) = planner();
    let c = Catalogue;
    let mut names: Vec<&str> = Vec::new();
    names.extend(c.presets().ids());
    names.extend(c.methods().ids());
    names.extend(c.algorithms().ids());
    names.extend(c.options().ids());
    names.extend(c.targets().ids());
    names.extend(c.devices().ids());
    names.extend(c.npu_ops().ids());
    names.extend(c.releases().ids());
    names.extend(c.skills().ids());
    names.extend(c.recoveries().ids());
    names.extend(c.topics().ids());
    names.extend(c.schemes().ids());
    names.extend(c.torch_algorithms().ids());
    names.extend(c.families().ids());
    names.extend(c.entry_points().ids());
    names.extend(c.engines().ids());
    names.extend(c.prequantized().ids());
    names.extend(rows::all().map(|row| row.id));
    names.extend(quantplan::rules::RULES.iter().map(|rule| rule.id));
    for name in names {
        let reply = planner.explain(&about(name)).unwrap();
        assert_eq!(reply.id, name);
        assert!(reply.facts.is_object() && !reply.markdown.is_empty() && !reply.sources.is_empty());
    }
}

#[test]
fn topics_are_sound() {
    let mut defects = Vec::new();
    for topic in Catalogue.topics().all() {
        let id = topic.id();
        if topic.cases.is_empty() || topic.asked.is_empty() {
            defects.push(format!("{id}: lacks cases or questions"));
        }
        for name in topic.cases.iter().flat_map(|case| &case.take) {
            match planner().1.explain(&about(name)) {
                Ok(reply) if Some(reply.id.as_str()) == name.rsplit(':').next() => {}
                _ => defects.push(format!("{id}: `{name}` is no name")),
            }
        }
        for row in &topic.decisions {
            if rows::find_any(row.as_str()).is_none() {
                defects.push(format!("{id}: there is no decision `{row}`"));
            }
        }
        for phrase in &topic.asked {
            if *phrase != phrase.to_lowercase() || phrase.contains(['-', '.', '/']) {
                defects.push(format!("{id}: `{phrase}` finds nothing"));
            }
        }
    }
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}

#[test]
fn answers_read_well() {
    insta::assert_snapshot!("preset", explain("XINT8").markdown);
    insta::assert_snapshot!("two_presets", compare("XINT8", "A8W8").markdown);
    insta::assert_snapshot!(
        "two_algorithms",
        explain("should I use AdaRound or AdaQuant").markdown
    );
    insta::assert_snapshot!("topic", explain("calibration method for Ryzen AI").markdown);
    insta::assert_snapshot!("target", explain("npu_cnn").markdown);
    insta::assert_snapshot!("option", explain("SmoothAlpha").markdown);
    insta::assert_snapshot!("op", explain("Sigmoid").markdown);
    insta::assert_snapshot!("scheme", explain("mxfp4").markdown);
    insta::assert_snapshot!("two_schemes", compare("fp8", "ptpc_fp8").markdown);
    insta::assert_snapshot!("torch_algorithm", explain("smoothquant").markdown);
    insta::assert_snapshot!("family", explain("qwen3_moe").markdown);
    insta::assert_snapshot!("entry_point", explain("quantize_quark.py").markdown);
    insta::assert_snapshot!("engine", explain("sglang").markdown);
    insta::assert_snapshot!("quantized_source", explain("source:fp8").markdown);
    insta::assert_snapshot!("skill", explain("quark-onnx-ptq").markdown);
}

#[test]
fn a_model_or_a_session_says_what_it_means_there() {
    let (folder, planner) = planner();
    let model = folder.path().join("a_*b*|c.onnx");
    std::fs::write(&model, onnx_fixtures::small_cnn()).unwrap();
    let with_model = |id: &str| Arguments { model_path: Some(model.clone()), ..about(id) };
    for id in ["XINT8", "MinMax", "AdaRound", "npu_cnn", "Conv", "preset", "XINT8 vs A8W8", "STX"] {
        let reply = planner.explain(&with_model(id)).unwrap();
        assert!(reply.markdown.contains("**For this model** (`"), "{}", reply.markdown);
        assert!(reply.markdown.contains("/a_*b*\\|c.onnx`, cnn, opset"), "{}", reply.markdown);
    }
    let preset = planner.explain(&with_model("A8W8")).unwrap().markdown;
    assert!(
        preset.contains("On `cpu` `A8W8` would be taken: nothing speaks against it"),
        "{preset}"
    );
    assert!(preset.contains("On `npu_cnn` `A8W8` would not be taken, but `XINT8`"), "{preset}");
    let conv = planner.explain(&with_model("Conv")).unwrap().markdown;
    assert!(conv.contains("The model has 2 of them"), "{conv}");

    let proposed = planner
        .propose(&quantplan::planner::propose::Arguments {
            model_path: Some(model.clone()),
            ..Default::default()
        })
        .unwrap();
    let with_session = Arguments { session_id: proposed.session_id, ..about("XINT8") };
    let reply = planner.explain(&with_session).unwrap();
    assert!(reply.markdown.contains("**For this model**"), "{}", reply.markdown);
    let both = Arguments { model_path: Some(model), ..with_session };
    assert_eq!(planner.explain(&both).unwrap_err().code(), "BAD_ARGUMENTS");
}

#[test]
fn an_address_of_nothing_is_no_question() {
    for address in ["scheme:XINT8", "foo:mxfp4", "preset:fp8"] {
        let refused = planner().1.explain(&about(address)).unwrap_err();
        assert_eq!(refused.code(), "UNKNOWN_NAME", "{address}");
    }
}

//! The Hugging Face intake over good, bad, broken and real models.

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use quantplan::facts::AnalysisStatus;
use quantplan::facts::torch::{
    Exactness, LinearKind, LinearModule, Modality, Modules, Role, TorchFacts,
};
use quantplan::intake::hf::{self, TorchModel};
use quantplan::intake::safetensors::{Limits, Reader};
use quantplan::intake::{self, AnyModel, IntakeError};
use serde_json::{Value, json};

use crate::onnx_fixtures;
use crate::torch_fixtures as make;

fn read(path: &Path) -> Result<TorchModel, IntakeError> {
    hf::read(path, &Limits::default())
}

fn model(config: &Value, tensors: &[make::Tensor]) -> TorchModel {
    read(make::folder(config, tensors).path()).unwrap()
}

fn facts(model: &TorchModel) -> &TorchFacts {
    model.analysis.model.torch_specific.as_ref().unwrap()
}

fn modules(model: &TorchModel) -> &Modules {
    model.modules.as_ref().unwrap()
}

fn linear<'a>(model: &'a TorchModel, name: &str) -> &'a LinearModule {
    let all = &modules(model).linears;
    all.iter().find(|linear| linear.name == name).unwrap_or_else(|| panic!("no `{name}`"))
}

fn shape(model: &TorchModel, name: &str) -> (u64, u64, u64) {
    let linear = linear(model, name);
    (linear.stacked, linear.out_features, linear.in_features)
}

fn is_complete(model: &TorchModel) -> bool {
    model.analysis.analysis_status == AnalysisStatus::Complete
}

fn has_risk(model: &TorchModel, text: &str) -> bool {
    model.analysis.risks.iter().any(|risk| risk.message.contains(text))
}

fn check_risk(model: &TorchModel, text: &str) {
    assert!(has_risk(model, text), "no risk says `{text}`: {:#?}", model.analysis.risks);
}

fn explain(error: &IntakeError) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{}: {error}{cause}", error.code())
}

/// With the names of the linear modules sorted, because files and layers have another order.
fn sorted(modules: &Modules) -> Vec<LinearModule> {
    let mut linears = modules.linears.clone();
    linears.sort_by(|a, b| a.name.cmp(&b.name));
    linears
}

fn schema() -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/schemas/quark-0.13/model_analysis.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn check_written(model: &TorchModel, name: &str) {
    let written = serde_json::to_value(&model.analysis).unwrap();
    assert!(schema().is_valid(&written), "`{name}` against the schema of the wheel");
    let back = serde_json::from_value(written).unwrap();
    assert_eq!(model.analysis, back, "`{name}` read back");
}

#[test]
fn a_dense_model_with_weights_is_known_exactly() {
    let mut model = model(&make::llama(), &make::llama_tensors());
    assert!(is_complete(&model));
    let found = modules(&model);
    assert_eq!(found.exactness, Exactness::Weights);
    assert_eq!(found.linears.len(), 2 * 7 + 1);
    assert_eq!(shape(&model, "model.layers.1.self_attn.k_proj"), (1, 32, 64));
    assert_eq!(linear(&model, "model.layers.0.mlp.down_proj").role, Role::Mlp);
    assert_eq!(linear(&model, "lm_head").role, Role::Head);
    assert_eq!(found.other_bytes["embeddings"], 96 * 64 * 2);
    let linears: u64 = found.linears.iter().map(|linear| linear.bytes).sum();
    assert_eq!(found.total_bytes, linears + found.other_bytes.values().sum::<u64>());
    check_written(&model, "llama");
    model.analysis.model.model_path = "llama".to_owned();
    insta::assert_json_snapshot!("torch_analysis_llama", model.analysis);
}

#[test]
fn the_config_alone_gives_the_modules_that_the_weights_have() {
    for (config, tensors) in
        [(make::llama(), make::llama_tensors()), (make::qwen_moe(), make::qwen_moe_tensors())]
    {
        let exact = model(&config, &tensors);
        let by_config = model(&config, &[]);
        assert_eq!(modules(&by_config).exactness, Exactness::Config);
        assert_eq!(sorted(modules(&exact)), sorted(modules(&by_config)));
    }
}

#[test]
fn experts_routers_and_dense_layers_are_told_apart() {
    let model = model(&make::qwen_moe(), &make::qwen_moe_tensors());
    assert_eq!(linear(&model, "model.layers.1.mlp.gate").role, Role::Router);
    assert_eq!(linear(&model, "model.layers.0.mlp.gate_proj").role, Role::Mlp);
    assert_eq!(linear(&model, "model.layers.1.mlp.experts.3.gate_proj").role, Role::Expert);
    let experts = facts(&model).experts.clone().unwrap();
    assert_eq!((experts.routed, experts.per_token, experts.layers), (Some(4), Some(2), Some(1)));
    let targets = &model.analysis.quantization_targets;
    assert_eq!(targets.has_non_linear_experts, Some(false));
    assert_eq!(targets.needs_moe_preparation, Some(true));
    check_risk(&model, "mixture of experts");
}

#[test]
fn a_layer_called_gate_is_no_router_without_experts() {
    let mut tensors = make::llama_tensors();
    tensors.push(make::tensor("model.layers.0.att.gate.weight", "BF16", &[64, 64]));
    let model = model(&make::llama(), &tensors);
    assert_ne!(linear(&model, "model.layers.0.att.gate").role, Role::Router);
}

#[test]
fn stacked_experts_are_found_in_either_order_of_dimensions() {
    let check = |first: [u64; 3], last: [u64; 3]| {
        let mut tensors = make::qwen_moe_tensors();
        tensors.retain(|(name, ..)| !name.contains("experts"));
        tensors.push(make::tensor("model.layers.1.mlp.experts.gate_up_proj", "BF16", &first));
        tensors.push(make::tensor("model.layers.1.mlp.experts.down_proj", "BF16", &last));
        let model = model(&make::qwen_moe(), &tensors);
        assert_eq!(shape(&model, "model.layers.1.mlp.experts.gate_up_proj"), (4, 96, 64));
        assert_eq!(shape(&model, "model.layers.1.mlp.experts.down_proj"), (4, 64, 48));
        let stacked = linear(&model, "model.layers.1.mlp.experts.down_proj");
        assert_eq!((stacked.kind, stacked.role), (LinearKind::StackedExperts, Role::Expert));
        assert_eq!(model.analysis.quantization_targets.has_non_linear_experts, Some(true));
        check_risk(&model, "Experts are fused: 2 tensors of three dimensions");
    };
    check([4, 96, 64], [4, 64, 48]);
    check([4, 64, 96], [4, 48, 64]);
}

#[test]
fn towers_and_projectors_are_no_part_of_the_language_model() {
    let config = json!({
        "architectures": ["TinyForConditionalGeneration"], "model_type": "tiny_vl",
        "text_config": make::llama(), "tie_word_embeddings": true,
        "vision_config": {"model_type": "tiny_vit", "depth": 3, "hidden_size": 32, "intermediate_size": 70},
        "audio_config": {"encoder_layers": 5, "d_model": 24},
    });
    let mut tensors = make::ends("model.language_model", None);
    tensors.extend(make::attention("model.language_model.layers.0", 16));
    for name in [
        "model.visual.blocks.0.attn.qkv",
        "model.multi_modal_projector.linear_1",
        "audio_tower.fc1",
    ] {
        tensors.push(make::tensor(&format!("{name}.weight"), "BF16", &[96, 32]));
    }
    tensors.push(make::tensor("model.visual.patch_embed.proj.weight", "BF16", &[32, 3, 2, 2]));
    let model = model(&config, &tensors);
    assert_eq!(facts(&model).text_config_key.as_deref(), Some("text_config"));
    assert_eq!(facts(&model).text_model_type.as_deref(), Some("llama"));
    assert_eq!(model.analysis.model.num_hidden_layers, Some(2));
    let towers = &facts(&model).towers;
    assert_eq!(towers.len(), 2);
    assert_eq!((towers[0].modality, towers[0].layers), (Modality::Vision, Some(3)));
    assert_eq!((towers[1].modality, towers[1].layers), (Modality::Audio, Some(5)));
    assert_eq!(linear(&model, "model.visual.blocks.0.attn.qkv").role, Role::Vision);
    assert_eq!(linear(&model, "model.multi_modal_projector.linear_1").role, Role::Projector);
    assert_eq!(linear(&model, "audio_tower.fc1").role, Role::Audio);
    assert_eq!(modules(&model).other_bytes["convolutions"], 32 * 3 * 4 * 2);
    // No weight for the head, and the config says why.
    let head = linear(&model, "lm_head");
    assert_eq!((head.kind, head.bytes, head.out_features), (LinearKind::Tied, 0, 96));
    assert_eq!(facts(&model).has_head_weight, Some(false));
    assert_eq!(model.analysis.quantization_targets.exclude_defaults, ["lm_head"]);
    check_risk(&model, "multimodal (`vision_config`, `audio_config`)");
    check_risk(&model, "share one weight");
    check_written(&model, "vl");
}

#[test]
fn draft_layers_are_told_by_their_number_or_name() {
    let mut config = make::llama();
    config["num_nextn_predict_layers"] = json!(1);
    let mut tensors = make::llama_tensors();
    tensors.extend(make::attention("model.layers.2", 16));
    tensors.push(make::tensor("model.layers.2.eh_proj.weight", "BF16", &[64, 128]));
    tensors.push(make::tensor("mtp.fc.weight", "BF16", &[64, 128]));
    let model = model(&config, &tensors);
    for name in ["model.layers.2.eh_proj", "model.layers.2.self_attn.q_proj", "mtp.fc"] {
        assert_eq!(linear(&model, name).role, Role::Draft, "`{name}`");
    }
    assert_eq!(linear(&model, "model.layers.1.self_attn.q_proj").role, Role::Attention);
    assert_eq!(facts(&model).mtp_layers, Some(1));
    check_risk(&model, "1 multi-token-prediction layers");
}

#[test]
fn draft_layers_without_weights_are_called_as_their_family_calls_them() {
    let check = |model_type: &str, more: Value, expected: Option<&str>| {
        let mut config = make::llama();
        config["model_type"] = json!(model_type);
        config["num_nextn_predict_layers"] = json!(1);
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        let model = model(&config, &[]);
        assert_eq!(modules(&model).draft.as_deref(), expected, "{model_type}");
    };
    check("llama", json!({}), None);
    check("mimo", json!({"head_dim": 8}), Some("model.mtp_layers.*"));
    let layers = make::llama()["num_hidden_layers"].as_u64().unwrap();
    let latent = json!({"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4,
        "v_head_dim": 4});
    check("deepseek_v3", latent, Some(&format!("model.layers.{layers}.*")));
}

#[test]
fn blocks_that_differ_say_how_many_of_them_attend() {
    let check = |groups: [u64; 2], heads: Value| {
        let mut config = make::llama();
        config["model_type"] = json!("nemotron-nas");
        config["num_attention_heads"] = json!(64);
        config["num_key_value_heads"] = Value::Null;
        config["block_configs"] = json!([
            {"attention": {"n_heads_in_group": groups[0]}},
            {"attention": {"n_heads_in_group": groups[1]}},
            {"attention": {"n_heads_in_group": null, "no_op": true}},
            {"attention": {"n_heads_in_group": null, "replace_with_linear": true}},
        ]);
        let facts = serde_json::to_value(facts(&model(&config, &[]))).unwrap();
        assert_eq!(facts["layer_kinds"], json!({"attention": 2, "linear": 1, "no_op": 1}));
        assert_eq!(facts["num_key_value_heads"], heads, "groups of {groups:?}");
    };
    check([8, 8], json!(8));
    check([8, 16], Value::Null);
}

#[test]
fn quantization_is_found_in_every_place_it_hides() {
    let check = |change: fn(&mut Value), side: Option<(&str, Value)>, expected: Value| {
        let mut config = make::llama();
        change(&mut config);
        let folder = make::folder(&config, &[]);
        if let Some((name, text)) = side {
            make::write(folder.path(), name, text.to_string());
        }
        let model = read(folder.path()).unwrap();
        assert_eq!(serde_json::to_value(&facts(&model).quantization).unwrap(), expected);
        assert_eq!(has_risk(&model, "quantized already"), expected != json!([]));
        check_written(&model, "quantized");
    };
    check(|_| {}, None, json!([]));
    check(|config| config["quantization_config"] = Value::Null, None, json!([]));
    check(
        |config| {
            config["quantization_config"] = json!({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128],
                "modules_to_not_convert": ["lm_head"]});
        },
        None,
        json!([{"found_in": "quantization_config", "method": "fp8", "format": "e4m3", "weight_bits": 8,
            "block_size": [128, 128], "excluded_count": 1, "excluded": ["lm_head"]}]),
    );
    check(
        |config| {
            config["text_config"] = json!({"hidden_size": 8, "quantization_config": {"quant_method": "compressed-tensors",
                "format": "pack-quantized", "ignore": ["a", "b"],
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "type": "int"}}}}});
        },
        None,
        json!([{"found_in": "text_config.quantization_config", "method": "compressed-tensors",
            "format": "pack-quantized", "weight_bits": 4, "group_size": 32, "excluded_count": 2,
            "excluded": ["a", "b"]}]),
    );
    check(
        |config| {
            config["quantization_config"] = json!({"quant_algo": "FP8", "kv_cache_scheme": "FP8",
                "producer": {"name": "modelopt"}});
        },
        None,
        json!([{"found_in": "quantization_config", "method": "modelopt", "format": "FP8", "weight_bits": 8,
            "kv_cache": "FP8"}]),
    );
    check(
        |config| {
            config["quantization_config"] = json!({"quant_method": "quark", "exclude": ["lm_head"],
                "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32}}});
        },
        None,
        json!([{"found_in": "quantization_config", "method": "quark", "format": "fp4", "weight_bits": 4,
            "group_size": 32, "excluded_count": 1, "excluded": ["lm_head"]}]),
    );
    check(
        |config| config["compression_config"] = json!({"format": "int-quantized"}),
        None,
        json!([{"found_in": "compression_config", "format": "int-quantized"}]),
    );
    check(
        |config| config["quantization"] = json!({"bits": 4, "group_size": 64}),
        None,
        json!([{"found_in": "quantization", "weight_bits": 4, "group_size": 64}]),
    );
    check(
        |config| {
            config["quantization_config"] =
                json!({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})
        },
        None,
        json!([{"found_in": "quantization_config", "format": "nf4", "weight_bits": 4}]),
    );
    check(
        |_| {},
        Some((
            "hf_quant_config.json",
            json!({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4",
                "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": []}}),
        )),
        json!([{"found_in": "hf_quant_config.json", "method": "modelopt", "format": "NVFP4", "weight_bits": 4,
            "group_size": 16, "kv_cache": "FP8", "excluded_count": 0}]),
    );
}

#[test]
fn packed_weights_give_the_shape_before_packing() {
    let check =
        |tensors: &[(&str, &'static str, &[u64])], quantization: Value, expected: (u64, u64)| {
            let mut config = make::llama();
            config["quantization_config"] = quantization;
            let name = |end: &str| format!("model.layers.0.mlp.up_proj{end}");
            let tensors: Vec<make::Tensor> = tensors
                .iter()
                .map(|(end, dtype, shape)| make::tensor(&name(end), dtype, shape))
                .collect();
            let model = model(&config, &tensors);
            let (_, out, into) = shape(&model, &name(""));
            assert_eq!((out, into), expected, "{tensors:?}");
            assert_eq!(linear(&model, &name("")).kind, LinearKind::Packed);
            let seen = facts(&model).quantization.last().unwrap();
            assert_eq!(seen.found_in, "weights");
        };
    let bits = |bits: u64| json!({"bits": bits, "group_size": 32});
    let gptq: &[(&str, &'static str, &[u64])] = &[
        (".qweight", "I32", &[8, 160]),
        (".scales", "F16", &[2, 160]),
        (".qzeros", "I32", &[2, 20]),
    ];
    check(gptq, bits(4), (160, 64));
    check(&[(".qweight", "I32", &[64, 20]), (".scales", "F16", &[2, 160])], bits(4), (160, 64));
    check(
        &[(".weight_packed", "I32", &[160, 8]), (".weight_scale", "BF16", &[160, 2])],
        bits(4),
        (160, 64),
    );
    check(
        &[(".weight", "U8", &[160, 32]), (".weight_scale", "F8_E4M3", &[160, 4])],
        bits(4),
        (160, 64),
    );
    check(&[(".weight", "U8", &[160, 48]), (".weight_scale", "U8", &[160, 2])], bits(6), (160, 64));
    check(
        &[("_blocks", "U8", &[4, 160, 2, 16]), ("_scales", "U8", &[4, 160, 2])],
        bits(4),
        (160, 64),
    );
}

#[test]
fn weights_of_eight_bits_are_evidence_without_a_word_in_the_config() {
    let mut tensors = make::llama_tensors();
    tensors[4].1 = "F8_E4M3";
    tensors.push(make::tensor("model.layers.0.self_attn.q_proj.weight_scale_inv", "F32", &[1, 1]));
    let model = model(&make::llama(), &tensors);
    let seen = &facts(&model).quantization[0];
    assert_eq!(seen.evidence["float8_e4m3fn"], 1);
    assert_eq!(seen.evidence[".weight_scale_inv"], 1);
    check_risk(&model, "quantized already: `weights` says");
}

#[test]
fn shards_and_their_index_must_agree() {
    let all = make::llama_tensors();
    let (first, second) = all.split_at(9);
    let folder = make::folder(&make::llama(), &[]);
    let path = folder.path();
    make::shards(path, &[first, second]);
    let whole = read(path).unwrap();
    assert!(is_complete(&whole), "{:#?}", whole.analysis.risks);
    assert_eq!(modules(&whole).exactness, Exactness::Weights);
    let single = model(&make::llama(), &all);
    assert_eq!(sorted(modules(&single)), sorted(modules(&whole)));

    let check = |text: &str, exactness: Exactness| {
        let model = read(path).unwrap();
        check_risk(&model, text);
        assert!(!is_complete(&model), "{text}");
        assert_eq!(modules(&model).exactness, exactness, "{text}");
    };
    // A tensor moves: the index places it where it is not.
    let (name_1, name_2) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
    make::write(path, name_1, make::safetensors(&all[..8]));
    make::write(path, name_2, make::safetensors(&all[8..]));
    check("places 1 tensors where they are not", Exactness::Config);
    make::write(path, name_1, make::safetensors(&all[..10]));
    make::write(path, name_2, make::safetensors(second));
    check("1 tensors are in two files", Exactness::Weights);
    let mut more = first.to_vec();
    more.push(make::tensor("extra.weight", "BF16", &[2, 2]));
    make::write(path, name_1, make::safetensors(&more));
    check("does not list 1 tensors, for example `extra.weight`", Exactness::Weights);
    make::write(path, name_1, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
    check("`model-00001-of-00002.safetensors` is a Git LFS pointer", Exactness::Config);
    fs::remove_file(path.join(name_1)).unwrap();
    check("`model-00001-of-00002.safetensors` is missing", Exactness::Config);
    let stored = facts(&read(path).unwrap()).weights.clone().unwrap();
    assert_eq!(stored.unusable_files, [name_1]);
    assert_eq!(stored.tensor_bytes, facts(&whole).weights.as_ref().unwrap().tensor_bytes);
    // Without the index the numbering says it.
    fs::remove_file(path.join("model.safetensors.index.json")).unwrap();
    check("`model-00001-of-00002.safetensors` is missing", Exactness::Config);
    make::write(path, name_1, make::safetensors(first));
    assert!(is_complete(&read(path).unwrap()));
    make::write(path, "model.safetensors.index.json", "{\"weight_map\": 3}");
    check("is no JSON with a weight_map", Exactness::Weights);
    let outside = json!({"weight_map": {"a": "../model.safetensors", "b": "/etc/passwd"}});
    make::write(path, "model.safetensors.index.json", outside.to_string());
    check("names `../model.safetensors`, which is not in the folder", Exactness::Config);
}

#[test]
fn every_fault_of_a_header_is_named() {
    let check = |bytes: &[u8], expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        make::write(folder.path(), "a.safetensors", bytes);
        let path = folder.path().join("a.safetensors");
        let told = match read(&path) {
            Ok(model) => {
                assert!(!is_complete(&model));
                model
                    .analysis
                    .risks
                    .into_iter()
                    .map(|risk| risk.message)
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            Err(error) => explain(&error),
        };
        assert!(told.contains(expected), "`{expected}` is not in: {told}");
    };
    let one = |entry: &str, data: usize| make::file(&format!("{{\"a\":{entry}}}"), data);
    let good = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    check(b"1234", "MODEL_MALFORMED");
    check(b"1234", "4 bytes, too few for a header");
    check(&[255; 16], "the header ends at byte 18446744073709551615, the file at 16");
    check(&make::file("{\"a\": tru}", 0), "not JSON at byte 17");
    check(&make::file("{\"\u{0}\":1}", 0), "not JSON at byte");
    check(&make::file("{\"a\":{}}", 0), "not a table of tensors at byte");
    check(&make::file("[]", 0), "not a table of tensors");
    check(
        &one(r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}"#, 8),
        "not a table of tensors",
    );
    let many = format!(r#"{{"dtype":"F32","shape":[{}0],"data_offsets":[0,0]}}"#, "1,".repeat(40));
    check(&one(&many, 0), "not a table of tensors");
    let mut broken = make::file("{\"a\":1}", 0);
    broken[10] = 0xff;
    check(&broken, "not JSON at byte");
    check(&one(good, 7), "the tensors end at byte");
    check(&one(good, 7), "it is cut off");
    check(&one(good, 9), "the tensors end at byte");
    check(
        &one(r#"{"dtype":"F32","shape":[3],"data_offsets":[0,8]}"#, 8),
        "`a` has 8 bytes, its shape and type need 12",
    );
    check(
        &one(r#"{"dtype":"F32","shape":[2],"data_offsets":[8,0]}"#, 0),
        "`a` begins at 8 and ends at 0",
    );
    check(
        &one(r#"{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}"#, 8),
        "element type that is not known",
    );
    check(
        &one(r#"{"dtype":"F32","shape":[2],"data_offsets":[4,12]}"#, 12),
        "4 bytes before tensor `a`",
    );
    let huge = r#"{"dtype":"F32","shape":[18446744073709551615,9],"data_offsets":[0,18446744073709551615]}"#;
    check(&one(huge, 8), "it is cut off");
    check(&make::file(&format!("{{\"a\":{good},\"a\":{good}}}"), 8), "`a` is there twice");
    check(&make::file(&format!("{{\"a\":{good},\"b\":{good}}}"), 8), "`a` and `b` overlap");
}

#[test]
fn headers_beyond_the_limit_are_named_and_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let file = fs::File::create(&path).unwrap();
    file.set_len(300_000_000).unwrap();
    std::io::Write::write_all(&mut &file, &200_000_000_u64.to_le_bytes()).unwrap();
    let error = read(&path).unwrap_err();
    assert_eq!(error.code(), "MODEL_LIMIT");
    assert!(explain(&error).contains("200000000 bytes, over 100000000"), "{}", explain(&error));
    let bytes = make::safetensors(&make::llama_tensors());
    let mut reader = Reader::new(Limits { work: 2000, ..Limits::default() });
    let length = bytes.len() as u64;
    let results: Vec<bool> =
        (0..9).map(|_| reader.read(Cursor::new(&bytes), length).is_ok()).collect();
    assert!(results.contains(&false), "{results:?}");
}

#[test]
fn files_cut_off_anywhere_are_refused_or_named() {
    let bytes = make::safetensors(&make::qwen_moe_tensors()[..6]);
    let whole = bytes.len() as u64;
    for end in 0..bytes.len() {
        let read = Reader::new(Limits::default()).read(Cursor::new(&bytes[..end]), end as u64);
        assert!(read.is_err() || !read.unwrap().defects.is_empty(), "cut at {end}");
        // A file that shrinks while it is read.
        let _ = Reader::new(Limits::default()).read(Cursor::new(&bytes[..end]), whole);
    }
}

#[test]
fn flipped_bits_never_panic() {
    let folder = make::folder(&make::qwen_moe(), &[]);
    let mut bytes = make::safetensors(&make::qwen_moe_tensors()[..6]);
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for at in 0..header {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            let length = bytes.len() as u64;
            let _ = Reader::new(Limits::default()).read(Cursor::new(&bytes), length);
            bytes[at] ^= 1 << bit;
        }
        if at % 16 == 0 {
            bytes[at] ^= 4;
            make::write(folder.path(), "model.safetensors", &bytes);
            read(folder.path()).unwrap();
            bytes[at] ^= 4;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_headers_and_configs_never_panic(
        text in "[\\[\\]{}:,\"a-z0-9 .-]{0,200}",
        shape in proptest::collection::vec(any::<u64>(), 0..5),
        (begin, end) in (any::<u64>(), any::<u64>()),
    ) {
        let entry = json!({"dtype": "U8", "shape": shape, "data_offsets": [begin, end]});
        let header = json!({"model.layers.0.mlp.experts.w": entry, "lm_head.weight": entry}).to_string();
        for bytes in [make::file(&text, 8), make::file(&header, 64)] {
            let folder = make::folder(&make::qwen_moe(), &[]);
            make::write(folder.path(), "model.safetensors", &bytes);
            read(folder.path()).unwrap();
        }
    }

    #[test]
    fn configs_of_any_numbers_never_panic(numbers in proptest::collection::vec(any::<u64>(), 16)) {
        for model_type in ["llama", "qwen3_moe", "deepseek_v32", "chatglm", "gptj", "mixtral"] {
            let mut config = make::qwen_moe();
            config["model_type"] = json!(model_type);
            let keys = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                "num_key_value_heads", "head_dim", "vocab_size", "num_experts", "moe_intermediate_size",
                "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
                "decoder_sparse_step", "n_shared_experts"];
            for (key, number) in keys.into_iter().zip(&numbers) {
                // Small ones too: zero is what divides.
                config[key] = json!(if number % 3 == 0 { number % 4 } else { *number });
            }
            let folder = make::folder(&config, &[]);
            read(folder.path()).unwrap();
        }
    }
}

#[test]
fn folders_that_are_no_plain_model_say_so() {
    let with = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            make::write(folder.path(), name, text);
        }
        folder
    };
    let config = make::llama().to_string();
    let check = |files: &[(&str, &str)], text: &str| {
        let folder = with(files);
        let model = read(folder.path()).unwrap();
        assert!(!is_complete(&model), "{text}");
        check_risk(&model, text);
        check_written(&model, text);
    };
    check(
        &[("config.json", &config), ("a.gguf", "GGUF")],
        "GGUF files (`a.gguf`), which Quark cannot load",
    );
    check(&[("a.gguf", "GGUF")], "No config.json");
    check(
        &[("config.json", &config), ("pytorch_model.bin", "PK")],
        "pickled files (`pytorch_model.bin`)",
    );
    check(&[("model_index.json", "{}")], "diffusers pipeline");
    check(&[("adapter_config.json", "{}"), ("adapter_model.safetensors", "")], "adapter (LoRA)");
    check(
        &[("config.json", "{}")],
        "does not state `model_type`, `num_hidden_layers`, `hidden_size`",
    );
    check(
        &[("config.json", "{\"_class_name\": \"FluxTransformer2DModel\"}")],
        "diffusers component",
    );
    check(
        &[("config.json", &config), ("hf_quant_config.json", "{")],
        "`hf_quant_config.json` cannot be read",
    );
    let folder = with(&[("config.json", &config)]);
    let model = read(folder.path()).unwrap();
    check_risk(&model, "No weights are in the folder");
    check_risk(&model, "No tokenizer files");
    assert_eq!(
        model.analysis,
        read(&folder.path().join("config.json"))
            .map(|mut one| {
                one.analysis.model.model_path = folder.path().display().to_string();
                one.analysis
            })
            .unwrap()
    );
}

#[test]
fn one_entry_reads_both_kinds() {
    let torch = make::folder(&make::llama(), &make::llama_tensors());
    let path = torch.path();
    let is_torch = |path: &Path| matches!(intake::read(path), Ok(AnyModel::Torch(_)));
    assert!(is_torch(path));
    assert!(is_torch(&path.join("config.json")));
    assert!(is_torch(&path.join("model.safetensors")));
    make::write(path, "model.onnx", onnx_fixtures::mlp());
    let error = intake::read(path).unwrap_err();
    assert_eq!(error.code(), "MODEL_AMBIGUOUS");
    assert!(
        error.to_string().contains("(`model.onnx`) and a PyTorch one (`model.safetensors`)"),
        "{error}"
    );
    assert!(matches!(intake::read(&path.join("model.onnx")), Ok(AnyModel::Onnx(_))));
    fs::remove_file(path.join("model.safetensors")).unwrap();
    // What optimum exports: a config beside the graph.
    assert!(matches!(intake::read(path), Ok(AnyModel::Onnx(_))));
    let code = |path: &str| intake::read(Path::new(path)).unwrap_err().code();
    assert_eq!(code("Qwen/Qwen3-8B"), "MODEL_NOT_LOCAL");
    assert_eq!(code("models/nothing.onnx"), "MODEL_NOT_FOUND");
    assert_eq!(code("./Qwen/Qwen3-8B"), "MODEL_NOT_FOUND");
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(intake::read(empty.path()).unwrap_err().code(), "MODEL_NOT_FOUND");
    make::write(empty.path(), "config.json", "[1, 2]");
    assert_eq!(intake::read(empty.path()).unwrap_err().code(), "MODEL_NOT_CONFIG");
    make::write(empty.path(), "config.json", "{\"a\": 1, // comment\n}");
    let error = intake::read(empty.path()).unwrap_err();
    assert!(explain(&error).contains("is not JSON at line 1, column 10"), "{}", explain(&error));
}

#[test]
fn the_digest_changes_with_structure_and_not_with_weights() {
    let digest = |config: &Value, tensors: &[make::Tensor], weight: u8| {
        let folder = make::folder(config, tensors);
        let path = folder.path().join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() = weight;
        fs::write(&path, bytes).unwrap();
        facts(&read(folder.path()).unwrap()).structural_digest.clone().unwrap()
    };
    let (config, tensors) = (make::llama(), make::llama_tensors());
    let base = digest(&config, &tensors, 0);
    assert_eq!(base, digest(&config, &tensors, 9), "another weight");
    assert_ne!(base, digest(&config, &tensors[1..], 0), "a tensor less");
    let mut other = config.clone();
    other["vocab_size"] = json!(97);
    assert_ne!(base, digest(&other, &tensors, 0), "another config");
}

fn corpus() -> Option<PathBuf> {
    let Some(corpus) = std::env::var_os("QUANTPLAN_CORPUS") else {
        eprintln!("skipped: QUANTPLAN_CORPUS is not set");
        return None;
    };
    Some(Path::new(&corpus).join("hf"))
}

#[test]
fn every_real_config_gives_an_analysis_or_says_why_not() {
    let Some(folder) = corpus() else { return };
    let validator = schema();
    let mut table = String::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "json") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let model = read(&path).unwrap_or_else(|error| panic!("`{name}`: {}", explain(&error)));
        let written = serde_json::to_value(&model.analysis).unwrap();
        assert!(validator.is_valid(&written), "`{name}`");
        let says_why =
            ["does not state `", "are not counted"].iter().any(|text| has_risk(&model, text));
        assert_ne!(is_complete(&model), says_why, "`{name}`: {:#?}", model.analysis.risks);
        let facts = facts(&model);
        table.push_str(&format!(
            "{name}: {:?} {:?}x{:?} linears {:?} params {:?} experts {:?} mtp {:?} quant {}\n",
            model.analysis.analysis_status,
            model.analysis.model.num_hidden_layers,
            model.analysis.model.hidden_size,
            model.analysis.quantization_targets.linear_layer_count,
            facts.parameters,
            facts.experts.as_ref().map(|one| (one.routed, one.shared, one.per_token, one.layers)),
            facts.mtp_layers,
            facts.quantization.len(),
        ));
    }
    eprintln!("{table}");
    for entry in fs::read_dir(folder.join("hf_quant_config")).unwrap() {
        let model = make::folder(&make::llama(), &[]);
        fs::copy(entry.unwrap().path(), model.path().join("hf_quant_config.json")).unwrap();
        let model = read(model.path()).unwrap();
        let stated = &facts(&model).quantization[0];
        assert!(stated.method.as_deref().is_none_or(|name| name == "modelopt"), "{stated:?}");
        assert!(stated.format.is_some() && stated.weight_bits.is_some(), "{stated:?}");
    }
}

/// Facts read by eye in the configs, as pointers into `model` of the analysis.
#[test]
fn real_configs_give_the_facts_that_people_read_in_them() {
    let Some(folder) = corpus() else { return };
    let check = |name: &str, expected: Value| {
        let model = read(&folder.join(format!("{name}.json"))).unwrap();
        let found = serde_json::to_value(&model.analysis.model).unwrap();
        for (key, expected) in expected.as_object().unwrap() {
            let found = found.get(key).or_else(|| {
                found["torch_specific"].pointer(&format!("/{}", key.replace('.', "/")))
            });
            assert_eq!(found.unwrap_or(&Value::Null), expected, "`{key}` of {name}");
        }
    };
    check(
        "deepseek-ai--DeepSeek-V3",
        json!({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "is_moe": true,
            "trust_remote_code": true, "loading_class": "AutoModelForCausalLM", "dtype": "bfloat16",
            "experts": {"routed": 256, "shared": 1, "per_token": 8, "intermediate_size": 2048,
                "first_dense_layers": 3, "layers": 58},
            "latent_attention": {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
                "qk_nope_head_dim": 128, "v_head_dim": 128},
            "mtp_layers": 1, "parameters": 671025397760_u64, "estimated_size_gb": null,
            "quantization.0.method": "fp8", "quantization.0.block_size": [128, 128]}),
    );
    check(
        "moonshotai--Kimi-K2.5",
        json!({"model_type": "kimi_k25", "text_config_key": "text_config", "text_model_type": "kimi_k2",
            "num_hidden_layers": 61, "experts.routed": 384, "experts.layers": 60, "mtp_layers": 0,
            "towers.0.key": "vision_config", "towers.0.layers": 27, "towers.0.hidden_size": 1152,
            "towers.0.intermediate_size": 4304, "quantization.0.found_in": "text_config.quantization_config",
            "quantization.0.weight_bits": 4, "quantization.0.group_size": 32}),
    );
    check(
        "moonshotai--Kimi-K3",
        json!({"text_model_type": "kimi_linear", "num_hidden_layers": 93, "trust_remote_code": true,
            "layer_kinds": {"full_attention": 24, "linear_attention": 69}, "experts.routed": 896,
            "experts.per_token": 16, "experts.shared": 2, "quantization.0.format": "mxfp4-pack-quantized"}),
    );
    check(
        "Qwen--Qwen3-30B-A3B",
        json!({"num_key_value_heads": 4, "head_dim": 128, "experts.layers": 48, "experts.intermediate_size": 768,
            "quantization": null, "estimated_size_gb": 61.06382336}),
    );
    check(
        "Qwen--Qwen3-30B-A3B-FP8",
        json!({"quantization.0.method": "fp8", "quantization.0.excluded.0": "lm_head",
            "quantization.0.excluded_count": 145, "quantization.0.weight_bits": 8}),
    );
    check(
        "Qwen--Qwen3.5-35B-A3B",
        json!({"model_type": "qwen3_5_moe", "text_model_type": "qwen3_5_moe_text", "mtp_layers": 1,
            "layer_kinds": {"full_attention": 10, "linear_attention": 30}, "experts.shared": 1,
            "experts.shared_intermediate_size": 512, "experts.layers": 40, "towers.0.layers": 27,
            "transformers_version": "4.57.0.dev0", "max_position_embeddings": 262144}),
    );
    check(
        "tfdefault--gemma4",
        json!({"text_model_type": "gemma4_text", "is_moe": false, "experts": null, "towers": null,
            "tie_word_embeddings": true, "head_dim": 256, "loading_class": "Gemma4ForConditionalGeneration"}),
    );
    check(
        "meta-llama--Llama-4-Maverick-17B-128E-Instruct",
        json!({"model_type": "llama4", "text_model_type": "llama4_text", "experts.routed": 128,
            "experts.layers": 24, "experts.per_token": 1, "intermediate_size": 8192}),
    );
    check(
        "tfdefault--mllama",
        json!({"text_model_type": "mllama_text_model", "num_hidden_layers": 40, "towers.0.modality": "vision",
            "layer_kinds": {"cross_attention": 8, "full_attention": 32},
            "loading_class": "MllamaForConditionalGeneration"}),
    );
    check(
        "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4",
        json!({"num_hidden_layers": 108, "layer_kinds": {"attention": 12, "mamba": 48, "moe": 48},
            "experts.routed": 512, "mtp_layers": 1}),
    );
    check(
        "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        json!({"layer_kinds": {"attention": 6, "mamba": 23, "moe": 23}, "experts.layers": 23,
            "experts.shared_intermediate_size": 3712}),
    );
    check(
        "zai-org--GLM-5",
        json!({"model_type": "glm_moe_dsa", "head_dim": 64, "num_hidden_layers": 78, "experts.layers": 75,
            "latent_attention.q_lora_rank": 2048, "mtp_layers": 1, "transformers_version": "5.0.2.dev0"}),
    );
    check(
        "MiniMaxAI--MiniMax-M2.5",
        json!({"experts": {"routed": 256, "shared": 0, "per_token": 8}, "mtp_layers": 3,
            "quantization.0.excluded": ["gate", "e_score_correction_bias", "lm_head"], "dtype": null}),
    );
    check(
        "MiniMaxAI--MiniMax-M3",
        json!({"experts.layers": 57, "experts.first_dense_layers": 3, "experts.intermediate_size": 3072}),
    );
    check(
        "deepseek-ai--DeepSeek-V4-Flash",
        json!({"quantization.1.found_in": "expert_dtype", "quantization.1.weight_bits": 4,
            "latent_attention.q_lora_rank": 1024, "latent_attention.kv_lora_rank": null}),
    );
    check(
        "tfdefault--whisper",
        json!({"num_hidden_layers": 4, "hidden_size": 384, "num_attention_heads": 6, "is_encoder_decoder": true,
            "intermediate_size": 1536, "max_position_embeddings": 448}),
    );
    check(
        "t5-small",
        json!({"num_hidden_layers": 6, "hidden_size": 512, "intermediate_size": 2048, "head_dim": 64}),
    );
    check(
        "tfdefault--bert",
        json!({"num_hidden_layers": 12, "hidden_size": 768, "loading_class": "BertModel"}),
    );
    check(
        "mlc--chatglm",
        json!({"num_hidden_layers": 28, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 65024,
            "intermediate_size": 13696, "max_position_embeddings": 8192}),
    );
    check(
        "mlc--gpt_j",
        json!({"num_hidden_layers": 28, "hidden_size": 4096, "num_attention_heads": 16}),
    );
    check(
        "tfdefault--jamba",
        json!({"layer_kinds": {"attention": 4, "mamba": 28}, "experts.layers": 16}),
    );
    check(
        "mlc--llava",
        json!({"num_hidden_layers": null, "vocab_size": 32064, "towers.0.layers": 24}),
    );
    check(
        "XiaomiMiMo--MiMo-V2-Flash",
        json!({"layer_kinds": {"full_attention": 9, "sliding_attention": 39}, "experts.layers": 47}),
    );
}

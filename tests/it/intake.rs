//! The ONNX intake over good, bad, broken and real files.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use quantplan::facts::{AnalysisStatus, Dim, OnnxFacts, TensorFacts};
use quantplan::intake::IntakeError;
use quantplan::intake::onnx::wire::Limits;
use quantplan::intake::onnx::{self, Model};
use quantplan::vocab::{Architecture, Layout};
use serde_json::Value;

use crate::onnx_fixtures as make;

fn fixtures(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx").join(kind)
}

fn read(path: &Path) -> Result<Model, IntakeError> {
    onnx::read(path, &Limits::default())
}

fn read_bytes(bytes: &[u8]) -> Result<Model, IntakeError> {
    let length = bytes.len() as u64;
    onnx::read_from(Cursor::new(bytes), length, Path::new("m.onnx"), &Limits::default())
}

fn good(name: &str) -> Model {
    read(&fixtures("good").join(name)).unwrap()
}

fn facts(model: &Model) -> &OnnxFacts {
    model.analysis.model.onnx_specific.as_ref().unwrap()
}

/// The error and what caused it, with file names only.
fn explain(error: &IntakeError) -> String {
    let mut text = format!("{}: {error}", error.code());
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!("\n  because {inner}"));
        cause = inner.source();
    }
    text.push_str(&format!("\n  hint: {}", error.hint()));
    text
}

#[test]
fn committed_fixtures_are_what_the_writer_makes() {
    let write = std::env::var_os("QUANTPLAN_WRITE_FIXTURES").is_some();
    let mut made = Vec::new();
    for (kind, files) in [("good", make::good()), ("good", make::data()), ("bad", make::bad())] {
        for (name, bytes) in files {
            let path = fixtures(kind).join(name);
            if write {
                fs::write(&path, &bytes).unwrap();
            }
            assert!(fs::read(&path).is_ok_and(|found| found == bytes), "`{kind}/{name}` is stale");
            made.push(path);
        }
    }
    for kind in ["good", "bad"] {
        for entry in fs::read_dir(fixtures(kind)).unwrap() {
            let path = entry.unwrap().path();
            assert!(made.contains(&path), "nothing makes `{}`", path.display());
        }
    }
}

#[test]
fn every_good_fixture_gives_the_facts_on_record() {
    for (name, _) in make::good() {
        let mut model = good(name);
        model.analysis.model.model_path = name.to_owned();
        insta::assert_json_snapshot!(format!("analysis_{name}"), model.analysis);
    }
}

#[test]
fn every_bad_fixture_is_refused_with_its_place_and_a_way_out() {
    let refusals: Vec<String> = make::bad()
        .iter()
        .map(|(name, bytes)| {
            let length = bytes.len() as u64;
            let source = Cursor::new(bytes);
            let error = onnx::read_from(source, length, Path::new(name), &Limits::default());
            explain(&error.unwrap_err())
        })
        .collect();
    insta::assert_snapshot!("refusals", refusals.join("\n"));
    for (name, _) in make::bad() {
        assert!(read(&fixtures("bad").join(name)).is_err(), "`{name}` on disk");
    }
}

#[test]
fn architectures_are_told_by_what_does_the_work() {
    let check = |name: &str, expected: Architecture| {
        assert_eq!(facts(&good(name)).architecture_guess, Some(expected), "`{name}`");
    };
    check("small_cnn.onnx", Architecture::Cnn);
    check("paddle_style.onnx", Architecture::Cnn);
    check("control_flow.onnx", Architecture::Cnn);
    check("qdq.onnx", Architecture::Cnn);
    check("mlp.onnx", Architecture::Mlp);
    check("external.onnx", Architecture::Mlp);
    check("transformer.onnx", Architecture::Transformer);
    check("lstm.onnx", Architecture::Recurrent);
    check("gru_cell.onnx", Architecture::Recurrent);
    check("odd_values.onnx", Architecture::Unknown);
    check("functions.onnx", Architecture::Unknown);
}

#[test]
fn layouts_are_told_by_the_use_of_the_input() {
    let check = |name: &str, expected: Layout| {
        assert_eq!(facts(&good(name)).input_layout_guess, Some(expected), "`{name}`");
    };
    check("small_cnn.onnx", Layout::Nchw);
    check("byte_image_cnn.onnx", Layout::Nchw);
    check("channels_last_cnn.onnx", Layout::Nhwc);
    check("transformer.onnx", Layout::Unknown);
}

#[test]
fn quantized_models_are_told_from_float_ones() {
    let check = |name: &str, expected: &[(&str, u64)], quark: bool| {
        let model = good(name);
        let facts = facts(&model);
        let expected: BTreeMap<String, u64> =
            expected.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect();
        assert_eq!(facts.quantization_evidence, expected, "`{name}`");
        assert_eq!(facts.has_qdq_already, Some(!expected.is_empty()), "`{name}`");
        assert_eq!(facts.has_quark_custom_ops, Some(quark), "`{name}`");
        let targets = model.analysis.quantization_targets.onnx_specific.unwrap();
        if !expected.is_empty() {
            assert_eq!(targets.preset_candidates, Vec::<String>::new(), "`{name}`");
        }
    };
    check("small_cnn.onnx", &[], false);
    check("byte_image_cnn.onnx", &[], false);
    check("qdq.onnx", &[("DequantizeLinear", 2), ("QuantizeLinear", 1)], false);
    check("int8_weights.onnx", &[("int8 weights", 1)], false);
    check("quark_ops.onnx", &[("BFPQuantizeDequantize", 1)], true);
}

#[test]
fn subgraphs_and_functions_count_in_everything_but_the_top() {
    let model = good("control_flow.onnx");
    let nodes = facts(&model).nodes.unwrap();
    assert_eq!((nodes.top, nodes.all), (1, 5));
    assert_eq!(model.analysis.quantization_targets.linear_layer_count, Some(2));
    assert_eq!(model.graph.nodes().filter(|node| node.is_top()).count(), 1);
    let nodes = facts(&good("functions.onnx")).nodes.unwrap();
    assert_eq!((nodes.top, nodes.all, nodes.functions), (2, 3, 1));
    assert!(facts(&good("functions.onnx")).custom_domains.is_empty());
}

#[test]
fn missing_external_data_makes_the_analysis_partial() {
    let model = good("external_missing.onnx");
    assert_eq!(model.analysis.analysis_status, AnalysisStatus::Partial);
    assert_eq!(facts(&model).external_data_missing, ["absent.onnx_data"]);
    let model = good("external.onnx");
    assert_eq!(model.analysis.analysis_status, AnalysisStatus::Complete);
    assert_eq!(facts(&model).external_data_files, ["external.onnx_data"]);
    assert_eq!(facts(&model).weights.as_ref().unwrap().external_bytes, 512);
}

#[test]
fn external_data_outside_of_the_folder_is_never_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), [0; 4096]).unwrap();
    let inside = folder.path().join("models");
    fs::create_dir(&inside).unwrap();
    fs::write(folder.path().join("up.bin"), [0; 4096]).unwrap();
    fs::write(inside.join("short.bin"), [0; 10]).unwrap();
    let absolute = outside.path().to_str().unwrap();
    let mut locations = vec![absolute, "../up.bin", "..\\up.bin", "short.bin", ""];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outside.path(), inside.join("link.bin")).unwrap();
        locations.push("link.bin");
    }
    for location in locations {
        let path = inside.join("m.onnx");
        fs::write(&path, make::external_at(location)).unwrap();
        let model = read(&path).unwrap();
        assert_eq!(facts(&model).external_data_missing, [location]);
        assert_eq!(model.analysis.analysis_status, AnalysisStatus::Partial);
    }
}

#[test]
fn analyses_are_accepted_by_the_schema_of_the_wheel() {
    let schema = fixtures("../schemas/quark-0.13/model_analysis.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, _) in make::good() {
        let analysis = serde_json::to_value(good(name).analysis).unwrap();
        assert!(validator.is_valid(&analysis), "`{name}`");
        let back = serde_json::from_value(analysis).unwrap();
        assert_eq!(good(name).analysis, back, "`{name}` read back");
    }
}

#[test]
fn digest_changes_with_structure_and_not_with_weights() {
    let digest = |bytes: &[u8]| {
        let model = read_bytes(bytes).unwrap();
        facts(&model).structural_digest.clone().unwrap()
    };
    let one = |weight: f32, name: &str, width: i64, pads: i64| {
        let conv = make::node("Conv", name, &["x", "w"], &["y"])
            .message(5, make::ints_attribute("pads", &[pads; 4]));
        let input = make::value("x", make::FLOAT, &[make::Size::Is(1), make::Size::Is(width)]);
        let graph = make::graph(&[conv], &[make::filled("w", &[width], weight)], &[input], &[]);
        make::model(graph, &[("", 17)]).into_bytes()
    };
    let base = digest(&one(1.0, "a", 8, 1));
    assert_eq!(base, digest(&one(2.0, "a", 8, 1)), "another weight");
    assert_ne!(base, digest(&one(1.0, "b", 8, 1)), "another name");
    assert_ne!(base, digest(&one(1.0, "a", 9, 1)), "another shape");
    assert_ne!(base, digest(&one(1.0, "a", 8, 2)), "another attribute");
    assert_ne!(digest(&make::external_at("a")), digest(&make::external_at("b")), "another file");
}

#[test]
fn folders_are_read_when_they_say_which_model() {
    let folder = tempfile::tempdir().unwrap();
    let code = |path: &Path| read(path).unwrap_err().code();
    assert_eq!(code(folder.path()), "MODEL_NOT_FOUND");
    assert_eq!(code(&folder.path().join("nothing.onnx")), "MODEL_NOT_FOUND");
    fs::write(folder.path().join("a.onnx"), make::mlp()).unwrap();
    let model = read(folder.path()).unwrap();
    assert!(model.analysis.model.model_path.ends_with("a.onnx"));
    fs::write(folder.path().join("b.onnx"), make::mlp()).unwrap();
    let error = read(folder.path()).unwrap_err();
    assert_eq!(error.code(), "MODEL_AMBIGUOUS");
    assert!(error.to_string().ends_with("holds 2 models: `a.onnx`, `b.onnx`"), "{error}");
    fs::write(folder.path().join("model.onnx"), make::mlp()).unwrap();
    assert!(read(folder.path()).unwrap().analysis.model.model_path.ends_with("model.onnx"));
}

#[cfg(unix)]
#[test]
fn devices_are_refused_without_being_opened() {
    assert_eq!(read(Path::new("/dev/zero")).unwrap_err().code(), "MODEL_IO");
}

#[test]
fn models_cut_off_anywhere_are_refused() {
    for (name, bytes) in [make::good(), make::bad()].concat() {
        // After the last structural byte a cut may leave a whole model.
        let whole = read_bytes(&bytes).is_ok();
        for end in 0..bytes.len() {
            let result = read_bytes(&bytes[..end]);
            assert!(result.is_err() || whole, "`{name}` cut at {end}");
        }
        if whole && bytes.len() > 64 {
            assert!(read_bytes(&bytes[..bytes.len() / 2]).is_err(), "`{name}` cut in half");
        }
    }
}

#[test]
fn flipped_bits_never_panic_and_end_soon() {
    for (name, bytes) in [make::good(), make::bad()].concat() {
        let mut bytes = bytes;
        let started = Instant::now();
        for at in 0..bytes.len() {
            let bit = 1 << (at % 8);
            bytes[at] ^= bit;
            let _ = read_bytes(&bytes);
            bytes[at] ^= bit;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "`{name}` takes too long");
    }
}

#[test]
fn nesting_is_limited_and_not_by_the_stack() {
    assert!(read_bytes(&make::nested(64)).is_ok());
    for levels in [65, 200, 5000] {
        let error = read_bytes(&make::nested(levels)).unwrap_err();
        assert_eq!(error.code(), "MODEL_LIMIT", "{levels} levels");
    }
}

#[test]
fn limits_on_text_work_and_memory_hold() {
    let code = |bytes: &[u8], limits: Limits| {
        let length = bytes.len() as u64;
        onnx::read_from(Cursor::new(bytes), length, Path::new("m.onnx"), &limits)
            .unwrap_err()
            .code()
    };
    let bytes = make::small_cnn();
    let limits = Limits::default();
    assert_eq!(code(&bytes, Limits { text: 4, ..limits }), "MODEL_LIMIT");
    assert_eq!(code(&bytes, Limits { work: 100, ..limits }), "MODEL_LIMIT");
    assert_eq!(code(&bytes, Limits { memory: 1000, ..limits }), "MODEL_LIMIT");
    let long = make::node("Relu", &"n".repeat(70_000), &["x"], &["y"]);
    let long = make::model(make::graph(&[long], &[], &[], &[]), &[("", 17)]).into_bytes();
    assert_eq!(code(&long, limits), "MODEL_LIMIT");
}

#[test]
fn lengths_that_a_file_declares_are_not_believed() {
    for field in 1..=26_u64 {
        for length in [u64::MAX, u64::MAX / 2, 1 << 63, u64::from(u32::MAX), 1 << 40] {
            let bytes = make::Message::default()
                .int(1, 8)
                .varint(field << 3 | 2)
                .varint(length)
                .raw(b"some bytes")
                .into_bytes();
            assert_eq!(read_bytes(&bytes).unwrap_err().code(), "MODEL_MALFORMED", "field {field}");
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_bytes(&bytes);
        // The same, after what makes it an ONNX model.
        let graph = make::Message::default().int(1, 8).bytes(7, &bytes).message(8, make::opset("", 17));
        let _ = read_bytes(&graph.into_bytes());
        let node = make::Message::default().bytes(1, &bytes).bytes(5, &bytes).bytes(11, &bytes);
        let _ = read_bytes(&make::model(node, &[("", 17)]).into_bytes());
    }
}

/// The intake against what the `onnx` package says of real models.
///
/// `has_qdq` of the truth means Q/DQ and dynamic quantization in the default domain; ours also counts
/// integer products, QLinear ops and quantized weights, so it must hold whenever theirs does.
#[test]
fn real_models_agree_with_the_onnx_package() {
    let Some(corpus) = std::env::var_os("QUANTPLAN_CORPUS") else {
        eprintln!("skipped: QUANTPLAN_CORPUS is not set");
        return;
    };
    let folder = Path::new(&corpus).join("onnx");
    let lines = fs::read_to_string(folder.join("facts.jsonl")).unwrap();
    for line in lines.lines() {
        let truth: Value = serde_json::from_str(line).unwrap();
        let name = truth["file"].as_str().unwrap();
        let model = read(&folder.join(name)).unwrap();
        agree(name, &model, &truth);
    }
}

fn agree(name: &str, model: &Model, truth: &Value) {
    let facts = facts(model);
    let targets = model.analysis.quantization_targets.onnx_specific.as_ref().unwrap();
    let nodes = facts.nodes.unwrap();
    let weights = facts.weights.as_ref().unwrap();
    let top =
        if targets.op_counts_top.is_empty() { &targets.op_counts } else { &targets.op_counts_top };
    let domains: std::collections::BTreeSet<&str> = model
        .graph
        .nodes()
        .map(|node| if node.domain().is_empty() { "ai.onnx" } else { node.domain() })
        .collect();
    let opsets: Vec<Value> =
        facts.opsets.iter().map(|opset| serde_json::json!([opset.domain, opset.version])).collect();
    // The truth counts the initializers of the top graph.
    let dtypes = if weights.dtypes_top.is_empty() { &weights.dtypes } else { &weights.dtypes_top };
    let dtypes: BTreeMap<String, u64> =
        dtypes.iter().map(|(dtype, count)| (onnx_dtype(dtype), *count)).collect();
    let ours = serde_json::json!({
        "file": name,
        "bytes": facts.file_size_bytes,
        "ir_version": facts.ir_version,
        "producer_name": facts.producer_name,
        "producer_version": facts.producer_version,
        "opset_import": opsets,
        "nodes_top": nodes.top,
        "nodes_all": nodes.all,
        "op_counts_top": top,
        "op_counts_all": targets.op_counts,
        "node_domains": domains,
        "unnamed_nodes": nodes.unnamed,
        "inputs": facts.inputs.iter().map(onnx_value).collect::<Vec<_>>(),
        "outputs": facts.outputs.iter().map(onnx_value).collect::<Vec<_>>(),
        "initializers": dtypes.values().sum::<u64>(),
        "initializer_dtypes": dtypes,
        "initializers_as_inputs": weights.initializers_as_inputs,
        "external_tensors": weights.external_tensors,
        "has_qdq": facts.has_qdq_already,
        "functions": nodes.functions,
    });
    for (field, expected) in truth.as_object().unwrap() {
        if field == "has_qdq" {
            assert!(expected != &Value::Bool(true) || ours[field] == true, "has_qdq of `{name}`");
        } else {
            assert_eq!(&ours[field], expected, "{field} of `{name}`");
        }
    }
}

fn onnx_dtype(dtype: &str) -> String {
    match dtype {
        "float32" => "FLOAT".to_owned(),
        "float64" => "DOUBLE".to_owned(),
        other => other.to_uppercase(),
    }
}

fn onnx_value(value: &TensorFacts) -> Value {
    let shape: Vec<Value> = value
        .shape
        .iter()
        .flatten()
        .map(|dim| match dim {
            Dim::Size(size) => Value::from(*size),
            Dim::Symbol(symbol) => Value::from(symbol.as_str()),
            Dim::Unknown => Value::Null,
        })
        .collect();
    serde_json::json!([value.name, onnx_dtype(&value.dtype), shape])
}

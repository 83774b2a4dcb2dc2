//! The facts against the dumps of the library that they were written from; skipped where those are not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use quantplan::catalogue::{Entry, presets::Preset};
use serde_json::Value;

use crate::catalogue::{CATALOGUE, Defects};

#[test]
fn presets_are_those_of_the_library() {
    let Some(text) = corpus("quark/onnx_presets.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let mut found = Defects::default();
    let mut seen = BTreeSet::new();
    for theirs in source["presets"].as_array().expect("a list of presets") {
        if theirs["api"] != "legacy" {
            continue;
        }
        let name = theirs["name"].as_str().expect("a name");
        seen.insert(name.to_owned());
        match CATALOGUE.presets().get(name) {
            Some(ours) => compare_preset(ours, theirs, &mut found),
            None => found.add(name, "is not in the catalogue"),
        }
    }
    for ours in CATALOGUE.presets().ids() {
        if !seen.contains(ours) {
            found.add(ours, "is not in the source");
        }
    }
    assert!(found.0.is_empty(), "{} differences:\n{}", found.0.len(), found.0.join("\n"));
}

#[test]
fn options_are_those_of_the_library() {
    let Some(text) = corpus("quark/onnx_extra_options.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let mut found = Defects::default();
    let theirs: BTreeMap<&str, &Value> = source["options"]
        .as_array()
        .expect("a list of options")
        .iter()
        .map(|option| (option["key"].as_str().expect("a key"), option))
        .collect();
    let ours: BTreeSet<&str> = CATALOGUE.options().ids().collect();
    let known: BTreeSet<&str> = theirs.keys().copied().collect();
    for name in ours.symmetric_difference(&known) {
        found.add(name, "is in the catalogue or in the source, but not in both");
    }
    for option in CATALOGUE.options().all() {
        let Some(theirs) = theirs.get(option.id()) else { continue };
        if theirs["versions"] != serde_json::json!(CATALOGUE.releases_with(option)) {
            found.add(option.id(), "is in other releases");
        }
        if theirs["nested"] == option.is_top_level() {
            found.add(option.id(), "is on another level");
        }
        if theirs["warns_in_QConfig_0_13"] != option.warns_in_qconfig {
            found.add(option.id(), "warns otherwise");
        }
    }
    assert!(found.0.is_empty(), "{} differences:\n{}", found.0.len(), found.0.join("\n"));
}

#[test]
fn the_op_table_is_ryzen_ais() {
    let Some(text) = corpus("quark/ryzenai_npu_ops.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let theirs = source["ops"].as_object().expect("a table of ops");
    let mut found = Defects::default();
    for (name, columns) in theirs {
        let Some(op) = CATALOGUE.npu_ops().find(name) else {
            found.add(name, "is not in the catalogue");
            continue;
        };
        // An op with an alias stands in several rows, and has the columns of all of them.
        for (column, has) in columns.as_object().into_iter().flatten() {
            let ours = op.precisions.contains(column);
            found.check(
                *has == ours || (*has == false && !op.aliases.is_empty()),
                name,
                format!("differs in {column}"),
            );
        }
    }
    for op in CATALOGUE.npu_ops().ids() {
        found.check(theirs.contains_key(op), op, "is not in the source");
    }
    assert!(found.0.is_empty(), "{} differences:\n{}", found.0.len(), found.0.join("\n"));
}

#[test]
fn parameters_are_those_of_the_library() {
    let Some(text) = corpus("quark/onnx_algorithms.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let mut found = Defects::default();
    for algorithm in CATALOGUE.algorithms().all() {
        let id = algorithm.id();
        let theirs = source["algorithms"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|theirs| theirs["name"] == id);
        let Some(theirs) = theirs else {
            found.add(id, "is not in the source");
            continue;
        };
        found.check(
            theirs["config_class"] == serde_json::json!(algorithm.class),
            id,
            "has another class",
        );
        let now: Vec<(&str, &Value)> = algorithm
            .params
            .iter()
            .filter(|param| param.until.is_none())
            .map(|param| (param.name.as_str(), &param.default))
            .collect();
        let params: Vec<(&str, &Value)> = theirs["params"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|param| (param["name"].as_str().unwrap_or_default(), &param["default"]))
            .collect();
        found.check(now == params, id, format!("has the parameters {now:?}, not {params:?}"));
    }
    assert!(found.0.is_empty(), "{} differences:\n{}", found.0.len(), found.0.join("\n"));
}

/// Text of a file beside the corpus of facts, when the machine has one.
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
fn corpus(path: &str) -> Option<String> {
    let root = std::env::var_os("QUANTPLAN_CORPUS");
    let text =
        root.and_then(|root| fs::read_to_string(PathBuf::from(root).join("..").join(path)).ok());
    if text.is_none() {
        eprintln!("skipped: QUANTPLAN_CORPUS is not set or has no `../{path}`");
    }
    text
}

fn compare_preset(ours: &Preset, theirs: &Value, found: &mut Defects) {
    let json = serde_json::to_value(ours).unwrap_or_default();
    let mut same = |what: &str, ours: &Value, theirs: &Value| {
        found.check(
            ours == theirs,
            json["id"].as_str().unwrap_or_default(),
            format!("has {what} {ours}, not {theirs}"),
        );
    };
    // The library's own types have no effect in this one.
    if ours.id != *"MATMUL_NBITS" {
        for side in ["activation", "weight"] {
            let theirs_type = theirs[format!("{side}_type")].as_str().unwrap_or_default();
            let name = theirs_type.rsplit('.').next().unwrap_or_default();
            same(side, &json[side]["type"], &Value::from(name));
            same(side, &json[side]["symmetric"], &theirs[format!("{side}_symmetric")]);
        }
    }
    let identifier =
        CATALOGUE.methods().get(ours.calibration.as_str()).map_or("", |method| &method.identifier);
    same("calibration", &Value::from(identifier), &theirs["calibrate_method"]);
    let algorithms: Value = theirs["algorithm"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|name| match name.as_str() {
            Some("adaround") => Value::from("AdaRound"),
            Some("adaquant") => Value::from("AdaQuant"),
            _ => name.clone(),
        })
        .collect();
    same("algorithms", &json["algorithms"], &algorithms);
    for (field, key) in [
        ("per_channel", "per_channel"),
        ("reduce_range", "reduce_range"),
        ("format", "quant_format"),
        ("npu_cnn", "enable_npu_cnn"),
        ("npu_transformer", "enable_npu_transformer"),
        ("dynamic", "use_dynamic_quant"),
        ("extra_options", "extra_options"),
        ("custom_ops", "custom_ops"),
        ("qdq_domains", "qdq_domain"),
    ] {
        same(field, &json[field], &theirs[key]);
    }
    same("releases", &serde_json::json!(CATALOGUE.releases_with(ours)), &theirs["versions"]);
}

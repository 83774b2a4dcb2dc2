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

#[test]
fn schemes_are_those_of_the_library() {
    let Some(text) = corpus("quark/torch_schemes.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let mut found = Defects::default();
    let theirs = by_name(&source["schemes"], "name");
    same_names(CATALOGUE.schemes().ids(), &theirs, &mut found);
    for scheme in CATALOGUE.schemes().all() {
        let Some(theirs) = theirs.get(scheme.id()) else { continue };
        let ours = serde_json::to_value(scheme).unwrap_or_default();
        let mut same = |what: &str, ours: &Value, theirs: &Value| {
            found.check(
                numbers_or_equal(ours, theirs),
                scheme.id(),
                format!("has {what} {ours}, not {theirs}"),
            );
        };
        same("releases", &serde_json::json!(CATALOGUE.releases_with(scheme)), &theirs["versions"]);
        same(
            "calibration data",
            &ours["needs_calibration_data"],
            &theirs["needs_calibration_data"],
        );
        same("activations", &Value::from(scheme.is_weight_only()), &theirs["weight_only"]);
        for side in ["weight", "activation"] {
            if theirs[side].is_null() {
                same(side, &ours[side], &Value::Null);
                continue;
            }
            // Of two levels, the one that is stored is the last that does not round scales.
            let levels = theirs[side]["levels"].as_array();
            let stored = levels.map_or(&theirs[side], |levels| {
                levels
                    .iter()
                    .rfind(|level| level["is_scale_quant"] == false)
                    .unwrap_or(&theirs[side])
            });
            for field in ["dtype", "group_size", "scale_format"] {
                same(&format!("{side} {field}"), &ours[side][field], &stored[field]);
            }
            let granularity = match &stored["granularity"] {
                Value::Null => Value::from("block"),
                other => other.clone(),
            };
            same(&format!("{side} granularity"), &ours[side]["granularity"], &granularity);
            if granularity != "block" {
                same(&format!("{side} dynamic"), &ours[side]["dynamic"], &stored["dynamic"]);
            }
            if let Some(second) =
                levels.and_then(|levels| levels.iter().find(|level| !std::ptr::eq(*level, stored)))
            {
                for (field, key) in [
                    ("dtype", "dtype"),
                    ("granularity", "granularity"),
                    ("dynamic", "dynamic"),
                    ("of_scales", "is_scale_quant"),
                ] {
                    same(field, &ours[side]["second"][field], &second[key]);
                }
            }
        }
        let exported = theirs["export_real_quantized"] == "ok";
        same("export", &Value::from(scheme.export_error.is_none()), &Value::from(exported));
        same("cosine", &ours["cosine"], &theirs["measured"]["0.13_tiny_llama_cpu"]["cosine"]);
        let uneven =
            theirs["divisibility"]["rule"].as_str().map(|rule| rule.contains("ValueError"));
        if let Some(fails) = uneven {
            let ours = scheme.uneven_group == quantplan::catalogue::schemes::UnevenGroup::Error;
            same("uneven groups", &Value::from(ours), &Value::from(fails));
        }
    }
    assert!(found.0.is_empty(), "{} differences:\n{}", found.0.len(), found.0.join("\n"));
}

#[test]
fn torch_algorithms_are_those_of_the_library() {
    let Some(text) = corpus("quark/torch_algorithms.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let mut found = Defects::default();
    let theirs = by_name(&source["algorithms"], "name");
    same_names(CATALOGUE.torch_algorithms().ids(), &theirs, &mut found);
    for algorithm in CATALOGUE.torch_algorithms().all() {
        let Some(theirs) = theirs.get(algorithm.id()) else { continue };
        let ours = serde_json::to_value(algorithm).unwrap_or_default();
        let mut same = |what: &str, ours: &Value, theirs: &Value| {
            found.check(ours == theirs, algorithm.id(), format!("has {what} {ours}, not {theirs}"));
        };
        same(
            "releases",
            &serde_json::json!(CATALOGUE.releases_with(algorithm)),
            &theirs["versions"],
        );
        same("the class", &ours["class"], &theirs["config_class"]);
        same("families", &ours["families"], &theirs["model_types"]);
        // One class is not in the source.
        if !theirs["params"].is_null() {
            same("parameters", &ours["params"], &theirs["params"]);
        }
    }
    assert!(found.0.is_empty(), "{} differences:\n{}", found.0.len(), found.0.join("\n"));
}

#[test]
fn families_are_the_templates_of_the_library() {
    let Some(text) = corpus("quark/torch_templates.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let mut found = Defects::default();
    let theirs = by_name(&source["templates"], "model_type");
    same_names(CATALOGUE.families().ids(), &theirs, &mut found);
    for family in CATALOGUE.families().all() {
        let Some(theirs) = theirs.get(family.id()) else { continue };
        let ours = serde_json::to_value(family).unwrap_or_default();
        let mut same = |what: &str, ours: &Value, theirs: &Value| {
            found.check(ours == theirs, family.id(), format!("has {what} {ours}, not {theirs}"));
        };
        same("releases", &serde_json::json!(CATALOGUE.releases_with(family)), &theirs["versions"]);
        same("excludes", &ours["exclude_layers"], &theirs["exclude_layers"]);
        same("KV layers", &ours["kv_layers"], &theirs["kv_layers"]);
        same("fused layers", &ours["gate_up_layers"], &theirs["gate_up_layers"]);
        let queries = match &theirs["q_layer"] {
            Value::String(one) => serde_json::json!([one]),
            list => list.clone(),
        };
        same("query layers", &ours["q_layers"], &queries);
        same(
            "fused experts",
            &ours["splits_fused_experts"],
            &theirs["file2file_weight_converters"],
        );
        for (step, change) in theirs["diffs"].as_object().into_iter().flatten() {
            let Some((from, to)) = step.split_once("->") else { continue };
            let change = &change["exclude_layers_name"];
            if change.is_null() {
                continue;
            }
            for (release, list) in [(from, &change["from"]), (to, &change["to"])] {
                same(
                    &format!("in {release} the excludes"),
                    &serde_json::json!(family.excludes_in(&release.into())),
                    list,
                );
            }
        }
        let algorithms: Vec<_> = CATALOGUE
            .algorithms_for(&family.id, &CATALOGUE.newest_release().id)
            .into_iter()
            .map(Entry::id)
            .collect();
        same("algorithms", &serde_json::json!(algorithms), &theirs["algorithms"]);
    }
    assert!(found.0.is_empty(), "{} differences:\n{}", found.0.len(), found.0.join("\n"));
}

#[test]
fn flags_are_those_of_the_programs() {
    let Some(text) = corpus("quark/torch_cli_flags.json") else { return };
    let source: Value = serde_json::from_str(&text).expect("the source is JSON");
    let mut found = Defects::default();
    for (id, key, complete) in [
        ("quark-cli torch-llm-ptq", "quark_cli_torch_llm_ptq", true),
        ("quantize_quark.py", "quantize_quark_py", false),
    ] {
        let ours = CATALOGUE.entry_points().get(id).expect("a known entry point");
        let theirs: BTreeMap<&str, &Value> = source[key]["flags"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|flag| Some((flag["flags"][0].as_str()?, flag)))
            .collect();
        if complete {
            same_names(ours.flags.iter().map(|flag| flag.name.as_str()), &theirs, &mut found);
        }
        for flag in &ours.flags {
            let Some(theirs) = theirs.get(flag.name.as_str()) else {
                found.add(&flag.name, format!("is no flag of {id}"));
                continue;
            };
            let also: Vec<_> = theirs["flags"].as_array().into_iter().flatten().skip(1).collect();
            found.check(
                also.iter().all(|name| flag.also.iter().any(|ours| *name == ours))
                    && also.len() == flag.also.len(),
                &flag.name,
                "has other spellings",
            );
            // `null` stands for leaving the flag out.
            let choices: Vec<&str> = theirs["choices"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            found.check(
                flag.choices == choices,
                &flag.name,
                format!("has not the choices {choices:?}"),
            );
            let switch =
                theirs["action"].as_str().is_some_and(|action| action.starts_with("store_"));
            let (ours, theirs) = (&flag.default, &theirs["default"]);
            // The dump has the name of a variable for one default, and none for most switches.
            found.check(
                ours == theirs || switch || *theirs == "device",
                &flag.name,
                format!("has the default {ours}, not {theirs}"),
            );
        }
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

fn by_name<'a>(list: &'a Value, key: &str) -> BTreeMap<&'a str, &'a Value> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry[key].as_str()?, entry)))
        .collect()
}

fn same_names<'a>(
    ours: impl Iterator<Item = &'a str>,
    theirs: &BTreeMap<&str, &Value>,
    found: &mut Defects,
) {
    let ours: BTreeSet<&str> = ours.collect();
    let theirs: BTreeSet<&str> = theirs.keys().copied().collect();
    for name in ours.symmetric_difference(&theirs) {
        found.add(name, "is in the catalogue or in the source, but not in both");
    }
}

/// Whether two values are the same, `1` and `1.0` too.
fn numbers_or_equal(ours: &Value, theirs: &Value) -> bool {
    ours == theirs || ours.as_f64().is_some_and(|ours| Some(ours) == theirs.as_f64())
}

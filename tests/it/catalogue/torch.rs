//! The facts of Quark-Torch: they agree with each other, with checkpoints that Quark wrote, and with Python.

use std::collections::BTreeSet;

use quantplan::{
    catalogue::{
        Entry,
        engines::Engine,
        entry_points::{EntryPoint, FlagValue},
        families::Family,
        globs,
        prequantized::Recovery,
        schemes::{
            CustomMode, FileToFile, Fit, Granularity, Loads, Scheme, SchemeFamily, TensorScheme,
            UnevenGroup,
        },
        storage::{Holds, Storage},
        torch_algorithms::TorchAlgorithm,
    },
    rules::rows,
    vocab::{FamilyId, ReleaseId},
};
use serde_json::Value;

use crate::catalogue::{CATALOGUE, Defects, lifetime};

#[test]
fn schemes_algorithms_and_families_of_the_releases_are_all_there() {
    let count = |release: &str| {
        let release = ReleaseId::new(release);
        let schemes =
            CATALOGUE.schemes().all().iter().filter(|s| CATALOGUE.in_release(*s, &release));
        let algorithms = CATALOGUE
            .torch_algorithms()
            .all()
            .iter()
            .filter(|a| CATALOGUE.in_release(*a, &release));
        let families =
            CATALOGUE.families().all().iter().filter(|f| CATALOGUE.in_release(*f, &release));
        (schemes.count(), algorithms.count(), families.count())
    };
    assert_eq!(count("0.11.2"), (18, 7, 35));
    assert_eq!(count("0.12.post1"), (27, 7, 41));
    assert_eq!(count("0.13"), (28, 9, 51));
}

#[test]
fn a_torch_name_is_found_however_it_is_spelled_and_a_wrong_one_is_not() {
    let scheme = |name: &str, id: Option<&str>| {
        assert_eq!(CATALOGUE.schemes().find(name).map(Entry::id), id, "scheme `{name}`");
    };
    scheme("MXFP4", Some("mxfp4"));
    scheme("int4-wo-128", Some("int4_wo_128"));
    scheme("w_mxfp4_a_mxfp4", Some("mxfp4"));
    scheme("fp4_block16_scale_e4m3", Some("fp4_block16_scale_e4m3"));
    scheme("int4", None);
    let family = |name: &str, id: Option<&str>| {
        assert_eq!(CATALOGUE.families().find(name).map(Entry::id), id, "family `{name}`");
    };
    family("grok_1", Some("grok-1"));
    family("Qwen3-MoE", Some("qwen3_moe"));
    family("qwen3_omni", None);
}

#[test]
fn an_algorithm_without_a_config_for_the_family_is_known_beforehand() {
    let newest = &CATALOGUE.newest_release().id;
    let check = |family: &str, release: &ReleaseId, algorithms: &[&str]| {
        let found: Vec<_> = CATALOGUE
            .algorithms_for(&FamilyId::new(family), release)
            .into_iter()
            .map(Entry::id)
            .collect();
        assert_eq!(found, algorithms, "algorithms for `{family}` in {release}");
    };
    check("qwen3", newest, &["twobitscalar"]);
    check("qwen3", &ReleaseId::new("0.12.post1"), &[]);
    check("qwen3_moe", newest, &["autosmoothquant"]);
    check("qwen2_moe", newest, &["awq"]);
    check("kimi_k2", newest, &[]);
}

#[test]
fn a_family_excludes_what_its_release_excludes() {
    let family = CATALOGUE.families().get("qwen3_moe").expect("a known family");
    assert_eq!(family.excludes_in(&ReleaseId::new("0.13")), ["lm_head", "*.gate"]);
    assert_eq!(
        family.excludes_in(&ReleaseId::new("0.12.post1")),
        ["lm_head", "*.gate", "*.gate.linear"]
    );
    assert_eq!(family.excludes_in(&ReleaseId::new("0.11.2")), ["lm_head", "*.gate"]);
}

#[test]
fn a_device_runs_a_scheme_natively_emulated_or_not_at_all() {
    let check = |scheme: &str, device: &str, fit: Fit| {
        let found = CATALOGUE
            .schemes()
            .get(scheme)
            .expect("a known scheme")
            .on(CATALOGUE.devices().find(device).expect("a known device"));
        assert_eq!(found, fit, "`{scheme}` on `{device}`");
    };
    check("fp8", "MI300X", Fit::Native);
    check("fp8", "H100", Fit::Native);
    check("fp8", "A100", Fit::NotSupported);
    check("mxfp4", "MI355X", Fit::Native);
    check("mxfp4", "MI300X", Fit::Emulated);
    check("mxfp4", "sm_86", Fit::NotSupported);
    check("mxfp4_fp8", "MI355X", Fit::Native);
    check("mxfp4_fp8", "MI300X", Fit::Emulated);
    check("mxfp4_fp8", "MI250X", Fit::NotSupported);
    check("nvfp4", "B200", Fit::Native);
    check("nvfp4", "H100", Fit::Emulated);
    check("amdfp4", "MI300X", Fit::Emulated);
    check("int4_wo_128", "gfx1100", Fit::Native);
    check("mxfp6_e2m3", "MI355X", Fit::Native);
    check("mx6", "MI355X", Fit::Unknown);
}

#[test]
fn the_kv_cache_takes_fp8_only_whatever_the_parser_says() {
    for entry_point in CATALOGUE.entry_points().all() {
        let flag = entry_point.flag_for("kv_cache_scheme").expect("a flag for the KV cache");
        assert_eq!(flag.usable_choices().collect::<Vec<_>>(), ["fp8"], "{}", entry_point.id());
    }
    let cli = CATALOGUE.entry_points().get("quark-cli torch-llm-ptq").expect("the command");
    assert_eq!(cli.flag("--kv_cache_quant_scheme").map(|flag| flag.choices.len()), Some(12));
    assert!(cli.flag("--min_kv_scale").is_none());
}

#[test]
fn a_quantized_checkpoint_is_recovered_by_some_flows_only() {
    let check = |method: &str, in_memory: Recovery, file_to_file: Recovery| {
        let found = CATALOGUE.prequantized().find(method).expect("a known method");
        assert_eq!((found.in_memory, found.file_to_file), (in_memory, file_to_file), "`{method}`");
    };
    check("fp8", Recovery::Recovers, Recovery::Recovers);
    check("compressed-tensors", Recovery::Recovers, Recovery::Recovers);
    check("mxfp4", Recovery::Recovers, Recovery::TakesAsTheyAre);
    check("awq", Recovery::NotRecovered, Recovery::TakesAsTheyAre);
    check("quark", Recovery::NotRecovered, Recovery::TakesAsTheyAre);
}

#[test]
fn bytes_of_a_layer_are_those_of_the_checkpoints_that_quark_wrote() {
    // Exports of amd-quark 0.13 (a tiny Llama, real_quantized, packed `reorder`), sums over the headers.
    let mut seen = BTreeSet::new();
    for line in include_str!("checkpoints.tsv").lines().skip(1) {
        let mut columns = line.split('\t');
        let scheme = columns.next().expect("a scheme");
        let numbers: Vec<u64> = columns.map(|n| n.parse().expect("a number")).collect();
        let [model_bytes, outputs, inputs, bytes] = numbers[..] else { panic!("`{line}`") };
        let storage = &CATALOGUE.schemes().get(scheme).expect("a known scheme").storage;
        let found =
            storage.as_ref().expect("an exported scheme").bytes(outputs, inputs, model_bytes);
        assert_eq!(found, bytes, "{scheme}, {outputs} by {inputs}, {model_bytes} bytes");
        seen.insert(scheme);
    }
    for scheme in CATALOGUE.schemes().all().iter().filter(|scheme| scheme.storage.is_some()) {
        assert!(seen.contains(scheme.id()), "no checkpoint of `{}`", scheme.id());
    }
}

#[test]
fn bytes_of_an_absurd_layer_saturate() {
    let storage = &CATALOGUE.schemes().get("int4_wo_32").expect("a known scheme").storage;
    assert_eq!(storage.as_ref().map(|s| s.bytes(u64::MAX, u64::MAX, 2)), Some(u64::MAX));
}

#[test]
fn layer_patterns_match_as_pythons_fnmatch_does() {
    let mut rows = 0;
    for line in include_str!("fnmatch.tsv").lines().skip(1) {
        let [pattern, name, matches] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("`{line}`")
        };
        assert_eq!(globs::matches(pattern, name), matches == "1", "`{pattern}` with `{name}`");
        rows += 1;
    }
    assert!(rows > 500, "only {rows} rows");
}

#[test]
fn a_pattern_of_many_stars_takes_no_time() {
    let name = "a".repeat(20_000);
    assert!(!globs::matches(&"*a".repeat(40).repeat(2).replace("a*", "a*a"), "b"));
    assert!(!globs::matches(&format!("{}b", "*a*".repeat(30)), &name));
}

/// Adds what is wrong with the facts of Quark-Torch.
pub(super) fn sound(found: &mut Defects) {
    for scheme in CATALOGUE.schemes().all() {
        scheme_is_sound(scheme, found);
        engines_of(scheme, found);
    }
    for algorithm in CATALOGUE.torch_algorithms().all() {
        algorithm_is_sound(algorithm, found);
    }
    for family in CATALOGUE.families().all() {
        family_is_sound(family, found);
    }
    for entry_point in CATALOGUE.entry_points().all() {
        entry_point_is_sound(entry_point, found);
    }
    for engine in CATALOGUE.engines().all() {
        engine_is_sound(engine, found);
    }
    for method in CATALOGUE.prequantized().all() {
        let id = method.id();
        found.check(
            method.in_memory_since.is_some() == (method.in_memory == Recovery::Recovers),
            id,
            "is recovered in no release, or in some although it is not",
        );
        lifetime(id, method.in_memory_since.as_ref(), None, found);
        found.check(
            method.families.iter().all(|name| CATALOGUE.families().get(name.as_str()).is_some()),
            id,
            "is recovered for an unknown family",
        );
    }
    for device in CATALOGUE.devices().all() {
        for product in &device.products {
            found.check(
                device.aliases.contains(&product.name) && product.memory_gb > 0,
                &device.id,
                format!("has the product `{}`, which is no alias of it", product.name),
            );
        }
    }
}

fn scheme_is_sound(scheme: &Scheme, found: &mut Defects) {
    let id = scheme.id();
    if let Some(name) = &scheme.same_as {
        let same = CATALOGUE.schemes().get(name.as_str()).is_some_and(|other| {
            other.same_as.is_none()
                && other.weight == scheme.weight
                && other.activation == scheme.activation
                && other.storage == scheme.storage
                && other.engines == scheme.engines
        });
        found.check(same, id, format!("is not the same as `{name}`"));
    }
    let mut check = |holds: bool, what: &str| found.check(holds, id, what);
    let (weight, storage) = (&scheme.weight, scheme.storage.as_ref());
    check(
        (scheme.uneven_group == UnevenGroup::NoGroups) == weight.group_size.is_none(),
        "has groups and says that it has none, or the other way round",
    );
    check(
        weight.group_size.is_some()
            == matches!(weight.granularity, Granularity::PerGroup | Granularity::Block),
        "has a group size that does not go with its granularity",
    );
    check(storage.is_none() == scheme.export_error.is_some(), "is exported and fails, or neither");
    check(
        scheme.file_to_file.is_none() || scheme.export_error.is_none(),
        "is written file by file although it cannot be exported",
    );
    check(
        scheme.file_to_file.is_none_or(|result| {
            (result == FileToFile::NoInputScales) == scheme.has_static_activations()
        }),
        "loses input scales that it does not have, or keeps those it has",
    );
    check(
        scheme.needs_calibration_data == scheme.has_static_activations(),
        "needs data without static activations, or the other way round",
    );
    check(
        scheme.needs.is_empty() == scheme.is_weight_only(),
        "needs formats although it only stores weights, or the other way round",
    );
    check(
        scheme.needs.iter().all(|need| !need.any_of.is_empty() && !need.width.is_empty()),
        "needs nothing in particular",
    );
    let four_bit_groups = matches!(scheme.family, SchemeFamily::Int4 | SchemeFamily::Uint4)
        && weight.group_size.is_some();
    check(
        scheme.custom_modes.contains(&CustomMode::Awq) == four_bit_groups,
        "has AutoAWQ's layout without grouped integers, or the other way round",
    );
    check(
        scheme.custom_modes.contains(&CustomMode::Fp8) == (id == "fp8"),
        "has the native FP8 layout although it is not `fp8`",
    );
    check(
        scheme.gguf.is_some() == (weight.dtype == "uint4" && weight.group_size == Some(32)),
        "has a GGUF type although the writer refuses it, or the other way round",
    );
    let integer = |spec: &TensorScheme| spec.dtype.trim_start_matches('u').starts_with("int");
    check(
        [Some(weight), scheme.activation.as_ref()]
            .into_iter()
            .flatten()
            .all(|spec| integer(spec) == spec.symmetric.is_some()),
        "is symmetric without integers, or the other way round",
    );
    let Some(storage) = storage else { return };
    check(storage.group == weight.group_size, "stores other groups than it has");
    check(
        (scheme.bits - bits(storage)).abs() < 1e-9,
        &format!("has {} bits, not {}", scheme.bits, bits(storage)),
    );
    let inputs = storage.tensors.iter().any(|tensor| tensor.name.starts_with("input_"));
    check(inputs == scheme.has_static_activations(), "stores scales of inputs that it has not");
    let zeros = storage.tensors.iter().any(|tensor| tensor.name.contains("zero_point"));
    check(zeros == integer(weight), "stores zero points without integers, or the other way round");
    check(
        storage.tensors.first().is_some_and(|tensor| {
            tensor.name == "weight" && matches!(tensor.holds, Holds::Element)
        }),
        "does not begin with its weight",
    );
}

/// Bits of a weight with its share of what its group stores, in a model of two bytes.
fn bits(storage: &Storage) -> f64 {
    let bits = |tensor: &quantplan::catalogue::storage::StoredTensor| {
        let word = 8.0 * tensor.dtype.bytes(2) as f64;
        let value = tensor.packed.map_or(word, |p| word * p.words as f64 / p.values as f64);
        match tensor.holds {
            Holds::Element => value,
            Holds::Group => value / storage.group.unwrap_or(1) as f64,
            Holds::Row | Holds::Layer => 0.0,
        }
    };
    storage.tensors.iter().map(bits).sum()
}

fn engines_of(scheme: &Scheme, found: &mut Defects) {
    let id = scheme.id();
    for (name, support) in &scheme.engines {
        found.check(
            CATALOGUE.engines().get(name.as_str()).is_some(),
            id,
            format!("names the unknown engine `{name}`"),
        );
        found.check(!support.source.is_empty(), id, format!("has no source for `{name}`"));
        found.check(
            support.loads != Loads::No || support.note.is_some(),
            id,
            format!("does not say why `{name}` refuses it"),
        );
    }
    // The library itself loads what it exported; nothing is to be said about each scheme.
    for engine in CATALOGUE.engines().ids().filter(|engine| *engine != "quark") {
        found.check(
            scheme.engines.keys().any(|name| *name == engine),
            id,
            format!("says nothing about `{engine}`"),
        );
    }
    found.check(
        scheme.gguf.is_some()
            == scheme
                .engines
                .iter()
                .any(|(name, support)| *name == "llama.cpp" && support.loads == Loads::Yes),
        id,
        "is loaded by llama.cpp without a GGUF type, or the other way round",
    );
}

fn algorithm_is_sound(algorithm: &TorchAlgorithm, found: &mut Defects) {
    let id = algorithm.id();
    let releases: Vec<_> = CATALOGUE.releases_with(algorithm);
    found.check(
        algorithm.families.keys().collect::<BTreeSet<_>>() == releases.iter().copied().collect(),
        id,
        "has families for other releases than it is in",
    );
    for (release, families) in &algorithm.families {
        found.check(!families.is_empty(), id, format!("has no families in {release}"));
        for name in families {
            let known = CATALOGUE
                .families()
                .get(name.as_str())
                .is_some_and(|family| CATALOGUE.in_release(family, release));
            found.check(known, id, format!("has a config for `{name}`, unknown in {release}"));
        }
    }
    for run in &algorithm.measured {
        found.check(
            CATALOGUE.schemes().get(run.scheme.as_str()).is_some(),
            id,
            format!("was run with the unknown `{}`", run.scheme),
        );
        found.check(
            run.cosine.is_some() != run.error.is_some(),
            id,
            format!("with `{}` both worked and failed, or neither", run.scheme),
        );
    }
    for scheme in &algorithm.needs_gpu_with {
        found.check(
            CATALOGUE.schemes().get(scheme.as_str()).is_some(),
            id,
            format!("needs a GPU with the unknown `{scheme}`"),
        );
    }
    for with in &algorithm.with {
        found.check(
            CATALOGUE.torch_algorithms().get(with.then.as_str()).is_some()
                && CATALOGUE.schemes().get(with.scheme.as_str()).is_some(),
            id,
            format!("was run before the unknown `{}`", with.then),
        );
        found.check(
            with.ruins == with.without.is_some_and(|without| with.cosine < without - 0.1),
            id,
            format!("before `{}` ruins what it does not, or the other way round", with.then),
        );
    }
    found.check(
        algorithm.broken.is_none() || algorithm.suits.is_empty(),
        id,
        "is broken and suits schemes",
    );
    let names: BTreeSet<_> = algorithm.params.iter().map(|param| &param.name).collect();
    found.check(
        names.len() == algorithm.params.len() && !names.is_empty(),
        id,
        "has no parameters, or one twice",
    );
}

fn family_is_sound(family: &Family, found: &mut Defects) {
    let id = family.id();
    let releases = CATALOGUE.releases_with(family);
    for (what, patterns) in [
        ("excludes", &family.exclude_layers),
        ("has KV", &family.kv_layers),
        ("has query", &family.q_layers),
        ("has gate and up", &family.gate_up_layers),
    ] {
        let distinct: BTreeSet<_> = patterns.iter().collect();
        found.check(
            !patterns.is_empty() && distinct.len() == patterns.len(),
            id,
            format!("{what} no layers, or one pattern twice"),
        );
    }
    found.check(family.gate_up_layers.len() == 2, id, "fuses other than two layers");
    if let Some(becomes) = &family.excluded_become {
        lifetime(id, Some(&becomes.since), None, found);
        found.check(
            CATALOGUE.schemes().get(becomes.scheme.as_str()).is_some()
                && CATALOGUE.entry_points().all().iter().any(|e| e.flag(&becomes.unless).is_some()),
            id,
            "has excluded layers of an unknown scheme, or an unknown flag against it",
        );
    }
    for earlier in &family.earlier_excludes {
        found.check(
            releases.contains(&&earlier.release)
                && releases.last() != Some(&&earlier.release)
                && earlier.exclude_layers != family.exclude_layers,
            id,
            format!("has the same list in {}, or is not in it", earlier.release),
        );
    }
}

fn entry_point_is_sound(entry_point: &EntryPoint, found: &mut Defects) {
    let id = entry_point.id();
    let mut names = BTreeSet::new();
    let mut decisions = BTreeSet::new();
    for flag in &entry_point.flags {
        for name in [&flag.name].into_iter().chain(&flag.also) {
            found.check(
                name.starts_with("--") && names.insert(name),
                id,
                format!("has the flag `{name}` twice, or without dashes"),
            );
        }
        if let Some(decision) = &flag.decision {
            // Flags that are given for some values only share a decision where the values differ.
            let values: Vec<Option<&str>> = match &flag.given {
                Some(given) => given.keys().map(|value| Some(value.as_str())).collect(),
                None => vec![None],
            };
            found.check(
                rows::find(rows::TORCH, decision).is_some_and(|row| row.id == decision)
                    && values.into_iter().all(|value| decisions.insert((decision, value))),
                id,
                format!("carries `{decision}` out in two ways, or is no decision of a plan"),
            );
            let words = flag.given.iter().flat_map(|given| given.values()).flatten();
            found.check(
                words.into_iter().all(|word| flag.choices.contains(word)),
                id,
                format!("gives `{}` what it does not take", flag.name),
            );
        }
        lifetime(format!("{id} {}", flag.name), flag.since.as_ref(), None, found);
        found.check(
            flag.failing.iter().all(|failing| flag.choices.contains(&failing.value)),
            id,
            format!("says that values of `{}` fail which are no choices", flag.name),
        );
        let fits = match (&flag.default, flag.takes) {
            (Value::Null, _) => true,
            (default, FlagValue::Switch) => default.is_boolean(),
            (default, FlagValue::Int) => default.is_u64(),
            (default, FlagValue::Float) => default.is_f64(),
            (default, _) => default.as_str().is_some_and(|default| {
                flag.choices.is_empty() || flag.choices.iter().any(|choice| choice == default)
            }),
        };
        found.check(fits, id, format!("`{}` has the default {}", flag.name, flag.default));
    }
    for decision in [
        "global_scheme",
        "kv_cache_scheme",
        "exclude_layers",
        "layer_quant_config",
        "algorithm",
        "calibration.dataset",
        "calibration.num_calib_data",
        "calibration.seq_len",
        "calibration.batch_size",
        "trust_remote_code",
    ] {
        found.check(
            entry_point.flag_for(decision).is_some(),
            id,
            format!("has no flag for `{decision}`"),
        );
    }
}

fn engine_is_sound(engine: &Engine, found: &mut Defects) {
    let id = engine.id();
    found.check(!engine.reads.is_empty(), id, "reads nothing");
    found.check(!engine.constraints.is_empty(), id, "asks for nothing");
    for fused in &engine.fused {
        found.check(fused.layers.len() > 1, id, format!("fuses one layer into `{}`", fused.into));
    }
}

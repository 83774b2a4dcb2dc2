//! The embedded facts: every reference resolves, every fact names its source, and flags agree with each other.

mod against_the_source;
mod torch;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use quantplan::{
    catalogue::{
        Catalogue, Entry, Kind,
        algorithms::Algorithm,
        options::{ExtraOption, OptionType},
        presets::{ElementType, Preset, PresetFamily, QuantFormat, TensorSpec},
        targets::{Profile, Target},
    },
    vocab::{OptionId, ReleaseId, ScaleKind},
};
use serde_json::Value;

const CATALOGUE: Catalogue = Catalogue;
const NPU_PRECISIONS: [&str; 4] = ["XINT8", "A8W8", "A16W8", "BF16"];
const QUARK_DOMAIN: &str = "com.amd.quark";

#[test]
fn catalogue_is_sound() {
    let mut found = Defects::default();
    entries(CATALOGUE.releases(), "release", &mut found);
    entries(CATALOGUE.presets(), "preset", &mut found);
    entries(CATALOGUE.methods(), "method", &mut found);
    entries(CATALOGUE.algorithms(), "algorithm", &mut found);
    entries(CATALOGUE.options(), "option", &mut found);
    entries(CATALOGUE.targets(), "target", &mut found);
    entries(CATALOGUE.devices(), "device", &mut found);
    entries(CATALOGUE.npu_ops(), "op", &mut found);
    entries(CATALOGUE.skills(), "skill", &mut found);
    entries(CATALOGUE.recoveries(), "recovery", &mut found);
    entries(CATALOGUE.topics(), "topic", &mut found);
    entries(CATALOGUE.schemes(), "scheme", &mut found);
    entries(CATALOGUE.torch_algorithms(), "torch algorithm", &mut found);
    entries(CATALOGUE.families(), "family", &mut found);
    entries(CATALOGUE.entry_points(), "entry point", &mut found);
    entries(CATALOGUE.engines(), "engine", &mut found);
    entries(CATALOGUE.prequantized(), "quantized checkpoint", &mut found);
    for preset in CATALOGUE.presets().all() {
        preset_references(preset, &mut found);
        preset_flags(preset, &mut found);
        preset_bits(preset, &mut found);
    }
    methods(&mut found);
    algorithms(&mut found);
    for option in CATALOGUE.options().all() {
        option_is_sound(option, &mut found);
    }
    for target in CATALOGUE.targets().all() {
        target_is_sound(target, &mut found);
    }
    devices_and_ops(&mut found);
    torch::sound(&mut found);
    assert!(found.0.is_empty(), "{} defects:\n{}", found.0.len(), found.0.join("\n"));
}

#[test]
fn the_named_configs_of_the_mapping_are_all_there() {
    assert_eq!(CATALOGUE.presets().all().len(), 65);
}

#[test]
fn a_name_is_found_however_it_is_spelled_and_a_wrong_one_is_not() {
    let preset = |name: &str, id: Option<&str>| {
        assert_eq!(CATALOGUE.presets().find(name).map(Entry::id), id, "preset `{name}`");
    };
    preset("xint8", Some("XINT8"));
    preset("INT8 CNN default", Some("INT8_CNN_DEFAULT"));
    preset("mxfp4-e2m1", Some("MXFP4E2M1"));
    preset("MXFP4", None);
    preset("XINT8_WEIGHTSONLY_ADAROUND", None);
    let method = |name: &str, id: Option<&str>| {
        assert_eq!(CATALOGUE.methods().find(name).map(Entry::id), id, "method `{name}`");
    };
    method("MinMSE", Some("PowerOfTwo_MinMSE"));
    method("PowerOfTwoMethod.NonOverflow", Some("PowerOfTwo_NonOverflow"));
    method("Int16_MinMax", Some("Int16Method.MinMax"));
    method("LayerwisePercentile", Some("LayerWisePercentile"));
    let target = |name: &str, id: Option<&str>| {
        assert_eq!(CATALOGUE.targets().find(name).map(Entry::id), id, "target `{name}`");
    };
    target("NPU CNN", Some("npu_cnn"));
    target("npu", None);
    target("ryzen ai", None);
    let device = |name: &str, id: Option<&str>| {
        assert_eq!(CATALOGUE.devices().find(name).map(Entry::id), id, "device `{name}`");
    };
    device("hawk_point", Some("HPT"));
    device("AMD Instinct MI300X", Some("gfx942"));
    device("gfx1101", Some("gfx110x"));
}

#[test]
fn an_entry_is_in_the_releases_between_its_first_and_its_last() {
    let check = |option: &str, releases: &[&str]| {
        let entry = CATALOGUE.options().get(option).expect("a known option");
        let found: Vec<_> =
            CATALOGUE.releases_with(entry).into_iter().map(ReleaseId::as_str).collect();
        assert_eq!(found, releases, "releases with `{option}`");
    };
    check("Percentile", &["0.11.2", "0.12.post1", "0.13"]);
    check("ActivationBitWidth", &["0.11.2"]);
    check("CalibOptimizeDisk", &["0.12.post1"]);
    check("SaveAndRestore", &["0.12.post1", "0.13"]);
    check("QuantizationPreference", &["0.13"]);
}

#[test]
fn an_option_differs_by_the_block_it_stands_in() {
    let option = |name: &str| CATALOGUE.options().get(name).expect("a known option");
    let block = |name: &str| Some(OptionId::new(name));
    let bits = option("Bits");
    assert_eq!(bits.default_in(block("MatMulNBitsParams").as_ref()), 4);
    assert_eq!(bits.choices_in(block("MatMulNBitsParams").as_ref()), [Value::from(4)]);
    assert_eq!(bits.default_in(block("GPTQParams").as_ref()), 8);
    assert!(bits.choices_in(block("GPTQParams").as_ref()).is_empty());
    assert!(!bits.is_top_level());
    assert!(option("WeightSymmetric").is_top_level());
    assert!(option("NumBins").parents.is_empty());
}

#[derive(Default)]
struct Defects(Vec<String>);

impl Defects {
    fn add(&mut self, entry: impl Display, what: impl Display) {
        self.0.push(format!("`{entry}` {what}"));
    }

    fn check(&mut self, holds: bool, entry: impl Display, what: impl Display) {
        if !holds {
            self.add(entry, what);
        }
    }
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn release_order(id: &ReleaseId) -> Option<usize> {
    CATALOGUE.releases().ids().position(|known| *id == *known)
}

fn entries<T: Entry>(kind: &Kind<T>, name: &str, found: &mut Defects) {
    found.check(!kind.all().is_empty(), name, "has no entries");
    let mut names = BTreeMap::new();
    for entry in kind.all() {
        let id = entry.id();
        for spelling in [id].into_iter().chain(entry.aliases().iter().map(String::as_str)) {
            let folded = fold(spelling);
            found.check(!folded.is_empty(), id, "has an empty name");
            if let Some(other) = names.insert(folded, id) {
                found.add(id, format!("has the name `{spelling}`, which `{other}` has too"));
            }
        }
        found.check(name == "op" || !entry.summary().is_empty(), id, "has no summary");
        found.check(!entry.summary().ends_with('.'), id, "ends its summary with a period");
        found.check(!entry.sources().is_empty(), id, "has no source");
        for source in entry.sources() {
            found.check(!source.path.is_empty(), id, "has a source without a path");
            let of_release = CATALOGUE.releases().get(&source.release).is_some();
            let of_document =
                source.release.contains(char::is_alphabetic) && source.release.contains([' ', '#']);
            found.check(
                of_release || of_document,
                id,
                format!("has a source in the unknown release `{}`", source.release),
            );
        }
        lifetime(id, entry.since(), entry.until(), found);
    }
}

fn lifetime(
    id: impl Display,
    since: Option<&ReleaseId>,
    until: Option<&ReleaseId>,
    found: &mut Defects,
) {
    for release in [since, until].into_iter().flatten() {
        found.check(
            release_order(release).is_some(),
            &id,
            format!("names the unknown release `{release}`"),
        );
    }
    if let (Some(since), Some(until)) = (since, until) {
        found.check(
            release_order(since) <= release_order(until),
            &id,
            format!("comes in `{since}` and goes in `{until}`"),
        );
    }
}

fn preset_references(preset: &Preset, found: &mut Defects) {
    let id = &preset.id;
    match CATALOGUE.methods().get(preset.calibration.as_str()) {
        Some(method) => {
            found.check(!method.weights_only, id, "calibrates with a weights-only method")
        }
        None => found.add(id, format!("calibrates with the unknown `{}`", preset.calibration)),
    }
    let mut fast = Vec::new();
    for name in &preset.algorithms {
        let Some(algorithm) = CATALOGUE.algorithms().get(name.as_str()) else {
            found.add(id, format!("runs the unknown algorithm `{name}`"));
            continue;
        };
        found.check(
            algorithm.formats.is_empty() || algorithm.formats.contains(&preset.format),
            id,
            format!("runs `{name}`, which does not go with its format"),
        );
        found.check(
            !algorithm.not_with_weights.contains(&preset.weight.r#type),
            id,
            format!("runs `{name}`, which does not go with its weights"),
        );
        if algorithm.fast_finetune {
            fast.push(algorithm);
        }
    }
    found.check(fast.len() < 2, id, "runs two fast fine-tuning algorithms");
    let tuning = preset.extra_options.get("FastFinetune").map(|block| &block["OptimAlgorithm"]);
    let expected = fast.first().map(|algorithm| Value::from(algorithm.id().to_lowercase()));
    found.check(
        tuning == expected.as_ref(),
        id,
        "has a FastFinetune block that is not its algorithm's",
    );
    found.check(
        preset.extra_options.contains_key("AutoMixprecision")
            == preset.algorithms.iter().any(|name| *name == "AutoMixprecision"),
        id,
        "has AutoMixprecision as an option or as an algorithm, but not as both",
    );
    for (key, value) in &preset.extra_options {
        option_value(preset, key, value, None, found);
        let (Some(block), true) = (value.as_object(), is_block(key)) else { continue };
        for (inner, value) in block {
            option_value(preset, inner, value, Some(&OptionId::new(key)), found);
        }
    }
}

fn is_block(key: &str) -> bool {
    CATALOGUE
        .options()
        .all()
        .iter()
        .any(|option| option.parents.iter().any(|parent| *parent == *key))
}

fn option_value(
    preset: &Preset,
    key: &str,
    value: &Value,
    block: Option<&OptionId>,
    found: &mut Defects,
) {
    let id = &preset.id;
    let Some(option) = CATALOGUE.options().get(key) else {
        return found.add(id, format!("sets the unknown option `{key}`"));
    };
    let stands = block.map_or(option.is_top_level(), |block| option.parents.contains(block));
    found.check(stands, id, format!("sets `{key}` where it does not belong"));
    found.check(
        CATALOGUE.in_release(option, &CATALOGUE.newest_release().id),
        id,
        format!("sets `{key}`, which the newest release does not have"),
    );
    found.check(fits(option.r#type, value), id, format!("sets `{key}` to {value}"));
    let choices = option.choices_in(block);
    found.check(
        choices.is_empty() || choices.contains(value),
        id,
        format!("sets `{key}` to {value}, which is no choice"),
    );
}

fn fits(r#type: OptionType, value: &Value) -> bool {
    let all = |test: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(test));
    match r#type {
        OptionType::Bool => value.is_boolean(),
        OptionType::Int => value.is_i64(),
        OptionType::Float => value.is_number(),
        OptionType::Text => value.is_string(),
        OptionType::TextList => all(Value::is_string),
        OptionType::NumberList => all(Value::is_number),
        OptionType::List => value.is_array(),
        OptionType::Object => value.is_object(),
        OptionType::Python | OptionType::Any => true,
    }
}

fn preset_flags(preset: &Preset, found: &mut Defects) {
    let id = &preset.id;
    let scale = CATALOGUE.methods().get(preset.calibration.as_str()).map(|method| method.scale);
    let (activation, weight) = (preset.activation.r#type, preset.weight.r#type);
    let mut check = |holds: bool, what: &str| found.check(holds, id, what);
    if preset.npu_cnn {
        check(
            scale == Some(ScaleKind::PowerOfTwo)
                && preset.format == QuantFormat::Qdq
                && weight == ElementType::QInt8
                && preset.activation.symmetric
                && preset.weight.symmetric
                && !preset.per_channel
                && !preset.reduce_range,
            "sets enable_npu_cnn, with which the library would refuse or drop the rest",
        );
    }
    check(
        preset.npu_cnn == (preset.family == PresetFamily::NpuCnn),
        "is of the NPU's CNN family or sets the flag, but not both",
    );
    check(
        preset.npu_cnn == (preset.npu_precision.as_deref() == Some("XINT8")),
        "has the XINT8 column or sets the flag, but not both",
    );
    check(
        preset.npu_transformer == (preset.family == PresetFamily::IntegerTransformer),
        "is of the transformer family or sets the flag, but not both",
    );
    check(
        preset.npu_precision.as_deref().is_none_or(|column| NPU_PRECISIONS.contains(&column)),
        "names a column that the op table does not have",
    );
    check(
        preset.dynamic == (preset.family == PresetFamily::Dynamic),
        "is of the dynamic family or dynamic, but not both",
    );
    check(!(preset.dynamic && preset.uses_calibration_data), "is dynamic and uses data");
    check(
        preset.custom_ops.is_empty()
            != preset.qdq_domains.iter().any(|domain| domain == QUARK_DOMAIN),
        "has custom ops or Quark's domain, but not both",
    );
    check(
        preset.custom_ops.iter().all(|op| op.starts_with("com.amd.quark::")),
        "has a custom op of another domain",
    );
    let blocks = [activation, weight].into_iter().filter(|kind| kind.is_block()).count();
    check(
        match preset.family {
            PresetFamily::Block => blocks == 2,
            PresetFamily::Mixed => true,
            _ => blocks == 0,
        },
        "has block types that its family does not have, or the other way round",
    );
    check(
        preset.family != PresetFamily::Mixed
            || activation != weight
            || preset.extra_options.contains_key("AutoMixprecision"),
        "is called mixed and has one type",
    );
    let half = |kind| matches!(kind, ElementType::QFloat16 | ElementType::QBFloat16);
    check(
        (preset.family == PresetFamily::Float)
            == (activation == weight
                && half(weight)
                && !preset.extra_options.contains_key("AutoMixprecision")),
        "has float types and is not of the float family, or the other way round",
    );
    check(
        preset.weights_in_float == (half(weight) || weight.is_block()),
        "keeps weights in float that are integers, or the other way round",
    );
    check(
        preset.format == QuantFormat::ExtendedQdq
            || ![activation, weight].into_iter().any(|kind| half(kind) || kind.is_block()),
        "has types that need ExtendedQuantFormat.QDQ",
    );
}

fn preset_bits(preset: &Preset, found: &mut Defects) {
    for (what, spec) in [("activation", &preset.activation), ("weight", &preset.weight)] {
        let expected = bits(preset, spec);
        found.check(
            (spec.bits - expected).abs() < 1e-9,
            &preset.id,
            format!("has {} bits for each {what}, not {expected}", spec.bits),
        );
    }
}

/// Bits of an element, from the attributes of the format.
fn bits(preset: &Preset, spec: &TensorSpec) -> f64 {
    let number = |block: &str, key: &str| {
        preset.extra_options.get(block).and_then(|block| block[key].as_f64()).unwrap_or(f64::NAN)
    };
    match spec.r#type {
        ElementType::QInt8 | ElementType::QUInt8 => 8.0,
        ElementType::QInt32 | ElementType::QUInt32 => 32.0,
        ElementType::QInt16
        | ElementType::QUInt16
        | ElementType::QFloat16
        | ElementType::QBFloat16 => 16.0,
        ElementType::Float => 32.0,
        ElementType::QInt4 => 4.0 + 32.0 / number("MatMulNBitsParams", "GroupSize"),
        ElementType::QBFP => {
            let block = |key| number("BFPAttributes", key);
            let shift = block("sub_block_shift_bits") / block("sub_block_size");
            let shift = if shift.is_nan() { 0.0 } else { shift };
            block("bit_width") - 8.0 + 8.0 / block("block_size") + shift
        }
        ElementType::QMX => {
            let element = match preset.extra_options["MXAttributes"]["element_dtype"].as_str() {
                Some("fp8_e5m2" | "fp8_e4m3" | "int8") => 8.0,
                Some("fp6_e3m2" | "fp6_e2m3") => 6.0,
                Some("fp4_e2m1") => 4.0,
                _ => f64::NAN,
            };
            element + 8.0 / number("MXAttributes", "block_size")
        }
    }
}

fn methods(found: &mut Defects) {
    let mut identifiers = BTreeSet::new();
    for method in CATALOGUE.methods().all() {
        let id = &method.id;
        found.check(identifiers.insert(&method.identifier), id, "shares its identifier");
        for param in &method.params {
            lifetime(id, param.since.as_ref(), param.until.as_ref(), found);
            let Some(option) = CATALOGUE.options().get(param.option.as_str()) else {
                found.add(id, format!("reads the unknown option `{}`", param.option));
                continue;
            };
            found.check(
                option.is_top_level() && fits(option.r#type, &param.default),
                id,
                format!("reads `{}` with the default {}", param.option, param.default),
            );
            found.check(
                param.choices.is_empty()
                    || (param.choices.contains(&param.default) && param.choices == option.choices),
                id,
                format!("has other choices for `{}` than the option", param.option),
            );
        }
    }
}

fn algorithms(found: &mut Defects) {
    for algorithm in CATALOGUE.algorithms().all() {
        let id = algorithm.id();
        found.check(
            (algorithm.formats.is_empty() && algorithm.not_with_weights.is_empty())
                == algorithm.otherwise.is_none(),
            id,
            "says what goes wrong or when, but not both",
        );
        for param in &algorithm.params {
            lifetime(
                format!("{id}.{}", param.name),
                param.since.as_ref(),
                param.until.as_ref(),
                found,
            );
            let Some(key) = &param.legacy else { continue };
            let option = CATALOGUE.options().get(key);
            found.check(
                option.is_some_and(|option| stands_for(option, algorithm)),
                id,
                format!("has the parameter `{}` with the unknown key `{key}`", param.name),
            );
        }
    }
}

/// Whether an option is where the legacy config of an algorithm has its parameters.
fn stands_for(option: &ExtraOption, algorithm: &Algorithm) -> bool {
    let block = match algorithm.id() {
        "AdaRound" | "AdaQuant" => "FastFinetune",
        "AutoMixprecision" => "AutoMixprecision",
        "GPTQ" => "GPTQParams",
        _ => return option.is_top_level(),
    };
    option.parents.iter().any(|parent| *parent == block)
}

fn option_is_sound(option: &ExtraOption, found: &mut Defects) {
    let id = option.id();
    for parent in &option.parents {
        let block = CATALOGUE.options().get(parent.as_str());
        found.check(
            block.is_some_and(|block| block.r#type == OptionType::Object && block.is_top_level()),
            id,
            format!("stands in `{parent}`, which is no block"),
        );
    }
    found.check(
        !option.also_top_level || !option.parents.is_empty(),
        id,
        "is also at the top level and nowhere else",
    );
    for block in option.within.keys() {
        found.check(
            option.parents.contains(block),
            id,
            format!("differs in `{block}`, where it is not"),
        );
    }
    for block in [None].into_iter().chain(option.parents.iter().map(Some)) {
        let default = option.default_in(block);
        let choices = option.choices_in(block);
        found.check(
            default.is_null() || fits(option.r#type, default),
            id,
            format!("has the default {default}"),
        );
        found.check(
            default.is_null() || choices.is_empty() || choices.contains(default),
            id,
            format!("has the default {default}, which is no choice"),
        );
        found.check(
            choices.iter().all(|choice| fits(option.r#type, choice)),
            id,
            "has a choice of another type",
        );
        if let Some(number) = default.as_f64() {
            found.check(
                option.min.is_none_or(|min| min <= number)
                    && option.max.is_none_or(|max| number <= max),
                id,
                format!("has the default {default}, which is out of range"),
            );
        }
    }
}

fn target_is_sound(target: &Target, found: &mut Defects) {
    let id = &target.id;
    found.check(
        target
            .accelerators
            .iter()
            .all(|name| ["amd-rocm", "nvidia-cuda", "cpu"].contains(&name.as_str())),
        id,
        "names an accelerator that env_context.json does not know",
    );
    found.check(
        target.npu == (target.runtime_provider.is_some() && !target.devices.is_empty()),
        id,
        "is an NPU without provider or devices, or the other way round",
    );
    let first = target.profiles.first().map(|profile| profile.id.as_str());
    found.check(
        first == Some(if target.npu { "strict" } else { "open" }),
        id,
        "does not begin with its strict profile",
    );
    let ids: BTreeSet<_> = target.profiles.iter().map(|profile| &profile.id).collect();
    found.check(ids.len() == target.profiles.len(), id, "has two profiles of one name");
    for device in &target.devices {
        found.check(
            CATALOGUE.devices().get(device.as_str()).is_some(),
            id,
            format!("names the unknown device `{device}`"),
        );
    }
    for profile in &target.profiles {
        profile_is_sound(target, profile, found);
    }
    if *id == "npu_cnn" {
        let strict: BTreeSet<_> = target.profiles.iter().take(1).flat_map(|p| &p.presets).collect();
        let flagged: BTreeSet<_> =
            CATALOGUE.presets().all().iter().filter(|p| p.npu_cnn).map(|p| &p.id).collect();
        found.check(strict == flagged, id, "admits others than the presets with enable_npu_cnn");
    }
}

fn profile_is_sound(target: &Target, profile: &Profile, found: &mut Defects) {
    let id = format!("{}/{}", target.id, profile.id);
    found.check(!profile.source.is_empty(), &id, "has no source");
    found.check(!profile.summary.is_empty(), &id, "has no summary");
    for device in &profile.devices {
        found.check(
            target.devices.contains(device),
            &id,
            format!("asks for `{device}`, which its target does not have"),
        );
    }
    for name in &profile.methods {
        let method = CATALOGUE.methods().get(name.as_str());
        found.check(
            method.is_some_and(|method| {
                !method.weights_only && admits(&profile.scales, method.scale)
            }),
            &id,
            format!("admits the method `{name}`, which is unknown or has other scales"),
        );
    }
    // Without devices of its own a profile holds on each of its target.
    let devices = if profile.devices.is_empty() { &target.devices } else { &profile.devices };
    for name in &profile.presets {
        let Some(preset) = CATALOGUE.presets().get(name.as_str()) else {
            found.add(&id, format!("admits the unknown preset `{name}`"));
            continue;
        };
        let method = CATALOGUE.methods().get(preset.calibration.as_str());
        found.check(
            method.is_some_and(|method| admits(&profile.scales, method.scale))
                && (profile.methods.is_empty() || profile.methods.contains(&preset.calibration)),
            &id,
            format!("admits `{name}` but not its calibration"),
        );
        let Some(precision) = &preset.npu_precision else { continue };
        for device in devices {
            let native = CATALOGUE.devices().get(device.as_str()).map(|device| &device.native);
            found.check(
                native.is_some_and(|native| native.contains(precision)),
                &id,
                format!("admits `{name}` on `{device}`, which does not have {precision}"),
            );
        }
    }
}

fn admits(scales: &[ScaleKind], scale: ScaleKind) -> bool {
    scales.is_empty() || scales.contains(&scale)
}

fn devices_and_ops(found: &mut Defects) {
    for device in CATALOGUE.devices().all() {
        let mut formats = BTreeSet::new();
        for format in device.native.iter().chain(&device.emulated).chain(&device.not_supported) {
            found.check(formats.insert(format), &device.id, format!("has `{format}` twice"));
        }
        found.check(!device.native.is_empty(), &device.id, "computes nothing");
    }
    for op in CATALOGUE.npu_ops().all() {
        let columns: BTreeSet<_> = op.precisions.iter().map(String::as_str).collect();
        found.check(
            !columns.is_empty()
                && columns.len() == op.precisions.len()
                && columns.iter().all(|column| NPU_PRECISIONS.contains(column)),
            &op.id,
            "has no columns, or wrong ones",
        );
    }
}

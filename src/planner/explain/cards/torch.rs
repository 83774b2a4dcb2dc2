//! The facts of what Quark-Torch offers.

use crate::{
    catalogue::{
        Catalogue, Entry,
        devices::DeviceKind,
        engines::{Engine, ExportFormat},
        entry_points::{EntryPoint, Flag},
        families::Family,
        prequantized::{Prequantized, Recovery},
        schemes::{
            CustomMode, EngineSupport, FileToFile, Fit, Granularity, Loads, Scheme, SchemeFamily,
            TensorScheme, UnevenGroup, WithoutNative,
        },
        torch_algorithms::{TorchAlgorithm, TorchAlgorithmKind},
    },
    planner::explain::cards::{only_in, releases, time, values, yes},
    rules::{
        rows,
        sheet::{list, lower, show},
    },
};

/// The facts of a scheme.
pub(super) fn scheme(scheme: &Scheme, add: &mut impl FnMut(&str, String)) {
    add("another name of", scheme.same_as.iter().map(|same| format!("`{same}`")).collect());
    add("do not use it", scheme.broken.as_deref().map(lower).unwrap_or_default());
    add("weights", tensor(&scheme.weight));
    add(
        "activations",
        scheme.activation.as_ref().map_or_else(|| "not quantized".to_owned(), tensor),
    );
    for earlier in &scheme.earlier_groups {
        add(&format!("group until {}", earlier.until), earlier.group_size.to_string());
    }
    add("bits of a weight in the file", format!("{}", scheme.bits));
    add(
        "calibration data",
        if scheme.needs_calibration_data {
            "needed: its values set the scales"
        } else {
            "without influence unless an algorithm runs, but loaded all the same"
        }
        .to_owned(),
    );
    add(
        "an input dimension that is no multiple of the group",
        match scheme.uneven_group {
            UnevenGroup::NoGroups => "",
            UnevenGroup::Error => "a ValueError, after the model has been loaded",
            UnevenGroup::Pads => "the last group is padded, which vLLM has no place for",
        }
        .to_owned(),
    );
    add(
        "export",
        match &scheme.export_error {
            Some(error) => format!("fails: `{}`", error.replace('`', "'")),
            None => "writes packed weights".to_owned(),
        },
    );
    add(
        "file by file",
        match scheme.file_to_file {
            Some(FileToFile::Complete) => "complete",
            Some(FileToFile::NoInputScales) => "writes no input scales, and nothing says so",
            None => "nobody has looked",
        }
        .to_owned(),
    );
    let modes = scheme.custom_modes.iter().map(|mode| match mode {
        CustomMode::Awq => "awq",
        CustomMode::Fp8 => "fp8",
    });
    add("layouts of other tools (`custom_mode`)", list(modes, 2));
    add("GGUF", scheme.gguf.as_ref().map(|kind| format!("as `{kind}`")).unwrap_or_default());
    let algorithms = Catalogue.torch_algorithms().all().iter();
    let suited = algorithms.filter(|one| one.suits.contains(&scheme.family));
    add("algorithms that are made for it", list(suited.map(|one| one.id.as_str()), 9));
    for (id, support) in &scheme.engines {
        add(&format!("in `{id}`"), in_engine(support));
    }
    for (fit, what) in [
        (Fit::Native, "computed as it is on"),
        (Fit::Emulated, "emulated on"),
        (Fit::NotSupported, "no units for it on"),
    ] {
        add(what, on(scheme, fit));
    }
    add("releases", releases(scheme));
}

/// The GPUs that run a scheme so.
fn on(scheme: &Scheme, fit: Fit) -> String {
    if scheme.needs.is_empty() {
        let all = "every GPU: weights are stored small, and the arithmetic stays in 16 bits";
        return if fit == Fit::Native { all.to_owned() } else { String::new() };
    }
    let gpus = Catalogue.devices().all().iter().filter(|one| one.kind == DeviceKind::Gpu);
    list(gpus.filter(|gpu| scheme.on(gpu) == fit).map(Entry::id), 30)
}

fn in_engine(support: &EngineSupport) -> String {
    let mut words = vec![match support.loads {
        Loads::Yes => "loads".to_owned(),
        Loads::ExpertsOnly => "loads for experts only".to_owned(),
        Loads::No => "does not load".to_owned(),
    }];
    if support.always_emulated {
        words.push("computes in a wider format on every device".to_owned());
    }
    words.extend(support.since.iter().map(|since| format!("since {since}")));
    words.extend(
        support.min_capability.map(|least| {
            format!("on NVIDIA from compute capability {}.{}", least / 10, least % 10)
        }),
    );
    words.extend(support.without_native.map(|without| match without {
        WithoutNative::Emulates => "emulates it on a device without units".to_owned(),
        WithoutNative::Refuses => "refuses on a device without units".to_owned(),
    }));
    words.extend(support.note.as_deref().map(lower));
    words.join("; ")
}

fn tensor(spec: &TensorScheme) -> String {
    let mut text = format!("`{}`, {}", spec.dtype, shared(spec.granularity, spec.group_size));
    if let Some(symmetric) = spec.symmetric {
        text.push_str(if symmetric { ", symmetric" } else { ", with zero points" });
    }
    if let Some(format) = &spec.scale_format {
        text.push_str(&format!(", scales in `{format}`"));
    }
    text.push_str(match spec.dynamic {
        Some(true) => ", while the model runs",
        Some(false) => ", beforehand",
        None => "",
    });
    if let Some(second) = &spec.second {
        let what = if second.of_scales { "; its scales in" } else { "; rounded beforehand to" };
        text.push_str(&format!("{what} `{}`, {}", second.dtype, shared(second.granularity, None)));
    }
    text
}

fn shared(granularity: Granularity, group: Option<u64>) -> String {
    let group = group.map_or_else(|| "some".to_owned(), |group| group.to_string());
    match granularity {
        Granularity::PerTensor => "one scale a tensor".to_owned(),
        Granularity::PerChannel => "one scale a row or token".to_owned(),
        Granularity::PerGroup => format!("one scale for {group} neighbours"),
        Granularity::Block => format!("one exponent for {group} neighbours"),
    }
}

/// The facts of an algorithm.
pub(super) fn algorithm(algorithm: &TorchAlgorithm, add: &mut impl FnMut(&str, String)) {
    add("do not use it", algorithm.broken.as_deref().map(lower).unwrap_or_default());
    add(
        "what it does",
        match algorithm.kind {
            TorchAlgorithmKind::Scaling => "scales channels so that they are easier to round",
            TorchAlgorithmKind::Rotation => "turns weights and activations by orthogonal matrices",
            TorchAlgorithmKind::Rounding => "chooses how each weight is rounded",
            TorchAlgorithmKind::OwnFormat => "brings a format of its own",
        }
        .to_owned(),
    );
    add("class", format!("`{}`", algorithm.class));
    add("takes", time(algorithm.time).to_owned());
    add("made for", suits(&algorithm.suits));
    let newest = &Catalogue.newest_release().id;
    let families = algorithm.families_in(newest);
    add(
        &format!("built-in config in {newest} for"),
        if families.is_empty() {
            "no family".to_owned()
        } else {
            list(families.iter().map(|id| id.as_str()), 60)
        },
    );
    add(
        "with any other family",
        "a NotImplementedError after loading, unless `algorithm_config` brings a config file"
            .to_owned(),
    );
    for known in &algorithm.with {
        let ruins = if known.ruins { "ruins the model: " } else { "" };
        let without =
            known.without.map(|cosine| format!(", {cosine} without any")).unwrap_or_default();
        add(
            &format!("and then `{}`", known.then),
            format!(
                "{ruins}cosine of the logits {}{without}, with `{}` on a tiny llama",
                known.cosine, known.scheme
            ),
        );
    }
    add("calibration data", if algorithm.needs_data { "needed" } else { "not needed" }.to_owned());
    add(
        "an input dimension that is no multiple of the group",
        if algorithm.asserts_even_groups { "stops it" } else { "" }.to_owned(),
    );
    add("on a GPU only with", list(algorithm.needs_gpu_with.iter().map(|id| id.as_str()), 9));
    add(
        "file by file",
        if algorithm.in_file_to_file { "runs, at least in part" } else { "does not run" }
            .to_owned(),
    );
    for param in algorithm.params.iter().filter(|param| param.name != "name") {
        let text = match param.default.as_str() {
            Some("<required>") => format!("must be set; `{}`", param.r#type),
            Some("") => format!("empty; `{}`", param.r#type),
            _ => format!("{}; `{}`", show(&param.default), param.r#type),
        };
        add(&format!("parameter `{}`", param.name), text);
    }
    add("releases", releases(algorithm));
}

fn suits(families: &[SchemeFamily]) -> String {
    if families.is_empty() {
        return "no kind of scheme".to_owned();
    }
    let fits = Catalogue.schemes().all().iter();
    let fits = fits.filter(|one| families.contains(&one.family) && one.broken.is_none());
    list(fits.map(|one| one.id.as_str()), 30)
}

/// The facts of a model family.
pub(super) fn family(family: &Family, add: &mut impl FnMut(&str, String)) {
    add("left in float by its template", list(&family.exclude_layers, 20));
    for earlier in &family.earlier_excludes {
        add(&format!("the same in {}", earlier.release), list(&earlier.exclude_layers, 20));
    }
    add("its outputs are the KV cache", list(&family.kv_layers, 9));
    add("its outputs are the queries", list(&family.q_layers, 9));
    let newest = &Catalogue.newest_release().id;
    let algorithms = Catalogue.algorithms_for(&family.id, newest);
    add(
        &format!("algorithms with a config in {newest}"),
        if algorithms.is_empty() {
            "none".to_owned()
        } else {
            list(algorithms.iter().map(|one| one.id.as_str()), 9)
        },
    );
    add(
        "transformers",
        family.transformers.as_ref().map(|least| format!("{least} or newer")).unwrap_or_default(),
    );
    add("loaded by", family.loading_class.iter().map(|class| format!("`{class}`")).collect());
    add("modules that are replaced before quantization", list(&family.replaced_modules, 9));
    add(
        "code of its repository",
        if family.remote_code {
            "is run: transformers 5.16.1 does not have this family"
        } else {
            ""
        }
        .to_owned(),
    );
    add(
        "fused experts, file by file",
        if family.splits_fused_experts { "are taken apart" } else { "" }.to_owned(),
    );
    add("releases", releases(family));
}

/// The facts of a program that carries a plan out.
pub(super) fn entry_point(entry: &EntryPoint, add: &mut impl FnMut(&str, String)) {
    for flag in entry.flags.iter().filter(|flag| flag.decision.is_some()) {
        let row = flag.decision.iter().filter(|row| rows::find(rows::TORCH, row).is_some());
        let row = row.map(|row| format!("for `{row}`"));
        let text = row.chain(flag_facts(flag)).collect::<Vec<_>>().join("; ");
        add(&format!("parameter `{}`", flag.name), text);
    }
    let others = entry.flags.iter().filter(|flag| flag.decision.is_none());
    add("other flags", list(others.map(|flag| &flag.name), 40));
    add("releases", releases(entry));
}

fn flag_facts(flag: &Flag) -> Vec<String> {
    let usable: Vec<&str> = flag.usable_choices().collect();
    let mut facts = Vec::new();
    if !usable.is_empty() {
        facts.push(format!("one of {}", list(&usable, 30)));
    }
    if !flag.failing.is_empty() {
        let failing = flag.failing.iter().map(|failing| &failing.value);
        facts.push(format!("accepted and failing later: {}", list(failing, 12)));
    }
    if !flag.default.is_null() {
        facts.push(format!("{} when it is not set", values(std::slice::from_ref(&flag.default))));
    }
    facts.extend(only_in(flag.since.as_ref(), None));
    facts.extend(flag.note.clone());
    facts
}

/// The facts of a program that runs a result.
pub(super) fn engine(engine: &Engine, add: &mut impl FnMut(&str, String)) {
    let reads = engine.reads.iter().map(|format| match format {
        ExportFormat::Quark => "Quark's own layout",
        ExportFormat::Awq => "AutoAWQ's layout",
        ExportFormat::Fp8 => "vLLM's FP8 layout",
        ExportFormat::Gguf => "GGUF",
    });
    add("reads", reads.collect::<Vec<_>>().join(", "));
    for fused in &engine.fused {
        add(&format!("fuses into `{}`", fused.into), list(&fused.layers, 9));
    }
    add("KV cache", list(&engine.kv_cache, 9));
    let queries = engine.query_outputs.iter().map(|passes| {
        let with = if passes.needs_kv_cache { ", with a quantized KV cache only" } else { "" };
        format!("under the pattern `{}`{with}", passes.pattern)
    });
    add("queries in FP8 (`attention_scheme`)", queries.collect());
    add(
        "group in each tensor-parallel rank",
        engine
            .group_per_rank
            .map(|must| {
                if must {
                    "must divide the rank's share"
                } else {
                    "need not divide the rank's share"
                }
                .to_owned()
            })
            .unwrap_or_default(),
    );
    add(
        "heads and widths in each rank",
        engine
            .heads_per_rank
            .filter(|must| *must)
            .map(|_| "must be whole".to_owned())
            .unwrap_or_default(),
    );
    add("model types", list(&engine.architectures, 40));
    for (loads, what) in [
        (Loads::Yes, "schemes that it loads"),
        (Loads::ExpertsOnly, "schemes that it loads for experts only"),
        (Loads::No, "schemes that it does not load"),
    ] {
        let schemes = Catalogue.schemes().all().iter();
        let so = schemes.filter(|scheme| {
            scheme.engines.get(&engine.id).is_some_and(|support| support.loads == loads)
        });
        add(what, list(so.map(|scheme| scheme.id.as_str()), 30));
    }
}

/// The facts of a checkpoint that is quantized already.
pub(super) fn prequantized(source: &Prequantized, add: &mut impl FnMut(&str, String)) {
    let since = source.in_memory_since.as_ref().map(|since| format!(", from {since}"));
    add(
        "the ordinary flow",
        format!("{}{}", recovery(source.in_memory), since.unwrap_or_default()),
    );
    add("file by file", recovery(source.file_to_file).to_owned());
    if source.file_to_file_needs_one_gpu {
        add("file by file needs exactly one GPU", yes(true));
    }
    add("only for", list(source.families.iter().map(|id| id.as_str()), 9));
    add("packages", list(&source.packages, 9));
    add("releases", releases(source));
}

fn recovery(recovery: Recovery) -> &'static str {
    match recovery {
        Recovery::Recovers => {
            "brings them back to floats and quantizes anew, with the loss of both"
        }
        Recovery::TakesAsTheyAre => {
            "takes them as they are, as if they were floats; nothing says so"
        }
        Recovery::NotRecovered => "does not know them",
    }
}

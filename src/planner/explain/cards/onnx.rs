//! The facts of what Quark-ONNX offers.

use std::collections::BTreeSet;

use crate::{
    catalogue::{
        Catalogue, Entry,
        algorithms::{Algorithm, AlgorithmKind},
        methods::Method,
        npu_ops::NpuOp,
        options::{ExtraOption, OptionType},
        presets::{Preset, QuantFormat, TensorSpec},
        targets::{Profile, Target},
    },
    planner::explain::cards::{only_in, releases, time, values, yes, yes_or_nothing},
    render::plain,
    rules::sheet::{list, show},
    vocab::ScaleKind,
};

/// The facts of a calibration method.
pub(super) fn method(method: &Method, add: &mut impl FnMut(&str, String)) {
    add("in the library", format!("`{}`", method.identifier));
    add("in QConfig", method.qconfig.clone());
    add("scales", scale(method.scale).to_owned());
    add("keeps a histogram", yes(method.histogram));
    add("for weights only", yes_or_nothing(method.weights_only));
    for param in &method.params {
        let mut text = format!("{} when it is not set", show(&param.default));
        if !param.choices.is_empty() {
            text.push_str(&format!("; one of {}", values(&param.choices)));
        }
        let releases = only_in(param.since.as_ref(), param.until.as_ref());
        let more = [releases.as_deref(), param.note.as_deref()];
        for more in more.into_iter().flatten() {
            text.push_str(&format!("; {more}"));
        }
        add(&format!("parameter `{}`", param.option), text);
    }
    add("releases", releases(method));
}

/// The facts of a deployment target.
pub(super) fn target(target: &Target, add: &mut impl FnMut(&str, String)) {
    add("calibrates with", format!("`{}`", target.execution_provider));
    add("runs with", target.runtime_provider.iter().map(|p| format!("`{p}`")).collect());
    add("packages", list(&target.runtime_packages, 9));
    add("devices", list(target.devices.iter().map(|d| d.as_str()), 9));
    add(
        "layout of images",
        target.layout.map(|l| format!("{l:?}").to_uppercase()).unwrap_or_default(),
    );
    add("batch", target.batch.map(|b| b.to_string()).unwrap_or_default());
    add("fixed shapes needed", yes_or_nothing(target.static_dims));
    add("least Conv nodes", target.min_conv_nodes.map(|n| n.to_string()).unwrap_or_default());
    add("opset to aim at", target.recommended_opset.map(|o| o.to_string()).unwrap_or_default());
    for profile in &target.profiles {
        add(&format!("profile `{}`", profile.id), profile_text(profile));
    }
}

/// The facts of an op type on the NPU.
pub(super) fn op(op: &NpuOp, add: &mut impl FnMut(&str, String)) {
    let mut columns = BTreeSet::new();
    for op in Catalogue.npu_ops().all() {
        columns.extend(op.precisions.iter().map(String::as_str));
    }
    let missing = columns.into_iter().filter(|c| !op.precisions.iter().any(|p| p == c));
    add("runs as", list(&op.precisions, 9));
    add("falls to the CPU as", list(missing, 9));
}

/// The facts of a preset.
pub(super) fn preset(preset: &Preset, add: &mut impl FnMut(&str, String)) {
    add("activations", tensor(&preset.activation));
    add("weights", tensor(&preset.weight));
    add("scale for each channel", yes(preset.per_channel));
    add("seven bits only", yes_or_nothing(preset.reduce_range));
    add(
        "weights in the file",
        if preset.weights_in_float {
            "float, rounded while it runs: the file is no smaller"
        } else {
            "quantized"
        }
        .to_owned(),
    );
    add(
        "calibration",
        if preset.dynamic {
            "none: ranges are found while the model runs".to_owned()
        } else {
            format!("`{}`", preset.calibration)
        },
    );
    let data = match (preset.dynamic, preset.uses_calibration_data) {
        (true, _) => "not needed",
        (false, true) => "needed",
        (false, false) => "a reader is needed, what it yields has no influence",
    };
    add("calibration data", data.to_owned());
    add("format", format(preset.format).to_owned());
    add("algorithms it brings", list(preset.algorithms.iter().map(|a| a.as_str()), 9));
    add(
        "custom ops to load",
        if preset.custom_ops.is_empty() { "none".to_owned() } else { list(&preset.custom_ops, 9) },
    );
    add("domains of its Q/DQ nodes", list(&preset.qdq_domains, 9));
    add("sets", flags(preset));
    add(
        "column of the NPU's op table",
        preset.npu_precision.as_ref().map_or_else(|| "none".to_owned(), |p| format!("`{p}`")),
    );
    add("allowed on", allowed_on(preset));
    let options: Vec<String> =
        preset.extra_options.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
    add("its own extra options", list(options, 12));
    add("releases", releases(preset));
}

/// The facts of an ONNX algorithm.
pub(super) fn algorithm(algorithm: &Algorithm, add: &mut impl FnMut(&str, String)) {
    add(
        "runs",
        match algorithm.kind {
            AlgorithmKind::Pre => "before quantization",
            AlgorithmKind::Post => "after quantization",
            AlgorithmKind::Instead => "instead of ordinary quantization",
        }
        .to_owned(),
    );
    add("takes", time(algorithm.time).to_owned());
    add("class", algorithm.class.iter().map(|c| format!("`{c}`")).collect());
    add("in a legacy config", format!("`{}`", algorithm.legacy));
    add("acts on", list(&algorithm.op_types, 9));
    add("meant for", list(algorithm.architectures.iter().map(|a| a.as_str()), 9));
    add(
        "works with",
        if algorithm.formats.is_empty() {
            "every format".to_owned()
        } else {
            algorithm.formats.iter().map(|f| format(*f)).collect::<Vec<_>>().join(", ")
        },
    );
    add(
        "does nothing or fails with",
        list(algorithm.not_with_weights.iter().map(|w| format!("{w:?}")), 9),
    );
    add("what happens then", algorithm.otherwise.clone().unwrap_or_default());
    add("calibration data", if algorithm.needs_data { "needed" } else { "not needed" }.to_owned());
    add(
        "fast finetuning",
        if algorithm.fast_finetune { "yes: only one of these runs" } else { "" }.to_owned(),
    );
    let presets: Vec<&str> = Catalogue
        .presets()
        .all()
        .iter()
        .filter(|p| p.algorithms.contains(&algorithm.id))
        .map(Entry::id)
        .collect();
    let all = presets.len() == Catalogue.presets().all().len();
    add("presets that bring it", if all { "every one".to_owned() } else { list(presets, 6) });
    let newest = &Catalogue.newest_release().id;
    for param in &algorithm.params {
        // Parameters of earlier releases would double those of the newest.
        if param.until.is_some() && param.until.as_ref() != Some(newest) {
            continue;
        }
        let mut text = match param.default.as_str() {
            Some("<required>") => "must be set".to_owned(),
            _ => show(&param.default),
        };
        if let Some(key) = &param.legacy {
            text.push_str(&format!(" (`{key}`)"));
        }
        if !param.effective {
            text.push_str("; accepted, but without effect");
        }
        if let Some(only) = only_in(param.since.as_ref(), None) {
            text.push_str(&format!("; {only}"));
        }
        add(&format!("parameter `{}`", param.name), text);
    }
    add("releases", releases(algorithm));
}

/// The facts of an extra option.
pub(super) fn option(option: &ExtraOption, add: &mut impl FnMut(&str, String)) {
    add("type", option_type(option.r#type).to_owned());
    add(
        "when it is not set",
        if option.default.is_null() { String::new() } else { show(&option.default) },
    );
    add("one of", values(&option.choices));
    let range = match (option.min, option.max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => String::new(),
    };
    add("range", range);
    let mut stands = list(option.parents.iter().map(|p| p.as_str()), 9);
    if option.also_top_level {
        stands.push_str(", and the top level");
    }
    add(
        "stands in",
        if option.parents.is_empty() {
            "the top level of `extra_options`".to_owned()
        } else {
            stands
        },
    );
    for (block, within) in &option.within {
        let default = within.default.iter().map(|d| format!("{} when it is not set", show(d)));
        let choices = within.choices.iter().map(|c| format!("one of {}", values(c)));
        add(&format!("in `{block}`"), default.chain(choices).collect::<Vec<_>>().join("; "));
    }
    add(
        "in QConfig",
        if option.warns_in_qconfig { "works, with a warning" } else { "" }.to_owned(),
    );
    add("releases", releases(option));
}

/// What is allowed in a profile of a target.
fn profile_text(profile: &Profile) -> String {
    let mut text = profile.summary.clone();
    let mut more = |what: &str, names: String| {
        if !names.is_empty() {
            text.push_str(&format!("; {what} {names}"));
        }
    };
    more("from Ryzen AI", profile.ryzen_ai.clone().unwrap_or_default());
    more("on", list(profile.devices.iter().map(|d| d.as_str()), 9));
    more("presets", list(profile.presets.iter().map(|p| p.as_str()), 12));
    more("scales:", profile.scales.iter().map(|s| scale(*s)).collect::<Vec<_>>().join(", "));
    more("methods", list(profile.methods.iter().map(|m| m.as_str()), 9));
    text
}

fn allowed_on(preset: &Preset) -> String {
    let allowed = Catalogue.targets().all().iter().flat_map(|target| {
        let profiles: Vec<&str> = target
            .profiles
            .iter()
            .filter(|profile| profile.presets.is_empty() || profile.presets.contains(&preset.id))
            .map(|profile| profile.id.as_str())
            .collect();
        let strict = profiles.contains(&"strict") || profiles.contains(&"open");
        match profiles.first() {
            None => None,
            Some(_) if strict => Some(format!("`{}`", target.id)),
            Some(first) => Some(format!("`{}` (profile `{first}`)", target.id)),
        }
    });
    allowed.collect::<Vec<_>>().join(", ")
}

fn flags(preset: &Preset) -> String {
    let flags =
        [("enable_npu_cnn", preset.npu_cnn), ("enable_npu_transformer", preset.npu_transformer)];
    list(flags.iter().filter(|(_, on)| *on).map(|(flag, _)| *flag), 2)
}

fn tensor(spec: &TensorSpec) -> String {
    let symmetry = if spec.symmetric { "symmetric" } else { "asymmetric" };
    format!("`{:?}`, {symmetry}, {} bits", spec.r#type, spec.bits)
}

fn format(format: QuantFormat) -> &'static str {
    match format {
        QuantFormat::Qdq => "`QuantFormat.QDQ` (standard Q/DQ nodes)",
        QuantFormat::ExtendedQdq => {
            "`ExtendedQuantFormat.QDQ` (Q/DQ nodes of com.microsoft or com.amd.quark)"
        }
    }
}

fn scale(kind: ScaleKind) -> &'static str {
    match kind {
        ScaleKind::Float => "any float",
        ScaleKind::PowerOfTwo => "powers of two only",
        ScaleKind::Int16 => "M * 2^-N with a 16-bit M",
    }
}

fn option_type(kind: OptionType) -> &'static str {
    match kind {
        OptionType::Bool => "`true` or `false`",
        OptionType::Int => "a whole number",
        OptionType::Float => "a number",
        OptionType::Text => "text",
        OptionType::TextList => "a list of texts",
        OptionType::NumberList => "a list of numbers",
        OptionType::List => "a list",
        OptionType::Object => "an object",
        OptionType::Python => "something that only Python can express",
        OptionType::Any => "not known",
    }
}

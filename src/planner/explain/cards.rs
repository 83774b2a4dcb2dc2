//! What there is to say about a thing, in Markdown.

use serde_json::Value;

use crate::{
    catalogue::{
        Catalogue, Entry, Source,
        algorithms::{Algorithm, AlgorithmKind, TimeClass},
        options::{ExtraOption, OptionType},
        presets::{Preset, QuantFormat, TensorSpec},
        targets::Profile,
    },
    planner::explain::things::Thing,
    render::plain,
    rules::{
        rows::{Kind, Row, Takes},
        sheet::{list, show},
    },
    vocab::{Backend, ReleaseId, ScaleKind},
};

/// The whole answer about one thing, without its sources.
pub(super) fn card(thing: Thing) -> String {
    if let Thing::Rule(rule) = thing {
        return format!(
            "**`{}`** is a rule ({}, {}).\n\n{}",
            rule.id,
            rule.stage.as_str(),
            rule.backend.map_or("both halves", Backend::as_str),
            rule.documentation()
        );
    }
    let mut out =
        format!("**`{}`** ({}): {}.\n", thing.id(), thing.kind(), prose(&thing.summary()));
    if let Thing::Topic(topic) = thing {
        out.push_str("\n| When | Take | Because |\n|---|---|---|\n");
        for case in &topic.cases {
            let take = list(&case.take, 9);
            out.push_str(&format!(
                "| {} | {} | {} |\n",
                prose(&case.when),
                take,
                prose(&case.because)
            ));
        }
    } else {
        let facts = facts(thing);
        let (params, facts): (Vec<_>, Vec<_>) =
            facts.into_iter().partition(|fact| fact.0.starts_with("parameter "));
        if !facts.is_empty() {
            out.push_str("\n| | |\n|---|---|\n");
            for (what, value) in &facts {
                out.push_str(&format!("| {} | {} |\n", prose(what), prose(value)));
            }
        }
        if !params.is_empty() {
            out.push_str("\nParameters:\n\n");
            for (what, value) in &params {
                out.push_str(&format!(
                    "- {}: {}\n",
                    prose(what.trim_start_matches("parameter ")),
                    prose(value)
                ));
            }
        }
    }
    if let Some(when) = thing.use_when() {
        out.push_str(&format!("\n**When to pick it:** {}.\n", prose(when.trim_end_matches('.'))));
    }
    push_notes(&mut out, thing.notes());
    out
}

/// "Notes" as a list.
fn push_notes(out: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        out.push_str("\nTo know:\n\n");
        for note in notes {
            out.push_str(&format!("- {}\n", prose(note)));
        }
    }
}

/// "Sources" as a line, each once.
pub(super) fn sources_line(sources: &[Source]) -> String {
    let mut named: Vec<String> = Vec::new();
    for source in sources {
        let measured = if source.measured { " (seen in a run)" } else { "" };
        let text = prose(&format!("{} `{}`{measured}", source.release, source.path));
        if !named.contains(&text) {
            named.push(text);
        }
    }
    format!("\nSources: {}.\n", named.join("; "))
}

/// Text of the catalogue, which is ours: only what would break a table or begin emphasis is escaped.
pub(super) fn prose(text: &str) -> String {
    let mut code = true;
    let parts = text.split('`').map(|part| {
        code = !code;
        let part = part.replace('|', "\\|");
        if code { part } else { part.replace('*', "\\*").replace('<', "&lt;") }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The facts of a thing as rows; what begins with `parameter` is a list of its own.
pub(super) fn facts(thing: Thing) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |what: &str, value: String| {
        if !value.is_empty() {
            rows.push((what.to_owned(), value));
        }
    };
    match thing {
        Thing::Preset(preset) => preset_facts(preset, &mut add),
        Thing::Method(method) => {
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
        Thing::Algorithm(algorithm) => algorithm_facts(algorithm, &mut add),
        Thing::Target(target) => {
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
            add(
                "least Conv nodes",
                target.min_conv_nodes.map(|n| n.to_string()).unwrap_or_default(),
            );
            add(
                "opset to aim at",
                target.recommended_opset.map(|o| o.to_string()).unwrap_or_default(),
            );
            for profile in &target.profiles {
                add(&format!("profile `{}`", profile.id), profile_text(profile));
            }
        }
        Thing::Decision(row) => {
            add("takes", takes(row));
            if let Takes::Name(kind) | Takes::Names(kind) = row.takes {
                add("names", names(kind));
            }
            add("to set it", format!("`revise_plan` with `{{\"values\": {{\"{}\": …}}}}`", row.id));
        }
        Thing::Option(option) => option_facts(option, &mut add),
        Thing::Device(device) => {
            add("also called", list(&device.aliases, 12));
            add("computes", list(&device.native, 20));
            add("emulates", list(&device.emulated, 20));
            add("does not run, or nobody documents it", list(&device.not_supported, 20));
        }
        Thing::Release(release) => {
            add("Python", format!("`{}`", release.python));
            let range = |range: &Option<String>| range.iter().map(|r| format!("`{r}`")).collect();
            add("onnx", range(&release.onnx));
            add("ONNX Runtime", range(&release.onnxruntime));
            add("transformers", range(&release.transformers));
        }
        Thing::Skill(skill) => {
            add("half of Quark", half(skill.backend).to_owned());
            add("writes", list(skill.produces.iter().map(|a| &a.name), 9));
            add("reads", list(&skill.needs, 9));
            for named in &skill.names {
                add(&format!("in {}", named.release), format!("`{}`", named.name));
            }
        }
        Thing::Recovery(recovery) => {
            add("half of Quark", half(recovery.backend).to_owned());
            add("looks like", format!("`{}`", recovery.example.replace('`', "'")));
            add("cause", recovery.cause.clone());
            add("remedy", recovery.remedy.clone());
            add("goes on in", format!("`{}`", recovery.skill));
            add("decisions to look at", list(recovery.decisions.iter().map(|d| d.as_str()), 9));
        }
        Thing::Op(op) => {
            let mut columns = std::collections::BTreeSet::new();
            for op in Catalogue.npu_ops().all() {
                columns.extend(op.precisions.iter().map(String::as_str));
            }
            let missing = columns.into_iter().filter(|c| !op.precisions.iter().any(|p| p == c));
            add("runs as", list(&op.precisions, 9));
            add("falls to the CPU as", list(missing, 9));
        }
        Thing::Rule(_) | Thing::Topic(_) => {}
    }
    rows
}

fn preset_facts(preset: &Preset, add: &mut impl FnMut(&str, String)) {
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

fn algorithm_facts(algorithm: &Algorithm, add: &mut impl FnMut(&str, String)) {
    add(
        "runs",
        match algorithm.kind {
            AlgorithmKind::Pre => "before quantization",
            AlgorithmKind::Post => "after quantization",
            AlgorithmKind::Instead => "instead of ordinary quantization",
        }
        .to_owned(),
    );
    add(
        "takes",
        match algorithm.time {
            TimeClass::Seconds => "seconds",
            TimeClass::Minutes => "minutes",
            TimeClass::Hours => "up to hours, above all on a CPU",
        }
        .to_owned(),
    );
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

fn option_facts(option: &ExtraOption, add: &mut impl FnMut(&str, String)) {
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

fn takes(row: &Row) -> String {
    match row.takes {
        Takes::Nothing(why) => format!("nothing: {why}"),
        Takes::Name(_) => "one name".to_owned(),
        Takes::Names(_) => "a list of names".to_owned(),
        Takes::Count { min, max } => format!("a whole number from {min} to {max}"),
        Takes::Flag => "`true` or `false`".to_owned(),
        Takes::OpTypes => "a list of op types of the graph, or `null`".to_owned(),
        Takes::Nodes => "a list of node names or patterns of the graph, or `null`".to_owned(),
        Takes::Subgraphs => "a list of pairs: start nodes and end nodes".to_owned(),
        Takes::Options => "an object of extra options".to_owned(),
        Takes::CustomConfig => "an object with the spec of a `custom` preset".to_owned(),
        Takes::Providers => "a list of execution providers".to_owned(),
        Takes::Evaluation => "`none`, `smoke`, `full`, `mlperf` or `mAP`".to_owned(),
        Takes::Choice(words) => format!("one of {}, or `null`", list(words, words.len())),
        Takes::Number => "a number from 0".to_owned(),
        Takes::Path => "a path, or `null`".to_owned(),
        Takes::Dataset => "the name of a data set that Quark-Torch can load".to_owned(),
        Takes::Patterns => {
            "`null` for the template's list, a list of patterns in its place, or `[]` for none"
                .to_owned()
        }
        Takes::Overrides => "an object of patterns, each with a scheme".to_owned(),
        Takes::Algorithms => {
            "`null`, an algorithm, or several in their order, as a list or with commas".to_owned()
        }
    }
}

fn names(kind: Kind) -> String {
    let c = Catalogue;
    match kind {
        Kind::Target => list(c.targets().ids(), 20),
        Kind::Preset => list(c.presets().ids(), 12),
        Kind::Method => list(c.methods().ids(), 20),
        Kind::Algorithm => list(c.algorithms().ids(), 20),
        Kind::Release => list(c.releases().ids(), 20),
        Kind::Scheme => list(c.schemes().ids(), 30),
        Kind::EntryPoint => list(c.entry_points().ids(), 20),
    }
}

fn half(backend: Option<Backend>) -> &'static str {
    match backend {
        Some(Backend::Onnx) => "Quark-ONNX",
        Some(Backend::Torch) => "Quark-Torch",
        None => "both",
    }
}

fn releases(entry: &impl Entry) -> String {
    let with = Catalogue.releases_with(entry);
    let all = Catalogue.releases().all().len();
    let names = with.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
    if with.len() == all { format!("all known ({names})") } else { names }
}

fn only_in(since: Option<&ReleaseId>, until: Option<&ReleaseId>) -> Option<String> {
    let oldest = Catalogue.releases().all().first().map(|release| &release.id);
    let since = since.filter(|since| Some(*since) != oldest);
    match (since, until) {
        (None, None) => None,
        (Some(since), None) => Some(format!("from {since}")),
        (None, Some(until)) => Some(format!("until {until}")),
        (Some(since), Some(until)) => Some(format!("from {since} until {until}")),
    }
}

fn values(values: &[Value]) -> String {
    values.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn yes_or_nothing(is: bool) -> String {
    if is { "yes" } else { "" }.to_owned()
}

//! Every place where a model may say that it is quantized already, and what it says there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::facts::torch::ExistingQuantization;
use crate::intake::hf::config::{self, flag, list, number, short, table, text};
use crate::intake::safetensors::{Tensor, dtype};

/// Files beside the config that state a quantization.
pub const SIDE_FILES: [&str; 3] =
    ["hf_quant_config.json", "quantize_config.json", "quant_config.json"];
/// Keys that state one, at any level.
const KEYS: [&str; 4] =
    ["quantization_config", "compression_config", "quant_config", "quantization"];
/// How deep configs nest.
const NESTING: usize = 4;
/// Excluded modules that are repeated; their number always is.
const SHOWN: usize = 16;
/// Lists of what is left in float, in the words of each tool.
const EXCLUDED: [&str; 7] = [
    "ignore",
    "exclude",
    "exclude_modules",
    "modules_to_not_convert",
    "llm_int8_skip_modules",
    "skip_modules",
    "ignored_layers",
];
/// Ends of tensor names that only quantized checkpoints have.
const TELLING: [&str; 14] = [
    ".qweight",
    ".qzeros",
    ".g_idx",
    ".weight_packed",
    ".weight_scale",
    ".weight_scale_2",
    ".weight_scale_inv",
    ".weight_scale_second",
    ".weight_zero_point",
    ".weight_global_scale",
    ".input_scale",
    "_blocks",
    ".absmax",
    ".SCB",
];

/// What the config states, the outermost first.
pub fn in_config(config: &Map<String, Value>) -> Vec<ExistingQuantization> {
    let mut found = Vec::new();
    walk(config, "", NESTING, &mut found);
    // DeepSeek V4 states the type of its experts beside the quantization of the rest.
    let narrow = text(config, &["expert_dtype"])
        .filter(|name| dtype::by_name(name).is_none_or(|one| !one.is_float()));
    if let Some(format) = narrow {
        found.push(ExistingQuantization {
            found_in: "expert_dtype".to_owned(),
            weight_bits: bits_in(&format),
            format: Some(format),
            ..ExistingQuantization::default()
        });
    }
    found
}

fn walk(of: &Map<String, Value>, path: &str, depth: usize, found: &mut Vec<ExistingQuantization>) {
    for key in KEYS {
        // MLX writes the same under both keys; `quantization` alone may be another setting.
        let stated = table(of, key).filter(|one| {
            key != "quantization" || (one.contains_key("bits") && !of.contains_key(KEYS[0]))
        });
        if let Some(stated) = stated.filter(|one| is_on(one)) {
            found.push(stated_in(stated, format!("{path}{key}")));
        }
    }
    if depth == 0 {
        return;
    }
    for (key, inner) in of {
        if let (Value::Object(inner), false) = (inner, KEYS.contains(&key.as_str())) {
            walk(inner, &format!("{path}{}.", short(key)), depth - 1, found);
        }
    }
}

/// An object of nothing but nulls, or of bitsandbytes with both widths off, states nothing.
fn is_on(of: &Map<String, Value>) -> bool {
    let off =
        flag(of, &["load_in_4bit"]) == Some(false) && flag(of, &["load_in_8bit"]) == Some(false);
    !off && of.values().any(|value| !value.is_null())
}

/// What a file beside the config states.
pub fn in_side_file(name: &str, of: &Map<String, Value>) -> Option<ExistingQuantization> {
    let mut stated = stated_in(table(of, "quantization").unwrap_or(of), name.to_owned());
    stated.method = stated.method.or_else(|| producer(of));
    is_on(of).then_some(stated)
}

fn producer(of: &Map<String, Value>) -> Option<String> {
    text(table(of, "producer")?, &["name"])
}

/// Reads one statement; each tool has its own words.
fn stated_in(of: &Map<String, Value>, found_in: String) -> ExistingQuantization {
    // One group of layers speaks for all; compressed-tensors and ModelOpt may have several.
    let group = table(of, "config_groups")
        .and_then(|groups| groups.values().find_map(|group| table(group.as_object()?, "weights")));
    // Quark's weights may have two stages; the second is the stored one.
    let quark = table(of, "global_quant_config").and_then(|all| {
        let weight = all.get("weight")?;
        weight.as_object().or_else(|| weight.as_array()?.last()?.as_object())
    });
    let algorithm = mixed(of).or_else(|| text(of, &["quant_algo"]));
    let format = algorithm
        .or_else(|| text(of, &["format", "fmt", "bnb_4bit_quant_type", "quant_type", "weights"]))
        .or_else(|| text(quark?, &["dtype"]))
        .or_else(|| text(group?, &["type"]));
    let yes = |key: &str| flag(of, &[key]) == Some(true);
    let bits = number(of, &["bits", "w_bit", "nbits", "num_bits"])
        .or_else(|| number(group?, &["num_bits"]))
        .or_else(|| bits_in(&text(quark?, &["dtype"])?))
        .or_else(|| yes("load_in_4bit").then_some(4))
        .or_else(|| yes("load_in_8bit").then_some(8))
        .or_else(|| bits_in(format.as_deref()?))
        .or_else(|| bits_in(&text(of, &["quant_method"])?));
    let group_size = number(of, &["group_size", "q_group_size"])
        .or_else(|| number(group?, &["group_size"]))
        .or_else(|| number(quark?, &["group_size"]));
    let excluded = EXCLUDED.iter().find_map(|key| list(of, key));
    let kv_cache = text(of, &["kv_cache_quant_algo", "kv_cache_scheme"]).or_else(|| {
        let scheme = table(of, "kv_cache_scheme")?;
        Some(format!("{}{}", text(scheme, &["type"])?, number(scheme, &["num_bits"])?))
    });
    ExistingQuantization {
        found_in,
        method: text(of, &["quant_method"]).or_else(|| producer(of)),
        format,
        weight_bits: bits,
        group_size,
        block_size: list(of, "weight_block_size")
            .into_iter()
            .flatten()
            .filter_map(config::whole)
            .take(2)
            .collect(),
        kv_cache,
        excluded_count: excluded.map(|names| names.len() as u64),
        excluded: excluded
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .take(SHOWN)
            .map(short)
            .collect(),
        evidence: BTreeMap::new(),
    }
}

/// The formats of ModelOpt's mixed precision, which states one for each layer.
fn mixed(of: &Map<String, Value>) -> Option<String> {
    let layers = table(of, "quantized_layers")?.values();
    let formats: BTreeSet<String> =
        layers.filter_map(|layer| text(layer.as_object()?, &["quant_algo"])).collect();
    let formats: Vec<String> = formats.into_iter().take(SHOWN).collect();
    (!formats.is_empty()).then(|| formats.join("+"))
}

/// The bits in the name of a number format, for example 4 in `NVFP4` and 8 in `e4m3`.
fn bits_in(format: &str) -> Option<u64> {
    let format = format.to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|name| format.contains(name));
    if is(&["fp4", "nf4", "int4", "w4a", "float4"]) {
        Some(4)
    } else if is(&["fp6"]) {
        Some(6)
    } else if is(&["fp8", "float8", "e4m3", "e5m2", "int8", "w8a"]) {
        Some(8)
    } else {
        None
    }
}

/// What the headers of the weights show: narrow or packed types, and names that only quantized ones have.
pub fn in_weights(tensors: &[Tensor]) -> Option<ExistingQuantization> {
    let mut evidence = BTreeMap::new();
    let mut add = |what: &str| match evidence.get_mut(what) {
        Some(count) => *count += 1,
        None => {
            evidence.insert(what.to_owned(), 1_u64);
        }
    };
    for tensor in tensors {
        // Masks and token ids are whole numbers as well, so only weights of two dimensions count.
        if tensor.dtype.is_narrow() && tensor.shape.len() >= 2 {
            add(tensor.dtype.name);
        }
        if let Some(end) = TELLING.iter().find(|end| tensor.name.ends_with(**end)) {
            add(end);
        }
    }
    (!evidence.is_empty()).then(|| ExistingQuantization {
        found_in: "weights".to_owned(),
        evidence,
        ..ExistingQuantization::default()
    })
}

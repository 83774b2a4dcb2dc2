//! A `custom` preset: the spec that the user gives, read into an entry like those of the catalogue, so that
//! every gate applies to it.

use serde_json::{Map, Value};

use crate::{
    catalogue::presets::{ElementType, Preset, PresetFamily, QuantFormat, TensorSpec},
    rules::{Context, common::versions, request::Defect, sheet::list},
    vocab::{PresetId, ReleaseId, near_names},
};

/// The name of a preset that is spelled out.
pub const NAME: &str = "custom";

const KEYS: [&str; 10] = [
    "activation_type",
    "weight_type",
    "calibrate_method",
    "quant_format",
    "per_channel",
    "reduce_range",
    "activation_symmetric",
    "weight_symmetric",
    "enable_npu_cnn",
    "enable_npu_transformer",
];

const TYPES: [(&str, ElementType, f64); 11] = [
    ("QInt4", ElementType::QInt4, 4.0),
    ("QInt8", ElementType::QInt8, 8.0),
    ("QUInt8", ElementType::QUInt8, 8.0),
    ("QInt16", ElementType::QInt16, 16.0),
    ("QUInt16", ElementType::QUInt16, 16.0),
    ("QInt32", ElementType::QInt32, 32.0),
    ("QUInt32", ElementType::QUInt32, 32.0),
    ("QFloat16", ElementType::QFloat16, 16.0),
    ("QBFloat16", ElementType::QBFloat16, 16.0),
    // Bits of the common blocks; the attributes of the block may say otherwise.
    ("QBFP", ElementType::QBFP, 9.0),
    ("QMX", ElementType::QMX, 8.25),
];

/// The spec of a custom preset as an entry.
///
/// # Errors
///
/// Every defect of the spec, those that the library answers with an exception among them.
pub fn read(
    ctx: &Context<'_>,
    release: &ReleaseId,
    config: &Map<String, Value>,
) -> Result<Preset, Vec<Defect>> {
    let mut defects = Vec::new();
    let mut defect =
        |message: String, hint: Option<String>| defects.push(Defect { message, hint, row: None });
    for key in config.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        let near = near_names(key, KEYS);
        let hint = if near.is_empty() {
            "its keys are those of QuantizationConfig; extra options belong into `onnx_specific.extra_options`".to_owned()
        } else {
            format!("did you mean {}?", list(near, 3))
        };
        defect(format!("`onnx_specific.custom_config` has an unknown key `{key}`"), Some(hint));
    }
    let text = |key: &str| config.get(key).and_then(Value::as_str);
    let mut flag = |key: &str, default: bool| match config.get(key) {
        None => default,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => {
            defect(format!("`{key}` of `onnx_specific.custom_config` must be true or false"), None);
            default
        }
    };
    let per_channel = flag("per_channel", false);
    let reduce_range = flag("reduce_range", false);
    let npu_cnn = flag("enable_npu_cnn", false);
    let npu_transformer = flag("enable_npu_transformer", false);
    let activation_symmetric = flag("activation_symmetric", false);
    let weight_symmetric = flag("weight_symmetric", true);
    let mut element = |key: &str| {
        let found = text(key).and_then(|name| {
            let bare = name.rsplit('.').next().unwrap_or(name);
            TYPES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(bare))
        });
        if found.is_none() {
            let names = TYPES.iter().map(|(name, ..)| *name);
            defect(
                format!("`{key}` of `onnx_specific.custom_config` must be an element type"),
                Some(format!("choose one of {}", list(names, 11))),
            );
        }
        found.map(|(_, element, bits)| (*element, *bits))
    };
    let activation = element("activation_type");
    let weight = element("weight_type");
    let method = text("calibrate_method").and_then(|name| ctx.catalogue.methods().find(name));
    if method.is_none_or(|method| method.weights_only) {
        let names =
            ctx.catalogue.methods().all().iter().filter(|m| !m.weights_only).map(|m| m.id.as_str());
        defect(
            "`calibrate_method` of `onnx_specific.custom_config` must be a calibration method"
                .to_owned(),
            Some(format!("choose one of {}", list(names, 10))),
        );
    }
    let format = match text("quant_format") {
        Some("QuantFormat.QDQ" | "QDQ") => Some(QuantFormat::Qdq),
        Some("ExtendedQuantFormat.QDQ" | "ExtendedQDQ") => Some(QuantFormat::ExtendedQdq),
        _ => {
            defect(
                "`quant_format` of `onnx_specific.custom_config` must be a Q/DQ format".to_owned(),
                Some("choose `QuantFormat.QDQ` or `ExtendedQuantFormat.QDQ`".to_owned()),
            );
            None
        }
    };
    for (key, spec) in [("activation_type", activation), ("weight_type", weight)] {
        let (Some((element, _)), Some(format)) = (spec, format) else { continue };
        use ElementType::{QBFP, QBFloat16, QFloat16, QInt4, QInt32, QMX, QUInt32};
        if format == QuantFormat::Qdq {
            let error = match element {
                QInt32 | QUInt32 | QFloat16 | QBFloat16 => Some("ValueError"),
                QBFP | QMX => Some("RuntimeError"),
                _ => None,
            };
            if let Some(error) = error {
                defect(
                    format!(
                        "`{key}` {element:?} does not go with `QuantFormat.QDQ`: the library raises {error}"
                    ),
                    Some("use `ExtendedQuantFormat.QDQ`".to_owned()),
                );
            }
        }
        if element == QInt4 && versions::at_least(release.as_str(), "0.12") == Some(true) {
            defect(
                format!(
                    "`{key}` QInt4 was removed from amd-quark in 0.12, and the plan is for {release}"
                ),
                Some("use the preset `MATMUL_NBITS` for four-bit weights".to_owned()),
            );
        }
    }
    let (Some(activation), Some(weight), Some(method), Some(format)) =
        (activation, weight, method, format)
    else {
        return Err(defects);
    };
    if !defects.is_empty() {
        return Err(defects);
    }
    let is_custom = |element: ElementType| {
        element.is_block() || matches!(element, ElementType::QFloat16 | ElementType::QBFloat16)
    };
    let custom_ops = custom_ops_of(ctx, [activation.0, weight.0]);
    let float_only = is_custom(activation.0) && is_custom(weight.0);
    Ok(Preset {
        id: PresetId::new(NAME),
        aliases: Vec::new(),
        summary: "A config that is spelled out in the plan".to_owned(),
        use_when: "No named config fits".to_owned(),
        family: if activation.0.is_block() || weight.0.is_block() {
            PresetFamily::Block
        } else if is_custom(activation.0) || is_custom(weight.0) {
            PresetFamily::Float
        } else {
            PresetFamily::Integer
        },
        activation: TensorSpec {
            r#type: activation.0,
            symmetric: activation_symmetric,
            bits: activation.1,
        },
        weight: TensorSpec { r#type: weight.0, symmetric: weight_symmetric, bits: weight.1 },
        weights_in_float: is_custom(weight.0),
        per_channel,
        reduce_range,
        calibration: method.id.clone(),
        format,
        npu_cnn,
        npu_transformer,
        dynamic: false,
        uses_calibration_data: !float_only,
        // The legacy config switches CLE on unless it is told not to.
        algorithms: vec!["CLE".into()],
        extra_options: Map::new(),
        custom_ops,
        qdq_domains: Vec::new(),
        npu_precision: None,
        since: None,
        until: None,
        notes: Vec::new(),
        source: Vec::new(),
    })
}

/// The custom ops that named configs with these element types write.
fn custom_ops_of(ctx: &Context<'_>, elements: [ElementType; 2]) -> Vec<String> {
    let mut ops: Vec<String> = elements
        .iter()
        .filter_map(|element| {
            let same = |preset: &&Preset| {
                preset.weight.r#type == *element && preset.activation.r#type == *element
            };
            ctx.catalogue.presets().all().iter().find(same)
        })
        .flat_map(|preset| preset.custom_ops.iter().cloned())
        .collect();
    ops.sort();
    ops.dedup();
    ops
}

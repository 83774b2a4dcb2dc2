//! What a `quant_plan.json` must look like, by who wrote it and who will read it.

use serde_json::{Map, Value, json};

use crate::{
    plan::{quant_plan::OnnxPlan, torch_plan::TorchPlan},
    schema::schema,
    vocab::Backend,
};

/// The schema that lies in the wheel of amd-quark 0.13, under its `quark-torch-ptq` skill.
const SHIPPED: &str = include_str!("quark-0.13.quant_plan.schema.json");

/// More of a message is not worth reading: some repeat the whole value.
const LONGEST: usize = 200;

/// A contract that a plan can be held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contract {
    /// What quantplan writes: every field, and no other.
    Own(Backend),
    /// What the seed skills write: their fields are there, and what is there has the right type.
    Skill(Backend),
    /// The schema that amd-quark 0.13 ships.
    Shipped,
}

/// Where a plan breaks a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, with points; empty for the whole plan.
    pub place: String,
    /// What is wrong there.
    pub message: String,
}

impl Contract {
    /// Everything in a plan that breaks this contract.
    pub fn violations(self, plan: &Value) -> Vec<Violation> {
        let schema = match self {
            Self::Own(backend) => own(backend),
            Self::Skill(backend) => skill(backend),
            Self::Shipped => shipped(),
        };
        let validator = match jsonschema::draft202012::new(&schema) {
            Ok(validator) => validator,
            // A test compiles all of them.
            Err(error) => return vec![violation(String::new(), &error.to_string())],
        };
        validator
            .iter_errors(plan)
            .map(|error| violation(dotted(error.instance_path.as_str()), &error.to_string()))
            .collect()
    }
}

#[expect(clippy::expect_used, reason = "the text is embedded, and a test holds plans against it")]
fn shipped() -> Value {
    serde_json::from_str(SHIPPED).expect("the embedded schema is JSON")
}

fn own(backend: Backend) -> Value {
    match backend {
        Backend::Onnx => schema::<OnnxPlan>().to_value(),
        Backend::Torch => schema::<TorchPlan>().to_value(),
    }
}

/// Our own types, with nothing required but what the skill's text lists.
fn skill(backend: Backend) -> Value {
    let mut schema = own(backend);
    loosen(&mut schema);
    schema["required"] = match backend {
        Backend::Onnx => json!([
            "model",
            "backend",
            "deployment_target",
            "preset",
            "calibration",
            "algorithms",
            "onnx_specific",
            "evaluation_intent",
            "requires_confirmation"
        ]),
        Backend::Torch => json!([
            "model",
            "global_scheme",
            "exclude_layers",
            "layer_quant_config",
            "requires_confirmation"
        ]),
    };
    schema
}

fn loosen(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("required").is_some_and(Value::is_array) {
                fields.remove("required");
            }
            if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
                fields.remove("additionalProperties");
            }
            fields.values_mut().for_each(loosen);
        }
        Value::Array(items) => items.iter_mut().for_each(loosen),
        _ => {}
    }
}

/// The fields that a plan can have, at the top level and in its sections, as paths with points.
pub fn fields(backend: Backend) -> Vec<String> {
    let schema = own(backend);
    let mut found = Vec::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        found.push(name.clone());
        let section = field["$ref"].as_str().and_then(|at| schema.pointer(at.strip_prefix('#')?));
        let inner: Option<&Map<String, Value>> =
            section.and_then(|section| section["properties"].as_object());
        found.extend(inner.into_iter().flatten().map(|(part, _)| format!("{name}.{part}")));
    }
    found
}

fn violation(place: String, message: &str) -> Violation {
    let message = if message.chars().count() > LONGEST {
        message.chars().take(LONGEST).chain(['…']).collect()
    } else {
        message.to_owned()
    };
    Violation { place, message }
}

/// `/calibration/method` as `calibration.method`.
fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
}

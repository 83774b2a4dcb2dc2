//! JSON Schemas of arguments and results, in the shape that hosts and their validators understand.

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// The schema of a tool's arguments: no references, no `null` beside the type of an optional argument.
pub(super) fn of_arguments<T: JsonSchema>() -> JsonObject {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = object(settings.into_generator().into_root_schema_for::<T>().to_value());
    for value in schema.values_mut() {
        visit(value, &mut |object| {
            drop_formats(object);
            drop_null(object);
        });
        visit(value, &mut list_choices);
    }
    schema
}

/// The schema of a tool's structured result.
pub(super) fn of_reply<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = object(settings.into_generator().into_root_schema_for::<T>().to_value());
    for value in schema.values_mut() {
        visit(value, &mut |object| {
            drop_formats(object);
            list_choices(object);
            split_types(object);
        });
    }
    name_types(&mut schema);
    for value in schema.values_mut() {
        visit(value, &mut name_types);
    }
    schema
}

/// A schema at the top level; the dialect is the protocol's own, and the description is the tool's.
fn object(schema: Value) -> JsonObject {
    let Value::Object(mut schema) = schema else { return JsonObject::new() };
    for key in ["$schema", "title", "description"] {
        schema.remove(key);
    }
    schema
}

fn visit(value: &mut Value, change: &mut impl FnMut(&mut JsonObject)) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(|value| visit(value, change));
            change(object);
        }
        Value::Array(items) => items.iter_mut().for_each(|value| visit(value, change)),
        _ => {}
    }
}

/// Names of Rust's number types are no formats that validators know.
fn drop_formats(schema: &mut JsonObject) {
    let foreign = ["int", "uint", "float", "double"];
    if let Some(Value::String(format)) = schema.get("format")
        && foreign.iter().any(|prefix| format.starts_with(prefix))
    {
        schema.remove("format");
    }
}

/// An optional argument is left out, not `null`.
fn drop_null(schema: &mut JsonObject) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [single] = types.as_slice() {
            let single = single.clone();
            schema.insert("type".to_owned(), single);
        }
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.retain(|branch| branch["type"] != "null");
        if let [Value::Object(single)] = branches.as_mut_slice() {
            let single = std::mem::take(single);
            schema.remove("anyOf");
            for (key, value) in single {
                schema.entry(key).or_insert(value);
            }
        }
    }
}

/// A property that may hold anything says so in words that every host knows.
fn name_types(schema: &mut JsonObject) {
    const ANY: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        if property.keys().all(|key| key == "description") {
            property.insert(
                "anyOf".to_owned(),
                ANY.iter().map(|name| json!({ "type": name })).collect(),
            );
        }
    }
}

/// A list of types is legal, but not every host maps it.
fn split_types(schema: &mut JsonObject) {
    if let Some(Value::Array(types)) = schema.get("type") {
        let branches = types.iter().map(|name| json!({ "type": name })).collect();
        schema.remove("type");
        schema.insert("anyOf".to_owned(), branches);
    }
}

/// Choices with a description each become a plain list, which every host understands; what they mean goes
/// into the description.
fn list_choices(schema: &mut JsonObject) {
    let Some(Value::Array(branches)) = schema.get("oneOf") else { return };
    let mut values = Vec::new();
    let mut meanings = Vec::new();
    for branch in branches {
        match (&branch["const"], &branch["enum"]) {
            (value @ Value::String(name), _) => {
                values.push(value.clone());
                if let Value::String(meaning) = &branch["description"] {
                    meanings.push(format!("`{name}`: {meaning}"));
                }
            }
            (_, Value::Array(several)) => values.extend(several.iter().cloned()),
            _ => return,
        }
    }
    schema.remove("oneOf");
    let description = match schema.get("description") {
        Some(Value::String(text)) => format!("{text} {}", meanings.join(" ")),
        _ => meanings.join(" "),
    };
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), Value::Array(values));
    schema.insert("description".to_owned(), description.into());
}

//! What a client sees before it calls anything. Each definition is a snapshot, the list is checked as a whole.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::mcp::{STATELESS, VERSIONS, World, client::Person};

pub const TOOLS: [&str; 10] = [
    "analyze_model",
    "probe_environment",
    "propose_plan",
    "revise_plan",
    "render_decision_table",
    "confirm_plan",
    "emit_plan",
    "route_recovery",
    "explain",
    "check_plan",
];

/// Every tool that there is for any client.
fn all_tools() -> Vec<Value> {
    let mut client = World::new().client(STATELESS, Person::nobody().with_apps());
    let list = client.request("tools/list", json!({})).unwrap();
    list["tools"].as_array().unwrap().clone()
}

fn listed(method: &str, key: &str) -> Vec<Value> {
    let mut client = World::new().client(STATELESS, Person::nobody());
    let list = client.request(method, json!({})).unwrap();
    assert_eq!(list["cacheScope"], "public");
    assert!(list["ttlMs"].as_u64().unwrap() > 0);
    list[key].as_array().unwrap().clone()
}

/// Without what is checked elsewhere or only repeats itself.
fn without_icons(mut definition: Value) -> Value {
    definition.as_object_mut().unwrap().remove("icons");
    definition
}

#[test]
fn each_tool_is_as_it_was_reviewed() {
    for tool in listed("tools/list", "tools") {
        let name = format!("tool_{}", tool["name"].as_str().unwrap());
        let mut tool = without_icons(tool);
        // The result types have their own tests; here it matters what there is at the top.
        let output = tool["outputSchema"]["properties"].as_object().unwrap();
        tool["outputSchema"] = output.keys().cloned().collect();
        insta::assert_json_snapshot!(name, tool);
    }
}

#[test]
fn each_prompt_is_as_it_was_reviewed() {
    for prompt in listed("prompts/list", "prompts") {
        let name = format!("prompt_{}", prompt["name"].as_str().unwrap());
        insta::assert_json_snapshot!(name, without_icons(prompt));
    }
}

#[test]
fn the_templates_are_as_they_were_reviewed() {
    let templates = listed("resources/templates/list", "resourceTemplates");
    let templates: Vec<Value> = templates.into_iter().map(without_icons).collect();
    insta::assert_json_snapshot!("templates", templates);
}

#[test]
fn the_tools_are_these_in_this_order_in_every_protocol() {
    for version in VERSIONS {
        let mut client = World::new().client(version, Person::nobody());
        let list = client.request("tools/list", json!({})).unwrap();
        let names: Vec<&str> =
            list["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, TOOLS);
        assert_eq!(list, client.request("tools/list", json!({})).unwrap());
        if version != STATELESS {
            assert_eq!(list.get("resultType"), None, "{version}");
        }
    }
}

#[test]
fn every_tool_says_what_it_does_and_what_it_changes() {
    for tool in all_tools() {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["title"].as_str().is_some_and(|title| title.len() > 5), "{name}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 100), "{name}");
        assert!(tool["icons"][0]["src"].as_str().unwrap().starts_with("data:image/svg+xml,"));
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name}: {hint}");
        }
    }
}

#[test]
fn schemas_are_in_the_shape_that_every_host_takes() {
    for tool in all_tools() {
        let name = tool["name"].as_str().unwrap();
        for key in ["inputSchema", "outputSchema"] {
            let schema = &tool[key];
            assert_eq!(schema["type"], "object", "{name}");
            for combinator in ["oneOf", "anyOf", "allOf", "not", "if", "$ref", "enum"] {
                assert_eq!(
                    schema.get(combinator),
                    None,
                    "{name}: {combinator} at the top of {key}"
                );
            }
            jsonschema::draft202012::new(schema).unwrap();
            let mut formats = BTreeSet::new();
            walk(schema, &mut |object| {
                assert!(!object.get("type").is_some_and(Value::is_array), "{name}: {object:?}");
                if let Some(Value::String(format)) = object.get("format") {
                    formats.insert(format.clone());
                }
            });
            assert_eq!(formats, BTreeSet::new(), "{name}: {key}");
        }
        walk(&tool["inputSchema"], &mut |object| {
            for key in ["$ref", "anyOf", "oneOf", "allOf", "const"] {
                assert!(!object.contains_key(key), "{name}: {key} in {object:?}");
            }
        });
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}: {argument} has no description");
        }
    }
}

fn walk(value: &Value, look: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            look(object);
            object.values().for_each(|value| walk(value, look));
        }
        Value::Array(items) => items.iter().for_each(|value| walk(value, look)),
        _ => {}
    }
}

#[test]
fn the_relayed_answer_is_an_argument_only_where_it_counts() {
    let world = World::new().with_flag("--accept-relayed");
    let mut client = world.client(STATELESS, Person::nobody());
    let with = client.request("tools/list", json!({})).unwrap()["tools"].take();
    let without = listed("tools/list", "tools");
    for (with, without) in with.as_array().unwrap().iter().zip(&without) {
        let argument = &with["inputSchema"]["properties"]["relayed_answer"];
        assert_eq!(argument.is_object(), with["name"] == "confirm_plan");
        assert_eq!(without["inputSchema"]["properties"].get("relayed_answer"), None);
    }
}

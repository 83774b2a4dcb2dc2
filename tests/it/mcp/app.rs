//! The decision table as an MCP App: who gets it, what its button is worth, and what it tells nobody else.

use std::thread;

use serde_json::{Value, json};

use crate::mcp::{
    STATELESS, Shown, VERSIONS, World,
    client::{Client, Person, failure_of},
    definitions::TOOLS,
    intent, shown,
};

const PAGE: &str = "ui://quantplan/table";
const EXTENSION: &str = "io.modelcontextprotocol/ui";

fn viewer() -> Person {
    Person::nobody().with_apps()
}

/// Longer than an answer of no person takes.
fn after_a_while() {
    thread::sleep(std::time::Duration::from_millis(600));
}

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Opens the table as the page does, and gives the name of its question.
fn opened(client: &mut Client, table: &Shown) -> String {
    let result = client.call("ask_in_table", table.arguments());
    result["_meta"]["quantplan/question"].as_str().expect("a question").to_owned()
}

fn press(table: &Shown, question: &str, decision: &str) -> Value {
    let mut arguments = table.arguments();
    arguments["question"] = json!(question);
    arguments["decision"] = json!(decision);
    arguments
}

#[test]
fn a_client_without_the_extension_sees_nothing_of_it() {
    let other = Person { pages: Some(json!(["text/html"])), ..Person::nobody() };
    for version in VERSIONS {
        let mut lists = Vec::new();
        for person in [Person::nobody(), other.clone()] {
            let mut client = World::new().client(version, person);
            assert_eq!(client.greeting["capabilities"].get("extensions"), None, "{version}");
            let list = client.request("tools/list", json!({})).unwrap();
            assert_eq!(names(&list), TOOLS, "{version}");
            let tools = list["tools"].as_array().unwrap();
            assert!(tools.iter().all(|tool| tool.get("_meta").is_none()), "{version}");
            let table = shown(&mut client);
            for (tool, arguments) in [
                ("ask_in_table", table.arguments()),
                ("answer_in_table", press(&table, "q-none", "confirm")),
            ] {
                let call = json!({ "name": tool, "arguments": arguments });
                let error = client.request("tools/call", call).unwrap_err();
                assert_eq!(error["code"], -32602, "{tool} in {version}: {error}");
            }
            lists.push(list);
        }
        assert_eq!(lists[0], lists[1], "{version}");
    }
}

#[test]
fn a_client_with_the_extension_gets_the_page_and_keeps_its_tools_from_the_model() {
    for version in VERSIONS {
        let mut client = World::new().client(version, viewer());
        assert_eq!(client.greeting["capabilities"]["extensions"], json!({ EXTENSION: {} }));
        let list = client.request("tools/list", json!({})).unwrap();
        let mut expected = TOOLS.to_vec();
        expected.extend(["ask_in_table", "answer_in_table"]);
        assert_eq!(names(&list), expected, "{version}");
        let mut plain = World::new().client(version, Person::nobody());
        let plain = plain.request("tools/list", json!({})).unwrap();
        let (with, without) =
            (list["tools"].as_array().unwrap(), plain["tools"].as_array().unwrap());
        let changed: Vec<&Value> =
            with.iter().filter(|tool| !without.contains(tool)).map(|tool| &tool["name"]).collect();
        assert_eq!(
            changed,
            ["render_decision_table", "confirm_plan", "ask_in_table", "answer_in_table"]
        );
        for tool in with {
            let visible = &tool["_meta"]["ui"]["visibility"];
            match tool["name"].as_str().unwrap() {
                "ask_in_table" | "answer_in_table" => assert_eq!(*visible, json!(["app"])),
                "render_decision_table" => {
                    assert_eq!(*visible, json!(["model", "app"]));
                    assert_eq!(tool["_meta"]["ui"]["resourceUri"], PAGE);
                    assert_eq!(tool["_meta"]["ui/resourceUri"], PAGE);
                }
                _ => assert_eq!(tool.get("_meta"), None),
            }
        }
    }
}

#[test]
fn the_tools_of_the_page_are_as_they_were_reviewed() {
    let mut client = World::new().client(STATELESS, viewer());
    let list = client.request("tools/list", json!({})).unwrap();
    assert_eq!(list["cacheScope"], "private", "it depends on the client");
    let own = ["render_decision_table", "confirm_plan", "ask_in_table", "answer_in_table"];
    let tools: Vec<Value> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| own.contains(&tool["name"].as_str().unwrap()))
        .map(|tool| {
            let mut seen = json!({ "name": tool["name"], "description": tool["description"] });
            if tool["name"].as_str().unwrap().ends_with("_in_table") {
                seen["inputSchema"] = tool["inputSchema"].clone();
                seen["annotations"] = tool["annotations"].clone();
            }
            seen
        })
        .collect();
    insta::assert_json_snapshot!("app_tools", tools);
}

#[test]
fn the_page_stands_alone_and_takes_text_for_text() {
    for version in VERSIONS {
        let mut client = World::new().client(version, viewer());
        let read = client.request("resources/read", json!({ "uri": PAGE })).unwrap();
        let page = &read["contents"][0];
        assert_eq!(page["uri"], PAGE);
        assert_eq!(page["mimeType"], "text/html;profile=mcp-app");
        assert_eq!(
            page["_meta"]["ui"],
            json!({ "prefersBorder": true }),
            "no origin, no permission"
        );
        let text = page["text"].as_str().unwrap();
        assert!(text.starts_with("<!doctype html>"));
        let elsewhere = ["://", "src=", "href=", "url(", "@import", "import(", "fetch(", "XMLHttp"];
        let markup =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser"];
        let code = ["eval(", "Function(", "setAttribute(\"on", "javascript:"];
        let storage = ["localStorage", "sessionStorage", "cookie", "window.open"];
        for word in elsewhere.iter().chain(&markup).chain(&code).chain(&storage) {
            assert!(!text.contains(word), "{word}");
        }
        // The safe choice comes first.
        let place = |id: &str| text.find(&format!("id=\"{id}\"")).unwrap();
        assert!(place("revise") < place("confirm"));
    }
}

#[test]
fn the_press_of_the_button_is_a_persons_yes_in_every_protocol() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, viewer());
        let table = shown(&mut client);
        let question = opened(&mut client, &table);
        let (code, text) = client.failure("confirm_plan", table.arguments());
        assert_eq!(code, "WAITING_FOR_USER");
        assert!(text.contains(&format!("quantplan confirm {}", table.session)), "{text}");
        after_a_while();
        let reply = client.reply("answer_in_table", press(&table, &question, "confirm"));
        assert_eq!(reply["confirmation"]["channel"], "app");
        assert_eq!(reply["confirmation"]["attended"], true);
        assert_eq!(reply["confirmation"]["client"], "test-client/1.0");
        // A second press is none, and the agent that asks hears of the first.
        let again = client.failure("answer_in_table", press(&table, &question, "confirm"));
        assert_eq!(again.0, "REPLAYED");
        assert_eq!(client.reply("confirm_plan", table.arguments()), reply);
        let table_now = client.reply("ask_in_table", table.arguments());
        assert_eq!(
            (&table_now["confirmed"], &table_now["confirmable"]),
            (&json!(true), &json!(false))
        );
        let emit = json!({ "session_id": table.session, "output_path": "quant_plan.json" });
        let plan = client.reply("emit_plan", emit)["plan"].take();
        assert_eq!(plan["provenance"]["confirmation"]["channel"], "app");
        assert_eq!(plan["provenance"]["digest"], table.digest.as_str());
        assert_eq!(plan["requires_confirmation"], false);
    }
}

#[test]
fn a_press_that_is_no_persons_yes_to_this_table_confirms_nothing() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, viewer());
        let table = shown(&mut client);
        let refused = |client: &mut Client, question: &str, table: &Shown| {
            client.failure("answer_in_table", press(table, question, "confirm")).0
        };
        // On a busy machine even a press at once may take that long.
        let code = (0..5).find_map(|_| {
            let table = shown(&mut client);
            let question = opened(&mut client, &table);
            let result = client.call("answer_in_table", press(&table, &question, "confirm"));
            (result["isError"] == true).then(|| failure_of(&result).0)
        });
        assert_eq!(code.as_deref(), Some("NO_PERSON"), "{version}");

        let question = opened(&mut client, &table);
        let other = shown(&mut client);
        opened(&mut client, &other);
        after_a_while();
        assert_eq!(refused(&mut client, "q-guessed", &table), "NOT_ASKED");
        assert_eq!(refused(&mut client, "", &table), "NOT_ASKED");
        assert_eq!(refused(&mut client, &question, &other), "NOT_ASKED");
        let mut maybe = press(&table, &question, "yes");
        assert_eq!(client.failure("answer_in_table", maybe.clone()).0, "BAD_ARGUMENTS");
        maybe.as_object_mut().unwrap().remove("question");
        assert_eq!(client.failure("answer_in_table", maybe).0, "BAD_ARGUMENTS");

        client.reply("revise_plan", json!({ "session_id": table.session }));
        assert_eq!(refused(&mut client, &question, &table), "STALE_TABLE");
        assert_eq!(client.failure("ask_in_table", table.arguments()).0, "STALE_TABLE");
        let emit = json!({ "session_id": table.session, "output_path": "quant_plan.json" });
        assert_eq!(client.failure("emit_plan", emit).0, "NOT_CONFIRMED");
    }
}

#[test]
fn a_press_for_changes_takes_the_table_away_and_passes_the_notes_on() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, viewer());
        let table = shown(&mut client);
        let question = opened(&mut client, &table);
        after_a_while();
        let mut arguments = press(&table, &question, "revise");
        arguments["notes"] = json!(" use\n\u{202e}A8W8 ");
        let (code, text) = client.failure("answer_in_table", arguments);
        assert_eq!(code, "CHANGES_REQUESTED");
        assert!(text.contains("they wrote: \"use \u{fffd}A8W8\""), "{text}");
        assert_eq!(client.failure("ask_in_table", table.arguments()).0, "NOT_SHOWN");
    }
}

#[test]
fn the_name_of_the_question_reaches_nobody_but_the_page() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, viewer());
        let table = shown(&mut client);
        let mut result = client.call("ask_in_table", table.arguments());
        let question = result["_meta"]["quantplan/question"].take();
        let question = question.as_str().unwrap();
        assert!(question.len() > 20, "it cannot be guessed");
        let mut seen = vec![result];
        seen.push(client.call("render_decision_table", json!({ "session_id": table.session })));
        seen.push(client.call("confirm_plan", table.arguments()));
        for view in ["", "/table", "/log"] {
            let uri = format!("quantplan://sessions/{}{view}", table.session);
            seen.push(client.request("resources/read", json!({ "uri": uri })).unwrap());
        }
        for one in seen {
            assert!(!one.to_string().contains(question), "{version}: {one:#}");
        }
    }
}

#[test]
fn a_draft_with_open_questions_is_shown_without_a_question() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, viewer());
        let drafted = client.reply("propose_plan", json!({ "model_path": "model.onnx" }));
        assert_eq!(drafted["confirmable"], false);
        let id = drafted["session_id"].as_str().unwrap();
        let digest =
            client.reply("render_decision_table", json!({ "session_id": id }))["digest"].take();
        let about = json!({ "session_id": id, "digest": digest });
        let result = client.call("ask_in_table", about);
        assert_eq!(result.get("_meta"), None);
        let shown = &result["structuredContent"];
        assert_eq!(shown["confirmable"], false);
        assert!(shown["view"]["ask"].as_str().unwrap().contains("cannot be confirmed yet"));
        assert!(shown["view"]["rows"].as_array().unwrap().len() > 3);
    }
}

#[test]
fn what_the_page_shows_cannot_act_on_the_screen() {
    let world = World::new();
    let name = "a\u{202e}b\u{200f}c.onnx";
    std::fs::copy(world.work().join("model.onnx"), world.work().join(name)).unwrap();
    let mut client = world.client(STATELESS, viewer());
    let model = json!({ "model_path": name, "intent": intent() });
    let drafted = client.reply("propose_plan", model);
    let table = super::show(&mut client, drafted["session_id"].as_str().unwrap());
    let text = client.reply("ask_in_table", table.arguments()).to_string();
    assert!(!text.contains(['\u{202e}', '\u{200f}']), "{text}");
}

#[test]
fn a_client_with_forms_is_asked_by_a_form_too_and_no_agents_word_replaces_the_button() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, Person::accepting().with_apps());
        let table = shown(&mut client);
        opened(&mut client, &table);
        let reply = client.reply("confirm_plan", table.arguments());
        assert_eq!(reply["confirmation"]["channel"], "elicited");

        let world = World::new().with_flag("--accept-relayed");
        let mut client = world.client(version, viewer());
        let table = shown(&mut client);
        let mut arguments = table.arguments();
        arguments["relayed_answer"] = json!("confirm");
        assert_eq!(client.failure("confirm_plan", arguments).0, "WAITING_FOR_USER");
    }
}

//! Only a person's yes to the table on the screen leads to a file.

use std::thread;

use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::{Value, json};

use crate::mcp::{
    STATELESS, Shown, VERSIONS, World,
    client::{Client, Person, again, failure_of},
    show, shown, shown_for,
};

/// Without rules a draft has no rows, and a plan without rows is none.
pub fn drafts_make_plans() -> bool {
    !quantplan::rules::RULES.is_empty()
}

/// Asks for a confirmation and for the file; gives the code of the first refusal.
fn outcome(world: &World, version: &'static str, person: Person) -> Option<String> {
    let mut client = world.client(version, person);
    let table = shown(&mut client);
    let asked = client.call("confirm_plan", table.arguments());
    let emit = json!({ "session_id": table.session, "output_path": "quant_plan.json" });
    let emitted = client.call("emit_plan", emit);
    let file = world.work().join("quant_plan.json");
    if asked["isError"] == true {
        assert_eq!(failure_of(&emitted).0, "NOT_CONFIRMED");
        assert!(!file.exists());
        return Some(failure_of(&asked).0);
    }
    let reply = &asked["structuredContent"];
    assert_eq!(reply["confirmed"], true);
    assert_eq!(reply["digest"], table.digest.as_str());
    assert_eq!(reply["confirmation"]["channel"], "elicited");
    assert_eq!(reply["confirmation"]["attended"], true);
    assert_eq!(reply["confirmation"]["client"], "test-client/1.0");
    // Asking again about what was confirmed only says so.
    let forms = client.forms.len();
    assert_eq!(client.reply("confirm_plan", table.arguments()), *reply);
    assert_eq!(client.forms.len(), forms);
    if drafts_make_plans() {
        assert_ne!(emitted["isError"], true, "{emitted:#}");
        let plan: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(plan["requires_confirmation"], false);
        assert_eq!(plan["provenance"]["digest"], table.digest.as_str());
    }
    None
}

#[test]
fn a_file_appears_only_after_a_persons_yes_in_every_protocol() {
    type Case = (&'static str, fn() -> Person, Option<&'static str>);
    let cases: [Case; 8] = [
        ("accepting", Person::accepting, None),
        ("declining", Person::declining, Some("DECLINED")),
        ("cancelling", Person::cancelling, Some("CANCELLED")),
        ("without a value", Person::accepting_without_a_value, Some("NOT_CONFIRMED")),
        ("another value", || Person::choosing("CONFIRM"), Some("NOT_CONFIRMED")),
        ("asking for changes", || Person::choosing("revise"), Some("CHANGES_REQUESTED")),
        ("unable to ask", Person::nobody, Some("NO_ELICITATION")),
        (
            "able to open pages only",
            || Person { capability: Some(json!({ "url": {} })), ..Person::accepting() },
            Some("NO_ELICITATION"),
        ),
    ];
    thread::scope(|scope| {
        for version in VERSIONS {
            for (name, person, expected) in &cases {
                scope.spawn(move || {
                    let code = outcome(&World::new(), version, person());
                    assert_eq!(code.as_deref(), *expected, "{name} in {version}");
                });
            }
        }
    });
}

#[test]
fn an_answer_within_half_a_second_came_from_nobody() {
    for version in VERSIONS {
        // On a busy machine even an answer at once may take that long.
        let code = (0..5)
            .map(|_| outcome(&World::new(), version, Person::too_fast()))
            .find(|code| code.is_some());
        assert_eq!(code.flatten().as_deref(), Some("NO_PERSON"), "{version}");
    }
}

#[test]
fn the_form_begins_with_the_nutshell_holds_the_table_and_puts_the_safe_choice_first() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, Person::too_fast());
        let model = world.work().join(format!("{}.onnx", "long_".repeat(12)));
        std::fs::copy(world.work().join("model.onnx"), &model).unwrap();
        let table = shown_for(&mut client, &model);
        client.call("confirm_plan", table.arguments());
        let form = &client.forms[0];
        let message = form["message"].as_str().unwrap();
        let nutshell: Vec<&str> = message.lines().take(3).collect();
        assert!(nutshell[0].starts_with("long_") && nutshell[0].contains(&table.session));
        assert!(nutshell.iter().all(|line| line.chars().count() <= 110), "{nutshell:?}");
        assert!(message.contains("Decision") && message.contains("Reason"), "{message}");
        assert!(message.ends_with("Confirm this plan? Any changes?"), "{message}");
        let schema = &form["requestedSchema"];
        // Codex cancels forms whose schema has a title or description of its own.
        let keys: Vec<&String> = schema.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["properties", "required", "type"]);
        assert_eq!(schema["required"], json!(["decision"]));
        let decision = &schema["properties"]["decision"];
        assert_eq!(decision["oneOf"][0]["const"], "revise");
        assert_eq!(decision["oneOf"][1]["const"], "confirm");
        assert_eq!(decision.get("default"), None);
        assert!(decision["description"].as_str().unwrap().chars().count() <= 105);
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["decision", "notes"]);
    }
}

#[test]
fn notes_reach_the_agent_whatever_was_chosen() {
    thread::scope(|scope| {
        for version in VERSIONS {
            scope.spawn(move || {
                let world = World::new();
                let person = Person::noting("revise", "use\n\u{1b}[31mA8W8 ");
                let mut client = world.client(version, person);
                let table = shown(&mut client);
                let (code, text) = client.failure("confirm_plan", table.arguments());
                assert_eq!(code, "CHANGES_REQUESTED");
                assert!(text.contains("they wrote: \"use \u{fffd}[31mA8W8\""), "{text}");
                // The table has to be seen again before the next question.
                assert_eq!(client.failure("confirm_plan", table.arguments()).0, "NOT_SHOWN");

                let mut client = world.client(version, Person::noting("confirm", "thanks"));
                let table = shown(&mut client);
                let reply = client.reply("confirm_plan", table.arguments());
                assert!(reply["next"].as_str().unwrap().contains("thanks"), "{reply}");
            });
        }
    });
}

#[test]
fn a_client_that_only_claims_to_ask_cannot() {
    let world = World::new();
    let mut client = world.client("2025-06-18", Person::claimed());
    let table = shown(&mut client);
    let (code, text) = client.failure("confirm_plan", table.arguments());
    assert_eq!(code, "NO_ELICITATION");
    assert!(text.contains(&format!("quantplan confirm {}", table.session)), "{text}");
}

#[test]
fn what_cannot_be_confirmed_is_not_asked_about() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, Person::accepting());
        let model = json!({ "model_path": "model.onnx", "intent": super::intent() });
        let drafted = client.reply("propose_plan", model);
        let unseen = json!({ "session_id": drafted["session_id"], "digest": drafted["digest"] });
        assert_eq!(client.failure("confirm_plan", unseen).0, "NOT_SHOWN");
        let table = show(&mut client, drafted["session_id"].as_str().unwrap());

        let old = client.reply("revise_plan", json!({ "session_id": table.session }));
        assert_eq!(old["revision"], 2);
        assert_eq!(client.failure("confirm_plan", table.arguments()).0, "STALE_TABLE");
        show(&mut client, &table.session);
        assert_eq!(client.failure("confirm_plan", table.arguments()).0, "STALE_TABLE");

        let unknown = json!({ "session_id": "qp-none", "digest": table.digest });
        assert_eq!(client.failure("confirm_plan", unknown).0, "UNKNOWN_SESSION");
        let guessed = json!({
            "session_id": table.session, "digest": table.digest, "confirmed": true, "relayed_answer": "confirm"
        });
        assert_eq!(client.failure("confirm_plan", guessed).0, "BAD_ARGUMENTS");
        assert_eq!(client.forms.len(), 0, "nobody was asked");
    }
}

/// A question that a stateless client was given, with the call that it belongs to.
fn asked(client: &mut Client, table: &Shown) -> (Value, Value) {
    let params = json!({ "name": "confirm_plan", "arguments": table.arguments() });
    let asked = client.call_once(params.clone());
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    (params, asked)
}

fn yes() -> Value {
    json!({ "action": "accept", "content": { "decision": "confirm" } })
}

fn after_a_while() {
    thread::sleep(Person::accepting().delay);
}

#[test]
fn a_sealed_question_is_good_for_one_answer_to_one_table() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let (one, other) = (shown(&mut client), shown(&mut client));
    let (params, question) = asked(&mut client, &one);
    let (other_params, _) = asked(&mut client, &other);
    after_a_while();

    let state = question["requestState"].as_str().unwrap();
    for forged in [format!("{state}x"), state.replacen("rs1.", "rs1.A", 1), "x".to_owned()] {
        let mut forged_question = question.clone();
        forged_question["requestState"] = json!(forged);
        let result = client.call_once(again(params.clone(), &forged_question, yes()));
        assert_eq!(failure_of(&result).0, "BAD_REQUEST_STATE");
    }
    // The question about one session is not the question about another, or about another table.
    let result = client.call_once(again(other_params, &question, yes()));
    assert_eq!(failure_of(&result).0, "BAD_REQUEST_STATE");
    let mut another = params.clone();
    another["arguments"]["digest"] = json!(other.digest);
    let result = client.call_once(again(another, &question, yes()));
    assert_eq!(failure_of(&result).0, "BAD_REQUEST_STATE");

    // An answer without a question, or to another question, only asks again.
    let mut crafted = params.clone();
    crafted["inputResponses"] = json!({ "confirm": yes() });
    assert_eq!(client.call_once(crafted)["resultType"], "input_required");
    let mut elsewhere = again(params.clone(), &question, yes());
    elsewhere["inputResponses"] = json!({ "else": yes() });
    assert_eq!(client.call_once(elsewhere)["resultType"], "input_required");

    let good = again(params, &question, yes());
    let result = client.call_once(good.clone());
    assert_eq!(result["structuredContent"]["confirmed"], true, "{result:#}");
    assert_eq!(failure_of(&client.call_once(good)).0, "REPLAYED");
}

#[test]
fn a_no_uses_a_sealed_question_up() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    let (params, question) = asked(&mut client, &table);
    after_a_while();
    let unreadable = again(params.clone(), &question, json!("accept"));
    assert_eq!(failure_of(&client.call_once(unreadable)).0, "NOT_CONFIRMED");
    let late_yes = again(params, &question, yes());
    assert_eq!(failure_of(&client.call_once(late_yes)).0, "REPLAYED");
}

#[test]
fn an_expired_question_is_not_answered() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    let (params, mut question) = asked(&mut client, &table);
    let key = std::fs::read(world.state().join("seal.key")).unwrap();
    let seal = |bound_to: &str, lifetime: u64| {
        let codec = RequestStateCodec::try_new(key.clone()).unwrap();
        let lifetime = std::time::Duration::from_millis(lifetime);
        let options = SealOptions::new().associated_data(bound_to.as_bytes()).ttl(lifetime);
        json!(codec.seal_with(b"q-none", &options))
    };
    let bound_to = format!("tools/call\nconfirm_plan\n{}\n{}", table.session, table.digest);
    question["requestState"] = seal(&bound_to, 0);
    thread::sleep(std::time::Duration::from_millis(5));
    let result = client.call_once(again(params.clone(), &question, yes()));
    assert_eq!(failure_of(&result).0, "EXPIRED");
    // Even with the key at hand: a question that is not in the log was not asked.
    question["requestState"] = seal(&bound_to, 60_000);
    let result = client.call_once(again(params, &question, yes()));
    assert_eq!(failure_of(&result).0, "NOT_ASKED");
}

#[cfg(unix)]
#[test]
fn the_sealing_key_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    asked(&mut client, &table);
    let mode = |name: &str| {
        std::fs::metadata(world.state().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("seal.key"), mode("sessions.db"), mode("")), (0o600, 0o600, 0o700));
}

#[test]
fn another_server_on_the_same_state_takes_the_answer() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    let (params, question) = asked(&mut client, &table);
    client.kill();
    after_a_while();
    let mut client = world.client(STATELESS, Person::accepting());
    let result = client.call_once(again(params, &question, yes()));
    assert_eq!(result["structuredContent"]["confirmed"], true, "{result:#}");
}

#[test]
fn a_revision_while_the_form_is_open_makes_the_answer_stale() {
    let world = World::new();
    let mut revising = world.client(STATELESS, Person::nobody());
    let mut client = world.client("2025-11-25", Person::accepting());
    let table = shown(&mut client);
    let id = client
        .send("tools/call", json!({ "name": "confirm_plan", "arguments": table.arguments() }));
    let form = client.wait_for_question();
    revising.reply("revise_plan", json!({ "session_id": table.session }));
    after_a_while();
    client.write(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": yes() }).to_string());
    let result = client.wait(id).unwrap();
    assert_eq!(failure_of(&result).0, "STALE_TABLE");
}

#[test]
fn an_agents_word_counts_only_where_the_team_accepts_it_and_nobody_can_be_asked() {
    for version in VERSIONS {
        let world = World::new().with_flag("--accept-relayed");
        let mut client = world.client(version, Person::nobody());
        let table = shown(&mut client);
        let with = |answer: &str| {
            let mut arguments = table.arguments();
            arguments["relayed_answer"] = json!(answer);
            arguments
        };
        assert_eq!(client.failure("confirm_plan", table.arguments()).0, "NO_ELICITATION");
        assert_eq!(client.failure("confirm_plan", with("yes, go ahead")).0, "NOT_CONFIRMED");
        let reply = client.reply("confirm_plan", with("confirm"));
        assert_eq!(reply["confirmation"]["channel"], "relayed");
        assert_eq!(reply["confirmation"]["attended"], false);

        // Where a person can be asked, they are.
        let mut client = world.client(version, Person::declining());
        let table = shown(&mut client);
        let mut arguments = table.arguments();
        arguments["relayed_answer"] = json!("confirm");
        assert_eq!(client.failure("confirm_plan", arguments).0, "DECLINED");
        assert_eq!(client.forms.len(), 1);
    }
}

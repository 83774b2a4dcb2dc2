//! Sessions belong to their ids: several servers, restarts, and time.

use std::thread;

use serde_json::{Value, json};

use crate::mcp::{
    STATELESS, VERSIONS, World,
    client::{Person, failure_of},
    show, shown,
};

#[test]
fn a_session_goes_from_server_to_server_and_from_protocol_to_protocol() {
    let world = World::new();
    let mut client = world.client("2025-06-18", Person::nobody());
    let drafted = client
        .reply("propose_plan", json!({ "model_path": "model.onnx", "intent": super::intent() }));
    client.kill();
    let session = drafted["session_id"].as_str().unwrap();
    let mut client = world.client("2025-11-25", Person::nobody());
    let table = show(&mut client, session);
    assert_eq!(client.failure("confirm_plan", table.arguments()).0, "NO_ELICITATION");
    client.end();
    let mut client = world.client(STATELESS, Person::accepting());
    assert_eq!(client.reply("confirm_plan", table.arguments())["confirmed"], true);
    // A revision in one takes the yes away in the other.
    let mut other = world.client("2025-06-18", Person::nobody());
    other.reply("revise_plan", json!({ "session_id": session }));
    let emit = json!({ "session_id": session, "output_path": "quant_plan.json" });
    assert_eq!(client.failure("emit_plan", emit).0, "NOT_CONFIRMED");
}

#[test]
fn of_two_servers_that_write_at_once_both_know_where_they_stand() {
    let world = World::new();
    let session = shown(&mut world.client(STATELESS, Person::nobody())).session;
    let won: u64 = thread::scope(|scope| {
        let servers: Vec<_> = VERSIONS
            .map(|version| {
                let (world, session) = (&world, &session);
                scope.spawn(move || {
                    let mut client = world.client(version, Person::nobody());
                    let revise = json!({ "session_id": session });
                    let mut won = 0;
                    for _ in 0..8 {
                        let result = client.call("revise_plan", revise.clone());
                        if result["isError"] == true {
                            assert_eq!(failure_of(&result).0, "CONFLICT");
                        } else {
                            won += 1;
                        }
                    }
                    won
                })
            })
            .into_iter()
            .collect();
        servers.into_iter().map(|server| server.join().unwrap()).sum()
    });
    assert!(won >= 8);
    let mut client = world.client(STATELESS, Person::nobody());
    let table = client.reply("render_decision_table", json!({ "session_id": session }));
    assert_eq!(table["revision"], 1 + won, "no revision was lost and none came twice");
}

#[test]
fn of_two_answers_to_one_table_one_counts() {
    let world = World::new();
    let table = shown(&mut world.client(STATELESS, Person::nobody()));
    let mut codes: Vec<Option<String>> = thread::scope(|scope| {
        let people = ["2025-11-25", STATELESS].map(|version| {
            let (world, table) = (&world, &table);
            scope.spawn(move || {
                let mut client = world.client(version, Person::accepting());
                let result = client.call("confirm_plan", table.arguments());
                (result["isError"] == true).then(|| failure_of(&result).0)
            })
        });
        people.map(|person| person.join().unwrap()).into()
    });
    codes.sort();
    let lost = codes.pop().unwrap();
    assert_eq!(codes, [None], "one of them wins");
    // The slower one sees the yes that is there, before or after it answered.
    assert!(matches!(lost.as_deref(), None | Some("REPLAYED" | "CONFLICT")), "{lost:?}");
}

#[test]
fn an_old_session_has_expired() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    let log = rusqlite::Connection::open(world.state().join("sessions.db")).unwrap();
    log.execute("UPDATE events SET at = at - 31 * 86400000", []).unwrap();
    let calls: [(&str, Value); 4] = [
        ("render_decision_table", json!({ "session_id": table.session })),
        ("revise_plan", json!({ "session_id": table.session })),
        ("confirm_plan", table.arguments()),
        ("emit_plan", json!({ "session_id": table.session, "output_path": "quant_plan.json" })),
    ];
    for (tool, arguments) in calls {
        assert_eq!(client.failure(tool, arguments).0, "SESSION_EXPIRED", "{tool}");
    }
}

#[test]
fn an_edited_log_is_not_believed() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    let log = rusqlite::Connection::open(world.state().join("sessions.db")).unwrap();
    log.execute("UPDATE events SET event = replace(event, 'presented', 'confirmed')", []).unwrap();
    assert_eq!(client.failure("confirm_plan", table.arguments()).0, "LOG_BROKEN");
}

#[test]
fn a_model_that_changed_since_makes_the_table_stale() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::accepting());
    let table = shown(&mut client);
    std::fs::copy(super::fixture("good/mlp.onnx"), world.work().join("model.onnx")).unwrap();
    let (code, text) = client.failure("confirm_plan", table.arguments());
    assert_eq!(code, "STALE_INPUTS");
    assert!(text.contains("model.onnx"), "{text}");
    assert_eq!(client.forms.len(), 0);
}

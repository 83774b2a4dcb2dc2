//! How the server begins, waits and ends.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::mcp::{
    STATELESS, VERSIONS, World,
    client::{Client, Person},
    shown,
};

/// rmcp waits five seconds where nobody tells it not to.
const AT_ONCE: Duration = Duration::from_secs(2);

fn ends_at_once(client: Client) {
    let (status, took) = client.end();
    assert!(status.success(), "{status}");
    assert!(took < AT_ONCE, "it took {took:?}");
}

#[test]
fn it_says_who_it_is_in_every_protocol() {
    for version in VERSIONS {
        let client = World::new().client(version, Person::nobody());
        let greeting = &client.greeting;
        let server = match version {
            STATELESS => {
                let supported = greeting["supportedVersions"].as_array().unwrap();
                assert!(VERSIONS.iter().all(|version| supported.contains(&json!(version))));
                assert_eq!(greeting["cacheScope"], "public");
                assert!(greeting["ttlMs"].as_u64().unwrap() > 0);
                &greeting["_meta"]["io.modelcontextprotocol/serverInfo"]
            }
            _ => {
                assert_eq!(greeting["protocolVersion"], version);
                &greeting["serverInfo"]
            }
        };
        assert_eq!(server["name"], "quantplan");
        assert_eq!(server["version"], env!("CARGO_PKG_VERSION"));
        assert!(server["title"].is_string() && server["description"].is_string());
        assert!(server["icons"][0]["src"].as_str().unwrap().starts_with("data:image/"));
        let instructions = greeting["instructions"].as_str().unwrap();
        let first = instructions.split(". ").next().unwrap();
        let searched = [
            "quantization plan",
            "AMD Quark",
            "ONNX",
            "INT8",
            "XINT8",
            "Ryzen AI NPU",
            "quant_plan.json",
        ];
        for words in searched {
            assert!(first.contains(words), "`{words}` is not in `{first}`");
        }
        assert!(instructions.contains("Only the user can confirm"));
    }
}

#[test]
fn an_unused_server_ends_at_once() {
    ends_at_once(Client::silent(&World::new(), STATELESS, Person::nobody()));
    for version in VERSIONS {
        ends_at_once(World::new().client(version, Person::nobody()));
    }
}

#[test]
fn a_stray_message_before_the_first_request_is_ignored() {
    for version in VERSIONS {
        let mut client = Client::silent(&World::new(), version, Person::nobody());
        client.notify("notifications/initialized", json!({}));
        client.notify("notifications/cancelled", json!({ "requestId": 9 }));
        client.write(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        client.write("this is no JSON");
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "late", "version": "1" },
        });
        let method = if version == STATELESS { "tools/list" } else { "initialize" };
        assert!(client.request(method, params).is_ok());
        ends_at_once(client);
    }
}

#[test]
fn it_ends_at_once_with_a_subscription_open() {
    let mut client = World::new().client(STATELESS, Person::nobody());
    client
        .send("subscriptions/listen", json!({ "notifications": { "resourcesListChanged": true } }));
    client.wait_for("notifications/subscriptions/acknowledged");
    ends_at_once(client);
}

#[test]
fn it_ends_at_once_with_a_form_open_and_the_session_goes_on() {
    let world = World::new();
    let mut client = world.client("2025-06-18", Person::accepting());
    let table = shown(&mut client);
    client.send("tools/call", json!({ "name": "confirm_plan", "arguments": table.arguments() }));
    client.wait_for_question();
    ends_at_once(client);
    let mut client = world.client("2025-06-18", Person::accepting());
    assert_eq!(client.reply("confirm_plan", table.arguments())["confirmed"], true);
}

#[test]
fn an_open_form_blocks_nothing_else() {
    let world = World::new();
    let mut client = world.client("2025-11-25", Person::accepting());
    let table = shown(&mut client);
    client.send("tools/call", json!({ "name": "confirm_plan", "arguments": table.arguments() }));
    client.wait_for_question();
    let other = shown(&mut client);
    assert_ne!(other.session, table.session);
    assert!(client.request("tools/list", json!({})).is_ok());
}

#[test]
fn a_cancelled_question_takes_the_form_back() {
    let world = World::new();
    let mut client = world.client("2025-11-25", Person::accepting());
    let table = shown(&mut client);
    let call = json!({ "name": "confirm_plan", "arguments": table.arguments() });
    let id = client.send("tools/call", call);
    let form = client.wait_for_question();
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    let taken_back = client.wait_for("notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], form["id"]);
    assert!(client.request("tools/list", json!({})).is_ok());
}

/// Keeps every other process from writing to the session log.
struct Lock(rusqlite::Connection);

impl Lock {
    fn on(world: &World) -> Self {
        let connection = rusqlite::Connection::open(world.state().join("sessions.db")).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }

    fn release(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[test]
fn long_work_reports_progress_and_lets_other_requests_through() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, Person::nobody());
        shown(&mut client);
        let lock = Lock::on(&world);
        let id = client.send(
            "tools/call",
            json!({
                "name": "propose_plan",
                "arguments": { "model_path": "model.onnx" },
                "_meta": { "progressToken": "p1" },
            }),
        );
        let started = Instant::now();
        assert!(client.request("prompts/list", json!({})).is_ok());
        assert!(started.elapsed() < Duration::from_millis(400));
        let progress = client.wait_for("notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "p1");
        assert_eq!(progress["params"]["progress"], 1.0);
        lock.release();
        assert_ne!(client.wait(id).unwrap()["isError"], true);
    }
}

#[test]
fn a_call_can_be_cancelled() {
    let world = World::new();
    let mut client = world.client("2025-11-25", Person::nobody());
    let table = shown(&mut client);
    let lock = Lock::on(&world);
    let arguments = json!({ "session_id": table.session });
    let id = client.send("tools/call", json!({ "name": "revise_plan", "arguments": arguments }));
    thread::sleep(Duration::from_millis(50));
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    assert!(client.request("tools/list", json!({})).is_ok());
    lock.release();
    assert!(client.request("tools/list", json!({})).is_ok());
}

#[test]
fn a_line_that_is_too_long_does_no_harm() {
    let mut client = World::new().client("2025-11-25", Person::nobody());
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":99,"method":"x","params":"{}"}}"#, "y".repeat(17 << 20));
    client.write(&line);
    assert!(client.request("tools/list", json!({})).is_ok());
}

#[test]
fn broken_requests_are_protocol_errors() {
    for version in VERSIONS {
        let mut client = World::new().client(version, Person::nobody());
        let mut check = |method: &str, params, code: i64| {
            let error = client.request(method, params).unwrap_err();
            assert_eq!(error["code"], code, "{method} in {version}: {error}");
        };
        check("tools/call", json!({ "name": "propose_plans", "arguments": {} }), -32602);
        check("prompts/get", json!({ "name": "nothing" }), -32602);
        check("prompts/get", json!({ "name": "review-plan" }), -32602);
        check("nothing/at/all", json!({}), -32601);
        let not_found = if version == STATELESS { -32602 } else { -32002 };
        for uri in ["quantplan://nothing", "quantplan://sessions/qp-none", "file:///etc/passwd"] {
            check("resources/read", json!({ "uri": uri }), not_found);
        }
    }
}

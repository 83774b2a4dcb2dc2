//! Prompts, resources, completions and subscriptions.

use serde_json::{Value, json};

use crate::mcp::{
    STATELESS, VERSIONS, World,
    client::{Client, Person},
    shown,
};

fn read(client: &mut Client, uri: &str) -> Result<(String, String), Value> {
    let result = client.request("resources/read", json!({ "uri": uri }))?;
    let contents = &result["contents"][0];
    assert_eq!(contents["uri"], uri);
    let text = |key: &str| contents[key].as_str().unwrap().to_owned();
    Ok((text("mimeType"), text("text")))
}

#[test]
fn a_session_can_be_read_in_every_view() {
    for version in VERSIONS {
        let world = World::new();
        let mut client = world.client(version, Person::accepting());
        let table = shown(&mut client);
        let base = format!("quantplan://sessions/{}", table.session);

        let (kind, text) = read(&mut client, "quantplan://sessions").unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (kind.as_str(), &list[0]["session_id"]),
            ("application/json", &json!(table.session))
        );

        let session: Value = serde_json::from_str(&read(&mut client, &base).unwrap().1).unwrap();
        assert_eq!(session["state"], "presented");
        assert_eq!(session["digest"], table.digest.as_str());

        let (kind, text) = read(&mut client, &format!("{base}/table")).unwrap();
        assert_eq!(kind, "text/markdown");
        assert!(text.contains("| Decision | Value |"));

        let error = read(&mut client, &format!("{base}/plan")).unwrap_err();
        assert_eq!(error["data"]["code"], "NOT_CONFIRMED");
        assert!(read(&mut client, &format!("{base}/nothing")).is_err());
        assert!(read(&mut client, &format!("{base}/table/more")).is_err());

        client.reply("confirm_plan", table.arguments());
        let plan = read(&mut client, &format!("{base}/plan")).unwrap().1;
        let plan: Value = serde_json::from_str(&plan).unwrap();
        assert_eq!(plan["requires_confirmation"], false);
        let log = read(&mut client, &format!("{base}/log")).unwrap().1;
        let log: Vec<Value> = serde_json::from_str(&log).unwrap();
        let names: Vec<&str> = log.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!(names, ["proposed", "presented", "asked", "confirmed"]);

        let listed = client.request("resources/list", json!({})).unwrap();
        let uris: Vec<&str> = listed["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["uri"].as_str().unwrap())
            .collect();
        assert_eq!(uris, ["quantplan://sessions", &format!("{base}/table")]);
    }
}

#[test]
fn reading_a_table_does_not_count_as_showing_it() {
    let mut client = World::new().client(STATELESS, Person::accepting());
    let drafted = client
        .reply("propose_plan", json!({ "model_path": "model.onnx", "intent": super::intent() }));
    let session = drafted["session_id"].as_str().unwrap();
    read(&mut client, &format!("quantplan://sessions/{session}/table")).unwrap();
    let arguments = json!({ "session_id": session, "digest": drafted["digest"] });
    assert_eq!(client.failure("confirm_plan", arguments).0, "NOT_SHOWN");
}

#[test]
fn facts_and_rules_can_be_read_by_every_id_that_completes() {
    let mut client = World::new().client(STATELESS, Person::nobody());
    let template = "quantplan://catalogue/{kind}/{id}";
    let kinds = complete(&mut client, resource(template), "kind", "", json!({}));
    assert_eq!(kinds.len(), 17);
    for kind in kinds {
        let ids = complete(&mut client, resource(template), "id", "", json!({ "kind": kind }));
        assert!(!ids.is_empty(), "{kind}");
        for id in ids {
            let (_, text) =
                read(&mut client, &format!("quantplan://catalogue/{kind}/{id}")).unwrap();
            let entry: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(entry["id"], id.as_str());
            assert!(entry["source"].as_array().is_some_and(|sources| !sources.is_empty()));
        }
    }
    for id in complete(&mut client, resource("quantplan://rules/{id}"), "id", "", json!({})) {
        let (kind, text) = read(&mut client, &format!("quantplan://rules/{id}")).unwrap();
        assert_eq!(kind, "text/markdown");
        assert!(!text.is_empty(), "{id}");
    }
    let schemas =
        complete(&mut client, resource("quantplan://schemas/{name}"), "name", "", json!({}));
    assert!(schemas.contains(&"quant_plan_onnx".to_owned()));
    for name in schemas {
        let (_, text) = read(&mut client, &format!("quantplan://schemas/{name}")).unwrap();
        assert!(
            jsonschema::draft202012::new(&serde_json::from_str(&text).unwrap()).is_ok(),
            "{name}"
        );
    }
    let error = read(&mut client, "quantplan://catalogue/presets/XINT9").unwrap_err();
    assert_eq!(error["data"]["near"][0], "XINT8");
}

fn resource(uri: &str) -> Value {
    json!({ "type": "ref/resource", "uri": uri })
}

fn prompt(name: &str) -> Value {
    json!({ "type": "ref/prompt", "name": name })
}

fn complete(
    client: &mut Client,
    reference: Value,
    argument: &str,
    typed: &str,
    before: Value,
) -> Vec<String> {
    let result = client
        .request(
            "completion/complete",
            json!({
                "ref": reference,
                "argument": { "name": argument, "value": typed },
                "context": { "arguments": before },
            }),
        )
        .unwrap();
    let values = result["completion"]["values"].as_array().unwrap();
    assert!(values.len() <= 100);
    values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_id_completes() {
    for version in VERSIONS {
        let mut client = World::new().client(version, Person::nobody());
        let session = shown(&mut client).session;
        let mut check = |reference: Value, argument: &str, typed: &str, expected: &[&str]| {
            let found = complete(&mut client, reference, argument, typed, json!({}));
            assert_eq!(found, expected, "{argument} `{typed}`");
        };
        check(prompt("plan-onnx-ptq"), "target", "NPU", &["npu_cnn", "npu_transformer"]);
        check(prompt("plan-onnx-ptq"), "model", "x", &[]);
        check(
            prompt("plan-torch-ptq"),
            "hardware",
            "instinct MI300",
            &["AMD Instinct MI300A", "AMD Instinct MI300X"],
        );
        check(prompt("plan-torch-ptq"), "engine", "v", &["vllm"]);
        check(prompt("review-plan"), "session_id", "qp-", &[&session]);
        check(prompt("recover"), "session_id", "", &[&session]);
        check(resource("quantplan://catalogue/{kind}/{id}"), "kind", "dev", &["devices"]);
        check(resource("quantplan://catalogue/{kind}/{id}"), "kind", "recov", &["recoveries"]);
        for view in ["", "/table", "/plan", "/log"] {
            check(resource(&format!("quantplan://sessions/{{id}}{view}")), "id", "q", &[&session]);
        }
        check(resource("quantplan://nothing/{id}"), "id", "", &[]);
    }
}

#[test]
fn prompts_fill_their_holes() {
    for version in VERSIONS {
        let mut client = World::new().client(version, Person::nobody());
        let mut get = |name: &str, arguments: Value| {
            let result = client
                .request("prompts/get", json!({ "name": name, "arguments": arguments }))
                .unwrap();
            let message = &result["messages"][0];
            assert_eq!(message["role"], "user");
            message["content"]["text"].as_str().unwrap().to_owned()
        };
        let text = get("plan-onnx-ptq", json!({ "model": "a.onnx", "target": "cpu" }));
        assert!(
            text.contains("- Model: `a.onnx`\n- Deployment target: cpu\n- Goal: not said\n"),
            "{text}"
        );
        let text = get("plan-onnx-ptq", json!({ "model": "a.onnx", "target": " " }));
        assert!(text.contains("do not assume one"), "{text}");
        assert!(get("review-plan", json!({ "session_id": "qp-1" })).contains("`qp-1`"));
        assert!(get("recover", json!({ "error": "boom" })).contains("boom"));
    }
}

#[test]
fn subscribers_hear_of_changes_with_a_handshake() {
    let world = World::new();
    let mut client = world.client("2025-11-25", Person::nobody());
    let session = shown(&mut client).session;
    client.wait_for("notifications/resources/list_changed");
    let uri = format!("quantplan://sessions/{session}/table");
    client.request("resources/subscribe", json!({ "uri": uri })).unwrap();
    let fixed = json!({ "uri": "quantplan://catalogue/presets/XINT8" });
    assert!(client.request("resources/subscribe", fixed).is_err());
    client.notifications.clear();
    client.reply("revise_plan", json!({ "session_id": session }));
    let update = client.wait_for("notifications/resources/updated");
    assert_eq!(update["params"]["uri"], uri);
    client.request("resources/unsubscribe", json!({ "uri": uri })).unwrap();
    client.notifications.clear();
    client.reply("revise_plan", json!({ "session_id": session }));
    client.request("tools/list", json!({})).unwrap();
    assert_eq!(client.notifications, Vec::<Value>::new());
}

#[test]
fn subscribers_hear_of_changes_without_a_handshake() {
    let world = World::new();
    let mut client = world.client(STATELESS, Person::nobody());
    let session = shown(&mut client).session;
    let uri = format!("quantplan://sessions/{session}");
    let fixed = "quantplan://catalogue/presets/XINT8";
    let notifications = json!({
        "resourcesListChanged": true,
        "toolsListChanged": true,
        "resourceSubscriptions": [uri, fixed],
    });
    let id = client.send("subscriptions/listen", json!({ "notifications": notifications }));
    let acknowledged = client.wait_for("notifications/subscriptions/acknowledged");
    let accepted = &acknowledged["params"]["notifications"];
    assert_eq!(*accepted, json!({ "resourcesListChanged": true, "resourceSubscriptions": [uri] }));
    client.reply("revise_plan", json!({ "session_id": session }));
    let update = client.wait_for("notifications/resources/updated");
    assert_eq!(update["params"]["uri"], uri);
    assert_eq!(update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    shown(&mut client);
    client.wait_for("notifications/resources/list_changed");
}

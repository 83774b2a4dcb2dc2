//! The server as clients meet it: the real binary, over standard input and output, in every protocol.

mod app;
mod asking;
mod client;
mod corpus;
mod crash;
mod definitions;
mod lifecycle;
mod resources;
mod state;
mod tools;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use client::{Client, Person};

/// The protocol versions that hosts speak today.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// The version without a handshake.
const STATELESS: &str = "2026-07-28";

/// A workspace with a model in it, and a state directory beside it.
struct World {
    root: Arc<TempDir>,
    flags: Vec<&'static str>,
}

impl World {
    fn new() -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        fs::create_dir(root.path().join("work")).unwrap();
        fs::copy(fixture("good/small_cnn.onnx"), root.path().join("work/model.onnx")).unwrap();
        Self { root, flags: Vec::new() }
    }

    fn with_flag(mut self, flag: &'static str) -> Self {
        self.flags.push(flag);
        self
    }

    fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn client(&self, version: &'static str, person: Person) -> Client {
        Client::start(self, version, person)
    }
}

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx").join(path)
}

/// What a user says who leaves nothing open.
fn intent() -> Value {
    json!({
        "deployment_target": "cpu",
        "calibration_data": { "available": true, "samples": 256 },
    })
}

/// A session whose table was shown.
struct Shown {
    session: String,
    digest: String,
}

impl Shown {
    fn arguments(&self) -> Value {
        json!({ "session_id": self.session, "digest": self.digest })
    }
}

/// Proposes a plan for a model, fails unless it can be confirmed, and shows its table.
fn shown_for(client: &mut Client, model: &Path) -> Shown {
    let proposed = client.reply("propose_plan", json!({ "model_path": model, "intent": intent() }));
    assert_eq!(proposed["confirmable"], true, "{proposed:#}");
    show(client, proposed["session_id"].as_str().unwrap())
}

fn shown(client: &mut Client) -> Shown {
    shown_for(client, Path::new("model.onnx"))
}

fn show(client: &mut Client, session: &str) -> Shown {
    let table = client.reply("render_decision_table", json!({ "session_id": session }));
    assert!(table["table_markdown"].as_str().unwrap().contains(session));
    Shown { session: session.to_owned(), digest: table["digest"].as_str().unwrap().to_owned() }
}

#[test]
fn the_block_for_clients_starts_this_server() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/mcp.json")).unwrap();
    let block: Value = serde_json::from_str(&text).unwrap();
    let server = json!({ "type": "stdio", "command": "quantplan", "args": ["serve"] });
    assert_eq!(block, json!({ "mcpServers": { "quantplan": server } }));
}

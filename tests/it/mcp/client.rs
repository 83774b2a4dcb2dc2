//! A client that writes and reads JSON-RPC itself, so that nothing hides what the server really says.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::{STATELESS, World};

/// Nothing takes longer than this, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who sits in front of a client.
#[derive(Debug, Clone)]
pub struct Person {
    /// What the client declares as its elicitation capability.
    pub capability: Option<Value>,
    /// How long an answer takes.
    pub delay: Duration,
    /// The answer; without one the client does not know the method.
    pub answer: Option<Value>,
    /// The kinds of pages that the client declares to show.
    pub pages: Option<Value>,
}

impl Person {
    fn answering(answer: Value) -> Self {
        let delay = Duration::from_millis(600);
        Self { capability: Some(json!({})), delay, answer: Some(answer), pages: None }
    }

    pub fn accepting() -> Self {
        Self::choosing("confirm")
    }

    pub fn choosing(decision: &str) -> Self {
        Self::answering(json!({ "action": "accept", "content": { "decision": decision } }))
    }

    pub fn noting(decision: &str, notes: &str) -> Self {
        let content = json!({ "decision": decision, "notes": notes });
        Self::answering(json!({ "action": "accept", "content": content }))
    }

    pub fn accepting_without_a_value() -> Self {
        Self::answering(json!({ "action": "accept", "content": {} }))
    }

    pub fn declining() -> Self {
        Self::answering(json!({ "action": "decline" }))
    }

    pub fn cancelling() -> Self {
        Self::answering(json!({ "action": "cancel" }))
    }

    pub fn too_fast() -> Self {
        Self { delay: Duration::ZERO, ..Self::accepting() }
    }

    pub fn nobody() -> Self {
        Self { capability: None, delay: Duration::ZERO, answer: None, pages: None }
    }

    /// The client shows MCP Apps.
    pub fn with_apps(self) -> Self {
        Self { pages: Some(json!(["text/html;profile=mcp-app"])), ..self }
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({});
        if let Some(elicitation) = &self.capability {
            capabilities["elicitation"] = elicitation.clone();
        }
        if let Some(pages) = &self.pages {
            capabilities["extensions"]["io.modelcontextprotocol/ui"] =
                json!({ "mimeTypes": pages });
        }
        capabilities
    }

    /// The client claims to show forms and does not know how.
    pub fn claimed() -> Self {
        Self { answer: None, ..Self::accepting() }
    }
}

/// A running server with the client's end of its pipes.
pub struct Client {
    /// Keeps the folders alive.
    _root: Arc<TempDir>,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    version: &'static str,
    person: Person,
    next_id: u64,
    /// Notifications that came by the way.
    pub notifications: Vec<Value>,
    /// Forms that the person was shown.
    pub forms: Vec<Value>,
    /// The answer to `initialize` or `server/discover`.
    pub greeting: Value,
}

impl Client {
    /// Starts a server and goes through the beginning of the protocol.
    pub fn start(world: &World, version: &'static str, person: Person) -> Self {
        Self::silent(world, version, person).begun()
    }

    /// Goes through the beginning of the protocol.
    pub fn begun(self) -> Self {
        let mut client = self;
        let version = client.version;
        if version == STATELESS {
            client.greeting = client.request("server/discover", json!({})).unwrap();
        } else {
            let capabilities = client.person.capabilities();
            client.greeting = client
                .request(
                    "initialize",
                    json!({
                        "protocolVersion": version,
                        "capabilities": capabilities,
                        "clientInfo": { "name": "test-client", "version": "1.0" },
                    }),
                )
                .unwrap();
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    /// Starts a server and says nothing.
    pub fn silent(world: &World, version: &'static str, person: Person) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quantplan"));
        command
            .arg("serve")
            .arg("--state-dir")
            .arg(world.state())
            .args(&world.flags)
            .env("RUST_LOG", "trace");
        Self::of(command, 0, world, version, person)
    }

    /// Starts any program that serves, and drops what it prints before.
    pub fn of(
        mut command: Command,
        dropped: usize,
        world: &World,
        version: &'static str,
        person: Person,
    ) -> Self {
        let mut child = command
            .current_dir(world.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().skip(dropped) {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self {
            _root: Arc::clone(&world.root),
            input: child.stdin.take(),
            child,
            lines,
            version,
            person,
            next_id: 0,
            notifications: Vec::new(),
            forms: Vec::new(),
            greeting: Value::Null,
        }
    }

    /// Writes a line as it is.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request and gives its id.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        if self.version == STATELESS {
            let prefix = "io.modelcontextprotocol";
            params["_meta"][format!("{prefix}/protocolVersion")] = json!(self.version);
            params["_meta"][format!("{prefix}/clientCapabilities")] = self.person.capabilities();
            params["_meta"][format!("{prefix}/clientInfo")] =
                json!({ "name": "test-client", "version": "1.0" });
        }
        let id = self.next_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&request.to_string());
        id
    }

    /// The next message of the server; every line must be one.
    fn message(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server says something");
        parsed(&line)
    }

    /// Waits for the answer to a request; questions of the server are answered by the person meanwhile.
    pub fn wait(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let mut message = self.message();
            if message["method"] == "elicitation/create" {
                assert_ne!(self.version, STATELESS, "this protocol has no requests of the server");
                let answer = match self.answer(&message["params"]) {
                    Some(answer) => json!({ "result": answer }),
                    None => json!({ "error": { "code": -32601, "message": "unknown method" } }),
                };
                let mut response = answer;
                response["jsonrpc"] = json!("2.0");
                response["id"] = message["id"].clone();
                self.write(&response.to_string());
            } else if message.get("method").is_some() {
                assert!(message.get("id").is_none(), "an unexpected request: {message}");
                self.notifications.push(message);
            } else {
                assert_eq!(message["id"], id, "{message}");
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.wait(id)
    }

    /// Waits until the server asks, and does not answer.
    pub fn wait_for_question(&mut self) -> Value {
        loop {
            let message = self.message();
            if message["method"] == "elicitation/create" {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Waits for a notification.
    pub fn wait_for(&mut self, method: &str) -> Value {
        if let Some(at) = self.notifications.iter().position(|n| n["method"] == method) {
            return self.notifications.remove(at);
        }
        loop {
            let message = self.message();
            if message["method"] == method {
                return message;
            }
            assert!(message.get("id").is_none(), "{message}");
            self.notifications.push(message);
        }
    }

    fn answer(&mut self, form: &Value) -> Option<Value> {
        self.forms.push(form.clone());
        std::thread::sleep(self.person.delay);
        self.person.answer.clone()
    }

    /// Calls a tool and goes through all rounds of questions.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut params = json!({ "name": tool, "arguments": arguments });
        loop {
            let result = self.request("tools/call", params.clone()).unwrap();
            if result["resultType"] != "input_required" {
                return result;
            }
            let answer = self.answer(&result["inputRequests"]["confirm"]["params"]);
            let answer = answer.expect("a client that asks knows how");
            params = again(params, &result, answer);
        }
    }

    /// Calls a tool, once.
    pub fn call_once(&mut self, params: Value) -> Value {
        self.request("tools/call", params).unwrap()
    }

    /// Calls a tool that must succeed, and gives its structured result.
    pub fn reply(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result:#}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail, and gives its code and whole text.
    pub fn failure(&mut self, tool: &str, arguments: Value) -> (String, String) {
        failure_of(&self.call(tool, arguments))
    }

    /// Closes the input and gives how and how fast the server ended.
    pub fn end(mut self) -> (ExitStatus, Duration) {
        drop(self.input.take());
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = started.elapsed();
        while let Ok(line) = self.lines.recv_timeout(Duration::from_millis(100)) {
            parsed(&line);
        }
        (status, took)
    }

    /// Ends the server in the way of a power cut.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same call with an answer to what it asked for.
pub fn again(mut params: Value, asked: &Value, answer: Value) -> Value {
    params["inputResponses"] = json!({ "confirm": answer });
    params["requestState"] = asked["requestState"].clone();
    params
}

/// The code of a tool error, and its text.
pub fn failure_of(result: &Value) -> (String, String) {
    assert_eq!(result["isError"], true, "{result:#}");
    assert_eq!(result.get("structuredContent"), None, "{result:#}");
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    let (first, hint) = text.split_once('\n').unwrap();
    assert!(hint.starts_with("hint: ") && hint.len() > 6 && !hint.contains('\n'), "{text}");
    let (code, message) = first.split_once(": ").unwrap();
    assert!(code.chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{text}");
    assert!(!message.is_empty(), "{text}");
    assert_eq!(result["_meta"]["quantplan/error"]["code"], code);
    (code.to_owned(), text)
}

fn parsed(line: &str) -> Value {
    let message: Value = serde_json::from_str(line).unwrap_or_else(|error| {
        panic!("standard output has a line that is no JSON: {line:?}: {error}")
    });
    assert_eq!(message["jsonrpc"], "2.0", "standard output has a line that is no JSON-RPC: {line}");
    message
}

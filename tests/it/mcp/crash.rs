//! Two servers act on one session and one of them is killed: at every step of writing a plan.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use quantplan::{
    mcp::{self, Options},
    planner::{self, Planner},
};
use serde_json::{Value, json};
use tracing::{Event, Metadata, Subscriber, field::Visit, span};

use crate::mcp::{
    STATELESS, Shown, World,
    client::{Client, Person},
    shown,
};

/// The number of the step after which the server stops, and the file that it writes its steps to.
const STOP_AFTER: &str = "QUANTPLAN_TEST_STOP_AFTER";
const STEPS: &str = "QUANTPLAN_TEST_STEPS";

/// Notes every step of the log and of writing, and stands still after one of them.
struct Steps {
    left: AtomicUsize,
    file: Mutex<fs::File>,
}

impl Subscriber for Steps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ["quantplan::store", "quantplan::emit"].iter().any(|of| metadata.target().starts_with(of))
    }

    fn event(&self, event: &Event<'_>) {
        struct Message(String);
        impl Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        let step = format!("{}\n", message.0);
        self.file.lock().unwrap().write_all(step.as_bytes()).unwrap();
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            loop {
                thread::park();
            }
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Not a test of its own: the server of the tests below, which start this test in a process for it.
#[test]
fn a_server_that_stands_still_after_a_step() {
    let (Ok(steps), Ok(stop)) = (std::env::var(STEPS), std::env::var(STOP_AFTER)) else { return };
    let file = Mutex::new(fs::File::create(&steps).unwrap());
    let left = AtomicUsize::new(stop.parse().unwrap());
    tracing::subscriber::set_global_default(Steps { left, file }).unwrap();
    let state = PathBuf::from(std::env::var("QUANTPLAN_STATE_DIR").unwrap());
    let options = planner::Options::from_environment(Vec::new(), Some(state)).unwrap();
    mcp::serve(Planner::new(options), Options::default()).unwrap();
}

/// The server that will be killed.
struct Victim {
    client: Client,
    steps: PathBuf,
}

impl Victim {
    /// Stands still after a number of steps; never, when that is more than there are.
    fn new(world: &World, stop: usize) -> Self {
        let steps = world.root.path().join("steps");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--quiet", "--exact", "mcp::crash::a_server_that_stands_still_after_a_step"])
            .arg("--nocapture")
            .env("QUANTPLAN_STATE_DIR", world.state())
            .env(STEPS, &steps)
            .env(STOP_AFTER, stop.to_string());
        // An empty line, and how many tests there are.
        let client = Client::of(command, 2, world, STATELESS, Person::nobody()).begun();
        Self { client, steps }
    }

    fn steps(&self) -> Vec<String> {
        fs::read_to_string(&self.steps).unwrap().lines().map(str::to_owned).collect()
    }

    /// Lets it write a plan until it stands still.
    fn write(&mut self, call: &Value, stop: usize) {
        self.client.send("tools/call", json!({ "name": "emit_plan", "arguments": call }));
        let started = Instant::now();
        while self.steps().len() < stop {
            assert!(started.elapsed() < Duration::from_secs(60), "step {stop} does not come");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A world with a plan that the user has confirmed, and a server that goes on running.
fn confirmed(before: Option<&str>) -> (World, Client, Shown) {
    let world = World::new();
    if let Some(text) = before {
        fs::write(world.work().join("quant_plan.json"), text).unwrap();
    }
    let mut client = world.client("2025-11-25", Person::accepting());
    let table = shown(&mut client);
    client.reply("confirm_plan", table.arguments());
    (world, client, table)
}

fn call(table: &Shown, path: &str, overwrite: bool) -> Value {
    json!({ "session_id": table.session, "output_path": path, "overwrite": overwrite })
}

/// The names of the events of a session; its hash chain is checked on the way.
fn events(client: &mut Client, table: &Shown) -> Vec<String> {
    let uri = format!("quantplan://sessions/{}/log", table.session);
    let read = client.request("resources/read", json!({ "uri": uri })).unwrap();
    let log: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    log.as_array().unwrap().iter().map(|e| e["event"].as_str().unwrap().to_owned()).collect()
}

fn files(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.work()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Every step that a server goes through when it writes a plan.
fn steps_of(before: Option<&str>) -> Vec<String> {
    let (world, _client, table) = confirmed(before);
    let mut victim = Victim::new(&world, usize::MAX);
    victim.client.reply("emit_plan", call(&table, "quant_plan.json", before.is_some()));
    victim.steps()
}

/// Kills a server after a step; the other one must find the file whole or as it was, and finish.
fn killed_after(stop: usize, step: &str, before: Option<&str>) {
    let at = format!("after step {stop}, `{step}`");
    let (world, mut other, table) = confirmed(before);
    let mut victim = Victim::new(&world, stop);
    victim.write(&call(&table, "quant_plan.json", before.is_some()), stop);
    victim.client.kill();

    let file = world.work().join("quant_plan.json");
    let left = fs::read_to_string(&file).ok();
    let noted = events(&mut other, &table);
    assert_eq!(noted[..4], ["proposed", "presented", "asked", "confirmed"], "{at}");
    let emitted = |events: &[String]| events.iter().filter(|name| *name == "emitted").count();
    if emitted(&noted) == 1 {
        assert!(left.is_some() && left.as_deref() != before, "{at}: noted and not there");
    }
    // A whole plan is the one of the session: elsewhere there will be no second one.
    let was_written = left.is_some() && left.as_deref() != before;
    if was_written {
        let elsewhere = call(&table, "elsewhere.json", false);
        assert_eq!(other.failure("emit_plan", elsewhere).0, "ALREADY_EMITTED", "{at}");
    }
    let reply = other.reply("emit_plan", call(&table, "quant_plan.json", before.is_some()));
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), reply["plan"], "{at}");
    if was_written {
        assert_eq!(left.as_deref(), Some(&*written), "{at}: half a file");
    }
    assert_eq!(files(&world), ["model.onnx", "model_analysis.json", "quant_plan.json"], "{at}");
    let noted = events(&mut other, &table);
    assert_eq!(emitted(&noted), 1, "{at}: {noted:?}");
    assert_eq!(noted.last().map(String::as_str), Some("emitted"), "{at}");
    // Once more changes nothing.
    other.reply("emit_plan", call(&table, "quant_plan.json", before.is_some()));
    assert_eq!(events(&mut other, &table), noted, "{at}");
}

#[test]
fn a_server_that_is_killed_at_any_step_leaves_a_whole_file_or_none_and_another_one_finishes() {
    for before in [None, Some("{\"requires_confirmation\": false}\n")] {
        let steps = steps_of(before);
        // One file: the analysis beside the plan; the other: the plan.
        let file = [
            "temporary file created",
            "temporary file written",
            "temporary file synced",
            "moved into place",
            "temporary file removed",
            "folder synced",
        ];
        let log = ["transaction begun", "event appended"];
        let committed = ["transaction committed"];
        let expected = [&log[..], &committed, &log, &file, &file, &committed].concat();
        assert_eq!(steps, expected);
        thread::scope(|scope| {
            for (stop, step) in (1..).zip(&steps) {
                scope.spawn(move || killed_after(stop, step, before));
            }
        });
    }
}

#[test]
fn while_one_server_writes_the_others_can_read_and_are_told_that_it_is_busy() {
    let (world, mut other, table) = confirmed(None);
    // The transaction of the second event is open.
    let mut victim = Victim::new(&world, 6);
    victim.write(&call(&table, "quant_plan.json", false), 6);
    let shown = other.reply("render_decision_table", json!({ "session_id": table.session }));
    assert_eq!(shown["state"], "confirmed");
    let (code, text) = other.failure("emit_plan", call(&table, "quant_plan.json", false));
    assert_eq!(code, "BUSY", "{text}");
    // What a living server is still writing is not swept away.
    assert!(files(&world).iter().any(|name| name.ends_with(".tmp")));
    victim.client.kill();
    other.reply("emit_plan", call(&table, "quant_plan.json", false));
    assert_eq!(files(&world), ["model.onnx", "model_analysis.json", "quant_plan.json"]);
}

#[test]
fn of_servers_that_write_revise_and_confirm_at_once_one_wins_and_the_others_are_told() {
    for _ in 0..3 {
        let (world, mut other, table) = confirmed(None);
        let calls = [
            ("emit_plan", call(&table, "quant_plan.json", false)),
            ("emit_plan", call(&table, "another.json", false)),
            ("revise_plan", json!({ "session_id": table.session })),
            ("confirm_plan", table.arguments()),
        ];
        thread::scope(|scope| {
            for (tool, arguments) in calls {
                let mut client = world.client(STATELESS, Person::nobody());
                scope.spawn(move || {
                    let result = client.call(tool, arguments);
                    if result["isError"] == true {
                        let (code, text) = crate::mcp::client::failure_of(&result);
                        let known = ["CONFLICT", "ALREADY_EMITTED", "NOT_CONFIRMED", "STALE_TABLE"];
                        assert!(known.contains(&&*code), "{tool}: {text}");
                    }
                });
            }
        });
        let noted = events(&mut other, &table);
        let emitted = noted.iter().filter(|name| *name == "emitted").count();
        let plans = files(&world)
            .iter()
            .filter(|n| *n == "quant_plan.json" || *n == "another.json")
            .count();
        assert_eq!(emitted, plans, "{noted:?} and {:?}", files(&world));
        assert!(plans <= 1, "two plans of one yes");
        assert!(files(&world).iter().all(|name| !name.ends_with(".tmp")));
    }
}

#[test]
fn servers_that_start_at_once_on_a_new_state_directory_all_can_use_it() {
    for _ in 0..3 {
        let world = World::new();
        let clients: Vec<Client> =
            (0..8).map(|_| world.client(STATELESS, Person::nobody())).collect();
        thread::scope(|scope| {
            for mut client in clients {
                scope.spawn(move || shown(&mut client));
            }
        });
    }
}

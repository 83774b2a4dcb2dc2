//! The probe over machines made of files, over broken files and over this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use quantplan::{
    planner::{
        Options, Planner,
        probe::{Arguments, examine},
    },
    probe::{self, Root},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A machine as one file: sysfs has names that not every file system takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    #[serde(rename = "about")]
    _about: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    path: Vec<PathBuf>,
    #[serde(default)]
    python: Option<PathBuf>,
    /// Texts by path; `-> target` makes a link, and `{a,b}` in a path makes several files, of one text or of
    /// as many.
    files: BTreeMap<String, Value>,
}

impl Machine {
    fn read(folder: &Path) -> Self {
        serde_json::from_str(&fs::read_to_string(folder.join("files.json")).unwrap()).unwrap()
    }

    fn build(&self) -> (TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (pattern, text) in &self.files {
            for (i, path) in expanded(pattern).iter().enumerate() {
                let text = text.as_array().map_or(text, |texts| &texts[i]).as_str().unwrap();
                let place = folder.path().join(path.trim_start_matches('/'));
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                match text.strip_prefix("-> ") {
                    Some(target) => symlink(target, place).unwrap(),
                    None => fs::write(place, text).unwrap(),
                }
            }
        }
        let mut root = Root::at(folder.path().to_path_buf());
        root.env.clone_from(&self.env);
        root.python.clone_from(&self.python);
        if !self.path.is_empty() {
            root.path.clone_from(&self.path);
        }
        (folder, root)
    }
}

fn expanded(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let (choices, after) = rest.split_once('}').unwrap();
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

fn fixtures(inside: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(inside)
}

fn machines() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures("machines")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn shipped_schema() -> jsonschema::Validator {
    let path = fixtures("schemas/quark-0.13/env_context.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn each_machine_gives_the_facts_that_lie_beside_it() {
    let write = std::env::var_os("QUANTPLAN_WRITE_FIXTURES").is_some();
    let schema = shipped_schema();
    let mut wrong = Vec::new();
    for machine in machines() {
        let (_folder, root) = Machine::read(&machine).build();
        let found = examine(&root);
        for error in schema.iter_errors(&serde_json::to_value(&found.env_context).unwrap()) {
            wrong.push(format!("{}: {error}", machine.display()));
        }
        let context = serde_json::to_string_pretty(&found.env_context).unwrap();
        let rest = json!({"mismatches": found.mismatches, "notes": found.notes});
        let rest = serde_json::to_string_pretty(&rest).unwrap();
        for (name, text) in [("env_context.json", context), ("findings.json", rest)] {
            let path = machine.join(name);
            let text = format!("{text}\n");
            if write {
                fs::write(&path, &text).unwrap();
            }
            if fs::read_to_string(&path).unwrap_or_default() != text {
                wrong.push(format!("{} holds something else than\n{text}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn accelerators_follow_the_evidence() {
    let found: BTreeMap<String, String> = machines()
        .iter()
        .map(|machine| {
            let (_folder, root) = Machine::read(machine).build();
            let accelerator = probe::read(&root).context.hardware.accelerator.unwrap();
            (machine.file_name().unwrap().to_string_lossy().into_owned(), accelerator)
        })
        .collect();
    let expected = [
        ("bare-vm", "cpu"),
        ("h100-docker", "nvidia-cuda"),
        ("hawk-point-geforce", "nvidia-cuda"),
        ("hidden-gpu", "unknown"),
        ("jetson-orin", "nvidia-cuda"),
        ("mi300x-server", "amd-rocm"),
        ("radeon-desktop", "amd-rocm"),
        ("ryzen-ai-krackan", "unknown"),
        ("ryzen-ai-phoenix", "unknown"),
        ("ryzen-ai-strix", "unknown"),
        ("two-makers", "unknown"),
        ("wsl", "nvidia-cuda"),
    ];
    let expected = expected.map(|(name, accelerator)| (name.to_owned(), accelerator.to_owned()));
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn missing_evidence_is_not_a_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let found = probe::read(&Root::at(folder.path().to_path_buf()));
    let context = serde_json::to_value(&found.context).unwrap();
    assert_eq!(
        context,
        json!({
            "environment": {"os": "unknown", "python": "unknown", "containerized": false},
            "hardware": {"accelerator": "unknown"},
        })
    );
    assert!(shipped_schema().is_valid(&context));
    assert!(found.notes.iter().any(|note| note.message.contains("PCI bus cannot be listed")));
}

/// Each file of each machine cut short, emptied, turned to bytes that are no text, to a folder, and to a link
/// to itself: something is found, and nothing breaks.
#[test]
fn broken_files_are_not_known_and_never_an_error() {
    let schema = shipped_schema();
    for folder in machines() {
        let machine = Machine::read(&folder);
        let (folder, root) = machine.build();
        for (pattern, text) in &machine.files {
            let file = folder.path().join(expanded(pattern)[0].trim_start_matches('/'));
            let Some(text) = text.as_str().filter(|t| !t.is_empty() && !t.starts_with("-> "))
            else {
                continue;
            };
            let check = |kind: &str| {
                let context = serde_json::to_value(examine(&root).env_context).unwrap();
                assert!(schema.is_valid(&context), "{} {kind}", file.display());
            };
            for bytes in
                [&text.as_bytes()[..text.len() / 2], b"", b"\xff 9999999999999999999999 -1 0x,=:\0"]
            {
                fs::write(&file, bytes).unwrap();
                check("with other bytes");
            }
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            check("as a folder");
            fs::remove_dir(&file).unwrap();
            symlink(file.file_name().unwrap(), &file).unwrap();
            check("as a link to itself");
            fs::remove_file(&file).unwrap();
            fs::write(&file, text).unwrap();
        }
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("proc")).unwrap();
    let pipe = folder.path().join("proc/version");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    assert_eq!(
        probe::read(&Root::at(folder.path().to_path_buf())).context.environment.kernel,
        None
    );
}

#[test]
fn the_named_interpreter_comes_first() {
    let machine = fixtures("machines/mi300x-server");
    let (_folder, mut root) = Machine::read(&machine).build();
    root.python = Some("/usr/bin/python3".into());
    let environment = probe::read(&root).context.environment;
    assert_eq!(environment.python.as_deref(), Some("3.12"));
    assert!(environment.packages.is_empty());
    let prefixes: Vec<&str> = environment.interpreters.iter().map(|i| i.prefix.as_str()).collect();
    assert_eq!(prefixes, ["/usr", "/opt/quark"]);

    root.python = Some("/nowhere/python".into());
    let found = probe::read(&root);
    assert_eq!(found.context.environment.python.as_deref(), Some("3.12.3"));
    let named = found.notes.iter().any(|note| note.message.contains("`/nowhere/python`"));
    assert!(named, "{:?}", found.notes);
}

#[test]
fn facts_are_written_inside_the_workspace_and_never_over_another_file() {
    let (folder, root) = Machine::read(&fixtures("machines/bare-vm")).build();
    let work = tempfile::tempdir().unwrap();
    let planner = Planner::new(Options {
        workspaces: Vec::new(),
        state_dir: work.path().join("state"),
        current_dir: work.path().to_path_buf(),
        session_days: 1,
        now: || 0,
    });
    let arguments = Arguments {
        root: Some(root.root.clone()),
        output_path: Some("env_context.json".into()),
        ..Arguments::default()
    };
    let reply = planner.probe(&arguments).unwrap();
    let written = work.path().canonicalize().unwrap().join("env_context.json");
    assert_eq!(reply.written_to.as_deref(), written.to_str());
    assert!(reply.next.contains("environment_path"), "{}", reply.next);
    let text = fs::read_to_string(&written).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read, serde_json::to_value(&reply.env_context).unwrap());

    fs::write(&written, r#"{"environment": {}}"#).unwrap();
    assert_eq!(planner.probe(&arguments).unwrap_err().code(), "OUTPUT_EXISTS");
    let over = Arguments { overwrite: true, ..arguments.clone() };
    assert!(planner.probe(&over).is_ok());
    let outside = Arguments { output_path: Some(folder.path().join("x.json")), ..arguments };
    assert_eq!(planner.probe(&outside).unwrap_err().code(), "OUTSIDE_WORKSPACE");
}

#[test]
fn this_machine_is_read_in_thirty_milliseconds() {
    let schema = shipped_schema();
    let times: BTreeSet<Duration> = (0..5)
        .map(|_| {
            let start = Instant::now();
            let found = examine(&Root::here());
            let time = start.elapsed();
            assert!(schema.is_valid(&serde_json::to_value(found.env_context).unwrap()));
            time
        })
        .collect();
    assert!(times.first() <= Some(&Duration::from_millis(30)), "{times:?}");
}

//! The gate: nothing is written without a yes to the very table that is shown.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use quantplan::{
    intent::Intent,
    plan::digest::Digest,
    planner::{
        Options, Planner,
        confirm::{self, Inquiry},
        error::Error,
        propose::{self, RevisionArguments},
        show, write,
    },
    session::event::{Answer, Reply},
    vocab::{Channel, DecisionId, SessionId},
};
use serde_json::json;
use tempfile::TempDir;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_800_000_000_000) };
}

fn now() -> i64 {
    NOW.get()
}

fn wait(milliseconds: i64) {
    NOW.set(NOW.get() + milliseconds);
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx/good").join(name)
}

/// A planner with a state directory and a workspace of its own, on a copy of a model.
struct World {
    planner: Planner,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::copy(fixture("small_cnn.onnx"), folder.path().join("model.onnx")).unwrap();
        let planner = Self::another(folder.path());
        Self { planner, folder }
    }

    /// Another process on the same state directory.
    fn another(folder: &Path) -> Planner {
        Planner::new(Options {
            workspaces: vec![folder.to_path_buf()],
            state_dir: folder.join("state"),
            current_dir: folder.to_path_buf(),
            session_days: 30,
            now,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn propose(&self) -> SessionId {
        let reply = self
            .planner
            .propose(&propose::Arguments {
                model_path: Some("model.onnx".into()),
                intent: Intent { deployment_target: Some("cpu".into()), ..Intent::default() },
                ..propose::Arguments::default()
            })
            .unwrap();
        reply.session_id.unwrap()
    }

    fn shown(&self, id: &SessionId) -> Digest {
        let arguments = show::Arguments { session_id: id.clone(), format: show::Format::Markdown };
        self.planner.show(&arguments).unwrap().digest
    }

    fn asked(&self, id: &SessionId, digest: &Digest) -> Result<String, Error> {
        let arguments = confirm::Arguments { session_id: id.clone(), digest: digest.clone() };
        match self.planner.ask(&arguments, Channel::Elicited)? {
            Inquiry::Ask(asked) => Ok(asked.nonce),
            Inquiry::Confirmed(_) => panic!("confirmed already"),
        }
    }

    fn answered(
        &self,
        id: &SessionId,
        nonce: &str,
        digest: &Digest,
        reply: Reply,
    ) -> Result<(), Error> {
        let answer = Answer {
            nonce: Some(nonce.to_owned()),
            channel: Channel::Elicited,
            digest: digest.clone(),
            reply,
            client: None,
        };
        self.planner.answer(id, answer).map(|_| ())
    }

    fn confirmed(&self) -> SessionId {
        let id = self.propose();
        let digest = self.shown(&id);
        let nonce = self.asked(&id, &digest).unwrap();
        wait(2_000);
        self.answered(&id, &nonce, &digest, Reply::Yes).unwrap();
        id
    }

    fn emit(&self, id: &SessionId, name: &str) -> Result<write::Reply, Error> {
        self.planner.write(&write::Arguments {
            session_id: id.clone(),
            output_path: name.into(),
            overwrite: false,
        })
    }

    fn revise(
        &self,
        id: &SessionId,
        row: &str,
        value: serde_json::Value,
    ) -> Result<propose::Reply, Error> {
        let mut revision = RevisionArguments::of(id.clone());
        revision.values.insert(DecisionId::new(row), value);
        self.planner.revise(&revision)
    }
}

fn code<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "OK",
        Err(error) => error.code(),
    }
}

#[test]
fn a_yes_to_the_shown_table_makes_a_file_that_both_schemas_accept() {
    let world = World::new();
    let id = world.confirmed();
    let reply = world.emit(&id, "quant_plan.json").unwrap();
    let text = fs::read_to_string(world.path("quant_plan.json")).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(plan, json!(reply.plan));
    assert_eq!(plan["requires_confirmation"], false);
    assert_eq!(plan["provenance"]["confirmation"]["channel"], "elicited");
    assert_eq!(plan["model"]["analysis_ref"], "./model_analysis.json");
    assert!(world.path("model_analysis.json").exists());
    for schema in
        ["src/schema/quark-0.13.quant_plan.schema.json", "schemas/quant_plan_onnx.schema.json"]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(schema);
        let schema: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&plan).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn nothing_is_written_before_a_yes() {
    let world = World::new();
    let id = world.propose();
    assert_eq!(code(world.emit(&id, "p.json")), "NOT_CONFIRMED");
    let digest = world.shown(&id);
    assert_eq!(code(world.emit(&id, "p.json")), "NOT_CONFIRMED");
    world.asked(&id, &digest).unwrap();
    assert_eq!(code(world.emit(&id, "p.json")), "NOT_CONFIRMED");
    assert!(!world.path("p.json").exists());
}

#[test]
fn every_answer_that_is_no_yes_has_its_code() {
    let check = |reply: Reply, after: i64, expected: &str| {
        let world = World::new();
        let id = world.propose();
        let digest = world.shown(&id);
        let nonce = world.asked(&id, &digest).unwrap();
        wait(after);
        assert_eq!(
            code(world.answered(&id, &nonce, &digest, reply)),
            expected,
            "{reply:?} after {after} ms"
        );
        assert_eq!(code(world.emit(&id, "p.json")), "NOT_CONFIRMED");
    };
    check(Reply::Yes, 14, "NO_PERSON");
    check(Reply::Declined, 14, "NO_PERSON");
    check(Reply::Yes, 499, "NO_PERSON");
    check(Reply::Yes, 10 * 60 * 1000 + 1, "EXPIRED");
    check(Reply::Declined, 3_000, "DECLINED");
    check(Reply::Cancelled, 3_000, "CANCELLED");
    check(Reply::Changes, 3_000, "CHANGES_REQUESTED");
    check(Reply::Unclear, 3_000, "NOT_CONFIRMED");
}

#[test]
fn yes_to_an_older_table_is_refused() {
    let world = World::new();
    let id = world.propose();
    let old = world.shown(&id);
    let nonce = world.asked(&id, &old).unwrap();
    world.revise(&id, "calibration.data_size", json!(64)).unwrap();
    wait(1_000);
    assert_eq!(code(world.answered(&id, &nonce, &old, Reply::Yes)), "STALE_TABLE");
    let new = world.shown(&id);
    assert_ne!(old, new);
    assert_eq!(code(world.answered(&id, &nonce, &new, Reply::Yes)), "STALE_TABLE");
    assert_eq!(code(world.asked(&id, &old)), "STALE_TABLE");
}

#[test]
fn a_table_that_was_not_shown_cannot_be_asked_about() {
    let world = World::new();
    let id = world.propose();
    let digest = world.planner.session(&id).unwrap().digest();
    assert_eq!(code(world.asked(&id, &digest)), "NOT_SHOWN");
}

#[test]
fn an_answer_is_taken_once() {
    let world = World::new();
    let id = world.propose();
    let digest = world.shown(&id);
    let nonce = world.asked(&id, &digest).unwrap();
    wait(1_000);
    world.answered(&id, &nonce, &digest, Reply::Unclear).unwrap_err();
    assert_eq!(code(world.answered(&id, &nonce, &digest, Reply::Yes)), "REPLAYED");
    assert_eq!(code(world.answered(&id, "q-invented", &digest, Reply::Yes)), "NOT_ASKED");
}

#[test]
fn a_revision_takes_the_yes_away() {
    let world = World::new();
    let id = world.confirmed();
    world.revise(&id, "calibration.data_size", json!(64)).unwrap();
    assert_eq!(code(world.emit(&id, "p.json")), "NOT_CONFIRMED");
}

#[test]
fn a_model_that_changed_after_the_yes_is_refused_and_reading_it_again_repairs_it() {
    let world = World::new();
    let id = world.confirmed();
    fs::copy(fixture("mlp.onnx"), world.path("model.onnx")).unwrap();
    assert_eq!(code(world.emit(&id, "p.json")), "STALE_INPUTS");
    world.planner.revise(&RevisionArguments::of(id.clone())).unwrap();
    let digest = world.shown(&id);
    assert!(world.asked(&id, &digest).is_ok());
}

#[test]
fn a_bad_value_leaves_the_draft_as_it_was() {
    let world = World::new();
    let id = world.propose();
    let before = world.shown(&id);
    assert_eq!(code(world.revise(&id, "preset", json!("XINT9"))), "BAD_VALUE");
    assert_eq!(code(world.revise(&id, "presett", json!("XINT8"))), "BAD_VALUE");
    assert_eq!(world.shown(&id), before);
}

#[test]
fn a_plan_lands_inside_the_workspace_and_over_nothing() {
    let world = World::new();
    let elsewhere = TempDir::new().unwrap();
    let id = world.confirmed();
    let outside = elsewhere.path().join("p.json");
    assert_eq!(code(world.emit(&id, outside.to_str().unwrap())), "OUTSIDE_WORKSPACE");
    assert_eq!(code(world.emit(&id, "../p.json")), "OUTSIDE_WORKSPACE");
    assert_eq!(code(world.emit(&id, ".")), "NOT_A_FILE");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, world.path("link.json")).unwrap();
        assert_eq!(code(world.emit(&id, "link.json")), "SYMLINK");
        std::os::unix::fs::symlink(elsewhere.path(), world.path("out")).unwrap();
        assert_eq!(code(world.emit(&id, "out/p.json")), "OUTSIDE_WORKSPACE");
    }
    fs::write(world.path("mine.json"), "mine").unwrap();
    assert_eq!(code(world.emit(&id, "mine.json")), "OUTPUT_EXISTS");
    assert_eq!(fs::read_to_string(world.path("mine.json")).unwrap(), "mine");
    assert!(fs::read_dir(elsewhere.path()).unwrap().next().is_none());
    // The refusals took nothing away.
    world.emit(&id, "new/folder/p.json").unwrap();
    assert!(world.path("new/folder/p.json").exists());
}

#[test]
fn a_plan_is_emitted_once_unless_it_is_asked_for_again() {
    let world = World::new();
    let id = world.confirmed();
    world.emit(&id, "p.json").unwrap();
    world.emit(&id, "p.json").unwrap();
    assert_eq!(code(world.emit(&id, "q.json")), "ALREADY_EMITTED");
    let again = write::Arguments { session_id: id, output_path: "q.json".into(), overwrite: true };
    world.planner.write(&again).unwrap();
    assert_eq!(
        fs::read(world.path("p.json")).unwrap().len(),
        fs::read(world.path("q.json")).unwrap().len()
    );
}

#[test]
fn of_two_processes_one_wins_and_nothing_is_lost() {
    let world = World::new();
    let other = World::another(world.folder.path());
    let id = world.propose();
    let digest = world.shown(&id);
    assert_eq!(other.session(&id).unwrap().digest(), digest);
    let nonce = world.asked(&id, &digest).unwrap();
    wait(1_000);
    let yes = Answer {
        nonce: Some(nonce),
        channel: Channel::Elicited,
        digest,
        reply: Reply::Yes,
        client: None,
    };
    other.answer(&id, yes.clone()).unwrap();
    assert_eq!(code(world.planner.answer(&id, yes)), "REPLAYED");
    assert_eq!(world.planner.session(&id).unwrap().state(), "confirmed");
}

#[test]
fn a_question_is_answered_where_it_was_asked_and_not_too_fast() {
    let channels = [Channel::App, Channel::Elicited, Channel::Terminal];
    for asked in channels {
        for answered in channels {
            let world = World::new();
            let id = world.propose();
            let digest = world.shown(&id);
            let about = confirm::Arguments { session_id: id.clone(), digest: digest.clone() };
            let answer_after = |milliseconds| {
                let Inquiry::Ask(question) = world.planner.ask(&about, asked).unwrap() else {
                    panic!("confirmed already");
                };
                wait(milliseconds);
                let yes = Answer {
                    nonce: Some(question.nonce),
                    channel: answered,
                    digest: digest.clone(),
                    reply: Reply::Yes,
                    client: None,
                };
                world.planner.answer(&id, yes)
            };
            if asked != answered {
                assert_eq!(code(answer_after(1_000)), "NOT_ASKED", "{asked:?} {answered:?}");
                continue;
            }
            if asked != Channel::Terminal {
                assert_eq!(code(answer_after(499)), "NO_PERSON", "{asked:?}");
            }
            assert_eq!(answer_after(500).unwrap().confirmation.channel, asked);
        }
    }
}

#[test]
fn an_edited_log_is_noticed_and_cannot_skip_the_question() {
    let world = World::new();
    let id = world.propose();
    world.shown(&id);
    let database = world.path("state/sessions.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection
        .execute(
            "UPDATE events SET event = replace(event, '\"cpu\"', '\"cuda\"') WHERE seq = 0",
            [],
        )
        .unwrap();
    drop(connection);
    assert_eq!(code(World::another(world.folder.path()).session(&id)), "LOG_BROKEN");
}

#[test]
fn sessions_expire_and_unknown_ones_are_told_apart() {
    let world = World::new();
    let id = world.propose();
    assert_eq!(code(world.planner.session(&SessionId::new("qp-none"))), "UNKNOWN_SESSION");
    wait(31 * 24 * 60 * 60 * 1000);
    assert_eq!(code(world.planner.session(&id)), "SESSION_EXPIRED");
}

#[derive(Debug, Clone)]
enum Step {
    Revise(u64),
    Show,
    Ask { old: bool },
    Answer { which: usize, reply: Reply, after: i64, old: bool },
    Emit(bool),
    OtherProcess,
}

fn step() -> impl Strategy<Value = Step> {
    let reply = prop_oneof![
        4 => Just(Reply::Yes),
        1 => Just(Reply::Changes),
        1 => Just(Reply::Declined),
        1 => Just(Reply::Cancelled),
        1 => Just(Reply::Unclear)
    ];
    let after = prop_oneof![Just(10), Just(600), Just(5_000), Just(700_000)];
    prop_oneof![
        1 => (1_u64..500).prop_map(Step::Revise),
        3 => Just(Step::Show),
        3 => prop::bool::weighted(0.2).prop_map(|old| Step::Ask { old }),
        4 => (0_usize..4, reply, after, prop::bool::weighted(0.2))
            .prop_map(|(which, reply, after, old)| Step::Answer { which, reply, after, old }),
        2 => any::<bool>().prop_map(Step::Emit),
        1 => Just(Step::OtherProcess),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is called in whatever order: a plan is written only while the last yes of a person was to the current digest.
    #[test]
    fn no_sequence_of_calls_emits_without_a_yes_to_the_current_digest(steps in prop::collection::vec(step(), 1..30)) {
        let mut world = World::new();
        let id = world.propose();
        let mut asked: Vec<(String, Digest, i64)> = Vec::new();
        let mut first: Option<Digest> = None;
        let mut agreed: Option<Digest> = None;
        for step in steps {
            let current = world.planner.session(&id).unwrap().digest();
            let old = first.get_or_insert_with(|| current.clone()).clone();
            match step {
                Step::Revise(size) => {
                    world.revise(&id, "calibration.data_size", json!(size)).unwrap();
                    agreed = None;
                }
                Step::Show => { world.shown(&id); }
                Step::Ask { old: use_old } => {
                    let digest = if use_old { old } else { current };
                    let arguments = confirm::Arguments { session_id: id.clone(), digest: digest.clone() };
                    if let Ok(Inquiry::Ask(question)) = world.planner.ask(&arguments, Channel::Elicited) {
                        asked.push((question.nonce, digest, now()));
                    }
                }
                Step::Answer { which, reply, after, old: use_old } => {
                    wait(after);
                    let (nonce, about, at) = asked
                        .get(which % asked.len().max(1))
                        .cloned()
                        .unwrap_or_else(|| ("q-none".to_owned(), current.clone(), now()));
                    let digest = if use_old { old } else { about };
                    if world.answered(&id, &nonce, &digest, reply).is_ok() {
                        prop_assert_eq!(&digest, &current, "a yes to another table counted");
                        prop_assert_eq!(reply, Reply::Yes);
                        prop_assert!(now() - at >= 500, "no person is that fast");
                        agreed = Some(digest);
                    }
                }
                Step::Emit(overwrite) => {
                    let arguments = write::Arguments { session_id: id.clone(), output_path: "p.json".into(), overwrite };
                    let there = fs::read(world.path("p.json")).ok();
                    match world.planner.write(&arguments) {
                        Ok(reply) => {
                            prop_assert_eq!(agreed.as_ref(), Some(&current));
                            prop_assert_eq!(&reply.plan.provenance().digest, &current);
                        }
                        Err(_) => prop_assert_eq!(fs::read(world.path("p.json")).ok(), there),
                    }
                }
                Step::OtherProcess => world.planner = World::another(world.folder.path()),
            }
        }
    }
}

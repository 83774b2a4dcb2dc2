//! The command line: the same engine for a terminal. The only module that prints.

/// Writes to stdout. A reader that went away, as `head` does, is no reason to stop before the work is done.
macro_rules! put {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stdout(), $($text)*);
    }};
}

/// Writes a line to stdout.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Writes a line to stderr.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub mod arguments;
pub mod ask;
pub mod check;
pub mod output;
pub mod plan;

use std::{io::IsTerminal, process::ExitCode};

use clap::CommandFactory;

use crate::{
    cli::{
        arguments::{Analyze, Cli, Command, Explain, Place, Probe},
        output::{Printer, fail},
    },
    planner::{Options, Planner, analyze, error::Error, explain, probe, write},
    render::terminal,
};

/// Everything was done.
pub const DONE: u8 = 0;
/// It was refused, or something has to happen first; nothing was written.
pub const REFUSED: u8 = 1;
/// The command was used wrongly.
pub const USAGE: u8 = 2;

/// Runs a command that is not `serve`.
pub fn run(command: Command) -> ExitCode {
    let code = match command {
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Analyze(arguments) => analyzed(&arguments),
        Command::Probe(arguments) => probed(&arguments),
        Command::Confirm { session, output, overwrite, place } => {
            with_planner(&place, false, |planner| {
                let id = planner.session_id(&session)?;
                match (ask::confirm(planner, &id)?, output) {
                    (DONE, Some(output_path)) => output::write(
                        planner,
                        write::Arguments { session_id: id, output_path, overwrite },
                    ),
                    (code, _) => Ok(code),
                }
            })
        }
        Command::Sessions { json, place } => {
            with_planner(&place, json, |planner| sessions(planner, json))
        }
        Command::Check(arguments) => check::check(&arguments),
        Command::Diff { left, right, json } => check::diff(&left, &right, json),
        Command::Explain(arguments) => explained(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "quantplan", &mut script);
            put!("{}", String::from_utf8_lossy(&script));
            DONE
        }
        // `main` serves.
        Command::Serve { .. } => USAGE,
    };
    ExitCode::from(code)
}

/// A planner for one command.
pub fn planner(place: &Place) -> Result<Planner, Error> {
    Ok(Planner::new(Options::from_environment(place.workspace.clone(), place.state_dir.clone())?))
}

fn with_planner(place: &Place, json: bool, work: impl FnOnce(&Planner) -> Result<u8, Error>) -> u8 {
    planner(place).and_then(|planner| work(&planner)).unwrap_or_else(|error| fail(&error, json))
}

fn analyzed(arguments: &Analyze) -> u8 {
    with_planner(&arguments.place, arguments.json, |planner| {
        let reply = planner.analyze(&analyze::Arguments {
            path: arguments.path.clone(),
            output_path: arguments.output.clone(),
            overwrite: arguments.overwrite,
        })?;
        if arguments.json {
            Printer::json(&reply.model_analysis);
        } else {
            output::analysis(&reply.model_analysis);
            if let Some(path) = &reply.written_to {
                say!("\nwritten to {path}");
            }
        }
        Ok(DONE)
    })
}

fn probed(arguments: &Probe) -> u8 {
    with_planner(&arguments.place, arguments.json, |planner| {
        let reply = planner.probe(&probe::Arguments {
            python: arguments.python.clone(),
            output_path: arguments.output.clone(),
            overwrite: arguments.overwrite,
            root: arguments.root.clone(),
        })?;
        if arguments.json {
            Printer::json(&reply.env_context);
        } else {
            output::machine(&reply);
        }
        Ok(DONE)
    })
}

fn explained(arguments: &Explain) -> u8 {
    with_planner(&arguments.place, arguments.json, |planner| {
        let Some((id, others)) = arguments.names.split_first() else {
            output::names();
            return Ok(DONE);
        };
        // Two names are compared; anything longer is a question in free words.
        let (id, compare_with) = match others {
            [] => (id.clone(), None),
            [other] => (id.clone(), Some(other.clone())),
            _ => (arguments.names.join(" "), None),
        };
        let reply = planner.explain(&explain::Arguments {
            id,
            compare_with,
            model_path: arguments.model.clone(),
            session_id: arguments
                .session
                .as_deref()
                .map(|id| planner.session_id(id))
                .transpose()?,
        })?;
        if arguments.json {
            Printer::json(&reply)
        } else {
            say!("{}", reply.markdown.trim_end())
        }
        Ok(DONE)
    })
}

fn sessions(planner: &Planner, json: bool) -> Result<u8, Error> {
    let lines = planner.sessions()?;
    if json {
        Printer::json(&lines);
    } else if lines.is_empty() {
        say!("no sessions; `quantplan plan MODEL` starts one");
    } else {
        let rows = lines.iter().map(|line| {
            [
                line.session_id.to_string(),
                line.state.to_owned(),
                line.revision.to_string(),
                line.preset.clone().unwrap_or_default(),
                line.model.clone(),
                line.at.clone(),
            ]
        });
        put!(
            "{}",
            terminal::table(
                &["Session", "State", "Revision", "Preset", "Model", "Last event"],
                rows,
                output::width()
            )
        );
    }
    Ok(DONE)
}

/// Whether a person can be asked here: both ends are a terminal.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

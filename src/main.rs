//! The `quantplan` binary: chooses a face.

use std::{io::IsTerminal, process::ExitCode};

use clap::{CommandFactory, Parser};
use quantplan::{
    cli::{
        self,
        arguments::{Cli, Command, Place},
        output::fail,
    },
    mcp::{self, Relayed},
};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    match Cli::parse().command {
        Some(Command::Serve { accept_relayed, place }) => {
            serve(&place, if accept_relayed { Relayed::Accepted } else { Relayed::Refused })
        }
        Some(command) => cli::run(command),
        // A host that starts the program without a word wants the server.
        None if !std::io::stdin().is_terminal() => serve(&Place::default(), Relayed::Refused),
        None => {
            let printed = Cli::command().print_help();
            ExitCode::from(if printed.is_ok() { cli::USAGE } else { cli::REFUSED })
        }
    }
}

fn serve(place: &Place, relayed: Relayed) -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let planner = match cli::planner(place) {
        Ok(planner) => planner,
        Err(error) => return ExitCode::from(fail(&error, false)),
    };
    match mcp::serve(planner, mcp::Options { relayed }) {
        Ok(()) => ExitCode::from(cli::DONE),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the server stopped");
            ExitCode::from(cli::REFUSED)
        }
    }
}

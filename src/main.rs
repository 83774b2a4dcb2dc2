//! The `quantplan` binary: chooses a face.

use std::process::ExitCode;

use clap::Parser;
use quantplan::cli::{self, arguments::Cli};

fn main() -> ExitCode {
    match Cli::parse().command {
        Some(command) => cli::run(command),
        None => ExitCode::from(cli::USAGE),
    }
}

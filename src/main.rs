//! The `quantplan` binary.

use std::{error::Error, path::PathBuf};

use clap::Parser;
use quantplan::{
    mcp::{self, Relayed},
    planner::{Options, Planner},
};
use tracing_subscriber::EnvFilter;

/// Plans the quantization of models for AMD Quark.
#[derive(Debug, Parser)]
#[command(version)]
enum Command {
    /// Serves the Model Context Protocol on standard input and output.
    Serve {
        /// A folder that may be written to; repeatable.
        #[arg(long = "workspace", value_name = "DIR")]
        workspaces: Vec<PathBuf>,
        /// Where sessions are kept.
        #[arg(long, value_name = "DIR")]
        state_dir: Option<PathBuf>,
        /// Lets the agent pass on the user's yes where a client cannot ask; the plan records it.
        #[arg(long)]
        accept_relayed: bool,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let Command::Serve { workspaces, state_dir, accept_relayed } = Command::parse();
    let planner = Planner::new(Options::from_environment(workspaces, state_dir)?);
    let relayed = if accept_relayed { Relayed::Accepted } else { Relayed::Refused };
    mcp::serve(planner, mcp::Options { relayed })?;
    Ok(())
}

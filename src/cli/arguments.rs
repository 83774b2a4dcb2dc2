//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Plans the quantization of models for AMD Quark.
///
/// quantplan reads the facts of a model without its weights, decides preset, calibration, algorithms and
/// options with a reason for each, shows the decision table, and writes quant_plan.json only after a
/// person has confirmed the very table on the screen. It plans; other Quark skills carry the plan out.
#[derive(Debug, Parser)]
#[command(
    name = "quantplan",
    version,
    after_help = "Exit codes:\n  0  done\n  1  refused, or something has to happen first; no plan was written\n  2  wrong usage\n\n\
                  Without a command quantplan serves the Model Context Protocol when its input is not a terminal.",
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Plan the quantization of a model: table, changes, a yes, quant_plan.json
    Plan(Box<Plan>),
    /// Show the facts of a model, read without its weights
    Analyze(Analyze),
    /// Show the facts of this machine, and what of it does not go with amd-quark
    Probe(Probe),
    /// Confirm the plan of a session here, where its host cannot ask
    Confirm {
        /// The session, or enough of its beginning
        session: String,
        /// Write the plan there once it is confirmed
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace an earlier file of this kind
        #[arg(long)]
        overwrite: bool,
        /// Where things are kept and may be written
        #[command(flatten)]
        place: Place,
    },
    /// List planning sessions
    Sessions {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Where things are kept and may be written
        #[command(flatten)]
        place: Place,
    },
    /// Check a quant_plan.json, whoever wrote it: fields, names, rules, and who confirmed it
    Check(Check),
    /// Show where two plans decide differently, and why
    Diff {
        /// One plan
        left: PathBuf,
        /// The other plan
        right: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain a preset, method, algorithm, option, target, device, rule or decision; compare two; or answer free words
    Explain(Explain),
    /// Serve the Model Context Protocol on stdin and stdout
    Serve {
        /// Accept a yes that the agent only relays; the plan records it as a risk
        #[arg(long)]
        accept_relayed: bool,
        /// Where things are kept and may be written
        #[command(flatten)]
        place: Place,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Where things are kept and may be written.
#[derive(Debug, Clone, Default, Args)]
pub struct Place {
    /// Folder that may be written to; repeatable. Without it: the current folder, and those of the model and its analysis
    #[arg(long, value_name = "DIR")]
    pub workspace: Vec<PathBuf>,
    /// Where sessions are kept [default: $QUANTPLAN_STATE_DIR, $XDG_STATE_HOME/quantplan or ~/.local/state/quantplan]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// The model (`.onnx`, or a Hugging Face folder), or its `model_analysis.json`
    pub path: PathBuf,
    /// Where it will run: cpu, cuda, rocm, npu_cnn or npu_transformer
    #[arg(long, short)]
    pub target: Option<String>,
    /// What you want, in your own words, for example "INT8, accuracy matters"
    #[arg(long, short)]
    pub goal: Option<String>,
    /// Device that it will run on, for example STX; repeatable
    #[arg(long, value_name = "DEVICE")]
    pub hardware: Vec<String>,
    /// Engine that will serve the model, for example vllm
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
    /// Tensor-parallel size of that engine
    #[arg(long, value_name = "N")]
    pub tensor_parallel: Option<u64>,
    /// Version of the Ryzen AI software on the device
    #[arg(long, value_name = "VERSION")]
    pub ryzen_ai: Option<String>,
    /// Release of amd-quark that will run the plan
    #[arg(long, value_name = "VERSION")]
    pub quark: Option<String>,
    /// Folder or file with calibration data
    #[arg(long, value_name = "PATH")]
    pub calibration_data: Option<String>,
    /// Number of calibration samples there are; 0 for none
    #[arg(long, value_name = "N")]
    pub samples: Option<u64>,
    /// Set a row of the table, for example `preset=A8W8`; repeatable
    #[arg(long = "set", short, value_name = "DECISION=VALUE", value_parser = pair)]
    pub set: Vec<(String, String)>,
    /// Answer a question, for example `npu_device=STX`; repeatable
    #[arg(long, value_name = "QUESTION=ANSWER", value_parser = pair)]
    pub answer: Vec<(String, String)>,
    /// Keep the value of a row against advice; the plan records the risk; repeatable
    #[arg(long, value_name = "DECISION")]
    pub insist: Vec<String>,
    /// `env_context.json` of the machine
    #[arg(long, value_name = "FILE")]
    pub environment: Option<PathBuf>,
    /// `onnx_install_result.json`
    #[arg(long, value_name = "FILE")]
    pub install_result: Option<PathBuf>,
    /// `pytorch_install_result.json`
    #[arg(long, value_name = "FILE")]
    pub torch_install_result: Option<PathBuf>,
    /// `session_context.json` of a router
    #[arg(long, value_name = "FILE")]
    pub session_context: Option<PathBuf>,
    /// Where to write the plan
    #[arg(long, short, value_name = "FILE", default_value = "quant_plan.json")]
    pub output: PathBuf,
    /// Replace an earlier file of this kind
    #[arg(long)]
    pub overwrite: bool,
    /// Confirm without asking, for CI; the plan says that nobody was asked
    #[arg(long, short)]
    pub yes: bool,
    /// Print JSON and ask nothing
    #[arg(long)]
    pub json: bool,
    /// Where things are kept and may be written
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `analyze`.
#[derive(Debug, Args)]
pub struct Analyze {
    /// An `.onnx` file, a folder that holds one, or a Hugging Face folder or `config.json`
    pub path: PathBuf,
    /// Print `model_analysis.json`
    #[arg(long)]
    pub json: bool,
    /// Where to write `model_analysis.json`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an earlier file of this kind
    #[arg(long)]
    pub overwrite: bool,
    /// Where things are kept and may be written
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `probe`.
#[derive(Debug, Args)]
pub struct Probe {
    /// The Python interpreter that runs Quark [default: that of the active environment, else of PATH]
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
    /// A folder that stands for `/`, for example a mounted image
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print `env_context.json`
    #[arg(long)]
    pub json: bool,
    /// Where to write `env_context.json`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an earlier file of this kind
    #[arg(long)]
    pub overwrite: bool,
    /// Where things are kept and may be written
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes:\n  0  no defect; there may be warnings\n  1  defects\n  2  it could not be checked"
)]
pub struct Check {
    /// The `quant_plan.json`
    pub path: PathBuf,
    /// The model to hold it against [default: the one that the plan refers to]
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// `env_context.json` of the machine [default: the one that the plan was made with]
    #[arg(long, value_name = "FILE")]
    pub environment: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where things are kept and may be written
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// One name, two names to compare, or a question; without any, the names there are. A name that means
    /// several things is said with its kind: `scheme:mxfp4`
    pub names: Vec<String>,
    /// Say what it means for this model
    #[arg(long, value_name = "PATH")]
    pub model: Option<PathBuf>,
    /// Say what it means for this session
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where things are kept and may be written
    #[command(flatten)]
    pub place: Place,
}

/// `name=value`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` is not of the form name=value")),
    }
}

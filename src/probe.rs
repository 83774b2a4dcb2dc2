//! Facts of a machine, read from files alone: no process is started, no library loaded, no network used.
//!
//! Everything is read below a [`Root`], so that a tree of files can stand for a machine. What cannot be read
//! is not known; nothing here fails.

pub mod packages;

mod accelerator;
mod devices;
mod python;
mod system;
mod toolkits;
mod tree;

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    facts::{
        EnvContext, Hardware,
        machine::{Gpu, Npu},
    },
    probe::tree::Tree,
};

/// Variables of the environment that say something about the machine.
const VARIABLES: &[&str] = &[
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "HOME",
    "HSA_OVERRIDE_GFX_VERSION",
    "KUBERNETES_SERVICE_HOST",
    "PYENV_VERSION",
    "ROCM_HOME",
    "ROCM_PATH",
    "RYZEN_AI_INSTALLATION_PATH",
    "TORCH_EXTENSIONS_DIR",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "container",
];

/// Those of them that change what programs see of the GPUs.
const MASKS: &[&str] = &["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION"];

/// A machine to look at.
#[derive(Debug, Clone, Default)]
pub struct Root {
    /// The folder that stands for `/`.
    pub root: PathBuf,
    /// The interpreter to look at first.
    pub python: Option<PathBuf>,
    /// Folders of programs.
    pub path: Vec<PathBuf>,
    /// Variables of the environment.
    pub env: BTreeMap<String, String>,
}

impl Root {
    /// This machine, as this process sees it.
    pub fn here() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let set = |name: &&str| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
            Some(((*name).to_owned(), value))
        };
        Self {
            root: PathBuf::from("/"),
            python: None,
            path: std::env::split_paths(&path).collect(),
            env: VARIABLES.iter().filter_map(set).collect(),
        }
    }

    /// The machine whose files lie below a folder, with the usual `PATH`.
    pub fn at(root: PathBuf) -> Self {
        let path = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).to_vec();
        Self { root, path, ..Self::default() }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// The facts.
    pub context: EnvContext,
    /// What a reader must know to use them.
    pub notes: Vec<Note>,
}

/// Something that the facts leave open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// What.
    pub message: String,
    /// The smallest thing to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

impl Note {
    fn new(message: impl Into<String>, check: Option<&str>) -> Self {
        Self { message: message.into(), check: check.map(str::to_owned) }
    }
}

/// Reads the facts of a machine.
pub fn read(root: &Root) -> Probe {
    let tree = Tree::new(&root.root);
    let mut notes = Vec::new();
    let mut environment = system::environment(&tree, &root.env);
    let pythons = python::find(&tree, root);
    if let Some(named) = root.python.as_deref().filter(|named| !tree.is_file(named)) {
        let message = format!("there is no interpreter `{}`", named.display());
        notes.push(Note::new(message, Some("name the executable itself, not its folder")));
    }
    if let Some(found) = pythons.first() {
        environment.interpreter = Some(found.interpreter.clone());
        environment.packages = packages::installed(&tree, &found.site_packages);
        environment.execution_providers =
            packages::execution_providers(&tree, &found.site_packages);
        if environment.packages.contains_key("amd-quark") {
            let torch = environment.packages.get("torch");
            environment.quark_custom_ops =
                Some(packages::custom_ops(&tree, found, torch, &root.env));
        }
    } else {
        notes.push(Note::new(
            "no Python was found",
            Some("name the interpreter that runs Quark with `python`"),
        ));
    }
    let version = environment.interpreter.as_ref().and_then(|found| found.version.clone());
    environment.python = Some(version.unwrap_or_else(|| "unknown".to_owned()));
    environment.interpreters = pythons.into_iter().map(|found| found.interpreter).collect();
    environment.compilers = toolkits::compilers(&tree, &root.path);

    let cpu = system::cpu(&tree);
    let (found, sight) = devices::read(&tree, cpu.as_ref().and_then(|cpu| cpu.model.as_deref()));
    let mut hardware = Hardware {
        cuda_toolkits: toolkits::cuda(&tree, &root.env),
        rocm_toolkits: toolkits::rocm(&tree, &root.env),
        system_memory_gb: system::memory(&tree),
        cpu,
        ..found
    };
    if let Some(npu) = &mut hardware.npu {
        let prefix = environment.interpreter.as_ref().map(|found| found.prefix.as_str());
        let named = root.env.get("RYZEN_AI_INSTALLATION_PATH").map(String::as_str);
        npu.ryzen_ai_version = named.into_iter().chain(prefix).find_map(ryzen_ai_version);
        notes.extend(npu_notes(npu));
    }
    let torch = environment.packages.get("torch").and_then(|torch| torch.accelerator.as_deref());
    let (accelerator, reasons) = accelerator::decide(&hardware, sight, torch);
    hardware.accelerator = Some(accelerator.to_owned());
    summarize(&mut hardware, accelerator);
    notes.extend(reasons);
    // A Jetson shares the main memory, which is known.
    let shared = |gpu: &Gpu| gpu.vendor == "nvidia" && gpu.integrated == Some(true);
    if accelerator == "nvidia-cuda" && !hardware.gpus.iter().any(shared) {
        notes.push(Note::new(
            "no file tells how much memory the NVIDIA GPU has",
            Some("run `nvidia-smi --query-gpu=memory.total --format=csv`"),
        ));
    }
    for mask in MASKS {
        if let Some(value) = root.env.get(*mask) {
            notes.push(Note::new(format!("`{mask}` is set to `{value}`"), None));
        }
    }
    Probe { context: EnvContext { environment, hardware, ..EnvContext::default() }, notes }
}

/// Fills the fields that Quark's own skill writes, from the GPUs of the accelerator.
fn summarize(hardware: &mut Hardware, accelerator: &str) {
    hardware.cuda_version = hardware.cuda_toolkits.first().and_then(|one| one.version.clone());
    hardware.rocm_version = hardware.rocm_toolkits.first().and_then(|one| one.version.clone());
    let used = |gpu: &&Gpu| match accelerator {
        "amd-rocm" => gpu.vendor == "amd" && gpu.usable,
        "nvidia-cuda" => gpu.vendor == "nvidia" && gpu.usable,
        _ => true,
    };
    let mut gpus: Vec<&Gpu> = hardware.gpus.iter().filter(used).collect();
    // Beside a GPU of its own nobody means the one in the processor.
    if gpus.iter().any(|gpu| gpu.integrated != Some(true)) {
        gpus.retain(|gpu| gpu.integrated != Some(true));
    }
    let all = |part: fn(&Gpu) -> Option<&String>| {
        let mut parts: Vec<&str> =
            gpus.iter().filter_map(|gpu| part(gpu)).map(String::as_str).collect();
        parts.dedup();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let (model, arch) = (all(|gpu| gpu.name.as_ref()), all(|gpu| gpu.arch.as_ref()));
    // The smallest is what a model must fit in.
    let memory = gpus.iter().filter_map(|gpu| gpu.memory_gb).min_by(f64::total_cmp);
    let count = gpus.iter().map(|gpu| gpu.count).sum();
    // Without any GPU in sight their number is known only where that proves that there is none.
    hardware.gpu_count = (!gpus.is_empty() || accelerator == "cpu").then_some(count);
    hardware.gpu_model = model;
    hardware.gpu_arch = arch;
    hardware.memory_gb = memory;
}

fn npu_notes(npu: &Npu) -> Vec<Note> {
    let mut notes = Vec::new();
    if npu.generation.is_none() {
        let id = npu.pci_id.as_deref().unwrap_or_default();
        let revision = npu.revision.as_deref().unwrap_or_default();
        let message = format!("the generation of the NPU ({id}, revision {revision}) is not known");
        notes.push(Note::new(message, Some("ask the user for the name of the processor")));
    }
    if npu.driver.is_none() {
        notes.push(Note::new(
            "an NPU is there, but its driver `amdxdna` is not loaded",
            Some("run `lsmod | grep amdxdna`; a quantized model can be made without it"),
        ));
    } else if npu.usable == Some(false) {
        notes.push(Note::new(
            "the NPU's driver is loaded, but there is no `/dev/accel/accel0`, so a container may hide it",
            None,
        ));
    }
    notes
}

/// `1.6.0` in `…/ryzen_ai-1.6.0/venv`, `…/envs/ryzen-ai-1.6.0` or `C:\Program Files\RyzenAI\1.6.0`.
fn ryzen_ai_version(path: &str) -> Option<String> {
    let lower = path.to_lowercase();
    let name = ["ryzen_ai", "ryzen-ai", "ryzenai", "ryzen ai"];
    let rest = name.iter().find_map(|name| lower.split_once(name).map(|(_, rest)| rest))?;
    let version = rest.trim_start_matches(['-', '_', '/', '\\', ' ']);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let version = version[..end].trim_end_matches('.');
    version.contains('.').then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_ryzen_ai_software_is_in_its_path() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(ryzen_ai_version(path).as_deref(), expected, "{path}");
        };
        check("/home/me/ryzen_ai-1.6.1/venv", Some("1.6.1"));
        check("/home/me/miniforge3/envs/ryzen-ai-1.7.0", Some("1.7.0"));
        check(r"C:\Program Files\RyzenAI\1.6.0", Some("1.6.0"));
        check("/home/me/ryzen_ai/venv", None);
        check("/usr", None);
    }
}

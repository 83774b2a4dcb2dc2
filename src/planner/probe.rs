//! `probe_environment`: the facts of a machine, and what of it does not go with the release of Quark.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    catalogue::{Catalogue, Entry, devices::DeviceKind, releases::Release},
    emit::destination::Destination,
    facts::EnvContext,
    planner::{Planner, analyze::overwrite, error::Error},
    probe::{self, Note, Probe, Root, packages::is_onnxruntime},
    vocab::{ReleaseId, SkillId, versions},
};

/// Arguments of `probe_environment`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The Python interpreter that runs Quark; by default that of the active environment, else of `PATH`.
    #[serde(default)]
    pub python: Option<PathBuf>,
    /// Where to write `env_context.json`; leave it out to write nothing.
    #[serde(default)]
    pub output_path: Option<PathBuf>,
    /// Whether an earlier env_context at `output_path` may be replaced.
    #[serde(default)]
    pub overwrite: bool,
    /// A folder that stands for `/`, for the command line.
    #[serde(skip)]
    pub root: Option<PathBuf>,
}

/// The answer of `probe_environment`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The facts, in the shape of `env_context.json`; its schema is `quantplan://schemas/env_context`.
    #[schemars(with = "Map<String, Value>")]
    pub env_context: EnvContext,
    /// What does not go with the release of Quark that is installed, or with the newest.
    pub mismatches: Vec<Mismatch>,
    /// What the facts leave open.
    pub notes: Vec<Note>,
    /// Where the facts were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_to: Option<String>,
    /// What to do next.
    pub next: String,
}

/// Something installed, or missing, that Quark cannot work with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mismatch {
    /// `python`, or the name of the package on PyPI.
    pub package: String,
    /// The version that is there; `null` when it is not.
    pub found: Option<String>,
    /// What is needed, in words or as a range.
    pub needed: String,
    /// The release of amd-quark that needs it.
    pub release: ReleaseId,
    /// The skill that repairs it.
    pub skill: SkillId,
}

impl Planner {
    /// Reads the facts of this machine, without starting anything.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn probe(&self, arguments: &Arguments) -> Result<Reply, Error> {
        if let Some(root) = arguments.root.as_deref().filter(|root| !self.whole(root).is_dir()) {
            return Err(Error::Arguments {
                message: format!("there is no folder `{}`", root.display()),
                hint: "name the folder that stands for `/`".to_owned(),
            });
        }
        let root = match &arguments.root {
            // Paths are then those below the root.
            Some(root) => Root { python: arguments.python.clone(), ..Root::at(self.whole(root)) },
            None => Root {
                python: arguments.python.as_deref().map(|python| self.whole(python)),
                ..Root::here()
            },
        };
        let Findings { env_context, mismatches, notes } = examine(&root);
        let mut written_to = None;
        if let Some(output) = &arguments.output_path {
            let destination =
                Destination::resolve(output, &self.options().current_dir, &self.roots([]))?;
            let mut text = serde_json::to_string_pretty(&env_context).unwrap_or_default();
            text.push('\n');
            destination.write(text.as_bytes(), overwrite(arguments.overwrite))?;
            written_to = Some(destination.path().display().to_string());
        }
        let mut next = match &written_to {
            Some(path) => format!("call `propose_plan` with environment_path `{path}`"),
            None => "call `propose_plan` with this env_context as `environment`".to_owned(),
        };
        if let Some(first) = mismatches.first() {
            next.push_str(&format!(
                "; before a plan is carried out here, `{}` has to repair `{}`",
                first.skill, first.package
            ));
        }
        Ok(Reply { env_context, mismatches, notes, written_to, next })
    }
}

/// What a machine is and what of it does not fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The facts.
    pub env_context: EnvContext,
    /// What does not go with the release of Quark.
    pub mismatches: Vec<Mismatch>,
    /// What the facts leave open.
    pub notes: Vec<Note>,
}

/// Reads the facts of a machine and compares them with the catalogue.
pub fn examine(root: &Root) -> Findings {
    let Probe { context: mut env_context, notes } = probe::read(root);
    name_architectures(&mut env_context);
    let mismatches = mismatches(&env_context);
    Findings { env_context, mismatches, notes }
}

/// Gives GPUs that tell their name alone the architecture that the catalogue knows for it.
fn name_architectures(context: &mut EnvContext) {
    let hardware = &mut context.hardware;
    for gpu in hardware.gpus.iter_mut().filter(|gpu| gpu.arch.is_none()) {
        gpu.arch = gpu.name.as_deref().and_then(architecture);
    }
    if hardware.gpu_arch.is_none() {
        let mut used = hardware.gpus.iter().filter(|gpu| gpu.usable);
        hardware.gpu_arch =
            used.find(|gpu| gpu.name == hardware.gpu_model).and_then(|gpu| gpu.arch.clone());
    }
}

/// `sm_90` for `NVIDIA H100 80GB HBM3`, whose words hold the alias `H100`.
fn architecture(name: &str) -> Option<String> {
    let words = |text: &str| format!(" {} ", text.replace(|c: char| !c.is_alphanumeric(), " "));
    let name = words(name);
    let devices = Catalogue.devices().all().iter();
    let mut gpus = devices.filter(|device| device.kind == DeviceKind::Gpu);
    gpus.find(|device| device.aliases.iter().any(|alias| name.contains(&words(alias))))
        .map(|device| device.id().to_owned())
}

/// What does not go with the installed release of Quark, or with the newest when none is installed.
fn mismatches(context: &EnvContext) -> Vec<Mismatch> {
    let environment = &context.environment;
    let version = |name: &str| environment.packages.get(name).and_then(|p| p.version.as_deref());
    let quark = version("amd-quark");
    let release = release_of(quark);
    let mut found = Vec::new();
    let mut note = |package: &str, version: Option<&str>, needed: &str, skill: &str| {
        found.push(Mismatch {
            package: package.to_owned(),
            found: version.map(str::to_owned),
            needed: needed.to_owned(),
            release: release.id.clone(),
            skill: SkillId::new(skill),
        });
    };
    let outside = |version: &str, range: &str| versions::within(version, range) == Some(false);

    let python = environment.python.as_deref().unwrap_or_default();
    if outside(python, &release.python) {
        note("python", Some(python), &release.python, "quark-install");
    }
    let runtimes: Vec<&str> = environment
        .packages
        .keys()
        .map(String::as_str)
        .filter(|name| is_onnxruntime(name))
        .collect();
    let pinned = [
        ("onnx", &release.onnx, "quark-onnx-install"),
        ("transformers", &release.transformers, "quark-install"),
    ];
    let runtimes_pinned =
        runtimes.iter().map(|name| (*name, &release.onnxruntime, "quark-onnx-install"));
    for (package, range, skill) in pinned.into_iter().chain(runtimes_pinned) {
        if let (Some(version), Some(range)) = (version(package), range)
            && outside(version, range)
        {
            note(package, Some(version), range, skill);
        }
    }
    if let [_, _, ..] = runtimes[..] {
        let all = runtimes.join(", ");
        note("onnxruntime", Some(&all), "one build of ONNX Runtime alone", "quark-onnx-install");
    }
    let accelerator = context.hardware.accelerator.as_deref().unwrap_or_default();
    for (runtime, other) in [("onnxruntime-gpu", "amd-rocm"), ("onnxruntime-rocm", "nvidia-cuda")] {
        if accelerator == other && runtimes.contains(&runtime) {
            let needed = format!("a build for {accelerator}");
            note(runtime, version(runtime), &needed, "quark-onnx-install");
        }
    }
    if let Some(torch) = environment.packages.get("torch")
        && let (Some(tag), Some(family)) = (&torch.accelerator, torch_family(accelerator))
        && !tag.starts_with(family)
    {
        let needed = format!("a build for {accelerator}, not `{tag}`");
        note("torch", torch.version.as_deref(), &needed, "quark-torch-install");
    }
    // Where Quark is not installed nobody expects the rest either.
    if quark.is_none() {
        note("amd-quark", None, &format!("=={}", release.id), "quark-install");
        return found;
    }
    let any = |range: &Option<String>| range.clone().unwrap_or_else(|| "any version".to_owned());
    if version("torch").is_none() {
        note("torch", None, "any build for the accelerator", "quark-torch-install");
    }
    if version("onnx").is_none() {
        note("onnx", None, &any(&release.onnx), "quark-onnx-install");
    }
    if runtimes.is_empty() {
        note("onnxruntime", None, &any(&release.onnxruntime), "quark-onnx-install");
    }
    found
}

/// How the tags of PyTorch builds for an accelerator begin.
fn torch_family(accelerator: &str) -> Option<&'static str> {
    match accelerator {
        "amd-rocm" => Some("rocm"),
        "nvidia-cuda" => Some("cu"),
        _ => None,
    }
}

fn release_of(quark: Option<&str>) -> &'static Release {
    // A local version such as `0.13+rocm7.0` names a build of a release.
    let public = quark.and_then(|version| version.split('+').next());
    public
        .and_then(|version| Catalogue.releases().find(version))
        .unwrap_or_else(|| Catalogue.newest_release())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(context: Value, expected: &[(&str, Option<&str>, &str)]) {
        let context: EnvContext = serde_json::from_value(context).unwrap();
        let found = mismatches(&context);
        let found: Vec<(&str, Option<&str>, &str)> = found
            .iter()
            .map(|one| (one.package.as_str(), one.found.as_deref(), one.skill.as_str()))
            .collect();
        assert_eq!(found, expected, "{context:?}");
    }

    #[test]
    fn what_does_not_go_with_the_release_names_the_skill_that_repairs_it() {
        let right = json!({
            "amd-quark": "0.13", "onnx": "1.21.0", "onnxruntime": "1.28.0", "torch": "2.9.1",
            "transformers": "5.16.0",
        });
        check(json!({"environment": {"python": "3.12.1", "packages": right}}), &[]);
        let wrong = json!({
            "amd-quark": "0.13+rocm7.0", "onnx": "1.19.0", "onnxruntime": "1.20.1",
            "onnxruntime-gpu": "1.28.0", "torch": {"version": "2.9.1", "accelerator": "cu128"},
            "transformers": "4.57.1",
        });
        check(
            json!({
                "environment": {"python": "3.10.2", "packages": wrong},
                "hardware": {"accelerator": "amd-rocm"},
            }),
            &[
                ("python", Some("3.10.2"), "quark-install"),
                ("onnx", Some("1.19.0"), "quark-onnx-install"),
                ("transformers", Some("4.57.1"), "quark-install"),
                ("onnxruntime", Some("1.20.1"), "quark-onnx-install"),
                ("onnxruntime", Some("onnxruntime, onnxruntime-gpu"), "quark-onnx-install"),
                ("onnxruntime-gpu", Some("1.28.0"), "quark-onnx-install"),
                ("torch", Some("2.9.1"), "quark-torch-install"),
            ],
        );
        let old = json!({"amd-quark": "0.11.2", "onnx": "1.19.0", "transformers": "4.0"});
        check(
            json!({"environment": {"python": "3.10.2", "packages": old}}),
            &[("torch", None, "quark-torch-install"), ("onnxruntime", None, "quark-onnx-install")],
        );
        check(
            json!({"environment": {"python": "unknown"}}),
            &[("amd-quark", None, "quark-install")],
        );
    }

    #[test]
    fn architectures_follow_from_names() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(architecture(name).as_deref(), expected, "{name}");
        };
        check("NVIDIA H100 80GB HBM3", Some("sm_90"));
        check("NVIDIA A100-SXM4-80GB", Some("sm_80"));
        check("NVIDIA L40S", Some("sm_89"));
        check("NVIDIA GeForce GTX 1080", None);
    }
}

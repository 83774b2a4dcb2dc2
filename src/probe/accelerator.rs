//! Which accelerator programs can use, by the rules of `quark-env-preflight`: what is missing is no proof of
//! a CPU, and what contradicts itself stays `unknown`.

use crate::{
    facts::{
        Hardware,
        machine::{Gpu, Toolkit},
    },
    probe::{Note, devices::Sight},
};

/// One family of GPUs and what speaks for it.
struct Side {
    accelerator: &'static str,
    maker: &'static str,
    toolkit: &'static str,
    vendor: &'static str,
    check: &'static str,
    usable: bool,
    /// What was found, in words.
    evidence: Vec<String>,
}

/// Decides, and says why where it is not plain.
///
/// `torch` is what the installed PyTorch was built for.
pub fn decide(hardware: &Hardware, sight: Sight, torch: Option<&str>) -> (&'static str, Vec<Note>) {
    let sides = [amd(hardware, torch), nvidia(hardware, sight)];
    let [amd, nvidia] = &sides;
    if amd.speaks() && nvidia.speaks() {
        let message = format!(
            "the accelerator is not clear: {} speak for ROCm, {} for CUDA",
            amd.evidence.join(" and "),
            nvidia.evidence.join(" and ")
        );
        return (
            "unknown",
            vec![Note::new(message, Some("ask the user which of them is to be used"))],
        );
    }
    if let Some(side) = sides.iter().find(|side| side.usable) {
        return (side.accelerator, Vec::new());
    }
    let mut notes = Vec::new();
    for side in &sides {
        let there: Vec<&Gpu> = of(hardware, side.vendor).collect();
        let message = if !there.is_empty() {
            format!(
                "{} cannot be used as it is: {}",
                names(side.maker, &there),
                blocked(side, &there)
            )
        } else if side.speaks() {
            format!("{}, but no {} GPU can be seen", side.evidence.join(" and "), side.maker)
        } else {
            continue;
        };
        notes.push(Note::new(message, Some(side.check)));
    }
    if !notes.is_empty() {
        return ("unknown", notes);
    }
    if sight.lent_by_windows {
        let message = "this is the Windows Subsystem for Linux with the GPUs of Windows, which do not tell what they are";
        return ("unknown", vec![Note::new(message, Some("ask the user which GPU the PC has"))]);
    }
    if sight.bus_listed {
        return ("cpu", Vec::new());
    }
    let message = "the PCI bus cannot be listed, so a GPU that is there would not be seen";
    ("unknown", vec![Note::new(message, Some("ask the user, or run `nvidia-smi` and `rocm-smi`"))])
}

impl Side {
    /// Whether there is something that CUDA or ROCm alone explains.
    fn speaks(&self) -> bool {
        !self.evidence.is_empty()
    }
}

fn amd(hardware: &Hardware, torch: Option<&str>) -> Side {
    let for_rocm =
        !hardware.rocm_toolkits.is_empty() || torch.is_some_and(|tag| tag.starts_with("rocm"));
    // A GPU in a client processor is there for the screen, unless ROCm was installed for it.
    let usable: Vec<&Gpu> = of(hardware, "amd")
        .filter(|gpu| gpu.usable && (for_rocm || gpu.integrated != Some(true)))
        .collect();
    let mut evidence = Vec::new();
    if !usable.is_empty() {
        evidence.push(names("AMD", &usable));
    }
    evidence.extend(installed("ROCm", &hardware.rocm_toolkits));
    Side {
        accelerator: "amd-rocm",
        maker: "AMD",
        toolkit: "ROCm",
        vendor: "amd",
        check: "run `rocm-smi` where the GPU can be used, or ask the user",
        usable: !usable.is_empty(),
        evidence,
    }
}

fn nvidia(hardware: &Hardware, sight: Sight) -> Side {
    let usable: Vec<&Gpu> = of(hardware, "nvidia").filter(|gpu| gpu.usable).collect();
    let mut evidence = Vec::new();
    if !usable.is_empty() {
        evidence.push(names("NVIDIA", &usable));
    } else if sight.cuda_from_windows {
        evidence.push("the CUDA driver of Windows".to_owned());
    }
    evidence.extend(installed("CUDA", &hardware.cuda_toolkits));
    Side {
        accelerator: "nvidia-cuda",
        maker: "NVIDIA",
        toolkit: "CUDA",
        vendor: "nvidia",
        check: "run `nvidia-smi` where the GPU can be used, or ask the user",
        usable: !usable.is_empty() || sight.cuda_from_windows,
        evidence,
    }
}

fn of<'a>(hardware: &'a Hardware, vendor: &'static str) -> impl Iterator<Item = &'a Gpu> {
    hardware.gpus.iter().filter(move |gpu| gpu.vendor == vendor)
}

fn installed(name: &str, toolkits: &[Toolkit]) -> Option<String> {
    let toolkit = toolkits.first()?;
    let version = toolkit.version.as_deref().unwrap_or_default();
    Some(format!("{name} {version} in `{}`", toolkit.path))
}

/// Such as `2 × AMD Instinct MI300X (gfx942)`.
fn names(maker: &str, gpus: &[&Gpu]) -> String {
    let one = |gpu: &&Gpu| {
        let name = gpu.name.clone().unwrap_or_else(|| format!("{maker} GPU"));
        let detail = gpu.arch.as_ref().or(gpu.pci_id.as_ref());
        let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
        let count = if gpu.count > 1 { format!("{} × ", gpu.count) } else { String::new() };
        format!("{count}{name}{detail}")
    };
    gpus.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Why GPUs that are there cannot be used.
fn blocked(side: &Side, gpus: &[&Gpu]) -> String {
    if gpus.iter().any(|gpu| gpu.usable) {
        return format!("it is part of the processor, and {} is not installed", side.toolkit);
    }
    match side.vendor {
        "amd" => "`/dev/kfd` is not there, so its driver is not loaded or a container hides it"
            .to_owned(),
        _ => "no `/dev/nvidia*` is there, so its driver is not loaded or a container hides it"
            .to_owned(),
    }
}

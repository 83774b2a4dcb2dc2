//! NVIDIA GPUs: what the driver says of each, the PCI bus for those it does not have, and Jetson boards.

use crate::{
    facts::{Hardware, machine::Gpu},
    probe::{
        devices::{Function, NVIDIA},
        tree::Tree,
    },
};

const DRIVER: &str = "/proc/driver/nvidia";

/// Architectures of Jetson processors, by their name in the device tree.
const TEGRA: &[(&str, &str)] = &[
    ("nvidia,tegra210", "sm_53"),
    ("nvidia,tegra186", "sm_62"),
    ("nvidia,tegra194", "sm_72"),
    ("nvidia,tegra234", "sm_87"),
];

/// Every NVIDIA GPU, one entry each; notes the driver.
pub fn gpus(tree: &Tree, functions: &[Function], hardware: &mut Hardware) -> Vec<Gpu> {
    let version = tree.line(format!("{DRIVER}/version")).and_then(|line| driver_version(&line));
    if let Some(version) = version {
        hardware.drivers.insert("nvidia".to_owned(), Some(version));
    }
    let nodes = tree.names("/dev");
    // A container sees `/proc` of its host, but uses a GPU through these files only.
    let usable = nodes.iter().any(|name| {
        name.strip_prefix("nvidia")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    });
    let mut seen = Vec::new();
    let mut gpus = Vec::new();
    for address in tree.names(format!("{DRIVER}/gpus")) {
        let text = tree.text(format!("{DRIVER}/gpus/{address}/information")).unwrap_or_default();
        let model = text.lines().find_map(|line| line.strip_prefix("Model:")).map(str::trim);
        let function = functions.iter().find(|function| function.address == address);
        gpus.push(Gpu {
            vendor: "nvidia".to_owned(),
            name: model.filter(|model| !model.is_empty()).map(str::to_owned),
            pci_id: function.map(Function::id),
            usable,
            count: 1,
            ..Gpu::default()
        });
        seen.push(address);
    }
    let rest = functions
        .iter()
        .filter(|function| function.vendor == NVIDIA && function.is_gpu())
        .filter(|function| !seen.contains(&function.address));
    gpus.extend(rest.map(|function| Gpu {
        vendor: "nvidia".to_owned(),
        pci_id: Some(function.id()),
        // Without its list the driver still works: some containers hide it.
        usable: usable && seen.is_empty(),
        count: 1,
        ..Gpu::default()
    }));
    gpus.extend(jetson(tree, hardware, &nodes));
    gpus
}

/// The GPU of a Jetson, which is on no bus.
fn jetson(tree: &Tree, hardware: &mut Hardware, nodes: &[String]) -> Option<Gpu> {
    let compatible = tree.text("/proc/device-tree/compatible").unwrap_or_default();
    let processor = compatible.split('\0').find(|name| name.starts_with("nvidia,tegra"));
    let release = tree.line("/etc/nv_tegra_release").and_then(|line| l4t_version(&line));
    if processor.is_none() && release.is_none() {
        return None;
    }
    if let Some(release) = release {
        hardware.drivers.insert("l4t".to_owned(), Some(release));
    }
    let arch = TEGRA.iter().find(|(name, _)| Some(*name) == processor).map(|(_, arch)| *arch);
    Some(Gpu {
        vendor: "nvidia".to_owned(),
        arch: arch.map(str::to_owned),
        name: hardware.board.clone(),
        integrated: Some(true),
        usable: nodes.iter().any(|n| n == "nvhost-gpu" || n == "nvgpu" || n == "nvidia0"),
        count: 1,
        ..Gpu::default()
    })
}

/// `550.54.15` in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 …`.
fn driver_version(line: &str) -> Option<String> {
    let number = |word: &&str| {
        word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    line.split_whitespace().find(number).map(str::to_owned)
}

/// `36.4.0` in `# R36 (release), REVISION: 4.0, GCID: …`.
fn l4t_version(line: &str) -> Option<String> {
    let major = line.split_once('R')?.1.split_whitespace().next()?;
    let minor = line.split_once("REVISION:")?.1.split(',').next()?.trim();
    Some(format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_lines_of_the_drivers() {
        let check = |found: Option<String>, expected: &str| {
            assert_eq!(found.as_deref(), Some(expected));
        };
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024";
        check(driver_version(closed), "550.54.15");
        let open =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build";
        check(driver_version(open), "570.86.10");
        check(
            l4t_version("# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic"),
            "36.4.0",
        );
    }
}

//! AMD GPUs: the topology of the compute driver (KFD), and the PCI bus for those that it does not have.

use std::collections::BTreeMap;

use crate::{
    facts::machine::Gpu,
    probe::{
        devices::{AMD_GPUS, Function},
        system::gibibytes,
        tree::Tree,
    },
};

const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// Architectures of GPUs that are part of a client processor.
///
/// From the ASIC table of the kernel driver, `drivers/gpu/drm/amd/amdkfd/kfd_device.c`. MI300A is part of a
/// processor too, but has memory of its own kind and is what people buy it for.
const INTEGRATED: &[&str] = &[
    "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1103", "gfx1150",
    "gfx1151", "gfx1152", "gfx1153",
];

/// Names of accelerators by PCI device, for those that do not tell theirs (virtual functions do not).
///
/// From the PCI id repository.
const NAMES: &[(u16, &str)] = &[
    (0x738c, "AMD Instinct MI100"),
    (0x7408, "AMD Instinct MI250X"),
    (0x740c, "AMD Instinct MI250X/MI250"),
    (0x740f, "AMD Instinct MI210"),
    (0x74a0, "AMD Instinct MI300A"),
    (0x74a1, "AMD Instinct MI300X"),
    (0x74a5, "AMD Instinct MI325X"),
    (0x74b5, "AMD Instinct MI300X VF"),
    (0x74b9, "AMD Instinct MI325X VF"),
    (0x75a0, "AMD Instinct MI350X"),
    (0x75a3, "AMD Instinct MI355X"),
];

/// Every AMD GPU, one entry each.
pub fn gpus(tree: &Tree, functions: &[Function]) -> Vec<Gpu> {
    // A container sees the topology of its host, but uses a GPU through this file only.
    let usable = tree.exists("/dev/kfd");
    let mut seen = Vec::new();
    let mut gpus = Vec::new();
    for node in tree.names(NODES) {
        let folder = format!("{NODES}/{node}");
        let properties = properties(tree, &format!("{folder}/properties"));
        let get = |name: &str| properties.get(name).copied().filter(|value| *value > 0);
        if get("simd_count").is_none() {
            continue;
        }
        let address = get("location_id").map(|at| {
            let domain = get("domain").unwrap_or(0);
            format!("{domain:04x}:{:02x}:{:02x}.{:x}", at >> 8 & 0xff, at >> 3 & 0x1f, at & 7)
        });
        let device = get("device_id").and_then(|device| u16::try_from(device).ok());
        let arch = get("gfx_target_version").map(architecture);
        let banks = tree.names(format!("{folder}/mem_banks"));
        let bytes: u64 = banks
            .iter()
            .map(|bank| self::properties(tree, &format!("{folder}/mem_banks/{bank}/properties")))
            // 1 and 2 are the heaps of the GPU itself.
            .filter(|bank| matches!(bank.get("heap_type"), Some(1 | 2)))
            .filter_map(|bank| bank.get("size_in_bytes").copied())
            .fold(0, u64::saturating_add);
        let integrated = arch.as_deref().map(|arch| INTEGRATED.contains(&arch));
        gpus.push(Gpu {
            vendor: "amd".to_owned(),
            name: address
                .as_deref()
                .and_then(|at| own_name(tree, at))
                .or_else(|| known_name(device?)),
            arch,
            pci_id: device.map(|device| format!("{AMD_GPUS:04x}:{device:04x}")),
            // One that is integrated works in main memory; its own is a small part for the screen.
            memory_gb: (bytes > 0 && integrated != Some(true)).then(|| gibibytes(bytes)),
            integrated,
            usable,
            count: 1,
        });
        seen.extend(address);
    }
    let rest = functions
        .iter()
        .filter(|function| function.vendor == AMD_GPUS && function.is_gpu())
        .filter(|function| !seen.contains(&function.address));
    gpus.extend(rest.map(|function| Gpu {
        vendor: "amd".to_owned(),
        name: own_name(tree, &function.address).or_else(|| known_name(function.device)),
        pci_id: Some(function.id()),
        count: 1,
        ..Gpu::default()
    }));
    gpus
}

/// The name in the GPU's own memory.
fn own_name(tree: &Tree, address: &str) -> Option<String> {
    tree.line(format!("/sys/bus/pci/devices/{address}/product_name"))
}

fn known_name(device: u16) -> Option<String> {
    NAMES.iter().find(|(known, _)| *known == device).map(|(_, name)| (*name).to_owned())
}

/// Lines of a name and a number.
fn properties(tree: &Tree, path: &str) -> BTreeMap<String, u64> {
    let text = tree.text(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
        .collect()
}

/// `gfx942` for 90402, `gfx90a` for 90010: the last two parts are hexadecimal digits.
fn architecture(version: u64) -> String {
    format!("gfx{}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_named_as_the_compiler_names_them() {
        let check = |version: u64, name: &str| assert_eq!(architecture(version), name);
        check(90_008, "gfx908");
        check(90_010, "gfx90a");
        check(90_402, "gfx942");
        check(90_500, "gfx950");
        check(110_000, "gfx1100");
        check(110_501, "gfx1151");
        check(120_001, "gfx1201");
    }
}

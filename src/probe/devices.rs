//! GPUs and NPUs, as the kernel and its drivers show them.

mod amd;
mod npu;
mod nvidia;

use crate::{
    facts::{Hardware, machine::Gpu},
    probe::tree::Tree,
};

/// PCI vendors.
const AMD_GPUS: u16 = 0x1002;
const AMD: u16 = 0x1022;
const NVIDIA: u16 = 0x10de;

/// How far the devices can be seen.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// Whether the PCI bus could be listed, so that a device that is not there can be told from one that
    /// cannot be seen.
    pub bus_listed: bool,
    /// Whether Windows lends its GPUs to this system, which then shows neither their makers nor their number.
    pub lent_by_windows: bool,
    /// Whether CUDA runs on a GPU that Windows lends.
    pub cuda_from_windows: bool,
}

/// Finds GPUs and NPU with their drivers.
pub fn read(tree: &Tree, cpu_model: Option<&str>) -> (Hardware, Sight) {
    let bus = bus(tree);
    let lent_by_windows = tree.exists("/dev/dxg");
    let sight = Sight {
        bus_listed: bus.is_some(),
        lent_by_windows,
        cuda_from_windows: lent_by_windows && tree.exists("/usr/lib/wsl/lib/libcuda.so.1"),
    };
    let functions = bus.unwrap_or_default();
    let mut hardware =
        Hardware { board: tree.line("/proc/device-tree/model"), ..Hardware::default() };
    for module in ["amdgpu", "amdxdna", "nvidia"] {
        let folder = format!("/sys/module/{module}");
        if tree.exists(&folder) {
            hardware.drivers.insert(module.to_owned(), tree.line(format!("{folder}/version")));
        }
    }
    let mut gpus = amd::gpus(tree, &functions);
    gpus.extend(nvidia::gpus(tree, &functions, &mut hardware));
    hardware.gpus = grouped(gpus);
    let driver = hardware.drivers.contains_key("amdxdna");
    hardware.npu = npu::read(tree, &functions, cpu_model, driver);
    (hardware, sight)
}

/// A function of a PCI device that computes or shows.
#[derive(Debug)]
struct Function {
    /// For example `0000:c3:00.0`.
    address: String,
    vendor: u16,
    device: u16,
    /// Class and subclass.
    class: u16,
    revision: Option<u8>,
}

impl Function {
    fn id(&self) -> String {
        format!("{:04x}:{:04x}", self.vendor, self.device)
    }

    /// Whether it is a display controller or a processing accelerator.
    fn is_gpu(&self) -> bool {
        matches!(self.class >> 8, 0x03 | 0x12)
    }
}

/// What computes or shows on the PCI bus; `None` when the bus cannot be listed.
fn bus(tree: &Tree) -> Option<Vec<Function>> {
    let names = tree.names("/sys/bus/pci/devices");
    if names.is_empty() {
        return None;
    }
    let functions = names.into_iter().filter_map(|address| {
        let folder = format!("/sys/bus/pci/devices/{address}");
        let number = |file: &str| {
            let line = tree.line(format!("{folder}/{file}"))?;
            u32::from_str_radix(line.trim_start_matches("0x"), 16).ok()
        };
        let class = u16::try_from(number("class")? >> 8).ok()?;
        // 11 is signal processing, where NPUs are.
        if !matches!(class >> 8, 0x03 | 0x11 | 0x12) {
            return None;
        }
        let vendor = u16::try_from(number("vendor")?).ok()?;
        let device = u16::try_from(number("device")?).ok()?;
        let revision = number("revision").and_then(|revision| u8::try_from(revision).ok());
        Some(Function { address, vendor, device, class, revision })
    });
    Some(functions.collect())
}

/// Equal GPUs in one entry, in the order in which the first of each was found.
fn grouped(gpus: Vec<Gpu>) -> Vec<Gpu> {
    let mut groups: Vec<Gpu> = Vec::new();
    for gpu in gpus {
        let same =
            groups.iter_mut().find(|group| Gpu { count: gpu.count, ..(**group).clone() } == gpu);
        match same {
            Some(group) => group.count += gpu.count,
            None => groups.push(gpu),
        }
    }
    groups
}

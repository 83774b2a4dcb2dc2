//! The Ryzen AI NPU.

use crate::{
    facts::machine::Npu,
    probe::{
        devices::{AMD, Function},
        tree::Tree,
    },
};

/// The NPU on the PCI bus.
pub fn read(
    tree: &Tree,
    functions: &[Function],
    cpu_model: Option<&str>,
    driver: bool,
) -> Option<Npu> {
    let function = functions
        .iter()
        .find(|function| function.vendor == AMD && matches!(function.device, 0x1502 | 0x17f0))?;
    let file = |name: &str| tree.line(format!("/sys/bus/pci/devices/{}/{name}", function.address));
    let generation = match function.device {
        0x1502 => first_generation(cpu_model.unwrap_or_default()),
        _ => second_generation(function.revision),
    };
    Some(Npu {
        generation: generation.map(str::to_owned),
        architecture: Some(if function.device == 0x1502 { "XDNA" } else { "XDNA 2" }.to_owned()),
        name: file("vbnv"),
        pci_id: Some(function.id()),
        revision: function.revision.map(|revision| format!("{revision:02x}")),
        driver: driver.then(|| "amdxdna".to_owned()),
        firmware: file("fw_version"),
        usable: Some(tree.names("/dev/accel").iter().any(|name| name.starts_with("accel"))),
        ..Npu::default()
    })
}

/// Phoenix and Hawk Point have the same NPU; the number of the processor tells them apart: `7840U`, `8840U`.
fn first_generation(cpu_model: &str) -> Option<&'static str> {
    cpu_model.split_whitespace().find_map(|word| match word.as_bytes() {
        [b'7', b'0'..=b'9', b'4', b'0'..=b'9', ..] => Some("PHX"),
        [b'8', b'0'..=b'9', b'4', b'0'..=b'9', ..] => Some("HPT"),
        _ => None,
    })
}

/// By the revision, as the driver (`amdxdna_pci_drv.c`) and the Ryzen AI documentation list them.
fn second_generation(revision: Option<u8>) -> Option<&'static str> {
    match revision? {
        // 11 is Strix Halo.
        0x00 | 0x10 | 0x11 => Some("STX"),
        0x20 => Some("KRK"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_processor_tells_phoenix_from_hawk_point() {
        let check = |model: &str, expected: Option<&str>| {
            assert_eq!(first_generation(model), expected, "{model}");
        };
        check("AMD Ryzen 7 7840U w/ Radeon 780M Graphics", Some("PHX"));
        check("AMD Ryzen 9 7940HS w/ Radeon 780M Graphics", Some("PHX"));
        check("AMD Ryzen 7 8845HS w/ Radeon 780M Graphics", Some("HPT"));
        check("AMD Ryzen 7 PRO 8840U w/ Radeon 780M Graphics", Some("HPT"));
        check("AMD Ryzen 7 8700G w/ Radeon 780M Graphics", None);
        check("", None);
    }
}

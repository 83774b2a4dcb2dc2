//! Parts of `env_context.json` beyond what Quark's own skill writes: devices, interpreters, packages.
//!
//! They lie inside `environment` and `hardware`, where the shipped schema allows further fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The main processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cpu {
    /// `x86_64`, `aarch64`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// For example `AuthenticAMD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Marketing name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Physical cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// Logical processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// Those of its instruction sets that matter for low precision, as Linux spells them (`avx2`,
    /// `avx512_vnni`, `avx_vnni`, `amx_int8`, …); `null` when they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<Vec<String>>,
}

/// GPUs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gpu {
    /// `amd`, `nvidia`, …
    pub vendor: String,
    /// `gfx942`, `sm_90`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Marketing name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// PCI vendor and device, for example `1002:74a1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci_id: Option<String>,
    /// Memory of each, in GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gb: Option<f64>,
    /// Whether it is part of the processor and shares the main memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrated: Option<bool>,
    /// Whether its driver and device files are there for programs to use.
    pub usable: bool,
    /// How many.
    pub count: u64,
}

/// A Ryzen AI NPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Npu {
    /// `PHX`, `HPT`, `STX` or `KRK`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// `XDNA` or `XDNA 2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// What the driver calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// PCI vendor and device, for example `1022:17f0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci_id: Option<String>,
    /// PCI revision, for example `10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Kernel driver, when it is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Firmware version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Whether its device file is there for programs to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable: Option<bool>,
    /// Version of the Ryzen AI software.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ryzen_ai_version: Option<String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A Python interpreter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interpreter {
    /// Path of the executable.
    pub path: String,
    /// Its version, as far as files tell it: `3.12.1` or `3.12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The environment that it belongs to: a virtual or conda environment, or where Python is installed.
    pub prefix: String,
    /// `venv`, `conda`, `pyenv` or `system`.
    pub kind: String,
}

/// An installed Python package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Package {
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What a build is for, for example `cu128`, `rocm6.4` or `cpu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
}

/// An installed toolkit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Toolkit {
    /// Where.
    pub path: String,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A built library of Quark's custom ONNX ops, which the BFP, MX and extended formats need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CustomOps {
    /// Path of the library.
    pub path: String,
    /// `cpu` or `gpu`.
    pub device: String,
    /// Whether it came with the package; otherwise it was compiled here.
    pub precompiled: bool,
}

/// Reads a field that others may write in another shape; such a shape counts as not known.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Reads an NPU, of which others may write the name alone.
pub(super) fn npu<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Npu>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(name) => Some(Npu { name: Some(name), ..Npu::default() }),
        value => serde_json::from_value(value).ok(),
    })
}

/// Reads packages, of which others may write the version alone.
pub(super) fn packages<'de, D>(deserializer: D) -> Result<BTreeMap<String, Package>, D::Error>
where
    D: Deserializer<'de>,
{
    let Value::Object(map) = Value::deserialize(deserializer)? else { return Ok(BTreeMap::new()) };
    let package = |value| match value {
        Value::String(version) => Some(Package { version: Some(version), accelerator: None }),
        value => serde_json::from_value(value).ok(),
    };
    Ok(map.into_iter().filter_map(|(name, value)| Some((name, package(value)?))).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::facts::EnvContext;

    #[test]
    fn what_others_write_is_read() {
        let context: EnvContext = serde_json::from_value(json!({
            "environment": {
                "os": "linux",
                "packages": {"onnx": "1.21.0", "torch": {"version": "2.9.1"}, "quark": null},
                "compilers": ["g++"]
            },
            "hardware": {"accelerator": "cpu", "npu": "STX", "gpus": 3, "cpu": {"flags": "avx2"}}
        }))
        .unwrap();
        let packages = &context.environment.packages;
        assert_eq!(packages["onnx"].version.as_deref(), Some("1.21.0"));
        assert_eq!(packages["torch"].version.as_deref(), Some("2.9.1"));
        assert_eq!(packages.len(), 2);
        assert!(context.environment.compilers.is_empty());
        assert_eq!(context.hardware.npu.unwrap().name.as_deref(), Some("STX"));
        assert_eq!(context.hardware.cpu, None);
        assert!(context.hardware.gpus.is_empty());
    }
}

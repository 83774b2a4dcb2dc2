//! Device generations: Ryzen AI NPUs and GPUs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Source, entry},
    vocab::{DeviceId, ReleaseId},
};

/// A generation of devices with one set of number formats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Name in plans: `PHX`, `HPT`, `STX`, `KRK`, or a GPU architecture such as `gfx942`, `sm_90`.
    pub id: DeviceId,
    /// Product and code names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line about it.
    pub summary: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its products, as far as their memory is known; those with several sizes are left out.
    #[serde(default)]
    pub products: Vec<Product>,
    /// Formats it computes with.
    pub native: Vec<String>,
    /// Formats that run emulated.
    #[serde(default)]
    pub emulated: Vec<String>,
    /// Formats that do not run, or that nobody documents for it.
    #[serde(default)]
    pub not_supported: Vec<String>,
    /// Always `None`: devices are not part of a release.
    #[serde(default)]
    pub since: Option<ReleaseId>,
    /// Always `None`.
    #[serde(default)]
    pub until: Option<ReleaseId>,
    /// Other things to know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where the facts come from.
    pub source: Vec<Source>,
}

entry!(Device);

/// A product of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// Name, one of the aliases of its generation.
    pub name: String,
    /// Memory of one device in gigabytes, as its vendor states it; AMD's are binary.
    pub memory_gb: u64,
}

/// What a device is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// Ryzen AI NPU.
    Npu,
    /// Graphics or compute accelerator.
    Gpu,
}

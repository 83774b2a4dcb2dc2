//! `pytorch_install_result.json`: what `quark-torch-install` installed and saw.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::facts::machine::lenient;

/// `pytorch_install_result.json`: which PyTorch is installed and whether it sees a GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchInstallResult {
    /// `ok`, `failed` or `skipped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Version of PyTorch, with its build, for example `2.5.1+cu126`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_version: Option<String>,
    /// Tag of its wheel index: `cu126`, `rocm7.1`, `cpu`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_tag: Option<String>,
    /// What was tried.
    #[serde(default)]
    pub verification: TorchVerification,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What the skill tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchVerification {
    /// Whether `import torch` worked.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub import_ok: Option<bool>,
    /// `torch.cuda.is_available()`, which is true on ROCm too.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub cuda_available: Option<bool>,
    /// `torch.cuda.device_count()`.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u64>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What a build of PyTorch computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TorchBuild {
    /// AMD GPUs, through ROCm.
    Rocm,
    /// NVIDIA GPUs, through CUDA.
    Cuda,
    /// The CPU alone.
    Cpu,
}

impl TorchInstallResult {
    /// Whether there is no PyTorch that works.
    pub fn failed(&self) -> bool {
        self.status.as_deref() == Some("failed") || self.verification.import_ok == Some(false)
    }

    /// What the build computes on, by its tag or the local part of its version; `None` when neither says.
    pub fn build(&self) -> Option<TorchBuild> {
        let local = self.pytorch_version.as_deref().and_then(|version| version.split_once('+'));
        [self.accelerator_tag.as_deref(), local.map(|(_, local)| local)]
            .into_iter()
            .flatten()
            .find_map(build_of)
    }

    /// Whether it sees a GPU; `None` when nothing says.
    pub fn sees_gpu(&self) -> Option<bool> {
        let seen = self.verification.cuda_available;
        seen.or_else(|| self.verification.gpu_count.map(|count| count > 0))
            .or_else(|| (self.build() == Some(TorchBuild::Cpu)).then_some(false))
    }
}

fn build_of(tag: &str) -> Option<TorchBuild> {
    let tag = tag.trim().to_lowercase();
    [("rocm", TorchBuild::Rocm), ("cu", TorchBuild::Cuda), ("cpu", TorchBuild::Cpu)]
        .into_iter()
        .find(|(begin, _)| tag.starts_with(begin))
        .map(|(_, build)| build)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_told_by_its_tag_or_its_version() {
        let check = |json: &str, build: Option<TorchBuild>, sees: Option<bool>| {
            let result: TorchInstallResult = serde_json::from_str(json).unwrap();
            assert_eq!((result.build(), result.sees_gpu()), (build, sees), "{json}");
        };
        check(r#"{"accelerator_tag": "cu126"}"#, Some(TorchBuild::Cuda), None);
        check(r#"{"accelerator_tag": "rocm7.1"}"#, Some(TorchBuild::Rocm), None);
        check(r#"{"accelerator_tag": "cpu"}"#, Some(TorchBuild::Cpu), Some(false));
        check(
            r#"{"accelerator_tag": null, "pytorch_version": "2.9.0+rocm6.4"}"#,
            Some(TorchBuild::Rocm),
            None,
        );
        check(r#"{"pytorch_version": "2.9.0"}"#, None, None);
        check(r#"{"verification": {"cuda_available": true, "gpu_count": 8}}"#, None, Some(true));
        check(r#"{"verification": {"gpu_count": 0}}"#, None, Some(false));
    }
}

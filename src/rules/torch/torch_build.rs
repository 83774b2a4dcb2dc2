//! # What it does
//!
//! Looks at the PyTorch that `quark-torch-install` brought: whether it works, whether its build is for the GPUs of
//! the machine, and whether it sees them.
//!
//! # Why
//!
//! Quark-Torch runs on PyTorch's devices. A CPU build on a machine with GPUs calibrates on the CPU, or cannot hold
//! the model, and a build for the other vendor fails at the first kernel.
//!
//! # Example
//!
//! The machine has an AMD GPU and PyTorch is `2.9.0+cu126`: a high risk, and `quark-torch-install` again.
//!
//! # Sources
//!
//! - 0.13, `quark/_bundled_skills/_legacy_impl/l1-atomic/torch/quark-torch-install/SKILL.md`
//! - 0.13, `quark/_bundled_skills/_legacy_impl/shared/contracts/pytorch_install_result.schema.json`

use crate::{
    facts::torch_install::TorchBuild,
    rules::{Context, Stage, common::machine, sheet::Sheet},
    vocab::Severity,
};

/// The reason code.
pub const ID: &str = "torch-build";
/// When it runs.
pub const STAGE: Stage = Stage::Assess;

/// Looks.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(torch) = ctx.torch_install else { return };
    let again = Some(
        "install the build for this machine with `quark-torch-install`, and revise with its result"
            .to_owned(),
    );
    let version = torch.pytorch_version.as_deref().unwrap_or("of an unknown version");
    let mut pen = sheet.by(ID);
    if torch.failed() {
        let why = torch.failure_reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        pen.risk(
            Severity::High,
            format!("PyTorch is not installed, or does not import{why}"),
            again,
        );
        return;
    }
    let accelerator = machine::accelerator(ctx);
    let (other, its, gpus) = match accelerator {
        Some("amd-rocm") => (TorchBuild::Cuda, "CUDA", "AMD GPUs"),
        Some("nvidia-cuda") => (TorchBuild::Rocm, "ROCm", "NVIDIA GPUs"),
        _ => return,
    };
    if torch.build() == Some(other) {
        pen.risk(
            Severity::High,
            format!("the machine has {gpus}, and PyTorch {version} is built for {its}"),
            again,
        );
    } else if torch.sees_gpu() == Some(false) {
        let why = match torch.build() {
            Some(TorchBuild::Cpu) => "is built for the CPU alone",
            _ => "sees none of them",
        };
        pen.risk(
            Severity::High,
            format!("the machine has {gpus}, and PyTorch {version} {why}: the model is calibrated on the CPU"),
            again,
        );
    }
}

//! What the environment and the installation say about the machine.

use serde_json::Value;

use crate::{
    catalogue::devices::{Device, DeviceKind},
    rules::{Context, common::versions},
    vocab::Origin,
};

/// A kind of accelerator that the environment rules out or in; `None` when it does not say.
pub fn accelerator<'a>(ctx: &Context<'a>) -> Option<&'a str> {
    ctx.environment?.hardware.accelerator.as_deref().filter(|name| *name != "unknown")
}

/// Whether ONNX Runtime has an execution provider; `None` when nothing says.
pub fn has_provider(ctx: &Context<'_>, provider: &str) -> Option<bool> {
    let known = ctx.install?.verification.available_providers.as_ref()?;
    Some(known.iter().any(|name| name == provider))
}

/// The device generation, where it came from and in which words: the answer to `npu_device`, the hardware
/// of the intent, or the `npu` object of the environment.
pub fn npu_device(ctx: &Context<'_>) -> Option<(&'static Device, Origin, String)> {
    let devices = ctx.catalogue.devices();
    let npu = |name: &str| devices.find(name).filter(|device| device.kind == DeviceKind::Npu);
    if let Some(device) = ctx.answer("npu_device").and_then(npu) {
        return Some((device, Origin::User, "you said so".to_owned()));
    }
    if let Some((name, device)) =
        ctx.intent.hardware.iter().find_map(|name| Some((name, npu(name)?)))
    {
        return Some((device, Origin::User, format!("you named the hardware `{name}`")));
    }
    let found = npu_text(ctx, &["device", "generation", "id", "name", "model"])?;
    Some((npu(found)?, Origin::Environment, format!("the environment names the NPU `{found}`")))
}

/// The version of the Ryzen AI software that is stated, by the user or the environment.
pub fn ryzen_ai<'a>(ctx: &Context<'a>) -> Option<&'a str> {
    ctx.intent
        .ryzen_ai_version
        .as_deref()
        .or_else(|| npu_text(ctx, &["ryzen_ai_version", "ryzen_ai", "software_version"]))
        .filter(|version| versions::parse(version).is_some())
}

fn npu_text<'a>(ctx: &Context<'a>, keys: &[&str]) -> Option<&'a str> {
    let environment = ctx.environment?;
    let npu = environment.other.get("npu").or_else(|| environment.hardware.other.get("npu"))?;
    match npu {
        Value::String(name) => keys.contains(&"name").then_some(name.as_str()),
        npu => keys.iter().find_map(|key| npu.get(key)?.as_str()),
    }
}

/// Whether the CPU that is stated has the instructions for u8×s8 products without saturation (VNNI);
/// `None` when its flags are not stated.
pub fn has_vnni(ctx: &Context<'_>) -> Option<bool> {
    let hardware = &ctx.environment?.hardware.other;
    let flags = hardware
        .get("cpu_flags")
        .or_else(|| hardware.get("cpu").and_then(|cpu| cpu.get("flags")))
        .or_else(|| ctx.environment?.other.get("cpu_flags"))?;
    let flags: Vec<&str> = match flags {
        Value::Array(flags) => flags.iter().filter_map(Value::as_str).collect(),
        Value::String(flags) => flags.split_whitespace().collect(),
        _ => return None,
    };
    // Linux writes `avx512_vnni` and `avx_vnni`, others `avx512vnni`.
    Some(flags.iter().any(|flag| flag.to_lowercase().replace('_', "").ends_with("vnni")))
}

/// A package version that the environment states.
pub fn package<'a>(ctx: &Context<'a>, name: &str) -> Option<&'a str> {
    let environment = ctx.environment?;
    let packages = environment
        .other
        .get("packages")
        .or_else(|| environment.environment.other.get("packages"))?;
    let value = packages.get(name).or_else(|| packages.get(name.replace('-', "_")))?;
    value.as_str().or_else(|| value.get("version")?.as_str())
}

/// The device on which PyTorch can fine-tune, as Quark spells it, with the fact that says so.
pub fn torch_device(ctx: &Context<'_>) -> (&'static str, &'static str) {
    match accelerator(ctx) {
        // ROCm builds of PyTorch call their devices `cuda` too.
        Some("nvidia-cuda") => ("cuda:0", "the machine has an NVIDIA GPU"),
        Some("amd-rocm") => {
            ("cuda:0", "the machine has an AMD GPU, which PyTorch calls `cuda` too")
        }
        Some(_) => ("cpu", "the machine has no GPU"),
        None => ("cpu", "no GPU is known"),
    }
}

//! # What it does
//!
//! Settles which devices and which engine will run the result: what you name, else what the goal names, else
//! the GPU of this machine. Without any of them it asks, and plans on without an answer.
//!
//! # Why
//!
//! A number format is native, emulated or impossible on a device, and an engine loads it or does not; only
//! then is a recommendation more than a guess. Ryzen AI NPUs of the first generation run no language models.
//!
//! # Example
//!
//! The goal says "on MI355X with vLLM", so schemes are weighed against gfx950 and vLLM's loader.
//!
//! # Sources
//!
//! - prbasyal-amd/ROCm 245d7cee, `docs/reference/precision-support.rst`
//! - amd/RyzenAI-SW#190: language models on Hawk Point

use crate::{
    catalogue::{
        Entry,
        devices::{Device, DeviceKind},
    },
    plan::Choice,
    rules::{
        Context, Stage,
        sheet::{Sheet, list},
        torch::{
            choice::Target,
            wishes::{self, Wishes},
        },
    },
    vocab::{Severity, near_names},
};

/// The reason code.
pub const ID: &str = "hardware";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const GIB: f64 = 1_073_741_824.0;

/// Settles devices and engine.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let wishes = wishes::read(ctx);
    engine(ctx, sheet, &wishes);
    let answered: Vec<String> = ctx
        .answer("hardware")
        .map(|answer| answer.split(',').map(|name| name.trim().to_owned()).collect())
        .unwrap_or_default();
    let named: Vec<&String> = answered.iter().chain(&ctx.intent.hardware).collect();
    for name in &named {
        by_name(ctx, sheet, name);
    }
    if named.is_empty() {
        for (device, name, count) in &wishes.devices {
            let mut target = target(ctx, device, name);
            target.count = count.or(target.count);
            sheet.torch.devices.push(target);
        }
        sheet.torch.on_cpu = wishes.cpu;
    }
    if sheet.torch.devices.is_empty() && !sheet.torch.on_cpu && named.is_empty() {
        of_this_machine(ctx, sheet);
    }
    let mut pen = sheet.by(ID);
    let asked = pen.sheet().asks("hardware");
    if pen.sheet().torch.devices.is_empty() && !pen.sheet().torch.on_cpu && !asked {
        let choice = |value: &str, meaning: &str| Choice {
            value: value.to_owned(),
            meaning: meaning.to_owned(),
        };
        pen.wonder(
            "hardware",
            "On which devices will the quantized model run?",
            vec![
                choice("MI300X", "FP8, no FP4"),
                choice("MI355X", "FP8, FP6 and FP4"),
                choice("H100", "FP8, no FP4"),
                choice("B200", "FP8 and NVFP4"),
                choice("cpu", "a CPU"),
            ],
        );
    }
}

fn engine(ctx: &Context<'_>, sheet: &mut Sheet, wishes: &Wishes) {
    let engines = ctx.catalogue.engines();
    let Some(name) = &ctx.intent.serving_engine else {
        sheet.torch.engine = wishes.engine;
        return;
    };
    sheet.torch.engine = engines.find(name);
    if sheet.torch.engine.is_none() {
        sheet.by(ID).risk(
            Severity::Medium,
            format!("nothing is known of the engine `{name}`, so nobody has checked that it loads the result"),
            Some(format!("known are {}", list(engines.ids(), 9))),
        );
    }
}

fn by_name(ctx: &Context<'_>, sheet: &mut Sheet, name: &str) {
    let devices = ctx.catalogue.devices();
    if name.eq_ignore_ascii_case("cpu") {
        sheet.torch.on_cpu = true;
        return;
    }
    let Some(device) = devices.find(name) else {
        let near = near_names(name, devices.ids());
        sheet.by(ID).risk(
            Severity::Medium,
            format!("nothing is known of the device `{name}`, so number formats are not checked against it"),
            (!near.is_empty()).then(|| format!("did you mean {}?", list(near, 3))),
        );
        return;
    };
    if device.kind == DeviceKind::Gpu {
        let target = target(ctx, device, name);
        sheet.torch.devices.push(target);
        return;
    }
    let refuses = device.not_supported.iter().any(|what| what == "LLM");
    let mut pen = sheet.by(ID);
    if refuses && !pen.sheet().asks("hardware") {
        pen.ask(
            "hardware",
            format!(
                "The NPU of {} runs no language models. On which other device will the model run?",
                device.id
            ),
            vec![Choice { value: "cpu".to_owned(), meaning: "the CPU of that machine".to_owned() }],
        );
    } else if !refuses {
        pen.risk(
            Severity::High,
            format!("a Torch plan makes no model for the NPU of {}: language models get there through ONNX Runtime GenAI", device.id),
            Some("quantize with uint4_wo_128 and AWQ as the Ryzen AI documentation does, and convert the result with its model builder".to_owned()),
        );
    }
}

fn target(ctx: &Context<'_>, device: &'static Device, name: &str) -> Target {
    let product =
        device.products.iter().find(|product| name.ends_with(&product.name)).or_else(|| {
            let only = device.products.first()?;
            (device.products.iter().all(|other| other.memory_gb == only.memory_gb)
                && device.id() == name)
                .then_some(only)
        });
    // What the machine says of the same kind of device counts first.
    let here = ctx.environment.filter(|environment| {
        environment.hardware.gpu_arch.as_deref().is_some_and(|arch| arch == device.id())
    });
    let memory = here
        .and_then(|environment| environment.hardware.memory_gb)
        .map(bytes)
        .or_else(|| product.map(|product| product.memory_gb.saturating_mul(1_000_000_000)));
    let count = here.and_then(|environment| environment.hardware.gpu_count);
    Target { device, name: name.to_owned(), memory, count }
}

/// Bytes of a number of GiB.
pub fn bytes(gib: f64) -> u64 {
    (gib.max(0.0) * GIB).round() as u64
}

fn of_this_machine(ctx: &Context<'_>, sheet: &mut Sheet) {
    let Some(hardware) = ctx.environment.map(|environment| &environment.hardware) else { return };
    let archs = hardware.gpu_arch.iter().map(String::as_str);
    let archs = archs.chain(hardware.gpus.iter().filter_map(|gpu| gpu.arch.as_deref()));
    let models = hardware.gpu_model.iter().map(String::as_str);
    let found = archs.chain(models).find_map(|name| {
        let device = ctx.catalogue.devices().find(name)?;
        (device.kind == DeviceKind::Gpu).then_some((device, name))
    });
    if let Some((device, name)) = found {
        let target = target(ctx, device, name);
        sheet.torch.devices.push(target);
    }
}

//! # What it does
//!
//! Settles how the model is held while it is quantized: on one device, spread over several, on the CPU, or file
//! by file.
//!
//! # Why
//!
//! A model that does not fit fails only when it is loaded. Spreading it (`--multi_device`) is slow and runs no
//! algorithm; several GPUs with an algorithm need `quantize_quark.py --multi_gpu`. File-to-file quantization
//! needs hardly any memory, but for schemes with static activations it writes no input scales, and says nothing.
//!
//! # Example
//!
//! 671 billion parameters are 1.3 TB in 16 bits and nothing is known of the machine, so `file_to_file`, with a
//! scheme whose files are complete.
//!
//! # Sources
//!
//! - 0.13, `quark/torch/quantization/api.py:251,437`; `quark/cli/torch_llm_ptq.py`
//! - 0.13, file-to-file with fp8, int8, mxfp4_fp8 and nvfp4 (measured: no input scales)

use serde_json::json;

use crate::{
    catalogue::{
        schemes::{FileToFile, Scheme},
        torch_algorithms::TorchAlgorithm,
    },
    estimate::{self, torch::Loaded},
    rules::{
        Context, Stage,
        sheet::{Check, Sheet, size},
        torch::{choice::Target, hardware, wishes},
    },
    vocab::{Origin, Severity},
};

/// The reason code.
pub const ID: &str = "device-strategy";
/// When it runs.
pub const STAGE: Stage = Stage::Choose;

const ROW: &str = "device_strategy";
/// Seventy billion parameters in 16 bits: more is not taken for a single device unless it is known.
const LARGE: u64 = 140_000_000_000;

/// Whether what file-to-file quantization writes with a scheme is complete.
pub fn whole_in_files(scheme: &Scheme) -> bool {
    scheme.file_to_file == Some(FileToFile::Complete)
}

/// Where the model can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    OneGpu,
    SeveralGpus,
    Spread,
    Cpu,
    Nowhere,
    /// Nothing is known of the machine.
    Unknown,
}

/// Whether only file-to-file quantization can hold the model.
pub fn needs_files(ctx: &Context<'_>, sheet: &Sheet) -> bool {
    let large = estimate::torch::loaded(ctx.analysis).bytes().is_some_and(|bytes| bytes > LARGE);
    sheet.torch.file_to_file_only
        || match room(ctx, sheet).0 {
            Room::Nowhere => true,
            Room::Unknown => large,
            _ => false,
        }
}

/// Where the model can be held, and the device that says so where nothing is known of the machine.
fn room<'s>(ctx: &Context<'_>, sheet: &'s Sheet) -> (Room, Option<&'s Target>) {
    match room_here(ctx) {
        Room::Unknown => match room_on_target(ctx, sheet) {
            Some((room, target)) => (room, Some(target)),
            None => (Room::Unknown, None),
        },
        room => (room, None),
    }
}

/// Whether the smallest of the devices that will run the result holds the model too.
fn room_on_target<'s>(ctx: &Context<'_>, sheet: &'s Sheet) -> Option<(Room, &'s Target)> {
    let (memory, target) = smallest(sheet)?;
    let loaded = estimate::torch::loaded(ctx.analysis);
    let bytes = loaded.bytes()?;
    let need = bytes.saturating_add(bytes / 5);
    // What has at least some size may have any that is larger.
    if need <= memory.saturating_mul(target.count.unwrap_or(1))
        && !matches!(loaded, Loaded::Bytes(_))
    {
        return None;
    }
    let room = if need <= memory {
        Room::OneGpu
    } else if need <= memory.saturating_mul(target.count.unwrap_or(1)) {
        Room::SeveralGpus
    } else if bytes > LARGE {
        return None;
    } else {
        Room::Spread
    };
    Some((room, target))
}

/// The device with the least memory.
fn smallest(sheet: &Sheet) -> Option<(u64, &Target)> {
    let known = sheet.torch.devices.iter().filter_map(|target| Some((target.memory?, target)));
    known.min_by_key(|(memory, _)| *memory)
}

fn shown(target: &Target) -> String {
    match target.memory {
        Some(memory) => format!("{} ({})", target.name, size(memory)),
        None => target.name.clone(),
    }
}

fn room_here(ctx: &Context<'_>) -> Room {
    let Some(hardware) = ctx.environment.map(|environment| &environment.hardware) else {
        return Room::Unknown;
    };
    let Some(bytes) = estimate::torch::loaded(ctx.analysis).bytes() else { return Room::Unknown };
    // Activations and observers come on top of the weights.
    let need = bytes.saturating_add(bytes / 5);
    // GPUs that PyTorch does not see cannot hold anything.
    let unseen = ctx.torch_install.and_then(|torch| torch.sees_gpu()) == Some(false);
    let gpu = hardware.memory_gb.filter(|_| !unseen).map(hardware::bytes).unwrap_or(0);
    let seen = ctx.torch_install.and_then(|torch| torch.verification.gpu_count);
    let count = seen.or(hardware.gpu_count).unwrap_or(u64::from(gpu > 0));
    let all = gpu.saturating_mul(count);
    let main = hardware.system_memory_gb.map(hardware::bytes);
    let no_gpu = unseen || count == 0 && hardware.accelerator.as_deref() == Some("cpu");
    match (gpu, main) {
        (0, None) => Room::Unknown,
        (0, Some(_)) if !no_gpu => Room::Unknown,
        (0, Some(main)) => {
            if need <= main {
                Room::Cpu
            } else {
                Room::Nowhere
            }
        }
        _ if need <= gpu => Room::OneGpu,
        _ if need <= all => Room::SeveralGpus,
        (_, Some(main)) if need <= all.saturating_add(main) => Room::Spread,
        (_, None) => Room::Spread,
        _ => Room::Nowhere,
    }
}

/// Settles the row.
pub fn apply(ctx: &Context<'_>, sheet: &mut Sheet) {
    let (room, on) = room(ctx, sheet);
    let on = on.cloned();
    let loaded = estimate::torch::loaded(ctx.analysis);
    let large = loaded.bytes().is_some_and(|bytes| bytes > LARGE);
    let known = matches!(loaded, Loaded::Bytes(_));
    let size = match loaded {
        Loaded::Bytes(bytes) => format!("about {} in 16 bits", size(bytes)),
        Loaded::AtLeast(bytes) => format!("at least {} in 16 bits, by its config", size(bytes)),
        Loaded::Unknown => "a size that is not known".to_owned(),
    };
    let spare = on.is_some() && room != Room::OneGpu;
    let size = if spare { format!("{size}, and a fifth for activations") } else { size };
    let whole = sheet
        .torch
        .scheme
        .is_none_or(|scheme| scheme.file_to_file != Some(FileToFile::NoInputScales));
    let wants_algorithm = ctx.requested("algorithm").is_some_and(|value| !value.is_null())
        || !wishes::read(ctx).algorithms.is_empty();
    let files = |why: &str| {
        ("file_to_file", Origin::Rule, format!("the model has {size}, {why}, so file by file"))
    };
    // What is named in the goal is a wish, what the environment says a fact.
    let seen = if on.is_some() { Origin::Rule } else { Origin::Environment };
    let gpu = on.as_ref().map_or("GPU".to_owned(), shown);
    let too_small = |memory: u64| loaded.bytes().is_some_and(|bytes| bytes > memory);
    let holder = match smallest(sheet) {
        Some((memory, target)) if too_small(memory) => format!("{} holds", shown(target)),
        _ => "device usually holds".to_owned(),
    };
    let default = if sheet.torch.file_to_file_only {
        (
            "file_to_file",
            Origin::Analysis,
            "only file-to-file quantization reads this source".to_owned(),
        )
    } else {
        match room {
            Room::OneGpu => ("single", seen, format!("one {gpu} holds the model ({size})")),
            Room::Cpu => (
                "cpu",
                Origin::Environment,
                match ctx.torch_install.and_then(|torch| torch.sees_gpu()) {
                    Some(false) => {
                        format!("PyTorch sees no GPU, and the main memory holds the model ({size})")
                    }
                    _ => format!("the machine has no GPU, and its memory holds the model ({size})"),
                },
            ),
            Room::SeveralGpus if wants_algorithm => (
                "multi_gpu",
                seen,
                format!(
                    "one {gpu} does not hold the model ({size}), all of them do, and an algorithm is to run"
                ),
            ),
            Room::SeveralGpus | Room::Spread => (
                "multi_device",
                seen,
                format!(
                    "one {gpu} does not hold the model ({size}), so it is spread over all and the main memory"
                ),
            ),
            Room::Nowhere if whole => files("which this machine does not hold"),
            Room::Nowhere => (
                "multi_device",
                Origin::Environment,
                format!(
                    "this machine does not hold the model ({size}), and file by file the scheme would come out without input scales"
                ),
            ),
            Room::Unknown if large && whole && !wants_algorithm => {
                files(&format!("more than one {holder}, and nothing is known of the machine"))
            }
            Room::Unknown if large => (
                "multi_device",
                Origin::Rule,
                format!("the model has {size}, more than one {holder}"),
            ),
            Room::Unknown if known => (
                "single",
                Origin::Default,
                format!("nothing is known of the machine, and {size} usually fit one device"),
            ),
            Room::Unknown => (
                "single",
                Origin::Default,
                format!("neither the machine nor the size of the model is known; it has {size}"),
            ),
        }
    };
    let (value, origin, reason) = default;
    let chosen = sheet.by(ID).settle_or(ctx, ROW, (json!(value), origin, reason), |asked| {
        if asked == "file_to_file" && !whole {
            return Check::Unwise("with static activations file-to-file quantization writes no input scales, and says nothing".to_owned());
        }
        match (asked.as_str(), room) {
            (Some("single"), Room::SeveralGpus | Room::Spread | Room::Nowhere) => Check::Risky(Severity::High, "one device does not hold the model".to_owned()),
            (Some("cpu"), _) => Check::Risky(Severity::Low, "calibration on a CPU is slow".to_owned()),
            _ if asked.is_null() => Check::Impossible("the model has to be held somehow".to_owned()),
            _ => Check::Fine,
        }
    });
    sheet.torch.strategy = chosen.as_str().unwrap_or("single").to_owned();
    consequences(sheet, room, whole, large, known);
}

fn consequences(sheet: &mut Sheet, room: Room, whole: bool, large: bool, known: bool) {
    let strategy = sheet.torch.strategy.clone();
    match strategy.as_str() {
        "file_to_file" => sheet.torch.needs_script.push("file-to-file quantization".to_owned()),
        "multi_gpu" => sheet.torch.needs_script.push("several GPUs (`--multi_gpu`)".to_owned()),
        _ => {}
    }
    let one_gpu = sheet.torch.source_needs_one_gpu;
    let untried = sheet.torch.scheme.is_some_and(|scheme| scheme.file_to_file.is_none());
    let mut pen = sheet.by(ID);
    if room == Room::Nowhere && strategy != "file_to_file" {
        pen.risk(Severity::High, "this machine does not hold the model, neither in its GPUs nor in main memory", Some("take a scheme without static activations (`ptpc_fp8`, `mxfp4`, weight-only) and `file_to_file`".to_owned()));
    }
    if room == Room::Unknown && large {
        pen.risk(
            Severity::Medium,
            "the model is large, and nothing is known of the machine that will quantize it",
            Some(
                "probe that machine (`probe_environment`) and propose with its `env_context`"
                    .to_owned(),
            ),
        );
    }
    if !known && strategy == "single" {
        pen.risk(Severity::Medium, "the size of the model is not known for certain, so nobody has checked that one device holds it", Some("analyse the folder with its safetensors files".to_owned()));
    }
    if strategy == "multi_device" {
        pen.risk(Severity::Low, "spreading the model is slow and runs no algorithm", None);
    }
    if strategy == "file_to_file" && one_gpu {
        pen.risk(Severity::High, "file-to-file quantization of this source needs exactly one GPU: on a CPU it writes nothing, on several it fails", Some("show it one GPU (HIP_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES)".to_owned()));
    }
    if strategy == "file_to_file" {
        if !whole {
            pen.risk(Severity::High, "the files will have no input scales: engines with static activations cannot run them", None);
        } else if untried {
            pen.risk(Severity::Medium, "nobody has looked whether file-to-file quantization writes complete files for this scheme", None);
        }
        pen.risk(Severity::Low, "file-to-file quantization compares patterns with the names in the checkpoint, which differ from those in memory for some families, and must not write into its source", None);
    }
}

/// Whether a strategy lets an algorithm run; the reason when not.
pub fn forbids(strategy: &str, algorithm: &TorchAlgorithm) -> Option<&'static str> {
    match strategy {
        "multi_device" => Some("`multi_device` runs no algorithm"),
        "file_to_file" if !algorithm.in_file_to_file => {
            Some("file-to-file quantization does not run it")
        }
        _ => None,
    }
}

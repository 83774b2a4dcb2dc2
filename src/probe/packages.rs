//! Installed packages, by their metadata, and what the libraries beside them can do.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{
    facts::machine::{CustomOps, Package},
    probe::{
        python::{Found, minor_of},
        tree::Tree,
    },
};

/// Packages that matter to Quark; every build of ONNX Runtime is looked at too.
const PACKAGES: &[&str] = &[
    "accelerate",
    "amd-quark",
    "datasets",
    "ninja",
    "numpy",
    "onnx",
    "onnxscript",
    "onnxslim",
    "protobuf",
    "torch",
    "torchvision",
    "transformers",
];

/// Execution providers by the library that carries them.
const PROVIDERS: &[(&str, &str)] = &[
    ("cuda", "CUDAExecutionProvider"),
    ("dnnl", "DnnlExecutionProvider"),
    ("migraphx", "MIGraphXExecutionProvider"),
    ("nv_tensorrt_rtx", "NvTensorRTRTXExecutionProvider"),
    ("openvino", "OpenVINOExecutionProvider"),
    ("qnn", "QNNExecutionProvider"),
    ("rocm", "ROCMExecutionProvider"),
    ("tensorrt", "TensorrtExecutionProvider"),
    ("vitisai", "VitisAIExecutionProvider"),
];

/// Installed packages by their names on PyPI.
pub(super) fn installed(tree: &Tree, folders: &[PathBuf]) -> BTreeMap<String, Package> {
    let mut packages = BTreeMap::new();
    for folder in folders {
        for entry in tree.names(folder) {
            let Some(stem) = entry.strip_suffix(".dist-info") else { continue };
            let Some((name, version)) = stem.split_once('-') else { continue };
            let name = normalized(name);
            // The first folder wins, as in Python.
            if !(PACKAGES.contains(&name.as_str()) || is_onnxruntime(&name))
                || packages.contains_key(&name)
            {
                continue;
            }
            let metadata = folder.join(&entry).join("METADATA");
            let version = field(tree, &metadata, "Version").unwrap_or_else(|| version.to_owned());
            packages.insert(name, Package { version: Some(version), accelerator: None });
        }
    }
    if let Some(torch) = packages.get_mut("torch") {
        torch_build(tree, folders, torch);
    }
    packages
}

/// Whether a package is a build of ONNX Runtime; only one of them may be installed.
pub fn is_onnxruntime(name: &str) -> bool {
    name.strip_prefix("onnxruntime").is_some_and(|rest| {
        let beside = rest.starts_with("-extensions") || rest.starts_with("-genai");
        rest.is_empty() || rest.starts_with('-') && !beside
    })
}

/// A name as PyPI compares names.
fn normalized(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

/// A field in the head of a metadata file.
fn field(tree: &Tree, path: &Path, name: &str) -> Option<String> {
    let text = tree.text(path)?;
    let mut head = text.lines().take_while(|line| !line.is_empty());
    head.find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    })
}

/// The first of the folders that holds a file or folder.
fn first(tree: &Tree, folders: &[PathBuf], inside: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(inside)).find(|place| tree.exists(place))
}

/// What a build of PyTorch is for. Builds on PyPI have no local version, so the package's own file is asked.
fn torch_build(tree: &Tree, folders: &[PathBuf], torch: &mut Package) {
    let text = first(tree, folders, "torch/version.py").and_then(|path| tree.text(path));
    let text = text.unwrap_or_default();
    let assigned = |name: &str| {
        text.lines().find_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (kind, value) = rest.split_once('=')?;
            // `cuda: Optional[str] = '12.8'`, but not `cuda_version = …`.
            let same = kind.trim().is_empty() || kind.starts_with(':');
            let value = value.trim().trim_matches(['\'', '"']);
            (same && !value.is_empty() && value != "None").then(|| value.to_owned())
        })
    };
    let tagged = assigned("__version__");
    let version = tagged.clone().or_else(|| torch.version.clone());
    let local = version.as_deref().and_then(|version| version.split_once('+')).map(|(_, tag)| tag);
    torch.accelerator = local
        .map(str::to_owned)
        .or_else(|| assigned("cuda").map(|cuda| format!("cu{}", minor_of(&cuda).replace('.', ""))))
        .or_else(|| assigned("hip").map(|hip| format!("rocm{}", minor_of(&hip))))
        .or_else(|| (!text.is_empty()).then(|| "cpu".to_owned()));
    torch.version = version;
}

/// The execution providers that ONNX Runtime has libraries for; `None` without ONNX Runtime.
pub(super) fn execution_providers(tree: &Tree, folders: &[PathBuf]) -> Option<Vec<String>> {
    let capi = first(tree, folders, "onnxruntime/capi")?;
    let libraries: BTreeSet<String> = tree
        .names(&capi)
        .iter()
        .filter_map(|file| {
            let stem =
                file.strip_prefix("lib").unwrap_or(file).strip_prefix("onnxruntime_providers_")?;
            Some(stem.split('.').next()?.to_owned())
        })
        .collect();
    let mut providers: Vec<String> = PROVIDERS
        .iter()
        .filter(|(library, _)| libraries.contains(*library))
        .map(|(_, provider)| (*provider).to_owned())
        .collect();
    if tree.is_file(capi.join("DirectML.dll")) {
        providers.push("DmlExecutionProvider".to_owned());
    }
    providers.push("CPUExecutionProvider".to_owned());
    Some(providers)
}

/// The built libraries of Quark's custom ONNX ops: shipped with the package, or compiled by an earlier import.
///
/// `build_custom_ops.py` of amd-quark has the names and PyTorch's `cpp_extension.py` the folders.
pub(super) fn custom_ops(
    tree: &Tree,
    found: &Found,
    torch: Option<&Package>,
    env: &BTreeMap<String, String>,
) -> Vec<CustomOps> {
    let mut libraries = Vec::new();
    let mut look = |folder: PathBuf, precompiled: bool| {
        let names = tree.names(&folder).into_iter();
        for name in names.filter(|name| is_library(name)) {
            let device = device_of(&name, torch).to_owned();
            let path = folder.join(name).display().to_string();
            libraries.push(CustomOps { path, device, precompiled });
        }
    };
    if let Some(folder) = first(tree, &found.site_packages, "quark/onnx/operators/custom_ops") {
        look(folder.join("lib"), true);
        look(folder, true);
    }
    let tag = torch.and_then(|torch| torch.accelerator.as_deref());
    for folder in extension_folders(tree, found, tag, env) {
        look(folder.join("custom_ops"), false);
        look(folder.join("quark_custom_ops_stable_abi"), false);
    }
    libraries
}

/// Where PyTorch keeps what it compiles: the folder in `TORCH_EXTENSIONS_DIR`, or one in the cache for each
/// version of Python and of CUDA, such as `py312_cu128`. Builds for ROCm share `py312_cpu` with those for the
/// CPU.
fn extension_folders(
    tree: &Tree,
    found: &Found,
    tag: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    if let Some(folder) = env.get("TORCH_EXTENSIONS_DIR") {
        return vec![PathBuf::from(folder)];
    }
    let cache = env.get("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| env.get("HOME").map(|home| Path::new(home).join(".cache")));
    let (Some(cache), Some(version)) = (cache, &found.interpreter.version) else {
        return Vec::new();
    };
    let base = cache.join("torch_extensions");
    let python = format!("py{}_", minor_of(version).replace('.', ""));
    let fits = |build: &str| match tag {
        Some(tag) if tag.starts_with("cu") => build == tag,
        Some(_) => !build.starts_with("cu"),
        None => true,
    };
    let names = tree.names(&base).into_iter();
    names
        .filter(|name| name.strip_prefix(&python).is_some_and(fits))
        .map(|name| base.join(name))
        .collect()
}

fn is_library(name: &str) -> bool {
    let known = ["libcustom_ops", "custom_ops", "quark_custom_ops_stable_abi", "_C.", "_C_cpu."];
    let ends = [".so", ".pyd", ".dll"];
    known.iter().any(|start| name.starts_with(start))
        && ends.iter().any(|end| name.ends_with(end))
        // For tests of Quark itself.
        && !name.contains("torch_legacy")
}

/// The device that a library is for. One without a mark is for whatever PyTorch was built for.
fn device_of(name: &str, torch: Option<&Package>) -> &'static str {
    let gpu_build =
        torch.and_then(|torch| torch.accelerator.as_deref()).is_some_and(|tag| tag != "cpu");
    if name.starts_with("_C_cpu") {
        "cpu"
    } else if name.starts_with("_C") || name.starts_with("quark_custom_ops") {
        if gpu_build { "gpu" } else { "cpu" }
    } else if name.contains("_gpu") {
        "gpu"
    } else {
        "cpu"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_onnxruntime_are_told_from_what_stands_beside_it() {
        let check = |name: &str, expected: bool| {
            assert_eq!(is_onnxruntime(&normalized(name)), expected, "{name}");
        };
        check("onnxruntime", true);
        check("onnxruntime_gpu", true);
        check("onnxruntime_rocm", true);
        check("onnxruntime-vitisai", true);
        check("onnxruntime_extensions", false);
        check("onnxruntime_genai_cuda", false);
        check("onnx", false);
    }
}

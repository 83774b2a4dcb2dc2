//! CUDA and ROCm as they are installed, and the compilers on `PATH`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{facts::machine::Toolkit, probe::tree::Tree};

/// What compiling Quark's custom ops and kernels takes.
const COMPILERS: &[&str] = &["c++", "cl", "clang++", "g++", "hipcc", "ninja", "nvcc"];

/// CUDA toolkits; the one that would be taken comes first.
pub fn cuda(tree: &Tree, env: &BTreeMap<String, String>) -> Vec<Toolkit> {
    let named = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| env.get(*name));
    found(tree, named, "/usr/local", "cuda", |folder| {
        let json = tree.text(format!("{folder}/version.json"));
        let json = json.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        let version = json.and_then(|json| Some(json["cuda"]["version"].as_str()?.to_owned()));
        version.or_else(|| {
            let line = tree.line(format!("{folder}/version.txt"))?;
            Some(line.strip_prefix("CUDA Version ")?.trim().to_owned())
        })
    })
}

/// Installations of ROCm; the one that would be taken comes first.
pub fn rocm(tree: &Tree, env: &BTreeMap<String, String>) -> Vec<Toolkit> {
    let named = ["ROCM_PATH", "ROCM_HOME"].iter().filter_map(|name| env.get(*name));
    found(tree, named, "/opt", "rocm", |folder| {
        let line = tree.line(format!("{folder}/.info/version"))?;
        // Behind the dash stands the number of the build.
        line.split('-').next().map(str::to_owned)
    })
}

/// Toolkits in the named folders, in `<parent>/<name>` and in `<parent>/<name>-*`, each once.
fn found<'a>(
    tree: &Tree,
    named: impl Iterator<Item = &'a String>,
    parent: &str,
    name: &str,
    version: impl Fn(&str) -> Option<String>,
) -> Vec<Toolkit> {
    let numbered = tree.names(parent).into_iter().filter(|entry| entry.starts_with(name)).rev();
    let usual = std::iter::once(name.to_owned()).chain(numbered);
    let usual = usual.map(|entry| format!("{parent}/{entry}"));
    let mut seen = BTreeSet::new();
    named
        .cloned()
        .chain(usual)
        .filter(|folder| tree.resolve(Path::new(folder)).is_some_and(|real| seen.insert(real)))
        .filter_map(|path| Some(Toolkit { version: Some(version(&path)?), path }))
        .collect()
}

/// Compilers and build tools on `PATH`.
pub fn compilers(tree: &Tree, path: &[PathBuf]) -> BTreeMap<String, String> {
    COMPILERS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), on_path(tree, path, name)?)))
        .collect()
}

/// Where a program is.
fn on_path(tree: &Tree, path: &[PathBuf], name: &str) -> Option<String> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    path.iter()
        .map(|folder| folder.join(&file))
        .find(|place| tree.is_file(place))
        .map(|place| place.display().to_string())
}

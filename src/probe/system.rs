//! Operating system, container, processor and main memory.

use std::collections::BTreeMap;

use crate::{
    facts::{Environment, machine::Cpu},
    probe::tree::Tree,
};

/// Instruction sets that matter for low precision, as Linux spells them.
const FLAGS: &[&str] = &[
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "avx_vnni",
    "avx_vnni_int8",
    "amx_bf16",
    "amx_int8",
    "amx_tile",
    "asimddp",
    "bf16",
    "i8mm",
    "sve",
];

/// Operating system and container.
pub fn environment(tree: &Tree, env: &BTreeMap<String, String>) -> Environment {
    let version = tree.line("/proc/version");
    let os_release = os_release(tree);
    let os = if version.is_some() || os_release.is_some() {
        "linux"
    } else if tree.is_here() {
        std::env::consts::OS
    } else {
        "unknown"
    };
    let kernel = version.as_deref().and_then(|line| line.strip_prefix("Linux version "));
    let kernel = kernel.and_then(|line| line.split_whitespace().next()).map(str::to_owned);
    let wsl = version.as_deref().is_some_and(|line| line.to_lowercase().contains("microsoft"));
    let container = container(tree, env);
    Environment {
        os: Some(os.to_owned()),
        os_release,
        kernel,
        wsl: wsl.then_some(true),
        containerized: Some(container.is_some()),
        container_runtime: container,
        ..Environment::default()
    }
}

fn os_release(tree: &Tree) -> Option<String> {
    let text = tree.text("/etc/os-release").or_else(|| tree.text("/usr/lib/os-release"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// The container runtime, when this is a container.
fn container(tree: &Tree, env: &BTreeMap<String, String>) -> Option<String> {
    // More telling signs come first: Kubernetes leaves the marks of its runtime too.
    if env.contains_key("KUBERNETES_SERVICE_HOST") {
        return Some("kubernetes".to_owned());
    }
    if let Some(text) = tree.text("/run/.containerenv") {
        let engine = text.lines().find_map(|line| line.strip_prefix("engine="));
        let engine = engine.map(|engine| engine.trim_matches('"'));
        let name =
            engine.and_then(|engine| engine.split('-').next()).filter(|name| !name.is_empty());
        return Some(name.unwrap_or("podman").to_owned());
    }
    let cgroup = tree.text("/proc/1/cgroup").unwrap_or_default();
    let signs = [
        ("kubepods", "kubernetes"),
        ("libpod", "podman"),
        ("docker", "docker"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
    ];
    if let Some((_, name)) = signs.iter().find(|(sign, _)| cgroup.contains(sign)) {
        return Some((*name).to_owned());
    }
    if tree.exists("/.dockerenv") {
        return Some("docker".to_owned());
    }
    if tree.exists("/.singularity.d") {
        return Some("apptainer".to_owned());
    }
    // systemd and Podman name the runtime for the processes inside.
    let named = tree.line("/run/systemd/container").or_else(|| env.get("container").cloned())?;
    // WSL calls itself a container of systemd's.
    (!named.is_empty() && named != "wsl").then_some(named)
}

/// The main processor.
pub fn cpu(tree: &Tree) -> Option<Cpu> {
    let text = tree.text("/proc/cpuinfo")?;
    // Hundreds of processors repeat the same lines, so the first one speaks for all.
    let (first, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let value = |name: &str| {
        let lines = first.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(key, _)| key.trim() == name).map(|(_, v)| v.trim());
        values.next().filter(|value| !value.is_empty())
    };
    let x86 = value("flags");
    let words = x86.or_else(|| value("Features"));
    let has = |flag: &str| words.is_some_and(|words| words.split_whitespace().any(|w| w == flag));
    let architecture = match (x86, value("CPU architecture")) {
        (Some(_), _) => Some(if has("lm") { "x86_64" } else { "x86" }),
        (None, Some("8")) => Some("aarch64"),
        _ => None,
    };
    let listed = || text.lines().filter(|line| line.starts_with("processor")).count() as u64;
    let threads = tree
        .line("/sys/devices/system/cpu/online")
        .and_then(|list| processors(&list))
        .unwrap_or_else(listed);
    let number = |name: &str| value(name).and_then(|text| text.parse::<u64>().ok());
    let cores = match (number("cpu cores"), number("siblings")) {
        (Some(cores), Some(siblings)) if siblings > 0 => Some(threads * cores / siblings),
        _ => None,
    };
    Some(Cpu {
        architecture: architecture.map(str::to_owned),
        vendor: value("vendor_id").map(str::to_owned),
        model: value("model name").map(str::to_owned),
        cores: cores.filter(|cores| *cores > 0),
        threads: (threads > 0).then_some(threads),
        flags: words.map(|_| FLAGS.iter().filter(|f| has(f)).map(|f| (*f).to_owned()).collect()),
    })
}

/// How many processors a list such as `0-15,32` names.
fn processors(list: &str) -> Option<u64> {
    let mut count = 0_u64;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

/// Main memory in GiB.
pub fn memory(tree: &Tree) -> Option<f64> {
    let text = tree.text("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(gibibytes(kibibytes.saturating_mul(1024)))
}

/// Bytes in GiB, to one decimal.
pub fn gibibytes(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 30) * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_counted() {
        let check = |list: &str, expected: Option<u64>| {
            assert_eq!(processors(list), expected, "{list}");
        };
        check("0", Some(1));
        check("0-15,32", Some(17));
        check("3-1", None);
        check("0-18446744073709551615", None);
        check("", None);
    }
}

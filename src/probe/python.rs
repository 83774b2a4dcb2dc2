//! Python interpreters: where they are, which version, which environment they belong to.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    facts::machine::Interpreter,
    probe::{Root, tree::Tree},
};

/// The most interpreters that are looked at.
const MOST: usize = 32;

/// An interpreter and where its packages are.
#[derive(Debug)]
pub struct Found {
    /// The interpreter.
    pub interpreter: Interpreter,
    /// Folders of packages, in the order in which Python looks.
    pub site_packages: Vec<PathBuf>,
}

/// Interpreters in the order in which they would be taken: the one asked for, the active environment, `PATH`.
pub fn find(tree: &Tree, root: &Root) -> Vec<Found> {
    let env = |name: &str| root.env.get(name).map(PathBuf::from);
    let of_environment = |prefix: PathBuf| {
        if cfg!(windows) {
            [prefix.join("Scripts/python.exe"), prefix.join("python.exe")].to_vec()
        } else {
            [prefix.join("bin/python3"), prefix.join("bin/python")].to_vec()
        }
    };
    let active = env("VIRTUAL_ENV").into_iter().chain(env("CONDA_PREFIX")).flat_map(of_environment);
    let names: &[&str] =
        if cfg!(windows) { &["python.exe", "python3.exe"] } else { &["python3", "python"] };
    let on_path = root.path.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let mut found: Vec<Found> = Vec::new();
    for place in root.python.iter().cloned().chain(active).chain(on_path) {
        let Some(one) = interpreter(tree, root, &place) else { continue };
        let same = |other: &Found| other.interpreter.prefix == one.interpreter.prefix;
        // `python` beside `python3`, or `/bin` beside `/usr/bin`.
        if !found.iter().any(same) {
            found.push(one);
        }
        if found.len() == MOST {
            break;
        }
    }
    found
}

fn interpreter(tree: &Tree, root: &Root, place: &Path) -> Option<Found> {
    if !tree.is_file(place) {
        return None;
    }
    let place = started(tree, root, place)?;
    let folder = place.parent()?;
    let real = tree.resolve(&place)?;
    // Like Python itself, which looks beside the link and not beside what it points to.
    let configured = [folder.parent(), Some(folder)]
        .into_iter()
        .flatten()
        .find_map(|prefix| Some((prefix, tree.text(prefix.join("pyvenv.cfg"))?)));
    let base = installed_at(&real)?;
    let minor = minor_version(tree, &real, &base);
    let mut site_packages = Vec::new();
    let (prefix, kind, version) = match configured {
        Some((prefix, text)) => {
            let settings = settings(&text);
            let version = ["version", "version_info"].iter().find_map(|key| settings.get(*key));
            let version = version.map(|version| numbers(version)).or(minor);
            site_packages.extend(own_packages(tree, prefix, version.as_deref()));
            if settings.get("include-system-site-packages").is_some_and(|value| value == "true") {
                site_packages.extend(shared_packages(tree, root, &base, version.as_deref()));
            }
            (prefix.to_path_buf(), "venv", version)
        }
        None => {
            let (kind, whole) = kind_and_version(tree, &base, minor.as_deref());
            site_packages = shared_packages(tree, root, &base, minor.as_deref());
            (base, kind, whole.or(minor))
        }
    };
    let interpreter = Interpreter {
        path: place.display().to_string(),
        version,
        prefix: prefix.display().to_string(),
        kind: kind.to_owned(),
    };
    Some(Found { interpreter, site_packages })
}

/// What a program starts: itself, or for a shim of pyenv, `<root>/shims/python3`, the interpreter
/// `<root>/versions/<version>/bin/python3`.
fn started(tree: &Tree, root: &Root, place: &Path) -> Option<PathBuf> {
    let folder = place.parent()?;
    if !folder.ends_with("shims") {
        return Some(place.to_path_buf());
    }
    let pyenv = folder.parent()?;
    let version = match root.env.get("PYENV_VERSION") {
        Some(version) => version.split(':').next()?.to_owned(),
        None => tree.line(pyenv.join("version"))?,
    };
    let real = pyenv.join("versions").join(version).join("bin").join(place.file_name()?);
    tree.is_file(&real).then_some(real)
}

/// Where an interpreter is installed: the folder above its `bin`; on Windows the folder that it is in.
fn installed_at(real: &Path) -> Option<PathBuf> {
    let folder = real.parent()?;
    let base = if folder.file_name().is_some_and(|name| name == "bin") {
        folder.parent()?
    } else {
        folder
    };
    // `/bin` is `/usr/bin` on systems of today.
    Some(if base == Path::new("/") { PathBuf::from("/usr") } else { base.to_path_buf() })
}

/// `3.11` by the name `python3.11`, or by the only `lib/python3.*` that holds a standard library.
fn minor_version(tree: &Tree, real: &Path, base: &Path) -> Option<String> {
    let named = real.file_name()?.to_str()?.strip_prefix("python").unwrap_or_default();
    if named.contains('.') && named.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Some(named.to_owned());
    }
    let library = |name: &String| tree.is_file(base.join("lib").join(name).join("os.py"));
    let mut libraries = tree
        .names(base.join("lib"))
        .into_iter()
        .filter(|name| name.starts_with("python3.") && library(name));
    let only = libraries.next()?;
    if libraries.next().is_some() {
        return None;
    }
    only.strip_prefix("python").map(str::to_owned)
}

/// The kind of an installation, and its whole version where a file holds it.
fn kind_and_version(
    tree: &Tree,
    base: &Path,
    minor: Option<&str>,
) -> (&'static str, Option<String>) {
    let records = tree.names(base.join("conda-meta"));
    if !records.is_empty() {
        // `python-3.11.7-h955ad1f_0.json`; `python-dateutil-…` begins so too.
        let version = records.iter().find_map(|record| {
            let version = record.strip_prefix("python-")?.split('-').next()?;
            version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
        });
        return ("conda", version);
    }
    if base.parent().is_some_and(|parent| parent.ends_with("versions"))
        && let Some(name) = base.file_name().and_then(|name| name.to_str())
        && name.starts_with(|c: char| c.is_ascii_digit())
    {
        return ("pyenv", Some(name.to_owned()));
    }
    let header = minor.and_then(|minor| {
        let text = tree.text(base.join(format!("include/python{minor}/patchlevel.h")))?;
        let line = text.lines().find(|line| line.contains("define PY_VERSION "))?;
        Some(line.split('"').nth(1)?.to_owned())
    });
    ("system", header)
}

/// Where an environment keeps its own packages.
fn own_packages(tree: &Tree, prefix: &Path, version: Option<&str>) -> Vec<PathBuf> {
    let python = match version {
        Some(version) => format!("python{}", minor_of(version)),
        None => String::new(),
    };
    ["lib", "lib64"]
        .iter()
        .map(|lib| prefix.join(lib).join(&python).join("site-packages"))
        // Windows has one folder for its only version.
        .chain([prefix.join("Lib").join("site-packages")])
        .filter(|folder| tree.exists(folder))
        .collect()
}

/// Where an installation keeps packages, those of the user first.
fn shared_packages(tree: &Tree, root: &Root, base: &Path, version: Option<&str>) -> Vec<PathBuf> {
    let user = root.env.get("HOME").map(|home| Path::new(home).join(".local"));
    let mut folders: Vec<PathBuf> =
        user.into_iter().flat_map(|user| own_packages(tree, &user, version)).collect();
    folders.extend(own_packages(tree, base, version));
    if base == Path::new("/usr") {
        // Debian has its own names for what pip and what the distribution installs.
        if let Some(version) = version {
            let minor = minor_of(version);
            folders.push(format!("/usr/local/lib/python{minor}/dist-packages").into());
        }
        folders.push("/usr/lib/python3/dist-packages".into());
    }
    folders
}

/// `3.11` of `3.11.7`.
pub fn minor_of(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// `3.11.7` of `3.11.7.final.0`.
fn numbers(version: &str) -> String {
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    version.split('.').take_while(digits).take(3).collect::<Vec<_>>().join(".")
}

/// The lines `key = value` of a `pyvenv.cfg`, in lower case.
fn settings(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim().to_lowercase(), value.trim().to_lowercase()))
        .collect()
}

//! Reading below a root: bounded, and never an error. What cannot be read is not known.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::Read,
    path::{Component, Path, PathBuf},
};

/// The most bytes that are read of a file.
const MOST_BYTES: u64 = 256 * 1024;

/// The most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 20_000;

/// The most links that are followed on the way to a file.
const MOST_LINKS: usize = 40;

/// The files below a root. Paths are those that a process with this root would use, and links stay below it.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The files below a folder.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Whether these are the files of this very machine.
    pub fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The text of a file, its first 256 KiB.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let place = self.place(path.as_ref())?;
        // A pipe or a device could block for ever.
        if !fs::metadata(&place).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(&place).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text of a file of one line, trimmed; `None` when there is nothing in it.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        // Device trees end their strings with a zero.
        let line = text.lines().next()?.trim_end_matches('\0').trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The names in a folder, sorted; empty when it cannot be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = self.place(path.as_ref()).and_then(|place| fs::read_dir(place).ok());
        let mut names: Vec<String> = entries
            .into_iter()
            .flatten()
            .take(MOST_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Whether there is anything at a path.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.place(path.as_ref()).is_some_and(|place| place.exists())
    }

    /// Whether there is a file at a path.
    pub fn is_file(&self, path: impl AsRef<Path>) -> bool {
        self.place(path.as_ref()).is_some_and(|place| place.is_file())
    }

    /// A path without links; `None` when it ends nowhere or runs in circles.
    pub fn resolve(&self, path: &Path) -> Option<PathBuf> {
        if cfg!(windows) {
            return path.exists().then(|| path.to_path_buf());
        }
        let mut pending = parts(path);
        let mut done = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = pending.pop_front() {
            if part == OsStr::new("..") {
                done.pop();
                continue;
            }
            let next = done.join(&part);
            let Ok(target) = fs::read_link(self.below(&next)) else {
                done = next;
                continue;
            };
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            if target.has_root() {
                done = PathBuf::from("/");
            }
            for part in parts(&target).into_iter().rev() {
                pending.push_front(part);
            }
        }
        self.below(&done).exists().then_some(done)
    }

    fn place(&self, path: &Path) -> Option<PathBuf> {
        if self.is_here() {
            Some(path.to_path_buf())
        } else {
            Some(self.below(&self.resolve(path)?))
        }
    }

    fn below(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// The parts of a path, but for its root.
fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_below_the_root_and_loops_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/real"), "text\n").unwrap();
        symlink("/usr/bin/real", root.join("usr/bin/absolute")).unwrap();
        symlink("../../../../../usr/bin/real", root.join("usr/bin/upward")).unwrap();
        symlink("loop", root.join("usr/bin/loop")).unwrap();
        symlink("/etc/passwd", root.join("usr/bin/outside")).unwrap();
        let tree = Tree::new(root);
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(tree.line(path).as_deref(), expected, "{path}");
        };
        check("/usr/bin/real", Some("text"));
        check("/usr/bin/absolute", Some("text"));
        check("/usr/bin/upward", Some("text"));
        check("/usr/bin/loop", None);
        check("/usr/bin/outside", None);
        check("/usr/bin", None);
        check("/nowhere", None);
        assert_eq!(tree.resolve(Path::new("/usr/bin/absolute")), Some("/usr/bin/real".into()));
        assert_eq!(tree.resolve(Path::new("/usr/bin/loop")), None);
    }
}

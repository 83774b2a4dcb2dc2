//! A place to write to: inside the allowed roots, and not through a symlink.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    path::{Component, Path, PathBuf},
};

use tracing::trace;

use crate::{emit::Overwrite, plan::quant_plan::AssembleError};

/// How the name of a file ends that is not complete yet.
const TEMPORARY: &str = ".tmp";

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// Not in a folder that may be written to.
    #[error("`{path}` is outside the folders that may be written to")]
    OutsideRoots {
        /// The path that was asked for.
        path: String,
        /// The folders.
        roots: Vec<PathBuf>,
    },
    /// A link.
    #[error("`{path}` is a symbolic link")]
    Symlink {
        /// Which.
        path: String,
    },
    /// A folder, or no file name at all.
    #[error("`{path}` is not the path of a file")]
    NotAFile {
        /// Which.
        path: String,
    },
    /// Another file is there.
    #[error("`{path}` exists already and holds something else")]
    Exists {
        /// Which.
        path: String,
    },
    /// What is there is no earlier one of the same kind: a model, a config, another artefact.
    #[error("`{path}` is something else than an earlier file of this kind, and is not replaced")]
    OtherKind {
        /// Which.
        path: String,
    },
    /// The file system.
    #[error("`{path}` cannot be written")]
    Io {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The draft.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
}

/// Artefacts are smaller, in bytes.
const LARGEST: u64 = 64 << 20;

/// The field that tells what kind of artefact a text is; `None` for everything else.
fn kind_of(text: &[u8]) -> Option<&'static str> {
    const TELLING: [&str; 3] = ["requires_confirmation", "analysis_status", "environment"];
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(text).ok()?;
    TELLING.into_iter().find(|field| fields.contains_key(*field))
}

/// Gives a file a name that no file has.
///
/// A hard link fails when the name is taken, so nothing that appeared meanwhile is lost. FAT and some network
/// file systems have no links; there the name is looked at first, and only the moment in between is open.
fn place(temporary: &Path, path: &Path) -> io::Result<()> {
    use io::ErrorKind::{AlreadyExists, PermissionDenied, Unsupported};
    match fs::hard_link(temporary, path) {
        Err(error) if matches!(error.kind(), PermissionDenied | Unsupported) => {
            match fs::symlink_metadata(path) {
                Ok(_) => Err(AlreadyExists.into()),
                Err(_) => fs::rename(temporary, path),
            }
        }
        linked => linked,
    }
}

/// A file that may be written, by its resolved folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    folder: PathBuf,
    missing: Vec<OsString>,
    name: OsString,
}

impl Destination {
    /// Resolves a path (relative to `base`) and checks it against the roots.
    ///
    /// Folders that do not exist yet are made when the file is written, inside a root only.
    ///
    /// # Errors
    ///
    /// When it leaves the roots, is a link or a folder, or the file system refuses.
    pub fn resolve(path: &Path, base: &Path, roots: &[PathBuf]) -> Result<Self, EmitError> {
        let shown = || path.display().to_string();
        let io_error = |source| EmitError::Io { path: shown(), source };
        let whole = base.join(path);
        if whole.is_dir() {
            return Err(EmitError::NotAFile { path: shown() });
        }
        let (Some(name), Some(parent)) = (whole.file_name(), whole.parent()) else {
            return Err(EmitError::NotAFile { path: shown() });
        };
        let mut existing = parent.to_path_buf();
        let mut missing = Vec::new();
        while fs::symlink_metadata(&existing).is_err() {
            // A `..` behind a folder that does not exist means nothing.
            let Some(Component::Normal(last)) = existing.components().next_back() else {
                return Err(io_error(io::Error::from(io::ErrorKind::NotFound)));
            };
            missing.push(last.to_owned());
            if !existing.pop() {
                return Err(io_error(io::Error::from(io::ErrorKind::NotFound)));
            }
        }
        missing.reverse();
        let folder = existing.canonicalize().map_err(io_error)?;
        let inside = roots
            .iter()
            .filter_map(|root| root.canonicalize().ok())
            .any(|root| folder.starts_with(root));
        if !inside {
            return Err(EmitError::OutsideRoots { path: shown(), roots: roots.to_vec() });
        }
        if missing.is_empty() {
            match fs::symlink_metadata(folder.join(name)) {
                Ok(found) if found.is_symlink() => {
                    return Err(EmitError::Symlink { path: shown() });
                }
                Ok(found) if !found.is_file() => return Err(EmitError::NotAFile { path: shown() }),
                _ => {}
            }
        }
        Ok(Self { folder, missing, name: name.to_owned() })
    }

    /// The whole path.
    pub fn path(&self) -> PathBuf {
        self.parent().join(&self.name)
    }

    /// The folder that it lies in.
    pub fn parent(&self) -> PathBuf {
        let mut folder = self.folder.clone();
        folder.extend(&self.missing);
        folder
    }

    /// A file of another name in the same folder.
    pub fn sibling(&self, name: impl Into<OsString>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Writes the file: a new one, synced, then moved into place.
    ///
    /// # Errors
    ///
    /// When another file is there and `overwrite` was not asked for, or the file system refuses.
    pub fn write(&self, bytes: &[u8], overwrite: Overwrite) -> Result<(), EmitError> {
        let path = self.path();
        let io_error = |source| EmitError::Io { path: path.display().to_string(), source };
        self.sweep();
        if self.holds(bytes) {
            trace!(?path, "the file is there");
            return Ok(());
        }
        if overwrite == Overwrite::Yes && !self.is_replaceable_by(bytes) {
            return Err(EmitError::OtherKind { path: path.display().to_string() });
        }
        let parent = self.parent();
        fs::create_dir_all(&parent).map_err(io_error)?;
        let (temporary, mut file) = self.temporary().map_err(io_error)?;
        let moved = fill(&mut file, bytes).and_then(|()| match overwrite {
            Overwrite::Yes => fs::rename(&temporary, &path),
            Overwrite::No => place(&temporary, &path),
        });
        trace!(?path, "moved into place");
        let _ = fs::remove_file(&temporary);
        trace!(?temporary, "temporary file removed");
        match moved {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !self.holds(bytes) {
                    return Err(EmitError::Exists { path: path.display().to_string() });
                }
            }
            Err(error) => return Err(io_error(error)),
        }
        // The name itself must survive a power cut too; not every file system can do it.
        if let Ok(folder) = File::open(&parent) {
            let _ = folder.sync_all();
        }
        trace!(?parent, "folder synced");
        Ok(())
    }

    /// Whether nothing is there, or an artefact of the same kind as `bytes`.
    fn is_replaceable_by(&self, bytes: &[u8]) -> bool {
        let path = self.path();
        match fs::symlink_metadata(&path) {
            Err(_) => true,
            Ok(found) if found.len() == 0 => true,
            Ok(found) if found.len() > LARGEST => false,
            Ok(_) => fs::read(&path).is_ok_and(|there| {
                kind_of(&there).is_some_and(|kind| kind_of(bytes) == Some(kind))
            }),
        }
    }

    /// Whether the file is there and holds just these bytes.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let path = self.path();
        fs::symlink_metadata(&path)
            .is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
            && fs::read(&path).is_ok_and(|found| found == bytes)
    }

    /// A new file beside the destination, locked as long as it is open.
    fn temporary(&self) -> io::Result<(PathBuf, File)> {
        loop {
            let mut number = [0_u8; 8];
            getrandom::fill(&mut number).map_err(io::Error::other)?;
            let mut name = self.temporary_prefix();
            name.push(format!("{:016x}{TEMPORARY}", u64::from_ne_bytes(number)));
            let path = self.parent().join(name);
            let file = File::create_new(&path)?;
            // Not every file system has locks; where there are none, nothing is swept either.
            let _ = file.lock();
            // Another process may have swept it before it was locked.
            if path.exists() {
                trace!(?path, "temporary file created");
                return Ok((path, file));
            }
        }
    }

    fn temporary_prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(&self.name);
        prefix.push(".");
        prefix
    }

    /// Removes the temporary files of writers that died; the file of a living one is locked.
    fn sweep(&self) {
        let prefix = self.temporary_prefix();
        for entry in fs::read_dir(self.parent()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name
                .as_encoded_bytes()
                .strip_prefix(prefix.as_encoded_bytes())
                .and_then(|rest| rest.strip_suffix(TEMPORARY.as_bytes()));
            let is_temporary = number
                .is_some_and(|n| n.len() == 16 && n.iter().all(u8::is_ascii_hexdigit))
                && entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_temporary
                && let Ok(file) = File::open(entry.path())
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    trace!("temporary file written");
    file.sync_all()?;
    trace!("temporary file synced");
    Ok(())
}

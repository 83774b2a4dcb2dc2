//! A place to write to: inside the allowed roots, and not through a symlink.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    path::{Component, Path, PathBuf},
};

use crate::{emit::Overwrite, plan::quant_plan::AssembleError};

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
        if self.holds(bytes) {
            return Ok(());
        }
        let parent = self.parent();
        fs::create_dir_all(&parent).map_err(io_error)?;
        let mut hidden = OsString::from(".");
        hidden.push(&self.name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = parent.join(hidden);
        let moved = write_new(&temporary, bytes).and_then(|()| match overwrite {
            Overwrite::Yes => fs::rename(&temporary, &path),
            // A hard link fails when the name is taken, so nothing that appeared meanwhile is lost.
            Overwrite::No => fs::hard_link(&temporary, &path),
        });
        let _ = fs::remove_file(&temporary);
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
        Ok(())
    }

    /// Whether the file is there and holds just these bytes.
    fn holds(&self, bytes: &[u8]) -> bool {
        let path = self.path();
        fs::symlink_metadata(&path)
            .is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64)
            && fs::read(&path).is_ok_and(|found| found == bytes)
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // What a process of the same number left behind when it died.
    let _ = fs::remove_file(path);
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

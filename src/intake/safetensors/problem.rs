//! What may be wrong with the files of a model, taken together.

use thiserror::Error;

use crate::intake::escape;
use crate::intake::safetensors::Defect;

/// What is wrong with the files of a model.
#[derive(Debug, Error)]
pub enum Problem {
    /// A file that is not there.
    #[error("`{}` is missing", escape(file))]
    Missing {
        /// The file.
        file: String,
    },
    /// A Git LFS pointer in place of the file.
    #[error("`{}` is a Git LFS pointer, not the file itself", escape(file))]
    Pointer {
        /// The file.
        file: String,
    },
    /// A name that is no plain name of a file in the folder.
    #[error("the index names `{}`, which is not in the folder of the model", escape(file))]
    Outside {
        /// The name.
        file: String,
    },
    /// A header that cannot be read.
    #[error("`{}` cannot be used: {defect}", escape(file))]
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong.
        defect: Defect,
    },
    /// Faults of a header that was read.
    #[error("`{}` is not well-formed: {first}{}", escape(file), more(*count))]
    Malformed {
        /// The file.
        file: String,
        /// The first fault.
        first: Defect,
        /// How many there are.
        count: usize,
        /// Whether data are missing.
        cut_off: bool,
    },
    /// An index that cannot be read.
    #[error("the index `{}` cannot be read: {}", escape(file), broken_index(defect.as_ref()))]
    Index {
        /// The file.
        file: String,
        /// What is wrong, when it is not the JSON.
        defect: Option<Defect>,
    },
    /// Tensors that the index places in a file that does not have them.
    #[error(
        "the index places {count} tensors where they are not, for example `{}` in `{}`",
        escape(tensor),
        escape(file)
    )]
    NotInShard {
        /// How many.
        count: usize,
        /// The first.
        tensor: String,
        /// Where it should be.
        file: String,
    },
    /// Tensors that the index does not list.
    #[error("the index does not list {count} tensors, for example `{}`", escape(tensor))]
    NotInIndex {
        /// How many.
        count: usize,
        /// The first.
        tensor: String,
    },
    /// One tensor in two files.
    #[error(
        "{count} tensors are in two files, for example `{}` in `{}` and `{}`",
        escape(tensor),
        escape(first),
        escape(second)
    )]
    InTwoFiles {
        /// How many.
        count: usize,
        /// The first.
        tensor: String,
        /// The file read first.
        first: String,
        /// The other.
        second: String,
    },
}

fn more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        n => format!(" (and {} more faults)", n - 1),
    }
}

fn broken_index(defect: Option<&Defect>) -> String {
    defect.map_or_else(|| "it is no JSON with a weight_map".to_owned(), ToString::to_string)
}

impl Problem {
    /// The file that cannot be used because of it.
    pub fn unusable_file(&self) -> Option<&String> {
        match self {
            Self::Missing { file }
            | Self::Pointer { file }
            | Self::Outside { file }
            | Self::Unreadable { file, .. }
            | Self::Malformed { file, cut_off: true, .. } => Some(file),
            _ => None,
        }
    }

    /// Whether it is a limit of this reader rather than a fault of the files.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Unreadable { defect, .. } if defect.is_limit())
    }

    /// Whether tensors are missing, so that what was read is not the whole model.
    pub fn is_loss(&self) -> bool {
        self.unusable_file().is_some() || matches!(self, Self::NotInShard { .. })
    }
}

//! What can be wrong with the bytes of a model, with its place.

use std::io;

use thiserror::Error;

/// What is wrong with the bytes of a model.
#[derive(Debug, Error)]
pub enum Defect {
    /// A field that does not fit into what holds it.
    #[error("field {field} of `{message}` ends at byte {end}, {holder} at {limit}")]
    PastEnd {
        /// The message.
        message: &'static str,
        /// The field's number.
        field: u64,
        /// Where it says that it ends.
        end: u64,
        /// `the file` or `the message`.
        holder: &'static str,
        /// Where that ends.
        limit: u64,
    },
    /// A varint that is cut off or longer than ten bytes.
    #[error("`{message}` has a broken varint at byte {offset}")]
    Varint {
        /// The message.
        message: &'static str,
        /// Where the varint starts.
        offset: u64,
    },
    /// A tag with a field number or a wire type that ONNX does not use.
    #[error("`{message}` has a broken tag {tag} at byte {offset}")]
    Tag {
        /// The message.
        message: &'static str,
        /// The tag.
        tag: u64,
        /// Where it stands.
        offset: u64,
    },
    /// A known field with a value of another kind.
    #[error("field {field} of `{message}` at byte {offset} is {found}, not {wanted}")]
    Kind {
        /// The message.
        message: &'static str,
        /// The field's number.
        field: u64,
        /// Where its value starts.
        offset: u64,
        /// What is there.
        found: &'static str,
        /// What has to be there.
        wanted: &'static str,
    },
    /// A model without a graph.
    #[error("`ModelProto` has no graph")]
    NoGraph,
    /// A model that does not say which operators it means.
    #[error("`ModelProto` imports no operator set")]
    NoOpset,
    /// Graphs nested too deeply.
    #[error("graphs nest deeper than {limit} levels at byte {offset}")]
    TooDeep {
        /// The limit.
        limit: u32,
        /// Where the first graph that is too deep starts.
        offset: u64,
    },
    /// A text too long to be a name.
    #[error(
        "field {field} of `{message}` at byte {offset} is a text of {length} bytes, over {limit}"
    )]
    TooLong {
        /// The message.
        message: &'static str,
        /// The field's number.
        field: u64,
        /// Where the text starts.
        offset: u64,
        /// Its length.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// More to read than the limits allow.
    #[error("more than {limit} bytes of structure, reached at byte {offset}")]
    TooMuchWork {
        /// The limit.
        limit: u64,
        /// How far the reader came.
        offset: u64,
    },
    /// More to keep than the limits allow.
    #[error("the structure needs more than {limit} bytes of memory, reached at byte {offset}")]
    TooMuchMemory {
        /// The limit.
        limit: u64,
        /// How far the reader came.
        offset: u64,
    },
    /// The file could not be read.
    #[error("reading stopped at byte {offset}")]
    Io {
        /// How far the reader came.
        offset: u64,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl Defect {
    /// Whether the bytes may be fine and only a limit stands in the way.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::TooDeep { .. }
                | Self::TooLong { .. }
                | Self::TooMuchWork { .. }
                | Self::TooMuchMemory { .. }
        )
    }
}

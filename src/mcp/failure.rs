//! What went wrong, as the model that called reads it.

use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, MetaObject},
};
use serde_json::json;

use crate::{planner::error::Error, render::clean};

/// An error with its code and the one thing to do about it.
///
/// A tool result carries it as text: clients check structured results against the output schema even when
/// they are errors, and then throw them away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { code: error.code(), message: error.whole(), hint: error.hint() }
    }
}

impl Failure {
    /// Arguments that do not fit the schema.
    pub(super) fn bad_arguments(message: String, hint: String) -> Self {
        Self { code: "BAD_ARGUMENTS", message, hint }
    }

    /// The client took its request back.
    pub(super) fn call_cancelled() -> Self {
        Self {
            code: "CALL_CANCELLED",
            message: "the client cancelled this call".to_owned(),
            hint: "call again".to_owned(),
        }
    }

    /// A bug of ours.
    pub(super) fn internal(message: &str) -> Self {
        Self {
            code: "INTERNAL",
            message: format!("quantplan failed: {message}"),
            hint: "call again; sessions are safe".to_owned(),
        }
    }

    /// As the result of a tool: `CODE: message` and one hint.
    pub(super) fn into_tool_result(self) -> CallToolResult {
        let Self { code, message, hint } = self;
        let text = format!("{code}: {}\nhint: {}", clean(&message), clean(&hint));
        let mut meta = MetaObject::new();
        meta.insert("quantplan/error".to_owned(), json!({ "code": code }));
        CallToolResult::error(vec![ContentBlock::text(text)]).with_meta(Some(meta))
    }

    /// As the answer to a request that is no tool call.
    pub(super) fn into_protocol_error(self) -> ErrorData {
        let code = match self.code {
            "UNKNOWN_SESSION" | "SESSION_EXPIRED" | "NOT_CONFIRMED" | "UNKNOWN_NAME" => {
                ErrorCode::RESOURCE_NOT_FOUND
            }
            "BAD_ARGUMENTS" => ErrorCode::INVALID_PARAMS,
            _ => ErrorCode::INTERNAL_ERROR,
        };
        let data = json!({ "code": self.code, "hint": clean(&self.hint) });
        ErrorData::new(code, clean(&self.message), Some(data))
    }
}

//! `render_decision_table`: the table that the user must see.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    plan::{Decision, Question, Risk, digest::Digest},
    planner::{Planner, error::Error},
    render::{self, View, html, markdown, terminal},
    session::{Session, event::Event},
    vocab::SessionId,
};

/// Width of the table in forms and tool results, in columns.
pub const FORM_WIDTH: u16 = 100;

/// Arguments of `render_decision_table`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The session.
    pub session_id: SessionId,
    /// The dialect; Markdown when left out.
    #[serde(default)]
    pub format: Format,
}

/// A dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Markdown.
    #[default]
    Markdown,
    /// Plain text.
    Text,
    /// An HTML page.
    Html,
}

/// The answer of `render_decision_table`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// The session.
    pub session_id: SessionId,
    /// The number of the draft.
    pub revision: u64,
    /// The digest of this table; a yes is to this digest only.
    pub digest: Digest,
    /// `presented`, `confirmed` or `emitted`.
    pub state: &'static str,
    /// The table in Markdown. Show it to the user as it is, whole.
    pub table_markdown: String,
    /// The table in the dialect that was asked for, when that is not Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Its rows.
    pub rows: Vec<Decision>,
    /// Its risks, gravest first.
    pub risks: Vec<Risk>,
    /// Its questions.
    pub questions: Vec<Question>,
    /// Whether a yes may be asked for.
    pub confirmable: bool,
    /// The question to the user.
    pub ask: String,
}

impl Planner {
    /// Shows the table of a session; from then on it can be confirmed.
    ///
    /// # Errors
    ///
    /// When there is no such session.
    pub fn show(&self, arguments: &Arguments) -> Result<Reply, Error> {
        let session = self.present(&arguments.session_id)?;
        let view = view_of(&session);
        let table = match arguments.format {
            Format::Markdown => None,
            Format::Text => Some(terminal::render(&view, FORM_WIDTH)),
            Format::Html => Some(html::render(&view)),
        };
        let draft = session.draft();
        Ok(Reply {
            session_id: session.id().clone(),
            revision: session.revision(),
            digest: session.digest(),
            state: session.state(),
            table_markdown: markdown::render(&view),
            table,
            rows: draft.decisions.clone(),
            risks: draft.risks.clone(),
            questions: draft.questions.clone(),
            confirmable: draft.is_confirmable(),
            ask: view.ask,
        })
    }

    /// Notes that the table is on a screen, unless it is already.
    ///
    /// # Errors
    ///
    /// When there is no such session.
    pub fn present(&self, id: &SessionId) -> Result<Session, Error> {
        let (session, log) = self.load(id)?;
        match session {
            Session::Drafted(_) => {
                let event = Event::Presented { digest: session.digest() };
                self.advance(id, &log, &event)
            }
            shown => Ok(shown),
        }
    }
}

/// What a session looks like.
pub fn view_of(session: &Session) -> View {
    render::view(session.draft(), session.id(), session.revision(), &session.digest())
}

//! What is not as it was when a draft was made.

use std::path::Path;

use crate::{
    facts::SessionContext,
    plan::Input,
    planner::{Planner, artefacts::digest_of_file, context, reading::model_input},
    session::Session,
};

impl Planner {
    /// What of the inputs of a session is not as it was.
    pub(super) fn changed_inputs(&self, session: &Session) -> Vec<String> {
        let mut changed = Vec::new();
        if session.draft().catalogue_version != crate::catalogue::VERSION {
            changed.push(format!(
                "the catalogue is version {} now, the draft was reasoned with {}",
                crate::catalogue::VERSION,
                session.draft().catalogue_version
            ));
        }
        changed.extend(self.changed_files(session.inputs(), Some(session)));
        changed
    }

    /// Which of the files that something was derived from are not as they were.
    ///
    /// A router writes to its file at any time, so that one is looked at only for a session, which tells what
    /// of it counts.
    pub(super) fn changed_files(&self, inputs: &[Input], session: Option<&Session>) -> Vec<String> {
        let mut changed = Vec::new();
        for input in inputs {
            let Some(path) = &input.path else { continue };
            let path = Path::new(path);
            let now = match input.role.as_str() {
                "model" => {
                    self.read_model(path).ok().map(|model| model_input(model.analysis()).digest)
                }
                "session_context" => {
                    let Some(session) = session else { continue };
                    self.artefact_at::<SessionContext>("session_context", path).ok().map(
                        |artefact| context::digest(&context::without_echo(artefact.value, session)),
                    )
                }
                _ => digest_of_file(path).map(|digest| digest.to_string()),
            };
            let path = path.display();
            match now {
                Some(now) if now == input.digest => {}
                Some(_) => changed.push(format!("the {} `{path}` is another one", input.role)),
                None => {
                    changed.push(format!("the {} `{path}` cannot be read any more", input.role))
                }
            }
        }
        changed
    }
}

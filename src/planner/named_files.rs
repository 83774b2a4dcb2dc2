//! Reading the files that a request for a Torch plan names.

use std::path::{Path, PathBuf};

use crate::{
    facts::named_files::NamedFiles,
    intake::hf::named_files,
    intent::Intent,
    plan::Input,
    planner::{Planner, artefacts::digest_of_file},
    rules::rows,
    vocab::{Backend, QuestionId},
};

/// The row and the role of a template.
const TEMPLATE: &str = "template_file";
/// The question that a template answers.
const ASKED: &str = "custom_template";
/// The row and the role of the config of an algorithm.
const ALGORITHM: &str = "algorithm_config";

impl Planner {
    /// The files that an intent names, as they are now; those that are here become inputs.
    pub(super) fn named_files(&self, intent: &Intent, inputs: &mut Vec<Input>) -> NamedFiles {
        let answer = intent.answers.get(&QuestionId::new(ASKED)).map(String::as_str);
        let template = answer.or_else(|| value(intent, TEMPLATE)).map(|path| self.named(path));
        let algorithm = value(intent, ALGORITHM).map(|path| self.named(path));
        note(inputs, TEMPLATE, template.as_deref());
        note(inputs, ALGORITHM, algorithm.as_deref());
        NamedFiles {
            template: template.map(|path| named_files::template(&path)),
            algorithm: algorithm.map(|path| named_files::algorithm(&path)),
        }
    }

    fn named(&self, path: &str) -> PathBuf {
        self.whole(Path::new(path.trim()))
    }
}

/// The path in a row, whatever the request calls the row.
fn value<'i>(intent: &'i Intent, row: &str) -> Option<&'i str> {
    let mut values = intent.values.iter();
    values
        .find(|(id, _)| rows::resolve(Backend::Torch, id).is_some_and(|id| id == *row))
        .and_then(|(_, value)| value.as_str())
        .filter(|path| !path.trim().is_empty())
}

fn note(inputs: &mut Vec<Input>, role: &str, path: Option<&Path>) {
    inputs.retain(|input| input.role != role);
    let digest = path.and_then(|path| Some((path, digest_of_file(path)?)));
    inputs.extend(digest.map(|(path, digest)| Input {
        role: role.to_owned(),
        path: Some(path.display().to_string()),
        digest: digest.to_string(),
    }));
}

//! Answers of owners, kept for those who ask the same again.

use std::collections::HashMap;

use starling_syntax::SymbolPath;

/// The owners' answers so far, as long as the code that they are about is unchanged.
#[derive(Debug, Default)]
pub(super) struct Answers {
    kept: HashMap<(SymbolPath, String), String>,
    /// The symbols of each change, in order.
    changes: Vec<Vec<SymbolPath>>,
}

/// A question to the owner of a symbol, with the state of the code in which it was asked.
#[derive(Debug)]
pub(super) struct Question {
    key: (SymbolPath, String),
    /// The number of changes before it.
    changes: usize,
}

impl Answers {
    /// A question that is about to be asked. Spaces and case make no difference to its words.
    pub fn question(&self, owner: &SymbolPath, text: &str) -> Question {
        let words: Vec<&str> = text.split_whitespace().collect();
        Question {
            key: (owner.clone(), words.join(" ").to_lowercase()),
            changes: self.changes.len(),
        }
    }

    /// The answer that was given to the same question before.
    pub fn known(&self, question: &Question) -> Option<&str> {
        self.kept.get(&question.key).map(String::as_str)
    }

    /// Keeps an answer, unless the owner's code was changed since the question was asked: then the
    /// answer may be about the code before the change.
    pub fn keep(&mut self, question: Question, answer: &str) {
        let since = self.changes.get(question.changes..).unwrap_or_default();
        let is_stale = since.iter().any(|change| touch(change, &question.key.0));
        if !is_stale {
            self.kept.insert(question.key, answer.to_owned());
        }
    }

    /// These symbols were changed: their owners' answers are forgotten.
    pub fn forget(&mut self, changed: &[SymbolPath]) {
        self.kept.retain(|(owner, _), _| !touch(changed, owner));
        self.changes.push(changed.to_vec());
    }
}

/// Whether one of the changed symbols is the owner's, lies inside of it, or holds it.
fn touch(changed: &[SymbolPath], owner: &SymbolPath) -> bool {
    let touches = |symbol: &SymbolPath| owner.encloses(symbol) || symbol.encloses(owner);
    changed.iter().any(touches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> SymbolPath {
        path.parse().unwrap()
    }

    #[test]
    fn an_answer_about_code_that_changed_meanwhile_is_not_kept() {
        let mut answers = Answers::default();
        let about = |answers: &Answers| answers.question(&path("a.py::f"), "Is it  None?");
        let asked = about(&answers);
        answers.forget(&[path("a.py::f")]);
        answers.keep(asked, "no");
        assert_eq!(answers.known(&about(&answers)), None);
        // A change of other code makes no difference.
        let asked = about(&answers);
        answers.forget(&[path("a.py::g"), path("b.py::f")]);
        answers.keep(asked, "no");
        let again = answers.question(&path("a.py::f"), "is it none?");
        assert_eq!(answers.known(&again), Some("no"));
        answers.forget(&[path("a.py::")]);
        assert_eq!(answers.known(&again), None);
    }
}

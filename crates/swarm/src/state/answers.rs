//! Cache of the answers that owners of symbols gave to questions of other agents.

use std::collections::HashMap;

use starling_syntax::SymbolPath;

/// The owners' answers, kept while the code that they describe is unchanged.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    kept: HashMap<(SymbolPath, String), String>,
    /// For each change of the run, in order, the changed symbols.
    changes: Vec<Vec<SymbolPath>>,
}

/// A question to the owner of a symbol, with a mark of the time when it was asked.
#[derive(Debug)]
pub(crate) struct Question {
    key: (SymbolPath, String),
    /// Number of changes that the run had made when the question was asked.
    changes: usize,
}

impl Answers {
    /// Creates the cache key of a question. Whitespace and case are ignored.
    pub fn question(&self, owner: &SymbolPath, text: &str) -> Question {
        let words: Vec<&str> = text.split_whitespace().collect();
        Question {
            key: (owner.clone(), words.join(" ").to_lowercase()),
            changes: self.changes.len(),
        }
    }

    /// Returns the cached answer to an equal question.
    pub fn known(&self, question: &Question) -> Option<&str> {
        self.kept.get(&question.key).map(String::as_str)
    }

    /// Caches an answer, unless the owner's code changed after the question was asked, because the
    /// answer may then describe the old code.
    pub fn keep(&mut self, question: Question, answer: &str) {
        let since = self.changes.get(question.changes..).unwrap_or_default();
        let is_stale = since.iter().any(|change| touch(change, &question.key.0));
        if !is_stale {
            self.kept.insert(question.key, answer.to_owned());
        }
    }

    /// Records a change of these symbols, and drops the answers of the owners of the symbols.
    pub fn forget(&mut self, changed: &[SymbolPath]) {
        self.kept.retain(|(owner, _), _| !touch(changed, owner));
        self.changes.push(changed.to_vec());
    }
}

/// Returns whether one of the changed symbols is the owner's symbol, is inside it, or contains it.
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
    fn answer_about_code_that_changed_after_the_question_is_not_cached() {
        let mut answers = Answers::default();
        let about = |answers: &Answers| answers.question(&path("a.py::f"), "Is it  None?");
        let asked = about(&answers);
        answers.forget(&[path("a.py::f")]);
        answers.keep(asked, "no");
        assert_eq!(answers.known(&about(&answers)), None);
        // A change of other code does not drop the answer.
        let asked = about(&answers);
        answers.forget(&[path("a.py::g"), path("b.py::f")]);
        answers.keep(asked, "no");
        let again = answers.question(&path("a.py::f"), "is it none?");
        assert_eq!(answers.known(&again), Some("no"));
        answers.forget(&[path("a.py::")]);
        assert_eq!(answers.known(&again), None);
    }
}

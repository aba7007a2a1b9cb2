//! The words that a test of a symbol is likely to contain, and the directory where it is likely to
//! be.

use std::collections::HashSet;

use super::super::bm25::QueryTerm;
use super::super::code::{Code, FileId};
use super::super::facts::module_of;
use super::super::words::{Term, all_words};
use starling_syntax::SymbolPath;
use starling_workspace::{Snapshot, TextState};

// Weights of the words in a symbol's path.
const NAME: f64 = 3.0;
const OWNER: f64 = 2.0;
const FILE: f64 = 1.0;

/// The names that a test of a symbol is likely to mention, and their terms.
pub(super) struct TestTarget {
    /// Name of the symbol; empty for a module body.
    name: String,
    owner: String,
    /// Dotted name of the module.
    module: String,
    pub(super) terms: Vec<QueryTerm>,
}

impl TestTarget {
    pub(super) fn of(symbol: &SymbolPath) -> Self {
        // A test mentions the class, not its `__init__` method.
        let shown = symbol
            .name
            .strip_suffix(".__init__")
            .unwrap_or(&symbol.name);
        let mut parts = shown
            .rsplit('.')
            .map(|part| part.split('#').next().unwrap_or(part));
        let mut target = TestTarget {
            name: parts.next().unwrap_or_default().to_owned(),
            owner: parts.next().unwrap_or_default().to_owned(),
            module: module_of(&symbol.file),
            terms: Vec::new(),
        };
        for (text, weight) in [
            (target.name.clone(), NAME),
            (target.owner.clone(), OWNER),
            (target.module.clone(), FILE),
        ] {
            target.add_terms(&text, weight);
        }
        target
    }

    /// Adds the terms of a name. The whole word gets the full weight, and its parts together get
    /// the same weight again.
    fn add_terms(&mut self, text: &str, weight: f64) {
        let words: Vec<&str> = all_words(text).collect();
        let share = weight / (words.len().max(2) - 1) as f64;
        for word in words {
            let whole = word.len() == text.len();
            let term = Term::of(word);
            if !self.terms.iter().any(|known| known.term == term) {
                self.terms.push(QueryTerm {
                    term,
                    word: word.to_lowercase(),
                    weight: if whole { weight } else { share },
                });
            }
        }
    }

    /// Returns how similar a test file's name is to the module or a part of the symbol, from 0 to
    /// 1.
    pub(super) fn names_file(&self, code: &Code, file: FileId) -> f64 {
        let name = code
            .path(file)
            .name()
            .trim_end_matches(".py")
            .to_lowercase();
        let bare = name.trim_start_matches("test_").trim_end_matches("_test");
        let stem = self.module.rsplit('.').next().unwrap_or_default();
        let likeness = |part: &str| {
            let part = part.trim_matches('_').to_lowercase();
            if part.is_empty() || bare.is_empty() {
                0.0
            } else if part == bare {
                1.0
            } else if bare.len().min(part.len()) > 2
                && (part.starts_with(bare) || bare.starts_with(&part))
            {
                0.5
            } else {
                0.0
            }
        };
        let parts = [stem, &self.owner, &self.name];
        parts.into_iter().map(likeness).fold(0.0, f64::max)
    }

    /// Returns how near a file's directory is to that of the module, from 0 to 1.
    pub(super) fn same_directory(&self, code: &Code, file: FileId) -> f64 {
        let packages: Vec<&str> = self.module.split('.').collect();
        let around = code.module(file);
        let same = packages
            .iter()
            .zip(around.split('.'))
            .take_while(|(a, b)| *a == b);
        same.count() as f64 / packages.len() as f64
    }

    /// Returns the number of words of the symbol's path that occur in a file's path.
    pub(super) fn words_of_path(&self, path: &[Term]) -> f64 {
        let told = self
            .terms
            .iter()
            .filter(|term| term.word.len() > 2 && path.contains(&term.term));
        told.count() as f64
    }

    /// Returns the files that mention the last part of the module's name.
    pub(super) fn may_import(&self, code: &Code) -> HashSet<FileId> {
        let last = self.module.rsplit('.').next().unwrap_or_default();
        code.mentioning(last).into_iter().collect()
    }

    /// Returns whether the text of a file imports the module.
    pub(super) fn is_imported_in(&self, code: &Code, snapshot: &Snapshot, file: FileId) -> bool {
        match snapshot.held(code.path(file)) {
            TextState::Text(text) => self.is_imported_by(&text),
            TextState::OnDisk(_) => {
                let text = snapshot.glance(code.path(file));
                text.is_ok_and(|(text, _)| self.is_imported_by(&text))
            }
            TextState::Nothing => false,
        }
    }

    fn is_imported_by(&self, text: &str) -> bool {
        ["from ", "import "].iter().any(|word| {
            let import = format!("{word}{}", self.module);
            text.match_indices(&import).any(|(at, _)| {
                let after = text[at + import.len()..].chars().next();
                !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        })
    }

    /// Returns the files that mention the symbol's name or its parent's name.
    pub(super) fn said_in(&self, code: &Code) -> HashSet<FileId> {
        let words = [&self.name, &self.owner];
        let words = words.into_iter().filter(|word| !word.is_empty());
        let holders = words.flat_map(|word| code.postings(Term::of(word)));
        holders
            .filter_map(|(number, _)| code.file_of(number))
            .collect()
    }

    /// Returns how many of the symbol's names occur in the name of a test.
    pub(super) fn named_after(&self, test: &str) -> f64 {
        let test = test.to_lowercase();
        let names = [&self.name, &self.owner].map(|name| name.trim_matches('_').to_lowercase());
        let said = names
            .iter()
            .filter(|name| name.len() > 2 && test.contains(name.as_str()));
        said.count() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_of_a_module_with_a_longer_name_does_not_match() {
        let target = TestTarget::of(&"a/b.py::f".parse().unwrap());
        assert!(target.is_imported_by("from a.b import f\n"));
        assert!(target.is_imported_by("import a.b"));
        assert!(target.is_imported_by("from a.b.c import g\n"));
        assert!(!target.is_imported_by("from a.bc import f\nimport a.b_c\n"));
        assert!(!target.is_imported_by("from a import b\n"));
    }
}

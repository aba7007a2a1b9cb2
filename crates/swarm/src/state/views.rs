//! For each symbol that an agent has seen, stores the text of its file at that time. The agent's
//! changes are based on that text, even if the user has edited the file since.

use std::sync::Arc;

use crate::state::draft::Draft;
use starling_syntax::{FilePath, SymbolPath};

/// The symbols that an agent has seen, each with the text of its file at that time.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// The symbols in the order in which they were shown. Each symbol occurs once.
    shown: Vec<(SymbolPath, Arc<str>)>,
}

impl Views {
    /// Records that a symbol is shown with this text of its file.
    pub fn show(&mut self, symbol: SymbolPath, text: Arc<str>) {
        self.shown.retain(|(known, _)| *known != symbol);
        self.shown.push((symbol, text));
    }

    /// Returns the text of the file when the symbol or an enclosing symbol was last shown.
    pub fn of(&self, symbol: &SymbolPath) -> Option<Arc<str>> {
        let mut shown = self.shown.iter().rev();
        let (_, text) = shown.find(|(known, _)| known.encloses(symbol))?;
        Some(Arc::clone(text))
    }

    /// Applies the agent's own change to the stored texts of the changed file.
    pub fn follow(&mut self, draft: &Draft) {
        for (_, text) in self.of_file(&draft.file) {
            if let Some(changed) = draft.over(text) {
                *text = changed;
            }
        }
    }

    fn of_file(&mut self, file: &FilePath) -> impl Iterator<Item = &mut (SymbolPath, Arc<str>)> {
        let file = file.clone();
        let shown = self.shown.iter_mut();
        shown.filter(move |(symbol, _)| symbol.file == file)
    }

    /// Adds the symbols of `later`, which were shown later, and replaces the texts of known
    /// symbols.
    pub fn extend(&mut self, later: Views) {
        for (symbol, text) in later.shown {
            self.show(symbol, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> SymbolPath {
        path.parse().unwrap()
    }

    #[test]
    fn last_shown_text_is_remembered_for_each_symbol() {
        let mut views = Views::default();
        let of = |views: &Views, symbol: &str| views.of(&path(symbol)).map(|text| text.to_string());
        views.show(path("a.py::C"), "one".into());
        views.show(path("a.py::f"), "two".into());
        assert_eq!(of(&views, "a.py::C.m").as_deref(), Some("one"));
        assert_eq!(of(&views, "a.py::f").as_deref(), Some("two"));
        assert_eq!(of(&views, "a.py::g"), None);
        assert_eq!(
            of(&views, "a.py::"),
            None,
            "only parts of the file were shown"
        );
        views.show(path("a.py::"), "three".into());
        assert_eq!(of(&views, "a.py::f").as_deref(), Some("three"));
        views.show(path("a.py::f"), "four".into());
        assert_eq!(of(&views, "a.py::f").as_deref(), Some("four"));
        assert_eq!(of(&views, "a.py::g").as_deref(), Some("three"));
    }
}

//! The repository map: the files that matter, by the signatures of their symbols.

use std::collections::BTreeSet;

use crate::syntax::{FilePath, Symbol, SymbolId, SymbolPath, SymbolTree, signature};
use crate::workspace::Snapshot;

/// A longer signature is cut.
const SIGNATURE_BYTES: usize = 160;

/// The files of `interest`, in its order, as their symbols: those named with the classes around
/// them, then what stands near them, as long as the text stays under `bytes`.
pub(super) fn repository_map(snapshot: &Snapshot, interest: &[SymbolPath], bytes: usize) -> String {
    let mut sheets: Vec<Sheet> = Vec::new();
    let mut left = bytes;
    for symbol in interest {
        if let Some(sheet) = sheet_of(&mut sheets, snapshot, &symbol.file, &mut left) {
            sheet.add_named(&symbol.name, &mut left);
        }
    }
    // An even share for each file; what one does not need is the next one's.
    let mut waiting = sheets.len();
    for sheet in &mut sheets {
        let mut share = left / waiting;
        left -= share;
        sheet.add_rest(&mut share);
        left += share;
        waiting -= 1;
    }
    sheets.iter().map(Sheet::text).collect()
}

/// One file of the map, with the symbols that are shown.
struct Sheet {
    tree: std::sync::Arc<SymbolTree>,
    shown: BTreeSet<SymbolId>,
}

fn sheet_of<'s>(
    sheets: &'s mut Vec<Sheet>,
    snapshot: &Snapshot,
    file: &FilePath,
    left: &mut usize,
) -> Option<&'s mut Sheet> {
    if let Some(place) = sheets.iter().position(|sheet| sheet.tree.file() == file) {
        return sheets.get_mut(place);
    }
    let tree = snapshot.tree(file).ok()?;
    *left = left.checked_sub(heading(file).len())?;
    sheets.push(Sheet {
        tree,
        shown: BTreeSet::new(),
    });
    sheets.last_mut()
}

fn heading(file: &FilePath) -> String {
    format!("{file}:\n")
}

impl Sheet {
    fn add_named(&mut self, name: &str, left: &mut usize) {
        let mut symbols = self.tree.symbols().iter();
        if let Some(place) = symbols.position(|symbol| symbol.path.name == name) {
            self.add(SymbolId(place), left);
        }
    }

    /// Shows a symbol and those around it; `false` where they do not fit.
    fn add(&mut self, id: SymbolId, left: &mut usize) -> bool {
        let mut chain = vec![id];
        while let Some(id) = chain.last().and_then(|id| self.tree.get(*id).parent) {
            chain.push(id);
        }
        chain.into_iter().rev().all(|id| self.show(id, left))
    }

    /// Shows what fits of the other symbols, those near the ones shown before those far from them.
    fn add_rest(&mut self, left: &mut usize) {
        let tree = self.tree.clone();
        let shown: Vec<usize> = self.shown.iter().map(|id| id.0).collect();
        let distance = |place: usize| shown.iter().map(|other| place.abs_diff(*other)).min();
        let mut rest: Vec<usize> = (0..tree.symbols().len()).collect();
        rest.sort_by_key(|place| distance(*place));
        for place in rest {
            if !self.add(SymbolId(place), left) {
                return;
            }
        }
    }

    /// Whether the symbol is shown: now, before, or by its file's heading, as the module body is.
    fn show(&mut self, id: SymbolId, left: &mut usize) -> bool {
        if self.shown.contains(&id) {
            return true;
        }
        let Some(rest) = left.checked_sub(self.line(id).len()) else {
            return false;
        };
        *left = rest;
        self.shown.insert(id);
        true
    }

    fn line(&self, id: SymbolId) -> String {
        let symbol = self.tree.get(id);
        if symbol.path.is_module() {
            return String::new();
        }
        let signature = signature(&self.tree, symbol);
        // Decorators stand on lines before it.
        let last = signature.lines().last().unwrap_or_default();
        let shown = &last[..last.floor_char_boundary(SIGNATURE_BYTES)];
        let indent = "  ".repeat(depth(&self.tree, symbol));
        format!("{:>5} {indent}{}\n", symbol.lines.0, shown.trim())
    }

    fn text(&self) -> String {
        let lines = self.shown.iter().map(|id| self.line(*id));
        std::iter::once(heading(self.tree.file()))
            .chain(lines)
            .collect()
    }
}

/// How many symbols other than the module body hold this one.
fn depth(tree: &SymbolTree, symbol: &Symbol) -> usize {
    let mut depth: usize = 0;
    let mut next = symbol.parent;
    while let Some(id) = next {
        depth += 1;
        next = tree.get(id).parent;
    }
    depth.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Overlay, Workspace};

    const CART: &str = "X = 1\n\nclass Cart(Base):\n    def add(self, item):\n        pass\n\n    @property\n    \
                        def total(self) -> int:\n        return 0\n\ndef empty():\n    pass\n";

    fn map(interest: &[&str], bytes: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let texts = [("cart.py", CART), ("tax.py", "def rate():\n    pass\n")];
        let overlay: Overlay = texts
            .iter()
            .map(|(path, text)| (FilePath::new(*path), Some((*text).into())))
            .collect();
        let interest: Vec<SymbolPath> = interest.iter().map(|path| path.parse().unwrap()).collect();
        repository_map(&workspace.snapshot(overlay), &interest, bytes)
    }

    #[test]
    fn shows_what_is_asked_for_then_the_rest() {
        let whole = "tax.py:\n    1 def rate():\ncart.py:\n    3 class Cart(Base):\n    \
                     4   def add(self, item):\n    7   def total(self) -> int:\n   11 def empty():\n";
        assert_eq!(map(&["tax.py::", "cart.py::Cart.total"], 1000), whole);
        let tight = "cart.py:\n    3 class Cart(Base):\n    7   def total(self) -> int:\n";
        assert_eq!(map(&["cart.py::Cart.total"], 65), tight);
    }

    #[test]
    fn stays_under_its_cap_whatever_it_is() {
        for bytes in 0..200 {
            let text = map(
                &[
                    "cart.py::Cart.total",
                    "tax.py::rate",
                    "gone.py::f",
                    "cart.py::no",
                ],
                bytes,
            );
            assert!(text.len() <= bytes, "{bytes}: {text}");
        }
    }

    #[test]
    fn the_order_is_that_of_the_interest_and_each_file_stands_once() {
        let text = map(
            &["cart.py::empty", "tax.py::rate", "cart.py::Cart.add"],
            1000,
        );
        let headings: Vec<&str> = text.lines().filter(|line| line.ends_with(".py:")).collect();
        assert_eq!(headings, ["cart.py:", "tax.py:"]);
        assert_eq!(text.matches("def add").count(), 1);
        assert_eq!(map(&[], 1000), "");
        assert_eq!(map(&["gone.py::f"], 1000), "");
    }

    #[test]
    fn what_was_asked_for_comes_before_what_is_near() {
        let asked = map(&["cart.py::empty", "tax.py::rate"], 64);
        assert!(
            asked.contains("def empty") && asked.contains("def rate"),
            "{asked}"
        );
        assert!(!asked.contains("class Cart"), "{asked}");
        // What is nearest in the file is the first of the rest.
        let near = map(&["cart.py::empty"], 90);
        assert!(
            near.contains("class Cart") && near.contains("def total"),
            "{near}"
        );
        assert!(!near.contains("def add"), "{near}");
    }

    #[test]
    fn a_long_signature_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let file = FilePath::new("long.py");
        let text = format!("def f({}): pass\n", "\u{e9}\u{e9}, ".repeat(100));
        let overlay = Overlay::from([(file.clone(), Some(text.as_str().into()))]);
        let symbol = SymbolPath::new(file, "f");
        let map = repository_map(&workspace.snapshot(overlay), &[symbol], 1000);
        let line = map.lines().nth(1).expect("a line for f");
        assert!(
            line.len() <= SIGNATURE_BYTES + 6 && line.contains("def f("),
            "{line}"
        );
    }
}

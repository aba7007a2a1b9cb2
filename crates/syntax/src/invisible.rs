//! Finds invisible characters that a change adds to code.

use std::collections::{HashMap, HashSet};

use super::SymbolTree;
use starling_text::invisible;

/// An invisible character outside of string literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenCharacter {
    /// Line number, counted from 1.
    pub line: usize,
    pub char: char,
}

impl SymbolTree {
    /// Returns the invisible characters outside of string literals that `before` does not contain.
    /// Comments are searched, too: reordered text in a comment can look like code.
    pub fn newly_hidden(&self, before: &str) -> Vec<HiddenCharacter> {
        let count = |text: &str| {
            let mut counts: HashMap<char, usize> = HashMap::new();
            for (_, char) in invisible(text) {
                *counts.entry(char).or_default() += 1;
            }
            counts
        };
        let (was, is) = (count(before), count(self.text()));
        let is_more = |char: &char| is.get(char) > was.get(char);
        if !is.keys().any(is_more) {
            return Vec::new();
        }
        let known: HashSet<&str> = before.split('\n').collect();
        let mut found = Vec::new();
        for (at, char) in invisible(self.text()) {
            let start = self.text()[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = self.text()[at..]
                .find('\n')
                .map_or(self.text().len(), |end| at + end);
            let is_new = !known.contains(&self.text()[start..end]);
            if is_new && is_more(&char) && !self.in_string(at) {
                let line = self.text()[..start].matches('\n').count() + 1;
                found.push(HiddenCharacter { line, char });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FilePath;

    fn hidden(file: &str, before: &str, after: &str) -> Vec<(usize, char)> {
        let tree = SymbolTree::parse(FilePath::new(file), after.into());
        let found = tree.newly_hidden(before);
        found.iter().map(|one| (one.line, one.char)).collect()
    }

    #[test]
    fn new_invisible_characters_in_code_and_comments_are_found() {
        let before = "x = 1\n";
        let code = "x = 1\nadmin\u{200b} = 2\n# \u{202e} } if\n";
        let found = [(2, '\u{200b}'), (3, '\u{202e}')];
        assert_eq!(hidden("a.py", before, code), found);
        assert_eq!(hidden("a.md", "", "a\u{1b}b"), [(1, '\u{1b}')]);
    }

    #[test]
    fn invisible_characters_in_strings_or_old_lines_are_ignored() {
        let strings = "x = \"\u{202e}\"\ny = \"\"\"\n\u{200b}\n\"\"\"\n";
        assert_eq!(hidden("a.py", "", strings), []);
        let before = "# \u{200b}\nx = 1\n";
        let moved = "x = 2\n# \u{200b} more\n";
        assert_eq!(hidden("a.py", before, moved), []);
        assert_eq!(
            hidden("a.py", "", "\u{feff}x = 1\r\n# 👩\u{200d}💻\r\n"),
            []
        );
    }
}

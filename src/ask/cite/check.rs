//! Does a citation exist, and has it to do with what it is cited for?

use std::collections::BTreeSet;

use super::{Citation, Claim, words};
use crate::syntax::{FilePath, SymbolTree};
use crate::workspace::Snapshot;

/// So many lines around a cited one are taken for it.
const NEAR: u32 = 1;
/// A citation that is off by no more than this is moved.
const OFF: u32 = 40;

/// What is wrong with a citation, or what it was made to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Holds(Citation),
    /// It was mended: another line, or the whole path.
    Moved(Citation),
    Wrong(String),
}

/// Checks citations against the files as they are.
#[derive(Debug, Clone)]
pub struct Checker {
    files: Snapshot,
}

impl Checker {
    pub fn new(files: Snapshot) -> Self {
        Checker { files }
    }

    /// Checks one citation of a claim.
    pub fn check(&self, path: &str, lines: (u32, u32), claim: &Claim) -> Verdict {
        let named = self.named(path);
        if named.is_empty() {
            return Verdict::Wrong(format!("there is no file {path}"));
        }
        let mut why = String::new();
        let whole = named.len() == 1 && named[0].as_str() == path;
        for file in named {
            match self.within(&file, lines, claim) {
                Ok(found) if whole && (found.line, found.last_line) == lines => {
                    return Verdict::Holds(found);
                }
                Ok(found) => return Verdict::Moved(found),
                Err(error) => why = error,
            }
        }
        Verdict::Wrong(why)
    }

    /// The files that a written path can mean: the file itself, or those that end so.
    fn named(&self, path: &str) -> Vec<FilePath> {
        let path = FilePath::new(path.trim_start_matches('/'));
        let files = self.files.files();
        if files.binary_search(&path).is_ok() {
            return vec![path];
        }
        let ending = format!("/{path}");
        let ends = |file: &&FilePath| {
            let root = self.files.root().to_string_lossy();
            let absolute = format!("{}/{file}", root.trim_start_matches('/'));
            file.as_str().ends_with(&ending) || absolute.ends_with(path.as_str())
        };
        files.iter().filter(ends).take(8).cloned().collect()
    }

    fn within(
        &self,
        file: &FilePath,
        (first, last): (u32, u32),
        claim: &Claim,
    ) -> Result<Citation, String> {
        let tree = self.files.tree(file).map_err(|error| error.to_string())?;
        let text = Lines::of(&tree);
        let count = text.count();
        if first == 0 || first > count {
            return Err(format!("{file} has {count} lines, no line {first}"));
        }
        let last = last.min(count);
        if text.bears_out(first, last, claim) {
            return Ok(text.citation(file, first, last));
        }
        match text.nearest(first, last, claim) {
            Some(line) => Ok(text.citation(file, line, (line + (last - first)).min(count))),
            None => Err(text.says(first, claim)),
        }
    }
}

/// A file by its lines.
struct Lines<'t> {
    tree: &'t SymbolTree,
    lines: Vec<&'t str>,
}

impl<'t> Lines<'t> {
    fn of(tree: &'t SymbolTree) -> Self {
        let lines = tree.text().lines().collect();
        Lines { tree, lines }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// A line by its number, from 1.
    fn line(&self, number: u32) -> &'t str {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| self.lines.get(at)).copied().unwrap_or("")
    }

    /// Whether the lines have something to do with a claim: they, or the symbol around them, bear a
    /// name that the claim names; or, where it names none, they share a word with it.
    fn bears_out(&self, first: u32, last: u32, claim: &Claim) -> bool {
        if (first..=last).all(|line| self.line(line).trim().is_empty()) {
            return false;
        }
        let owner = &self.tree.at_line(first).path.name;
        let around = (first.saturating_sub(NEAR).max(1)..=last.saturating_add(NEAR))
            .map(|line| self.line(line));
        if claim.names.is_empty() {
            let mut near: BTreeSet<String> = words(owner);
            near.extend(around.flat_map(words));
            return claim.words.is_empty() || !near.is_disjoint(&claim.words);
        }
        let owners = names_of(owner);
        owners.iter().any(|name| claim.names.contains(*name))
            || around
                .flat_map(names_of)
                .any(|name| claim.names.contains(name))
    }

    /// The nearest line that bears a name of the claim; or any line, where only words were amiss.
    fn nearest(&self, first: u32, last: u32, claim: &Claim) -> Option<u32> {
        let bears = |line: u32| {
            names_of(self.line(line))
                .iter()
                .any(|name| claim.names.contains(*name))
        };
        if claim.names.is_empty() {
            let shares = |line: u32| !words(self.line(line)).is_disjoint(&claim.words);
            return around(first, last, 5, self.count()).find(|line| shares(*line));
        }
        around(first, last, OFF, self.count()).find(|line| bears(*line))
    }

    /// What the lines hold instead, for the model to mend its claim.
    fn says(&self, line: u32, claim: &Claim) -> String {
        let text: String = self.line(line).trim().chars().take(100).collect();
        let names: Vec<&str> = claim.names.iter().map(String::as_str).take(6).collect();
        match names.as_slice() {
            [] => format!("line {line} is `{text}`, which says nothing of that"),
            names => format!(
                "line {line} is `{text}`: nothing of {} there",
                names.join(", ")
            ),
        }
    }

    fn citation(&self, file: &FilePath, line: u32, last_line: u32) -> Citation {
        let text: String = self.line(line).trim().chars().take(200).collect();
        Citation {
            path: file.to_string(),
            line,
            last_line,
            symbol: self.tree.at_line(line).path.name.clone(),
            text,
        }
    }
}

/// Line numbers by their distance from a range, the nearest first.
fn around(first: u32, last: u32, most: u32, count: u32) -> impl Iterator<Item = u32> {
    let near = (0..=most).flat_map(move |off| {
        let below = last.checked_add(off);
        let above = first.checked_sub(off);
        [above, below].into_iter().flatten()
    });
    near.filter(move |line| (1..=count).contains(line))
}

fn names_of(code: &str) -> Vec<&str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|part| part.len() > 1)
        .collect()
}

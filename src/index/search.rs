//! Finding text, definitions and references in the files of a snapshot.

use super::facts::FileFacts;
use super::{Index, is_test_file};
use crate::syntax::{SymbolKind, SymbolPath, references};

/// A line that answers a question, with the innermost symbol that owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub symbol: SymbolPath,
    /// From 1.
    pub line: u32,
    /// The line without its indentation.
    pub text: String,
    pub is_call: bool,
    pub is_import: bool,
    pub is_definition: bool,
    /// It stands in a test file.
    pub is_test: bool,
}

/// Uses of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    pub hits: Vec<Hit>,
    /// All uses are listed; else the limit was reached.
    pub complete: bool,
}

impl Index {
    /// Lines that hold a text, case-insensitive; symbols of that name first, tests last.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let wanted = query.trim().to_lowercase();
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut hits: Vec<(u8, Hit)> = Vec::new();
        for facts in self.files() {
            let in_file = facts.text.to_lowercase();
            if !in_file.contains(&wanted) {
                continue;
            }
            for (at, line) in facts.text.lines().enumerate() {
                if line.to_lowercase().contains(&wanted) {
                    let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
                    let hit = hit(facts, number, line);
                    let rank = u8::from(!hit.is_definition) + 2 * u8::from(hit.is_test);
                    hits.push((rank, hit));
                }
            }
            if hits.len() > limit * 40 {
                break;
            }
        }
        hits.sort_by_key(|(rank, _)| *rank);
        hits.into_iter().map(|(_, hit)| hit).take(limit).collect()
    }

    /// Symbols with this name, tests last.
    pub fn definitions(&self, name: &str) -> Vec<SymbolPath> {
        let named = |facts: &FileFacts| {
            let symbols = facts.symbols.iter().map(|symbol| symbol.path.clone());
            symbols
                .filter(|path| !path.is_module() && path.base_name() == name)
                .collect::<Vec<_>>()
        };
        let mut found: Vec<SymbolPath> =
            self.files().iter().flat_map(|facts| named(facts)).collect();
        found.sort_by_key(|path| is_test_file(&path.file));
        found
    }

    /// Uses of a name in code, by text; files outside tests first.
    pub fn references(&self, name: &str, limit: usize) -> References {
        let mut hits = Vec::new();
        let mut complete = true;
        let (tests, code): (Vec<_>, Vec<_>) = self.files().iter().partition(|facts| facts.is_test);
        for facts in code.into_iter().chain(tests) {
            if name.is_empty() || facts.symbols.is_empty() || !facts.text.contains(name) {
                continue;
            }
            let Ok(tree) = self.snapshot.tree(&facts.file) else {
                continue;
            };
            for reference in references(&tree, name) {
                if hits.len() >= limit {
                    complete = false;
                    break;
                }
                let line = tree
                    .text()
                    .lines()
                    .nth(reference.line as usize - 1)
                    .unwrap_or_default();
                hits.push(Hit {
                    symbol: tree.owner(reference.range.start).path.clone(),
                    line: reference.line,
                    text: line.trim().to_owned(),
                    is_call: reference.is_call,
                    is_import: reference.is_import,
                    is_definition: reference.is_definition,
                    is_test: facts.is_test,
                });
            }
            if !complete {
                break;
            }
        }
        References { hits, complete }
    }

    /// Test functions that use a symbol by its name, those in the test file of its module first.
    pub fn nearest_tests(&self, symbol: &SymbolPath, limit: usize) -> Vec<SymbolPath> {
        let parts: Vec<&str> = symbol
            .name
            .split('.')
            .filter(|part| !part.starts_with("__"))
            .collect();
        let stem = symbol.file.name().trim_end_matches(".py");
        let Some(name) = parts
            .last()
            .map(|name| name.split('#').next().unwrap_or(name))
        else {
            return Vec::new();
        };
        let mut found: Vec<(u32, SymbolPath)> = Vec::new();
        for facts in self
            .files()
            .iter()
            .filter(|facts| facts.is_test && facts.text.contains(name))
        {
            let Ok(tree) = self.snapshot.tree(&facts.file) else {
                continue;
            };
            let near = u32::from(facts.file.name().contains(stem));
            for reference in references(&tree, name) {
                let owner = tree.owner(reference.range.start);
                if owner.kind == SymbolKind::Module
                    || owner.kind == SymbolKind::Class
                    || reference.is_import
                {
                    continue;
                }
                let rank = 2 * near + u32::from(reference.is_call);
                if !found.iter().any(|(_, path)| *path == owner.path) {
                    found.push((rank, owner.path.clone()));
                }
            }
            if found.len() > 200 {
                break;
            }
        }
        found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        found
            .into_iter()
            .map(|(_, path)| path)
            .take(limit)
            .collect()
    }
}

/// A found line with its owner, from the facts alone.
fn hit(facts: &FileFacts, line: u32, text: &str) -> Hit {
    let around =
        |symbol: &&super::facts::SymbolFacts| symbol.lines.0 <= line && line <= symbol.lines.1;
    let owner = facts
        .symbols
        .iter()
        .filter(around)
        .max_by_key(|symbol| symbol.lines.0);
    let symbol = owner.map_or_else(
        || SymbolPath::module(facts.file.clone()),
        |symbol| symbol.path.clone(),
    );
    let trimmed = text.trim();
    let is_definition = ["def ", "class ", "async def "]
        .iter()
        .any(|word| trimmed.starts_with(word));
    Hit {
        symbol,
        line,
        text: trimmed.to_owned(),
        is_call: false,
        is_import: trimmed.starts_with("import ") || trimmed.starts_with("from "),
        is_definition,
        is_test: facts.is_test,
    }
}

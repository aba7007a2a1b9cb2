//! The repository map: the most relevant files with the signatures of their most relevant symbols,
//! within a budget of tokens.

mod central;
mod choose;
mod sheet;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use super::code::{Code, FileId, SymbolNumber};
use super::locate::Located;
use super::tokens::count_tokens;
use starling_syntax::{FilePath, SymbolKind, SymbolPath};

/// The starting point of a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seed<'s> {
    /// A text, such as a task or a question.
    Text(&'s str),
    /// Symbols, most important first.
    Symbols(&'s [SymbolPath]),
    /// The files that the code base refers to most.
    Central,
}

/// The repository map of a workspace. `Display` formats it as text for a model or a user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RepositoryMap {
    /// The files, most relevant first.
    pub files: Vec<MapFile>,
    /// Number of tokens of the formatted map.
    pub tokens: usize,
    /// Number of files that did not fit into the budget.
    pub left_out: usize,
}

/// One file of a repository map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapFile {
    pub file: FilePath,
    /// Relevance of the file, which is only meaningful compared with other files.
    pub score: f64,
    /// The shown symbols, in the order of the file.
    pub symbols: Vec<MapSymbol>,
    /// Number of symbols that are not shown.
    pub left_out: usize,
}

/// One line of a repository map: a symbol with its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSymbol {
    pub symbol: SymbolPath,
    pub kind: SymbolKind,
    /// Line of the symbol's name, counted from 1.
    pub line: u32,
    /// Number of enclosing classes and functions.
    pub depth: usize,
    /// Signature without decorators. A long signature is truncated.
    pub signature: String,
}

/// A file with its relevant symbols, best first.
#[derive(Debug, Clone, PartialEq)]
struct RankedFile {
    file: FileId,
    score: f64,
    symbols: Vec<SymbolNumber>,
}

/// Creates the map around a seed, in at most `tokens` tokens. `locate` ranks symbols for a text.
pub(super) fn repository_map(
    code: &Code,
    seed: Seed<'_>,
    tokens: usize,
    locate: impl Fn(&str, usize) -> Vec<Located>,
) -> RepositoryMap {
    let ranked = std::thread::scope(|scope| {
        // Loads the tokenizer's vocabulary in parallel.
        scope.spawn(|| count_tokens(""));
        ranked(code, seed, tokens, locate)
    });
    let files = choose::choose(code, &ranked, tokens);
    let mut map = RepositoryMap {
        left_out: ranked.len().saturating_sub(files.len()),
        files,
        tokens: 0,
    };
    map.tokens = count_tokens(&map.to_string());
    map
}

fn ranked(
    code: &Code,
    seed: Seed<'_>,
    tokens: usize,
    locate: impl Fn(&str, usize) -> Vec<Located>,
) -> Vec<RankedFile> {
    match seed {
        Seed::Text(text) => {
            // A map of this size has fewer lines than `tokens`, so `tokens` symbols are enough.
            let located = locate(text, tokens);
            by_file(
                code,
                located.iter().map(|found| (&found.symbol, found.score)),
            )
        }
        Seed::Symbols(symbols) => {
            let scores = (1..).map(|place| 1.0 / f64::from(place));
            by_file(code, symbols.iter().zip(scores))
        }
        Seed::Central => central::central(code),
    }
}

/// Groups symbols by file. A file has the rank of its best symbol.
fn by_file<'s>(
    code: &Code,
    symbols: impl Iterator<Item = (&'s SymbolPath, f64)>,
) -> Vec<RankedFile> {
    let mut places: HashMap<FileId, usize> = HashMap::new();
    let mut ranked: Vec<RankedFile> = Vec::new();
    for (symbol, score) in symbols {
        let Some(file) = code.find(&symbol.file) else {
            continue;
        };
        let place = *places.entry(file).or_insert(ranked.len());
        if place == ranked.len() {
            let symbols = Vec::new();
            ranked.push(RankedFile {
                file,
                score,
                symbols,
            });
        }
        ranked[place].symbols.extend(code.number_of(symbol));
    }
    ranked
}

impl fmt::Display for RepositoryMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            f.write_str(&heading(&file.file))?;
            for symbol in &file.symbols {
                f.write_str(&line(symbol))?;
            }
        }
        Ok(())
    }
}

fn heading(file: &FilePath) -> String {
    format!("{file}:\n")
}

/// Each level is indented by only one space, to save tokens.
fn line(symbol: &MapSymbol) -> String {
    let indent = " ".repeat(symbol.depth + 1);
    format!("{indent}{}\n", symbol.signature)
}

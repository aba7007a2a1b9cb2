//! The repository map: the files that matter, by the signatures that matter in them, within a budget
//! of tokens.

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

/// What a map is drawn around.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seed<'s> {
    /// What a text is about: a task, a question.
    Text(&'s str),
    /// These, the most important first.
    Symbols(&'s [SymbolPath]),
    /// What the code itself refers to most.
    Central,
}

/// Signatures of a workspace; `Display` is the text that a reader gets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RepositoryMap {
    /// The most relevant first.
    pub files: Vec<MapFile>,
    /// Of the text.
    pub tokens: usize,
    /// How many files there was no room for.
    pub left_out: usize,
}

/// One file of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapFile {
    pub file: FilePath,
    /// Good for comparing only.
    pub score: f64,
    /// In the order of the file.
    pub symbols: Vec<MapSymbol>,
    /// How many symbols are not shown.
    pub left_out: usize,
}

/// One line of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSymbol {
    pub symbol: SymbolPath,
    pub kind: SymbolKind,
    /// Where its definition stands, from 1.
    pub line: u32,
    /// How many classes and functions are around it.
    pub depth: usize,
    /// Without decorators; a long one is cut.
    pub signature: String,
}

/// A file with symbols that matter, the best first.
#[derive(Debug, Clone, PartialEq)]
struct Ranked {
    file: FileId,
    score: f64,
    symbols: Vec<SymbolNumber>,
}

/// The map around a seed, in at most `tokens`; `locate` ranks symbols for a text.
pub(super) fn repository_map(
    code: &Code,
    seed: Seed<'_>,
    tokens: usize,
    locate: impl Fn(&str, usize) -> Vec<Located>,
) -> RepositoryMap {
    let ranked = std::thread::scope(|scope| {
        // The vocabulary is read meanwhile.
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
) -> Vec<Ranked> {
    match seed {
        Seed::Text(text) => {
            // So many stand in more files than a map of this size lists.
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

/// Symbols under their files. A file stands where its best symbol stood.
fn by_file<'s>(code: &Code, symbols: impl Iterator<Item = (&'s SymbolPath, f64)>) -> Vec<Ranked> {
    let mut places: HashMap<FileId, usize> = HashMap::new();
    let mut ranked: Vec<Ranked> = Vec::new();
    for (symbol, score) in symbols {
        let Some(file) = code.find(&symbol.file) else {
            continue;
        };
        let place = *places.entry(file).or_insert(ranked.len());
        if place == ranked.len() {
            let symbols = Vec::new();
            ranked.push(Ranked {
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

/// One space for each level: more would cost tokens.
fn line(symbol: &MapSymbol) -> String {
    let indent = " ".repeat(symbol.depth + 1);
    format!("{indent}{}\n", symbol.signature)
}

//! What a task names: symbols and files of the project, and files that are not there.

use super::lookup::{Lookup, Mention, NotThere};
use starling_index::is_test_file;
use starling_syntax::{FilePath, Language, SymbolPath};

/// A name with more definitions does not say which one is meant.
const DEFINITIONS: usize = 3;
/// A shorter word in a sentence is no name of code by itself.
const SHORTEST_WORD: usize = 3;

/// What a task names.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Names in the style of code, mentions by `@` and `#`, and words for symbols of a file among them. A
    /// module stands for its file.
    pub sure: Vec<SymbolPath>,
    /// Words of sentences that are names of symbols as well.
    pub by_word: Vec<SymbolPath>,
    /// Files after `@` that are not there.
    pub not_there: Vec<NotThere>,
}

impl Names {
    pub fn of(lookup: &Lookup, text: &str) -> Names {
        let (mut sure, mut by_word) = in_text(lookup, text);
        for mention in lookup.mentions_in(text) {
            if let Mention::One(symbol) = mention
                && !is_test_file(&symbol.file)
            {
                sure.push(symbol);
            }
        }
        let is_in_file = |symbol: &SymbolPath| {
            let mut named = sure.iter();
            named.any(|one| one.is_module() && one.file == symbol.file)
        };
        let (here, elsewhere): (Vec<_>, Vec<_>) = by_word.into_iter().partition(is_in_file);
        sure.extend(here);
        by_word = elsewhere;
        for symbols in [&mut sure, &mut by_word] {
            symbols.sort();
            symbols.dedup();
        }
        Names {
            sure,
            by_word,
            not_there: lookup.not_there(text),
        }
    }

    /// The named symbols and modules; those by plain words only where there are no others.
    pub fn symbols(&self) -> impl Iterator<Item = &SymbolPath> {
        let chosen = match self.lead() {
            true => &self.sure,
            false => &self.by_word,
        };
        chosen.iter()
    }

    /// Whether they say where the work is: no pick of a model does so better.
    pub fn lead(&self) -> bool {
        self.code().next().is_some() || !self.not_there.is_empty()
    }

    /// The symbols and the files of code that are surely named.
    pub fn code(&self) -> impl Iterator<Item = &SymbolPath> {
        let sure = self.sure.iter();
        sure.filter(|symbol| Language::of(&symbol.file) != Language::Plain)
    }
}

/// The symbols and files that a text names in the style of code, and those that it names by plain words.
fn in_text(lookup: &Lookup, text: &str) -> (Vec<SymbolPath>, Vec<SymbolPath>) {
    let mut in_style: Vec<SymbolPath> = Vec::new();
    let mut by_word: Vec<SymbolPath> = Vec::new();
    let is_part = |c: char| c.is_alphanumeric() || "_.:/".contains(c);
    let mut in_ticks = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| is_part(c) || c == '`') {
        rest = &rest[start..];
        if let Some(after) = rest.strip_prefix('`') {
            in_ticks = !in_ticks;
            rest = after;
            continue;
        }
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let word = word.trim_matches(['.', ':']);
        let is_code = in_ticks
            || after.starts_with('(')
            || word.contains(['_', '.', ':', '/'])
            || word.chars().skip(1).any(char::is_uppercase);
        if is_code {
            in_style.extend(meant(lookup, word));
        } else if word.chars().count() >= SHORTEST_WORD {
            by_word.extend(meant(lookup, word));
        }
    }
    (in_style, by_word)
}

/// The symbols outside tests that a name may mean, or the module of a file.
fn meant(lookup: &Lookup, name: &str) -> Vec<SymbolPath> {
    let file = FilePath::new(name);
    if lookup.files().binary_search(&file).is_ok() {
        let module = (!is_test_file(&file)).then(|| SymbolPath::module(file));
        return module.into_iter().collect();
    }
    let defined = lookup.index().definitions(name).into_iter();
    let symbols: Vec<SymbolPath> = defined
        .map(|found| found.symbol)
        .filter(|symbol| !is_test_file(&symbol.file) && !symbol.is_module())
        .collect();
    if symbols.len() > DEFINITIONS {
        return Vec::new();
    }
    symbols
}

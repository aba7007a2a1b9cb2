//! The names in a task: symbols and files of the project, and files that do not exist.

use crate::lookup::{Lookup, Mention, MissingFile};
use crate::task::command_line::CommandLine;
use crate::task::runnable::{prose, without_examples};
use starling_index::is_test_file;
use starling_syntax::{FilePath, Language, SymbolKind, SymbolPath};

/// Maximum number of definitions of a name. A name with more definitions is ambiguous.
const DEFINITIONS: usize = 3;
/// Minimum length of a plain word that may be a name of code.
const SHORTEST_WORD: usize = 3;
/// Extensions of data files.
const DATA: [&str; 9] = [
    "json", "toml", "yaml", "yml", "csv", "tsv", "ini", "cfg", "xml",
];

/// The names in a task.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Symbols that the task names for certain: in code style, by `@` or `#` mentions, or by a word
    /// next to the name of their file, or by the command line. A file is represented by its module.
    pub sure: Vec<SymbolPath>,
    /// Symbols whose names occur as plain words.
    pub by_word: Vec<SymbolPath>,
    /// File names after `@` for which no file exists.
    pub not_there: Vec<MissingFile>,
    /// The subcommands and options that the task names.
    pub command_line: CommandLine,
    /// Classes that the task names in code style but is not about. Either the task also names a function or
    /// method, or the class appears only in an example and the prose names other code.
    bystanders: Vec<SymbolPath>,
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
        let command_line = command_line(lookup, text);
        sure.extend(command_line.handlers.iter().cloned());
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
            bystanders: bystanders(lookup, text, &sure),
            sure,
            by_word,
            not_there: lookup.not_there(text),
            command_line,
        }
    }

    /// Returns the named symbols that the task is about.
    pub fn targets(&self) -> impl Iterator<Item = &SymbolPath> {
        let is_meant = |symbol: &&SymbolPath| !self.bystanders.contains(symbol);
        self.symbols().filter(is_meant)
    }

    /// Returns the named symbols and modules. Symbols named by plain words are returned only if
    /// there are no others, and if the task names no data file: in "episode 13 gets a tag in
    /// episodes.json", the word is no class `Episode`.
    pub fn symbols(&self) -> impl Iterator<Item = &SymbolPath> {
        let chosen = match self.lead() || self.names_data() {
            true => &self.sure,
            false => &self.by_word,
        };
        chosen.iter()
    }

    /// Returns the symbols that a task may only mention beside the data file that it names: those
    /// that plain words name.
    pub fn beside_data(&self) -> impl Iterator<Item = &SymbolPath> {
        let are_data = self.names_data();
        self.by_word.iter().filter(move |_| are_data)
    }

    /// Returns whether the names are clear enough to choose the symbols to work on without a model.
    pub fn lead(&self) -> bool {
        let is_command = !self.command_line.words.is_empty();
        is_command || self.code().next().is_some() || !self.not_there.is_empty()
    }

    /// Returns whether the task names a data file and no code.
    fn names_data(&self) -> bool {
        let is_data = |symbol: &SymbolPath| {
            let ending = symbol
                .file
                .name()
                .rsplit_once('.')
                .map(|(_, ending)| ending);
            ending.is_some_and(|ending| DATA.contains(&ending))
        };
        !self.lead() && self.sure.iter().any(is_data)
    }

    /// Returns the symbols and code files that the task names for certain.
    pub fn code(&self) -> impl Iterator<Item = &SymbolPath> {
        let sure = self.sure.iter();
        sure.filter(|symbol| Language::of(&symbol.file) != Language::Plain)
    }
}

/// Returns the command line in the prose of a task; if the prose names none, the one in its examples.
/// Beside the command line in the prose, the options of an example only show how the fault was seen.
fn command_line(lookup: &Lookup, text: &str) -> CommandLine {
    let in_prose = CommandLine::of(lookup, &prose(text));
    match in_prose.words.is_empty() {
        true => CommandLine::of(lookup, text),
        false => in_prose,
    }
}

/// Returns the classes in `sure` that the task is not about.
fn bystanders(lookup: &Lookup, text: &str, sure: &[SymbolPath]) -> Vec<SymbolPath> {
    let is_class = |symbol: &&SymbolPath| {
        let found = lookup.symbol(symbol);
        found.is_ok_and(|found| found.symbol.kind == SymbolKind::Class)
    };
    let is_member = |symbol: &&SymbolPath| {
        let found = lookup.symbol(symbol);
        found.is_ok_and(|found| {
            matches!(found.symbol.kind, SymbolKind::Function | SymbolKind::Method)
        })
    };
    let classes: Vec<SymbolPath> = sure.iter().filter(is_class).cloned().collect();
    if classes.is_empty() || sure.iter().any(|one| is_member(&one)) {
        return classes;
    }
    let (in_prose, by_word) = in_text(lookup, &without_examples(text));
    let in_prose: Vec<SymbolPath> = in_prose.into_iter().chain(by_word).collect();
    match in_prose.is_empty() {
        true => Vec::new(),
        false => (classes.into_iter())
            .filter(|class| !in_prose.contains(class))
            .collect(),
    }
}

/// Returns two lists: the symbols and files that a text names in code style, and the symbols that
/// it may name by plain words.
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

/// Returns the symbols outside tests that a name may refer to, or the module of a file.
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

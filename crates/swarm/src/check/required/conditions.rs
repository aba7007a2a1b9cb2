//! Conditions under which code uses other code, as far as they compare a word with a string: below
//! `if args.command == "stats":`, the code runs only if the word `stats` is given. A test that gives
//! another word of the same command line does not run the code.

use std::collections::BTreeMap;

use crate::lookup::Lookup;
use crate::task::command_line::{is_name, is_option, is_parsed, is_string_in};
use crate::task::whole_word::has_word;
use starling_index::{Usage, is_test_file};
use starling_syntax::FilePath;

/// A condition: one of several words must be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    words: Vec<String>,
    /// The sources of the functions outside tests that contain one of the words as a string.
    sources: Vec<String>,
}

impl Condition {
    /// Returns the condition that one of the words is given; `None` if no function outside tests
    /// contains one of them as a string.
    pub fn of_words(lookup: &Lookup, words: Vec<String>) -> Option<Condition> {
        let strings = words
            .iter()
            .flat_map(|word| lookup.index().in_strings(word));
        let strings = strings.filter(|one| one.file.name().ends_with(".py"));
        let mut places: Vec<_> = strings
            .filter(|one| !is_test_file(&one.file) && one.file.name() != "conftest.py")
            .filter_map(|one| {
                let tree = lookup.tree(&one.file).ok()?;
                Some(tree.at_line(one.line).path.clone())
            })
            .collect();
        places.sort();
        places.dedup();
        let sources = places.iter().filter_map(|place| lookup.symbol(place).ok());
        let sources = sources.map(|found| found.source().to_owned());
        let sources = sources.filter(|source| words.iter().any(|word| is_string_in(source, word)));
        let sources: Vec<String> = sources.collect();
        (!words.is_empty() && !sources.is_empty()).then_some(Condition { words, sources })
    }

    /// Returns whether a test with this source may meet the condition: it contains one of the words, as
    /// in `convert("3 kg", "lb")`, or it gives no other word of the functions that compare them.
    pub fn may_hold(&self, id: &str, source: &str) -> bool {
        let is_given = |word: &String| {
            let case = id.split_once('[').map_or("", |(_, case)| case);
            let mut parts = case.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            has_word(source, word) || parts.any(|part| part == word)
        };
        let is_other = |word: &&str| self.sources.iter().any(|code| is_string_in(code, word));
        self.words.iter().any(is_given) || !words_in(source).iter().any(is_other)
    }
}

/// The conditions of uses. Remembers the conditions that it found.
#[derive(Default)]
pub(super) struct Conditions {
    known: BTreeMap<Vec<String>, Option<Condition>>,
}

impl Conditions {
    /// Returns the conditions under which a function reaches one of its uses of other code.
    pub fn of_use(&mut self, lookup: &Lookup, usage: &Usage) -> Vec<Condition> {
        let all = words_required(lookup, &usage.file, usage.line, usage.column);
        let conditions = all.into_iter().filter_map(|words| {
            let known = self.known.entry(words);
            let words = known.key().clone();
            known
                .or_insert_with(|| Condition::of_words(lookup, words))
                .clone()
        });
        conditions.collect()
    }
}

/// Returns for each condition around a place the words of which one must be given.
fn words_required(lookup: &Lookup, file: &FilePath, line: u32, column: u32) -> Vec<Vec<String>> {
    let Ok(tree) = lookup.tree(file) else {
        return Vec::new();
    };
    let lines: Vec<&str> = tree.text().lines().take(line as usize).collect();
    let Some((own, above)) = lines.split_last() else {
        return Vec::new();
    };
    let mut found: Vec<Vec<String>> = Vec::new();
    // A table of functions: `{"stats": count, "plan": plan}`.
    let key = own.get(..column as usize).map(str::trim_end);
    let key = key.and_then(|before| before.strip_suffix(':'));
    let key = key.and_then(|before| before.rsplit(['{', ',', ' ']).next());
    found.extend(key.and_then(string).map(|word| vec![word]));
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut depth = indent(own);
    for line in above.iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) >= depth {
            continue;
        }
        depth = indent(line);
        let header = line.trim();
        if ["def ", "async def ", "class "]
            .iter()
            .any(|start| header.starts_with(start))
        {
            break;
        }
        found.extend(words_of_header(header));
    }
    found
}

/// Returns the words of the conditions in the first line of a block.
fn words_of_header(header: &str) -> Vec<Vec<String>> {
    let Some(header) = header.strip_suffix(':') else {
        return Vec::new();
    };
    if let Some(pattern) = header.strip_prefix("case ") {
        return strings(pattern.split('|')).into_iter().collect();
    }
    let condition = header.strip_prefix("if ").or(header.strip_prefix("elif "));
    let parts = condition.into_iter().flat_map(|all| all.split(" and "));
    let words = parts.filter_map(|part| {
        let alternatives: Option<Vec<Vec<String>>> = part.split(" or ").map(compared).collect();
        Some(alternatives?.concat())
    });
    words.collect()
}

/// Returns the words of a comparison with strings, or the option that is read: `args.command ==
/// "stats"`, `args.command in ("stats", "plan")`, `args.weather`.
fn compared(part: &str) -> Option<Vec<String>> {
    let part = part.trim();
    if let Some((left, right)) = part.split_once(" == ") {
        let word = string(right).or_else(|| string(left))?;
        return Some(vec![word]);
    }
    if let Some((_, all)) = part.split_once(" in ") {
        let is_inner =
            |all: &str| all.starts_with(['(', '[', '{']) && all.ends_with([')', ']', '}']);
        let inner = is_inner(all).then(|| &all[1..all.len() - 1])?;
        return strings(inner.trim_end_matches(',').split(','));
    }
    let (variable, name) = part.split_once('.')?;
    let is_read = is_parsed(variable) && is_name(name) && !name.contains('.');
    is_read.then(|| vec![format!("--{}", name.replace('_', "-"))])
}

/// Returns the words of strings; `None` if a part is no string of one word.
fn strings<'t>(parts: impl Iterator<Item = &'t str>) -> Option<Vec<String>> {
    parts.map(string).collect()
}

fn string(part: &str) -> Option<String> {
    let part = part.trim();
    let quotes = ['"', '\''].into_iter();
    let mut inner = quotes.filter_map(|quote| part.strip_prefix(quote)?.strip_suffix(quote));
    inner.next().filter(|word| is_name(word)).map(str::to_owned)
}

/// Returns the strings in a source that are one word or one option.
fn words_in(source: &str) -> Vec<&str> {
    let quotes = source.match_indices(['"', '\'']);
    let words = quotes.filter_map(|(at, quote)| {
        let rest = &source[at + quote.len()..];
        let (word, _) = rest.split_once(quote)?;
        (is_name(word) || is_option(word)).then_some(word)
    });
    words.collect()
}

//! Renames of names that occur only in strings: columns, keys, options and messages. If a change
//! replaced such a name in some strings, this module finds other strings of the same kind that
//! still contain it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::named::Word;
use crate::lookup::Lookup;
use crate::task::whole_word::has_word;
use starling_syntax::{FilePath, Language, SymbolTree, string_literals};
use starling_text::ByteRange;

/// Keywords that begin an SQL statement, and keywords that begin a part of one. A text that begins
/// with one of `PARTS` counts as SQL only if the keyword is in capitals, because the words also
/// occur in prose.
const STATEMENTS: [&str; 6] = ["ALTER", "CREATE", "DELETE", "INSERT", "SELECT", "UPDATE"];
const PARTS: [&str; 14] = [
    "AND", "FROM", "GROUP", "HAVING", "INNER", "JOIN", "LEFT", "ON", "OR", "ORDER", "SET",
    "VALUES", "WHERE", "WITH",
];
/// Keywords of which an SQL statement contains at least one after its first word.
const CLAUSES: [&str; 5] = ["FROM", "INTO", "SET", "TABLE", "WHERE"];
/// Keywords that come before the name of a table.
const BEFORE_TABLE: [&str; 5] = ["FROM", "INTO", "JOIN", "TABLE", "UPDATE"];
/// Keywords that may come between a keyword of [`BEFORE_TABLE`] and the name of the table.
const BESIDE_TABLE: [&str; 4] = ["EXISTS", "IF", "NOT", "ONLY"];
/// Directories with database migrations. They describe earlier states of the database, so they keep
/// old names.
const HISTORY: [&str; 3] = ["alembic", "migrations", "versions"];

/// A string that still contains the old name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StringWithOldName {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    /// Whether the name in this string can only refer to what was renamed.
    pub is_sure: bool,
}

/// How a string literal contains the searched name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StringContent {
    /// In an SQL statement, or a part of one, that uses these tables.
    Sql(BTreeSet<String>),
    /// The string is exactly the name.
    Whole,
    /// In other text.
    Text,
}

/// A string literal, or one statement of a string literal that contains SQL.
struct StringPart<'t> {
    text: &'t str,
    /// Number of the line with the name, counted from 1.
    line: u32,
    shape: StringContent,
}

/// The kinds of strings in which a change has replaced the old name.
#[derive(Default)]
struct ReplacedStrings {
    tables: BTreeSet<String>,
    /// Files in which the change replaced the name in an SQL statement.
    sql: BTreeSet<FilePath>,
    whole: bool,
    text: bool,
}

/// Returns the strings that still contain the old name and are of a kind in which the change
/// replaced the name.
pub(super) fn left(
    word: &Word,
    to: &str,
    before: &Lookup,
    after: &Lookup,
) -> Vec<StringWithOldName> {
    let replaced = replaced(&word.name, to, before, after);
    if replaced.sql.is_empty() && !replaced.whole && !replaced.text {
        return Vec::new();
    }
    let is_option = word.name.starts_with('-');
    let mut left = Vec::new();
    for file in after.files().iter().filter(|file| is_code(file)) {
        let is_history = file.as_str().split('/').any(|part| HISTORY.contains(&part));
        let Some(tree) = mentioning(after, file, &word.name).filter(|_| !is_history) else {
            continue;
        };
        for unit in units(&tree, &word.name) {
            if has_word(unit.text, to) {
                continue;
            }
            let is_sure = match &unit.shape {
                StringContent::Sql(tables) if tables.is_empty() => replaced.sql.contains(file),
                StringContent::Sql(tables) => !tables.is_disjoint(&replaced.tables),
                StringContent::Whole => replaced.whole && is_option,
                StringContent::Text => replaced.text && is_option,
            };
            let may_be = match unit.shape {
                StringContent::Sql(_) => false,
                StringContent::Whole => replaced.whole && word.is_text,
                StringContent::Text => replaced.text && word.is_text,
            };
            if is_sure || may_be {
                left.push(StringWithOldName {
                    file: file.clone(),
                    line: unit.line,
                    is_sure,
                });
            }
        }
    }
    left.sort();
    left.dedup();
    left
}

/// Returns the kinds of strings in which the changed files have the new name in place of the old
/// one.
fn replaced(old: &str, new: &str, before: &Lookup, after: &Lookup) -> ReplacedStrings {
    let mut replaced = ReplacedStrings::default();
    for file in after.index().snapshot().overlay().keys() {
        if !is_code(file) {
            continue;
        }
        let (Some(was), Ok(is)) = (mentioning(before, file, old), after.tree(file)) else {
            continue;
        };
        if was.text() == is.text() {
            continue;
        }
        let count = |tree: &SymbolTree, word: &str, text: &str| {
            let all = units(tree, word).into_iter();
            all.filter(|unit| unit.text == text).count()
        };
        let more = |unit: &StringPart<'_>, word: &str, than: &SymbolTree, own: &SymbolTree| {
            count(own, word, unit.text) > count(than, word, unit.text)
        };
        let mut lost = units(&was, old);
        lost.retain(|unit| more(unit, old, &is, &was));
        let mut gained = units(&is, new);
        gained.retain(|unit| more(unit, new, &was, &is));
        for unit in gained {
            let is_same = |one: &&StringPart<'_>| match (&one.shape, &unit.shape) {
                (StringContent::Sql(a), StringContent::Sql(b)) => a == b || !a.is_disjoint(b),
                (a, b) => a == b,
            };
            let Some(was) = lost.iter().find(is_same) else {
                continue;
            };
            match &was.shape {
                StringContent::Sql(tables) => {
                    replaced.tables.extend(tables.iter().cloned());
                    replaced.sql.insert(file.clone());
                }
                StringContent::Whole => replaced.whole = true,
                StringContent::Text => replaced.text = true,
            }
        }
    }
    replaced
}

fn is_code(file: &FilePath) -> bool {
    Language::of(file) == Language::Python
}

/// Returns the syntax tree of a file; `None` if the file does not contain the word.
fn mentioning(lookup: &Lookup, file: &FilePath, word: &str) -> Option<Arc<SymbolTree>> {
    let text = lookup.index().snapshot().read(file).ok()?;
    let tree = has_word(&text, word).then(|| lookup.tree(file).ok());
    tree.flatten()
}

/// Returns the strings of a file that contain a word. Docstrings are left out.
fn units<'t>(tree: &'t SymbolTree, word: &str) -> Vec<StringPart<'t>> {
    let mut found = Vec::new();
    for string in literals(tree, word) {
        let content = content(tree.text(), string);
        let text = content.of(tree.text());
        if text == word {
            found.push(unit(tree, content, word, StringContent::Whole));
            continue;
        }
        let mut start = content.start;
        for part in text.split_inclusive(';') {
            let range = ByteRange::new(start, start + part.len());
            start = range.end;
            if let Some(tables) = tables(part).filter(|_| has_word(part, word)) {
                found.push(unit(tree, range, word, StringContent::Sql(tables)));
            }
        }
        if tables(text).is_none() {
            found.push(unit(tree, content, word, StringContent::Text));
        }
    }
    found
}

fn unit<'t>(
    tree: &'t SymbolTree,
    range: ByteRange,
    word: &str,
    shape: StringContent,
) -> StringPart<'t> {
    let text = range.of(tree.text());
    let mut places = text.match_indices(word);
    let at = places.find(|(at, _)| has_word(&text[at.saturating_sub(1)..], word));
    let at = range.start + at.map_or(0, |(at, _)| at);
    let line = tree.line_starts().partition_point(|start| *start <= at);
    StringPart {
        text,
        line: u32::try_from(line).unwrap_or(u32::MAX),
        shape,
    }
}

/// Returns the string literals whose own text contains a word, also those in the fields of format
/// strings, as `'key'` in `f"{row['key']}"`. Docstrings are left out.
fn literals(tree: &SymbolTree, word: &str) -> Vec<ByteRange> {
    let mut found = Vec::new();
    for string in tree.strings() {
        if !has_word(string.of(tree.text()), word) || stands_alone(tree, *string) {
            continue;
        }
        let literals = string_literals(tree, *string).into_iter();
        let has_it = |part: &ByteRange| has_word(part.of(tree.text()), word);
        let named = literals.filter(|one| one.written.iter().any(has_it));
        found.extend(named.map(|one| one.whole));
    }
    found
}

/// Returns whether a string is a whole statement, as a docstring is.
fn stands_alone(tree: &SymbolTree, string: ByteRange) -> bool {
    let root = tree.root();
    let node = root.and_then(|root| root.descendant_for_byte_range(string.start, string.end));
    let parent = node.and_then(|node| node.parent());
    parent.is_some_and(|parent| parent.kind() == "expression_statement")
}

/// Returns the range of a string without its prefix and quotes.
fn content(text: &str, string: ByteRange) -> ByteRange {
    let whole = string.of(text);
    let quoted = whole.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let prefix = whole.len() - quoted.len();
    let quotes = match quoted.starts_with("\"\"\"") || quoted.starts_with("'''") {
        true => 3,
        false => 1,
    };
    let (start, end) = (
        string.start + prefix + quotes,
        string.end.saturating_sub(quotes),
    );
    match start <= end && quoted.starts_with(['"', '\'']) {
        true => ByteRange::new(start, end),
        false => string,
    }
}

/// Returns the tables that an SQL statement, or a part of one, uses; `None` if the text is not SQL.
fn tables(text: &str) -> Option<BTreeSet<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let words: Vec<&str> = text
        .split(|c| !is_part(c))
        .filter(|word| !word.is_empty())
        .collect();
    let upper: Vec<String> = words.iter().map(|word| word.to_uppercase()).collect();
    let first = upper.first()?;
    let goes_on = |word: &String| CLAUSES.contains(&word.as_str());
    let is_statement = STATEMENTS.contains(&first.as_str()) && upper[1..].iter().any(goes_on);
    let is_begun = PARTS.contains(&words[0]);
    if !is_statement && !is_begun {
        return None;
    }
    let mut tables = BTreeSet::new();
    for (at, word) in upper.iter().enumerate() {
        if !BEFORE_TABLE.contains(&word.as_str()) {
            continue;
        }
        let beside = |at: &usize| {
            upper
                .get(*at)
                .is_some_and(|one| BESIDE_TABLE.contains(&one.as_str()))
        };
        let name = (at + 1..)
            .find(|at| !beside(at))
            .and_then(|at| words.get(at));
        tables.extend(name.map(|name| name.to_lowercase()));
    }
    Some(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_statements_are_distinguished_from_prose() {
        let found = |text: &str| {
            let tables = tables(text)?;
            Some(tables.into_iter().collect::<Vec<_>>().join(" "))
        };
        for (text, expected) in [
            ("SELECT who FROM bookings WHERE id = ?", Some("bookings")),
            ("select who from a join b on a.x = b.y", Some("a b")),
            ("insert into bookings (who) values (?)", Some("bookings")),
            (
                "CREATE TABLE IF NOT EXISTS bookings (who TEXT)",
                Some("bookings"),
            ),
            (" WHERE who = ?", Some("")),
            ("and who is there", None),
            ("Select who comes", None),
            ("who", None),
            ("", None),
        ] {
            assert_eq!(found(text).as_deref(), expected, "{text}");
        }
    }
}

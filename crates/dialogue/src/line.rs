//! Calls in the text protocol: a line `@tool argument`.

use serde_json::{Value, json};
use starling_workspace::UnusualPaths;

/// How the rest of a line gives the arguments of a tool. The names are those of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineArguments {
    /// There are none.
    None,
    /// All of it, which may be empty.
    Optional(&'static str),
    /// All of it.
    Rest(&'static str),
    /// Its words, as a list.
    Words(&'static str),
    /// Its first word, and the rest.
    FirstAndRest(&'static str, &'static str),
    /// A JSON object.
    Json,
}

/// The line of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineSyntax {
    /// What stands after the `@`.
    pub word: String,
    pub arguments: LineArguments,
}

impl LineSyntax {
    /// Returns the arguments as JSON text; `None` if the line has none and the tool needs some.
    pub fn read(&self, rest: &str, paths: &UnusualPaths) -> Option<String> {
        let value: Value = match self.arguments {
            LineArguments::None => json!({}),
            LineArguments::Optional(name) => json!({ name: rest }),
            LineArguments::Rest(_)
            | LineArguments::Words(_)
            | LineArguments::FirstAndRest(..)
            | LineArguments::Json
                if rest.is_empty() =>
            {
                return None;
            }
            LineArguments::Rest(name) => json!({ name: rest }),
            LineArguments::Words(name) => {
                json!({ name: words(rest, paths).collect::<Vec<&str>>() })
            }
            LineArguments::FirstAndRest(first_name, rest_name) => {
                let (first, more) = first_word(rest, paths);
                json!({ first_name: first, rest_name: more })
            }
            LineArguments::Json => return Some(rest.to_owned()),
        };
        Some(value.to_string())
    }
}

/// Splits a line `@word rest` into the word and the rest; `None` for every other line.
pub(crate) fn command(line: &str) -> Option<(&str, &str)> {
    let command = line.trim().strip_prefix('@')?;
    let (word, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    Some((word, rest.trim()))
}

/// Splits a text into words. Paths with spaces are not split.
pub fn words<'t>(text: &'t str, paths: &UnusualPaths) -> impl Iterator<Item = &'t str> {
    let words = paths.words(text, char::is_whitespace).into_iter();
    words.filter(|word| !word.is_empty())
}

/// Splits a text into its first word and the rest.
pub fn first_word<'t>(text: &'t str, paths: &UnusualPaths) -> (&'t str, &'t str) {
    let text = text.trim();
    let first = words(text, paths).next().unwrap_or_default();
    (first, text[first.len()..].trim())
}

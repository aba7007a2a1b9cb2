//! Calls in the text protocol: a line `@tool argument`.

use serde_json::{Value, json};
use starling_workspace::UnusualPaths;

/// How the rest of a line `@tool rest` is parsed into the arguments of the tool. The strings are
/// the names of these arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineArguments {
    /// The tool has no arguments.
    None,
    /// One argument: the rest of the line, which may be empty.
    Optional(&'static str),
    /// One argument: the rest of the line, which must not be empty.
    Rest(&'static str),
    /// One argument: the list of the words in the rest of the line.
    Words(&'static str),
    /// Two arguments: the first word, and the text after it.
    FirstAndRest(&'static str, &'static str),
    /// The rest of the line is a JSON object with all arguments.
    Json,
}

/// How a tool is called in the text protocol: `@word`, then arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineSyntax {
    /// The word after the `@`.
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

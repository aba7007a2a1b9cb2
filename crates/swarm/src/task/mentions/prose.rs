//! Which files are documents, and how names of code look in prose.

use starling_syntax::FilePath;
use starling_text::ByteRange;

/// File extensions of documents.
pub(super) const DOCUMENTS: [&str; 5] = ["adoc", "markdown", "md", "rst", "txt"];
/// Prefixes of the names of documents that are not searched: changelogs, which describe earlier
/// versions, and lists of dependencies.
pub(super) const NO_DOCUMENTS: [&str; 6] = [
    "changelog",
    "changes",
    "constraints",
    "history",
    "news",
    "requirements",
];

pub(super) fn is_document(file: &FilePath) -> bool {
    let name = file.name().to_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| DOCUMENTS.contains(&ending))
        && !NO_DOCUMENTS.iter().any(|start| name.starts_with(start))
}

/// Returns whether a name is not part of a longer one. A dash continues the name of an option:
/// `--rate` does not occur in `--rate-limit`.
pub(super) fn is_word(text: &str, place: ByteRange) -> bool {
    let is_option = place.of(text).starts_with('-');
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || is_option && c == '-';
    !text[..place.start].ends_with(is_part) && !text[place.end..].starts_with(is_part)
}

/// Returns whether a word of prose looks like a name of code: by an underscore, an inner capital or
/// the dash of an option, by a dot before it or a parenthesis after it, or by quotes around it.
pub(super) fn is_like_code(line: &str, place: ByteRange, name: &str) -> bool {
    let has_inner_capital = name.chars().skip(1).any(char::is_uppercase);
    let is_called = line[place.end..].starts_with('(') || line[..place.start].ends_with('.');
    let is_quoted = ['"', '\''].iter().any(|quote| {
        line[..place.start].ends_with(*quote) && line[place.end..].starts_with(*quote)
    });
    is_called || is_quoted || name.starts_with('-') || name.contains('_') || has_inner_capital
}

/// Returns the ranges of the code spans in a line of prose, without their back-quotes.
pub(super) fn spans(line: &str) -> Vec<ByteRange> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = line[at..].find('`').map(|open| at + open) {
        let ticks = line[open..].len() - line[open..].trim_start_matches('`').len();
        let start = open + ticks;
        let quote = "`".repeat(ticks);
        let Some(end) = line[start..].find(&quote).map(|end| start + end) else {
            break;
        };
        let inner = &line[start..end];
        let from = start + inner.len() - inner.trim_start().len();
        found.push(ByteRange::new(from, from + inner.trim().len()));
        at = end + ticks;
    }
    found
}

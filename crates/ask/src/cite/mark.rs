//! Finds text that looks like a citation: `path:12`, `path:12-18`, `path:12,20-22`, `path#L12`,
//! `path::Symbol:12`, `path line 12`. A path is a name with an extension, a path with a directory,
//! or a well-known name without an extension.

use std::ops::Range;

/// A citation as written in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitationMark {
    /// The citation's byte range in the text.
    pub span: Range<usize>,
    /// The path as written.
    pub path: String,
    /// The symbol written after the path.
    pub symbol: Option<String>,
    /// First and last line of each range; holds at least one range.
    pub lines: Vec<(u32, u32)>,
}

/// Separators between a path and its first line number.
const JOINTS: [&str; 6] = [":", "#L", ":L", " line ", " lines ", ", line "];

/// Well-known file names without an extension. Any other name without one may be a plain word.
const NAMES: [&str; 34] = [
    "AUTHORS",
    "BUILD",
    "Brewfile",
    "CHANGELOG",
    "CHANGES",
    "CODEOWNERS",
    "CONTRIBUTING",
    "COPYING",
    "Containerfile",
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "INSTALL",
    "Jenkinsfile",
    "Justfile",
    "LICENCE",
    "LICENSE",
    "MANIFEST",
    "Makefile",
    "NOTICE",
    "Pipfile",
    "Procfile",
    "README",
    "Rakefile",
    "TODO",
    "Tiltfile",
    "VERSION",
    "Vagrantfile",
    "authorized_keys",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "known_hosts",
];

/// Tells which paths exist in a project.
pub trait Files {
    /// Whether the project has a file with this path or a path that ends with it. If so, a name
    /// without an extension counts as a path.
    fn is_file(&self, path: &str) -> bool;

    /// Returns the ranges of known paths that contain unusual characters, in order.
    fn paths_in(&self, text: &str) -> Vec<Range<usize>>;
}

/// Returns all citations of a text, in order.
pub fn marks(text: &str, files: &impl Files) -> Vec<CitationMark> {
    let paths = files.paths_in(text);
    let is_file = |path: &str| files.is_file(path);
    let mut found: Vec<CitationMark> = Vec::new();
    let mut at = 0;
    while let Some(digit) = next_number(text, at) {
        if let Some(path) = paths.iter().find(|path| path.contains(&digit)) {
            at = path.end;
            continue;
        }
        let (lines, end) = numbers(text, digit);
        at = end.max(digit + 1);
        let from = found.last().map_or(0, |mark| mark.span.end);
        let joint = JOINTS
            .iter()
            .filter(|joint| text[from..digit].ends_with(**joint))
            .max_by_key(|joint| joint.len());
        let Some(joint) = joint else { continue };
        let end_of_path = digit - joint.len();
        let known = known_before(text, end_of_path, &paths).filter(|start| *start >= from);
        let plain = || {
            let start = from + path_before(&text[from..end_of_path])?;
            Some(with_dot(text, from, start, end_of_path, is_file))
        };
        if let Some(start) = known.or_else(plain) {
            let written = text[start..end_of_path].trim_end_matches('`');
            let (path, symbol) = match written.split_once("::") {
                Some((path, symbol)) => (path, Some(symbol).filter(|symbol| !symbol.is_empty())),
                None => (written, None),
            };
            let is_known = known.is_some() || is_path(path) || is_name(path, is_file);
            if is_known && !lines.is_empty() {
                let (path, symbol) = (path.to_owned(), symbol.map(str::to_owned));
                // Back-quotes around the path are part of the citation.
                let is_quoted =
                    text[..end_of_path].ends_with('`') && text[from..start].ends_with('`');
                let span = start - usize::from(is_quoted)..end;
                found.push(CitationMark {
                    span,
                    path,
                    symbol,
                    lines,
                });
            }
        }
    }
    found
}

/// Returns the next digit that can start a line number: one that follows `:`, a space or `#L`.
fn next_number(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (from..bytes.len()).find(|at| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        bytes[*at].is_ascii_digit()
            && before.is_none_or(|b| matches!(b, b':' | b' ') || (b == b'L' && joins(text, *at)))
    })
}

/// Whether the `L` before `at` belongs to `#L` or `:L`.
fn joins(text: &str, at: usize) -> bool {
    text[..at].ends_with("#L") || text[..at].ends_with(":L")
}

/// Parses line numbers (`12`, `12-18`, `12,20-22`, or `12:4` with an ignored column) and returns
/// them with the end of the parsed text.
fn numbers(text: &str, at: usize) -> (Vec<(u32, u32)>, usize) {
    let mut lines = Vec::new();
    let mut end = at;
    loop {
        let (first, after) = number(text, end);
        let Some(first) = first else { break };
        end = after;
        let mut last = first;
        let rest = &text[end..];
        let dash = ["-", "–", "—"].iter().find(|dash| rest.starts_with(**dash));
        if let Some(dash) = dash {
            let skip = end + dash.len();
            let skip = skip + usize::from(text[skip..].starts_with('L'));
            if let (Some(number), after) = number(text, skip) {
                (last, end) = (number, after);
            }
        } else if let (Some(_), after) = number(text, end + 1)
            && rest.starts_with(':')
        {
            end = after;
        }
        lines.push((first.min(last), first.max(last)));
        let rest = &text[end..];
        let comma = [",", ", "]
            .iter()
            .rev()
            .find(|comma| rest.starts_with(**comma) && continues(&rest[comma.len()..]));
        match comma {
            Some(comma) => end += comma.len(),
            None => break,
        }
    }
    (lines, end)
}

/// Whether the text starts with another line number of the same citation.
fn continues(rest: &str) -> bool {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after = rest[digits..].chars().next();
    digits > 0 && after.is_none_or(|c| matches!(c, ']' | ')' | ',' | '-' | '–' | '`' | ';'))
}

fn number(text: &str, at: usize) -> (Option<u32>, usize) {
    let rest = text.get(at..).unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (rest[..digits].parse().ok(), at + digits)
}

/// Returns the start of a known path that ends at `end`, with or without a symbol after the path.
fn known_before(text: &str, end: usize, paths: &[Range<usize>]) -> Option<usize> {
    let path = paths.iter().rfind(|path| path.end <= end)?;
    let rest = text[path.end..end].trim_end_matches('`');
    rest.chars()
        .all(|c| is_part(c) || c == ':')
        .then_some(path.start)
}

/// Whether a path may contain this character if the path is not one of the known paths of the
/// project.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | '#')
}

/// Returns the start of the path at the end of the text.
fn path_before(text: &str) -> Option<usize> {
    let text = text.strip_suffix('`').unwrap_or(text);
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let colons = c == ':' && (text[at..].starts_with("::") || text[..at].ends_with(':'));
        if !is_part(c) && !colons {
            break;
        }
        start = at;
    }
    let skipped = text[start..].len() - text[start..].trim_start_matches(['.', '-', '#']).len();
    let start = match text[start..].starts_with("./") || text[start..].starts_with("../") {
        true => start,
        false => start + skipped,
    };
    (start < text.len()).then_some(start)
}

/// Returns the start of a path, including a dot before it if the dot belongs to the path (`.env`).
/// It does not if there are several dots, or if only the path without the dot is in the project.
fn with_dot(
    text: &str,
    from: usize,
    start: usize,
    end: usize,
    is_file: impl Fn(&str) -> bool,
) -> usize {
    let before = &text[from..start];
    if !before.ends_with('.') || before.ends_with("..") {
        return start;
    }
    let dot = start - 1;
    let path = |start: usize| {
        let written = text[start..end].trim_end_matches('`');
        written.split("::").next().unwrap_or(written)
    };
    if is_file(path(dot)) {
        return dot;
    }
    let is_usual = text[start..].starts_with(|c: char| c.is_lowercase() || c == '_');
    match is_usual && !is_file(path(start)) {
        true => dot,
        false => start,
    }
}

/// Whether a path is the name of a file without an extension.
fn is_name(path: &str, is_file: impl Fn(&str) -> bool) -> bool {
    let is_word = path.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_word && (NAMES.contains(&path) || is_file(path))
}

/// Whether a path can name a file: it has an extension with a letter, or a directory.
fn is_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let has_ending = ending.starts_with(|c: char| c.is_ascii_alphabetic());
    !name.is_empty() && !path.starts_with("//") && (has_ending || path.contains('/'))
}

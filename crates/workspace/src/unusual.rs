//! Finds paths that contain spaces, quotes, brackets and similar characters. A text cannot be split
//! into such paths by separators, so the known paths are searched for in the text.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use starling_syntax::FilePath;

/// The paths of a project that contain characters other than letters, digits and `_ - . /`.
#[derive(Debug, Clone, Default)]
pub struct UnusualPaths {
    /// Files, all suffixes of their paths, and directories with a trailing `/`, longest first; then
    /// the root.
    paths: Vec<String>,
    /// The root directory with a trailing `/`.
    root: String,
}

impl UnusualPaths {
    pub fn of(files: &[FilePath], root: &Path) -> Self {
        let root = format!("{}/", root.to_string_lossy());
        let mut paths = BTreeSet::new();
        for file in files.iter().map(FilePath::as_str).filter(is_unusual) {
            paths.extend(ends(file).map(str::to_owned));
            let directories = file.match_indices('/').map(|(at, _)| &file[..=at]);
            paths.extend(directories.filter(is_unusual).map(str::to_owned));
        }
        let mut paths: Vec<String> = paths.into_iter().collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
        if is_unusual(&root.as_str()) {
            paths.push(root.clone());
        }
        UnusualPaths { paths, root }
    }

    /// Returns the ranges of unusual paths in a text, in order. For a path below an unusual
    /// directory that is not a known file, the range ends after the directory's `/`.
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for path in &self.paths {
            for (at, _) in text.match_indices(path.as_str()) {
                let end = at + path.len();
                let Some(start) = self.start(text, at) else {
                    continue;
                };
                let is_free = |span: &Range<usize>| end <= span.start || span.end <= start;
                if found.iter().all(is_free) && ends_here(path, &text[end..]) {
                    found.push(start..end);
                }
            }
        }
        found.sort_by_key(|span| span.start);
        found
    }

    /// Returns the start of the path that contains position `at`, or `None` inside a word.
    fn start(&self, text: &str, at: usize) -> Option<usize> {
        let before = &text[..at];
        if before.ends_with(self.root.as_str()) {
            return Some(at - self.root.len());
        }
        if before.ends_with('/') {
            let rest = before.trim_end_matches(|c: char| is_usual(c));
            return Some(rest.len());
        }
        let is_inside = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        (!is_inside).then_some(at)
    }

    /// Splits a text at characters for which `outside` is true, except inside paths. Words may be
    /// empty.
    pub fn words<'t>(&self, text: &'t str, outside: impl Fn(char) -> bool) -> Vec<&'t str> {
        let spans = self.spans(text);
        let mut words = Vec::new();
        let mut start = 0;
        for (at, c) in text.char_indices() {
            if outside(c) && !spans.iter().any(|span| span.contains(&at)) {
                words.push(&text[start..at]);
                start = at + c.len_utf8();
            }
        }
        words.push(&text[start..]);
        words
    }

    /// Trims characters for which `cut` is true from the ends of a word, except characters that
    /// belong to a path.
    pub fn trimmed<'t>(&self, word: &'t str, cut: impl Fn(char) -> bool) -> &'t str {
        let spans = self.spans(word);
        let first = spans.first().map_or(word.len(), |span| span.start);
        let start = word[..first].trim_start_matches(&cut);
        let start = first - start.len();
        let last = spans.last().map_or(start, |span| span.end).max(start);
        &word[start..last + word[last..].trim_end_matches(&cut).len()]
    }
}

fn is_usual(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

fn is_unusual(path: &&str) -> bool {
    !path.chars().all(is_usual)
}

/// Returns the unusual suffixes of a path, including the path (`b c/d.py` of `a/b c/d.py`).
fn ends(path: &str) -> impl Iterator<Item = &str> {
    let behind = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    std::iter::once(path).chain(behind).filter(is_unusual)
}

/// Returns whether a path can end where the text `rest` follows.
fn ends_here(path: &str, rest: &str) -> bool {
    let mut rest = rest.chars();
    match rest.next() {
        _ if path.ends_with('/') => true,
        Some('.') => !rest.next().is_some_and(char::is_alphanumeric),
        Some('/' | '_' | '-') => false,
        Some(c) => !c.is_alphanumeric(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> UnusualPaths {
        let files = [
            "story kit/packages/x.py",
            "story kit/plain",
            "a/50% \"off\"/ü ber.py",
            "c#/main.py",
            "src/app.py",
            "it's (new).md",
        ];
        UnusualPaths::of(&files.map(FilePath::new), Path::new("/home/me/my work"))
    }

    fn found(text: &str) -> Vec<&str> {
        paths()
            .spans(text)
            .into_iter()
            .map(|at| &text[at])
            .collect()
    }

    #[test]
    fn known_paths_with_unusual_characters_are_found() {
        for (text, expected) in [
            (
                "see [story kit/packages/x.py:40].",
                &["story kit/packages/x.py"][..],
            ),
            (
                "`a/50% \"off\"/ü ber.py::f`, ü ber.py",
                &["a/50% \"off\"/ü ber.py", "ü ber.py"],
            ),
            (
                "c#/main.py::f and it's (new).md.",
                &["c#/main.py", "it's (new).md"],
            ),
            ("./story kit/plain", &["./story kit/plain"]),
            (
                "/home/me/my work/story kit/plain",
                &["/home/me/my work/story kit/plain"],
            ),
            ("/home/me/my work/src/app.py:3", &["/home/me/my work/"]),
            ("work/story kit/plain", &["work/story kit/plain"]),
            // The file does not exist yet, so only its directory is found.
            ("story kit/new.py::", &["story kit/"]),
            ("story kit/packages/x.pyi", &["story kit/packages/"]),
            ("history kit/plain of src/app.py", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_not_split_inside_a_known_path() {
        let paths = paths();
        let text = "1. `story kit/packages/x.py::f`, (it's (new).md) src/app.py";
        let words = paths.words(text, char::is_whitespace);
        let words = words
            .into_iter()
            .map(|word| paths.trimmed(word, |c| !c.is_alphanumeric()));
        assert_eq!(
            words.collect::<Vec<_>>(),
            [
                "1",
                "story kit/packages/x.py::f",
                "it's (new).md",
                "src/app.py"
            ]
        );
        assert_eq!(paths.trimmed("«»", |c| !c.is_alphanumeric()), "");
    }
}

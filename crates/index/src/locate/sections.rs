//! Splits a task's text into lines of title, prose, code and tracebacks, and drops irrelevant
//! lines.

use super::query::CodeLocation;
use crate::trace::frame;

/// The section of a text in which a word occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Title,
    /// The first lines of prose after the title.
    Lead,
    Prose,
    /// Text in backquotes inside prose.
    Quote,
    /// A code block.
    Block,
    /// A traceback or an error message.
    Error,
}

/// Number of sections.
pub(super) const SECTIONS: usize = 6;
/// Number of lines of prose that belong to the lead.
const LEAD: usize = 3;

/// One line of the text, or the code location to which it refers.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Frame(CodeLocation),
    /// A link to a line of a file.
    Link(CodeLocation),
    Text(String, Section),
}

/// Returns the relevant lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let text = without_comments(text);
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.read(line);
    }
    reader.found
}

/// Assigns the lines of a text to sections, one after the other.
#[derive(Default)]
struct Reader {
    found: Vec<Line>,
    started: bool,
    /// Number of lines of prose read so far.
    prose: usize,
    fenced: bool,
    in_traceback: bool,
    /// Whether the current heading introduces software versions, whose lines are dropped.
    in_versions: bool,
}

impl Reader {
    fn read(&mut self, line: &str) {
        let bare = line.trim();
        if bare.is_empty() {
            return;
        }
        if !self.started && frame_of(line).is_none() {
            self.started = true;
            self.found.push(Line::Text(line.to_owned(), Section::Title));
            return;
        }
        if bare.starts_with("```") || bare.starts_with("~~~") {
            self.fenced = !self.fenced;
            self.in_traceback = false;
            return;
        }
        if !self.fenced && is_heading(bare) {
            self.in_versions = is_about_versions(bare);
        }
        if self.in_versions {
            return;
        }
        if let Some(place) = frame_of(line) {
            self.in_traceback = true;
            self.found.push(Line::Frame(place));
            return;
        }
        let line = self.without_links(line);
        let section = self.section(&line, bare);
        self.found.push(Line::Text(line, section));
    }

    fn section(&mut self, line: &str, bare: &str) -> Section {
        if bare.contains("Traceback (most recent call last)") {
            self.in_traceback = true;
        }
        let indented = line.starts_with("    ") || line.starts_with('\t');
        if is_error(bare) {
            self.in_traceback = false;
            return Section::Error;
        }
        if self.in_traceback {
            let arrow = bare.starts_with("-->") || bare.starts_with("---");
            if indented
                || arrow
                || bare.starts_with(|c: char| c.is_ascii_digit())
                || line.starts_with("  ")
            {
                return Section::Error;
            }
            self.in_traceback = false;
        }
        if self.fenced || indented || is_code(bare) {
            Section::Block
        } else if is_heading(bare) || bare == "Description" || bare.starts_with("(last modified") {
            Section::Prose
        } else {
            self.prose += 1;
            if self.prose <= LEAD {
                Section::Lead
            } else {
                Section::Prose
            }
        }
    }

    /// Returns the line without its URLs. A URL of a line of code is recorded as a link.
    fn without_links(&mut self, line: &str) -> String {
        let mut left = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find("http://").or_else(|| rest.find("https://")) {
            left.push_str(&rest[..at]);
            let end = rest[at..]
                .find(|c: char| {
                    c.is_whitespace() || matches!(c, ')' | ']' | '>' | '"' | '\'' | '`')
                })
                .map_or(rest.len(), |length| at + length);
            if let Some(place) = link(&rest[at..end]) {
                self.found.push(Line::Link(place));
            }
            rest = &rest[end..];
        }
        left.push_str(rest);
        left
    }
}

fn without_comments(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("<!--") {
        left.push_str(&rest[..at]);
        rest = rest[at..]
            .find("-->")
            .map_or("", |end| &rest[at + end + 3..]);
    }
    left.push_str(rest);
    left
}

fn is_heading(bare: &str) -> bool {
    bare.starts_with('#')
        || (bare.starts_with("**") && bare.trim_end_matches(':').ends_with("**"))
        || bare.starts_with("<details>")
        || (bare.len() < 40 && bare.ends_with(':') && !bare.contains(['(', '`']))
}

/// Returns whether a heading introduces a list of software versions.
fn is_about_versions(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    lower.len() < 60
        && ["version", "environment", "system", "platform"]
            .iter()
            .any(|word| lower.contains(word))
}

fn is_error(bare: &str) -> bool {
    let bare = bare.strip_prefix("E ").unwrap_or(bare).trim_start();
    let Some((name, _)) = bare.split_once(':') else {
        return false;
    };
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_name = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    is_name
        && ["Error", "Exception", "Warning", "DoesNotExist"]
            .iter()
            .any(|end| last.ends_with(end))
}

/// Returns whether a line outside of code blocks looks like code.
fn is_code(bare: &str) -> bool {
    let starts = [
        ">>>", "... ", "In [", "Out[", "import ", "def ", "class ", "@", "print(", "return ",
        "raise ", "assert ", "$ ", "+", "- ", "@@", "diff ", "{{{", "try:", "else:", "except ",
    ];
    let from = bare.starts_with("from ") && bare.contains(" import ");
    let opens = ["if ", "for ", "while ", "with "]
        .iter()
        .any(|word| bare.starts_with(word))
        && bare.ends_with(':');
    let list = bare.starts_with("- ") || bare.starts_with("+ ");
    let assigns = bare.split_once(" = ").is_some_and(|(left, _)| {
        !left.is_empty() && left.split(", ").all(|part| !part.contains(' '))
    });
    let calls = bare.ends_with(')')
        && bare.split_once('(').is_some_and(|(left, _)| {
            !left.is_empty()
                && left
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
        });
    (starts.iter().any(|start| bare.starts_with(start)) && !list)
        || from
        || opens
        || assigns
        || calls
}

/// Parses a frame of Python, pytest or IPython (`path.py in f(x)`, `File path.py:3, in f(x)`).
fn frame_of(line: &str) -> Option<CodeLocation> {
    if let Some(found) = frame(line) {
        return Some(CodeLocation {
            path: found.path.to_owned(),
            line: Some(found.line),
            function: found.function.map(str::to_owned),
        });
    }
    let bare = line.trim();
    let bare = bare.strip_prefix("File ").unwrap_or(bare);
    let (path, rest) = bare.split_once(".py")?;
    if path.contains(char::is_whitespace) || path.is_empty() {
        return None;
    }
    let number = rest
        .strip_prefix(':')
        .map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let (_, function) = rest.split_once("in ")?;
    let known = rest.starts_with(" in ") || rest.starts_with(':') && rest.contains(", in ");
    let end = function.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '<' || c == '>'));
    let function = &function[..end.unwrap_or(function.len())];
    (known && !function.is_empty() && !function.starts_with('<')).then(|| CodeLocation {
        path: format!("{path}.py"),
        line: number.flatten().and_then(|number| number.parse().ok()),
        function: Some(function.to_owned()),
    })
}

/// Parses a link such as `…/blob/<version>/path/to/file.py#L12`.
fn link(address: &str) -> Option<CodeLocation> {
    let (_, rest) = ["/blob/", "/tree/", "/blame/"]
        .iter()
        .find_map(|mark| address.split_once(mark))?;
    let (_, path) = rest.split_once('/')?;
    let (path, anchor) = path.split_once('#').unwrap_or((path, ""));
    let line = anchor
        .strip_prefix('L')
        .map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    path.ends_with(".py").then(|| CodeLocation {
        path: path.to_owned(),
        line: line.flatten().and_then(|number| number.parse().ok()),
        function: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let shown = |line| match line {
            Line::Frame(place) => {
                format!("frame {} {:?} {:?}", place.path, place.line, place.function)
            }
            Line::Link(place) => format!("link {} {:?}", place.path, place.line),
            Line::Text(text, section) => format!("{section:?} {}", text.trim()),
        };
        lines(text).into_iter().map(shown).collect()
    }

    #[test]
    fn lines_are_assigned_to_title_lead_prose_block_and_error() {
        let text =
            "A title\n\nOne\nTwo\nThree\nFour\n```\nx = f()\n```\nimport y\nValueError: no room\n";
        assert_eq!(
            read(text),
            [
                "Title A title",
                "Lead One",
                "Lead Two",
                "Lead Three",
                "Prose Four",
                "Block x = f()",
                "Block import y",
                "Error ValueError: no room",
            ]
        );
    }

    #[test]
    fn frames_of_python_pytest_and_ipython_are_parsed() {
        let text = "T\n  File \"/w/a.py\", line 3, in f\n    g()\nb.py:7: in h\n\
                    /w/c.py in k(self)\nFile ~/d.py:9, in m(x)\n";
        assert_eq!(
            read(text)[1..],
            [
                "frame /w/a.py Some(3) Some(\"f\")",
                "Error g()",
                "frame b.py Some(7) Some(\"h\")",
                "frame /w/c.py None Some(\"k\")",
                "frame ~/d.py Some(9) Some(\"m\")",
            ]
        );
    }

    #[test]
    fn links_comments_and_versions_are_removed_from_the_text() {
        let text = "T\n<!-- fill in\nthis -->See https://h/o/r/blob/main/a/b.py#L12-L14 now\n\
                    ### Versions\nnumpy 1.2\n### Actual\ndone\n";
        assert_eq!(
            read(text),
            [
                "Title T",
                "link a/b.py Some(12)",
                "Lead See  now",
                "Prose ### Actual",
                "Lead done"
            ]
        );
    }

    #[test]
    fn unusual_text_does_not_panic_the_section_reader() {
        for text in [
            "",
            "\n",
            "<!--",
            "```",
            "https://",
            "é.py in ü",
            "File .py",
            ":",
            "E :",
        ] {
            read(text);
        }
    }
}

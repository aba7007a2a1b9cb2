//! Finds names in files that are not Python modules but may run Python code: notebooks, shell
//! scripts, build files, templates.

use starling_syntax::FilePath;

/// Extensions of files that may contain Python code.
const ENDINGS: [&str; 20] = [
    "ipynb", "sh", "bash", "zsh", "fish", "bat", "cmd", "ps1", "mk", "just", "nu", "cfg", "ini",
    "toml", "yaml", "yml", "j2", "jinja", "jinja2", "pyx",
];
/// Names of files that may contain Python code.
const NAMES: [&str; 8] = [
    "Makefile",
    "GNUmakefile",
    "makefile",
    "justfile",
    "Justfile",
    "Dockerfile",
    "Jenkinsfile",
    "Procfile",
];

pub(super) fn is_script(file: &FilePath) -> bool {
    let ending = file.name().rsplit_once('.').map(|(_, ending)| ending);
    NAMES.contains(&file.name()) || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Returns the numbers of the lines, counted from 1, that use a name as code. A name that looks
/// like a word of prose counts only next to code syntax: `stats.mean`, `mean(`, `import mean`.
pub(super) fn lines(file: &FilePath, text: &str, name: &str) -> Vec<u32> {
    let is_notebook = file.name().ends_with(".ipynb");
    let mut in_cell = NotebookPart::Other;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if is_notebook {
            in_cell.read(line);
        }
        let is_code = !is_notebook || in_cell == NotebookPart::Source;
        if is_code && !is_comment(line, is_notebook) && uses(line, name) {
            found.push(number);
        }
    }
    found
}

/// The part of a notebook that the current line belongs to. Assumes the usual JSON layout with one
/// line of code in each line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotebookPart {
    Code,
    /// The `source` field of a code cell.
    Source,
    Other,
}

impl NotebookPart {
    fn read(&mut self, line: &str) {
        let line = line.trim();
        *self = match *self {
            _ if line.starts_with("\"cell_type\"") && line.contains("code") => NotebookPart::Code,
            _ if line.starts_with("\"cell_type\"") => NotebookPart::Other,
            NotebookPart::Code if line.starts_with("\"source\"") => NotebookPart::Source,
            NotebookPart::Source if line.starts_with(']') => NotebookPart::Code,
            NotebookPart::Source if line.starts_with("\"source\"") => NotebookPart::Source,
            other => other,
        };
    }
}

fn is_comment(line: &str, is_notebook: bool) -> bool {
    let line = line.trim_start();
    let line = match is_notebook {
        true => line.strip_prefix('"').unwrap_or(line).trim_start(),
        false => line,
    };
    line.starts_with(['#', ';']) && !line.starts_with("#!")
}

fn uses(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let looks_like_code = name.contains('_') || name.chars().skip(1).any(char::is_uppercase);
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        let is_path = before.ends_with(['/', '-']) || after.starts_with(['/', '-']);
        let is_in_code = before.ends_with('.')
            || after.starts_with('(')
            || before.contains("import ")
            || before.ends_with(':') && !before.ends_with(": ");
        is_word && !is_path && (looks_like_code || is_in_code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str, name: &str) -> Vec<u32> {
        let file = FilePath::new(file);
        match is_script(&file) {
            true => lines(&file, text, name),
            false => Vec::new(),
        }
    }

    #[test]
    fn name_is_found_in_lines_of_code_in_scripts() {
        for (file, line) in [
            ("top.sh", "from jotter import by_priority"),
            ("top.sh", "print(by_priority(notes))"),
            (
                "tox.ini",
                "commands = python -c 'from jotter import by_priority'",
            ),
            ("Makefile", "\tpython -m jotter.by_priority"),
            (
                "ci.yml",
                "  run: python -c \"import jotter; jotter.by_priority([])\"",
            ),
            ("page.j2", "{{ by_priority(notes) }}"),
        ] {
            let text = format!("\n{line}\n");
            assert_eq!(found(file, &text, "by_priority"), [2], "{line}");
        }
        for (line, count) in [
            ("python -c 'import stats; stats.mean([1])'", 1),
            ("python -c 'from stats import mean'", 1),
            ("print(mean([1]))", 1),
            ("echo the mean of all", 0),
            ("# stats.mean(x)", 0),
            ("python mean.py --mean", 0),
        ] {
            assert_eq!(found("a.sh", line, "mean").len(), count, "{line}");
        }
        for file in ["README.md", "a.js", "notes.txt"] {
            assert_eq!(found(file, "by_priority(x)", "by_priority"), [0; 0]);
        }
    }

    #[test]
    fn name_in_a_notebook_is_found_only_in_code_cells() {
        let text = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"source\": [\n    \"geo_mean of all\"\n   ]\n  },\n  {\n   \"cell_type\": \"code\",\n   \"outputs\": [\n    \"geo_mean\"\n   ],\n   \"source\": [\n    \"from stats import geo_mean\\n\",\n    \"# geo_mean\\n\"\n   ]\n  }\n ]\n}\n";
        assert_eq!(found("a.ipynb", text, "geo_mean"), [15]);
    }
}

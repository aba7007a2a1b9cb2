//! Finds names in files that are not Python modules but may run Python code: notebooks, shell
//! scripts, build files, templates.

use super::notebook::{self, SourcePart};
use starling_syntax::{FilePath, SymbolTree, references};

/// Extensions of files that may contain Python code.
const ENDINGS: [&str; 35] = [
    "conf",
    "gradle",
    "groovy",
    "properties",
    "service",
    "ipynb",
    "sh",
    "bash",
    "zsh",
    "fish",
    "bat",
    "cmd",
    "ps1",
    "mk",
    "just",
    "nu",
    "cfg",
    "ini",
    "toml",
    "yaml",
    "yml",
    "j2",
    "jinja",
    "jinja2",
    "pyx",
    "pxd",
    "pxi",
    "wsgi",
    "cgi",
    "fcgi",
    "tac",
    "ipy",
    "mako",
    "spec",
    "smk",
];
/// Names of files that may contain Python code.
const NAMES: [&str; 12] = [
    "Makefile",
    "GNUmakefile",
    "makefile",
    "justfile",
    "Justfile",
    "Dockerfile",
    "Jenkinsfile",
    "Procfile",
    "SConstruct",
    "SConscript",
    "wscript",
    "Snakefile",
];

pub(super) fn is_script(file: &FilePath) -> bool {
    let ending = file.name().rsplit_once('.').map(|(_, ending)| ending);
    // `Dockerfile.dev` and `Makefile.local` are build files as well.
    let stem = file.name().split('.').next().unwrap_or_default();
    NAMES.contains(&stem) || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Returns the numbers of the lines, counted from 1, that use a name as code. A name that looks
/// like a word of prose counts only next to code syntax: `stats.mean`, `mean(`, `import mean`.
pub(super) fn lines(file: &FilePath, text: &str, name: &str) -> Vec<u32> {
    if !file.name().ends_with(".ipynb") {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| use_in(line, name).is_some());
        return lines.map(|(number, _)| number).collect();
    }
    let Some(cells) = notebook::code_cells(text) else {
        // In a damaged notebook, any line may be code, with line ends written as `\n`.
        let lines = (1..).zip(text.lines());
        let uses = |line: &str| {
            let mut code = line.split("\\n");
            code.any(|line| use_in(line.trim_start_matches([' ', '"']), name).is_some())
        };
        let lines = lines.filter(|(_, line)| uses(line));
        return lines.map(|(number, _)| number).collect();
    };
    let cells = cells.iter();
    let mut found: Vec<u32> = cells.flat_map(|cell| in_cell(cell, name)).collect();
    found.dedup();
    found
}

/// Returns the lines of a notebook's JSON file at which the code of a cell uses a name.
fn in_cell(cell: &[SourcePart], name: &str) -> Vec<u32> {
    let code: String = cell.iter().map(|part| part.code.as_str()).collect();
    if !code.contains(name) {
        return Vec::new();
    }
    let mut uses = Vec::new();
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        uses.extend(use_in(line, name).map(|at| start + at));
        start += line.len();
    }
    let tree = SymbolTree::parse(FilePath::new("cell.py"), code.into());
    let imports = references(&tree, name).into_iter();
    let imports = imports.filter(|one| one.is_import);
    uses.extend(imports.map(|one| one.range.start));
    uses.sort_unstable();
    let mut lines = Vec::new();
    let mut end = 0;
    for part in cell {
        let start = end;
        end += part.code.len();
        if uses.iter().any(|at| (start..end).contains(at)) {
            lines.push(part.line);
        }
    }
    lines
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['#', ';']) && !line.starts_with("#!")
}

/// Returns the position of the first use of a name in a line of code.
fn use_in(line: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let looks_like_code = name.contains('_') || name.chars().skip(1).any(char::is_uppercase);
    let mut places = line.match_indices(name).filter(|_| !is_comment(line));
    let found = places.find(|(at, _)| {
        let (before, after) = (&line[..*at], &line[at + name.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        let is_path = before.ends_with(['/', '-']) || after.starts_with(['/', '-']);
        let is_in_code = before.ends_with('.')
            || after.starts_with('(')
            || before.contains("import ")
            || before.ends_with(':') && !before.ends_with(": ");
        is_word && !is_path && (looks_like_code || is_in_code)
    });
    found.map(|(at, _)| at)
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
            ("page.mako", "${by_priority(notes)}"),
            ("app.wsgi", "from jotter import by_priority"),
            ("app.cgi", "from jotter import by_priority"),
            ("SConstruct", "from jotter import by_priority"),
            ("jotter.pxd", "cdef by_priority(notes)"),
            ("jotter.spec", "labels = by_priority(notes)"),
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

    #[test]
    fn name_in_a_notebook_is_found_however_its_json_is_laid_out() {
        let one_line = r##"{"cells": [
 {"cell_type": "markdown", "source": ["geo_mean\n"]},
 {"source": ["from stats import (\n", "  mean, geo_mean)\n", "print(\"geo_mean\")"], "cell_type": "code"},
 {"cell_type": "code", "source": "x = 1\ngeo_mean(x)\n# geo_mean", "outputs": ["geo_mean(1)"]},
 {"cell_type": "code", "source": ["# geo_", "mean(1)"]},
 {"cell_type": "code", "source": ["geo_", "mean(1)"]}
], "metadata": {"a": [1, null, {}], "b": "\u00e4 \\"}, "nbformat": 4}"##;
        assert_eq!(found("a.ipynb", one_line, "geo_mean"), [3, 4, 6]);
        // A name that looks like a plain word is found in an import that spans several lines, but
        // not where it is a variable.
        assert_eq!(found("a.ipynb", one_line, "mean"), [3]);
        assert_eq!(found("a.ipynb", one_line, "x"), [0; 0]);
        let compact: String = one_line.lines().collect();
        assert_eq!(found("a.ipynb", &compact, "geo_mean"), [1]);
        let old =
            r#"{"worksheets": [{"cells": [{"cell_type": "code", "input": ["geo_mean(1)"]}]}]}"#;
        assert_eq!(found("a.ipynb", old, "geo_mean"), [1]);
    }

    #[test]
    fn name_in_a_damaged_notebook_is_found_in_any_line() {
        let text = "{\"cells\": [\n{\"source\": [\"x = 1\\ngeo_mean(x)\\n\"],}\n\"# geo_mean\"]}";
        assert_eq!(found("a.ipynb", text, "geo_mean"), [2]);
    }
}

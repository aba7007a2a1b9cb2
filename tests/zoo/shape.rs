//! One kind of project, read from a file of `fixtures/zoo`.
//!
//! The first line describes the shape. Settings follow, one `KEY: VALUE` per line; a key can occur
//! several times:
//!
//! - `directory`: name of the project's directory
//! - `setup`: a step of `project.rs`, for what a text file cannot express
//! - `environment`: a variable `NAME=VALUE` of the run; `{root}` stands for the project's directory
//! - `found`: the runner that the doctor names, or `nothing` with the `reason`
//! - `tests`: number of tests that the doctor counts
//! - `doctor`: other words that the doctor's output must contain
//! - `task`, `option`: the task, and more options of the run
//! - `before`: the result of the tests before any change
//! - `refused`: words of the reason why the wrong text is refused
//! - `end`, `status`: the beginning of the headline, and the exit status
//!
//! The files follow, each after `-- PATH --`, then the model's proposals, after
//! `-- wrong: SYMBOL --` and `-- right: SYMBOL --`.

use std::path::{Path, PathBuf};

/// A kind of project to test: its files, its settings, and a wrong and a right change.
#[derive(Default)]
pub struct ProjectShape {
    settings: Vec<(String, String)>,
    /// Paths and texts.
    pub files: Vec<(String, String)>,
    pub wrong: Option<Proposed>,
    pub right: Option<Proposed>,
}

/// A new text of a symbol.
#[derive(Default)]
pub struct Proposed {
    pub symbol: String,
    pub source: String,
}

impl ProjectShape {
    pub fn read(name: &str) -> ProjectShape {
        let text = std::fs::read_to_string(directory().join(format!("{name}.txt"))).unwrap();
        let mut shape = ProjectShape::default();
        let mut lines = text.lines().skip(1).peekable();
        while let Some(line) = lines.next_if(|line| title(line).is_none()) {
            let (key, value) = line.split_once(": ").expect("a setting");
            shape.settings.push((key.to_owned(), value.to_owned()));
        }
        while let Some(title) = lines.next().and_then(title) {
            let mut text = String::new();
            while let Some(line) = lines.next_if(|line| self::title(line).is_none()) {
                text.push_str(line);
                text.push('\n');
            }
            let proposed = |symbol: &str, source| {
                let symbol = symbol.to_owned();
                Some(Proposed { symbol, source })
            };
            match title.split_once(": ") {
                Some(("wrong", symbol)) => shape.wrong = proposed(symbol, text),
                Some(("right", symbol)) => shape.right = proposed(symbol, text),
                _ => shape.files.push((title.to_owned(), text)),
            }
        }
        shape
    }

    pub fn settings(&self, key: &str) -> impl Iterator<Item = &str> {
        let found = self.settings.iter().filter(move |(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings(key).next()
    }
}

fn title(line: &str) -> Option<&str> {
    line.strip_prefix("-- ")?.strip_suffix(" --")
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/zoo")
}

/// Returns the names of all shapes, sorted.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(directory()).unwrap();
    let mut names: Vec<String> = files
        .map(|file| {
            file.unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort();
    names
}

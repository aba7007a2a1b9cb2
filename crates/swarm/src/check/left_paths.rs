//! Finds scripts, build files and configurations that name a removed module by its path or run it
//! by its dotted name, and strings of code that are its path.

use crate::check::left_behind::LeftBehind;
use crate::lookup::Lookup;
use starling_syntax::{FilePath, Language};

/// Endings of documents, which may mention a file that is gone.
const DOCUMENTS: [&str; 6] = [".md", ".rst", ".txt", ".adoc", ".csv", ".tsv"];

/// Returns the lines that still name one of the Python `files` that the change removes.
pub(super) fn of_removed_files(after: &Lookup, files: &[FilePath]) -> Vec<LeftBehind> {
    let snapshot = after.index().snapshot();
    let is_removed = |file: &&FilePath| snapshot.files().binary_search(file).is_err();
    let removed: Vec<&FilePath> = files.iter().filter(is_removed).collect();
    if removed.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for file in snapshot.files_with_hidden() {
        let is_document = DOCUMENTS.iter().any(|end| file.as_str().ends_with(end));
        let Some(text) = snapshot.read(file).ok().filter(|_| !is_document) else {
            continue;
        };
        let is_code = Language::of(file) != Language::Plain;
        for removed in &removed {
            for (number, line) in (1..).zip(text.lines()) {
                let is_named = match is_code {
                    true => is_string(line, removed.as_str()),
                    false => is_path(line, removed.as_str()) || is_run(line, removed),
                };
                if is_named {
                    found.push(LeftBehind {
                        file: file.clone(),
                        line: number,
                        message: format!(
                            "{removed} still stands here, and the change removes it: this must follow the change"
                        ),
                    });
                }
            }
        }
    }
    found
}

/// Returns whether a line of code has a string that is the path.
fn is_string(line: &str, path: &str) -> bool {
    let mut quoted = ['"', '\''].into_iter();
    quoted.any(|quote| line.contains(&format!("{quote}{path}{quote}")))
}

/// Returns whether a line names the path, also as `./path`.
fn is_path(line: &str, path: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    line.match_indices(path).any(|(at, _)| {
        let before = &line[..at];
        let before = before.strip_suffix("./").unwrap_or(before);
        let is_begin = !before.ends_with(|c: char| is_of_name(c) || matches!(c, '.' | '/'));
        is_begin && !line[at + path.len()..].starts_with(is_of_name)
    })
}

/// Returns whether a line runs the module by its dotted name (`python -m pkg.module`).
fn is_run(line: &str, file: &FilePath) -> bool {
    let path = file.as_str().strip_suffix(".py").unwrap_or_default();
    let dotted = path
        .strip_suffix("/__main__")
        .unwrap_or(path)
        .replace('/', ".");
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let run = format!("-m {dotted}");
    let mut places = line.match_indices(&run);
    !dotted.is_empty() && places.any(|(at, _)| !line[at + run.len()..].starts_with(is_of_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_module_is_found_in_commands_and_strings() {
        for (line, expected) in [
            ("python legacy.py --all", true),
            ("exec ./legacy.py", true),
            ("  run: python \"legacy.py\"", true),
            ("python old_legacy.py", false),
            ("python other/legacy.py", false),
            ("rm legacy.pyc", false),
        ] {
            assert_eq!(is_path(line, "legacy.py"), expected, "{line}");
        }
        let file = FilePath::new("pkg/legacy.py");
        assert!(is_run("python -m pkg.legacy --all", &file));
        assert!(!is_run("python -m pkg.legacy_two", &file));
        assert!(is_string("run([\"python\", 'legacy.py'])", "legacy.py"));
        assert!(!is_string("# see legacy.py", "legacy.py"));
    }
}

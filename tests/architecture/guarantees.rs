//! Checks that the tests named in `docs/guarantees.md` exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::root;

/// Adds the names of the functions and modules in all Rust files below a directory.
fn add_names(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            names.insert(stem);
            add_names(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            names.insert(stem);
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
                let pairs = words.iter().zip(words.iter().skip(1));
                let declared = pairs.filter(|(kind, _)| matches!(**kind, "fn" | "mod"));
                names.extend(declared.map(|(_, name)| (*name).to_owned()));
            }
        }
    }
}

/// Returns the paths of tests that a text names in code style, such as `` `swarm::tests::undo` ``.
fn named_tests(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split('`').skip(1).step_by(2);
    let is_path_character =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c);
    code.filter(move |code| code.contains("::") && code.chars().all(is_path_character))
}

#[test]
fn tests_named_in_the_guarantees_exist() {
    let mut names = BTreeSet::new();
    for directory in ["crates", "src", "tests"] {
        add_names(&root().join(directory), &mut names);
    }
    let text = std::fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let named: Vec<&str> = named_tests(&text).collect();
    assert!(named.len() > 50, "{named:?}");
    let last = |path: &str| path.rsplit("::").next().unwrap().to_owned();
    let missing: Vec<_> = named
        .iter()
        .filter(|path| !names.contains(&last(path)))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/guarantees.md names no test: {missing:?}"
    );
}

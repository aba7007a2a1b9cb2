//! Scripts that the test command names: they decide what passes, and count as test files.

use std::collections::BTreeSet;

use super::hub::Hub;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Returns the project files in the test command that are tests themselves: shell scripts, files
/// with a test or check word in their paths, and Python scripts that the command runs and that load
/// the code under test.
pub(super) fn of_test_command(hub: &Hub) -> BTreeSet<FilePath> {
    let command = hub.outside.tests.command().unwrap_or_default();
    let world = hub.state().world.clone();
    named_by(&command, &world)
}

fn named_by(command: &str, world: &Snapshot) -> BTreeSet<FilePath> {
    let words = command.split(|c: char| c.is_whitespace() || "\"';&|()=".contains(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut found = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let file = FilePath::new(word.trim_start_matches("./"));
        let Ok(text) = world.read(&file) else {
            continue;
        };
        if is_script(&file) || is_run(&words[..=at]) && drives_code(&file, &text, world) {
            found.insert(file);
        }
    }
    found
}

/// Returns whether the path of a file marks it as a test script.
fn is_script(file: &FilePath) -> bool {
    const ENDINGS: [&str; 4] = [".sh", ".bash", ".zsh", ".fish"];
    const WORDS: [&str; 7] = [
        "test", "tests", "check", "checks", "verify", "spec", "selftest",
    ];
    let path = file.as_str().to_lowercase();
    let mut words = path.split(['/', '_', '-', '.']);
    ENDINGS.iter().any(|ending| path.ends_with(ending)) || words.any(|word| WORDS.contains(&word))
}

/// Returns whether the last of these words is a program that the command runs: true for `python3 -u
/// run.py` and `./run.py`, false for `python3 -m doctest calc.py`.
fn is_run(words: &[&str]) -> bool {
    let Some((file, before)) = words.split_last() else {
        return false;
    };
    let is_flag = |word: &&&str| word.starts_with('-') && !matches!(**word, "-m" | "-c");
    let program = before.iter().rev().find(|word| !is_flag(word));
    let is_python = program.is_some_and(|program| {
        let name = program.rsplit('/').next().unwrap_or(program);
        name.starts_with("python") || name.starts_with("pypy")
    });
    before.is_empty() || file.starts_with("./") || is_python
}

/// Returns whether a Python script imports other modules of the project or a test library. A script
/// with the usual name of a program counts as code.
fn drives_code(file: &FilePath, text: &str, world: &Snapshot) -> bool {
    const PROGRAMS: [&str; 8] = [
        "__main__.py",
        "main.py",
        "app.py",
        "cli.py",
        "manage.py",
        "server.py",
        "setup.py",
        "wsgi.py",
    ];
    const LIBRARIES: [&str; 4] = ["pytest", "unittest", "doctest", "subprocess"];
    if !file.name().ends_with(".py") || PROGRAMS.contains(&file.name()) {
        return false;
    }
    let is_module = |name: &str| {
        let (module, package) = (format!("{name}.py"), format!("{name}/"));
        let mut files = world.files().iter().filter(|other| *other != file);
        files.any(|other| {
            let path = other.as_str();
            path.ends_with(".py")
                && (other.name() == module
                    || path.starts_with(&package)
                    || path.contains(&format!("/{package}")))
        })
    };
    imported(text).any(|name| LIBRARIES.contains(&name) || is_module(name))
}

/// Returns the first part of each module that a text imports.
fn imported(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_start);
    let modules = lines.flat_map(|line| {
        let from = line.strip_prefix("from ");
        let names = from.map(|rest| rest.split(" import ").next().unwrap_or(rest));
        names
            .or(line.strip_prefix("import "))
            .unwrap_or("")
            .split(',')
    });
    let ends = |c: char| !(c.is_alphanumeric() || c == '_');
    let first = modules.map(move |module| module.trim().split(ends).next().unwrap_or_default());
    first.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::Workspace;

    #[test]
    fn scripts_of_tests_are_told_by_their_paths() {
        for file in [
            "run_tests.sh",
            "scripts/ci.bash",
            "check.py",
            "checks/run.py",
            "tools/self-test.py",
            "tests/x.py",
        ] {
            assert!(is_script(&FilePath::new(file)), "{file}");
        }
        for file in ["main.py", "latest.py", "pytest"] {
            assert!(!is_script(&FilePath::new(file)), "{file}");
        }
    }

    #[test]
    fn a_script_that_the_command_runs_counts_if_it_loads_the_code() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            (
                "calc.py",
                "import math\n\n\ndef add(a, b):\n    return a + b\n",
            ),
            ("pkg/core.py", "x = 1\n"),
            (
                "run.py",
                "import sys; sys.path.insert(0, '.')\nfrom calc import add\n",
            ),
            ("all.py", "import sys, pytest\n"),
            ("tools/smoke.py", "import pkg.core\n"),
            ("main.py", "import calc\n"),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let world = Workspace::open(dir.path().to_owned()).unwrap();
        let world = world.snapshot(Default::default());
        for (command, expected) in [
            ("python3 run.py", vec!["run.py"]),
            ("./run.py --all", vec!["run.py"]),
            ("cd . && /usr/bin/python3.11 -u ./all.py", vec!["all.py"]),
            (
                "python3 tools/smoke.py && python3 run.py",
                vec!["run.py", "tools/smoke.py"],
            ),
            ("python3 calc.py", vec![]),
            ("python3 main.py", vec![]),
            ("python3 -m doctest run.py", vec![]),
            ("python3 gone.py", vec![]),
        ] {
            let found = named_by(command, &world);
            let found: Vec<&str> = found.iter().map(FilePath::as_str).collect();
            assert_eq!(found, expected, "{command}");
        }
    }
}

//! Finds the scripts that the test command runs and the data that it or the tests read. They affect
//! test results and count as test files.

use std::collections::BTreeSet;

use crate::check::read_data;
use crate::state::checker::Checker;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Returns the project files in the test command that are tests themselves: shell scripts, files
/// with a test or check word in their paths, and Python scripts that the command runs and that load
/// the code under test. Data that only tests and the test command read is among them.
pub(crate) fn of_test_command(checker: &Checker) -> BTreeSet<FilePath> {
    let command = checker.services.tests.command().unwrap_or_default();
    let world = checker.world().snapshot.clone();
    // The workspace before the run is searched too, because the run may have changed which scripts
    // a script names.
    let mut found = named_by(&command, checker.services.index.snapshot());
    found.append(&mut named_by(&command, &world));
    let lines = lines_of(&command, checker.services.index.snapshot());
    found.extend(read_data::of_tests(checker, &lines).iter().cloned());
    found
}

/// Returns the command, and the lines of the makefile and scripts that it runs.
fn lines_of(command: &str, world: &Snapshot) -> Vec<String> {
    let carriers = makefiles(command, world).into_iter();
    let carriers = carriers.chain(named_in(command, "", world));
    let mut lines = vec![command.to_owned()];
    for carrier in carriers {
        let text = world.read(&carrier).ok();
        lines.extend(text.iter().flat_map(|text| text.lines()).map(str::to_owned));
    }
    lines
}

/// Returns the scripts that a command names, and recursively the scripts that those scripts and the
/// command's makefile name.
fn named_by(command: &str, world: &Snapshot) -> BTreeSet<FilePath> {
    let mut found = named_in(command, "", world);
    let carriers: Vec<FilePath> = makefiles(command, world)
        .into_iter()
        .chain(found.iter().cloned())
        .collect();
    for carrier in carriers {
        let Ok(text) = world.read(&carrier) else {
            continue;
        };
        for line in text.lines() {
            found.append(&mut named_in(line, carrier.directory(), world));
        }
    }
    found
}

/// Returns the build files that the programs in a command read, such as the makefile of `make`. If
/// a program has several default file names, the first that exists is used.
fn makefiles(command: &str, world: &Snapshot) -> Vec<FilePath> {
    const PROGRAMS: [(&str, &[&str]); 5] = [
        ("make", &["GNUmakefile", "makefile", "Makefile"]),
        ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
        ("just", &["justfile", "Justfile", ".justfile"]),
        ("tox", &["tox.ini", "pyproject.toml", "setup.cfg"]),
        ("npm", &["package.json"]),
    ];
    let words: Vec<&str> = words(command).collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let name = word.rsplit('/').next().unwrap_or(word);
        let Some((_, files)) = PROGRAMS.iter().find(|(program, _)| name == *program) else {
            continue;
        };
        let given = |flag: &str| {
            let mut rest = words[at..].iter().skip_while(|word| **word != flag).skip(1);
            rest.next()
                .map(|path| path.trim_start_matches("./").trim_end_matches('/'))
        };
        let directory = given("-C").map_or(String::new(), |path| format!("{path}/"));
        let named = given("-f").map(|file| format!("{directory}{file}"));
        let usual = files.iter().map(|file| format!("{directory}{file}"));
        let mut all = named.into_iter().chain(usual).map(FilePath::new);
        found.extend(all.find(|file| world.read(file).is_ok()));
    }
    found
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split(|c: char| c.is_whitespace() || "\"';&|()=".contains(c));
    words.filter(|word| !word.is_empty())
}

/// Returns the scripts that a line names by a path relative to the root or to the directory of the
/// file with the line.
fn named_in(line: &str, directory: &str, world: &Snapshot) -> BTreeSet<FilePath> {
    // In a makefile, `@` before a command hides it, and `-` lets it fail.
    let line = line.trim_start().trim_start_matches(['@', '-']);
    let words: Vec<&str> = words(line).collect();
    let mut found = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let path = word.trim_start_matches("./");
        let mut places = vec![FilePath::new(path)];
        if !directory.is_empty() {
            places.push(FilePath::new(format!("{directory}/{path}")));
        }
        for file in places {
            let Ok(text) = world.read(&file) else {
                continue;
            };
            if is_script(&file) || is_run(&words[..=at]) && drives_code(&file, &text, world) {
                found.insert(file);
            }
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
    fn test_scripts_are_recognized_by_their_paths() {
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
    fn script_in_the_test_command_is_a_test_script_if_it_imports_the_code() {
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

    #[test]
    fn scripts_called_by_a_script_or_makefile_are_test_scripts() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            (
                "Makefile",
                "test:\n\t@python3 check.py\n\tsh $(OPTS) ./chk/u.sh\n",
            ),
            ("check.py", "from calc import add\nassert add(1, 2) == 3\n"),
            ("calc.py", "def add(a, b):\n    return a + b\n"),
            ("t.sh", "cd . && sh chk/u.sh\n"),
            ("chk/u.sh", "python3 deep.py\nsh beside.sh\n"),
            ("chk/beside.sh", "true\n"),
            ("sub/GNUmakefile", "all:\n\tsh x.sh\n"),
            ("sub/x.sh", "true\n"),
            ("other.sh", "true\n"),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let world = Workspace::open(dir.path().to_owned()).unwrap();
        let world = world.snapshot(Default::default());
        for (command, expected) in [
            ("make test", &["check.py", "chk/u.sh"][..]),
            ("sh t.sh", &["chk/u.sh", "t.sh"]),
            ("bash chk/u.sh", &["chk/beside.sh", "chk/u.sh"]),
            ("make -C sub all", &["sub/x.sh"]),
            ("pytest -q", &[]),
        ] {
            let found = named_by(command, &world);
            let found: Vec<&str> = found.iter().map(FilePath::as_str).collect();
            assert_eq!(found, expected, "{command}");
        }
    }
}

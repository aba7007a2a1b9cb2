//! Finds the scripts that the test command runs and the data that it or the tests read. They affect
//! test results and count as test files.

use std::collections::BTreeSet;

use crate::check::documentation::is_documentation;
use crate::check::other_language::is_other_language;
use crate::check::package_scripts::{has_package_scripts, package_scripts};
use crate::check::read_data;
use crate::state::checker::Checker;
use starling_syntax::{FilePath, Language};
use starling_workspace::Snapshot;

/// File name extensions of shell scripts.
const SHELLS: [&str; 4] = [".sh", ".bash", ".zsh", ".fish"];
/// Programs that run a script whose name follows.
const INTERPRETERS: [&str; 14] = [
    "node", "deno", "bun", "tsx", "ts-node", "perl", "prove", "ruby", "php", "lua", "Rscript",
    "julia", "sh", "bash",
];
/// Programs that translate or check the files that follow, and run none of them.
const NOT_RUNNERS: [&str; 21] = [
    "c++",
    "cc",
    "clang",
    "clang++",
    "eslint",
    "g++",
    "gcc",
    "gfortran",
    "ghc",
    "javac",
    "kotlinc",
    "nvcc",
    "prettier",
    "rubocop",
    "rustc",
    "rustfmt",
    "scalac",
    "shellcheck",
    "standard",
    "tsc",
    "tslint",
];
/// Subcommands that translate or check the files that follow, as in `go vet a.go`.
const NOT_RUNNING: [&str; 6] = ["build", "check", "fmt", "format", "lint", "vet"];

/// Returns the project files that the test command names and that are tests themselves: shell
/// scripts, files with a test or check word in their paths, and scripts of any language that the
/// command runs and that load the code under test. Data that only tests and the test command read is
/// among them.
pub(crate) fn of_test_command(checker: &Checker) -> BTreeSet<FilePath> {
    let command = checker.services.tests.command().unwrap_or_default();
    let world = checker.world().snapshot.clone();
    // The workspace before the run is searched too, because the run may have changed which scripts
    // a script names.
    let mut found = named_by(&command, checker.services.index.snapshot());
    let data = read_data::of_tests(checker, || {
        let world = checker.services.index.snapshot();
        (lines_of(&command, &found, world), found.clone())
    });
    let data: Vec<FilePath> = data.iter().cloned().collect();
    found.append(&mut named_by(&command, &world));
    found.extend(data);
    found
}

/// Returns the command, and the lines of its build files and of these scripts.
fn lines_of(command: &str, scripts: &BTreeSet<FilePath>, world: &Snapshot) -> Vec<String> {
    let carriers = build_files(command, world).into_iter();
    let mut lines = vec![command.to_owned()];
    for carrier in carriers.chain(scripts.iter().cloned()) {
        lines.extend(lines_in(&carrier, command, world));
    }
    lines
}

/// Returns the lines of a build file or script that may name other scripts.
fn lines_in(carrier: &FilePath, command: &str, world: &Snapshot) -> Vec<String> {
    let Ok(text) = world.read(carrier) else {
        return Vec::new();
    };
    match has_package_scripts(carrier) {
        true => package_scripts(command, &text),
        false => text.lines().map(str::to_owned).collect(),
    }
}

/// Returns the scripts that a command names, and recursively the scripts that those scripts and the
/// command's build files name.
fn named_by(command: &str, world: &Snapshot) -> BTreeSet<FilePath> {
    let mut found = BTreeSet::new();
    for directory in directories(command) {
        found.append(&mut named_in(command, &directory, true, world));
    }
    let build_files = build_files(command, world);
    let mut carriers: Vec<FilePath> = build_files.iter().chain(&found).cloned().collect();
    while let Some(carrier) = carriers.pop() {
        let holds_commands = build_files.contains(&carrier) || is_shell_script(&carrier);
        for line in lines_in(&carrier, command, world) {
            for file in named_in(&line, carrier.directory(), holds_commands, world) {
                if found.insert(file.clone()) {
                    carriers.push(file);
                }
            }
        }
    }
    found
}

/// Returns the root and the directories to which a command changes (`cd web && npm test`).
fn directories(command: &str) -> Vec<String> {
    const FLAGS: [&str; 4] = ["cd", "--prefix", "--cwd", "--dir"];
    let words: Vec<&str> = words(command).collect();
    let changes = words.windows(2).filter(|pair| FLAGS.contains(&pair[0]));
    let named = changes.map(|pair| pair[1].trim_start_matches("./").trim_end_matches('/'));
    let named = named.filter(|path| !path.is_empty() && *path != ".");
    std::iter::once("")
        .chain(named)
        .map(str::to_owned)
        .collect()
}

/// Returns the build files that the programs in a command read, such as the makefile of `make`. If
/// a program has several default file names, the first that exists is used.
fn build_files(command: &str, world: &Snapshot) -> Vec<FilePath> {
    const PROGRAMS: [(&str, &[&str]); 11] = [
        ("make", &["GNUmakefile", "makefile", "Makefile"]),
        ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
        ("just", &["justfile", "Justfile", ".justfile"]),
        ("tox", &["tox.ini", "pyproject.toml", "setup.cfg"]),
        ("nox", &["noxfile.py"]),
        ("rake", &["Rakefile", "rakefile"]),
        ("npm", &["package.json"]),
        ("yarn", &["package.json"]),
        ("pnpm", &["package.json"]),
        ("bun", &["package.json"]),
        ("composer", &["composer.json"]),
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
        let file_of_flag = given("-f");
        let of_flag = given("-C").map(|path| vec![path.to_owned()]);
        for directory in of_flag.unwrap_or_else(|| directories(command)) {
            let within = |name: &str| match directory.as_str() {
                "" => FilePath::new(name),
                _ => FilePath::new(format!("{directory}/{name}")),
            };
            let usual = files.iter().map(|name| within(name));
            let mut all = file_of_flag.into_iter().map(within).chain(usual);
            found.extend(all.find(|file| world.read(file).is_ok()));
        }
    }
    found
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split(|c: char| c.is_whitespace() || "\"'`;&|()=".contains(c));
    words.filter(|word| !word.is_empty())
}

/// Returns the scripts that a line names by a path relative to the root or to `directory`.
/// `is_command` is set for a line that a shell runs, where a path may be that of a program.
fn named_in(line: &str, directory: &str, is_command: bool, world: &Snapshot) -> BTreeSet<FilePath> {
    // In a makefile, `@` before a command hides it, and `-` lets it fail.
    let line = line.trim_start().trim_start_matches(['@', '-']);
    let mut found = BTreeSet::new();
    for step in line.split([';', '&', '|']) {
        let words: Vec<&str> = words(step).collect();
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
                let words = &words[..=at];
                if is_script(&file) || is_run(words, is_command) && drives_code(&file, &text, world)
                {
                    found.insert(file);
                }
            }
        }
    }
    found
}

fn is_shell_script(file: &FilePath) -> bool {
    SHELLS.iter().any(|ending| file.name().ends_with(ending)) || !file.name().contains('.')
}

/// Returns whether the path of a file marks it as a test script.
fn is_script(file: &FilePath) -> bool {
    const WORDS: [&str; 7] = [
        "test", "tests", "check", "checks", "verify", "spec", "selftest",
    ];
    let path = file.as_str().to_lowercase();
    let mut words = path.split(['/', '_', '-', '.']);
    SHELLS.iter().any(|ending| path.ends_with(ending)) || words.any(|word| WORDS.contains(&word))
}

/// Returns whether the last of these words is a program that is run: true for `python3 -u run.py`,
/// `node t.js` and `./run.py`, false for `python3 -m doctest calc.py` and `cc calc.c`.
fn is_run(words: &[&str], is_command: bool) -> bool {
    let Some((file, before)) = words.split_last() else {
        return false;
    };
    let is_flag = |word: &&&str| word.starts_with('-') && !matches!(**word, "-m" | "-c");
    let program = before.iter().rev().find(|word| !is_flag(word));
    let program = program.map(|program| program.rsplit('/').next().unwrap_or(program));
    let is_python = |name: &str| name.starts_with("python") || name.starts_with("pypy");
    if before.is_empty() {
        return is_command;
    }
    if file.ends_with(".py") {
        let is_runner = |name: &str| is_python(name) || name == "run";
        return file.starts_with("./") || program.is_some_and(is_runner);
    }
    // The program may follow another one: `npx eslint a.js`.
    let mut first = before.iter().take(3).enumerate();
    let runs_none = |(at, word): (usize, &&str)| {
        NOT_RUNNERS.contains(word) || at > 0 && NOT_RUNNING.contains(word)
    };
    match is_command {
        true => !first.any(runs_none),
        false => program.is_some_and(|name| INTERPRETERS.contains(&name)),
    }
}

/// Returns whether a script loads other files of the project or a test library, or starts programs.
/// A script with the usual name of a program counts as code, and so does one that stands alone.
fn drives_code(file: &FilePath, text: &str, world: &Snapshot) -> bool {
    const PROGRAMS: [&str; 9] = [
        "__main__", "main", "app", "cli", "index", "manage", "server", "setup", "wsgi",
    ];
    let stem = file.name().split('.').next().unwrap_or_default();
    if PROGRAMS.contains(&stem) || read_data::is_data(file) || is_documentation(file) {
        return false;
    }
    match file.name().ends_with(".py") {
        true => imports_code(file, text, world),
        false => names_code(file, text, world),
    }
}

/// Returns whether a Python script imports other modules of the project or a test library.
fn imports_code(file: &FilePath, text: &str, world: &Snapshot) -> bool {
    const LIBRARIES: [&str; 4] = ["pytest", "unittest", "doctest", "subprocess"];
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

/// Returns whether a script of another language names a test library, starts programs, or names
/// another file of code as one that it loads: behind a quote, a slash or a word for loading.
fn names_code(file: &FilePath, text: &str, world: &Snapshot) -> bool {
    const LIBRARIES: [&str; 8] = [
        "node:test",
        "bun:test",
        "vitest",
        "child_process",
        "Test::More",
        "minitest",
        "rspec",
        "PHPUnit",
    ];
    const LOADERS: [&str; 8] = [
        "import", "from", "use", "require", "include", "load", "source", "-m",
    ];
    if LIBRARIES.iter().any(|library| text.contains(library)) {
        return true;
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let is_loaded = |stem: &str| {
        text.match_indices(stem).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + stem.len()..]);
            let word = before.trim_end_matches([' ', '\t', '"', '\'', '.']);
            let is_end = |c: char| c.is_whitespace() || "'\"`;(".contains(c);
            let word = word.rsplit(is_end).next().unwrap_or_default();
            !after.starts_with(is_part)
                && (before.ends_with(['"', '\'', '/', '`'])
                    || before.ends_with([' ', '\t']) && LOADERS.contains(&word))
        })
    };
    let mut others = world.files().iter().filter(|other| *other != file);
    others.any(|other| {
        let is_code = Language::of(other) != Language::Plain || is_other_language(other);
        let stem = other.name().split('.').next().unwrap_or_default();
        is_code && !stem.is_empty() && is_loaded(stem)
    })
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
    use tempfile::TempDir;

    use super::*;
    use starling_workspace::Workspace;

    /// Writes these files to a directory and returns their snapshot.
    fn world_of(files: &[(&str, &str)]) -> (TempDir, Snapshot) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        (dir, workspace.snapshot(Default::default()))
    }

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
        let (_dir, world) = world_of(&[
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
        ]);
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
    fn scripts_of_other_languages_are_test_scripts_if_they_load_the_code() {
        let (_dir, world) = world_of(&[
            ("a.js", "module.exports = { f: x => x + 1 }\n"),
            ("b.js", "const {f} = require('./a.js');\n"),
            ("t.js", "const {f} = require('./a');\n"),
            ("t.pl", "my $r = `python3 -c 'from calc import f'`;\n"),
            ("calc.py", "def f(): pass\n"),
            ("alone.rb", "puts 1 if calc == 1\n"),
            ("index.js", "require('./a')\n"),
            ("web/t.js", "import {f} from \"../a.js\";\n"),
            (
                "package.json",
                "{\"scripts\": {\"test\": \"node t.js\", \"start\": \"node b.js\"}}",
            ),
            ("cases.json", "[]"),
            ("run.sh", "exec node t.js --bail\n"),
        ]);
        for (command, expected) in [
            ("node t.js", &["t.js"][..]),
            ("unknown-runner --bail t.js cases.json", &["t.js"]),
            ("perl -w t.pl", &["t.pl"]),
            ("npm test", &["t.js"]),
            ("sh run.sh", &["run.sh", "t.js"]),
            ("cd web && node t.js", &["t.js", "web/t.js"]),
            (
                "npx eslint b.js && deno check b.js && node ./t.js",
                &["t.js"],
            ),
            ("cat t.js | node", &["t.js"]),
            ("node index.js", &[]),
            ("node a.js; ruby alone.rb", &[]),
        ] {
            let found = named_by(command, &world);
            let found: Vec<&str> = found.iter().map(FilePath::as_str).collect();
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn scripts_called_by_a_script_or_makefile_are_test_scripts() {
        let (_dir, world) = world_of(&[
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
        ]);
        for (command, expected) in [
            ("make test", &["check.py", "chk/beside.sh", "chk/u.sh"][..]),
            ("sh t.sh", &["chk/beside.sh", "chk/u.sh", "t.sh"]),
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

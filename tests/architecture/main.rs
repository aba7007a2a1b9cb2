//! Checks the crates against the table in `docs/architecture.md`. A crate can only use crates that
//! its manifest names, so the manifests are checked. Forbidden words that no dependency reveals are
//! searched in the sources.

#![allow(clippy::unwrap_used)]

mod guarantees;
mod import_cycles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates of this workspace on which each crate may depend.
const CRATES: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("rpc", &[]),
    ("syntax", &["text"]),
    ("core", &["text", "syntax"]),
    ("platform", &[]),
    ("workspace", &["platform", "text", "syntax"]),
    ("sandbox", &["platform", "syntax", "workspace"]),
    ("index", &["platform", "text", "syntax", "workspace"]),
    ("dialogue", &["core", "workspace"]),
    (
        "swarm",
        &["core", "dialogue", "index", "syntax", "text", "workspace"],
    ),
    (
        "ask",
        &[
            "core",
            "dialogue",
            "index",
            "swarm",
            "syntax",
            "text",
            "workspace",
        ],
    ),
    ("config", &["core", "text", "workspace"]),
    ("local", &["core"]),
    ("serve", &["core"]),
    ("models", &["config", "core", "local", "workspace"]),
    (
        "lang",
        &["core", "platform", "rpc", "syntax", "text", "workspace"],
    ),
    (
        "runner",
        &[
            "core",
            "index",
            "platform",
            "sandbox",
            "syntax",
            "workspace",
        ],
    ),
    (
        "history",
        &["core", "index", "swarm", "syntax", "text", "workspace"],
    ),
    (
        "server",
        &[
            "ask",
            "core",
            "history",
            "index",
            "lang",
            "models",
            "platform",
            "rpc",
            "swarm",
            "syntax",
            "text",
            "workspace",
        ],
    ),
    (
        "headless",
        &["rpc", "server", "swarm", "syntax", "text", "workspace"],
    ),
    (
        "bench",
        &[
            "core",
            "index",
            "models",
            "platform",
            "runner",
            "sandbox",
            "server",
            "swarm",
            "syntax",
            "text",
            "workspace",
        ],
    ),
];

/// External crates on which only the named crates may depend.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("tower-lsp", &["lang", "server", "headless", "bench"]),
    ("async-openai", &["models"]),
    ("axum", &["serve"]),
    ("reqwest", &["models"]),
    ("candle-core", &["local"]),
    ("candle-nn", &["local"]),
    ("llguidance", &["local"]),
    ("landlock", &["sandbox"]),
    ("parquet", &["bench"]),
    ("zip", &["models"]),
    ("clap", &[]),
    ("crossterm", &[]),
    ("indicatif", &[]),
];

/// Crates without I/O, files and tasks.
const PURE: [&str; 2] = ["text", "syntax"];

/// Words that must not occur in the sources of a crate.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("text", &["std::fs", "async fn"]),
    ("syntax", &["std::fs", "async fn"]),
    ("rpc", &["std::fs"]),
    ("core", &["std::fs::write"]),
    ("dialogue", &["std::fs", "std::process"]),
    ("swarm", &["tokio::process", "std::process"]),
    // `ask` is read-only, so it must not name anything that changes files.
    (
        "ask",
        &[
            "std::fs",
            "std::process",
            "tokio::fs",
            "tokio::process",
            "Editor",
            "Approver",
            "TestRunner",
            "Propose",
            "proposal",
            "write_atomically",
            "Shadow",
        ],
    ),
    ("lang", &["tower_lsp::Client", "tower_lsp::LanguageServer"]),
    ("history", &["std::process"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the names in a dependency table of a manifest. Crates of this workspace have the prefix
/// `starling-`.
fn dependencies(manifest: &str, table: &str) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
    // Dependencies for a single operating system are in separate tables.
    let systems = manifest.get("target").and_then(toml::Value::as_table);
    let tables = systems.into_iter().flat_map(toml::Table::values);
    let tables = tables.filter_map(|system| system.get(table));
    let tables = tables.chain(manifest.get(table));
    let names = tables.filter_map(toml::Value::as_table);
    names.flat_map(|names| names.keys().cloned()).collect()
}

/// Returns the crates in `crates/` with the text of their manifests.
fn manifests() -> BTreeMap<String, String> {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates/");
    let read = crates.map(|entry| {
        let path = entry.expect("an entry of crates/").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        (name, manifest)
    });
    read.collect()
}

fn violations(manifests: &BTreeMap<String, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, manifest) in manifests {
        let Some((_, allowed)) = CRATES.iter().find(|(known, _)| known == name) else {
            wrong.push(format!("crates/{name} is not in the table"));
            continue;
        };
        for table in ["dependencies", "build-dependencies"] {
            for used in dependencies(manifest, table) {
                if let Some(own) = used.strip_prefix("starling-") {
                    if !allowed.contains(&own) {
                        wrong.push(format!("crates/{name} depends on {own}"));
                    }
                    continue;
                }
                let holders = ONLY_IN.iter().find(|(outside, _)| *outside == used);
                if holders.is_some_and(|(_, holders)| !holders.contains(&name.as_str())) {
                    wrong.push(format!("crates/{name} depends on {used}"));
                }
                if PURE.contains(&name.as_str()) && used == "tokio" {
                    wrong.push(format!("crates/{name} depends on tokio"));
                }
            }
        }
    }
    wrong
}

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    let manifests = manifests();
    assert_eq!(
        manifests.len(),
        CRATES.len(),
        "every crate is in the table once"
    );
    let wrong = violations(&manifests);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn forbidden_dependency_is_detected() {
    let mut manifests = manifests();
    let add = |manifest: &mut String, line: &str| {
        *manifest = manifest.replace("[dependencies]\n", &format!("[dependencies]\n{line}\n"));
    };
    add(
        manifests.get_mut("swarm").expect("a crate"),
        "starling-server.workspace = true",
    );
    add(
        manifests.get_mut("index").expect("a crate"),
        "reqwest.workspace = true",
    );
    let wrong = violations(&manifests);
    assert_eq!(
        wrong,
        [
            "crates/index depends on reqwest",
            "crates/swarm depends on server"
        ]
    );
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// Returns the path, relative to the root of the workspace, and the text of every source file,
/// without tests, comments and documentation.
fn product_sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    for (name, _) in CRATES {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    let is_test = |inside: &Path| {
        let named =
            |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs" || part == "testing.rs";
        // `core/src/tests.rs` defines the interface to the test runner, and contains no tests.
        inside != Path::new("crates/core/src/tests.rs") && inside.iter().any(named)
    };
    let mut read = Vec::new();
    for file in files {
        let inside = file
            .strip_prefix(root())
            .expect("a file of the workspace")
            .to_owned();
        if is_test(&inside) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("source");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        read.push((inside, lines.map(|line| format!("{line}\n")).collect()));
    }
    read
}

#[test]
fn sources_do_not_mention_terms_forbidden_for_their_crate() {
    let sources = product_sources();
    for (name, words) in FORBIDDEN {
        let directory = Path::new("crates").join(name);
        let of_crate: Vec<_> = sources
            .iter()
            .filter(|(file, _)| file.starts_with(&directory))
            .collect();
        assert!(!of_crate.is_empty(), "{name} has no sources");
        for (file, code) in of_crate {
            for word in *words {
                assert!(!code.contains(word), "{} names {word}", file.display());
            }
        }
    }
}

#[test]
fn session_module_does_not_use_the_lsp() {
    let module = Path::new("crates/server/src/session");
    let is_inside = |file: &Path| file.starts_with(module) || file == module.with_extension("rs");
    let sources = product_sources();
    let files: Vec<_> = sources.iter().filter(|(file, _)| is_inside(file)).collect();
    assert!(files.len() > 10, "the session module has moved");
    for (file, code) in files {
        for word in ["tower_lsp", "lsp_types", "crate::", "super::super"] {
            assert!(!code.contains(word), "{} names {word}", file.display());
        }
    }
}

#[test]
fn no_file_is_over_800_lines_without_tests() {
    for (file, code) in product_sources() {
        let lines = code.lines().count();
        assert!(lines <= 800, "{} has {lines} lines", file.display());
    }
}

/// The only files that may start processes: the module that finds programs by absolute path outside
/// of the project, and the sandbox, which starts this program, a shell inside the sandbox, and
/// bwrap by its absolute path.
const STARTS_PROCESSES: [&str; 7] = [
    "crates/sandbox/src/sandbox/linux/bubblewrap.rs",
    "crates/sandbox/src/sandbox/linux/init.rs",
    "crates/sandbox/src/sandbox/linux/narrow.rs",
    "crates/sandbox/src/sandbox/macos/system.rs",
    "crates/sandbox/src/sandbox/windows.rs",
    "crates/sandbox/src/shadow/process.rs",
    "crates/workspace/src/program.rs",
];

#[test]
fn child_processes_are_started_only_in_allowed_files() {
    for (file, code) in product_sources() {
        let starts = code.contains("Command::new(") || code.contains("posix_spawn");
        let is_allowed = STARTS_PROCESSES
            .iter()
            .any(|allowed| file == Path::new(allowed));
        assert!(
            !starts || is_allowed,
            "{} starts a program: use starling_workspace::HostPrograms",
            file.display()
        );
    }
}

/// Words for data of the grader, and for means to reach that data.
const HIDDEN: [&str; 12] = [
    "Instance",
    "Answer",
    "Task",
    "Grade",
    "dataset",
    "environment",
    "test_patch",
    "fail_to_pass",
    "pass_to_pass",
    "predictions",
    "std::fs",
    "std::process",
];

#[test]
fn sample_selection_does_not_use_data_of_the_grader() {
    let selector = |(file, _): &(PathBuf, String)| file.starts_with("crates/bench/src/select");
    let files: Vec<_> = product_sources().into_iter().filter(selector).collect();
    assert!(files.len() >= 3, "{files:?}");
    for (file, code) in files {
        for word in HIDDEN {
            assert!(!code.contains(word), "{} names {word}", file.display());
        }
        assert!(
            !code.contains("crate::"),
            "{} leaves its module",
            file.display()
        );
        assert!(
            !code.contains("super::super"),
            "{} leaves its module",
            file.display()
        );
        // The selector may use only the verifier, trajectories and budgets.
        for (at, _) in code.match_indices("starling_") {
            let used = &code[at + "starling_".len()..];
            let allowed = ["models", "core", "swarm"]
                .iter()
                .any(|name| used.starts_with(name));
            assert!(allowed, "{} uses another crate", file.display());
        }
    }
}

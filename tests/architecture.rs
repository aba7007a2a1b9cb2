//! Holds the modules of `src` to the table in `docs/architecture.md`: who may use whom, and which
//! outside crates a module must not know.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Module, modules of this crate that it may use, crates and words that it must not name.
const TABLE: &[(&str, &[&str], &[&str])] = &[
    ("rpc", &[], &["lsp_types", "tower_lsp", "std::fs"]),
    (
        "text",
        &[],
        &["tokio", "lsp_types", "tower_lsp", "std::fs", "async fn"],
    ),
    (
        "syntax",
        &["text"],
        &["tokio", "lsp_types", "tower_lsp", "std::fs"],
    ),
    (
        "workspace",
        &["text", "syntax"],
        &["lsp_types", "tower_lsp", "async_openai", "candle"],
    ),
    (
        "index",
        &["text", "syntax", "workspace"],
        &["lsp_types", "tower_lsp", "async_openai", "candle"],
    ),
    (
        "ports",
        &["text", "syntax"],
        &[
            "lsp_types",
            "tower_lsp",
            "async_openai",
            "candle",
            "reqwest",
        ],
    ),
    (
        "prompts",
        &[],
        &[
            "tokio",
            "std::fs::write",
            "async_openai",
            "lsp_types",
            "tower_lsp",
        ],
    ),
    (
        "swarm",
        &["text", "syntax", "workspace", "index", "ports", "prompts"],
        &[
            "tower_lsp",
            "lsp_types",
            "reqwest",
            "async_openai",
            "candle",
            "tokio::process",
            "std::process",
        ],
    ),
    // Read-only: what changes anything is not to be named here.
    (
        "ask",
        &[
            "text",
            "syntax",
            "workspace",
            "index",
            "ports",
            "prompts",
            "swarm",
        ],
        &[
            "tower_lsp",
            "lsp_types",
            "reqwest",
            "async_openai",
            "candle",
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
    (
        "model",
        &["ports", "prompts", "workspace", "config"],
        &["crate::swarm", "lsp_types", "tower_lsp"],
    ),
    (
        "lang",
        &["rpc", "text", "syntax", "workspace", "ports"],
        &[
            "crate::swarm",
            "tower_lsp::Client",
            "tower_lsp::LanguageServer",
        ],
    ),
    (
        "runner",
        &["text", "syntax", "workspace", "index", "ports"],
        &["crate::swarm"],
    ),
    (
        "config",
        &["text", "ports", "swarm", "workspace"],
        &["lsp_types", "tower_lsp"],
    ),
    (
        "history",
        &["text", "syntax", "workspace", "ports", "swarm"],
        &["lsp_types", "tower_lsp", "reqwest", "std::process"],
    ),
    (
        "server",
        &[
            "history",
            "rpc",
            "text",
            "syntax",
            "workspace",
            "index",
            "ports",
            "swarm",
            "ask",
            "model",
            "lang",
            "runner",
            "config",
        ],
        &["crate::headless", "crate::cli"],
    ),
    (
        "headless",
        &[
            "rpc",
            "text",
            "syntax",
            "workspace",
            "index",
            "ports",
            "runner",
            "server",
            "swarm",
            "model",
        ],
        &["crate::cli"],
    ),
    (
        "cli",
        &[
            "text",
            "syntax",
            "workspace",
            "index",
            "ports",
            "swarm",
            "ask",
            "model",
            "lang",
            "runner",
            "config",
            "history",
            "server",
            "headless",
        ],
        &["lsp_types", "tower_lsp"],
    ),
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of src") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// Module, file and its text without tests, comments and documentation.
fn modules() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut modules: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for file in files {
        let inside = file.strip_prefix(&src).expect("a file of src").to_owned();
        let mut parts = inside.components();
        let first = parts
            .next()
            .expect("a name")
            .as_os_str()
            .to_string_lossy()
            .into_owned();
        let is_test = inside.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            part == "tests" || part == "tests.rs"
        });
        let module = first.trim_end_matches(".rs").to_owned();
        // `ports/tests.rs` is the port to tests, not a test.
        if (is_test && module != "ports") || matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("source");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code: String = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(|line| format!("{line}\n"))
            .collect();
        modules.entry(module).or_default().push((inside, code));
    }
    modules
}

/// Names after `crate::` in a text.
fn uses(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let end = group.find("};").unwrap_or(group.len());
            found.extend(group[..end].split(',').map(|part| first_name(part.trim())));
        } else {
            found.push(first_name(rest));
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

fn first_name(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect()
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let modules = modules();
    let known: Vec<&str> = TABLE.iter().map(|(module, _, _)| *module).collect();
    let mut wrong = Vec::new();
    for (module, files) in &modules {
        let Some((_, allowed, forbidden)) = TABLE.iter().find(|(name, _, _)| name == module) else {
            wrong.push(format!("src/{module} is not in the table"));
            continue;
        };
        for (file, code) in files {
            for used in uses(code) {
                if used != *module
                    && known.contains(&used.as_str())
                    && !allowed.contains(&used.as_str())
                {
                    wrong.push(format!("src/{} uses crate::{used}", file.display()));
                }
            }
            for word in *forbidden {
                if code.contains(word) {
                    wrong.push(format!("src/{} names {word}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_uses_sees_groups() {
    assert_eq!(
        uses("use crate::swarm::Event; use crate::{text::X, model};"),
        ["swarm", "text", "model"]
    );
}

#[test]
fn no_file_is_over_800_lines_without_tests() {
    for (file, code) in modules().values().flatten() {
        let lines = code.lines().count();
        assert!(lines <= 800, "src/{} has {lines} lines", file.display());
    }
}

/// The only files that start processes: by an absolute path outside the project, and the sandbox's own
/// parts, which are this program itself, a shell inside the sandbox, and bwrap by its absolute path.
const STARTS_PROCESSES: [&str; 6] = [
    "workspace/program.rs",
    "workspace/sandbox/bubblewrap.rs",
    "workspace/sandbox/init.rs",
    "workspace/sandbox/keeper.rs",
    "workspace/sandbox/narrow.rs",
    "workspace/shadow/process.rs",
];

#[test]
fn programs_are_started_in_one_place() {
    for (file, code) in modules().values().flatten() {
        let starts = code.contains("Command::new(") || code.contains("posix_spawn");
        // What tests share is not shipped.
        if file.ends_with("testing.rs") {
            continue;
        }
        let is_allowed = STARTS_PROCESSES
            .iter()
            .any(|allowed| file == Path::new(allowed));
        assert!(
            !starts || is_allowed,
            "src/{} starts a program: use workspace::HostPrograms",
            file.display()
        );
    }
}

/// What belongs to the grader, and what would lead to it.
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
fn who_chooses_among_samples_cannot_reach_what_belongs_to_the_grader() {
    let modules = modules();
    let of_selector = |(file, _): &&(PathBuf, String)| file.starts_with("headless/swebench/select");
    let files: Vec<_> = modules["headless"].iter().filter(of_selector).collect();
    assert!(files.len() >= 3, "{files:?}");
    for (file, code) in files {
        for word in HIDDEN {
            assert!(!code.contains(word), "src/{} names {word}", file.display());
        }
        // Its own parts, the verifier, what a run tells of itself, and money.
        for used in uses(code) {
            let allowed = ["model", "ports", "swarm"].contains(&used.as_str());
            assert!(allowed, "src/{} uses crate::{used}", file.display());
        }
        assert!(!code.contains("super::super"), "src/{}", file.display());
    }
}

//! Tests of the parts of `starling swebench` that trainers and clusters use: episodes with the
//! Python client, training data from a graded run, and instances distributed by Ray's driver.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const MENDED: &str = "def double(n):\n    return n + n\n";
/// The key of an environment: its Python version and requirements. This environment needs no
/// packages.
const NOTHING: &str = "3 ";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Creates two planted instances. The recording fixes the second one.
fn bed() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = dir.path();
    let mut plant = Command::new("python3");
    plant.arg(here("tests/swebench/planted.py")).arg(root);
    assert!(plant.args(["2", "1"]).status().unwrap().success());
    let environment = |id: &str| {
        let tests = "python3 -m unittest test_it";
        let row = serde_json::json!({
            "instance_id": id, "python": "3", "test_cmd_f2p": tests, "test_cmd_p2p": tests,
        });
        format!("{row}\n")
    };
    let rows = environment("a__b-1") + &environment("c__d-0");
    std::fs::write(root.join("environments.jsonl"), rows).unwrap();
    let name = xxhash_rust::xxh3::xxh3_64(NOTHING.as_bytes());
    let built = root.join(format!("cache/environments/{name:016x}"));
    std::fs::create_dir_all(&built).unwrap();
    std::fs::write(built.join("starling-built"), NOTHING).unwrap();
    dir
}

fn within(root: &Path, command: &mut Command) -> Output {
    command
        .env("STARLING_CACHE_DIR", root.join("cache"))
        .env("XDG_CONFIG_HOME", root.join("config"))
        .output()
        .unwrap()
}

fn data(root: &Path) -> Vec<std::ffi::OsString> {
    vec![
        "--dataset".into(),
        root.join("set.jsonl").into(),
        "--repos".into(),
        root.join("repos").into(),
    ]
}

fn starling(root: &Path, command: &str, words: &[&str]) -> Output {
    let mut starling = Command::new(env!("CARGO_BIN_EXE_starling"));
    starling.args(["swebench", command]).args(words);
    if command != "export" {
        starling.args(data(root));
    }
    within(root, &mut starling)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = text(bytes);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn scripted_policy_solves_an_instance_and_gets_the_reward_of_the_grader() {
    let dir = bed();
    let root = dir.path();
    let source = root.join("source");
    std::fs::write(&source, MENDED).unwrap();
    let bin = root.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_starling"), bin.join("starling")).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::iter::once(bin).chain(std::env::split_paths(&path));
    let mut script = Command::new("python3");
    script
        .arg(here("crates/bench/src/env/client/scripted.py"))
        .arg("code_of.py::double")
        .arg(source)
        .args(data(root))
        .arg("--environments")
        .arg(root.join("environments.jsonl"))
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = within(root, &mut script);
    let said = lines(&output.stdout);
    assert_eq!(said.len(), 2, "{}", text(&output.stderr));
    let rewards: Vec<_> = said.iter().map(|one| one["reward"].as_f64()).collect();
    assert_eq!(rewards, [Some(0.0), Some(1.0)], "{said:?}");
    assert_eq!(said[0]["grade"], "unresolved");
}

#[test]
fn python_client_tests_pass() {
    let mut tests = Command::new("python3");
    let client = here("crates/bench/src/env/client");
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tests.current_dir(client).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn conversations_of_a_run_are_exported_by_grade() {
    let dir = bed();
    let root = dir.path();
    let out = root.join("out").display().to_string();
    let model = format!("replay:{}", root.join("recording.jsonl").display());
    let run = ["--out", &out, "--model", &model, "--budget-seconds", "120"];
    let output = starling(root, "run", &run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let environments = root.join("environments.jsonl").display().to_string();
    let predictions = format!("{out}/predictions.jsonl");
    let grade = [
        "--predictions",
        &predictions,
        "--environments",
        &environments,
        "--json",
    ];
    let graded = starling(root, "grade", &grade);
    let grades = root.join("grades.json");
    std::fs::write(&grades, &graded.stdout).unwrap();
    let grades = grades.display().to_string();
    let export = |more: &[&str]| {
        let words = ["--out-of", &out, "--graded", &grades];
        starling(root, "export", &[&words[..], more].concat())
    };
    let sft = lines(&export(&["--format", "sft", "--split", "train"]).stdout);
    let ids: Vec<_> = sft
        .iter()
        .map(|line| line["instance_id"].as_str())
        .collect();
    assert_eq!(ids, [Some("a__b-1"); 2], "{}", text(&graded.stdout));
    let roles: Vec<_> = sft[0]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    let set = root.join("set.jsonl").display().to_string();
    let held = export(&["--format", "sft", "--split", "train", "--held-out", &set]);
    assert_eq!(held.status.code(), Some(2));
    assert!(
        text(&held.stderr).contains("2 instances are held out"),
        "{}",
        text(&held.stderr)
    );
    let allowed = [
        "--format",
        "sft",
        "--split",
        "test",
        "--held-out",
        &set,
        "--allow-held-out",
    ];
    assert_eq!(lines(&export(&allowed).stdout)[0]["split"], "test");
    assert_eq!(
        lines(&export(&["--format", "raw", "--split", "train"]).stdout).len(),
        2
    );
}

#[test]
fn results_of_a_ray_cluster_are_collected_once() {
    let dir = bed();
    let root = dir.path();
    let out = root.join("out");
    let model = format!("replay:{}", root.join("recording.jsonl").display());
    let run = |address: &str| {
        let mut starling = Command::new(env!("CARGO_BIN_EXE_starling"));
        starling.args([
            "swebench", "run", "--ray", address, "--json", "--model", &model,
        ]);
        starling
            .args(["--budget-seconds", "120", "--out"])
            .arg(&out)
            .args(data(root));
        starling.env("PYTHONPATH", here("tests/swebench/fake_ray"));
        starling.env("PYTHONDONTWRITEBYTECODE", "1");
        within(root, &mut starling)
    };
    let nowhere = run("elsewhere");
    assert!(!nowhere.status.success());
    assert!(
        text(&nowhere.stderr).contains("2 instances missing"),
        "{}",
        text(&nowhere.stderr)
    );
    let output = run("here");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["settled"], 2, "{report}");
    let result = out.join("instances/a__b-1/result.json");
    let kept = std::fs::read(&result).unwrap();
    assert!(out.join("instances/a__b-1/trajectory.jsonl").exists());
    // Finished instances are not run again.
    assert!(run("here").status.success());
    assert_eq!(std::fs::read(&result).unwrap(), kept);
    let predictions = std::fs::read_to_string(out.join("predictions.jsonl")).unwrap();
    assert_eq!(predictions.lines().count(), 2);
}

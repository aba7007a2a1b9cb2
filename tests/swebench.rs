//! Runs many instances with the shipped program. It is killed at any moment and restarted, and each
//! instance is done once.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const INSTANCES: usize = 24;
const KILLS: u32 = 10;
const CODE: &str = "def double(n):\n    return n + n + 1\n";
const MENDED: &str = "def double(n):\n    return n + n\n";
const TEST: &str = "import unittest\n\nimport code_of\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        \
                    self.assertEqual(code_of.double(2), 4)\n";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn exchange(conversation: &str, role: &str, text: &str, calls: Value) -> String {
    let reply = json!({
        "model": "recorded", "text": text, "tool_calls": calls, "finish": "stop",
        "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1,
    });
    let exchange = json!({
        "conversation": conversation, "role": role, "ordinal": 0, "prompt": [], "tools": [],
        "reply": {"Ok": reply}, "millis": 1,
    });
    json!({ "exchange": exchange }).to_string()
}

/// Writes a recording of a scout that includes the change in its pick, and of a proxy that accepts
/// it.
fn recording(file: &Path) {
    let pick = json!({"symbols": [{"symbol": "code_of.py::double", "why": "w", "source": MENDED}]});
    let wake = json!([{"id": "c", "name": "wake", "arguments": pick.to_string()}]);
    let lines = [
        exchange("scout", "scout", "", wake),
        exchange("proxy code_of.py::double", "proxy", "ACCEPT", json!([])),
    ];
    std::fs::write(file, lines.join("\n")).unwrap();
}

/// Creates a repository, and a data set whose instances all have the same defect.
fn data(root: &Path) {
    let repository = root.join("repos/a__b");
    std::fs::create_dir_all(&repository).unwrap();
    std::fs::write(repository.join("code_of.py"), CODE).unwrap();
    std::fs::write(repository.join("test_it.py"), TEST).unwrap();
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "base"]);
    let commit = git(&repository, &["rev-parse", "HEAD"]);
    let rows = (0..INSTANCES).map(|at| {
        let row = json!({
            "instance_id": format!("a__b-{at}"), "repo": "a/b", "base_commit": commit,
            "problem_statement": "double(2) gives 5", "patch": "SECRET-PATCH", "test_patch": "SECRET-TESTS",
            "FAIL_TO_PASS": ["SECRET-NAME"], "hints_text": "SECRET-HINT",
        });
        format!("{row}\n")
    });
    std::fs::write(root.join("set.jsonl"), rows.collect::<String>()).unwrap();
    recording(&root.join("recording.jsonl"));
}

fn starling(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
    let model = format!("replay:{}", root.join("recording.jsonl").display());
    command
        .args([
            "swebench",
            "run",
            "--workers",
            "4",
            "--model",
            &model,
            "--dataset",
        ])
        .arg(root.join("set.jsonl"))
        .arg("--repos")
        .arg(root.join("repos"))
        .arg("--out")
        .arg(root.join("out"))
        .args(["--budget-seconds", "120", "--json"])
        .env("STARLING_CACHE_DIR", root.join("cache"))
        .env("XDG_CONFIG_HOME", root.join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn results(root: &Path) -> usize {
    let Ok(folders) = std::fs::read_dir(root.join("out/instances")) else {
        return 0;
    };
    folders
        .filter(|folder| folder.as_ref().unwrap().path().join("result.json").exists())
        .count()
}

/// Waits until there are `count` results.
fn wait_for(root: &Path, count: usize) {
    let began = Instant::now();
    while results(root) < count {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "no instance is done"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn each_instance_is_finished_once_despite_ten_kills() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = dir.path();
    data(root);
    let mut finished: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for kill in 0..KILLS {
        let mut run = starling(root).spawn().unwrap();
        // The kills happen between results and just after one, each at a different moment.
        wait_for(root, (results(root) + 1).min(INSTANCES - 1));
        std::thread::sleep(Duration::from_millis(u64::from(kill) * 37));
        run.kill().unwrap();
        run.wait().unwrap();
        // Complete results stay unchanged, so no instance is run twice.
        for (place, bytes) in &finished {
            assert_eq!(
                &std::fs::read(place).unwrap(),
                bytes,
                "{place} was written again"
            );
        }
        for at in 0..INSTANCES {
            let place = root.join(format!("out/instances/a__b-{at}/result.json"));
            if let Ok(bytes) = std::fs::read(&place) {
                finished.insert(place.display().to_string(), bytes);
            }
        }
    }
    let output = starling(root).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["instances"], INSTANCES);
    assert_eq!(report["settled"], INSTANCES, "{complaint}");
    let text = std::fs::read_to_string(root.join("out/predictions.jsonl")).unwrap();
    let mut ids: Vec<String> = Vec::new();
    for line in text.lines() {
        let prediction: Value = serde_json::from_str(line).unwrap();
        assert!(
            prediction["model_patch"]
                .as_str()
                .unwrap()
                .contains("+    return n + n\n")
        );
        ids.push(prediction["instance_id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), INSTANCES);
    assert_eq!(text.lines().count(), INSTANCES);
    for id in &ids {
        let story = root.join("out/instances").join(id).join("trajectory.jsonl");
        let story = std::fs::read_to_string(story).unwrap();
        let last = story.lines().last().unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!(last["event"]["event"], "run_finished");
        assert!(
            !story.contains("SECRET"),
            "{id}: a run saw what belongs to the grader"
        );
    }
    assert!(!root.join("out/work").join(&ids[0]).exists());
}

#[test]
fn run_with_samples_resumes_and_chooses_one_sample_per_instance() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = dir.path();
    data(root);
    let ids = ["a__b-0", "a__b-1", "a__b-2"];
    let sampled = || {
        let mut command = starling(root);
        command.args([
            "--samples",
            "2",
            "--sample",
            "driver=swarm,temperature=0.5",
            "--ids",
        ]);
        command.args(ids);
        command
    };
    let result = |sample: usize, id: &str| {
        let place = format!("out/samples/{sample}/instances/{id}/result.json");
        std::fs::read(root.join(place)).ok()
    };
    let mut first = sampled().spawn().unwrap();
    let began = Instant::now();
    while ids.iter().all(|id| result(1, id).is_none()) {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "no instance is done"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let before: Vec<_> = ids.iter().map(|id| result(1, id)).collect();
    let output = sampled().output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    for (id, before) in ids.iter().zip(before) {
        assert!(
            before.is_none() || before == result(1, id),
            "{id} was run twice"
        );
        assert!(result(2, id).is_some(), "{id}: {complaint}");
        let choice = std::fs::read(root.join(format!("out/choices/{id}.json"))).unwrap();
        let choice: Value = serde_json::from_slice(&choice).unwrap();
        // Both samples are equal, so the first is chosen.
        assert_eq!(choice["chosen"], 1);
        assert_eq!(choice["samples"]["2"]["agreement"], 1.0);
        assert_eq!(choice["samples"]["2"]["tests"], 1.0);
    }
    let text = std::fs::read_to_string(root.join("out/predictions.jsonl")).unwrap();
    assert_eq!(text.lines().count(), ids.len());
    assert!(
        text.contains("chosen of 2") && text.contains("+    return n + n"),
        "{text}"
    );
    // Samples with other settings are refused in the same directory.
    let other = starling(root)
        .args(["--samples", "2", "--sample", "temperature=0.9"])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(
        !other.status.success() && complaint.contains("temperature 0.5"),
        "{complaint}"
    );
}

#[test]
fn unresponsive_endpoint_blocks_a_worker_only_up_to_its_time_limit() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = dir.path();
    data(root);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    // The server accepts connections and never replies.
    std::thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
    let output = Command::new(env!("CARGO_BIN_EXE_starling"))
        .args([
            "swebench",
            "run",
            "--model",
            "openai:m",
            "--budget-seconds",
            "2",
        ])
        .arg("--dataset")
        .arg(root.join("set.jsonl"))
        .arg("--repos")
        .arg(root.join("repos"))
        .arg("--out")
        .arg(root.join("out"))
        .args(["--json", "--ids", "a__b-0", "a__b-1"])
        .env("STARLING_CACHE_DIR", root.join("cache"))
        .env("XDG_CONFIG_HOME", root.join("cache"))
        .env("OPENAI_BASE_URL", url)
        .env("OPENAI_API_KEY", "none")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    // One worker ran both instances, one after the other.
    let report: Value = serde_json::from_slice(&output.stdout).expect(&complaint);
    assert_eq!(report["instances"], 2, "{complaint}");
    assert_eq!(report["settled"], 0);
    assert_eq!(results(root), 2);
}

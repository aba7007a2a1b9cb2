use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::checkout::Checkouts;
use crate::dataset::{Answer, Task};
use crate::git::Repositories;
use crate::testing::git;
use starling_sandbox::{Policy, Shadows};

/// A fake run that sends one model request over the given socket, and then ends with the reply.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, socket, sys
sys.stdin.read()
path = [word for word in sys.argv if word.startswith("socket:")][0][len("socket:"):]
s = socket.socket(socket.AF_UNIX)
s.connect(path)
request = {"conversation": "scout", "messages": [{"role": "user", "text": "Q"}], "tools": [], "max_output": 5,
           "temperature": 0.0, "seed": None, "stop": []}
s.sendall((json.dumps(request) + "\n").encode())
reply = json.loads(s.makefile().readline())
if reply["text"] == "crash":
    sys.exit("the run is gone")
spent = {"calls": 1, "prompt_tokens": 1, "cached_tokens": 0, "output_tokens": 1, "dollars": 0.0, "seconds": 1.0,
         "waiting_seconds": 0.0, "messages": 0, "agents": 1}
event = {"event": "run_finished", "stop_reason": {"reason": "settled"}, "applied": [], "diff": reply["text"],
         "spent": spent, "summary": "s", "tally": []}
print(json.dumps({"run": "r", "seq": 1, "at_ms": 1, "event": event}))
"#;

async fn env(dir: &Path) -> Env {
    let repository = dir.join("repos/a__b");
    std::fs::create_dir_all(&repository).unwrap();
    std::fs::write(repository.join("a.py"), "x = 1\n").unwrap();
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "base"]);
    let program = dir.join("program");
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let repositories = Repositories {
        directory: dir.join("repos"),
        ..Repositories::default()
    };
    let instance = |id: &str| Instance {
        task: Task {
            id: id.into(),
            repo: "a/b".into(),
            base_commit: git(&repository, &["rev-parse", "HEAD"]),
            problem_statement: "P".into(),
        },
        answer: Answer {
            patch: String::new(),
            test_patch: String::new(),
            fail_to_pass: Vec::new(),
            pass_to_pass: Vec::new(),
        },
    };
    let cache = dir.join("cache");
    Env {
        instances: vec![instance("a__b-1"), instance("a__b-2")],
        runs: runs(repositories.clone(), program, &cache),
        grader: Grader {
            repositories,
            checkouts: Checkouts::temporary().unwrap(),
            environments: Default::default(),
            containers: None,
            shadows: Shadows::open(&cache, Policy::default()).await.unwrap(),
            hidden: Vec::new(),
            cache,
            deadline: Duration::from_secs(60),
        },
        idle: Duration::from_secs(60),
    }
}

fn runs(repositories: Repositories, program: PathBuf, cache: &Path) -> Runs {
    Runs {
        repositories,
        environments: Default::default(),
        containers: None,
        cache: cache.to_owned(),
        program,
        arguments: Vec::new(),
        hidden: Vec::new(),
        oracle: None,
        seconds: 60,
        workers: 1,
        dollars: None,
    }
}

/// Returns the server's answers to these lines.
async fn talk(env: &Env, lines: &[Value]) -> (TrainerSessionEnd, Vec<Value>) {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut output = Vec::new();
    let farewell = env.serve(input.as_bytes(), &mut output).await.unwrap();
    let said = String::from_utf8(output).unwrap();
    let said = said.lines().map(|line| serde_json::from_str(line).unwrap());
    (farewell, said.collect())
}

fn step(text: &str) -> Value {
    json!({"op": "step", "action": {"content": text}})
}

#[tokio::test]
async fn policy_of_the_trainer_replaces_the_model_and_the_grade_is_the_reward() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path()).await;
    let lines = [
        json!({"op": "instances"}),
        json!({"op": "reset", "instance_id": "a__b-2"}),
        step(""),
        step("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"),
        json!({"op": "reset"}),
        step("crash"),
        json!({"op": "reset"}),
        json!({"op": "close"}),
        json!({"op": "never read"}),
    ];
    let (farewell, said) = talk(&env, &lines).await;
    assert_eq!(farewell, TrainerSessionEnd::Closed);
    assert_eq!(said.len(), 8);
    assert_eq!(said[0]["instances"], json!(["a__b-1", "a__b-2"]));
    assert_eq!(said[1]["observation"]["messages"][0]["content"], "Q");
    assert_eq!(said[1]["done"], false);
    // An invalid action changes nothing.
    assert!(said[2]["error"].as_str().unwrap().contains("content"));
    assert_eq!(said[3]["done"], true);
    assert_eq!(said[3]["reward"], 0.0);
    assert_eq!(said[3]["info"]["grade"], "error");
    assert!(
        said[3]["info"]["why"]
            .as_str()
            .unwrap()
            .contains("no test environment")
    );
    assert!(
        said[3]["info"]["patch"]
            .as_str()
            .unwrap()
            .contains("+x = 2")
    );
    // If no instance is named, they come in order.
    assert_eq!(said[4]["info"]["instance_id"], "a__b-1");
    assert!(
        said[5]["info"]["why"]
            .as_str()
            .unwrap()
            .contains("the run is gone")
    );
    assert_eq!(said[6]["info"]["instance_id"], "a__b-2");
    assert_eq!(said[7], json!({"closed": true}));
}

#[tokio::test]
async fn invalid_trainer_requests_return_an_error_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path()).await;
    let lines = [
        json!("nonsense"),
        step("T"),
        json!({"op": "reset", "instance_id": "other"}),
    ];
    let (farewell, said) = talk(&env, &lines).await;
    assert_eq!(farewell, TrainerSessionEnd::Closed);
    let errors: Vec<&str> = said
        .iter()
        .map(|one| one["error"].as_str().unwrap())
        .collect();
    assert!(errors[0].contains("invalid request"), "{errors:?}");
    assert!(
        errors[1].contains("send a reset request first"),
        "{errors:?}"
    );
    assert!(errors[2].contains("no instance other"), "{errors:?}");
}

#[tokio::test]
async fn line_that_is_not_utf8_returns_an_error_like_any_other_invalid_line() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path()).await;
    let input = b"\xff\xfe\n{\"op\":\"\xff\"}\r\n \n{\"op\":\"instances\"}\r\n";
    let mut output = Vec::new();
    let farewell = env.serve(&input[..], &mut output).await.unwrap();
    assert_eq!(farewell, TrainerSessionEnd::Closed);
    let said = String::from_utf8(output).unwrap();
    let said: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(said.len(), 3, "{said:?}");
    for one in &said[..2] {
        assert!(
            one["error"].as_str().unwrap().contains("invalid request"),
            "{one}"
        );
    }
    assert_eq!(said[2]["instances"], json!(["a__b-1", "a__b-2"]));
}

#[tokio::test(start_paused = true)]
async fn environment_exits_if_the_trainer_sends_no_request() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path()).await;
    let (silent, _open) = tokio::io::duplex(8);
    let reader = tokio::io::BufReader::new(silent);
    let farewell = env.serve(reader, Vec::new()).await.unwrap();
    assert_eq!(farewell, TrainerSessionEnd::Idle);
}

//! A project in its own home directory, the shipped program in it, and recordings of models.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

pub const OLD: &str = "def f():\n    return 1\n";
pub const NEW: &str = "def f():\n    return 2 - 1\n";

/// A separate home directory with a small project.
pub struct TestProject {
    pub dir: tempfile::TempDir,
}

impl TestProject {
    pub fn new() -> TestProject {
        let bed = TestProject {
            dir: tempfile::tempdir().unwrap(),
        };
        let root = bed.root();
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("work.py"), OLD).unwrap();
        let test = "import unittest\n\nimport work\n\n\nclass T(unittest.TestCase):\n    \
                    def test_f(self):\n        self.assertEqual(work.f(), 1)\n";
        std::fs::write(root.join("test_work.py"), test).unwrap();
        bed
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn work(&self) -> String {
        std::fs::read_to_string(self.root().join("work.py")).unwrap()
    }

    /// Writes a file in the home directory.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns a command that runs the program in the project.
    pub fn starling(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("STARLING_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.root())
            .env("STARLING_CACHE_DIR", self.dir.path().join("cache"))
            .env("XDG_CONFIG_HOME", self.dir.path().join("config"))
            .env("XDG_STATE_HOME", self.dir.path().join("state"))
            .env_remove("OPENAI_API_KEY")
            .env_remove("OPENAI_BASE_URL")
            .stdin(Stdio::null());
        command
    }

    pub fn say(&self, args: &[&str]) -> CommandResult {
        CommandResult::of(&self.starling().args(args).output().unwrap())
    }

    /// Writes a recording in which `f` proposes these texts in order, and returns its model name.
    pub fn tape(&self, sources: &[&str]) -> String {
        let picked = json!({"symbols": [{"symbol": "work.py::f", "why": "recorded"}]});
        let mut lines = vec![exchange("scout", "scout", 0, "wake", &picked)];
        for (ordinal, source) in sources.iter().enumerate() {
            let proposal = json!({"reason": "recorded", "source": source});
            let conversation = "agent work.py::f";
            lines.push(exchange(
                conversation,
                "agent",
                ordinal,
                "propose",
                &proposal,
            ));
        }
        let path = self.write("tape.jsonl", &lines.join("\n"));
        format!("replay:{}", path.display())
    }

    /// Runs a task that applies a new text of `f`, and returns the id of the run.
    pub fn applied(&self, source: &str) -> String {
        let tape = self.tape(&[source]);
        let args = ["run", "--json", "--approve", "auto", "--model", &tape, "x"];
        let said = self.say(&args);
        let events = said.events();
        let applied = events
            .iter()
            .any(|one| one["event"]["event"] == "proposal_applied");
        assert!(applied, "{said:?}");
        events[0]["run"].as_str().unwrap().to_owned()
    }

    /// Runs a task that ends while its only proposal waits for review.
    pub fn waits(&self, source: &str) -> CommandResult {
        let tape = self.tape(&[source]);
        let mut command = self.starling();
        command.args(["run", "--model", &tape, "tidy f up"]);
        let mut talk = RunningProgram::begin(command);
        talk.hear("[a]ccept");
        drop(talk.child.stdin.take());
        talk.end()
    }

    pub fn type_text(&self, text: &str) {
        std::fs::write(self.root().join("work.py"), text).unwrap();
    }

    pub fn trajectory(&self, run: &str) -> PathBuf {
        self.dir.path().join(format!("cache/runs/{run}.jsonl"))
    }

    /// Runs a command and types these lines as answers.
    pub fn answered(&self, args: &[&str], lines: &[&str]) -> CommandResult {
        let mut command = self.starling();
        command.args(args);
        let mut talk = RunningProgram::begin(command);
        for line in lines {
            talk.answer(line);
        }
        drop(talk.child.stdin.take());
        talk.end()
    }
}

pub fn exchange(
    conversation: &str,
    role: &str,
    ordinal: usize,
    tool: &str,
    given: &Value,
) -> String {
    let call = json!({"id": "c", "name": tool, "arguments": given.to_string()});
    let reply = json!({
        "model": "recorded", "text": "", "tool_calls": [call], "finish": "tool_calls",
        "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1,
    });
    let exchange = json!({
        "conversation": conversation, "role": role, "ordinal": ordinal, "prompt": [],
        "tools": [tool], "reply": {"Ok": reply}, "millis": 1,
    });
    json!({ "exchange": exchange }).to_string()
}

/// Runs a task that creates a file in a new directory and changes other files.
pub fn run_over_files(bed: &TestProject, proposals: &[(&str, &str, &str)]) -> String {
    let picked: Vec<Value> = proposals
        .iter()
        .map(|(owner, _, _)| json!({"symbol": owner, "why": "recorded"}))
        .collect();
    let mut lines = vec![exchange(
        "scout",
        "scout",
        0,
        "wake",
        &json!({"symbols": picked}),
    )];
    for (owner, symbol, source) in proposals {
        let made = json!({"reason": "r", "symbol": symbol, "source": source});
        lines.push(exchange(
            &format!("agent {owner}"),
            "agent",
            0,
            "propose",
            &made,
        ));
    }
    let tape = bed.write("files.jsonl", &lines.join("\n"));
    let model = format!("replay:{}", tape.display());
    let args = ["run", "--json", "--approve", "auto", "--model", &model, "x"];
    let said = bed.say(&args);
    let events = said.events();
    let applied = events
        .iter()
        .filter(|one| one["event"]["event"] == "proposal_applied");
    assert_eq!(applied.count(), proposals.len(), "{said:?}");
    events[0]["run"].as_str().unwrap().to_owned()
}

/// The result of a command.
#[derive(Debug)]
pub struct CommandResult {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandResult {
    pub fn of(output: &Output) -> CommandResult {
        CommandResult {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    pub fn is_wrong_use(&self, because: &str) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert!(self.err.contains(because), "no {because:?} in {self:?}");
        assert_eq!(self.out, "", "nothing was done");
    }

    pub fn events(&self) -> Vec<Value> {
        let lines = self.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
            .collect()
    }
}

/// A program that the test communicates with through pipes.
pub struct RunningProgram {
    pub child: Child,
    pub out: BufReader<ChildStdout>,
    pub heard: String,
}

impl RunningProgram {
    pub fn begin(mut command: Command) -> RunningProgram {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let heard = String::new();
        RunningProgram { child, out, heard }
    }

    /// Reads up to a line that contains `wanted`.
    pub fn hear(&mut self, wanted: &str) {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).unwrap() == 0 {
                break;
            }
            self.heard += &line;
            if line.contains(wanted) {
                return;
            }
        }
        panic!("no {wanted:?} in {}", self.heard);
    }

    /// Reads one LSP message.
    pub fn message(&mut self) -> Value {
        self.hear("Content-Length: ");
        let length = self.heard.trim().rsplit(' ').next().unwrap();
        let mut body = vec![0; length.parse::<usize>().unwrap() + "\r\n".len()];
        self.out.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    pub fn answer(&mut self, line: &str) {
        self.write(&format!("{line}\n"));
    }

    pub fn write(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub fn end(mut self) -> CommandResult {
        let mut out = self.heard;
        self.out.read_to_string(&mut out).unwrap();
        drop(self.child.stdin.take());
        let rest = self.child.wait_with_output().unwrap();
        CommandResult {
            out,
            ..CommandResult::of(&rest)
        }
    }
}

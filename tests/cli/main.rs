//! Tests of the shipped program as a process: its output and its exit status.

#![allow(clippy::unwrap_used)]

mod ask;
mod closed_output;
mod endpoint;
mod killed;
mod log_file;
mod refactor;
mod relied_on;
mod terminal;
mod trying;
mod undo;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

const OLD: &str = "def f():\n    return 1\n";
const NEW: &str = "def f():\n    return 2 - 1\n";

/// A separate home directory with a small project.
struct TestProject {
    dir: tempfile::TempDir,
}

impl TestProject {
    fn new() -> TestProject {
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

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn work(&self) -> String {
        std::fs::read_to_string(self.root().join("work.py")).unwrap()
    }

    /// Writes a file in the home directory.
    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns a command that runs the program in the project.
    fn starling(&self) -> Command {
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

    fn say(&self, args: &[&str]) -> CommandResult {
        CommandResult::of(&self.starling().args(args).output().unwrap())
    }

    /// Writes a recording in which `f` proposes these texts in order, and returns its model name.
    fn tape(&self, sources: &[&str]) -> String {
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
}

fn exchange(conversation: &str, role: &str, ordinal: usize, tool: &str, given: &Value) -> String {
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

/// The result of a command.
#[derive(Debug)]
struct CommandResult {
    code: Option<i32>,
    out: String,
    err: String,
}

impl CommandResult {
    fn of(output: &Output) -> CommandResult {
        CommandResult {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    fn is_wrong_use(&self, because: &str) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert!(self.err.contains(because), "no {because:?} in {self:?}");
        assert_eq!(self.out, "", "nothing was done");
    }

    fn events(&self) -> Vec<Value> {
        let lines = self.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
            .collect()
    }
}

/// A program that the test communicates with through pipes.
struct RunningProgram {
    child: Child,
    out: BufReader<ChildStdout>,
    heard: String,
}

impl RunningProgram {
    fn begin(mut command: Command) -> RunningProgram {
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
    fn hear(&mut self, wanted: &str) {
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
    fn message(&mut self) -> Value {
        self.hear("Content-Length: ");
        let length = self.heard.trim().rsplit(' ').next().unwrap();
        let mut body = vec![0; length.parse::<usize>().unwrap() + "\r\n".len()];
        self.out.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn answer(&mut self, line: &str) {
        self.write(&format!("{line}\n"));
    }

    fn write(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    fn end(mut self) -> CommandResult {
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

#[test]
fn help_and_version_exit_with_status_0() {
    let bed = TestProject::new();
    let help = bed.say(&["--help"]);
    assert_eq!(help.code, Some(0));
    for command in [
        "run",
        "review",
        "undo",
        "demo",
        "lsp",
        "index",
        "locate",
        "map",
        "references",
        "definition",
        "symbols",
        "models",
        "doctor",
        "config",
        "trust",
    ] {
        assert!(help.out.contains(&format!("\n  {command} ")), "{help:?}");
    }
    let version = bed.say(&["--version"]);
    assert_eq!(version.code, Some(0));
    let expected = format!("starling {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version.out, expected);
}

#[test]
fn invalid_run_arguments_are_usage_errors() {
    let bed = TestProject::new();
    for (args, because) in [
        (&[] as &[&str], "Usage"),
        (&["fly"], "fly"),
        (&["run"], "the task is empty"),
        (&["run", "x", "--fast"], "--fast"),
        (&["run", "x", "y"], "'y'"),
        (&["run", "x", "--approve", "maybe"], "ask, proxy, auto"),
        (&["run", "x", "--driver", "herd"], "swarm, single"),
        (
            &["run", "x", "--budget-usd", "0"],
            "in US dollars greater than 0",
        ),
        (
            &["run", "x", "--budget-usd", "much"],
            "in US dollars greater than 0",
        ),
        (&["run", "x", "--budget-tokens", "-5"], "-5"),
        (&["run", "x", "--budget-seconds", "1.5"], "1.5"),
        (&["demo", "--replay", "--model", "local"], "--model"),
        (&["config"], "explain"),
        (&["models", "burn"], "burn"),
    ] {
        bed.say(args).is_wrong_use(because);
    }
}

#[test]
fn repo_option_that_is_not_a_directory_is_a_usage_error() {
    let bed = TestProject::new();
    let run = |repo: &str| bed.say(&["run", "--repo", repo, "x"]);
    run("no/such/folder").is_wrong_use("no/such/folder: No such file");
    run("work.py").is_wrong_use("work.py: not a directory");
}

#[test]
fn empty_task_is_a_usage_error() {
    let bed = TestProject::new();
    bed.say(&["run", " \n"]).is_wrong_use("the task is empty");
    // Standard input is empty.
    let tape = bed.tape(&[NEW]);
    bed.say(&["run", "-", "--approve", "auto", "--model", &tape])
        .is_wrong_use("the task is empty");
}

#[test]
fn invalid_configuration_is_a_usage_error_with_file_and_line() {
    let bed = TestProject::new();
    let with = |option: &str| bed.say(&["run", "-c", option, "x"]);
    with("limits.cals=3").is_wrong_use("no such key: limits.cals; did you mean limits.calls?");
    with("limits.calls").is_wrong_use("write it as key=value");
    with("limits.calls=many").is_wrong_use("option -c: limits.calls: invalid type");
    with("limits.calls=0").is_wrong_use("option -c: limits.calls: must be at least 1");
    with("run.approve=nobody").is_wrong_use("unknown variant `nobody`");
    let mut command = bed.starling();
    command
        .env("STARLING_LIMITS_CALLS", "many")
        .args(["run", "x"]);
    CommandResult::of(&command.output().unwrap())
        .is_wrong_use("environment variable STARLING_LIMITS_CALLS: limits.calls: invalid type");
    let file = bed.write("config/starling/config.toml", "[limits]\n\ncalls = \"x\"\n");
    let place = format!("{}:3: invalid type", file.display());
    bed.say(&["run", "x"]).is_wrong_use(&place);
    bed.say(&["config", "explain"]).is_wrong_use(&place);
    // The doctor reports a broken configuration instead of failing.
    let doctor = bed.say(&["doctor", "--json"]);
    assert_eq!(doctor.code, Some(1));
    let findings: Value = serde_json::from_str(&doctor.out).unwrap();
    assert_eq!(findings[0]["health"], "fail");
    let detail = findings[0]["detail"].as_str().unwrap();
    assert!(detail.contains(&place), "{detail}");
}

#[test]
fn doctor_advises_on_each_problem_and_fails_without_a_usable_model() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let doctor = bed.say(&["doctor", "--json", "--model", &tape]);
    let findings: Vec<Value> = serde_json::from_str(&doctor.out).unwrap();
    let health = |what: &str| {
        let found = findings.iter().find(|one| one["what"] == what);
        found.unwrap_or_else(|| panic!("no {what} in {findings:#?}"))["health"].clone()
    };
    assert_eq!(health("cache"), "ok");
    assert_eq!(health("tests"), "ok", "{findings:#?}");
    assert_eq!(doctor.code, Some(0), "{findings:#?}");
    for finding in &findings {
        let advised = finding["advice"] != "";
        assert_eq!(advised, finding["health"] != "ok", "{finding}");
    }
    let missing = bed.say(&["doctor", "--model", "replay:/no/such.jsonl"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.out.contains("/no/such.jsonl is not a file"),
        "{missing:?}"
    );
    let unknown = bed.say(&["doctor", "--model", "huge"]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.out.contains("no model is called \"huge\""),
        "{unknown:?}"
    );
}

#[test]
fn config_explain_shows_value_source_and_default() {
    let bed = TestProject::new();
    let user = bed.write("config/starling/config.toml", "[limits]\ncalls = 7\n");
    let explain = |args: &[&str]| bed.say(&[&["config", "explain"], args].concat());
    let one = explain(&["limits.calls"]);
    assert_eq!(one.code, Some(0));
    let place = format!("limits.calls = 7\n  from {}:2; default 60", user.display());
    assert!(one.out.starts_with(&place), "{one:?}");
    let over = explain(&["limits.calls", "--json", "-c", "limits.calls=8"]);
    let over: Value = serde_json::from_str(&over.out).unwrap();
    assert_eq!(over[0]["value"], "8");
    assert_eq!(over[0]["origin"], "option -c");
    assert_eq!(over[0]["type"], "integer");
    assert_eq!(over.as_array().unwrap().len(), 1);
    let all = explain(&["--json"]);
    let all: Vec<Value> = serde_json::from_str(&all.out).unwrap();
    assert!(all.len() > 30, "{}", all.len());
    explain(&["limits.cals"]).is_wrong_use("did you mean limits.calls?");
    explain(&["nonsense"]).is_wrong_use("unknown setting nonsense; `starling config explain`");
}

#[test]
fn project_configuration_is_ignored_until_trusted_and_never_sets_models() {
    let bed = TestProject::new();
    bed.write(
        "project/.starling/config.toml",
        "[limits]\ncalls = 5\n[models.evil]\nbase_url = \"http://evil\"\n",
    );
    let explain = |args: &[&str]| bed.say(&[&["config", "explain", "limits.calls"], args].concat());
    let stranger = explain(&[]);
    assert!(
        stranger.out.starts_with("limits.calls = 60\n"),
        "{stranger:?}"
    );
    assert!(stranger.err.contains("not trusted"), "{stranger:?}");
    let friend = explain(&["--trust"]);
    assert!(friend.out.starts_with("limits.calls = 5\n"), "{friend:?}");
    let refused = "models.evil.base_url is ignored: a project may not set it";
    assert!(friend.err.contains(refused), "{friend:?}");
    let models = bed.say(&["config", "explain", "--trust", "models"]);
    assert!(!models.out.contains("evil"), "{models:?}");
}

#[test]
fn trust_is_stored_per_project_until_removed() {
    let bed = TestProject::new();
    bed.write("project/.starling/config.toml", "[limits]\ncalls = 5\n");
    let calls = || bed.say(&["config", "explain", "limits.calls"]);
    assert!(calls().out.starts_with("limits.calls = 60\n"));
    let trusted = bed.say(&["trust"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let (root, friend) = (bed.root().canonicalize().unwrap(), calls());
    assert!(friend.out.starts_with("limits.calls = 5\n"), "{friend:?}");
    assert_eq!(friend.err, "");
    let list = bed.say(&["trust", "--list"]);
    assert_eq!(list.out, format!("trusted  {}\n", root.display()));
    // Trust applies to the content, so a changed file is not trusted.
    bed.write("project/.starling/config.toml", "[limits]\ncalls = 4\n");
    let changed = calls();
    assert!(
        changed.out.starts_with("limits.calls = 60\n"),
        "{changed:?}"
    );
    assert!(
        changed
            .err
            .contains("changed since the project was trusted"),
        "{changed:?}"
    );
    assert_eq!(bed.say(&["trust"]).code, Some(0));
    assert!(calls().out.starts_with("limits.calls = 4\n"));
    let removed = bed.say(&["trust", "--remove", "--repo", "."]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(calls().out.starts_with("limits.calls = 60\n"));
    assert_eq!(bed.say(&["trust", "--list"]).out, "");
    // A configuration that a run would refuse is not trusted.
    for wrong in ["[limits]\ncalls = -1\n", "[limits]\ndollars = nan\n"] {
        bed.write("project/.starling/config.toml", wrong);
        let refused = bed.say(&["trust"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("config.toml:2: "), "{refused:?}");
        assert_eq!(bed.say(&["trust", "--list"]).out, "");
    }
    bed.say(&["trust", "--list", "--remove"])
        .is_wrong_use("--remove");
    bed.say(&["trust", "--repo", "no/such"])
        .is_wrong_use("no/such");
    // If the list of trusted projects is unreadable, no project is trusted, and a warning is
    // printed.
    bed.write("state/starling/trusted.json", "[");
    let broken = calls();
    assert!(broken.out.starts_with("limits.calls = 60\n"), "{broken:?}");
    assert!(
        broken.err.contains("trusted.json: not a list"),
        "{broken:?}"
    );
}

#[test]
fn models_command_lists_known_weights_and_rejects_unknown_ones() {
    let bed = TestProject::new();
    let list = bed.say(&["models", "list"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    assert!(
        list.out.contains("not downloaded"),
        "the cache is empty: {list:?}"
    );
    let alias = bed.say(&["model", "list"]);
    assert_eq!(alias.out, list.out);
    let absent = bed.say(&["models", "path"]);
    assert_eq!((absent.code, absent.out.as_str()), (Some(1), ""));
    for command in ["path", "pull"] {
        let unknown = bed.say(&["models", command, "huge"]);
        assert_eq!(unknown.code, Some(1), "{unknown:?}");
        assert!(unknown.err.contains("huge"), "{unknown:?}");
    }
}

#[test]
fn json_run_prints_events_changes_the_file_and_can_be_undone() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let args = ["run", "--json", "--approve", "auto", "--model", &tape];
    let said = bed.say(&[&args[..], &["tidy f up"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let events = said.events();
    let seqs: Vec<u64> = events
        .iter()
        .filter_map(|event| event["seq"].as_u64())
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    assert_eq!(events[0]["event"]["event"], "run_started");
    assert_eq!(events[0]["event"]["task"], "tidy f up");
    assert_eq!(events[0]["event"]["replayed"], true);
    let last = &events[events.len() - 1]["event"];
    assert_eq!(last["event"], "run_finished");
    assert_eq!(last["applied"], json!(["work.py::f"]));
    assert_eq!(bed.work(), NEW);
    // The complete patch is in the directory of the trajectory.
    let runs = bed.dir.path().join("cache/runs");
    let run = events[0]["run"].as_str().unwrap();
    let patch = std::fs::read_to_string(runs.join(format!("{run}.patch"))).unwrap();
    assert_eq!(json!(patch), last["diff"]);
    assert!(runs.join(format!("{run}.jsonl")).is_file());
}

#[test]
fn exit_status_depends_on_whether_tests_prove_the_change() {
    let run = |test: Option<&str>, options: &[&str]| {
        let bed = TestProject::new();
        let path = bed.root().join("test_work.py");
        match test {
            Some(test) => std::fs::write(path, test).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        let tape = bed.tape(&[NEW]);
        let args = ["run", "--approve", "auto", "--model", &tape, "refactor f"];
        let json = bed.say(&[&args[..], &["--json"], options].concat());
        let events = json.events();
        let headline = events[events.len() - 1]["event"]["ending"]["headline"].clone();
        (json.code, headline.as_str().unwrap().to_owned(), bed.work())
    };
    let wants = |value: u32| {
        format!(
            "import unittest\n\nimport work\n\n\nclass T(unittest.TestCase):\n    \
             def test_f(self):\n        self.assertEqual(work.f(), {value})\n"
        )
    };
    let strict: &[&str] = &["--require-tests"];
    for options in [&[], strict] {
        let proven = run(Some(&wants(1)), options);
        let expected = "Done: 1 test passes as before".to_owned();
        assert_eq!(proven, (Some(0), expected, NEW.to_owned()));
    }
    let (code, headline, work) = run(None, &[]);
    assert_eq!((code, work.as_str()), (Some(3), NEW), "{headline}");
    assert!(
        headline.starts_with("Done, untested: no test ran ("),
        "{headline}"
    );
    let (code, headline, work) = run(None, strict);
    assert_eq!((code, work.as_str()), (Some(1), OLD), "{headline}");
    assert!(
        headline.starts_with("Not done: tests are required"),
        "{headline}"
    );
    let (code, headline, work) = run(Some(&wants(5)), &[]);
    assert_eq!((code, work.as_str()), (Some(3), NEW), "{headline}");
    assert!(
        headline.ends_with("test_f (it failed before)"),
        "{headline}"
    );
    let (code, headline, work) = run(Some(&wants(5)), strict);
    assert_eq!((code, work.as_str()), (Some(1), OLD), "{headline}");
}

/// Runs a recording without a person. Returns the exit status, the headline, and the texts of code
/// and test.
fn ends(
    bed: &TestProject,
    exchanges: &[String],
    args: &[&str],
) -> (Option<i32>, String, String, String) {
    let path = bed.write("tape.jsonl", &exchanges.join("\n"));
    let tape = format!("replay:{}", path.display());
    let said = bed.say(&[&["run", "--json", "--model", &tape][..], args].concat());
    let events = said.events();
    let ending = &events[events.len() - 1]["event"]["ending"];
    let headline = ending["headline"].as_str().unwrap().to_owned();
    let test = std::fs::read_to_string(bed.root().join("test_work.py")).unwrap();
    (said.code, headline, bed.work(), test)
}

fn picks(symbols: &[&str]) -> String {
    let symbols: Vec<_> = symbols
        .iter()
        .map(|symbol| json!({"symbol": symbol, "why": "recorded"}))
        .collect();
    exchange("scout", "scout", 0, "wake", &json!({ "symbols": symbols }))
}

fn proposes(symbol: &str, ordinal: usize, source: &str) -> String {
    let proposal = json!({"reason": "recorded", "source": source});
    let conversation = format!("agent {symbol}");
    exchange(&conversation, "agent", ordinal, "propose", &proposal)
}

const TEST: &str = "test_work.py::T.test_f";

#[test]
fn test_that_passes_only_after_being_changed_does_not_prove_the_change() {
    let red = "def f():\n    return 2\n";
    let other = "    def test_f(self):\n        self.assertTrue(True)\n";
    let accept = json!({"verdict": "accept", "conditions": "", "objections": ""});
    let accepts = exchange(&format!("proxy {TEST}"), "proxy", 0, "decide", &accept);
    let rewrites = [picks(&[TEST]), proposes(TEST, 0, other), accepts];
    for (approve, status) in [("auto", 1), ("proxy", 3)] {
        let bed = TestProject::new();
        bed.write("project/work.py", red);
        let before = std::fs::read_to_string(bed.root().join("test_work.py")).unwrap();
        let args = ["--approve", approve, "Make the tests pass"];
        let (code, headline, work, test) = ends(&bed, &rewrites, &args);
        assert_eq!((code, work.as_str()), (Some(status), red), "{headline}");
        assert_eq!(test == before, approve == "auto", "{headline}");
        if approve == "proxy" {
            let expected = "Done, but 1 test passes only as it was changed: test_work.T.test_f";
            assert_eq!(headline, expected);
        }
    }
    // One agent weakens the test, another breaks the code.
    let bed = TestProject::new();
    let breaks = [
        picks(&[TEST, "work.py::f"]),
        proposes(TEST, 0, other),
        proposes("work.py::f", 0, red),
        proposes("work.py::f", 1, red),
    ];
    let args = ["--approve", "auto", "Make f faster"];
    let (_, headline, work, _) = ends(&bed, &breaks, &args);
    assert_eq!(work, OLD, "{headline}");
}

#[test]
fn test_script_changed_by_the_run_is_also_run_in_its_original_version() {
    let script = "import sys\nsys.path.insert(0, '.')\nimport work\n\n\ndef main():\n    assert work.f() == 1\n\n\nmain()\n";
    let bed = TestProject::new();
    bed.write("project/work.py", "def f():\n    return 2\n");
    let path = bed.write("project/smoke/run.py", script);
    let symbol = "smoke/run.py::main";
    let guts = "def main():\n    pass\n";
    let guts = [picks(&[symbol]), proposes(symbol, 0, guts)];
    let task = "Fix f so that the command passes";
    let args = ["--approve", "auto", "--test", "python3 smoke/run.py", task];
    let (code, headline, _, _) = ends(&bed, &guts, &args);
    assert_eq!(std::fs::read_to_string(path).unwrap(), script, "{headline}");
    assert_eq!(code, Some(1), "{headline}");
}

#[test]
fn printed_results_and_commands_without_results_do_not_prove_the_change() {
    let lie = "test_f (test_work.T.test_f) ... ok";
    let ends_itself =
        format!("def f():\n    import os\n    print('{lie}', flush=True)\n    os._exit(0)\n");
    let lies = |source: &str| {
        [
            picks(&["work.py::f"]),
            proposes("work.py::f", 0, source),
            proposes("work.py::f", 1, source),
        ]
    };
    let auto = ["--approve", "auto", "refactor f"];
    let bed = TestProject::new();
    let (code, headline, work, _) = ends(&bed, &lies(&ends_itself), &auto);
    assert_eq!((code, work.as_str()), (Some(1), OLD), "{headline}");
    for (command, expected) in [
        (
            "true",
            "Done, untested: the test command ran no test that Starling can see (its exit status was 0)"
                .to_owned(),
        ),
        (
            "cat results.txt",
            "Done, but 1 test passes only by what `cat results.txt` printed".to_owned(),
        ),
    ] {
        let bed = TestProject::new();
        bed.write("project/results.txt", &format!("{lie}\n"));
        let args = [&["--test", command][..], &auto].concat();
        let (code, headline, work, _) = ends(&bed, &lies(NEW), &args);
        assert_eq!((code, work.as_str()), (Some(3), NEW), "{headline}");
        assert_eq!(headline, expected);
    }
    // A command of the user that fails before and passes after the change is evidence.
    let bed = TestProject::new();
    let args = [&["--test", "grep -q '2 - 1' work.py"][..], &auto].concat();
    let (code, headline, work, _) = ends(&bed, &lies(NEW), &args);
    assert_eq!((code, work.as_str()), (Some(0), NEW), "{headline}");
    let expected = "Done and proven: `grep -q '2 - 1' work.py` failed before and passes now";
    assert_eq!(headline, expected);
}

#[test]
fn run_help_lists_the_exit_statuses() {
    let help = TestProject::new().say(&["run", "--help"]);
    assert_eq!(help.code, Some(0), "{help:?}");
    for line in ["Exit status:", "  1  not done", "  3  changes were made"] {
        assert!(help.out.contains(line), "{help:?}");
    }
}

#[test]
fn task_can_be_read_from_stdin() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--json", "--approve", "auto", "--model", &tape, "-"]);
    let mut talk = RunningProgram::begin(command);
    talk.answer("tidy f up,\nbut not slower");
    drop(talk.child.stdin.take());
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let task = &said.events()[0]["event"]["task"];
    let task = task.as_str().unwrap().trim_end();
    assert_eq!(task, "tidy f up,\nbut not slower");
}

#[test]
fn review_without_a_terminal_is_refused_before_the_run() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "--approve", "ask", "tidy f up"]);
    command.stdin(std::process::Stdio::null());
    let out = command.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{err}");
    let told = "there is no terminal to ask you on: use --approve auto or --approve proxy";
    assert!(
        err.contains(told) && !err.contains("read from stdin"),
        "{err}"
    );
}

#[test]
fn run_is_stopped_if_its_question_cannot_be_answered() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    drop(talk.child.stdin.take());
    let said = talk.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("your answers cannot be"), "{said:?}");
    assert!(
        said.out.contains("\nStopped by you; nothing was changed\n"),
        "{said:?}"
    );
    assert_eq!(bed.work(), OLD, "nothing is applied without leave");
}

#[test]
fn answers_are_read_as_lines() {
    let bed = TestProject::new();
    let tape = bed.tape(&["def f():\n    return 3 - 2\n", NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    talk.hear("[a]ccept");
    talk.answer("what?");
    talk.hear("[a]ccept");
    talk.answer("r too clever");
    talk.hear("rejected by you: too clever");
    talk.hear("[a]ccept");
    assert_eq!(bed.work(), OLD, "before the answer");
    talk.answer("a");
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("REPLAY"), "{said:?}");
    assert!(
        said.out.contains("+    return 2 - 1\n"),
        "the diff: {said:?}"
    );
    assert!(
        !said.out.contains('\u{1b}'),
        "no colours in a pipe: {said:?}"
    );
    assert!(
        said.out.contains("\nDone: 1 test passes as before\n"),
        "{said:?}"
    );
    assert_eq!(bed.work(), NEW);
}

#[test]
fn run_in_a_subdirectory_covers_the_whole_project() {
    let bed = TestProject::new();
    bed.write("project/pyproject.toml", "[project]\nname = \"work\"\n");
    let file = bed.write("project/sub/notes.py", "def g():\n    return 1\n\n\ng()\n");
    let tape = bed.tape(&[NEW]);
    let there = |args: &[&str]| {
        let mut command = bed.starling();
        command.current_dir(file.parent().unwrap()).args(args);
        CommandResult::of(&command.output().unwrap())
    };
    let run = ["run", "--approve", "auto", "--model", &tape, "tidy f up"];
    let said = there(&run);
    let root = bed.root().canonicalize().unwrap();
    let first = format!("project: {} (pyproject.toml)\n", root.display());
    assert!(said.out.starts_with(&first), "{said:?}");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), NEW);

    // A file can be named relative to the current directory or to the project.
    for named in ["notes.py::g", "sub/notes.py::g"] {
        let said = there(&["references", "--json", named]);
        let found: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(found["references"][0]["path"], "sub/notes.py", "{said:?}");
    }
    let said = there(&[
        "run",
        "--repo",
        ".",
        "--approve",
        "auto",
        "--model",
        &tape,
        "x",
    ]);
    let given = root.join("sub");
    let first = format!("project: {} (--repo)\n", given.display());
    assert!(said.out.starts_with(&first), "{said:?}");
}

#[test]
fn answers_piped_ahead_of_their_questions_are_kept() {
    let bed = TestProject::new();
    let tape = bed.tape(&["def f():\n    return 3 - 2\n", NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    talk.write("r too clever\ny\n");
    drop(talk.child.stdin.take());
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("rejected by you: too clever"), "{said:?}");
    assert_eq!(bed.work(), NEW);
}

#[test]
fn answers_are_read_as_lines_with_json_output() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--json", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    talk.hear("\"event\":\"review_asked\"");
    talk.answer("q");
    let said = talk.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let events = said.events();
    let last = &events[events.len() - 1]["event"];
    assert_eq!(last["stop_reason"]["reason"], "cancelled");
    assert_eq!(bed.work(), OLD);
}

#[test]
fn unusable_model_is_a_usage_error() {
    let bed = TestProject::new();
    let with = |args: &[&str]| {
        let run = ["run", "--json", "--approve", "auto", "x", "--model"];
        bed.say(&[&run, args].concat())
    };
    with(&["huge"]).is_wrong_use("no model is called \"huge\"");
    with(&["replay:/no/such.jsonl"]).is_wrong_use("/no/such.jsonl");
    let empty = bed.write("empty.jsonl", "");
    with(&[&format!("replay:{}", empty.display())]).is_wrong_use("holds no exchange");
    with(&["openai:gpt-4o"]).is_wrong_use("OPENAI_API_KEY");
    let own = ["-c", "models.own.base_url=http://127.0.0.1:1/v1"];
    let budget = ["own", own[0], own[1], "--budget-usd", "1"];
    with(&budget).is_wrong_use("the price of own is unknown");
    bed.say(&["demo", "--model", "huge"])
        .is_wrong_use("no model is called \"huge\"");
    assert!(!bed.dir.path().join("cache/runs").exists());
}

#[test]
fn test_command_that_cannot_run_ends_the_run_before_any_model_call() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    for (command, because) in [
        ("no-such-tool -q", "`no-such-tool -q` (exit status 127)"),
        ("python3 -m unittest --nope", "(exit status 2)"),
        ("python3 -m unittest test_wrk", "No module named 'test_wrk'"),
        ("python3 -m unitest", "No module named unitest"),
    ] {
        let args = ["run", "--json", "--approve", "auto", "--model", &tape, "x"];
        let said = bed.say(&[&args[..], &["--test", command]].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        let events = said.events();
        let last = &events[events.len() - 1]["event"];
        let error = last["stop_reason"]["error"].as_str().unwrap();
        assert!(error.contains(because), "{error}");
        assert!(error.contains("--test"), "{error}");
        assert_eq!(last["spent"]["calls"], 0, "{command}");
    }
    // A test command that fails may be the problem that the user wants to fix.
    let args = ["run", "--approve", "auto", "--model", &tape, "x"];
    let said = bed.say(&[&args[..], &["--test", "exit 1"]].concat());
    assert_eq!(bed.work(), NEW, "{said:?}");
}

#[test]
fn run_in_an_empty_directory_makes_no_model_call() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let empty = bed.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let repo = empty.to_str().unwrap();
    let args = ["run", "--json", "--approve", "auto", "--model", &tape, "x"];
    let said = bed.say(&[&args[..], &["--repo", repo]].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    let events = said.events();
    let last = &events[events.len() - 1]["event"];
    let error = last["stop_reason"]["error"].as_str().unwrap();
    assert!(error.contains("contains no files"), "{error}");
    assert_eq!(last["spent"]["calls"], 0);
}

#[test]
fn language_server_fails_if_the_client_exits_without_shutdown() {
    let bed = TestProject::new();
    let said = bed.say(&["lsp"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    let frame = |message: Value| {
        let text = message.to_string();
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    };
    let mut command = bed.starling();
    command.arg("lsp");
    let mut talk = RunningProgram::begin(command);
    let hello = json!({"capabilities": {}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    talk.write(&frame(hello));
    let answer = talk.message();
    assert_eq!(answer["result"]["serverInfo"]["name"], "starling");
    // The last messages arrive in one write, and standard input stays open.
    let farewell = [
        json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}),
        json!({"jsonrpc": "2.0", "method": "exit"}),
    ];
    talk.write(&farewell.map(frame).concat());
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn demo_replays_in_a_temporary_directory() {
    let bed = TestProject::new();
    let demo = |args: &[&str]| {
        let mut command = bed.starling();
        command
            .args(["demo", "--replay"])
            .args(args)
            .env("TMPDIR", bed.dir.path());
        let said = CommandResult::of(&command.output().unwrap());
        let place = said
            .err
            .lines()
            .find_map(|line| line.strip_prefix("the project is in "));
        let place = PathBuf::from(place.unwrap());
        let home = bed.dir.path().canonicalize().unwrap();
        assert!(place.starts_with(home), "{place:?}");
        (said, place)
    };
    let (said, place) = demo(&["--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!place.parent().unwrap().exists(), "nothing stays behind");
    let (said, place) = demo(&["--keep"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("the project was kept in "), "{said:?}");
    assert!(said.out.contains("undo  starling undo --repo "), "{said:?}");
    assert!(place.join("parcels/quote.py").is_file());
    // A demo that changed files but did not finish keeps its project for inspection.
    let (said, place) = demo(&["-c", "limits.calls=6"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let changed = said.out.contains("applied");
    assert_eq!(place.exists(), changed, "{said:?}");
    assert_eq!(
        said.err.contains("the project was kept in "),
        changed,
        "{said:?}"
    );
    assert_eq!(
        bed.work(),
        OLD,
        "the project that one stands in is left alone"
    );
}

#[test]
fn run_with_approval_ask_and_no_stdin_is_rejected_before_any_model_call() {
    let bed = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_starling"))
        .args([
            "run",
            "--approve",
            "ask",
            "--model",
            "openai:nobody",
            "--repo",
        ])
        .arg(bed.path())
        .arg("do it")
        .env("STARLING_CACHE_DIR", bed.path().join("cache"))
        .env("XDG_CONFIG_HOME", bed.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--approve auto"),
        "{output:?}"
    );
}

#[test]
fn file_created_by_a_run_is_deleted_on_undo() {
    let bed = TestProject::new();
    let picked = json!({"symbols": [{"symbol": "work.py::f", "why": "recorded"}]});
    let source = "def g():\n    return 1\n";
    let made = json!({"reason": "r", "symbol": "pkg/help.py", "source": source});
    let lines = [
        exchange("scout", "scout", 0, "wake", &picked),
        exchange("agent work.py::f", "agent", 0, "propose", &made),
    ];
    let tape = bed.write("made.jsonl", &lines.join("\n"));
    let model = format!("replay:{}", tape.display());
    let said = bed.say(&[
        "run",
        "--json",
        "--approve",
        "auto",
        "--model",
        &model,
        "help f",
    ]);
    // No test reaches the function of the new file.
    assert_eq!(said.code, Some(3), "{said:?}");
    let path = bed.root().join("pkg/help.py");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), source);
    let events = said.events();
    let diff = events[events.len() - 1]["event"]["diff"].as_str().unwrap();
    assert!(
        diff.starts_with("--- /dev/null\n+++ b/pkg/help.py\n"),
        "{diff}"
    );
    let run = events[0]["run"].as_str().unwrap();
    let patch = bed.dir.path().join(format!("cache/runs/{run}.patch"));
    let undone = Command::new("git")
        .args(["apply", "-R"])
        .arg(&patch)
        .current_dir(bed.root())
        .status()
        .unwrap();
    assert!(undone.success());
    assert!(!path.exists());
}

#[test]
fn untrusted_project_gives_a_warning_but_no_question_without_a_terminal() {
    let bed = TestProject::new();
    bed.write(
        "project/.starling/config.toml",
        "[tests]\ncommand = \"exit 7\"\n",
    );
    let tape = bed.tape(&[NEW]);
    let args = ["run", "--approve", "auto", "--model", &tape, "tidy f up"];
    let said = bed.say(&args);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("starling trust"), "{said:?}");
    assert!(!said.err.contains("Trust this project?"), "{said:?}");
    assert!(!bed.dir.path().join("state").exists());
    // In a trusted project, the configured command runs the tests.
    assert_eq!(bed.say(&["trust"]).code, Some(0));
    std::fs::write(bed.root().join("work.py"), OLD).unwrap();
    let said = bed.say(&args);
    assert!(said.out.contains("exit 7"), "{said:?}");
}

#[test]
fn file_with_a_declared_encoding_is_read_and_changed() {
    let bed = TestProject::new();
    let old =
        b"# -*- coding: latin-1 -*-\r\nNAME = 'Ren\xe9'\r\n\r\ndef f():\r\n\treturn 2  # \xe9\r\n";
    std::fs::write(bed.root().join("work.py"), old).unwrap();
    std::fs::write(bed.root().join("wide.py"), b"\xff\xfed\0e\0f\0").unwrap();
    let symbols = bed.say(&["symbols", "f"]);
    assert!(symbols.out.contains("work.py:4"), "{symbols:?}");
    assert!(
        symbols
            .err
            .contains("1 file is not in the index: wide.py: UTF-16 text"),
        "{symbols:?}"
    );
    let index = bed.say(&["index", "--skipped"]);
    assert!(index.out.contains("1 file is not indexed"), "{index:?}");
    assert!(
        index.out.contains("\nwide.py: UTF-16 text; convert it"),
        "{index:?}"
    );

    let tape = bed.tape(&[
        "def f():\n\treturn len('\u{20ac}')  # \u{e9}\n",
        "def f():\n\treturn len('\u{e8}')  # \u{e9}\n",
    ]);
    let run = bed.say(&[
        "run",
        "--approve",
        "auto",
        "--model",
        &tape,
        "make test_f pass",
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.out
            .contains("does not have the character '€' in line 5"),
        "{run:?}"
    );
    let new =
        b"# -*- coding: latin-1 -*-\r\nNAME = 'Ren\xe9'\r\n\r\ndef f():\r\n\treturn len('\xe8')  # \xe9\r\n";
    let written = std::fs::read(bed.root().join("work.py")).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&written),
        String::from_utf8_lossy(new)
    );
    assert_eq!(written, new);
}

#[test]
fn line_endings_tabs_and_byte_order_marks_are_kept() {
    for (mark, end) in [("\u{feff}", "\r\n"), ("", "\r\n"), ("\u{feff}", "\n")] {
        let bed = TestProject::new();
        let text = |value: u8| {
            let lines = [
                "x = '\t'  # \r",
                "def f():",
                &format!("\treturn {value}"),
                "",
                "y = 2 ",
            ];
            format!("{mark}{}", lines.join(end))
        };
        std::fs::write(bed.root().join("work.py"), text(2)).unwrap();
        let tape = bed.tape(&["def f():\n\treturn 1\n"]);
        let run = bed.say(&[
            "run",
            "--approve",
            "auto",
            "--model",
            &tape,
            "make test_f pass",
        ]);
        assert_eq!(run.code, Some(0), "{mark:?} {end:?} {run:?}");
        assert_eq!(bed.work(), text(1), "{mark:?} {end:?}");
    }
}

#[test]
#[cfg(not(feature = "bench"))]
fn build_without_bench_feature_reports_it() {
    let bed = TestProject::new();
    let help = bed.say(&["--help"]);
    assert!(help.out.contains("Not in this build: "), "{help:?}");
    assert!(
        help.out.contains("starling swebench (feature bench)"),
        "{help:?}"
    );
    for args in [&["swebench"][..], &["swebench", "run", "--dataset", "x"]] {
        bed.say(args)
            .is_wrong_use("build it with `cargo build --release --features bench`");
    }
}

#[test]
#[cfg(feature = "bench")]
fn build_with_bench_feature_lists_swebench() {
    let help = TestProject::new().say(&["--help"]);
    assert!(help.out.contains("\n  swebench "), "{help:?}");
    assert!(!help.out.contains("feature bench"), "{help:?}");
}

//! A shape as a project in a temporary directory.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::shape::{ProjectShape, Proposed};

/// A temporary project with the layout of a shape.
pub struct Project {
    dir: tempfile::TempDir,
    root: PathBuf,
    /// The directory in which the program is started, inside the root.
    current: PathBuf,
    environment: Vec<(String, String)>,
}

/// The output of a command and its exit status.
pub struct Output {
    pub code: Option<i32>,
    pub out: String,
    err: String,
}

/// Leaves out the outputs of tests, which are long.
impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "exit status {:?}", self.code)?;
        for line in self.out.lines().chain(self.err.lines()) {
            let short: String = line.chars().take(300).collect();
            match serde_json::from_str::<Value>(line) {
                Ok(line) => match line["event"]["event"].as_str() {
                    Some("proposal_refused") => writeln!(f, "refused: {}", line["event"]["why"])?,
                    Some("run_finished") => writeln!(f, "end: {}", line["event"]["ending"])?,
                    Some(_) => {}
                    None => writeln!(f, "{short}")?,
                },
                Err(_) => writeln!(f, "{short}")?,
            }
        }
        Ok(())
    }
}

impl Project {
    pub fn of(shape: &ProjectShape) -> Project {
        let dir = tempfile::tempdir().unwrap();
        let root = dir
            .path()
            .join(shape.setting("directory").unwrap_or("project"));
        std::fs::create_dir_all(&root).unwrap();
        for (path, text) in &shape.files {
            write(&root.join(path), text.as_bytes());
        }
        let current = root.clone();
        let environment = shape.settings("environment").map(|line| {
            let line = line.replace("{root}", root.to_str().unwrap());
            let (name, value) = line.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        let environment = environment.collect();
        let mut project = Project {
            dir,
            root,
            current,
            environment,
        };
        for step in shape.settings("setup") {
            project.set_up(step);
        }
        project
    }

    /// Performs a step of the setup: a word followed by its argument.
    fn set_up(&mut self, step: &str) {
        let (word, about) = step.split_once(' ').unwrap_or((step, ""));
        let path = self.root.join(about);
        match word {
            "git" => self.commit_all(),
            // The program is started in a directory of the project.
            "current" => self.current = path,
            // The project is a linked worktree, or a submodule, of another repository.
            "worktree" => self.become_worktree(),
            "submodule" => self.become_submodule(),
            // A virtual environment with access to the packages of the machine's Python.
            "venv" => make_environment(&path),
            // An environment with the packages that the tests of the frameworks need.
            "packages" => symlink(packages(), path).unwrap(),
            "link" => {
                let (from, to) = about.split_once(" -> ").unwrap();
                symlink(to, self.root.join(from)).unwrap();
            }
            // The package in `src` is installed in `.venv` in editable mode.
            "editable" => {
                make_environment(&self.root.join(".venv"));
                let found = std::fs::read_dir(self.root.join(".venv/lib")).unwrap();
                let python = found.map(|entry| entry.unwrap().path()).next().unwrap();
                let source = self.root.join("src");
                let line = format!("{}\n", source.display());
                write(
                    &python.join("site-packages/__editable__.pth"),
                    line.as_bytes(),
                );
            }
            "crlf_in_part" => recode(&path, |text| text.replacen('\n', "\r\n", 2).into_bytes()),
            "crlf" => recode(&path, |text| text.replace('\n', "\r\n").into_bytes()),
            "bom" => recode(&path, |text| format!("\u{feff}{text}").into_bytes()),
            "latin-1" => recode(&path, |text| {
                text.chars()
                    .map(|letter| u8::try_from(u32::from(letter)).unwrap())
                    .collect()
            }),
            // Adds functions, so that the file has about 3,000 lines.
            "long" => recode(&path, |text| {
                let more = (0..1000).map(|n| format!("\n\ndef filler_{n}():\n    return {n}\n"));
                format!("{text}{}", more.collect::<String>()).into_bytes()
            }),
            _ => panic!("no such step: {step}"),
        }
    }

    fn commit_all(&self) {
        git(&self.root, &["init", "-q"]);
        git(&self.root, &["add", "-A"]);
        git(&self.root, &["commit", "-q", "-m", "All"]);
    }

    fn become_worktree(&mut self) {
        self.commit_all();
        git(&self.root, &["worktree", "add", "-q", "../linked"]);
        self.move_to("linked");
    }

    fn become_submodule(&mut self) {
        self.commit_all();
        let outer = self.dir.path().join("outer");
        std::fs::create_dir(&outer).unwrap();
        git(&outer, &["init", "-q"]);
        let source = self.root.to_str().unwrap();
        let add = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "add",
            "-q",
            source,
            "inner",
        ];
        git(&outer, &add);
        git(&outer, &["commit", "-q", "-m", "All"]);
        self.move_to("outer/inner");
    }

    fn move_to(&mut self, path: &str) {
        self.root = self.dir.path().join(path);
        self.current = self.root.clone();
    }

    /// Runs the program in the project, with its own home directory.
    pub fn starling(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("STARLING_") || name == "VIRTUAL_ENV" || name == "CONDA_PREFIX" {
                command.env_remove(&*name);
            }
        }
        let output = command
            .args(args)
            .current_dir(&self.current)
            .env("STARLING_CACHE_DIR", self.dir.path().join("cache"))
            .env("XDG_CONFIG_HOME", self.dir.path().join("config"))
            .env("XDG_STATE_HOME", self.dir.path().join("state"))
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Output {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Writes a recording in which the owner of a symbol proposes these texts in order, and returns
    /// its model name.
    pub fn recording(&self, proposals: &[&Proposed]) -> String {
        let mut lines = Vec::new();
        if let Some(first) = proposals.first() {
            let picked = json!({"symbols": [{"symbol": first.symbol, "why": "recorded"}]});
            lines.push(exchange("scout", "scout", 0, "wake", &picked));
        }
        for (ordinal, proposed) in proposals.iter().enumerate() {
            let given = json!({"reason": "recorded", "source": proposed.source});
            let conversation = format!("agent {}", proposed.symbol);
            lines.push(exchange(&conversation, "agent", ordinal, "propose", &given));
        }
        let path = self.dir.path().join("recording.jsonl");
        write(&path, lines.join("\n").as_bytes());
        format!("replay:{}", path.display())
    }

    /// Returns the project's files, without those of git and of virtual environments.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut directories = vec![self.root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.symlink_metadata().unwrap().file_type();
                let skipped = path.ends_with(".git") || path.join("pyvenv.cfg").exists();
                if kind.is_dir() && !skipped {
                    directories.push(path);
                } else if kind.is_file() && !skipped {
                    let name = path.strip_prefix(&self.root).unwrap();
                    files.insert(
                        name.to_str().unwrap().to_owned(),
                        std::fs::read(&path).unwrap(),
                    );
                }
            }
        }
        files
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

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn recode(path: &Path, encode: impl Fn(&str) -> Vec<u8>) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, encode(&text)).unwrap();
}

fn git(directory: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=Zoo", "-c", "user.email=zoo@example.com"])
        .args(args)
        .current_dir(directory)
        .status()
        .unwrap();
    assert!(status.success(), "git {args:?}");
}

fn make_environment(path: &Path) {
    let status = Command::new("python3")
        .args(["-m", "venv", "--without-pip", "--system-site-packages"])
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success(), "python3 -m venv {}", path.display());
}

/// Returns the environment that `tests/run` creates for the frameworks of the zoo.
fn packages() -> PathBuf {
    let made = std::env::var_os("STARLING_TEST_PACKAGES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-packages"),
        PathBuf::from,
    );
    assert!(
        made.join("pyvenv.cfg").exists(),
        "{} is missing: run tests/run, which makes it",
        made.display()
    );
    made
}

//! Tests that are a function of the texts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::evidence::ids::WHOLE_RUN;
use starling_core::*;
use starling_syntax::FilePath;

/// Test id by which a [`Judge`] reports a test command that does not start.
pub const NO_START: &str = "no start";
/// Message by which a [`Judge`] reports that a test does not run.
pub const GONE: &str = "(gone)";
/// Message by which a [`Judge`] reports a skipped test.
pub const SKIPPED: &str = "(skipped)";
/// Message by which a [`Judge`] reports a passing test.
pub const PASSES: &str = "(passes)";

/// Returns the contents of a file as the fake tests read them. Bytes that are not UTF-8 are shown as
/// numbers.
fn as_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("{bytes:x?}"),
    }
}

/// Returns the failing test ids with their messages, given the text of all files.
///
/// [`WHOLE_RUN`] stands for a command that fails without naming a test, and [`NO_START`] for a
/// command that does not start. With [`GONE`], [`SKIPPED`] or [`PASSES`] as its message, a test
/// does not run, is skipped or passes.
pub type Judge = Box<dyn Fn(&str) -> Vec<(String, String)> + Send + Sync>;

/// If a Python file contains this text, the fake compiler reports that the file cannot be compiled.
pub const UNCOMPILED: &str = "# cannot be compiled";
/// If a file contains this text, the fake compiler reports that there is no Python.
pub const NO_PYTHON: &str = "# no Python";

/// A test runner that computes its results from the texts of the files with a [`Judge`].
pub struct FakeTests {
    pub(super) root: std::path::PathBuf,
    pub(super) judge: Option<Judge>,
    pub(super) command: String,
    pub(super) chosen: CommandOrigin,
    pub(super) selects: bool,
    pub(super) unknown: Option<String>,
    /// Tests that have failed in any run. Later reports list them as passed unless they fail again.
    pub(super) known: Mutex<BTreeSet<String>>,
    pub(super) lists: bool,
    pub(super) times: Arc<Mutex<VecDeque<Duration>>>,
    pub(super) asked: Arc<Mutex<Vec<Vec<String>>>>,
    pub(super) tries: Option<Tries>,
    pub(super) recording: Option<Recording>,
}

/// Returns what tests execute, given the selected tests and the failing tests.
pub type Recording = Box<dyn Fn(&[String], &BTreeSet<String>) -> Executions + Send + Sync>;

/// Returns the output of code that is tried and its exit status, given the text of all files.
pub type Tries = Box<dyn Fn(&str, &TryCode) -> (String, i32) + Send + Sync>;

impl FakeTests {
    /// Returns the texts of all files in the shadow, by their paths.
    fn texts(&self, overlay: Vec<(FilePath, Option<Arc<[u8]>>)>) -> BTreeMap<String, String> {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut waiting = vec![self.root.clone()];
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let name = path.strip_prefix(&self.root).unwrap().to_str().unwrap();
                let bytes = std::fs::read(&path).unwrap();
                texts.insert(name.to_owned(), as_text(&bytes));
            }
        }
        for (file, text) in overlay {
            let file = file.as_str().to_owned();
            match text.as_deref() {
                Some(bytes) => texts.insert(file, as_text(bytes)),
                None => texts.remove(&file),
            };
        }
        texts
    }
}

#[async_trait]
impl TestRunner for FakeTests {
    fn command(&self) -> Option<String> {
        self.judge.as_ref().map(|_| self.command.clone())
    }

    fn missing(&self) -> Option<&str> {
        match self.judge {
            Some(_) => None,
            None => self.unknown.as_deref(),
        }
    }

    fn chosen(&self) -> CommandOrigin {
        self.chosen
    }

    fn has_installed(&self, module: &str) -> bool {
        module == "iniconfig"
    }

    fn selects(&self) -> bool {
        self.selects
    }

    async fn try_code(&self, request: TryRequest) -> TryReport {
        let Some(tries) = &self.tries else {
            return TryReport::not_run("nothing can be tried in this test".to_owned());
        };
        let texts = self.texts(request.overlay);
        let all: String = texts.values().map(String::as_str).collect();
        let (output, exit) = tries(&all, &request.code);
        let frames = starling_index::frames(&output).into_iter();
        let frames = frames.filter(|frame| texts.contains_key(frame.path));
        let frames = frames
            .map(|frame| (FilePath::new(frame.path), frame.line))
            .collect();
        TryReport {
            outcome: match exit {
                0 => TestOutcome::Passed,
                _ => TestOutcome::Failed,
            },
            exit: Some(exit),
            output,
            frames,
            millis: 100,
        }
    }

    async fn record(&self, request: TestRequest, failing: &BTreeSet<String>) -> Executions {
        let recording = self.recording.as_ref();
        recording.map_or_else(Executions::default, |record| {
            record(&request.select, failing)
        })
    }

    async fn run(&self, request: TestRequest) -> TestReport {
        let command = match self.selects {
            true => {
                let ids = request.select.iter().map(|one| one.replace(".py::", "."));
                let words = std::iter::once(self.command.clone()).chain(ids);
                words.collect::<Vec<_>>().join(" ")
            }
            false => self.command.clone(),
        };
        self.asked.lock().unwrap().push(request.select.clone());
        let time = self.times.lock().unwrap().pop_front().unwrap_or_default();
        tokio::time::sleep(time.min(request.deadline)).await;
        let millis = u64::try_from(time.min(request.deadline).as_millis()).unwrap();
        let says_nothing = |outcome| TestReport {
            outcome,
            exit: None,
            command: command.clone(),
            cases: Vec::new(),
            source: Default::default(),
            output: String::new(),
            millis,
        };
        if time > request.deadline {
            return says_nothing(TestOutcome::TimedOut);
        }
        if self
            .unknown
            .as_ref()
            .is_some_and(|name| request.select.contains(name))
        {
            return says_nothing(TestOutcome::NotRun);
        }
        let texts = self.texts(request.overlay);
        let all: String = texts.values().map(String::as_str).collect();
        let failing = self
            .judge
            .as_ref()
            .map(|judge| judge(&all))
            .unwrap_or_default();
        let said = |what: &str| failing.iter().find(|(id, _)| id == what);
        let without_cases = said(WHOLE_RUN)
            .map(|(_, output)| (TestOutcome::Failed, 1, output))
            .or(said(NO_START).map(|(_, output)| (TestOutcome::NotRun, 127, output)));
        if let Some((outcome, status, output)) = without_cases {
            return TestReport {
                outcome,
                exit: Some(status),
                command,
                cases: Vec::new(),
                source: Default::default(),
                output: output.clone(),
                millis,
            };
        }
        let (others, failing): (Vec<_>, Vec<_>) = failing
            .into_iter()
            .partition(|(_, message)| [GONE, SKIPPED, PASSES].contains(&message.as_str()));
        let outcome = if failing.is_empty() {
            TestOutcome::Passed
        } else {
            TestOutcome::Failed
        };
        let mut cases: Vec<TestCase> = failing
            .into_iter()
            .map(|(id, message)| TestCase {
                // The path or the name of a module stands for a test file that cannot be loaded.
                status: match id.ends_with(".py")
                    || !id.contains(['.', ':']) && message.contains("ImportError")
                {
                    true => TestStatus::Error,
                    false => TestStatus::Failed,
                },
                id,
                message,
            })
            .collect();
        let gone = |id: &str| (others.iter()).any(|(other, how)| other == id && how == GONE);
        let others = others.iter().filter(|(_, how)| how != GONE);
        cases.extend(others.map(|(id, how)| TestCase {
            id: id.clone(),
            status: match how.as_str() {
                SKIPPED => TestStatus::Skipped,
                _ => TestStatus::Passed,
            },
            message: String::new(),
        }));
        let mut known = self.known.lock().unwrap();
        known.extend(
            (cases.iter())
                .filter(|case| case.status == TestStatus::Failed)
                .map(|case| case.id.clone()),
        );
        let listed = match self.lists {
            true => tests_in(&texts),
            false => vec!["t1".to_owned(), "t2".to_owned()],
        };
        let selected = request.select.iter().cloned();
        for id in listed
            .into_iter()
            .chain(selected)
            .chain(known.iter().cloned())
        {
            if !gone(&id) && !cases.iter().any(|case| case.id == id) {
                cases.push(TestCase {
                    id,
                    status: TestStatus::Passed,
                    message: String::new(),
                });
            }
        }
        TestReport {
            outcome,
            exit: None,
            command,
            cases,
            source: Default::default(),
            output: String::new(),
            millis,
        }
    }

    async fn compile(&self, request: CompileRequest) -> Result<Vec<Problem>, String> {
        let mut found = Vec::new();
        for one in request.files {
            if one.after.contains(NO_PYTHON) {
                return Err("there is no Python".to_owned());
            }
            let had = one.before.is_some_and(|before| before.contains(UNCOMPILED));
            if one.after.contains(UNCOMPILED) && !had {
                found.push(Problem {
                    file: one.file,
                    line: 2,
                    severity: Severity::Error,
                    message: "Python 3.9 cannot compile this: invalid syntax".to_owned(),
                    source: "Python 3.9".to_owned(),
                    kind: ProblemKind::Syntax,
                    stops: true,
                    range: None,
                });
            }
        }
        Ok(found)
    }
}

/// Returns the ids of the tests in test files.
fn tests_in(texts: &BTreeMap<String, String>) -> Vec<String> {
    let files = texts.iter().filter(|(name, _)| name.starts_with("test_"));
    let tests = files.flat_map(|(name, text)| {
        let names = text.lines().filter_map(|line| line.strip_prefix("def "));
        let names = names.filter(|rest| rest.starts_with("test_"));
        names.map(move |rest| {
            let test = rest.split('(').next().unwrap_or(rest);
            format!("{name}::{test}")
        })
    });
    tests.collect()
}

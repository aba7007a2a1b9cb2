//! Test fixture for runs without a real model: files in a temporary directory, a scripted model, an
//! editor that writes to disk, and tests that are a function of the texts.

mod approver;
mod editor;
mod events;
mod fake_tests;
mod model;

pub use approver::*;
pub use editor::*;
pub use events::*;
pub use fake_tests::*;
pub use model::*;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::*;
use starling_core::*;
use starling_index::Index;
use starling_syntax::FilePath;
use starling_workspace::Workspace;

/// A language service without diagnostics.
struct NoLanguage;

#[async_trait]
impl LanguageService for NoLanguage {
    async fn diagnostics(&self, _: TextRequest) -> Diagnostics {
        Diagnostics::Unknown {
            reason: "none in this test".into(),
        }
    }
}

/// A test project for one run: files in a temporary directory, the task, the scripted model, and
/// fake services.
pub struct Bed {
    dir: tempfile::TempDir,
    pub task: Task,
    /// Globs of files that may be changed without a person.
    pub allow_write: Vec<String>,
    pub model: Arc<Scripted>,
    pub editors: Vec<Arc<dyn ChatModel>>,
    /// A model that is used instead of the scripted one.
    pub other_model: Option<Arc<dyn ChatModel>>,
    pub editor: Arc<DiskEditor>,
    pub approver: Arc<FakeApprover>,
    /// Durations of the next test runs.
    pub test_times: Arc<Mutex<VecDeque<Duration>>>,
    /// Whether the user configured the test command, or it was found in the project.
    pub chosen: CommandOrigin,
    /// Whether the test command can run selected tests.
    pub selects: bool,
    /// The test command as the run knows it. What it prints comes from the judge.
    pub command: String,
    /// The name of a test. If it is among the selected tests, the test command runs no test at all.
    pub unknown: Option<String>,
    /// Whether a report lists the functions of the test files whose names begin with `test_`.
    pub lists: bool,
    /// The selected tests of every test run.
    pub selected: Arc<Mutex<Vec<Vec<String>>>>,
    judge: Option<Judge>,
    tries: Option<Tries>,
    recording: Option<Recording>,
    pub language: Option<Arc<dyn LanguageService>>,
    pub others: Option<Arc<dyn OtherRuns>>,
    /// The index of the run that was started last.
    pub index: Option<Arc<Index>>,
}

impl Bed {
    pub fn new(files: &[(&str, &str)], model: Scripted) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let task = Task {
            text: "Make it right.".into(),
            refactoring: None,
            driver: Driver::Swarm,
            approval: Approval::Auto,
            ask_intent: AskIntent::Never,
            limits: Limits::default(),
            test_deadline: Duration::from_secs(60),
            begin: Vec::new(),
            require_tests: false,
            try_examples: true,
            patch: None,
            request: None,
        };
        let editor = DiskEditor {
            root: dir.path().to_owned(),
            writes: Mutex::default(),
            typing: Mutex::default(),
            refuses: Mutex::default(),
            refuses_all: Mutex::default(),
            typed_before_edits: Mutex::default(),
            delays: Mutex::default(),
            unsaved: Mutex::default(),
        };
        Bed {
            dir,
            task,
            allow_write: Vec::new(),
            model: Arc::new(model),
            editors: Vec::new(),
            other_model: None,
            editor: Arc::new(editor),
            approver: Arc::default(),
            test_times: Arc::default(),
            chosen: CommandOrigin::ByUser,
            selects: false,
            unknown: None,
            lists: false,
            selected: Arc::default(),
            judge: None,
            command: "fake tests".to_owned(),
            tries: None,
            recording: None,
            language: None,
            others: None,
            index: None,
        }
    }

    pub fn begin(mut self, symbols: &[&str]) -> Self {
        self.task.begin = symbols
            .iter()
            .map(|symbol| symbol.parse().unwrap())
            .collect();
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Task)) -> Self {
        change(&mut self.task);
        self
    }

    pub fn tests(
        mut self,
        judge: impl Fn(&str) -> Vec<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        self.judge = Some(Box::new(judge));
        self
    }

    /// Sets what code prints when it is tried, and its exit status.
    pub fn tries(
        mut self,
        tries: impl Fn(&str, &TryCode) -> (String, i32) + Send + Sync + 'static,
    ) -> Self {
        self.tries = Some(Box::new(tries));
        self
    }

    /// Sets what the selected tests, and those of them that fail, execute when that is recorded.
    pub fn recording(
        mut self,
        recording: impl Fn(&[String], &BTreeSet<String>) -> Executions + Send + Sync + 'static,
    ) -> Self {
        self.recording = Some(Box::new(recording));
        self
    }

    pub fn path(&self, file: &str) -> std::path::PathBuf {
        self.dir.path().join(file)
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(file)).unwrap()
    }

    pub fn start(&mut self) -> RunHandle {
        let root = self.dir.path().canonicalize().unwrap();
        let unsaved = self.editor.unsaved.lock().unwrap().clone().into_iter();
        let unsaved = unsaved.map(|(file, text)| (FilePath::new(file), Some(text.into())));
        let workspace = Workspace::open(root.clone()).unwrap();
        let workspace = workspace.allowing(&self.allow_write).unwrap();
        let snapshot = workspace.snapshot(unsaved.collect());
        let model: Arc<dyn ChatModel> = self
            .other_model
            .clone()
            .unwrap_or_else(|| self.model.clone());
        let index = Arc::new(Index::new(snapshot));
        self.index = Some(Arc::clone(&index));
        let outside = RunServices {
            models: RoleModels {
                scout: model.clone(),
                agent: model.clone(),
                editors: self.editors.clone(),
                proxy: model,
            },
            editor: self.editor.clone(),
            approver: self.approver.clone(),
            tests: self.fake_tests(root),
            language: self.language.take().unwrap_or(Arc::new(NoLanguage)),
            index,
            others: self.others.clone(),
        };
        start(RunId("test".into()), self.task.clone(), outside)
    }

    fn fake_tests(&mut self, root: std::path::PathBuf) -> Arc<FakeTests> {
        Arc::new(FakeTests {
            root,
            judge: self.judge.take(),
            command: self.command.clone(),
            chosen: self.chosen,
            selects: self.selects,
            unknown: self.unknown.clone(),
            known: Mutex::default(),
            lists: self.lists,
            times: Arc::clone(&self.test_times),
            asked: Arc::clone(&self.selected),
            tries: self.tries.take(),
            recording: self.recording.take(),
        })
    }

    /// Creates the checks of proposals over these files and tests, without a run.
    pub fn checker(&mut self) -> Checker {
        let root = self.dir.path().canonicalize().unwrap();
        let workspace = Workspace::open(root.clone()).unwrap();
        let index = Arc::new(Index::new(workspace.snapshot(Default::default())));
        let tests = self.fake_tests(root);
        Checker::standalone(index, tests, Arc::new(NoLanguage), self.task.test_deadline)
    }

    /// Runs the task to its end and returns all events of the run.
    pub async fn run(&mut self) -> Vec<Event> {
        let handle = self.start();
        handle.finished().await;
        handle.log.events()
    }
}

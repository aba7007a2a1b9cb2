//! One instance: its tree, its checks, and the hidden tests that decide whether a variant is really
//! broken.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use starling_bench::Environment;
use starling_core::{
    CommandOrigin, ProblemKind, TestCase, TestOutcome, TestReport, TestRequest, TestRunner,
    TestStatus,
};
use starling_index::Index;
use starling_lang::{LanguageServers, OwnPrograms, ProgramSearch, ServerPool, ServerSelection};
use starling_runner::{ProjectTests, TestSettings};
use starling_sandbox::Shadows;
use starling_swarm::Checker;
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Snapshot, Workspace};

const DEADLINE: Duration = Duration::from_secs(120);
/// Time limit of the hidden tests.
const LONG: Duration = Duration::from_secs(600);

/// Settings and services that all instances share.
pub struct SharedSettings {
    pub server: String,
    pub cache: PathBuf,
    pub shadows: Shadows,
}

/// An instance's tree with its checks and, if tests are run, its Python environment.
pub struct Project<'s> {
    shared: &'s SharedSettings,
    root: PathBuf,
    environment: Option<(&'s Environment, PathBuf)>,
    pub checker: Checker,
}

impl<'s> Project<'s> {
    pub async fn open(
        shared: &'s SharedSettings,
        root: &Path,
        environment: Option<&'s Environment>,
    ) -> Project<'s> {
        let root = root.canonicalize().expect("the checkout exists");
        let environment = match environment {
            Some(one) => {
                let python = one
                    .built(&shared.cache)
                    .await
                    .expect("the Python environment can be built");
                Some((one, python))
            }
            None => None,
        };
        let snapshot = Workspace::open(root.clone())
            .expect("the directory can be opened")
            .snapshot(Overlay::new());
        let tests: Arc<dyn TestRunner> = match &environment {
            Some((_, python)) => {
                let settings = TestSettings {
                    python: Some(python.join("bin/python")),
                    ..TestSettings::default()
                };
                let tests = ProjectTests::detect(&snapshot, shared.shadows.clone(), settings);
                Arc::new(tests.await)
            }
            None => Arc::new(NoTests),
        };
        let language = Arc::new(service(shared, &snapshot));
        let index = Arc::new(Index::open(snapshot, shared.cache.join("index")));
        Project {
            checker: Checker::standalone(index, tests, language, DEADLINE),
            shared,
            root,
            environment,
        }
    }

    /// Returns whether hidden tests that pass with the good texts fail with the broken ones.
    pub async fn is_broken(&self, good: &Overlay, broken: &Overlay) -> bool {
        let Some((environment, _)) = &self.environment else {
            return false;
        };
        let mended = self.hidden(&environment.test_cmd_f2p, broken).await;
        if mended.outcome != TestOutcome::Passed {
            return true;
        }
        let touched = self.hidden(&environment.test_cmd_p2p, broken).await;
        let fails = failing(&touched);
        let is_new = |known: &BTreeSet<String>| !fails.is_subset(known);
        !fails.is_empty()
            && is_new(&failing(
                &self.hidden(&environment.test_cmd_p2p, good).await,
            ))
    }

    /// Returns whether these tests pass with the good texts in their version after the change, so
    /// that the version before the change is outdated.
    pub async fn are_outdated(&self, tests: &[String], good: &Overlay) -> bool {
        let Some((environment, _)) = &self.environment else {
            return false;
        };
        let report = self.hidden(&environment.test_cmd_p2p, good).await;
        let passes = |id: &String| {
            let same = |case: &&TestCase| case.id == *id && case.status == TestStatus::Passed;
            report.cases.iter().any(|case| same(&case))
        };
        !tests.is_empty() && tests.iter().all(passes)
    }

    async fn hidden(&self, command: &str, texts: &Overlay) -> TestReport {
        let (environment, python) = self
            .environment
            .as_ref()
            .expect("tests run only with an environment");
        let settings = TestSettings {
            command: Some(environment.line(command, python, &self.root)),
            ..TestSettings::default()
        };
        let workspace = Workspace::open(self.root.clone()).expect("the directory can be opened");
        let snapshot = workspace.snapshot(Overlay::new());
        let tests = ProjectTests::detect(&snapshot, self.shared.shadows.clone(), settings).await;
        let overlay = texts
            .iter()
            .map(|(file, text)| (file.clone(), text.clone().map(Arc::from)));
        let request = TestRequest {
            overlay: overlay.collect(),
            select: Vec::new(),
            deadline: LONG,
        };
        tests.run(request).await
    }
}

/// Returns the texts of the hidden tests and of one file.
pub fn with(hidden: &Overlay, file: &FilePath, text: &Arc<str>) -> Overlay {
    let mut overlay = hidden.clone();
    overlay.insert(file.clone(), Some(Arc::clone(text)));
    overlay
}

fn failing(report: &TestReport) -> BTreeSet<String> {
    let fails = |status| matches!(status, TestStatus::Failed | TestStatus::Error);
    let cases = report.cases.iter().filter(|case| fails(case.status));
    cases.map(|case| case.id.clone()).collect()
}

fn service(shared: &SharedSettings, snapshot: &Snapshot) -> LanguageServers {
    let places = ProgramSearch::of_process(snapshot.root().to_owned(), OwnPrograms::Refused);
    let wanted = ServerSelection {
        fast: vec![shared.server.clone()],
        thorough: Vec::new(),
        stops: [
            ProblemKind::Syntax,
            ProblemKind::Name,
            ProblemKind::Import,
            ProblemKind::Call,
        ]
        .into(),
        deadline: DEADLINE,
    };
    let cache = std::env::temp_dir().join("starling-bench-language");
    ServerPool::new(cache).service(snapshot, &places, &wanted)
}

/// A test runner without tests, for measurements that use only diagnostics.
struct NoTests;

#[async_trait]
impl TestRunner for NoTests {
    fn command(&self) -> Option<String> {
        None
    }

    fn chosen(&self) -> CommandOrigin {
        CommandOrigin::Found
    }

    fn selects(&self) -> bool {
        false
    }

    async fn run(&self, _: TestRequest) -> TestReport {
        TestReport {
            outcome: TestOutcome::NotRun,
            exit: None,
            command: String::new(),
            cases: Vec::new(),
            source: Default::default(),
            output: String::new(),
            millis: 0,
        }
    }
}

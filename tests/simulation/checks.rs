//! The simulated tests and the simulated language server. Both compute their results from the
//! texts, and both sometimes fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use starling_core::{
    CommandOrigin, Diagnostics, Effort, LanguageService, TestCase, TestOutcome, TestReport,
    TestRequest, TestRunner, TestStatus, TextRequest,
};
use starling_syntax::FilePath;

use super::project::{Project, Texts};
use super::world::World;

/// A test runner that computes its results from the laws of the generated project.
pub struct SimulatedTests {
    pub world: Arc<World>,
}

impl SimulatedTests {
    /// Returns the texts that a test command sees: the overlay of the request over the disk.
    fn texts(&self, request: &TestRequest) -> Texts {
        let text = |bytes: &Arc<[u8]>| String::from_utf8_lossy(bytes).into_owned();
        let overlay: BTreeMap<&str, Option<String>> = request
            .overlay
            .iter()
            .map(|(file, bytes)| (file.as_str(), bytes.as_ref().map(text)))
            .collect();
        let desk = self.world.desk();
        let mut texts = Texts::new();
        for unit in &self.world.project.units {
            let file = unit.file.as_str();
            let text = match overlay.get(file) {
                Some(text) => text.clone(),
                None => desk.disk(file),
            };
            if let Some(text) = text {
                texts.insert(file.to_owned(), text);
            }
        }
        texts
    }

    /// Returns a report whose exit status identifies the test run.
    fn report(key: &str, outcome: TestOutcome, cases: Vec<TestCase>, took: Duration) -> TestReport {
        TestReport {
            outcome,
            exit: number_of(key),
            command: "simulated tests".to_owned(),
            cases,
            source: Default::default(),
            output: String::new(),
            millis: u64::try_from(took.as_millis()).expect("short"),
        }
    }
}

#[async_trait]
impl TestRunner for SimulatedTests {
    fn command(&self) -> Option<String> {
        let has_tests = self.world.plan.has_tests;
        has_tests.then(|| "simulated tests".to_owned())
    }

    fn chosen(&self) -> CommandOrigin {
        CommandOrigin::Found
    }

    fn selects(&self) -> bool {
        false
    }

    async fn run(&self, request: TestRequest) -> TestReport {
        let world = &self.world;
        let key = world.next_key("tests");
        let texts = self.texts(&request);
        let now = world.desk().texts(&world.project);
        world.judge().tests_start(number_of(&key), &texts, &now);
        let _at_work = TestRunGuard {
            world: Arc::clone(world),
        };
        let took = world.choices.delay(&key, world.plan.latencies.tests);
        let first = key == "tests #1";
        let trouble = |what: &str| !first && world.choices.deviates(&format!("{key} {what}"), 2);
        if trouble("hang") {
            tokio::time::sleep(request.deadline).await;
            world.judge().checks_have_trouble();
            return Self::report(&key, TestOutcome::TimedOut, Vec::new(), request.deadline);
        }
        tokio::time::sleep(took.min(request.deadline)).await;
        if trouble("cannot run") {
            world.judge().checks_have_trouble();
            return Self::report(&key, TestOutcome::NotRun, Vec::new(), took);
        }
        let mut failing = world.project.failures(&texts);
        let ids = world.project.test_ids();
        if trouble("flake") {
            let id = world.choices.pick(&format!("{key} flaky"), &ids).clone();
            if !failing.iter().any(|(other, _)| *other == id) {
                failing.push((id, "TimeoutError: flaky".to_owned()));
            }
        }
        let case = |id: String| {
            let failure = failing.iter().find(|(other, _)| *other == id);
            TestCase {
                status: match failure {
                    Some(_) => TestStatus::Failed,
                    None => TestStatus::Passed,
                },
                message: failure.map_or(String::new(), |(_, message)| message.clone()),
                id,
            }
        };
        let outcome = match failing.is_empty() {
            true => TestOutcome::Passed,
            false => TestOutcome::Failed,
        };
        Self::report(&key, outcome, ids.into_iter().map(case).collect(), took)
    }
}

/// Returns the number of a test run.
fn number_of(key: &str) -> Option<i32> {
    key.rsplit('#').next()?.parse().ok()
}

/// Reports to the judge, when dropped, that a test run is over.
struct TestRunGuard {
    world: Arc<World>,
}

impl Drop for TestRunGuard {
    fn drop(&mut self) {
        self.world.judge().tests_end();
    }
}

/// A language service that reports undefined names in the generated project.
pub struct SimulatedLanguageService {
    pub world: Arc<World>,
}

#[async_trait]
impl LanguageService for SimulatedLanguageService {
    async fn diagnostics(&self, request: TextRequest) -> Diagnostics {
        let world = &self.world;
        let key = world.next_key("language");
        let unknown = |reason: &str| Diagnostics::Unknown {
            reason: reason.to_owned(),
        };
        if world.choices.deviates(&format!("{key} hangs"), 1) {
            world.judge().checks_have_trouble();
            tokio::time::sleep(request.deadline).await;
            return unknown("no answer in time");
        }
        world.wait(&key, world.plan.latencies.language).await;
        if world.choices.deviates(&format!("{key} crashes"), 1) {
            world.judge().checks_have_trouble();
            return unknown("the server crashed");
        }
        Diagnostics::Known {
            tool: "simulated 1".to_owned(),
            problems: Project::problems(request.file.as_str(), &request.text),
        }
    }

    fn has(&self, effort: Effort, file: &FilePath) -> bool {
        let is_python = file.as_str().ends_with(".py");
        self.world.plan.has_language_server && effort == Effort::Fast && is_python
    }
}

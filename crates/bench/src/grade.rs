//! Grading: applies a predicted change to a fresh checkout, adds the hidden tests, and runs them.

mod bring;
mod canary;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::checkout::{Checkout, Checkouts};
use super::container::{self, Containers};
use super::dataset::Instance;
use super::environment::Environment;
use super::git::{self, GitError, Repositories};
use super::named;
use super::predictions::Prediction;
use canary::{Canary, Doubt, passed};
use starling_core::{TestReport, TestRequest, TestRunner, TestStatus};
use starling_runner::{ProjectTests, ResultsFrom, TestSettings};
use starling_sandbox::Shadows;
use starling_workspace::{Overlay, Workspace};

/// Grades predictions.
#[derive(Debug, Clone)]
pub struct Grader {
    pub repositories: Repositories,
    pub checkouts: Checkouts,
    pub environments: BTreeMap<String, Environment>,
    /// Containers in which tests run, instead of environments that are built on this machine.
    pub containers: Option<Containers>,
    /// Directory in which environments are built and kept.
    pub cache: PathBuf,
    pub shadows: Shadows,
    /// Files and directories to hide from the tests besides the repositories: data that contains the
    /// answers.
    pub hidden: Vec<PathBuf>,
    /// Time limit of one test run.
    pub deadline: Duration,
}

/// The environment, the Python and the sandbox with which the tests of one instance run.
struct TestRuntime<'g> {
    /// Environment whose commands run the tests. Without it, the tests that the instance names are
    /// evaluated.
    environment: Option<&'g Environment>,
    python: PathBuf,
    shadows: Shadows,
}

/// The grades of all predictions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Grades {
    pub resolved: Vec<String>,
    pub unresolved: Vec<Unresolved>,
    pub errors: Vec<Unresolved>,
}

/// An instance that was not resolved or could not be graded, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unresolved {
    pub instance_id: String,
    pub why: String,
}

/// The grade of one prediction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    Resolved,
    /// Not resolved, with the reason.
    Unresolved(String),
    /// Could not be graded, with the reason.
    Error(String),
}

impl Grades {
    pub fn add(&mut self, instance_id: &str, grade: Grade) {
        let because = |why| Unresolved {
            instance_id: instance_id.to_owned(),
            why,
        };
        match grade {
            Grade::Resolved => self.resolved.push(instance_id.to_owned()),
            Grade::Unresolved(why) => self.unresolved.push(because(why)),
            Grade::Error(why) => self.errors.push(because(why)),
        }
    }
}

impl Grader {
    /// Grades one prediction.
    pub async fn grade(&self, instance: &Instance, prediction: &Prediction) -> Grade {
        match self.graded(instance, prediction).await {
            Ok(grade) => grade,
            Err(why) => Grade::Error(why),
        }
    }

    async fn graded(&self, instance: &Instance, prediction: &Prediction) -> Result<Grade, String> {
        let patch = prediction.model_patch.as_deref().unwrap_or_default();
        if patch.trim().is_empty() {
            return Ok(Grade::Unresolved("the prediction is empty".into()));
        }
        instance.task.check()?;
        let id = &instance.task.id;
        let repository = self.repositories.find(&instance.task.repo).map_err(text)?;
        let mut runtime = self.runtime(id).await?;
        let hidden = self.repositories.to_hide(&repository).await.map_err(text)?;
        let hidden = hidden.into_iter().chain(self.hidden.iter().cloned());
        runtime.shadows = runtime.shadows.hiding(hidden);
        let runtime = &runtime;
        let commit = &instance.task.base_commit;
        let lent = self.checkouts.take(&repository, commit).await;
        let lent = lent.map_err(text)?;
        let grade = self
            .graded_in(&lent, instance, patch, runtime, &repository)
            .await;
        // The tests ran only in shadows of the checkout, so it can be reused.
        lent.done();
        grade
    }

    async fn graded_in(
        &self,
        lent: &Checkout,
        instance: &Instance,
        patch: &str,
        runtime: &TestRuntime<'_>,
        repository: &Path,
    ) -> Result<Grade, String> {
        let checkout = &lent.path();
        match git::apply(checkout, patch).await {
            Ok(()) => {}
            Err(GitError::Failed { message, .. }) => {
                return Ok(Grade::Unresolved(format!(
                    "the patch does not apply: {message}"
                )));
            }
            Err(error) => return Err(text(error)),
        }
        bring::tests(instance, repository, lent)
            .await
            .map_err(text)?;
        let tests = CheckoutTests {
            deadline: self.deadline,
            runtime,
            checkout,
        };
        let Some(environment) = runtime.environment else {
            let report = tests.of_files(&instance.answer.test_patch).await?;
            return Ok(named::verdict(&instance.answer, &report));
        };
        let mended = tests.run(environment, &environment.test_cmd_f2p).await?;
        // Code under test can choose the exit status, so status 0 alone proves nothing.
        if mended.exit != Some(0) || !failing(&mended).is_empty() {
            return Ok(Grade::Unresolved(format!(
                "FAIL_TO_PASS: {}",
                said(&mended)
            )));
        }
        let (ran, wanted) = (canary::seen(&mended), instance.answer.fail_to_pass.len());
        if ran < wanted.max(1) {
            return Ok(Grade::Unresolved(format!(
                "FAIL_TO_PASS: only {ran} of {wanted} tests passed"
            )));
        }
        let canary = Canary::new(&instance.task.id);
        bring::settle(&canary, instance, checkout).map_err(text)?;
        let touched = tests.run(environment, &environment.test_cmd_p2p).await?;
        let touched = match canary.taken_from(touched) {
            Ok(touched) => touched,
            Err(doubt @ Doubt::Passes) => return Ok(doubted(&doubt)),
            Err(Doubt::Missing(touched)) => {
                // A command that names its tests does not run the canary tests.
                let before = self.before(instance, environment, runtime, repository, Some(&canary));
                match canary.taken_from(before.await?) {
                    Err(Doubt::Missing(_)) => touched,
                    Ok(_) | Err(Doubt::Passes) => {
                        return Ok(doubted(&Doubt::Missing(touched)));
                    }
                }
            }
        };
        let expected = wanted + instance.answer.pass_to_pass.len();
        let expected = expected.saturating_sub(environment.p2p_unavailable.len());
        if failing(&touched).is_empty() && passed(&touched).len() >= expected {
            return Ok(Grade::Resolved);
        }
        // Some tests fail in this environment without the change.
        let before = self
            .before(instance, environment, runtime, repository, None)
            .await?;
        let (passed, failing) = (passed(&touched), failing(&touched));
        let mut broken = canary::passed(&before);
        broken.retain(|id| !passed.contains(id));
        broken.extend(failing.difference(&self::failing(&before)).cloned());
        let broken: Vec<String> = broken.into_iter().collect();
        Ok(match broken.is_empty() {
            true => Grade::Resolved,
            false => Grade::Unresolved(format!("PASS_TO_PASS: broken: {}", broken.join(", "))),
        })
    }

    /// Runs the touched test files without the predicted change.
    async fn before(
        &self,
        instance: &Instance,
        environment: &Environment,
        runtime: &TestRuntime<'_>,
        repository: &Path,
        canary: Option<&Canary>,
    ) -> Result<TestReport, String> {
        let commit = &instance.task.base_commit;
        let lent = self.checkouts.take(repository, commit).await;
        let lent = lent.map_err(text)?;
        let checkout = &lent.path();
        bring::tests(instance, repository, &lent)
            .await
            .map_err(text)?;
        if let Some(canary) = canary {
            bring::settle(canary, instance, checkout).map_err(text)?;
        }
        let tests = CheckoutTests {
            deadline: self.deadline,
            runtime,
            checkout,
        };
        let report = tests.run(environment, &environment.test_cmd_p2p).await;
        lent.done();
        report
    }

    async fn runtime(&self, id: &str) -> Result<TestRuntime<'_>, String> {
        let environment = self.environments.get(id);
        if let Some(containers) = &self.containers {
            let container = containers.of(id).await.map_err(text)?;
            return Ok(TestRuntime {
                environment,
                python: container::python().to_owned(),
                shadows: self.shadows.clone().in_containers(container),
            });
        }
        let environment = environment.ok_or("the instance has no test environment")?;
        Ok(TestRuntime {
            environment: Some(environment),
            python: environment.built(&self.cache).await.map_err(text)?,
            shadows: self.shadows.clone(),
        })
    }
}

/// Runs the tests of one instance in a checkout of its repository.
struct CheckoutTests<'g> {
    deadline: Duration,
    runtime: &'g TestRuntime<'g>,
    checkout: &'g Path,
}

impl CheckoutTests<'_> {
    async fn run(&self, environment: &Environment, command: &str) -> Result<TestReport, String> {
        let workspace = Workspace::open(self.checkout.to_owned()).map_err(text)?;
        let python = &self.runtime.python;
        let line = environment.line(command, python, workspace.root());
        self.report(&workspace, Some(line), Vec::new()).await
    }

    /// Runs the test files of a diff with a detected command.
    async fn of_files(&self, test_patch: &str) -> Result<TestReport, String> {
        let workspace = Workspace::open(self.checkout.to_owned()).map_err(text)?;
        let is_there = |path: &String| path.ends_with(".py") && self.checkout.join(path).is_file();
        let files = super::patch::paths_of(test_patch).into_iter();
        self.report(&workspace, None, files.filter(is_there).collect())
            .await
    }

    async fn report(
        &self,
        workspace: &Workspace,
        command: Option<String>,
        select: Vec<String>,
    ) -> Result<TestReport, String> {
        let settings = TestSettings {
            command,
            ..TestSettings::default()
        };
        let snapshot = workspace.snapshot(Overlay::new());
        let shadows = self.runtime.shadows.clone();
        let tests = ProjectTests::detect(&snapshot, shadows, settings).await;
        // Their ids are compared with those of the data set, which come from printed text.
        let tests = tests.reading(ResultsFrom::PrintedText);
        let request = TestRequest {
            overlay: Vec::new(),
            select,
            deadline: self.deadline,
        };
        Ok(tests.run(request).await)
    }
}

fn doubted(doubt: &Doubt) -> Grade {
    Grade::Unresolved(format!("PASS_TO_PASS: {}", doubt.words()))
}

fn failing(report: &TestReport) -> BTreeSet<String> {
    let fails = |status| match status {
        TestStatus::Failed | TestStatus::Error | TestStatus::Unsteady => true,
        TestStatus::Passed | TestStatus::Skipped => false,
    };
    let cases = report.cases.iter().filter(|case| fails(case.status));
    cases.map(|case| case.id.clone()).collect()
}

/// Describes the result of a test run in one line.
fn said(report: &TestReport) -> String {
    let failing = failing(report);
    if !failing.is_empty() {
        return failing.into_iter().collect::<Vec<_>>().join(", ");
    }
    let last = report.output.trim().lines().next_back().unwrap_or_default();
    format!("{}: {last}", report.outcome.word())
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;

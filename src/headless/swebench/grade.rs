//! Grading: a predicted change is applied to a fresh checkout, the hidden tests come in, and run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::container::{self, Containers};
use super::dataset::Instance;
use super::environment::Environment;
use super::git::{self, GitError, Repositories};
use super::named;
use super::predictions::Prediction;
use crate::ports::{TestReport, TestRequest, TestRunner, TestStatus};
use crate::runner::{ProjectTests, TestSettings};
use crate::workspace::{Overlay, Scratch, Shadows, Workspace};

/// How long one run of tests may take.
const DEADLINE: Duration = Duration::from_secs(900);

/// Where grading finds what it needs.
#[derive(Debug, Clone)]
pub struct Grader {
    pub repositories: Repositories,
    pub environments: BTreeMap<String, Environment>,
    /// Where tests run in place of environments that are built here.
    pub containers: Option<Containers>,
    /// Environments are built and kept below it.
    pub cache: PathBuf,
    pub shadows: Shadows,
}

/// Where the tests of one instance run.
struct Runtime<'g> {
    /// Whose commands run; without one the tests that the instance names are looked at.
    environment: Option<&'g Environment>,
    python: PathBuf,
    shadows: Shadows,
}

/// What became of the predictions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Grades {
    pub resolved: Vec<String>,
    pub unresolved: Vec<Unresolved>,
    pub errors: Vec<Unresolved>,
}

/// An instance that was not resolved, or could not be graded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unresolved {
    pub instance_id: String,
    pub why: String,
}

/// What one prediction came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grade {
    Resolved,
    /// And why it is not.
    Unresolved(String),
    /// It could not be graded, and why.
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
            return Ok(Grade::Unresolved("nothing was predicted".into()));
        }
        let id = &instance.task.id;
        let runtime = &self.runtime(id).await?;
        let folder = Scratch::temporary().map_err(text)?;
        let checkout = &folder.path().join("checkout");
        let repository = self.repositories.find(&instance.task.repo).map_err(text)?;
        git::check_out(&repository, &instance.task.base_commit, checkout)
            .await
            .map_err(text)?;
        match git::apply(checkout, patch).await {
            Ok(()) => {}
            Err(GitError::Failed { message, .. }) => {
                return Ok(Grade::Unresolved(format!(
                    "the patch does not apply: {message}"
                )));
            }
            Err(error) => return Err(text(error)),
        }
        self.bring_tests(instance, &repository, checkout)
            .await
            .map_err(text)?;
        let tests = Tests { runtime, checkout };
        let Some(environment) = runtime.environment else {
            let report = tests.of_files(&instance.answer.test_patch).await?;
            return Ok(named::verdict(&instance.answer, &report));
        };
        let mended = tests.run(environment, &environment.test_cmd_f2p).await?;
        if mended.exit != Some(0) {
            return Ok(Grade::Unresolved(format!(
                "FAIL_TO_PASS: {}",
                said(&mended)
            )));
        }
        let touched = tests.run(environment, &environment.test_cmd_p2p).await?;
        if touched.exit == Some(0) {
            return Ok(Grade::Resolved);
        }
        // Some fail in this environment whatever is changed.
        let failing = failing(&touched);
        let before = self
            .failing_before(instance, environment, runtime, &repository)
            .await?;
        let broken: Vec<&str> = failing.difference(&before).map(String::as_str).collect();
        Ok(match (broken.is_empty(), failing.is_empty()) {
            (true, false) => Grade::Resolved,
            (true, true) => Grade::Unresolved(format!("PASS_TO_PASS: {}", said(&touched))),
            (false, _) => Grade::Unresolved(format!("PASS_TO_PASS: broken: {}", broken.join(", "))),
        })
    }

    /// The tests that fail without any change.
    async fn failing_before(
        &self,
        instance: &Instance,
        environment: &Environment,
        runtime: &Runtime<'_>,
        repository: &Path,
    ) -> Result<BTreeSet<String>, String> {
        let folder = Scratch::temporary().map_err(text)?;
        let checkout = &folder.path().join("checkout");
        git::check_out(repository, &instance.task.base_commit, checkout)
            .await
            .map_err(text)?;
        self.bring_tests(instance, repository, checkout)
            .await
            .map_err(text)?;
        let tests = Tests { runtime, checkout };
        let touched = tests.run(environment, &environment.test_cmd_p2p).await?;
        Ok(failing(&touched))
    }

    async fn runtime(&self, id: &str) -> Result<Runtime<'_>, String> {
        let environment = self.environments.get(id);
        if let Some(containers) = &self.containers {
            let container = containers.of(id).await.map_err(text)?;
            return Ok(Runtime {
                environment,
                python: container::python().to_owned(),
                shadows: self.shadows.clone().in_containers(container),
            });
        }
        let environment = environment.ok_or("it has no environment")?;
        Ok(Runtime {
            environment: Some(environment),
            python: environment.built(&self.cache).await.map_err(text)?,
            shadows: self.shadows.clone(),
        })
    }

    /// The hidden tests, whatever was made of their files.
    async fn bring_tests(
        &self,
        instance: &Instance,
        repository: &Path,
        checkout: &Path,
    ) -> Result<(), GitError> {
        let patch = &instance.answer.test_patch;
        for path in super::patch::paths_of(patch) {
            let place = checkout.join(&path);
            match git::file_at(repository, &instance.task.base_commit, &path).await? {
                Some(bytes) => super::patch::write(&place, &bytes).map_err(GitError::Disk)?,
                // A file that is not there need not go.
                None => drop(std::fs::remove_file(&place)),
            }
        }
        git::apply(checkout, patch).await
    }
}

/// The tests of one checkout.
struct Tests<'g> {
    runtime: &'g Runtime<'g>,
    checkout: &'g Path,
}

impl Tests<'_> {
    async fn run(&self, environment: &Environment, command: &str) -> Result<TestReport, String> {
        let workspace = Workspace::open(self.checkout.to_owned()).map_err(text)?;
        let python = &self.runtime.python;
        let line = environment.line(command, python, workspace.root());
        self.report(&workspace, Some(line), Vec::new()).await
    }

    /// By a command that is found by looking: the files that a diff brings.
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
        let request = TestRequest {
            overlay: Vec::new(),
            select,
            deadline: DEADLINE,
        };
        Ok(tests.run(request).await)
    }
}

fn failing(report: &TestReport) -> BTreeSet<String> {
    let fails = |status| match status {
        TestStatus::Failed | TestStatus::Error => true,
        TestStatus::Passed | TestStatus::Skipped => false,
    };
    let cases = report.cases.iter().filter(|case| fails(case.status));
    cases.map(|case| case.id.clone()).collect()
}

/// How a run ended, in a line.
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

//! Runs instances with the shipped program, several in parallel, each in its own process.

mod child;
mod memory;
mod place;
mod record;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::StreamExt;

use super::checkout::{Checkout, Checkouts};
use super::container::Containers;
use super::dataset::Task;
use super::environment::Environment;
use super::git::Repositories;
use child::{ChildSettings, ReceivedEvents};
use starling_core::Dollars;
use starling_index::Index;
use starling_models::oracle::KnownChange;
use starling_swarm::RunId;

pub use place::{
    KeptRecords, RunDirectory, RunDirectoryError, Settings, earlier, instance_directory, records,
    settings,
};
pub use record::{Cost, Finished, Outcome, Record, Report};

/// Extra time, beyond its own limit, for a process to end in order.
const GRACE: Duration = Duration::from_secs(30);

/// The settings of the runs.
#[derive(Debug, Clone)]
pub struct Runs {
    pub repositories: Repositories,
    /// Environments for the tests. An instance without one runs with the Python that is found.
    pub environments: BTreeMap<String, Environment>,
    /// Containers in which tests run instead of environments.
    pub containers: Option<Containers>,
    /// Directory for environments and trajectories.
    pub cache: PathBuf,
    /// The program that runs an instance: `starling` itself.
    pub program: PathBuf,
    /// Arguments for `starling run` besides task and folder.
    pub arguments: Vec<OsString>,
    /// Files and directories to hide from the tests of a run: the records, and data that contains
    /// the answers.
    pub hidden: Vec<PathBuf>,
    /// Time limit of one run, in seconds.
    pub seconds: u64,
    /// Replies that are built from the known changes, instead of a model.
    pub oracle: Option<BTreeMap<String, Vec<KnownChange>>>,
    /// Number of instances to run in parallel.
    pub workers: usize,
    /// No further instance is started after this amount is spent.
    pub dollars: Option<Dollars>,
}

impl Runs {
    /// Runs all instances that have no record in `place` yet, and calls `seen` with each new
    /// record.
    ///
    /// # Errors
    /// Fails if `place` cannot be written.
    pub async fn all(
        &self,
        tasks: &[&Task],
        place: &RunDirectory,
        mut seen: impl FnMut(&Record),
    ) -> Result<Ended, RunDirectoryError> {
        let done = place.records()?;
        let mut spent: f64 = done.values().map(|record| record.spent().dollars.0).sum();
        spent += place
            .earlier()?
            .values()
            .map(|dollars| dollars.0)
            .sum::<f64>();
        let left = tasks.iter().filter(|task| !done.contains_key(&task.id));
        let mut waiting = left.copied();
        let checkouts = Checkouts::below(place.work());
        let mut running = futures::stream::FuturesUnordered::new();
        let mut ended = Ended::All;
        loop {
            while running.len() < self.workers.max(1) {
                let Some(task) = waiting.next() else { break };
                if self.dollars.is_some_and(|limit| spent >= limit.0) {
                    ended = Ended::BudgetSpent;
                    break;
                }
                running.push(self.one(task, &checkouts));
            }
            let Some((record, trajectory)) = running.next().await else {
                return Ok(ended);
            };
            place.keep(&record, trajectory.as_deref())?;
            spent += record.spent().dollars.0;
            seen(&record);
        }
    }

    /// Runs one instance, and returns its record in any case, with the path of its trajectory.
    async fn one(&self, task: &Task, checkouts: &Checkouts) -> (Record, Option<PathBuf>) {
        let mut heard = ReceivedEvents::default();
        // The build time does not count for the instance, because other instances may share the
        // environment.
        let python = self.python(task).await;
        let began = Instant::now();
        let tried = async { self.tried(task, python?, checkouts, &mut heard).await };
        let outcome = match tried.await {
            Ok(finished) => Outcome::Finished(Box::new(finished)),
            Err(why) => Outcome::Failed {
                why,
                dollars: heard.dollars,
            },
        };
        let seconds = began.elapsed().as_secs_f64();
        // A run that was killed has a trajectory, too.
        let story = |run: RunId| self.cache.join("runs").join(format!("{}.jsonl", run.0));
        let trajectory = heard.run.map(story);
        let record = Record {
            instance_id: task.id.clone(),
            outcome,
            seconds,
            memory: heard.memory.bytes(),
        };
        (record, trajectory)
    }

    /// Returns the Python environment of the instance, if it has one.
    async fn python(&self, task: &Task) -> Result<Option<PathBuf>, String> {
        match self.environments.get(&task.id) {
            Some(environment) => environment.built(&self.cache).await.map(Some).map_err(text),
            None => Ok(None),
        }
    }

    /// Runs one task without recording it in a place.
    pub(super) async fn alone(
        &self,
        task: &Task,
        checkouts: &Checkouts,
    ) -> Result<Finished, String> {
        let mut heard = ReceivedEvents::default();
        let python = self.python(task).await?;
        self.tried(task, python, checkouts, &mut heard).await
    }

    async fn tried(
        &self,
        task: &Task,
        python: Option<PathBuf>,
        checkouts: &Checkouts,
        heard: &mut ReceivedEvents,
    ) -> Result<Finished, String> {
        task.check()?;
        let repository = self.repositories.find(&task.repo).map_err(text)?;
        let lent = checkouts.take(&repository, &task.base_commit).await;
        let lent = lent.map_err(text)?;
        let mut hidden = self.hidden.clone();
        hidden.extend(self.repositories.to_hide(&repository).await.map_err(text)?);
        let finished = self.tried_in(&lent, task, python, &hidden, heard).await?;
        // The process has ended by itself, so the checkout can be reused.
        lent.done();
        Ok(finished)
    }

    async fn tried_in(
        &self,
        lent: &Checkout,
        task: &Task,
        python: Option<PathBuf>,
        hidden: &[PathBuf],
        heard: &mut ReceivedEvents,
    ) -> Result<Finished, String> {
        let checkout = lent.path();
        let variables = match (self.environments.get(&task.id), &python) {
            (Some(environment), Some(python)) => environment.variables(python, &checkout),
            (Some(_) | None, _) => Vec::new(),
        };
        // Checkouts of one repository are similar, so the index of the previous one is reused. File
        // contents decide which parts are still valid.
        let last = self
            .cache
            .join("checkouts")
            .join(task.repo.replace('/', "__"));
        std::fs::create_dir_all(&last).map_err(text)?;
        // If this fails, the index is built again.
        let _ = Index::lend(&self.cache, &last, &checkout);
        let mut arguments = self.arguments.clone();
        if let Some(containers) = &self.containers {
            let container = containers.of(&task.id).await.map_err(text)?;
            for (key, value) in [
                ("container", container.image),
                ("container_client", container.client.display().to_string()),
            ] {
                arguments.extend(["-c".into(), format!("sandbox.{key}={value}").into()]);
            }
        }
        let environment = self.environments.get(&task.id);
        if let Some(services) = environment.and_then(|one| one.services(&checkout)) {
            // A JSON string is also a valid TOML string.
            let services = serde_json::to_string(&services).map_err(text)?;
            arguments.extend(["-c".into(), format!("tests.setup={services}").into()]);
        }
        if let Some(oracle) = &self.oracle {
            let known = oracle
                .get(&task.id)
                .ok_or("the change of this instance was not recorded")?;
            let file = lent.beside("known.json");
            let known = serde_json::to_vec(known).map_err(text)?;
            std::fs::write(&file, known).map_err(text)?;
            arguments.extend([
                "--model".into(),
                format!("oracle:{}", file.display()).into(),
            ]);
        }
        for path in hidden {
            let path = std::path::absolute(path).map_err(text)?;
            arguments.extend(["--hide-from-tests".into(), path.into()]);
        }
        let child = ChildSettings {
            program: &self.program,
            arguments: &arguments,
            checkout: &checkout,
            variables,
            limit: Duration::from_secs(self.seconds) + GRACE,
        };
        let finished = child.run(&task.problem_statement, heard).await;
        let _ = Index::lend(&self.cache, &checkout, &last);
        finished
    }
}

/// The way in which a run over many instances ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    All,
    /// Instances are left that the budget did not cover.
    BudgetSpent,
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;

//! Instances through the shipped program, several at a time, each in a process of its own.

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
use child::{Child, Heard};
use starling_core::Dollars;
use starling_index::Index;
use starling_models::oracle::KnownChange;
use starling_swarm::RunId;

pub use place::{Kept, Place, PlaceError, Settings, earlier, records, settings};
pub use record::{Cost, Finished, Outcome, Record, Report};

/// Beyond its own limit a process gets this long to end in order.
const GRACE: Duration = Duration::from_secs(30);

/// How instances are run.
#[derive(Debug, Clone)]
pub struct Runs {
    pub repositories: Repositories,
    /// What their tests need; an instance without one runs with the Python that is found.
    pub environments: BTreeMap<String, Environment>,
    /// Where their tests run in place of that.
    pub containers: Option<Containers>,
    /// Environments are built and kept below it; trajectories are written there.
    pub cache: PathBuf,
    /// The program that runs an instance: `starling` itself.
    pub program: PathBuf,
    /// What `starling run` is given besides task and folder.
    pub arguments: Vec<OsString>,
    /// Files and directories that the tests of a run do not see: the place of the records, and data that
    /// holds the answers.
    pub hidden: Vec<PathBuf>,
    /// Seconds that one run may take.
    pub seconds: u64,
    /// Answers made of known changes, in place of a model.
    pub oracle: Option<BTreeMap<String, Vec<KnownChange>>>,
    /// So many at a time.
    pub workers: usize,
    /// No instance is begun after so much is spent.
    pub dollars: Option<Dollars>,
}

impl Runs {
    /// Runs all that the place does not hold yet; `seen` is told of each as it is done.
    ///
    /// # Errors
    /// The place cannot be written.
    pub async fn all(
        &self,
        tasks: &[&Task],
        place: &Place,
        mut seen: impl FnMut(&Record),
    ) -> Result<Ended, PlaceError> {
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

    /// One instance, whatever becomes of it, and the file of its story.
    async fn one(&self, task: &Task, checkouts: &Checkouts) -> (Record, Option<PathBuf>) {
        let mut heard = Heard::default();
        // Others may need the same: its building is no part of an instance.
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
        // A run that was ended has a story, too.
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

    /// The folder of its Python, where it has an environment.
    async fn python(&self, task: &Task) -> Result<Option<PathBuf>, String> {
        match self.environments.get(&task.id) {
            Some(environment) => environment.built(&self.cache).await.map(Some).map_err(text),
            None => Ok(None),
        }
    }

    /// One task without a place.
    pub(super) async fn alone(
        &self,
        task: &Task,
        checkouts: &Checkouts,
    ) -> Result<Finished, String> {
        let mut heard = Heard::default();
        let python = self.python(task).await?;
        self.tried(task, python, checkouts, &mut heard).await
    }

    async fn tried(
        &self,
        task: &Task,
        python: Option<PathBuf>,
        checkouts: &Checkouts,
        heard: &mut Heard,
    ) -> Result<Finished, String> {
        let repository = self.repositories.find(&task.repo).map_err(text)?;
        let lent = checkouts.take(&repository, &task.base_commit).await;
        let lent = lent.map_err(text)?;
        let finished = self.tried_in(&lent, task, python, heard).await?;
        // Its process has ended by itself.
        lent.done();
        Ok(finished)
    }

    async fn tried_in(
        &self,
        lent: &Checkout,
        task: &Task,
        python: Option<PathBuf>,
        heard: &mut Heard,
    ) -> Result<Finished, String> {
        let checkout = lent.path();
        let variables = match (self.environments.get(&task.id), &python) {
            (Some(environment), Some(python)) => environment.variables(python, &checkout),
            (Some(_) | None, _) => Vec::new(),
        };
        // Checkouts of one repository are much the same, and content decides what still holds.
        let last = self
            .cache
            .join("checkouts")
            .join(task.repo.replace('/', "__"));
        std::fs::create_dir_all(&last).map_err(text)?;
        // Without it, the index is made anew.
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
            // A text of JSON is one of TOML, too.
            let services = serde_json::to_string(&services).map_err(text)?;
            arguments.extend(["-c".into(), format!("tests.setup={services}").into()]);
        }
        if let Some(oracle) = &self.oracle {
            let known = oracle
                .get(&task.id)
                .ok_or("nothing is known of its change")?;
            let file = lent.beside("known.json");
            let known = serde_json::to_vec(known).map_err(text)?;
            std::fs::write(&file, known).map_err(text)?;
            arguments.extend([
                "--model".into(),
                format!("oracle:{}", file.display()).into(),
            ]);
        }
        for path in &self.hidden {
            let path = std::path::absolute(path).map_err(text)?;
            arguments.extend(["--hide-from-tests".into(), path.into()]);
        }
        let child = Child {
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

/// How a run over many instances ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    All,
    /// Instances are left that no money was there for.
    BudgetSpent,
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;

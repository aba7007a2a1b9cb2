//! Instances as environments for a trainer, over lines of JSON: a policy answers in the place of the
//! models of a run, and the grader gives the reward.

mod episode;
mod wire;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use super::dataset::Instance;
use super::grade::{Grade, Grader};
use super::predictions::Prediction;
use super::run::{Finished, Runs};
use episode::{Episode, Turn};
use wire::{Said, Wanted};

/// The instances, how they are run, and who gives the reward.
#[derive(Debug, Clone)]
pub struct Env {
    pub instances: Vec<Instance>,
    pub runs: Runs,
    pub grader: Grader,
    /// The longest wait for the next line of the trainer.
    pub idle: Duration,
}

/// How the talk with a trainer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// It said so, or closed its end.
    Closed,
    /// It said nothing for too long.
    Idle,
}

impl Env {
    /// Answers each line of `input` by one of `output`, until it ends.
    ///
    /// # Errors
    /// The pipes break.
    pub async fn serve(
        &self,
        input: impl AsyncBufRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
    ) -> io::Result<Farewell> {
        let mut lines = input.lines();
        let mut trainer = Trainer {
            env: self,
            next: 0,
            episode: None,
        };
        loop {
            let Ok(line) = tokio::time::timeout(self.idle, lines.next_line()).await else {
                return Ok(Farewell::Idle);
            };
            let Some(line) = line? else {
                return Ok(Farewell::Closed);
            };
            if line.trim().is_empty() {
                continue;
            }
            let wanted = serde_json::from_str(&line);
            let is_last = matches!(wanted, Ok(Wanted::Close));
            let said = match wanted {
                Ok(wanted) => trainer.answer(wanted).await,
                Err(error) => Said::error(format!("no request: {error}")),
            };
            let mut line = serde_json::to_vec(&said)?;
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await?;
            if is_last {
                return Ok(Farewell::Closed);
            }
        }
    }
}

/// What is under way with the trainer.
struct Trainer<'e> {
    env: &'e Env,
    /// The instance that comes when none is named.
    next: usize,
    episode: Option<(&'e Instance, Episode)>,
}

impl Trainer<'_> {
    async fn answer(&mut self, wanted: Wanted) -> Said {
        match wanted {
            Wanted::Instances {} => {
                let instances = self.env.instances.iter();
                Said::instances(instances.map(|one| one.task.id.clone()).collect())
            }
            Wanted::Close => {
                self.episode = None;
                Said::closed()
            }
            Wanted::Reset { instance_id } => self.reset(instance_id.as_deref()).await,
            Wanted::Step { action } => {
                let Some((_, episode)) = &mut self.episode else {
                    return Said::error("no episode is under way: reset first");
                };
                match action.reply() {
                    Ok(reply) => episode.answer(reply),
                    Err(why) => return Said::error(why),
                }
                self.turn().await
            }
        }
    }

    async fn reset(&mut self, id: Option<&str>) -> Said {
        // What was under way ends first: its processes, too.
        self.episode = None;
        let instances = &self.env.instances;
        let found = match id {
            Some(id) => instances.iter().find(|one| one.task.id == id),
            None => instances.get(self.next % instances.len().max(1)),
        };
        let Some(instance) = found else {
            let id = id.unwrap_or("of any name");
            return Said::error(format!("there is no instance {id}"));
        };
        self.next += usize::from(id.is_none());
        match Episode::begin(&self.env.runs, &instance.task, &self.env.grader.checkouts) {
            Ok(episode) => self.episode = Some((instance, episode)),
            Err(error) => return Said::error(format!("no episode can begin: {error}")),
        }
        self.turn().await
    }

    /// Up to the next question, or to the end.
    async fn turn(&mut self) -> Said {
        let Some((instance, mut episode)) = self.episode.take() else {
            return Said::error("no episode is under way: reset first");
        };
        match episode.turn().await {
            Turn::Asked(request) => {
                self.episode = Some((instance, episode));
                Said::asked(&instance.task.id, &request)
            }
            Turn::Failed(why) => Said::failed(&instance.task.id, &why),
            Turn::Finished(finished) => {
                let grade = self.grade(instance, &finished).await;
                Said::finished(&instance.task.id, &finished, &grade)
            }
        }
    }

    async fn grade(&self, instance: &Instance, finished: &Finished) -> Grade {
        let prediction = Prediction {
            instance_id: instance.task.id.clone(),
            model_name_or_path: "policy".into(),
            model_patch: Some(finished.patch.clone()),
        };
        self.env.grader.grade(instance, &prediction).await
    }
}

#[cfg(test)]
mod tests;

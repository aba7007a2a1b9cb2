//! Instances as reinforcement learning environments, over JSON lines: the trainer's policy replaces
//! the models of a run, and the grader determines the reward.

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
use wire::{TrainerRequest, TrainerResponse};

/// The instances, the settings of their runs, and the grader.
#[derive(Debug, Clone)]
pub struct Env {
    pub instances: Vec<Instance>,
    pub runs: Runs,
    pub grader: Grader,
    /// Maximum time to wait for the next line of the trainer.
    pub idle: Duration,
}

/// Why the session with a trainer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainerSessionEnd {
    /// The trainer closed the session or its end of the pipe.
    Closed,
    /// The trainer sent nothing for too long.
    Idle,
}

impl Env {
    /// Answers each line of `input` with one line on `output`, until the session ends.
    ///
    /// # Errors
    /// Fails if a pipe breaks.
    pub async fn serve(
        &self,
        input: impl AsyncBufRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
    ) -> io::Result<TrainerSessionEnd> {
        let mut lines = input.split(b'\n');
        let mut trainer = TrainerSession {
            env: self,
            next: 0,
            episode: None,
        };
        loop {
            let Ok(line) = tokio::time::timeout(self.idle, lines.next_segment()).await else {
                return Ok(TrainerSessionEnd::Idle);
            };
            let Some(line) = line? else {
                return Ok(TrainerSessionEnd::Closed);
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let wanted = serde_json::from_slice(&line);
            let is_last = matches!(wanted, Ok(TrainerRequest::Close));
            let said = match wanted {
                Ok(wanted) => trainer.answer(wanted).await,
                Err(error) => TrainerResponse::error(format!("invalid request: {error}")),
            };
            let mut line = serde_json::to_vec(&said)?;
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await?;
            if is_last {
                return Ok(TrainerSessionEnd::Closed);
            }
        }
    }
}

/// The state of a session with a trainer.
struct TrainerSession<'e> {
    env: &'e Env,
    /// Index of the instance to use when the trainer names none.
    next: usize,
    episode: Option<(&'e Instance, Episode)>,
}

impl TrainerSession<'_> {
    async fn answer(&mut self, wanted: TrainerRequest) -> TrainerResponse {
        match wanted {
            TrainerRequest::Instances {} => {
                let instances = self.env.instances.iter();
                TrainerResponse::instances(instances.map(|one| one.task.id.clone()).collect())
            }
            TrainerRequest::Close => {
                self.episode = None;
                TrainerResponse::closed()
            }
            TrainerRequest::Reset { instance_id } => self.reset(instance_id.as_deref()).await,
            TrainerRequest::Step { action } => {
                let Some((_, episode)) = &mut self.episode else {
                    return TrainerResponse::error(
                        "no episode is running: send a reset request first",
                    );
                };
                match action.reply() {
                    Ok(reply) => episode.answer(reply),
                    Err(why) => return TrainerResponse::error(why),
                }
                self.turn().await
            }
        }
    }

    async fn reset(&mut self, id: Option<&str>) -> TrainerResponse {
        // The current episode ends first, including its processes.
        self.episode = None;
        let instances = &self.env.instances;
        let found = match id {
            Some(id) => instances.iter().find(|one| one.task.id == id),
            None => instances.get(self.next % instances.len().max(1)),
        };
        let Some(instance) = found else {
            let id = id.unwrap_or("of any name");
            return TrainerResponse::error(format!("the data set has no instance {id}"));
        };
        self.next += usize::from(id.is_none());
        match Episode::begin(&self.env.runs, &instance.task, &self.env.grader.checkouts) {
            Ok(episode) => self.episode = Some((instance, episode)),
            Err(error) => {
                return TrainerResponse::error(format!("cannot start an episode: {error}"));
            }
        }
        self.turn().await
    }

    /// Continues until the next request or the end of the episode.
    async fn turn(&mut self) -> TrainerResponse {
        let Some((instance, mut episode)) = self.episode.take() else {
            return TrainerResponse::error("no episode is running: send a reset request first");
        };
        match episode.turn().await {
            Turn::Asked(request) => {
                self.episode = Some((instance, episode));
                TrainerResponse::asked(&instance.task.id, &request)
            }
            Turn::Failed(why) => TrainerResponse::failed(&instance.task.id, &why),
            Turn::Finished(finished) => {
                let grade = self.grade(instance, &finished).await;
                TrainerResponse::finished(&instance.task.id, &finished, &grade)
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

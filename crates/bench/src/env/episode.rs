//! One episode: the run of an instance as a process, which sends its model requests over a Unix
//! socket.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::checkout::Checkouts;
use crate::dataset::Task;
use crate::run::{Finished, Runs};
use starling_core::{ChatReply, ChatRequest};
use starling_sandbox::Scratch;
#[cfg(unix)]
use unix::{Listener, Stream};
#[cfg(windows)]
use windows::{Listener, Stream};

/// Maximum number of agents that can wait for replies.
const WAITING: usize = 64;

/// The next step of an episode.
#[derive(Debug)]
pub(super) enum Turn {
    Asked(Box<ChatRequest>),
    Finished(Box<Finished>),
    /// The run did not finish, for this reason.
    Failed(String),
}

/// A model request and the channel for its reply.
struct Asked {
    request: ChatRequest,
    answer: oneshot::Sender<ChatReply>,
}

/// A run whose model requests arrive one at a time. Dropping it ends the run.
pub(super) struct Episode {
    questions: mpsc::Receiver<Asked>,
    waiting: Option<oneshot::Sender<ChatReply>>,
    run: JoinHandle<Result<Finished, String>>,
    listener: JoinHandle<()>,
    /// The directory that contains the socket.
    _folder: Scratch,
}

impl Episode {
    /// Starts a run of a task.
    pub(super) fn begin(runs: &Runs, task: &Task, checkouts: &Checkouts) -> io::Result<Self> {
        let folder = Scratch::temporary()?;
        let socket = Listener::bind(folder.path())?;
        let (sender, questions) = mpsc::channel(WAITING);
        let (mut runs, task, checkouts) = (runs.clone(), task.clone(), checkouts.clone());
        let model = format!("socket:{}", socket.path.display());
        let listener = tokio::spawn(listen(socket, sender));
        runs.arguments.extend(["--model".into(), model.into()]);
        let run = tokio::spawn(async move { runs.alone(&task, &checkouts).await });
        Ok(Episode {
            questions,
            waiting: None,
            run,
            listener,
            _folder: folder,
        })
    }

    /// Answers the last request.
    pub(super) fn answer(&mut self, reply: ChatReply) {
        if let Some(waiting) = self.waiting.take() {
            // If the agent no longer waits, the run has already reported that.
            let _ = waiting.send(reply);
        }
    }

    /// Waits for the next request or the end of the run, which comes at the run's own time limit at
    /// the latest.
    pub(super) async fn turn(&mut self) -> Turn {
        tokio::select! {
            biased;
            ended = &mut self.run => match ended {
                Ok(Ok(finished)) => Turn::Finished(Box::new(finished)),
                Ok(Err(why)) => Turn::Failed(why),
                Err(error) => Turn::Failed(error.to_string()),
            },
            // The channel stays open, because the listener lives as long as this episode.
            Some(asked) = self.questions.recv() => {
                self.waiting = Some(asked.answer);
                Turn::Asked(Box::new(asked.request))
            }
        }
    }
}

impl Drop for Episode {
    fn drop(&mut self) {
        self.run.abort();
        self.listener.abort();
    }
}

async fn listen(mut listener: Listener, questions: mpsc::Sender<Asked>) {
    while let Ok(stream) = listener.accept().await {
        let questions = questions.clone();
        tokio::spawn(async move {
            // A client that has disconnected needs no reply.
            let _ = pass_on(stream, &questions).await;
        });
    }
}

async fn pass_on(stream: Stream, questions: &mpsc::Sender<Asked>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let request = serde_json::from_str(&line)?;
    let (answer, reply) = oneshot::channel();
    let asked = Asked { request, answer };
    questions.send(asked).await.map_err(io::Error::other)?;
    // The run's own limits bound this wait: when the run ends, it closes the other side of the
    // socket.
    let reply = reply.await.map_err(io::Error::other)?;
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    stream.get_mut().write_all(&line).await
}

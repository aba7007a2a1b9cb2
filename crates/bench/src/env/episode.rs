//! One instance under way: its run is a process as ever, and asks its model over a socket file.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::checkout::Checkouts;
use crate::dataset::Task;
use crate::run::{Finished, Runs};
use starling_core::{ChatReply, ChatRequest};
use starling_sandbox::Scratch;

/// So many agents may wait for their answers.
const WAITING: usize = 64;

/// What comes next in an episode.
#[derive(Debug)]
pub(super) enum Turn {
    Asked(Box<ChatRequest>),
    Finished(Box<Finished>),
    /// It came to no end, and why.
    Failed(String),
}

/// A question, and where its answer goes.
struct Asked {
    request: ChatRequest,
    answer: oneshot::Sender<ChatReply>,
}

/// A run whose questions come one at a time. It ends when this is dropped.
pub(super) struct Episode {
    questions: mpsc::Receiver<Asked>,
    waiting: Option<oneshot::Sender<ChatReply>>,
    run: JoinHandle<Result<Finished, String>>,
    listener: JoinHandle<()>,
    /// Holds the socket.
    _folder: Scratch,
}

impl Episode {
    /// Begins a run of a task.
    pub(super) fn begin(runs: &Runs, task: &Task, checkouts: &Checkouts) -> io::Result<Self> {
        let folder = Scratch::temporary()?;
        let socket = folder.path().join("model");
        let (sender, questions) = mpsc::channel(WAITING);
        let listener = tokio::spawn(listen(UnixListener::bind(&socket)?, sender));
        let (mut runs, task, checkouts) = (runs.clone(), task.clone(), checkouts.clone());
        let model = format!("socket:{}", socket.display());
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

    /// Answers the question that came last.
    pub(super) fn answer(&mut self, reply: ChatReply) {
        if let Some(waiting) = self.waiting.take() {
            // An agent that waited too long is told by the run.
            let _ = waiting.send(reply);
        }
    }

    /// Waits for the next question or the end, which comes at the run's own limit of time at the latest.
    pub(super) async fn turn(&mut self) -> Turn {
        tokio::select! {
            biased;
            ended = &mut self.run => match ended {
                Ok(Ok(finished)) => Turn::Finished(Box::new(finished)),
                Ok(Err(why)) => Turn::Failed(why),
                Err(error) => Turn::Failed(error.to_string()),
            },
            // The listener lives as long as this does.
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

async fn listen(listener: UnixListener, questions: mpsc::Sender<Asked>) {
    while let Ok((stream, _)) = listener.accept().await {
        let questions = questions.clone();
        tokio::spawn(async move {
            // A caller that went away needs no answer.
            let _ = pass_on(stream, &questions).await;
        });
    }
}

async fn pass_on(stream: UnixStream, questions: &mpsc::Sender<Asked>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let request = serde_json::from_str(&line)?;
    let (answer, reply) = oneshot::channel();
    let asked = Asked { request, answer };
    questions.send(asked).await.map_err(io::Error::other)?;
    // The run's own limits end this wait: its end closes the socket's other side.
    let reply = reply.await.map_err(io::Error::other)?;
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    stream.get_mut().write_all(&line).await
}

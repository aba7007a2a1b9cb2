//! One run of the shipped program as a child process, followed by its events.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdout, Command};

use super::memory::Memory;
use super::record::Finished;
use starling_core::Dollars;
use starling_server::protocol::EventParams;
use starling_swarm::{Event, RunId};
use starling_workspace::{HostPrograms, Variables};

/// Of what a process complains, so much is kept.
const COMPLAINT_BYTES: usize = 2000;
/// Who was killed and does not go holds nobody longer.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// How often its memory is looked at, besides at every event.
const LOOK: Duration = Duration::from_millis(500);

/// How one run is started.
pub(super) struct Child<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [OsString],
    pub(super) checkout: &'a Path,
    /// For its tests.
    pub(super) variables: Vec<(String, String)>,
    pub(super) limit: Duration,
}

impl Child<'_> {
    /// Runs it on a task to its end, or to the limit; `heard` keeps what it told until then.
    pub(super) async fn run(&self, task: &str, heard: &mut Heard) -> Result<Finished, String> {
        let mut child = self
            .command()
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("its pipes are gone".into());
        };
        heard.pid = child.id();
        let told = async {
            // Who does not read its task says why on its own.
            let _ = stdin.write_all(task.as_bytes()).await;
            drop(stdin);
            tokio::join!(heard.follow(stdout), complaint(stderr))
        };
        let Ok((finished, complaint)) = tokio::time::timeout(self.limit, told).await else {
            // Its tests end with it.
            let _ = tokio::time::timeout(LAST_WAIT, child.kill()).await;
            let seconds = self.limit.as_secs();
            return Err(format!(
                "it was still at work after {seconds} s, and was ended"
            ));
        };
        let status = child.wait().await.map_err(|error| error.to_string())?;
        finished.ok_or_else(|| format!("no run was finished ({status}): {}", complaint.trim()))
    }

    fn command(&self) -> Command {
        let programs = HostPrograms::outside_current_directory();
        let directory = std::env::current_dir().unwrap_or_default();
        let command = programs.command(self.program, Variables::Inherited, &directory);
        let mut command = Command::from(command);
        command
            .args(["run", "-", "--json", "--end-with-parent"])
            .arg(std::process::id().to_string())
            .arg("--repo")
            .arg(self.checkout)
            .args(self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if !self.variables.is_empty() {
            let names: Vec<&str> = self
                .variables
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            // What they are is no secret: they stand in a file of environments.
            command
                .arg("-c")
                .arg(format!("sandbox.environment={names:?}"))
                .envs(self.variables.iter().cloned());
        }
        command
    }
}

/// What a run has told of itself so far.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) run: Option<RunId>,
    /// For the answers that came.
    pub(super) dollars: Dollars,
    pub(super) memory: Memory,
    pid: Option<u32>,
}

impl Heard {
    /// Listens to a run; its last event, when it comes.
    async fn follow(&mut self, stdout: ChildStdout) -> Option<Finished> {
        let mut found = None;
        let mut taken_back = None;
        let mut lines = BufReader::new(stdout).lines();
        loop {
            if let Some(pid) = self.pid {
                self.memory.look(pid);
            }
            let line = match tokio::time::timeout(LOOK, lines.next_line()).await {
                Err(_) => continue,
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None) | Err(_)) => return found,
            };
            // Whatever else is written there is not for us.
            let Ok(EventParams { run, event, .. }) = serde_json::from_str(&line) else {
                continue;
            };
            if let Event::TurnFinished { cost, .. } = event {
                self.dollars += cost;
            } else if let Event::TakenBack { diff, .. } = event {
                taken_back = Some(diff);
            } else if let Event::RunFinished {
                stop_reason,
                applied,
                diff,
                spent,
                summary,
                ..
            } = event
            {
                found = Some(Finished {
                    run: run.clone(),
                    stop_reason,
                    applied,
                    // A run hands in the best that it has, also where it did not leave it in the tree.
                    patch: taken_back.take().unwrap_or(diff),
                    spent,
                    summary,
                });
            }
            self.run = Some(run);
        }
    }
}

/// The end of what a process writes to its standard error.
async fn complaint(mut stderr: ChildStderr) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..count]);
        let over = kept.len().saturating_sub(COMPLAINT_BYTES);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

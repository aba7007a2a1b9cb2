//! Runs one instance as a child process of the shipped program, and follows its events.

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

/// Maximum number of bytes of a process's standard error that are kept.
const COMPLAINT_BYTES: usize = 2000;
/// Maximum time to wait for a killed process.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// Interval at which memory is measured, in addition to every event.
const LOOK: Duration = Duration::from_millis(500);

/// The settings with which one run is started.
pub(super) struct ChildSettings<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [OsString],
    pub(super) checkout: &'a Path,
    /// Environment variables for the run's tests.
    pub(super) variables: Vec<(String, String)>,
    pub(super) limit: Duration,
}

impl ChildSettings<'_> {
    /// Runs the program on a task until it ends or reaches the time limit. `heard` records the
    /// events until then.
    pub(super) async fn run(
        &self,
        task: &str,
        heard: &mut ReceivedEvents,
    ) -> Result<Finished, String> {
        let mut child = self
            .command()
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(
                "the run could not be started: its input and output are not connected".into(),
            );
        };
        heard.pid = child.id();
        let told = async {
            // A process that does not read its task reports its own error.
            let _ = stdin.write_all(task.as_bytes()).await;
            drop(stdin);
            tokio::join!(heard.follow(stdout), complaint(stderr))
        };
        let Ok((finished, complaint)) = tokio::time::timeout(self.limit, told).await else {
            // The processes of its tests end with it.
            let _ = tokio::time::timeout(LAST_WAIT, child.kill()).await;
            let seconds = self.limit.as_secs();
            return Err(format!(
                "the run did not finish within {seconds} s, and was stopped"
            ));
        };
        let status = child.wait().await.map_err(|error| error.to_string())?;
        finished.ok_or_else(|| {
            format!(
                "the run ended without a result ({status}): {}",
                complaint.trim()
            )
        })
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
            // Tests may see these variables, because their values come from an environments file
            // and are not secret.
            command
                .arg("-c")
                .arg(format!("sandbox.environment={names:?}"))
                .envs(self.variables.iter().cloned());
        }
        command
    }
}

/// The events of a run so far.
#[derive(Debug, Default)]
pub(super) struct ReceivedEvents {
    pub(super) run: Option<RunId>,
    /// Cost of the replies so far.
    pub(super) dollars: Dollars,
    pub(super) memory: Memory,
    pid: Option<u32>,
}

impl ReceivedEvents {
    /// Follows a run's events and returns its last event, if it arrives.
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
            // Other output is ignored.
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
                    // A run submits its best patch, even if it did not leave that patch in the
                    // tree.
                    patch: taken_back.take().unwrap_or(diff),
                    spent,
                    summary,
                });
            }
            self.run = Some(run);
        }
    }
}

/// Returns the end of a process's standard error.
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

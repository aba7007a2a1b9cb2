//! Runs a command until it ends or its deadline passes, kills all its processes, and captures its
//! output.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use starling_platform::files::free_space;
use starling_platform::processes::{ProcessGroup, exit_code, lead_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::sandbox::{MARKER, Plan, Report, keeper_of, kill_marked, report_in, write_plan};

/// Maximum time to wait for killed processes to end.
const GRACE: Duration = Duration::from_secs(2);

/// The way in which a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Exit status, or 128 plus the signal number if a signal ended the command.
    Exited(i32),
    TimedOut,
    OutOfMemory,
    TooManyProcesses,
    OutputTooLong,
    WroteTooMuch,
}

/// Result and output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    pub end: End,
    /// Standard output and standard error. If they are too long, the middle is left out.
    pub output: String,
    pub elapsed: Duration,
}

/// A command to run in a sandbox.
pub(super) struct SandboxedCommand {
    pub plan: Plan,
    /// The complete environment.
    pub environment: BTreeMap<OsString, OsString>,
    pub deadline: Duration,
    /// Maximum number of output bytes to keep.
    pub cap: usize,
}

/// Error when a command could not be run in a sandbox.
pub(super) enum NotRun {
    Io(io::Error),
    /// The sandbox could not be created.
    Refused(String),
    /// The disk of the scratch directory is full.
    DiskFull,
}

impl From<io::Error> for NotRun {
    fn from(error: io::Error) -> Self {
        NotRun::Io(error)
    }
}

/// Runs a program in its sandbox. When the program ends or exceeds a limit, or when the returned
/// future is dropped, all processes that it started are killed.
pub(super) async fn run(program: SandboxedCommand) -> Result<Captured, NotRun> {
    let start = Instant::now();
    let (scratch, deadline) = (program.plan.scratch.clone(), program.deadline);
    let (most, least) = (program.plan.bounds.output, program.plan.bounds.free);
    write_plan(&program.plan)?;
    let capture = Capture::new(program.cap);
    let mut child = spawn(program)?;
    let mut output = Reader::of(child.stdout.take(), capture);
    // The pipe to the keeper is taken out of the child, because `wait` would close it.
    let lifeline = child.stdin.take();
    let mut family = RunningProcesses {
        group: child.id().map(ProcessGroup::of).transpose()?,
        scratch: scratch.clone(),
    };
    let status = timeout(deadline, ended(&mut child, &mut output, most)).await;
    // When the pipe closes, the keeper kills all processes and exits.
    drop(lifeline);
    if let Ok(Ok(_)) = timeout(GRACE, child.wait()).await {
        family.group = None;
    }
    if !matches!(status, Ok(Some(_))) {
        drop(family);
    }
    // All processes that could write are dead, so the rest of the output can be read to its end.
    // The time limit is for a process that the system cannot kill.
    let _ = timeout(GRACE, output.rest()).await;
    let end = match (status, report_in(&scratch)) {
        (_, Some(Report::Refused(message))) => return Err(NotRun::Refused(message)),
        (_, Some(Report::DiskFull)) => return Err(NotRun::DiskFull),
        // If the disk is full, the keeper cannot write a report.
        (Ok(Some(_)), None) if is_full(&scratch, least) => return Err(NotRun::DiskFull),
        (Err(_), _) => End::TimedOut,
        (Ok(None), _) => End::OutputTooLong,
        (Ok(_), Some(Report::OutOfMemory)) => End::OutOfMemory,
        (Ok(_), Some(Report::TooManyProcesses)) => End::TooManyProcesses,
        (Ok(_), Some(Report::WroteTooMuch)) => End::WroteTooMuch,
        (Ok(_), Some(Report::Exited(status))) => End::Exited(status),
        (Ok(Some(status)), None) => End::Exited(exit_code(status?)),
    };
    Ok(Captured {
        end,
        output: output.into_text(),
        elapsed: start.elapsed(),
    })
}

fn is_full(scratch: &Path, least: u64) -> bool {
    free_space(scratch).is_some_and(|free| free < least)
}

/// Waits for the child and returns its status, or `None` as soon as its output is longer than
/// `most` bytes.
pub(super) async fn ended(
    child: &mut Child,
    output: &mut Reader,
    most: u64,
) -> Option<io::Result<ExitStatus>> {
    loop {
        tokio::select! {
            status = child.wait() => return Some(status),
            () = output.more(), if output.pipe.is_some() => {}
        }
        if output.capture.total > most {
            return None;
        }
    }
}

fn spawn(program: SandboxedCommand) -> io::Result<Child> {
    let scratch = &program.plan.scratch;
    let (keeper, arguments) = keeper_of(scratch)?;
    let mut command = Command::new(keeper);
    command
        .args(arguments)
        .env_clear()
        .envs(program.environment)
        .env(MARKER, scratch)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    lead_group(command.as_std_mut());
    command.spawn()
}

/// A running command with all its processes. They are killed if it is dropped before the command
/// has ended.
struct RunningProcesses {
    group: Option<ProcessGroup>,
    scratch: PathBuf,
}

impl Drop for RunningProcesses {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        kill_marked(&self.scratch);
    }
}

/// The output of a child process. The pipe is `None` after it has ended.
pub(super) struct Reader {
    pipe: Option<ChildStdout>,
    capture: Capture,
}

impl Reader {
    pub(super) fn of(pipe: Option<ChildStdout>, capture: Capture) -> Self {
        Reader { pipe, capture }
    }

    /// Reads until the pipe ends.
    pub(super) async fn rest(&mut self) {
        while self.pipe.is_some() {
            self.more().await;
        }
    }

    pub(super) fn into_text(self) -> String {
        self.capture.into_text()
    }

    async fn more(&mut self) {
        let Some(pipe) = &mut self.pipe else {
            return;
        };
        let mut chunk = [0; 8 * 1024];
        match pipe.read(&mut chunk).await {
            Ok(read) if read > 0 => self.capture.push(&chunk[..read]),
            Ok(_) | Err(_) => self.pipe = None,
        }
    }
}

/// The beginning and the end of an output, at most `cap` bytes in total.
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    dropped: usize,
    total: u64,
}

impl Capture {
    pub(super) fn new(cap: usize) -> Self {
        Capture {
            head: Vec::new(),
            tail: VecDeque::new(),
            half: cap / 2,
            dropped: 0,
            total: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.half - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.dropped += over;
    }

    fn into_text(mut self) -> String {
        if self.dropped == 0 {
            self.head.extend(self.tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let tail = Vec::from(self.tail);
        format!(
            "{}\n… {} bytes left out …\n{}",
            String::from_utf8_lossy(&self.head),
            self.dropped,
            String::from_utf8_lossy(&tail)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Bounds, Confinement, Tree};

    const LONG: Duration = Duration::from_secs(60);

    /// Runs a shell command that is confined only by resource limits.
    async fn run_line(line: &str, deadline: Duration) -> Captured {
        let scratch = tempfile::tempdir().unwrap();
        let program = SandboxedCommand {
            plan: Plan {
                confinement: Confinement::Nothing,
                tree: Tree::Copy { root: "/".into() },
                line: line.into(),
                bounds: Bounds {
                    output: 1_000_000,
                    ..Bounds::default()
                },
                scratch: scratch.path().to_owned(),
                home: None,
                keep: Vec::new(),
                private: Vec::new(),
                records: Vec::new(),
                user: 0,
                group: 0,
            },
            environment: std::env::vars_os().collect(),
            deadline,
            cap: 1000,
        };
        run(program).await.unwrap_or_else(|_| panic!("runs"))
    }

    #[tokio::test]
    async fn stdout_and_stderr_are_captured_in_order_with_the_exit_status() {
        let done = run_line("echo one; echo two >&2; echo three; exit 3", LONG).await;
        assert_eq!(done.end, End::Exited(3));
        assert_eq!(done.output, "one\ntwo\nthree\n");
        let done = run_line("kill -9 $$", LONG).await;
        assert_eq!(done.end, End::Exited(137));
    }

    #[tokio::test]
    async fn long_output_is_cut_in_the_middle() {
        let done = run_line("echo first; yes | head -c 100000; echo last", LONG).await;
        assert!(done.output.starts_with("first\n"));
        assert!(done.output.ends_with("last\n"));
        assert!(
            done.output.contains("… 99011 bytes left out …"),
            "{}",
            done.output
        );
        assert!(done.output.len() < 1100);
    }

    #[tokio::test]
    async fn command_with_endless_output_is_stopped() {
        let done = run_line("echo first; yes", LONG).await;
        assert_eq!(done.end, End::OutputTooLong);
        assert!(done.output.starts_with("first\n"));
    }

    #[tokio::test]
    async fn deadline_kills_all_processes_of_the_command() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        // A grandchild process in a session of its own keeps the output pipe open until it is
        // killed.
        let line = format!(
            "mkfifo {0}; setsid sleep 1000 & echo started; read x < {0}",
            fifo.display()
        );
        let done = run_line(&line, Duration::from_millis(300)).await;
        assert_eq!((done.end, &*done.output), (End::TimedOut, "started\n"));
        assert!(done.elapsed < LONG);
    }

    #[tokio::test]
    async fn a_daemon_does_not_outlive_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let line = format!(
            "setsid sh -c 'echo $$ > {0}; exec sleep 1000' & while ! test -s {0}; do :; done",
            pid.display()
        );
        let done = run_line(&line, LONG).await;
        assert_eq!(done.end, End::Exited(0));
        let pid = std::fs::read_to_string(pid).unwrap();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // The process is gone, or a zombie that its new parent has not reaped yet.
        assert!(state.is_err() || state.is_ok_and(|stat| stat.contains(") Z ")));
    }
}

//! Runs a command until it ends or its deadline passes, kills all its processes, and captures its
//! output.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::sandbox::{Plan, Report, free_space, keeper_of, report_in, write_plan};

/// Environment variable of every process in a shadow. Its value is the scratch directory.
pub(super) const MARKER: &str = "STARLING_SHADOW";
/// Maximum time to wait for killed processes to end.
const GRACE: Duration = Duration::from_secs(2);

/// Maximum time to wait for a program to load.
const LOADING: Duration = Duration::from_millis(100);

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
pub(super) struct Program {
    pub plan: Plan,
    /// The complete environment.
    pub environment: BTreeMap<OsString, OsString>,
    pub deadline: Duration,
    /// Maximum number of output bytes to keep.
    pub cap: usize,
}

/// Error when a program could not be started.
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
pub(super) async fn run(program: Program) -> Result<Captured, NotRun> {
    let start = Instant::now();
    let (scratch, deadline) = (program.plan.scratch.clone(), program.deadline);
    let (most, least) = (program.plan.bounds.output, program.plan.bounds.free);
    write_plan(&program.plan)?;
    let capture = Capture::new(program.cap);
    let mut child = spawn(program)?;
    let mut output = Reader::of(child.stdout.take(), capture);
    // The pipe is taken out of the child, because `wait` would close it.
    let lifeline = child.stdin.take();
    let mut family = Family {
        group: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
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
    // All writers are dead, so the rest of the output is read to its end. The deadline covers a
    // process that the system cannot kill.
    let _ = timeout(GRACE, output.rest()).await;
    let end = match (status, report_in(&scratch)) {
        (_, Some(Report::Refused(message))) => return Err(NotRun::Refused(message)),
        (_, Some(Report::DiskFull)) => return Err(NotRun::DiskFull),
        // On a full disk no report can be written.
        (Ok(Some(_)), None) if is_full(&scratch, least) => return Err(NotRun::DiskFull),
        (Err(_), _) => End::TimedOut,
        (Ok(None), _) => End::OutputTooLong,
        (Ok(_), Some(Report::OutOfMemory)) => End::OutOfMemory,
        (Ok(_), Some(Report::TooManyProcesses)) => End::TooManyProcesses,
        (Ok(_), Some(Report::WroteTooMuch)) => End::WroteTooMuch,
        (Ok(_), Some(Report::Exited(status))) => End::Exited(status),
        (Ok(Some(status)), None) => End::Exited(code(status?)),
    };
    Ok(Captured {
        end,
        output: output.into_text(),
        elapsed: start.elapsed(),
    })
}

fn is_full(scratch: &Path, least: u64) -> bool {
    let free = std::fs::File::open(scratch).ok().and_then(free_space);
    free.is_some_and(|free| free < least)
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

fn spawn(program: Program) -> io::Result<Child> {
    let scratch = &program.plan.scratch;
    let (keeper, arguments) = keeper_of(scratch);
    Command::new(keeper)
        .args(arguments)
        .env_clear()
        .envs(program.environment)
        .env(MARKER, scratch)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

pub(super) fn code(status: ExitStatus) -> i32 {
    let signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(signal)
}

/// A running command with all its processes. They are killed if it is dropped before the command
/// has ended.
struct Family {
    group: Option<Pid>,
    scratch: PathBuf,
}

impl Drop for Family {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // The group may already be gone, which is fine.
            let _ = kill_process_group(group, Signal::KILL);
        }
        kill_marked(&self.scratch);
    }
}

/// Kills every process whose environment names a scratch directory, including those that left the
/// process group. Repeats until none is left, because a process can start another one after the
/// list was read.
pub(super) fn kill_marked(scratch: &Path) {
    let mut mark = format!("{MARKER}=").into_bytes();
    mark.extend_from_slice(scratch.as_os_str().as_bytes());
    let start = Instant::now();
    loop {
        let marked = marked(&mark);
        for pid in &marked {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if marked.is_empty() || start.elapsed() > GRACE {
            return;
        }
        std::thread::yield_now();
    }
}

fn marked(mark: &[u8]) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = processes.filter_map(|process| {
        let number = process.file_name().to_str()?.parse().ok()?;
        Some((Pid::from_raw(number)?, process.path()))
    });
    numbered
        .filter(|(_, process)| carries(process, mark))
        .map(|(pid, _)| pid)
        .collect()
}

/// Returns whether the environment of a process contains `mark`. `process` is its directory in
/// `/proc`. A program that is still being loaded has neither arguments nor environment, so the
/// function waits for it.
fn carries(process: &Path, mark: &[u8]) -> bool {
    let read = |name| std::fs::read(process.join(name));
    let start = Instant::now();
    loop {
        // The order matters: a process that has arguments now has its environment when that is read
        // next.
        let loading = read("cmdline").is_ok_and(|arguments| arguments.is_empty())
            && std::fs::read_link(process.join("exe")).is_ok();
        let Ok(environment) = read("environ") else {
            return false;
        };
        if !loading || !environment.is_empty() || start.elapsed() > LOADING {
            return environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark);
        }
        std::thread::yield_now();
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

    /// Runs a shell command that only its bounds confine.
    async fn run_line(line: &str, deadline: Duration) -> Captured {
        let scratch = tempfile::tempdir().unwrap();
        let program = Program {
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
    async fn catches_both_outputs_in_order_and_the_status() {
        let done = run_line("echo one; echo two >&2; echo three; exit 3", LONG).await;
        assert_eq!(done.end, End::Exited(3));
        assert_eq!(done.output, "one\ntwo\nthree\n");
        let done = run_line("kill -9 $$", LONG).await;
        assert_eq!(done.end, End::Exited(137));
    }

    #[tokio::test]
    async fn keeps_the_beginning_and_the_end_of_a_long_output() {
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
    async fn an_endless_output_ends_the_command() {
        let done = run_line("echo first; yes", LONG).await;
        assert_eq!(done.end, End::OutputTooLong);
        assert!(done.output.starts_with("first\n"));
    }

    #[tokio::test]
    async fn the_deadline_ends_all_that_was_started() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        // A grandchild in its own session holds the pipe open until it is killed.
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

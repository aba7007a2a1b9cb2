//! Processes on Linux, macOS and other Unix systems.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};

/// Whether a process with this id runs, also if it belongs to another user.
pub fn is_running(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| !matches!(test_kill_process(process), Err(Errno::SRCH)))
}

/// Returns the exit status of a process, or 128 plus the number of the signal that ended it.
pub fn exit_code(status: ExitStatus) -> i32 {
    let signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(signal)
}

/// Returns the environment variables of this process. On Windows, where `Path` and `PATH` are one
/// variable, names are in upper case.
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Makes a command start in its own process group, so that it receives no signals from the terminal
/// (such as Ctrl-C).
pub fn lead_group(command: &mut Command) {
    command.process_group(0);
}

/// The group of a process that was started with [`lead_group`]: the process, and its descendants
/// that did not leave the group.
#[derive(Debug)]
pub struct ProcessGroup(Pid);

impl ProcessGroup {
    /// Returns the group of a process that was just started.
    ///
    /// # Errors
    /// The id is not a valid process id.
    pub fn of(leader: u32) -> io::Result<ProcessGroup> {
        let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(ProcessGroup(leader))
    }

    /// Kills all processes of the group.
    pub fn kill(&self) {
        // The group may already be gone, which is fine.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

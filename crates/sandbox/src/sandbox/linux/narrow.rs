//! A PID namespace around bubblewrap, if the command runs as root. The namespace limits the number
//! of processes. The kernel enforces no other such limit for root, and bubblewrap does not set one.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{NARROW, SELF, keeper, version};

/// Wraps a command so that it runs as the first process of a PID namespace with a limit on
/// processes. Returns the command unchanged if no namespace can be created. The next process that
/// this process starts must be the command, because it enters the namespace.
pub(super) fn around(command: Command, most: u32) -> Command {
    let is_root = rustix::process::getuid().is_root();
    if !is_root || version::kernel() < version::LIMITS_BY_NAMESPACE {
        return command;
    }
    // SAFETY: the call does not unshare the table of file descriptors.
    if unsafe { unshare_unsafe(UnshareFlags::NEWPID) }.is_err() {
        return command;
    }
    let mut narrowed = Command::new(SELF);
    narrowed.args([NARROW, &most.to_string()]);
    narrowed.arg(command.get_program()).args(command.get_args());
    narrowed
}

/// Sets the limit and executes the command. Returns a status only if the command could not be
/// executed.
pub(super) fn enter(most: &OsStr) -> i32 {
    // A container may forbid this write. Then the number of processes is limited only by the init
    // process of the sandbox, which counts them.
    let _ = fs::write("/proc/sys/kernel/pid_max", most.as_encoded_bytes());
    let mut words = std::env::args_os().skip(3);
    if let Some(program) = words.next() {
        // `exec` returns only on error.
        drop(Command::new(program).args(words).exec());
    }
    keeper::REFUSED
}

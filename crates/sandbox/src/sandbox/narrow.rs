//! A namespace of processes around bubblewrap, for an administrator: the system keeps no other limit of
//! processes for one, and bubblewrap sets none.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{NARROW, SELF, keeper, version};

/// The same command as the first process of a namespace with an upper limit of processes; as it is,
/// where that cannot be had. What this process starts next is in the namespace, too.
pub(super) fn around(command: Command, most: u32) -> Command {
    let is_root = rustix::process::getuid().is_root();
    if !is_root || version::kernel() < version::LIMITS_BY_NAMESPACE {
        return command;
    }
    // SAFETY: the table of file descriptors is not among what is no longer shared.
    if unsafe { unshare_unsafe(UnshareFlags::NEWPID) }.is_err() {
        return command;
    }
    let mut narrowed = Command::new(SELF);
    narrowed.args([NARROW, &most.to_string()]);
    narrowed.arg(command.get_program()).args(command.get_args());
    narrowed
}

/// Sets the limit, and becomes the command; gives the status of not having become it.
pub(super) fn enter(most: &OsStr) -> i32 {
    // A system may keep that from its containers; then the watch alone is left.
    let _ = fs::write("/proc/sys/kernel/pid_max", most.as_encoded_bytes());
    let mut words = std::env::args_os().skip(3);
    if let Some(program) = words.next() {
        // Comes back only with an error.
        drop(Command::new(program).args(words).exec());
    }
    keeper::REFUSED
}

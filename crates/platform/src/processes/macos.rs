//! Processes on macOS.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, getppid};

/// Interval at which a process checks whether its parent process still runs.
const GLANCE: Duration = Duration::from_millis(500);

/// Sets the niceness of this thread. On macOS niceness is a property of the whole process, so this
/// does nothing.
///
/// # Errors
/// Never.
pub fn set_thread_niceness(_niceness: i32) -> io::Result<()> {
    Ok(())
}

/// Raises the niceness of this thread. On macOS niceness is a property of the whole process, so this
/// does nothing.
///
/// # Errors
/// Never.
pub fn raise_thread_niceness(_by: i32) -> io::Result<()> {
    Ok(())
}

/// Ends this process soon after its parent process (with id `parent`) has ended. Returns whether
/// the parent still runs.
///
/// # Errors
/// Never.
pub fn end_with_parent(parent: i32) -> io::Result<bool> {
    let runs = move || getppid().map(Pid::as_raw_pid) == Some(parent);
    std::thread::spawn(move || {
        while runs() {
            std::thread::sleep(GLANCE);
        }
        std::process::exit(1)
    });
    Ok(runs())
}

/// Limitation: the resident memory of this process is not available on macOS, so this returns
/// `None`.
pub fn resident_bytes() -> Option<u64> {
    None
}

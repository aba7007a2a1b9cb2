//! Processes on Linux.

use std::io;

use rustix::process::{
    Pid, Signal, getppid, nice, set_parent_process_death_signal, setpriority_process,
};

/// Sets the niceness of this thread and of the threads and processes that it starts later.
///
/// # Errors
/// The system refuses.
pub fn set_thread_niceness(niceness: i32) -> io::Result<()> {
    Ok(setpriority_process(None, niceness)?)
}

/// Raises the niceness of this thread and of the threads and processes that it starts later.
///
/// # Errors
/// The system refuses.
pub fn raise_thread_niceness(by: i32) -> io::Result<()> {
    nice(by)?;
    Ok(())
}

/// Makes the kernel kill this process when its parent process (with id `parent`) ends. Returns
/// whether the parent still runs.
///
/// # Errors
/// The system refuses.
pub fn end_with_parent(parent: i32) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before the death signal was set.
    Ok(getppid().map(Pid::as_raw_pid) == Some(parent))
}

/// Returns the resident memory of this process in bytes, or `None` if it cannot be read.
pub fn resident_bytes() -> Option<u64> {
    let sizes = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = sizes.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

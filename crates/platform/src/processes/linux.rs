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

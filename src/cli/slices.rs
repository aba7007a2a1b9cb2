//! Time slices of threads. On Linux 6.12 and later, a running thread keeps its slice (3 ms by
//! default) even from a thread of higher priority, unless that thread has a shorter slice. Other
//! systems do not need this, so the functions do nothing there.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod others;

use std::time::Duration;

#[cfg(target_os = "linux")]
pub(super) use linux::{of_all_threads, of_this_thread};
#[cfg(not(target_os = "linux"))]
pub(super) use others::{of_all_threads, of_this_thread};

/// The time slice of threads that must respond immediately: the minimum of Linux.
pub(super) const SHORTEST: Duration = Duration::from_micros(100);
/// The slice of worker threads.
pub(super) const OF_WORKERS: Duration = Duration::from_micros(200);

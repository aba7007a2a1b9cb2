//! Time slices of threads on systems that need none.

use std::time::Duration;

/// Does nothing.
pub(in crate::cli) fn of_this_thread(_slice: Duration) {}

/// Does nothing.
pub(in crate::cli) fn of_all_threads(_slice: Duration) {}

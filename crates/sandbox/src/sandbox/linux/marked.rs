//! Finds processes that left their process group, by a variable in their environment.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::MARKER;

/// Maximum time to wait for killed processes to end.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum time to wait for a program to load.
const LOADING: Duration = Duration::from_millis(100);

/// Kills every process that has the given scratch directory in its environment, including processes
/// that left the process group. Repeats until no such process is left, because a process can start
/// another one after the list was read.
pub(crate) fn kill_marked(scratch: &Path) {
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
        // The arguments must be read before the environment: if a process has arguments, it has its
        // environment, too, when that is read next.
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

//! Tests of the program on a host that a project or a client tries to disturb: special files,
//! programs with the names of host programs, and invalid messages.

#![allow(clippy::unwrap_used)]

mod files;
mod frames;
mod programs;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a command; longer than any command takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);
/// Limit on the address space of a command, in bytes. Reading an endless file into memory exceeds
/// it.
const ADDRESS_SPACE: u64 = 4 << 30;

/// A project directory and a separate home directory.
struct HostProject {
    folder: tempfile::TempDir,
}

impl HostProject {
    fn new() -> HostProject {
        let bed = HostProject {
            folder: tempfile::tempdir().unwrap(),
        };
        for name in ["project", "home"] {
            std::fs::create_dir(bed.path(name)).unwrap();
        }
        bed.write("project/work.py", "def f():\n    return 1\n");
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Creates a program that writes to the file `ran` when it is executed.
    fn program(&self, name: &str) -> PathBuf {
        let path = self.write(
            name,
            &format!("#!/bin/sh\necho {name} >> {}\n", self.ran().display()),
        );
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn ran(&self) -> PathBuf {
        self.path("ran")
    }

    /// Returns a command that runs Starling in the project with limits.
    fn starling(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("/usr/bin/prlimit");
        command
            .arg(format!("--as={ADDRESS_SPACE}"))
            .arg(env!("CARGO_BIN_EXE_starling"))
            .args(arguments)
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("STARLING_CACHE_DIR", self.path("cache"))
            .stdin(Stdio::null());
        command
    }
}

/// Returns the output of a command, which must end in time.
#[track_caller]
fn output(command: &mut Command) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (done, watched) = std::sync::mpsc::channel::<()>();
    let started = Instant::now();
    let watch = std::thread::spawn(move || {
        if watched
            .recv_timeout(DEADLINE)
            .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watch.join().unwrap();
    assert!(started.elapsed() < DEADLINE, "it does not end: {output:?}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

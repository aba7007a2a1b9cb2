//! The process of a language server: it is started in its own process group, the end of its error
//! output is kept, and it is killed together with all processes that it started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::find::ServerProgram;
use super::link::ServerLink;
use starling_platform::processes::{ProcessGroup, lead_group};
use starling_workspace::{HostPrograms, Variables};

/// Maximum time to wait for a process that has closed its pipes.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum number of bytes kept of the error output.
const LAST_WORDS: usize = 2 << 10;

/// What a server gets to see of the environment: enough to find itself and the project's packages,
/// and no secrets.
const PASSED_ON: [&str; 19] = [
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYENV_ROOT",
    "PYENV_VERSION",
    // Windows: programs do not start, or do not find the user's files, without them.
    "APPDATA",
    "LOCALAPPDATA",
    "PATHEXT",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
];

/// Returns the environment of a server. Variables that point into an untrusted project are left
/// out, because a server starts the interpreter that `VIRTUAL_ENV` or `CONDA_PREFIX` names.
fn passed_on(
    others: &HostPrograms,
    value_of: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    PASSED_ON
        .iter()
        .filter_map(|name| Some((*name, value_of(name)?)))
        .filter(|(_, value)| !others.is_named_in(value))
        .collect()
}

/// Starts a server. Its cache directory is below `cache`.
///
/// # Errors
/// The program cannot be started.
pub(super) fn start(program: &ServerProgram, root: &Path, cache: &Path) -> io::Result<ServerLink> {
    let programs = &program.others;
    let passed_on = passed_on(programs, |name| std::env::var_os(name));
    let server = programs.command(&program.path, Variables::Clean, root);
    let mut command = Command::from(server);
    command
        .args(&program.arguments)
        .env_clear()
        .envs(passed_on)
        .env("PATH", programs.path())
        .env("XDG_CACHE_HOME", cache)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    lead_group(command.as_std_mut());
    let mut child = command.spawn()?;
    let words = Arc::default();
    let group = child.id().map(ProcessGroup::of).transpose()?;
    let (Some(output), Some(input), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("its pipes are missing"));
    };
    let listener = tokio::spawn(listen(errors, Arc::clone(&words)));
    Ok(ServerLink {
        input: Box::new(input),
        output: Box::new(output),
        process: Some(ServerProcess {
            child,
            group,
            words,
            listener,
        }),
    })
}

/// The last bytes of a process's error output.
type ErrorOutput = Arc<Mutex<VecDeque<u8>>>;

async fn listen(mut errors: impl AsyncRead + Unpin, words: ErrorOutput) {
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut chunk).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend(&chunk[..read]);
        let over = words.len().saturating_sub(LAST_WORDS);
        words.drain(..over);
    }
}

/// A running server. Dropping it kills the server and all processes that it started.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    group: Option<ProcessGroup>,
    words: ErrorOutput,
    listener: JoinHandle<()>,
}

impl ServerProcess {
    /// Returns how the process ended and the last line of its error output. Kills all remaining
    /// child processes.
    pub async fn end(&mut self) -> String {
        let status = match timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(_)) | Err(_) => "it closed its pipes".to_owned(),
        };
        self.kill_group();
        // All processes that could write to the pipe are dead.
        let _ = timeout(GRACE, &mut self.listener).await;
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<u8> = words.iter().copied().collect();
        let words = String::from_utf8_lossy(&words);
        match words.trim_end().lines().last() {
            Some(line) => format!("{status}: {}", line.trim()),
            None => status,
        }
    }

    fn kill_group(&mut self) {
        if let Some(group) = self.group.take() {
            group.kill();
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    fn shell(line: &str) -> ServerLink {
        let program = ServerProgram {
            name: "sh".to_owned(),
            path: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), line.to_owned()],
            others: HostPrograms::outside(Path::new("/")),
        };
        start(&program, Path::new("/"), Path::new("/nowhere")).unwrap()
    }

    /// Reads all output of the server.
    async fn said(link: &mut ServerLink) -> String {
        let mut text = String::new();
        link.input.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn server_exit_is_reported_with_its_last_error_line() {
        let mut link = shell("echo one >&2; echo 'last words' >&2; exit 3");
        said(&mut link).await;
        let end = link.process.as_mut().unwrap().end().await;
        assert!(end.starts_with("exit status: 3"), "{end}");
        assert!(end.ends_with("last words"), "{end}");
    }

    #[tokio::test]
    async fn server_environment_has_a_cache_and_no_secrets() {
        // Cargo sets this variable for tests, and it is not in the list of passed variables.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        let seen = said(&mut shell("env")).await;
        assert!(seen.contains("XDG_CACHE_HOME=/nowhere"), "{seen}");
        assert!(!seen.contains("CARGO_PKG_NAME"), "{seen}");
    }

    #[test]
    fn variables_that_point_into_an_untrusted_project_are_not_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join(".venv/bin")).unwrap();
        let value_of = |name: &str| match name {
            "HOME" => Some(OsString::from("/home/me")),
            "VIRTUAL_ENV" => Some(root.join(".venv").into()),
            "CONDA_PREFIX" => Some(OsString::from(".venv")),
            "PYTHONPATH" => Some(format!("/opt:{}", root.display()).into()),
            "PYENV_ROOT" => Some(OsString::from("/home/me/.pyenv")),
            _ => None,
        };
        let names = |others: &HostPrograms| -> Vec<&str> {
            let found = passed_on(others, value_of).into_iter();
            found.map(|(name, _)| name).collect()
        };
        let untrusted = HostPrograms::on("".as_ref(), &root);
        assert_eq!(names(&untrusted), ["HOME", "PYENV_ROOT"]);
        let trusted = HostPrograms::with_project("".as_ref());
        assert_eq!(names(&trusted).len(), 5);
    }

    #[tokio::test]
    async fn child_processes_of_a_server_are_killed_with_it() {
        let mut link = shell("sleep 1000 & echo started; wait");
        let mut started = [0; 8];
        link.input.read_exact(&mut started).await.unwrap();
        drop(link.process.take());
        // The pipe closes when the last child process is dead.
        let end = timeout(Duration::from_secs(100), said(&mut link)).await;
        assert_eq!(end.unwrap(), "");
    }

    #[tokio::test]
    async fn server_that_closes_its_pipes_is_not_awaited() {
        let mut link = shell("exec >&- 2>&-; sleep 1000");
        said(&mut link).await;
        let end = link.process.as_mut().unwrap().end().await;
        assert_eq!(end, "it closed its pipes");
    }
}

//! A shadow (private copy of the project) inside a container. The tree is copied into a container
//! that is created for one command. The container has no network, and it ends when Starling ends
//! for any reason.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::copy::copy_tree;
use super::process::{Capture, Captured, End, Reader, ended};
use super::relocate::relocate;
use super::{ShadowCommand, ShadowError, Shadows, blocking, remove};
use crate::lay_over::lay_over;
use crate::sandbox::Bounds;
use starling_platform::processes::exit_code;
use starling_workspace::{FileContents, HostPrograms, Variables};

/// Directory of the project in a container, as in the SWE-bench images.
const HOME: &str = "/testbed";
/// The script that prepares the tree and runs the command. The image may contain build results in
/// its own tree, so the shadow's files are copied over that tree, and files that git tracks there
/// but the shadow does not have are removed. When standard input closes, process 1 of the container
/// ends, and all processes of the command end with it.
const SCRIPT: &str = include_str!("container.sh");
/// Markers that the script prints when the command starts and when memory runs out.
const BEGUN: &str = "@starling-begun\n";
const NO_MEMORY: &str = "@starling-no-memory\n";
/// Maximum time to wait for the client and its container to end regularly.
const GRACE: Duration = Duration::from_secs(10);
/// Time limit for copying the tree, in addition to the command's deadline.
const SETTING_UP: Duration = Duration::from_secs(60);
/// Variables that have no meaning inside the container and are not passed to it.
const OUTSIDE: [&str; 18] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "SHELL",
    "USER",
    "LOGNAME",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONUSERBASE",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "GOROOT",
    "GOPATH",
    "JAVA_HOME",
];

/// The client program and the image for commands in containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// `docker`, `podman`, or another program with the same command line.
    pub client: PathBuf,
    /// Name of the image, which must exist locally. Images are never pulled.
    pub image: String,
}

impl Container {
    /// Returns the first client found on `PATH`, or `docker` if none is found, so that the error
    /// message names it.
    pub fn client_found() -> PathBuf {
        let programs = HostPrograms::outside_current_directory();
        let there = |name: &&str| programs.find(name).is_ok();
        let found = ["docker", "podman"].into_iter().find(there);
        PathBuf::from(found.unwrap_or("docker"))
    }
}

impl Shadows {
    /// Returns shadows that run every command in its own container instead of the sandbox.
    pub fn in_containers(self, container: Container) -> Self {
        Shadows {
            container: Some(container),
            ..self
        }
    }

    pub(super) async fn contained(
        &self,
        container: &Container,
        root: &Path,
        overlay: &FileContents,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        let scratch = self.scratch_outside(root)?;
        let tree = scratch.path().join("tree");
        let copying = {
            let (root, tree, overlay) = (root.to_owned(), tree.clone(), overlay.clone());
            let records = self.records();
            move || {
                let copied = copy_tree(&root, &tree, &records)?;
                lay_over(&tree, &overlay).map(|()| copied)
            }
        };
        let copied = blocking(copying).await.map_err(|source| self.io(source))?;
        self.warn_of_unreadable(&copied);
        let inside = ContainerRun {
            container,
            name: name_of(scratch.path()),
            tree: &tree,
            root,
            bounds: self.bounds,
        };
        let done = inside.run(command).await;
        remove(scratch).await;
        done.map_err(|message| ShadowError::Refused {
            root: root.to_owned(),
            message,
        })
    }
}

/// A container that runs one command.
struct ContainerRun<'a> {
    container: &'a Container,
    name: String,
    tree: &'a Path,
    root: &'a Path,
    bounds: Bounds,
}

impl ContainerRun<'_> {
    async fn run(&self, command: &ShadowCommand) -> Result<Captured, String> {
        let start = Instant::now();
        let started = self.client(command).and_then(|mut client| client.spawn());
        let mut child = started.map_err(|error| {
            let client = self.container.client.display();
            format!("cannot start the container client {client}: {error}; is it installed?")
        })?;
        let mut output = Reader::of(child.stdout.take(), Capture::new(command.output_cap));
        let mut complaint = child.stderr.take();
        // The container ends when this pipe closes. `wait` would close the client's standard input,
        // so it is taken out of the child first.
        let lifeline = child.stdin.take();
        let all = command.deadline + SETTING_UP;
        let status = timeout(all, ended(&mut child, &mut output, self.bounds.output)).await;
        drop(lifeline);
        if !matches!(status, Ok(Some(_))) {
            self.end(&mut child).await;
        }
        let rest = async {
            output.rest().await;
            let mut said = String::new();
            if let Some(complaint) = &mut complaint {
                // Error output that is not valid UTF-8 is ignored.
                let _ = complaint.read_to_string(&mut said).await;
            }
            said
        };
        let complaint = timeout(GRACE, rest).await.unwrap_or_default();
        let text = output.into_text();
        let Some((_, said)) = text.split_once(BEGUN) else {
            let image = &self.container.image;
            let why = complaint.trim();
            return Err(format!(
                "could not start a container from the image {image}: {why}{}",
                text.trim()
            ));
        };
        let end = match status {
            Err(_) => End::TimedOut,
            Ok(None) => End::OutputTooLong,
            Ok(Some(_)) if said.ends_with(NO_MEMORY) => End::OutOfMemory,
            Ok(Some(status)) => match exit_code(status.map_err(|error| error.to_string())?) {
                // The script returns this status at its deadline.
                TIMED_OUT if start.elapsed() >= command.deadline => End::TimedOut,
                status => End::Exited(status),
            },
        };
        let said = said.strip_suffix(NO_MEMORY).unwrap_or(said);
        Ok(Captured {
            end,
            output: relocate(said, Path::new(HOME), self.root),
            elapsed: start.elapsed(),
        })
    }

    /// Waits for the client, and removes a container that did not end when its input closed.
    async fn end(&self, child: &mut Child) {
        if timeout(GRACE, child.wait()).await.is_err() {
            let Ok(mut remove) = self.command() else {
                return;
            };
            remove
                .args(["rm", "--force", &self.name])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true);
            if let Ok(mut removing) = remove.spawn() {
                // If the removal fails, the deadline in the script ends the container.
                let _ = timeout(GRACE, removing.wait()).await;
            }
            let _ = child.kill().await;
        }
    }

    /// Builds a command of the client. Its `PATH` contains no directory of the project.
    fn command(&self) -> io::Result<Command> {
        let programs = HostPrograms::outside(self.root);
        let client = programs.find(&self.container.client.to_string_lossy());
        let client = client.map_err(io::Error::other)?;
        let command = programs.command(&client, Variables::Inherited, Path::new("/"));
        Ok(Command::from(command))
    }

    fn client(&self, command: &ShadowCommand) -> io::Result<Command> {
        let mut client = self.command()?;
        client
            .args(["run", "--rm", "--interactive", "--pull=never"])
            .args(["--network=none", "--security-opt=no-new-privileges"])
            // Without this option, SELinux would deny the container access to the tree.
            .args(["--security-opt=label=disable", "--name", &self.name])
            .arg(format!("--memory={}", self.bounds.memory))
            .arg(format!("--memory-swap={}", self.bounds.memory))
            .arg(format!("--pids-limit={}", self.bounds.processes))
            .arg(format!(
                "--mount=type=bind,source={},target=/starling,readonly",
                self.tree.display()
            ));
        for (name, value) in variables(&command.environment, self.root) {
            client.arg(format!("--env={name}={value}"));
        }
        let line = relocate(&command.line, self.root, Path::new(HOME));
        client
            .args(["--entrypoint=/bin/sh", &self.container.image])
            .args(["-c", SCRIPT, "starling", HOME])
            .arg(command.deadline.as_secs().max(1).to_string())
            .arg(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(client)
    }
}

/// Exit status of a command that the script stopped at its deadline.
const TIMED_OUT: i32 = 124;

/// Returns the variables that are set for a command in addition to the image's own.
fn variables(environment: &BTreeMap<OsString, OsString>, root: &Path) -> Vec<(String, String)> {
    let kept = environment.iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        let outside = OUTSIDE.contains(&name) || name.starts_with("LC_");
        let value = || relocate(value, root, Path::new(HOME));
        (!outside).then(|| (name.to_owned(), value()))
    });
    kept.collect()
}

/// Derives a unique container name from the unique name of the scratch directory.
fn name_of(scratch: &Path) -> String {
    let own = scratch.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let own: String = own.chars().filter(|c| plain(*c)).collect();
    format!("starling-{own}")
}

#[cfg(test)]
mod tests;

//! Python environments for the tests of instances. They are built once and shared.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

use starling_runner::quote;
use starling_workspace::{HostPrograms, Variables};

/// Time limit of one build step. Packages may have to be compiled.
const DEADLINE: Duration = Duration::from_secs(900);
/// Name of the file that marks a completely built environment.
const BUILT: &str = "starling-built";
/// Tool versions that can install the requirements of older projects. Later versions cannot.
const OLD_TOOLS: [&str; 3] = ["pip<22", "wheel", "setuptools<66"];
/// Tools for Python 3.12 and later, on which the old versions do not start.
const TOOLS: [&str; 3] = ["pip", "wheel", "setuptools"];
/// Port of an environment's service, inside the sandbox of its tests.
const PORT: &str = "18765";

/// The requirements of one instance's tests, and the commands that run them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Environment {
    pub instance_id: String,
    /// Major and minor version of Python.
    pub python: String,
    /// Requirements in pip's format.
    #[serde(default)]
    pub pip: Vec<String>,
    /// Environment variables. `$PWD` in a value is the checkout. `VALUE  # COMMAND` starts a
    /// service first; `PORT` in both parts is the port on which it listens.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Command that runs the tests that the change must fix.
    pub test_cmd_f2p: String,
    /// Command that runs the touched test files.
    pub test_cmd_p2p: String,
    /// Tests of PASS_TO_PASS that fail in this environment even with the known change.
    #[serde(default)]
    pub p2p_unavailable: Vec<String>,
}

/// Error when an environment cannot be read or built.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    #[error("{}: {error}", .path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{}, line {line}: {error}", .path.display())]
    NoEnvironment {
        path: PathBuf,
        line: usize,
        error: serde_json::Error,
    },
    #[error("Python {version} was not found: install python{version} in PATH or with pyenv")]
    NoPython { version: String },
    #[error("cannot build the test environment {}: {step} failed: {message}", .path.display())]
    NotBuilt {
        path: PathBuf,
        step: String,
        message: String,
    },
}

/// Returns all environments of a file, by instance id.
///
/// # Errors
/// Fails if the file cannot be read, or if a line is not a valid environment.
pub fn read_environments(path: &Path) -> Result<BTreeMap<String, Environment>, EnvironmentError> {
    let text = std::fs::read_to_string(path).map_err(|error| EnvironmentError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, row)| !row.trim().is_empty());
    let read = |(line, row)| {
        let found: Result<Environment, _> = serde_json::from_str(row);
        let found = found.map_err(|error| EnvironmentError::NoEnvironment {
            path: path.to_owned(),
            line,
            error,
        })?;
        Ok((found.instance_id.clone(), found))
    };
    lines.map(read).collect()
}

impl Environment {
    /// Returns the Python environment in `cache`, and builds it if necessary. Instances with the
    /// same requirements share it.
    ///
    /// # Errors
    /// Fails if the Python version is not installed, or if a package cannot be installed.
    pub async fn built(&self, cache: &Path) -> Result<PathBuf, EnvironmentError> {
        let wanted = format!("{} {}", self.python, self.pip.join(" "));
        let name = xxhash_rust::xxh3::xxh3_64(wanted.as_bytes());
        let unreadable = |error| EnvironmentError::Unreadable {
            path: cache.to_owned(),
            error,
        };
        let cache = std::path::absolute(cache).map_err(unreadable)?;
        let path = cache.join("environments").join(format!("{name:016x}"));
        if path.join(BUILT).exists() {
            return Ok(path);
        }
        let _lock = locked(&path)
            .await
            .map_err(|error| EnvironmentError::Unreadable {
                path: path.clone(),
                error,
            })?;
        // Another process built it during the wait for the lock.
        if path.join(BUILT).exists() {
            return Ok(path);
        }
        // Removes the rest of an interrupted build.
        let _ = std::fs::remove_dir_all(&path);
        let python = python(&self.python).ok_or_else(|| EnvironmentError::NoPython {
            version: self.python.clone(),
        })?;
        // Python runs isolated and in its own directory, so that it cannot import modules from the
        // current one.
        std::fs::create_dir_all(&path).map_err(|error| EnvironmentError::Unreadable {
            path: path.clone(),
            error,
        })?;
        let programs = HostPrograms::outside_current_directory();
        let isolated = |python: &Path, module: &str| {
            let mut command = Command::from(programs.command(python, Variables::Inherited, &path));
            command.args(["-I", "-m", module]);
            command
        };
        let mut make = isolated(&python, "venv");
        make.arg(&path);
        step(&path, "a virtual environment", make).await?;
        let own = path.join("bin/python");
        for (what, packages) in [
            ("pip", &tools(&self.python).map(str::to_owned)[..]),
            ("packages", &self.pip),
        ] {
            let mut install = isolated(&own, "pip");
            install
                .args(["install", "--quiet", "--disable-pip-version-check"])
                .args(packages);
            if !packages.is_empty() {
                step(&path, what, install).await?;
            }
        }
        std::fs::write(path.join(BUILT), wanted).map_err(|error| EnvironmentError::Unreadable {
            path: path.clone(),
            error,
        })?;
        Ok(path)
    }

    /// Returns the variables of a process whose tests use the Python at `python`.
    pub fn variables(&self, python: &Path, checkout: &Path) -> Vec<(String, String)> {
        let bin = python.join("bin");
        let path = match std::env::var_os("PATH") {
            Some(path) => {
                let rest = std::env::split_paths(&path);
                std::env::join_paths(std::iter::once(bin).chain(rest)).unwrap_or_default()
            }
            None => bin.into_os_string(),
        };
        let own = self.env.iter().map(|(name, value)| {
            let (value, _) = value_and_service(value, checkout);
            (name.clone(), value)
        });
        [
            ("PATH".to_owned(), path.to_string_lossy().into_owned()),
            (
                "VIRTUAL_ENV".to_owned(),
                python.to_string_lossy().into_owned(),
            ),
        ]
        .into_iter()
        .chain(own)
        .collect()
    }

    /// Returns the shell commands that start the services, or `None` if there are none.
    pub fn services(&self, checkout: &Path) -> Option<String> {
        let services = self.env.values();
        let services = services.filter_map(|value| value_and_service(value, checkout).1);
        let lines: String = services.map(|service| start(&service)).collect();
        Some(lines).filter(|lines| !lines.is_empty())
    }

    /// Returns a shell command that runs `command` in a checkout, with the Python at `python`.
    pub fn line(&self, command: &str, python: &Path, checkout: &Path) -> String {
        let mut line = format!(
            "export PATH={}:\"$PATH\"\n",
            quote(&python.join("bin").to_string_lossy())
        );
        for (name, value) in &self.env {
            let (value, service) = value_and_service(value, checkout);
            if let Some(service) = service {
                line.push_str(&start(&service));
            }
            line.push_str(&format!("export {name}={}\n", quote(&value)));
        }
        line.push_str(command);
        line
    }
}

/// Returns a variable's value in a checkout, and the command of the service that it needs.
fn value_and_service(text: &str, checkout: &Path) -> (String, Option<String>) {
    let checkout = checkout.to_string_lossy();
    match text.split_once("  # ") {
        Some((value, service)) => {
            let service = service.trim_end_matches(" in the same environment");
            let value = value.trim_end().replace("$PWD", &checkout);
            (
                value.replace("PORT", PORT),
                Some(service.replace("PORT", PORT)),
            )
        }
        None => (text.replace("$PWD", &checkout), None),
    }
}

/// Returns a shell command that starts a service in the background and waits until it listens.
fn start(service: &str) -> String {
    format!(
        "{service} >/dev/null 2>&1 &\n\
         python -c 'import socket, time\nfor _ in range(100):\n    try:\n        \
         socket.create_connection((\"127.0.0.1\", {PORT})); break\n    \
         except OSError:\n        time.sleep(0.1)'\n"
    )
}

/// Takes the lock on an environment, so that no other task or process builds it at the same time.
async fn locked(path: &Path) -> std::io::Result<File> {
    let place = path.with_extension("lock");
    let lock = move || {
        std::fs::create_dir_all(place.parent().unwrap_or(&place))?;
        let file = File::create(&place)?;
        file.lock()?;
        Ok(file)
    };
    tokio::task::spawn_blocking(lock)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

async fn step(path: &Path, what: &str, mut command: Command) -> Result<(), EnvironmentError> {
    let failed = |message: String| EnvironmentError::NotBuilt {
        path: path.to_owned(),
        step: what.to_owned(),
        message,
    };
    command.stdin(Stdio::null()).kill_on_drop(true);
    let done = tokio::time::timeout(DEADLINE, command.output()).await;
    match done {
        Err(_) => Err(failed(format!("took over {} s", DEADLINE.as_secs()))),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let message = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = message.trim().lines().rev().take(5).collect();
            Err(failed(
                last.into_iter().rev().collect::<Vec<_>>().join("\n"),
            ))
        }
    }
}

/// Finds a Python of a version: pyenv's own, else a program on `PATH`. pyenv comes first because
/// its shims on `PATH` may not work.
fn python(version: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("PYENV_ROOT") {
        Some(root) => PathBuf::from(root),
        None => std::env::home_dir()?.join(".pyenv"),
    };
    let versions = std::fs::read_dir(root.join("versions"));
    let mut found: Vec<PathBuf> = versions
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.strip_prefix(version)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .map(|entry| entry.path().join("bin/python"))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().or_else(|| {
        let name = format!("python{version}");
        let programs = HostPrograms::outside_current_directory();
        programs.find(&name).ok()
    })
}

/// Returns the tools that install packages for this Python version.
fn tools(version: &str) -> [&'static str; 3] {
    let minor = version.strip_prefix("3.").and_then(|minor| {
        let digits = minor.split('.').next();
        digits.and_then(|digits| digits.parse::<u32>().ok())
    });
    match minor {
        Some(12..) => TOOLS,
        Some(_) | None => OLD_TOOLS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_python_versions_get_old_packaging_tools() {
        for (version, wanted) in [
            ("2.7", OLD_TOOLS),
            ("3.6", OLD_TOOLS),
            ("3.11", OLD_TOOLS),
            ("3.12", TOOLS),
            ("3.13.1", TOOLS),
        ] {
            assert_eq!(tools(version), wanted, "{version}");
        }
    }

    const ROW: &str = r#"{"instance_id":"a__b-1","python":"3","pip":[],"env":{"A":"$PWD/x y","URL":"http://127.0.0.1:PORT/  # serve PORT in the same environment"},"test_cmd_f2p":"t1","test_cmd_p2p":"t2","seconds":1.0}"#;

    #[test]
    fn command_line_sets_the_environment_variables_of_the_command() {
        let environment: Environment = serde_json::from_str(ROW).unwrap();
        let line = environment.line("python -m t", Path::new("/e"), Path::new("/c"));
        assert!(line.starts_with("export PATH=/e/bin:\"$PATH\"\n"), "{line}");
        assert!(line.contains("export A='/c/x y'\n"), "{line}");
        assert!(line.contains("serve 18765 >/dev/null 2>&1 &\n"), "{line}");
        assert!(
            line.contains("export URL=http://127.0.0.1:18765/\n"),
            "{line}"
        );
        assert!(line.ends_with("\npython -m t"), "{line}");
        let variables = environment.variables(Path::new("/e"), Path::new("/c"));
        let url = ("URL".to_owned(), "http://127.0.0.1:18765/".to_owned());
        assert!(variables.contains(&url), "{variables:?}");
        let services = environment.services(Path::new("/c")).unwrap();
        assert!(
            services.starts_with("serve 18765 >/dev/null 2>&1 &\n"),
            "{services}"
        );
    }

    #[tokio::test]
    async fn test_environment_is_built_only_once() {
        let cache = tempfile::tempdir().unwrap();
        let mut environment: Environment = serde_json::from_str(ROW).unwrap();
        environment.python = "9.9".into();
        let error = environment.built(cache.path()).await.unwrap_err();
        assert!(
            error.to_string().contains("Python 9.9 was not found"),
            "{error}"
        );
        let wanted = "9.9 ";
        let name = xxhash_rust::xxh3::xxh3_64(wanted.as_bytes());
        let path = cache.path().join(format!("environments/{name:016x}"));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(BUILT), wanted).unwrap();
        assert_eq!(environment.built(cache.path()).await.unwrap(), path);
    }

    #[test]
    fn environment_file_error_names_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("e.jsonl");
        std::fs::write(&path, format!("{ROW}\n[]\n")).unwrap();
        let error = read_environments(&path).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        std::fs::write(&path, ROW).unwrap();
        assert_eq!(
            read_environments(&path).unwrap()["a__b-1"].test_cmd_p2p,
            "t2"
        );
    }
}

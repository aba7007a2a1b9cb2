//! `starling swebench run --ray`: distributes instances over a cluster and collects the results.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::args::RunArgs;
use crate::cli::WrongUse;
use starling_bench::{self as bench, Record, RunDirectory, Task};
use starling_core::Dollars;
use starling_platform::files::PathExt;
use starling_sandbox::Scratch;
use starling_workspace::{HostPrograms, Variables};

/// Python script that calls Ray, which has no Rust API.
const DRIVER: &str = include_str!("ray.py");
/// Number of times that an instance is restarted after its node was lost.
const RETRIES: u32 = 5;
/// Extra time, beyond its own limit, for a task to end or to restart on another node.
const GRACE: Duration = Duration::from_secs(300);

/// A message of the driver about one instance.
#[derive(Debug, Deserialize)]
struct RayMessage {
    id: String,
    record: Option<Record>,
    story: Option<String>,
    error: Option<String>,
}

/// Runs the instances that have no record in `place` yet, and calls `seen` with each new record.
pub(super) async fn run(
    args: &RunArgs,
    address: &str,
    tasks: &[&Task],
    place: &RunDirectory,
    mut seen: impl FnMut(&Record),
) -> anyhow::Result<()> {
    let done = place.records()?;
    let left: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let left: Vec<&str> = left
        .into_iter()
        .filter(|id| !done.contains_key(*id))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let limit = Duration::from_secs(args.budget_seconds) + GRACE;
    let wanted = json!({
        "address": address, "ids": left, "retries": RETRIES, "seconds": limit.as_secs(),
        "command": command(args)?,
    });
    let python = args.ray_python.display();
    let folder = Scratch::temporary()?;
    let programs = HostPrograms::outside_current_directory();
    let program = programs
        .find(&args.ray_python.to_string_lossy())
        .map_err(|error| WrongUse(format!("{error}; choose a Python with --ray-python")))?;
    // The driver runs in a new directory, so that it cannot import modules from the current one.
    let driver = programs.command(&program, Variables::Inherited, folder.path());
    let mut child = Command::from(driver)
        .args(["-c", DRIVER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            WrongUse(format!(
                "{python}: {error}; choose a Python with --ray-python"
            ))
        })?;
    let mut stdin = child
        .stdin
        .take()
        .context("the Ray driver has no standard input")?;
    let stdout = child
        .stdout
        .take()
        .context("the Ray driver has no standard output")?;
    stdin.write_all(format!("{wanted}\n").as_bytes()).await?;
    let mut lines = BufReader::new(stdout).lines();
    let mut missing = left.len();
    while missing > 0 {
        let line = tokio::time::timeout(limit, lines.next_line()).await;
        let seconds = limit.as_secs();
        let line = line.with_context(|| {
            format!("no result came from the Ray cluster within {seconds} s: does the cluster have nodes with free CPUs?")
        })??;
        let Some(line) = line else {
            anyhow::bail!(
                "the Ray driver ended with {missing} instances missing: does {python} have the package ray, and is there a cluster at {address}?"
            );
        };
        let Ok(said) = serde_json::from_str::<RayMessage>(&line) else {
            continue;
        };
        let (record, story) = said.kept(folder.path())?;
        place.keep(&record, story.as_deref())?;
        seen(&record);
        missing -= 1;
    }
    // The driver exits when its standard input closes.
    drop(stdin);
    Ok(())
}

impl RayMessage {
    /// Returns the record and the file to which the trajectory was written.
    fn kept(self, folder: &Path) -> anyhow::Result<(Record, Option<PathBuf>)> {
        let record = self.record.unwrap_or_else(|| Record {
            instance_id: self.id,
            outcome: bench::Outcome::Failed {
                why: self
                    .error
                    .unwrap_or_else(|| "the Ray task returned nothing".into()),
                dollars: Dollars::default(),
            },
            seconds: 0.0,
            memory: 0,
        });
        let Some(story) = self.story else {
            return Ok((record, None));
        };
        let file = folder.join("story");
        std::fs::write(&file, story)?;
        Ok((record, Some(file)))
    }
}

/// Returns this program with this run's arguments, as every node can start it. The instances are
/// appended later.
fn command(args: &RunArgs) -> anyhow::Result<Vec<String>> {
    let program =
        std::env::current_exe().context("cannot find the path of the starling executable")?;
    let mut words: Vec<OsString> = vec![program.into(), "swebench".into(), "run".into()];
    let mut add = |name: &str, value: OsString| words.extend([name.into(), value]);
    add("--dataset", whole(&args.data.dataset)?);
    add("--repos", whole(&args.data.repos)?);
    for (name, path) in &args.data.repo {
        let mut value = OsString::from(format!("{name}="));
        value.push(whole(path)?);
        add("--repo", value);
    }
    if let Some(file) = &args.environments {
        add("--environments", whole(file)?);
    }
    if let Some(image) = &args.containers.container {
        add("--container", image.to_string().into());
    }
    if let Some(client) = &args.containers.container_client {
        add("--container-client", client.into());
    }
    if let Some(model) = &args.model {
        add("--model", model.into());
    }
    add("--driver", args.driver.name().into());
    add("--budget-seconds", args.budget_seconds.to_string().into());
    if let Some(dollars) = args.budget_usd {
        add("--budget-usd", dollars.to_string().into());
    }
    for set in &args.set {
        add("-c", set.into());
    }
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            WrongUse(format!(
                "{}: this argument is not UTF-8 text",
                word.display()
            ))
            .into()
        })
    };
    words.into_iter().map(text).collect()
}

/// Returns an absolute path, because nodes have other working directories.
fn whole(path: &Path) -> anyhow::Result<OsString> {
    let whole = path
        .canonical()
        .map_err(|error| WrongUse(format!("{}: {error}", path.display())))?;
    Ok(whole.into())
}

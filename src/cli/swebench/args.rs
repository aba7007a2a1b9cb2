//! What `starling swebench` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use starling_core::Driver;

use crate::cli::args::{dollars, driver};
use starling_bench::{Containers, Format, ImageTemplate, Repositories};
use starling_sandbox::Container;

#[derive(Debug, Subcommand)]
pub enum SwebenchCommand {
    /// How many known changes the edit engine can say as proposals, byte for byte. No model takes part.
    Ceiling(CeilingArgs),
    /// Solve instances: each in a checkout of its own, by the program itself without a window.
    Run(RunArgs),
    /// Write the pages of a run again: a table of all instances, and the story of each.
    Report {
        /// The folder that the run was given as --out.
        out: PathBuf,
    },
    /// Run the hidden tests over predicted changes.
    Grade(GradeArgs),
    /// Write what runs said to models as data for training, one example a line, as JSON.
    Export(ExportArgs),
    /// Let a trainer drive instances as environments, over lines of JSON on stdin and stdout.
    Env(EnvArgs),
}

/// Instances and the repositories that they are of.
#[derive(Debug, Clone, Args)]
pub struct DatasetArgs {
    /// Instances as SWE-bench writes them: one a line as JSON, or a parquet file.
    #[arg(long, value_name = "FILE")]
    pub dataset: PathBuf,
    /// Holds the repositories, `owner/name` as DIR/owner__name, bare or not.
    #[arg(long, value_name = "DIR")]
    pub repos: PathBuf,
    /// A repository that lies elsewhere, as often as you like.
    #[arg(long, value_name = "OWNER/NAME=PATH", value_parser = place)]
    pub repo: Vec<(String, PathBuf)>,
    /// Only these instances.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub ids: Vec<String>,
}

impl DatasetArgs {
    pub fn repositories(&self) -> Repositories {
        Repositories {
            directory: self.repos.clone(),
            elsewhere: self.repo.iter().cloned().collect(),
        }
    }
}

fn place(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if name.contains('/') && !path.is_empty() => {
            Ok((name.to_owned(), path.into()))
        }
        Some(_) | None => Err("expected owner/name=PATH".into()),
    }
}

/// Where tests run in place of the sandbox.
#[derive(Debug, Clone, Args)]
pub struct ContainerArgs {
    /// Run the tests of each instance in containers of this image, {id} being the instance, for example
    /// swebench/sweb.eval.x86_64.{id}. Its `__` becomes `_1776_`, or X in {id:X}. Nothing is pulled.
    #[arg(long, value_name = "IMAGE")]
    pub container: Option<ImageTemplate>,
    /// docker, podman, or another program with their command line; else the one that is found.
    #[arg(long, value_name = "CLIENT", requires = "container")]
    pub container_client: Option<PathBuf>,
}

impl ContainerArgs {
    pub fn containers(&self) -> Option<Containers> {
        let client = self.container_client.clone();
        Some(Containers {
            template: self.container.clone()?,
            client: client.unwrap_or_else(Container::client_found),
        })
    }
}

#[derive(Debug, Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// What the tests of each instance need, one a line, as JSON.
    #[arg(long, value_name = "FILE", required_unless_present = "container")]
    pub environments: Option<PathBuf>,
    #[command(flatten)]
    pub containers: ContainerArgs,
    /// One agent per symbol, or one agent over all symbols.
    #[arg(long, value_parser = driver(), default_value = "swarm")]
    pub driver: Driver,
    /// Set a key of the configuration, as often as you like.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Stop an episode after this many seconds, those in which the policy thinks among them.
    #[arg(long, value_name = "S", default_value_t = 1800)]
    pub budget_seconds: u64,
    /// Go when nothing was said for so long.
    #[arg(long, value_name = "S", default_value_t = 3600)]
    pub idle_seconds: u64,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Folders that runs were given as --out.
    #[arg(long, value_name = "DIR", num_args = 1.., required = true)]
    pub out_of: Vec<PathBuf>,
    /// What `grade --json` said of each, in the same order; of a run of samples it is there already.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub graded: Vec<PathBuf>,
    /// What an example is.
    #[arg(long, value_enum)]
    pub format: FormatArg,
    /// The part of the data that the instances are of; stands in each line.
    #[arg(long, value_name = "NAME")]
    pub split: String,
    /// Data sets whose instances are kept for measuring, and not to be trained on.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub held_out: Vec<PathBuf>,
    /// Train on what is kept for measuring all the same.
    #[arg(long)]
    pub allow_held_out: bool,
    /// Write there, not to standard output.
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// Formats by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FormatArg {
    /// Conversations of resolved instances, as chat messages.
    Sft,
    /// Pairs of a resolved and an unresolved conversation that begin alike.
    Preferences,
    /// Everything that was said, as it was recorded.
    Raw,
}

impl FormatArg {
    pub fn format(self) -> Format {
        match self {
            FormatArg::Sft => Format::Sft,
            FormatArg::Preferences => Format::Preferences,
            FormatArg::Raw => Format::Raw,
        }
    }
}

#[derive(Debug, Args)]
pub struct CeilingArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// The result as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// Directory for predictions, trajectories and the report. If it holds a partial run with the same
    /// settings, of the same program, that run is resumed.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// What the tests of each instance need, one a line, as JSON; else they run with the Python that
    /// is found.
    #[arg(long, value_name = "FILE", conflicts_with = "container")]
    pub environments: Option<PathBuf>,
    #[command(flatten)]
    pub containers: ContainerArgs,
    /// The model, as of `starling run`; `oracle` answers from the known changes themselves.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// One agent per symbol, or one agent over all symbols.
    #[arg(long, value_parser = driver(), default_value = "swarm")]
    pub driver: Driver,
    /// Set a key of the configuration, as often as you like.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Solve each instance so many times, and choose one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub samples: usize,
    /// How samples differ, as often as you like, in turn: model=…, driver=…, temperature=… (0.8 where
    /// none is given), with commas between.
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = kind)]
    pub sample: Vec<Kind>,
    /// Who judges samples: a model, as of --model, or an endpoint (http://…) that takes
    /// {"problem", "patch"} and answers {"score"} from 0 to 1.
    #[arg(long, value_name = "MODEL|URL")]
    pub verifier: Option<String>,
    /// So many at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// The part I of N: every Nth instance, from the Ith on.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<Shard>,
    /// Spread the instances over the Ray cluster at this address, each a task of one CPU; every node has
    /// to see the same files.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "budget_usd_all")]
    pub ray: Option<String>,
    /// The Python that has the package ray, of the cluster's version.
    #[arg(long, value_name = "PATH", default_value = "python3", requires = "ray")]
    pub ray_python: PathBuf,
    /// Run failed instances again. What their earlier attempts cost still counts.
    #[arg(long)]
    pub retry_failed: bool,
    /// Stop an instance when this much money is spent for it.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd: Option<f64>,
    /// Begin no instance after this much money is spent for all.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd_all: Option<f64>,
    /// Stop an instance after this many seconds.
    #[arg(long, value_name = "S", default_value_t = 1800)]
    pub budget_seconds: u64,
    /// The report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What one sample has of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kind {
    pub model: Option<String>,
    pub driver: Option<Driver>,
    pub temperature: Option<f64>,
}

fn kind(text: &str) -> Result<Kind, String> {
    let mut kind = Kind::default();
    for part in text.split(',') {
        match part.split_once('=') {
            Some(("model", model)) => kind.model = Some(model.to_owned()),
            Some(("driver", name)) => {
                let driver = serde_json::from_value(name.into());
                kind.driver = Some(driver.map_err(|_| format!("{name} is no driver"))?);
            }
            Some(("temperature", value)) => {
                let value: f64 = value.parse().map_err(|_| format!("{value} is no number"))?;
                kind.temperature = Some(value);
            }
            Some(_) | None => {
                return Err(format!(
                    "{part}: expected model=…, driver=… or temperature=…"
                ));
            }
        }
    }
    Ok(kind)
}

/// A part of all instances, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub part: usize,
    pub of: usize,
}

fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(part, of)| {
        let (part, of) = (part.parse().ok()?, of.parse().ok()?);
        (1 <= part && part <= of).then_some(Shard { part, of })
    });
    parts.ok_or_else(|| "expected I/N with I from 1 to N".into())
}

#[derive(Debug, Args)]
pub struct GradeArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// Predictions as SWE-bench reads them; `gold` grades the known changes themselves. A folder that
    /// `run --samples` was given as --out: every sample, and what choosing among them is worth.
    #[arg(long, value_name = "FILE|DIR")]
    pub predictions: PathBuf,
    /// What the tests of each instance need, one a line, as JSON. With --container its commands run in
    /// there; without it, the tests that the data set names are run and looked at.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["container", "official"])]
    pub environments: Option<PathBuf>,
    #[command(flatten)]
    pub containers: ContainerArgs,
    /// Let the package `swebench` grade: it needs Python, docker, and images that can be pulled.
    #[arg(long, conflicts_with_all = ["environments", "container"])]
    pub official: bool,
    /// The Python that has the package.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "python3",
        requires = "official"
    )]
    pub python: PathBuf,
    /// So many at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// Seconds that one run of tests may take.
    #[arg(long, value_name = "S", default_value_t = 900)]
    pub test_seconds: u64,
    /// The result as JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_samples_are_read() {
        let read = kind("model=openai:m,driver=single,temperature=0.5").unwrap();
        assert_eq!(read.model.as_deref(), Some("openai:m"));
        assert_eq!(read.driver, Some(Driver::Single));
        assert_eq!(read.temperature, Some(0.5));
        for wrong in ["", "model", "driver=many", "temperature=warm", "seed=3"] {
            assert!(kind(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_count_from_one() {
        assert_eq!(shard("2/3"), Ok(Shard { part: 2, of: 3 }));
        for wrong in ["0/3", "4/3", "1", "a/b", ""] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}

//! The arguments of `starling swebench`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use starling_core::Driver;

use crate::cli::option_values::{dollars, driver, path};
use starling_bench::{Containers, Format, ImageTemplate, Repositories};
use starling_sandbox::Container;

// The subcommands of `starling swebench`. Their doc comments are the help texts.
#[derive(Debug, Subcommand)]
pub enum SwebenchCommand {
    /// Count the instances whose known solution Starling can express exactly (byte for byte) as proposals:
    /// an upper limit for every model. Calls no model.
    Ceiling(CeilingArgs),
    /// Solve instances: run Starling on each of them, in a separate checkout.
    Run(RunArgs),
    /// Write the HTML report of a run again: a table of all instances, and a page with the log of each.
    Report {
        /// The directory that was passed to the run as --out.
        #[arg(value_parser = path())]
        out: PathBuf,
    },
    /// Grade predicted changes with the hidden tests.
    Grade(GradeArgs),
    /// Export the conversations of runs with models as training data, one example per line (JSON Lines).
    Export(ExportArgs),
    /// Serve instances as environments for reinforcement learning: a trainer sends and receives JSON lines
    /// on stdin and stdout.
    Env(EnvArgs),
}

/// A data set of instances, and the repositories that they belong to.
#[derive(Debug, Clone, Args)]
pub struct DatasetArgs {
    /// The instances, in the format of SWE-bench: JSON Lines, or a Parquet file.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub dataset: PathBuf,
    /// Directory of the git repositories: owner/name is at DIR/owner__name, bare or not.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repos: PathBuf,
    /// Path of a repository that is not in the directory of --repos. May be repeated.
    #[arg(long, value_name = "OWNER/NAME=PATH", value_parser = repository_path)]
    pub repo: Vec<(String, PathBuf)>,
    /// Use only the instances with these ids.
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

/// Requires one of the arguments that say where tests run, and shows them as required.
fn tests_run_in(arguments: &[&'static str]) -> ArgGroup {
    ArgGroup::new("tests_run_in")
        .args(arguments.iter().copied())
        .required(true)
        .multiple(true)
}

fn repository_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if name.contains('/') && !path.is_empty() => {
            let path = std::path::absolute(path).map_err(|error| error.to_string())?;
            Ok((name.to_owned(), path))
        }
        Some(_) | None => Err("expected owner/name=PATH".into()),
    }
}

/// The container that tests run in instead of the sandbox.
#[derive(Debug, Clone, Args)]
pub struct ContainerArgs {
    /// Run the tests of each instance in a container of this image, for example
    /// swebench/sweb.eval.x86_64.{id}. {id} is the instance id with `_1776_` for `__`; {id:X} has X for
    /// `__`. Images are not pulled.
    #[arg(long, value_name = "IMAGE")]
    pub container: Option<ImageTemplate>,
    /// The container client: docker, podman, or a program with the same command line. Default: the first
    /// that is found in PATH.
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

// The arguments of `starling swebench env`.
#[derive(Debug, Args)]
#[command(group = tests_run_in(&["environments", "container"]))]
pub struct EnvArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// File with the test environment of each instance, as JSON Lines. Required without --container.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub environments: Option<PathBuf>,
    #[command(flatten)]
    pub containers: ContainerArgs,
    /// Use one agent for each symbol (swarm), or one agent for all symbols (single).
    #[arg(long, value_parser = driver(), default_value = "swarm")]
    pub driver: Driver,
    /// Set a configuration key, for example limits.calls=3. May be repeated.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Stop an episode after this many seconds, including the time that the trained policy takes.
    #[arg(long, value_name = "S", default_value_t = 1800)]
    pub budget_seconds: u64,
    /// Exit after receiving no request for this many seconds.
    #[arg(long, value_name = "S", default_value_t = 3600)]
    pub idle_seconds: u64,
}

// The arguments of `starling swebench export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Directories that were passed to runs as --out.
    #[arg(long, value_name = "DIR", num_args = 1.., required = true, value_parser = path())]
    pub out_of: Vec<PathBuf>,
    /// Output of `grade --json` for each directory of --out-of, in the same order. Not needed for runs with
    /// --samples, whose directories already contain the grades.
    #[arg(long, value_name = "FILE", num_args = 1.., value_parser = path())]
    pub graded: Vec<PathBuf>,
    /// Format of an example.
    #[arg(long, value_enum)]
    pub format: FormatArg,
    /// Name of the data split (such as train or test) of the instances; written in each line.
    #[arg(long, value_name = "NAME")]
    pub split: String,
    /// Data sets that are reserved for evaluation: their instances are not exported.
    #[arg(long, value_name = "FILE", num_args = 1.., value_parser = path())]
    pub held_out: Vec<PathBuf>,
    /// Export instances that are reserved for evaluation, too.
    #[arg(long)]
    pub allow_held_out: bool,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub to: Option<PathBuf>,
}

/// The formats of an exported example, as values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FormatArg {
    /// Conversations of resolved instances, as chat messages.
    Sft,
    /// Pairs of a resolved and an unresolved conversation with the same beginning.
    Preferences,
    /// All messages, as they were recorded.
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

// The arguments of `starling swebench ceiling`.
#[derive(Debug, Args)]
pub struct CeilingArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

// The arguments of `starling swebench run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// Directory for predictions, trajectories and the report. If it holds a partial run with the same
    /// settings and the same build of Starling, that run is resumed.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub out: PathBuf,
    /// File with the test environment of each instance, as JSON Lines. Default: the tests run with the
    /// Python that is found in the checkout or in PATH.
    #[arg(long, value_name = "FILE", conflicts_with = "container", value_parser = path())]
    pub environments: Option<PathBuf>,
    #[command(flatten)]
    pub containers: ContainerArgs,
    /// The model, as in `starling run --model`; `oracle` replies with the reference changes.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Use one agent for each symbol (swarm), or one agent for all symbols (single).
    #[arg(long, value_parser = driver(), default_value = "swarm")]
    pub driver: Driver,
    /// Set a configuration key, for example limits.calls=3. May be repeated.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Number of times to solve each instance; one of the results is chosen.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub samples: usize,
    /// Settings of a sample, separated by commas: model=…, driver=…, temperature=… (default: 0.8). May be
    /// repeated; samples use the given settings in turn.
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = kind)]
    pub sample: Vec<SampleSettings>,
    /// The judge that scores samples: a model, as for --model, or an endpoint (http://…) that receives
    /// {"problem", "patch"} and returns {"score"} from 0 to 1.
    #[arg(long, value_name = "MODEL|URL")]
    pub verifier: Option<String>,
    /// Number of instances to process in parallel.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// Process only part I of N: every Nth instance, starting with the Ith.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<Shard>,
    /// Run the instances on the Ray cluster at this address, each as a task with one CPU. All nodes need
    /// access to the same files.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "budget_usd_all")]
    pub ray: Option<String>,
    /// Python interpreter that has the package ray, in the cluster's version.
    #[arg(long, value_name = "PATH", default_value = "python3", requires = "ray")]
    pub ray_python: PathBuf,
    /// Run failed instances again. The cost of their earlier attempts still counts.
    #[arg(long)]
    pub retry_failed: bool,
    /// Stop an instance after spending this many US dollars on it.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd: Option<f64>,
    /// Start no further instance after spending this many US dollars on all instances together.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd_all: Option<f64>,
    /// Stop an instance after this many seconds.
    #[arg(long, value_name = "S", default_value_t = 1800)]
    pub budget_seconds: u64,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The settings of one sample that differ from the settings of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampleSettings {
    pub model: Option<String>,
    pub driver: Option<Driver>,
    pub temperature: Option<f64>,
}

fn kind(text: &str) -> Result<SampleSettings, String> {
    let mut kind = SampleSettings::default();
    for part in text.split(',') {
        match part.split_once('=') {
            Some(("model", model)) => kind.model = Some(model.to_owned()),
            Some(("driver", name)) => {
                let driver = serde_json::from_value(name.into());
                kind.driver =
                    Some(driver.map_err(|_| {
                        format!("{name} is not a driver: expected swarm or single")
                    })?);
            }
            Some(("temperature", value)) => {
                let value: f64 = value
                    .parse()
                    .map_err(|_| format!("temperature {value} is not a number"))?;
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

/// The part `part` of `of` parts of all instances; parts are counted from 1.
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
    parts.ok_or_else(|| "expected I/N, with I from 1 to N, for example 2/3".into())
}

// The arguments of `starling swebench grade`.
#[derive(Debug, Args)]
#[command(group = tests_run_in(&["environments", "container", "official"]))]
pub struct GradeArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// Predictions in the format of SWE-bench; `gold` grades the reference changes. For the --out directory
    /// of a run with --samples, all samples are graded, and the choice among them is evaluated.
    #[arg(long, value_name = "FILE|DIR")]
    pub predictions: PathBuf,
    /// File with the test environment of each instance, as JSON Lines. With --container, its test commands
    /// run in the container; --container without this file runs the tests that the data set names.
    #[arg(long, value_name = "FILE")]
    pub environments: Option<PathBuf>,
    #[command(flatten)]
    pub containers: ContainerArgs,
    /// Grade with the official Python package `swebench`. It needs Python, Docker, and images that can be
    /// pulled.
    #[arg(long, conflicts_with_all = ["environments", "container"])]
    pub official: bool,
    /// Python interpreter that has the package swebench.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "python3",
        requires = "official"
    )]
    pub python: PathBuf,
    /// Number of instances to process in parallel.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// Time limit of one test run, in seconds.
    #[arg(long, value_name = "S", default_value_t = 900)]
    pub test_seconds: u64,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_samples_are_parsed() {
        let read = kind("model=openai:m,driver=single,temperature=0.5").unwrap();
        assert_eq!(read.model.as_deref(), Some("openai:m"));
        assert_eq!(read.driver, Some(Driver::Single));
        assert_eq!(read.temperature, Some(0.5));
        for wrong in ["", "model", "driver=many", "temperature=warm", "seed=3"] {
            assert!(kind(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn help_shows_that_a_place_for_the_tests_is_required() {
        use clap::Parser;

        /// A command line of a subcommand.
        #[derive(Debug, Parser)]
        struct Line {
            #[command(subcommand)]
            command: SwebenchCommand,
        }
        let line = |words: &str| Line::try_parse_from(words.split(' '));
        let error = |words: &str| line(words).unwrap_err().to_string();
        let help = error("x env --help");
        let required = "<--environments <FILE>|--container <IMAGE>>";
        assert!(help.contains(required), "{help}");
        let data = "--dataset d --repos r";
        let missing = error(&format!("x env {data}"));
        assert!(missing.contains(required), "{missing}");
        for given in [
            "--environments e",
            "--container a{id}",
            "--environments e --container a{id}",
        ] {
            line(&format!("x env {data} {given}")).unwrap();
            line(&format!("x grade {data} --predictions p {given}")).unwrap();
        }
        line(&format!("x grade {data} --predictions p --official")).unwrap();
        line(&format!("x grade {data} --predictions p")).unwrap_err();
    }

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!(shard("2/3"), Ok(Shard { part: 2, of: 3 }));
        for wrong in ["0/3", "4/3", "1", "a/b", ""] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}

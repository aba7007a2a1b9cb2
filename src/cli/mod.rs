//! The command line interface.

mod args;
mod ask;
mod code;
mod compose;
mod demo;
mod doctor;
mod editing;
mod embedded;
mod explain;
mod fetch;
mod first_model;
mod init;
mod input;
mod keys;
mod killed;
mod languages;
mod log;
mod lost_output;
mod lsp;
mod models;
mod option_values;
mod project;
mod question;
mod refactor;
mod review;
mod run;
mod screen;
#[cfg(feature = "local")]
mod serve;
#[cfg(feature = "local")]
mod serve_args;
mod services;
mod session_file;
mod slices;
mod standard;
mod status;
#[cfg(feature = "bench")]
mod swebench;
mod terminal;
mod trace;
mod trust;
mod undo;
mod view;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use starling_text::harmless_json;

use args::{Cli, Command, ConfigCommand, ConfigurationArgs};
use standard::{note, print, print_line};

const NO_DIRECTORY: &str = "the current directory does not exist any more";

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The command succeeded. For a run: the task is done, and nothing in it remains unproven.
    Settled,
    /// A run made changes that no test proves.
    Unproven,
    /// The task is not done, or the command failed.
    NotSettled,
    /// The command carried out its work, and stdout could not be written. stderr has the result.
    OutputLost,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Settled => ExitCode::SUCCESS,
            Outcome::NotSettled => ExitCode::from(1),
            Outcome::Unproven => ExitCode::from(3),
            Outcome::OutputLost => ExitCode::from(4),
        }
    }
}

/// The error for a command that was used incorrectly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

/// Stack size of a worker thread, in bytes. Without optimizations, a run needs up to 2 MiB: tokio's default.
const STACK_BYTES: usize = 8 << 20;

/// Runs the program and returns its exit code: 0 settled, 1 not settled, 2 wrong use, 3 changes
/// without proof, 4 result not written to stdout.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    #[cfg(feature = "local")]
    starling_local::threads::limit_thread_pools(matches!(cli.command, Command::Lsp(_)));
    if let Err(error) = log::start(cli.log_file.as_deref()) {
        note(format_args!("starling: {error}"));
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            note(format_args!(
                "starling: cannot start the worker threads: {error}"
            ));
            return ExitCode::from(1);
        }
    };
    let outcome = runtime.block_on(dispatch(cli.command));
    // Do not wait for a thread that reads stdin: it may never end.
    runtime.shutdown_background();
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            note(format_args!("starling: {error:#}"));
            let wrong_use = error.downcast_ref::<WrongUse>().is_some();
            ExitCode::from(if wrong_use { 2 } else { 1 })
        }
    }
}

async fn dispatch(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(args) => run::run(args).await,
        Command::Refactor(command) => refactor::run(command).await,
        Command::Review(args) => review::run(args).await,
        Command::Undo(args) => undo::run(args).await,
        Command::Ask(args) => ask::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Lsp(args) => lsp::run(&args).await,
        Command::Index(args) => code::index(&args),
        Command::Locate(args) => code::locate(&args),
        Command::Map(args) => code::map(&args),
        Command::References(args) => code::references(&args),
        Command::Definition(args) => code::definition(&args),
        Command::Symbols(args) => code::symbols(&args),
        Command::Init(args) => init::run(args).await,
        #[cfg(feature = "local")]
        Command::Serve(args) => serve::run(args).await,
        #[cfg(not(feature = "local"))]
        Command::Serve(_) => Err(WrongUse(args::WITHOUT_LOCAL.to_owned()).into()),
        Command::Models(command) => models::run(command).await,
        Command::Doctor { repo, json, world } => examine(repo.as_deref(), json, &world).await,
        Command::Config(ConfigCommand::Explain { key, json, world }) => {
            explain(key.as_deref(), json, &world)
        }
        #[cfg(feature = "bench")]
        Command::Swebench(command) => swebench::run(*command).await,
        #[cfg(not(feature = "bench"))]
        Command::Swebench(_) => Err(WrongUse(args::WITHOUT_BENCH.to_owned()).into()),
        Command::Trust(args) => trust::run(&args),
    }
}

async fn examine(
    repo: Option<&Path>,
    json: bool,
    world: &ConfigurationArgs,
) -> anyhow::Result<Outcome> {
    let root = project::root(repo)?;
    let loaded = services::configuration(&root, world);
    let findings = doctor::examine(
        &root,
        &loaded,
        world.model.as_deref(),
        &services::places(&root, world),
    )
    .await;
    match json {
        true => print_line(harmless_json(&serde_json::to_string_pretty(&findings)?))?,
        false => print(doctor::as_text(&findings))?,
    }
    match doctor::verdict(&findings) {
        doctor::Health::Ok | doctor::Health::Warn => Ok(Outcome::Settled),
        doctor::Health::Fail => Ok(Outcome::NotSettled),
    }
}

fn explain(key: Option<&str>, json: bool, world: &ConfigurationArgs) -> anyhow::Result<Outcome> {
    let root = project::root(None)?;
    let loaded =
        services::configuration(&root, world).map_err(|error| WrongUse(error.to_string()))?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let settings = explain::explain(&loaded, key).map_err(|error| WrongUse(error.to_string()))?;
    match json {
        true => print_line(harmless_json(&serde_json::to_string_pretty(&settings)?))?,
        false => print(explain::as_text(&settings))?,
    }
    Ok(Outcome::Settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_use_is_detected_behind_added_context() {
        let error = anyhow::Error::from(WrongUse("no".to_owned()));
        assert!(error.downcast_ref::<WrongUse>().is_some());
        let told = error.context("the run");
        assert!(told.downcast_ref::<WrongUse>().is_some());
        assert_eq!(format!("{told:#}"), "the run: no");
    }
}

//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use serde::de::DeserializeOwned;

use super::code::args::{
    DefinitionArgs, IndexArgs, LocateArgs, MapArgs, ReferencesArgs, SymbolsArgs,
};
#[cfg(feature = "bench")]
use super::swebench::args::SwebenchCommand;
use starling_config::Trust;
use starling_core::{Approval, Driver};
use starling_swarm::ProposalId;

/// A coding assistant in the editor: one agent per symbol, every change proven and approved.
#[derive(Debug, Parser)]
#[command(name = "starling", version, about, max_term_width = 100, after_help = NOT_BUILT)]
pub struct Cli {
    /// Write to this file when each request, run, turn of an agent, call of a model and run of tests
    /// began and ended: a flame chart for Perfetto, chrome://tracing or speedscope.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    pub log_file: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  done, and a test proves it that fails without the change; or the task asks that behaviour
     stays, and tests pass as before; both also where other tests fail as before that are no part
     of the task; or there was nothing to prove: the task needed no change, or only documentation
     was changed
  1  not done
  2  wrong arguments or configuration
  3  changes were made that no test proves: no test ran or none that Starling can see, the tests
     timed out, tests fail that failed before and may be part of the task, tests pass only as the
     run changed them or reach no changed function, no test of a mended bug or a new feature fails
     without the change, nothing in the code or document that the task names was changed, their
     results are only what the command printed, or the checks refused a proposal, nothing was
     applied for its symbol, and no failing test shows that it was not needed";

const EXIT_STATUS_REVIEW: &str = "\
Exit status:
  0  nothing waits any more
  1  proposals still wait
  2  wrong arguments";

const EXIT_STATUS_UNDO: &str = "\
Exit status:
  0  everything that was to be taken back is taken back
  1  not, or not all of it
  2  wrong arguments";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Carry out one task in a project, without an editor.
    #[command(after_help = EXIT_STATUS)]
    Run(RunArgs),
    /// Review the proposals that waited when their run ended.
    #[command(after_help = EXIT_STATUS_REVIEW)]
    Review(ReviewArgs),
    /// Take back what a run changed, also after you edited other lines. Needs no git.
    #[command(after_help = EXIT_STATUS_UNDO)]
    Undo(UndoArgs),
    /// Answer a question about the code of a project. Changes nothing.
    Ask(AskArgs),
    /// Repair a small broken project in a temporary directory.
    Demo(DemoArgs),
    /// Speak the Language Server Protocol on stdin and stdout: what editors start.
    Lsp(WorldArgs),
    /// Read the code of a project, and say how large it is.
    Index(IndexArgs),
    /// Where in the code a text is about: ranked symbols and files, without a model.
    Locate(LocateArgs),
    /// The files that matter with the signatures that matter, within a budget of tokens.
    Map(MapArgs),
    /// What uses a symbol.
    References(ReferencesArgs),
    /// Where the name at a place is defined.
    Definition(DefinitionArgs),
    /// Symbols by a name, or by parts of one.
    Symbols(SymbolsArgs),
    /// Write a configuration to begin with, in your own file. Never overwrites one.
    Init(InitArgs),
    /// Weights of local models.
    #[command(subcommand, alias = "model")]
    Models(ModelsCommand),
    /// Look at everything that Starling needs, and say what is missing.
    Doctor {
        /// The findings as JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        world: WorldArgs,
    },
    /// The configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// SWE-bench and data sets of its kind.
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Swebench(Box<SwebenchCommand>),
    /// Not in this build: SWE-bench and data sets of its kind.
    #[cfg(not(feature = "bench"))]
    #[command(disable_help_flag = true)]
    Swebench(NotBuilt),
    /// Trust a project: its own .starling/config.toml is read from now on.
    Trust(TrustArgs),
}

/// Said by `starling swebench` in a build without the feature `bench`.
#[cfg(not(feature = "bench"))]
pub const WITHOUT_BENCH: &str = "this build has no benchmarks and trainers: build it with \
                                 `cargo build --release --features bench`";

/// The arguments of a command that is not in this build.
#[cfg(not(feature = "bench"))]
#[derive(Debug, Args)]
pub struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub arguments: Vec<std::ffi::OsString>,
}

/// Names the parts of Starling that are not in this build, each with the cargo feature that adds it.
const NOT_BUILT: &str = match (cfg!(feature = "bench"), cfg!(feature = "local")) {
    (true, true) => "",
    (true, false) => "Not in this build: models in this process (feature local)",
    (false, true) => "Not in this build: starling swebench (feature bench)",
    (false, false) => {
        "Not in this build: starling swebench (feature bench), models in this process (feature local)"
    }
};

/// What every command with runs takes.
#[derive(Debug, Clone, Default, Args)]
pub struct WorldArgs {
    /// Use this model for everything: a configured name, local, gguf:PATH, openai:MODEL, replay:FILE.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Set a key of the configuration, as often as you like.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Let agents change these files like any other, although they run outside the sandbox: a glob as
    /// in .gitignore, for example Makefile or ci/**. As often as you like.
    #[arg(long, value_name = "GLOB")]
    pub allow_write: Vec<String>,
    /// Hide a file or directory from the tests, besides homes and Starling's cache: results, data that
    /// holds the answers. As often as you like.
    #[arg(long, value_name = "PATH")]
    pub hide_from_tests: Vec<PathBuf>,
    /// Read the project's own .starling/config.toml this time, trusted or not: look at it first.
    #[arg(long)]
    pub trust: bool,
}

impl WorldArgs {
    pub fn trust(&self) -> Trust {
        match self.trust {
            true => Trust::Trusted,
            false => Trust::NotTrusted,
        }
    }
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// What to do, in your words; `-` reads it from stdin. `@path/to/file` names a file, `#Class.method`
    /// a symbol. Without a task, a terminal opens your editor (`VISUAL`, `EDITOR`) to write it.
    #[arg(default_value_t, hide_default_value = true)]
    pub task: String,
    /// Directory of the project, in place of the root of the git repository around the current
    /// directory or the nearest directory upward with a manifest.
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// Who approves a change: you, a model in your place, or nobody.
    #[arg(long, value_parser = named::<Approval>(&["ask", "proxy", "auto"]))]
    pub approve: Option<Approval>,
    /// One agent per symbol, or one agent over all symbols.
    #[arg(long, value_parser = driver())]
    pub driver: Option<Driver>,
    /// The command that runs the tests.
    #[arg(long, value_name = "CMD")]
    pub test: Option<String>,
    /// Without a person who approves: apply no change that no test proves, and exit with 1 instead of 3.
    #[arg(long)]
    pub require_tests: bool,
    /// Stop when this much money is spent.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd: Option<f64>,
    /// Stop when this many tokens are used, prompts and answers together.
    #[arg(long, value_name = "N")]
    pub budget_tokens: Option<u64>,
    /// Stop after this many seconds, not counting the time that you take to decide.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_seconds: Option<u64>,
    /// One event a line, as JSON.
    #[arg(long)]
    pub json: bool,
    /// Be killed when the process that started this one, with this number, ends.
    #[arg(long, hide = true, value_name = "PID")]
    pub end_with_parent: Option<i32>,
    #[command(flatten)]
    pub world: WorldArgs,
}

#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// Name of the run, or its beginning; without one, every run of the project in which a proposal
    /// waits, the newest first.
    pub run: Option<String>,
    /// Directory of the project, in place of the root of the git repository around the current
    /// directory or the nearest directory upward with a manifest.
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// One event a line, as JSON; answers are read as lines.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Name of the run, or its beginning, as --list shows it; without one, the newest run of the project
    /// that changed something.
    pub run: Option<String>,
    /// Number of one proposal, for example 3 or #3, to take back alone, instead of all of the run. Of all,
    /// proposals that belong together are taken back together or not at all.
    #[arg(value_parser = proposal)]
    pub proposal: Option<ProposalId>,
    /// List the runs of the project: when, what was asked, how many changes were made and taken back.
    #[arg(long, conflicts_with_all = ["run", "proposal", "yes"])]
    pub list: bool,
    /// Do not ask before anything is taken back.
    #[arg(short, long)]
    pub yes: bool,
    /// Directory of the project, in place of the root of the git repository around the current
    /// directory or the nearest directory upward with a manifest.
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// What was taken back, or the list, as JSON. Taking back needs --yes.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct AskArgs {
    /// What you want to know, in your words; `-` reads it from stdin.
    pub question: String,
    /// Directory of the project, in place of the root of the git repository around the current
    /// directory or the nearest directory upward with a manifest.
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// Keep what is learnt in this file, and go on with what it holds.
    #[arg(long, value_name = "FILE")]
    pub session: Option<PathBuf>,
    /// Stop when this much money is spent.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd: Option<f64>,
    /// Stop when this many tokens are used, prompts and answers together.
    #[arg(long, value_name = "N")]
    pub budget_tokens: Option<u64>,
    /// Stop after this many seconds.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_seconds: Option<u64>,
    /// The answer with its citations, steps and cost as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub world: WorldArgs,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Replay a recording instead of asking a model.
    #[arg(long, conflicts_with = "model")]
    pub replay: bool,
    /// Leave the project's directory there at the end.
    #[arg(long)]
    pub keep: bool,
    /// One event a line, as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub world: WorldArgs,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// The model to use: local, gguf:PATH, or openai:MODEL; without it you are asked where a key of a known
    /// provider is in the environment.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Directory of the project, in place of the root of the git repository around the current
    /// directory or the nearest directory upward with a manifest.
    #[arg(long, value_name = "DIR")]
    pub repo: Option<PathBuf>,
    /// Which projects were trusted or refused.
    #[arg(long, conflicts_with_all = ["remove", "repo"])]
    pub list: bool,
    /// Trust it no more.
    #[arg(long)]
    pub remove: bool,
}

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Fetch the weights of a model.
    Pull { name: Option<String> },
    /// Which models are known, and which are here.
    List,
    /// Where the weights of a model are.
    Path { name: Option<String> },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// What can be set, what it is set to, and by whom.
    Explain {
        /// One key, for example limits.calls.
        key: Option<String>,
        /// The settings as JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        world: WorldArgs,
    },
}

/// Reads a driver by its name.
pub fn driver() -> impl TypedValueParser<Value = Driver> {
    named(&["swarm", "single"])
}

/// Reads one of the names that serde gives to the values of an enumeration.
fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names)
        .try_map(|name| serde_json::from_value::<T>(serde_json::Value::String(name)))
}

pub fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        Ok(_) | Err(_) => Err("write an amount of dollars over 0, for example 0.25".to_owned()),
    }
}

fn proposal(text: &str) -> Result<ProposalId, String> {
    let number = text.strip_prefix('#').unwrap_or(text).parse();
    number
        .map(ProposalId)
        .map_err(|_| "write the number of a proposal, for example 3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_run_is_read() {
        let line = "starling run --repo /r --approve auto --driver single --test pytest \
                    --budget-usd 0.5 -c limits.calls=3 -c run.driver=swarm --json fix";
        let Command::Run(run) = Cli::parse_from(line.split_whitespace()).command else {
            panic!("not a run");
        };
        assert_eq!(run.task, "fix");
        assert_eq!(run.approve, Some(Approval::Auto));
        assert_eq!(run.budget_usd, Some(0.5));
        assert_eq!(run.world.set, ["limits.calls=3", "run.driver=swarm"]);
    }

    #[test]
    fn readme_and_help_give_the_same_exit_statuses() {
        let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let readme = joined(include_str!("../../README.md"));
        let help = joined(EXIT_STATUS);
        let statuses = ["0", "1", "2", "3"].map(|status| {
            let (_, rest) = readme.split_once(&format!("| {status} | ")).unwrap();
            let (meaning, _) = rest.split_once(" |").unwrap();
            format!("{status} {meaning}")
        });
        assert_eq!(help, format!("Exit status: {}", statuses.join(" ")));
    }

    #[test]
    fn wrong_use_is_exit_code_2() {
        for line in [
            "starling",
            "starling run --approve maybe x",
            "starling run --budget-usd -1 x",
            "starling run --budget-usd NaN x",
            "starling demo --replay --model local",
            "starling ask",
            "starling ask --budget-tokens few x",
            "starling locate",
            "starling locate x --file y",
            "starling locate --top 0 x",
            "starling map --tokens 0",
            "starling map --query x --file y",
            "starling definition a.py:1",
            "starling undo r two",
            "starling undo --list r",
            "starling fly",
        ] {
            let error = Cli::try_parse_from(line.split_whitespace()).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn what_is_not_said_is_left_to_the_configuration() {
        let Command::Run(run) = Cli::parse_from(["starling", "run", "-"]).command else {
            panic!("not a run");
        };
        assert_eq!(run.task, "-");
        assert_eq!((run.approve, run.driver), (None, None));
        assert_eq!((run.budget_usd, run.budget_tokens), (None, None));
        assert_eq!((run.repo, run.test, run.json), (None, None, false));
        assert_eq!(run.world.trust(), Trust::NotTrusted);
        assert!(run.world.set.is_empty() && run.world.model.is_none());
    }

    #[test]
    fn words_of_the_command_line_mean_those_of_a_run() {
        for (word, approval) in [
            ("ask", Approval::Ask),
            ("proxy", Approval::Proxy),
            ("auto", Approval::Auto),
        ] {
            let line = ["starling", "run", "x", "--approve", word];
            let Command::Run(run) = Cli::parse_from(line).command else {
                panic!("not a run");
            };
            assert_eq!(run.approve, Some(approval));
        }
        for (word, driver) in [("swarm", Driver::Swarm), ("single", Driver::Single)] {
            let line = ["starling", "run", "x", "--driver", word];
            let Command::Run(run) = Cli::parse_from(line).command else {
                panic!("not a run");
            };
            assert_eq!(run.driver, Some(driver));
        }
    }

    #[test]
    fn every_command_with_a_world_can_be_told_of_it() {
        for line in [
            "starling run x",
            "starling ask x",
            "starling demo",
            "starling lsp",
            "starling doctor",
            "starling config explain",
        ] {
            let words = line.split(' ');
            let world =
                "--model big -c limits.calls=1 --trust --allow-write a/** --hide-from-tests out";
            let world = world.split(' ');
            let read = Cli::try_parse_from(words.chain(world)).unwrap();
            let world = match read.command {
                Command::Run(args) => args.world,
                Command::Ask(args) => args.world,
                Command::Demo(args) => args.world,
                Command::Lsp(world) | Command::Doctor { world, .. } => world,
                Command::Config(ConfigCommand::Explain { world, .. }) => world,
                Command::Models(_)
                | Command::Init(_)
                | Command::Trust(_)
                | Command::Review(_)
                | Command::Undo(_)
                | Command::Swebench(_)
                | Command::Index(_)
                | Command::Locate(_)
                | Command::Map(_)
                | Command::References(_)
                | Command::Definition(_)
                | Command::Symbols(_) => panic!("{line} was read as another"),
            };
            assert_eq!(world.model.as_deref(), Some("big"), "{line}");
            assert_eq!(world.set, ["limits.calls=1"], "{line}");
            assert_eq!(world.allow_write, ["a/**"], "{line}");
            assert_eq!(world.hide_from_tests, [PathBuf::from("out")], "{line}");
            assert_eq!(world.trust(), Trust::Trusted, "{line}");
        }
    }

    #[test]
    fn a_budget_is_an_amount() {
        assert_eq!(dollars("0.25"), Ok(0.25));
        for wrong in ["0", "-1", "inf", "NaN", "1e999", "", "$5", "5 USD"] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
        for command in ["run", "ask"] {
            let with = |seconds: &str| {
                Cli::try_parse_from(["starling", command, "--budget-seconds", seconds, "x"])
            };
            assert!(with("0").is_err() && with("1").is_ok(), "{command}");
        }
    }
}

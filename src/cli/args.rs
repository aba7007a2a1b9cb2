//! The arguments of the `starling` command line, with their help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::code::args::{
    DefinitionArgs, IndexArgs, LocateArgs, MapArgs, ReferencesArgs, SymbolsArgs,
};
use super::option_values::{approval, dollars, driver, existing_path, path, proposal};
#[cfg(feature = "local")]
use super::serve_args::ServeArgs;
#[cfg(feature = "bench")]
use super::swebench::args::SwebenchCommand;
use starling_config::ProcessTrust;
use starling_core::{Approval, Driver};
use starling_swarm::{ProposalId, Refactoring};

/// A coding assistant in the editor: one agent per symbol, every change proven and approved.
#[derive(Debug, Parser)]
#[command(name = "starling", version, about, max_term_width = 100, after_help = NOT_BUILT)]
pub struct Cli {
    /// Write a timing trace to this file: the start and end of each request, run, agent turn, model call
    /// and test run. Open it in Perfetto, chrome://tracing or speedscope.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        value_parser = path(),
        help_heading = "Global options"
    )]
    pub log_file: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  done: a test that fails without the change passes with it; or the task asked to preserve
     behaviour, and the tests pass as before; or it asked to change tests, and nothing else was
     changed; or no test was needed, because nothing or only documentation was changed. Tests that
     failed before and that are not part of the task may still fail
  1  not done; also if stdout cannot be written before anything is changed: stderr says \"nothing
     was changed\"
  2  wrong arguments or configuration
  3  changes were made, but no test proves them, for one of these reasons:
     - no test ran, or the test command reported no results that Starling can read;
     - the tests timed out;
     - a test that failed before still fails, and may be part of the task;
     - a test passes only because the run changed the test;
     - the passing tests do not execute any changed function;
     - the task is a bug fix or a new feature, and no test fails without the change;
     - nothing was changed in the code or document that the task names;
     - the results of the tests were read only from the printed output of the test command;
     - the checks rejected the change of a symbol, no other change of that symbol was applied, and
       no test that failed before decides whether the task is done
  4  the run ended, and stdout could not be written, for example because the disk is full; stderr
     says how the run ended";

const EXIT_STATUS_REFACTOR: &str = "\
Exit status:
  0  done, and the tests pass as before
  1  not done: the symbol does not exist, uses are left, or the tests fail with the change
  2  wrong arguments or configuration
  3  done, but some places may mean the symbol as well, or no test reaches the change";

const EXIT_STATUS_REVIEW: &str = "\
Exit status:
  0  no proposal is waiting for review
  1  some proposals are still waiting for review
  2  wrong arguments";

const EXIT_STATUS_UNDO: &str = "\
Exit status:
  0  all requested changes were undone
  1  some or all of the requested changes were not undone
  2  wrong arguments
  4  stdout could not be written; stderr says what was undone";

// The commands of the program. Their doc comments are the help texts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Carry out one task in a project, without an editor.
    #[command(after_help = EXIT_STATUS)]
    Run(RunArgs),
    /// Review the proposals that were still waiting for review when their run ended.
    #[command(after_help = EXIT_STATUS_REVIEW)]
    Review(ReviewArgs),
    /// Rename or delete a symbol in the whole project, without a model.
    #[command(subcommand)]
    Refactor(RefactorCommand),
    /// Undo the changes of a run, even after you have edited other lines. Does not need git.
    #[command(after_help = EXIT_STATUS_UNDO)]
    Undo(UndoArgs),
    /// Answer a question about the code of a project. Changes nothing.
    Ask(AskArgs),
    /// Try Starling: fix a small broken project in a temporary directory.
    Demo(DemoArgs),
    /// Run the language server (LSP) on stdin and stdout. Editors start this command.
    Lsp(ConfigurationArgs),
    /// Index the code of a project, and print the number of files and symbols.
    Index(IndexArgs),
    /// Find the symbols and files that a text is about, ranked by relevance. Uses no model.
    Locate(LocateArgs),
    /// Print a map of the project: its most important files with their signatures, within a token limit.
    Map(MapArgs),
    /// List the references to a symbol.
    References(ReferencesArgs),
    /// Find the definition of the name at a position in a file.
    Definition(DefinitionArgs),
    /// Search for symbols by name, or by parts of a name.
    Symbols(SymbolsArgs),
    /// Create a starter configuration in your user configuration file. Never overwrites an existing file.
    Init(InitArgs),
    /// Serve a local model to other programs, as an OpenAI-compatible server on this machine.
    #[cfg(feature = "local")]
    Serve(ServeArgs),
    /// Not in this build: serve a local model to other programs.
    #[cfg(not(feature = "local"))]
    #[command(disable_help_flag = true)]
    Serve(NotBuilt),
    /// Download, list or locate the weights of local models.
    #[command(subcommand, alias = "model")]
    Models(ModelsCommand),
    /// Check everything that Starling needs, and report what is missing.
    Doctor {
        /// Project directory. Default: the root of the enclosing git repository, or else the nearest
        /// parent directory with a project file such as pyproject.toml.
        #[arg(long, value_name = "DIR", value_parser = path())]
        repo: Option<PathBuf>,
        /// Print the results of the checks as JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        world: ConfigurationArgs,
    },
    /// Show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Run and grade SWE-bench and data sets in the same format.
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Swebench(Box<SwebenchCommand>),
    /// Not in this build: run and grade SWE-bench and data sets in the same format.
    #[cfg(not(feature = "bench"))]
    #[command(disable_help_flag = true)]
    Swebench(NotBuilt),
    /// Trust a project, so that its own .starling/config.toml is used from now on.
    Trust(TrustArgs),
}

/// The error message of `starling swebench` in a build without the cargo feature `bench`.
#[cfg(not(feature = "bench"))]
pub const WITHOUT_BENCH: &str = "this build has no benchmarks and trainers: build it with \
                                 `cargo build --release --features bench`";

/// The error message of `starling serve` in a build without the cargo feature `local`.
#[cfg(not(feature = "local"))]
pub const WITHOUT_LOCAL: &str = "this build has no local models: build it with \
                                 `cargo build --release --features local`";

/// The arguments of a command that is not in this build.
#[cfg(not(all(feature = "bench", feature = "local")))]
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

/// The arguments of all commands that load the configuration: the model, settings and trust.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigurationArgs {
    /// Use this model for everything: a name from the configuration, local (the built-in model), gguf:PATH
    /// (a model file), openai:MODEL, replay:FILE (recorded replies), or none.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Set a configuration key, for example limits.calls=3. May be repeated.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Let agents change matching files that are otherwise protected because tools execute them outside
    /// the sandbox, for example Makefile or ci/** (.gitignore syntax). May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub allow_write: Vec<String>,
    /// Hide a file or directory from the tests, for example the expected results of a benchmark. Home
    /// directories and Starling's cache are always hidden. May be repeated.
    #[arg(long, value_name = "PATH", value_parser = existing_path())]
    pub hide_from_tests: Vec<PathBuf>,
    /// Use the project's own .starling/config.toml in this run even if the project is not trusted, until
    /// it changes. Check that file first.
    #[arg(long)]
    pub trust: bool,
    /// What `trust` covers.
    #[arg(skip)]
    pub process_trust: ProcessTrust,
}

// The arguments of `starling run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What to do, in your words; `-` reads it from stdin. `@path/to/file` names a file, `#Class.method`
    /// a symbol. If no task is given and stdin is a terminal, your editor (`VISUAL`, `EDITOR`) opens so
    /// that you can write the task.
    #[arg(default_value_t, hide_default_value = true)]
    pub task: String,
    /// Project directory. Default: the root of the enclosing git repository, or else the nearest parent
    /// directory with a project file such as pyproject.toml.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repo: Option<PathBuf>,
    /// Who approves each change: you (ask), a model in your place (proxy), or nobody (auto).
    #[arg(long, value_parser = approval())]
    pub approve: Option<Approval>,
    /// Use one agent for each symbol (swarm), or one agent for all symbols (single).
    #[arg(long, value_parser = driver())]
    pub driver: Option<Driver>,
    /// The command that runs the tests.
    #[arg(long, value_name = "CMD")]
    pub test: Option<String>,
    /// With --approve proxy or auto, apply a change only if a test proves it. If no test does, exit with
    /// status 1 instead of 3.
    #[arg(long)]
    pub require_tests: bool,
    /// Stop after spending this many US dollars on model calls.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd: Option<f64>,
    /// Stop after using this many tokens, prompts and replies together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_tokens: Option<u64>,
    /// Stop after this many seconds. Time spent waiting for your decisions does not count.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_seconds: Option<u64>,
    /// Print one event per line as JSON.
    #[arg(long)]
    pub json: bool,
    /// Exit when the parent process, which has this process id, exits.
    #[arg(long, hide = true, value_name = "PID")]
    pub end_with_parent: Option<i32>,
    /// The refactoring that the task describes (`starling refactor`).
    #[arg(skip)]
    pub refactoring: Option<Refactoring>,
    #[command(flatten)]
    pub world: ConfigurationArgs,
}

// The subcommands of `starling refactor`.
#[derive(Debug, Subcommand)]
pub enum RefactorCommand {
    /// Rename a function, method, class or variable of a module, with all its uses in code, stubs,
    /// documents and examples. Methods that override each other are renamed together.
    #[command(after_help = EXIT_STATUS_REFACTOR)]
    Rename(RenameArgs),
    /// Delete a function, method, class or variable of a module that nothing uses.
    #[command(after_help = EXIT_STATUS_REFACTOR)]
    Delete(DeleteArgs),
}

// The arguments of `starling refactor rename`.
#[derive(Debug, Args)]
pub struct RenameArgs {
    /// The symbol: path/to/file.py::Class.method, or a name that only one symbol has.
    pub symbol: String,
    /// The new name.
    pub to: String,
    /// Change nothing unless every use is certain. Without it, the certain uses are renamed, and the places
    /// that may mean something else are listed.
    #[arg(long)]
    pub only_if_certain: bool,
    #[command(flatten)]
    pub options: RefactorArgs,
}

// The arguments of `starling refactor delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The symbol: path/to/file.py::Class.method, or a name that only one symbol has.
    pub symbol: String,
    #[command(flatten)]
    pub options: RefactorArgs,
}

// The options of all refactorings.
#[derive(Debug, Args)]
#[command(mut_arg("model", |arg| arg.hide(true)))]
pub struct RefactorArgs {
    /// Project directory. Default: the root of the enclosing git repository, or else the nearest parent
    /// directory with a project file such as pyproject.toml.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repo: Option<PathBuf>,
    /// Who approves the change: you (ask), or nobody (auto).
    #[arg(long, value_parser = approval())]
    pub approve: Option<Approval>,
    /// The command that runs the tests.
    #[arg(long, value_name = "CMD")]
    pub test: Option<String>,
    /// Print one event per line as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub world: ConfigurationArgs,
}

// The arguments of `starling review`.
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// Id of the run, or the start of the id. Default: all runs of the project with proposals that are
    /// waiting for review, the newest first.
    pub run: Option<String>,
    /// Keep what this run changed without a review before it was interrupted, and say no more about it.
    #[arg(long, requires = "run")]
    pub keep: bool,
    /// Project directory. Default: the root of the enclosing git repository, or else the nearest parent
    /// directory with a project file such as pyproject.toml.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repo: Option<PathBuf>,
    /// Print one event per line as JSON. Your answers are read from stdin, one per line.
    #[arg(long)]
    pub json: bool,
}

// The arguments of `starling undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Id of the run as shown by --list, or the start of the id. Default: the newest run that changed
    /// files of the project.
    pub run: Option<String>,
    /// Number of a proposal, for example 3 or #3: undo only this change. Default: all changes of the run;
    /// changes that pass the checks only together are then undone together or not at all.
    #[arg(value_parser = proposal)]
    pub proposal: Option<ProposalId>,
    /// List the runs of the project, with the time, the task, and the number of changes made and undone.
    #[arg(long, conflicts_with_all = ["run", "proposal", "yes"])]
    pub list: bool,
    /// Undo without asking for confirmation.
    #[arg(short, long)]
    pub yes: bool,
    /// Project directory. Default: the root of the enclosing git repository, or else the nearest parent
    /// directory with a project file such as pyproject.toml.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repo: Option<PathBuf>,
    /// Print the result as JSON. Needs --yes or --list.
    #[arg(long)]
    pub json: bool,
}

// The arguments of `starling ask`. It changes no file and runs no test, so the help does not name the options
// for that.
#[derive(Debug, Args)]
#[command(mut_arg("allow_write", |arg| arg.hide(true)), mut_arg("hide_from_tests", |arg| arg.hide(true)))]
pub struct AskArgs {
    /// The question, in your words; `-` reads it from stdin.
    pub question: String,
    /// Project directory. Default: the root of the enclosing git repository, or else the nearest parent
    /// directory with a project file such as pyproject.toml.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repo: Option<PathBuf>,
    /// Continue the session that is stored in this file, and save the session to it afterwards.
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub session: Option<PathBuf>,
    /// Stop after spending this many US dollars on model calls.
    #[arg(long, value_name = "X", value_parser = dollars)]
    pub budget_usd: Option<f64>,
    /// Stop after using this many tokens, prompts and replies together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_tokens: Option<u64>,
    /// Stop after this many seconds.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub budget_seconds: Option<u64>,
    /// Print the answer with its citations, steps and cost as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub world: ConfigurationArgs,
}

// The arguments of `starling demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Replay recorded replies instead of calling a model.
    #[arg(long, conflicts_with = "model")]
    pub replay: bool,
    /// Keep the project's temporary directory at the end.
    #[arg(long)]
    pub keep: bool,
    /// Print one event per line as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub world: ConfigurationArgs,
}

// The arguments of `starling init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The model to use: local, gguf:PATH or openai:MODEL. Default: the local model; if an API key of a
    /// known provider is set in the environment, you are asked.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

// The arguments of `starling trust`.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Project directory. Default: the root of the enclosing git repository, or else the nearest parent
    /// directory with a project file such as pyproject.toml.
    #[arg(long, value_name = "DIR", value_parser = path())]
    pub repo: Option<PathBuf>,
    /// List the projects that you decided to trust or not to trust.
    #[arg(long, conflicts_with_all = ["remove", "repo"])]
    pub list: bool,
    /// Remove the trust from the project.
    #[arg(long)]
    pub remove: bool,
}

// The subcommands of `starling models`.
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Download the weights of a local model.
    Pull { name: Option<String> },
    /// List the known local models, and which of them are downloaded.
    List,
    /// Print the path of the weights of a local model.
    Path { name: Option<String> },
}

// The subcommands of `starling config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// List the configuration keys, each with its value and the source of the value.
    Explain {
        /// Show only this key, for example limits.calls.
        key: Option<String>,
        /// Print the settings as JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        world: ConfigurationArgs,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_passes_the_checks_of_clap() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_of_run_are_parsed() {
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
        let joined = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").replace(';', "")
        };
        let readme = joined(include_str!("../../README.md"));
        let help = joined(EXIT_STATUS);
        let (_, reasons) = readme.split_once("Reasons for status 3: ").unwrap();
        let (reasons, _) = reasons.split_once(" Every run leaves").unwrap();
        let statuses = ["0", "1", "2", "3", "4"].map(|status| {
            let (_, rest) = readme.split_once(&format!("| {status} | ")).unwrap();
            let (meaning, _) = rest.split_once(" |").unwrap();
            let these = format!("these reasons: {reasons}");
            format!("{status} {}", meaning.replace("the reasons below", &these))
        });
        assert_eq!(help, format!("Exit status: {}", statuses.join(" ")));
    }

    #[test]
    fn invalid_arguments_exit_with_status_2() {
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
    fn options_that_are_not_given_are_left_to_the_configuration() {
        let Command::Run(run) = Cli::parse_from(["starling", "run", "-"]).command else {
            panic!("not a run");
        };
        assert_eq!(run.task, "-");
        assert_eq!((run.approve, run.driver), (None, None));
        assert_eq!((run.budget_usd, run.budget_tokens), (None, None));
        assert_eq!((run.repo, run.test, run.json), (None, None, false));
        assert!(!run.world.trust);
        assert!(run.world.set.is_empty() && run.world.model.is_none());
    }

    #[test]
    fn relative_path_is_relative_to_the_current_directory() {
        let here = std::env::current_dir().unwrap();
        let real = here.canonicalize().unwrap();
        let line = "starling --log-file t run --repo p --hide-from-tests ./src/ \
                    --hide-from-tests src/../Cargo.toml fix";
        let read = Cli::parse_from(line.split_whitespace());
        assert_eq!(read.log_file, Some(here.join("t")));
        let Command::Run(run) = read.command else {
            panic!("not a run");
        };
        assert_eq!(run.repo, Some(here.join("p")));
        let hidden = [real.join("src"), real.join("Cargo.toml")];
        assert_eq!(run.world.hide_from_tests, hidden);
        let read = Cli::parse_from(["starling", "ask", "--session", "s", "x"]);
        let Command::Ask(ask) = read.command else {
            panic!("not a question");
        };
        assert_eq!(ask.session, Some(here.join("s")));
    }

    #[test]
    fn path_to_hide_must_exist() {
        for missing in ["no/such", "/no/such"] {
            let line = ["starling", "run", "x", "--hide-from-tests", missing];
            let error = Cli::try_parse_from(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{missing}");
            let told = error.to_string();
            assert!(told.contains("--hide-from-tests"), "{told}");
            assert!(told.contains(&format!("'{missing}'")), "{told}");
        }
    }

    #[test]
    fn values_of_approve_and_driver_are_parsed() {
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
    fn doctor_takes_the_project_directory() {
        let read = Cli::try_parse_from(["starling", "doctor", "--repo", "/r"]).unwrap();
        let Command::Doctor { repo, .. } = read.command else {
            panic!("it was read as another");
        };
        assert_eq!(repo, Some(PathBuf::from("/r")));
    }

    #[test]
    fn every_command_that_loads_the_configuration_accepts_its_options() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        for line in [
            "starling run x",
            "starling ask x",
            "starling demo",
            "starling lsp",
            "starling doctor",
            "starling config explain",
            "starling refactor delete f",
        ] {
            let words = line.split(' ');
            let world =
                "--model big -c limits.calls=1 --trust --allow-write a/** --hide-from-tests src";
            let world = world.split(' ');
            let read = Cli::try_parse_from(words.chain(world)).unwrap();
            let world = match read.command {
                Command::Run(args) => args.world,
                Command::Ask(args) => args.world,
                Command::Demo(args) => args.world,
                Command::Lsp(world) | Command::Doctor { world, .. } => world,
                Command::Config(ConfigCommand::Explain { world, .. }) => world,
                Command::Refactor(RefactorCommand::Delete(args)) => args.options.world,
                Command::Models(_)
                | Command::Serve(_)
                | Command::Refactor(_)
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
            assert_eq!(world.hide_from_tests, [here.join("src")], "{line}");
            assert!(world.trust, "{line}");
        }
    }

    #[test]
    fn budget_must_be_a_positive_finite_amount() {
        assert_eq!(dollars("0.25"), Ok(0.25));
        for wrong in ["0", "-1", "inf", "NaN", "1e999", "", "$5", "5 USD"] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
        for command in ["run", "ask"] {
            for option in ["--budget-seconds", "--budget-tokens"] {
                let with =
                    |amount: &str| Cli::try_parse_from(["starling", command, option, amount, "x"]);
                assert!(
                    with("0").is_err() && with("1").is_ok(),
                    "{command} {option}"
                );
            }
        }
    }
}

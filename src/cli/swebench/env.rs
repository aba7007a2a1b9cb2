//! `starling swebench env`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use super::args::EnvArgs;
use super::chosen;
use crate::cli::standard::note;
use crate::cli::{Outcome, WrongUse};
use starling_bench::{Checkouts, Env, Grader, Runs, TrainerSessionEnd, read_environments};
use starling_sandbox::{Policy, Shadows, cache_dir};

/// Time limit for one test run of the grader.
const TEST_DEADLINE: Duration = Duration::from_secs(900);

pub(super) async fn serve(args: &EnvArgs) -> anyhow::Result<Outcome> {
    let environments = match &args.environments {
        Some(file) => read_environments(file).map_err(|error| WrongUse(error.to_string()))?,
        None => BTreeMap::new(),
    };
    let cache = cache_dir().context("no cache directory was found: set STARLING_CACHE_DIR")?;
    let hidden = [&args.data.dataset].into_iter();
    let hidden: Vec<PathBuf> = hidden.chain(&args.environments).cloned().collect();
    let env = Env {
        instances: chosen(&args.data)?,
        runs: Runs {
            repositories: args.data.repositories(),
            environments: environments.clone(),
            containers: args.containers.containers(),
            cache: cache.clone(),
            program: std::env::current_exe()
                .context("cannot find the path of the starling executable")?,
            arguments: arguments(args),
            hidden: hidden.clone(),
            oracle: None,
            seconds: args.budget_seconds,
            workers: 1,
            dollars: None,
        },
        grader: Grader {
            repositories: args.data.repositories(),
            checkouts: Checkouts::temporary()?,
            environments,
            containers: args.containers.containers(),
            shadows: Shadows::open(&cache, Policy::default()).await?,
            hidden,
            cache,
            deadline: TEST_DEADLINE,
        },
        idle: Duration::from_secs(args.idle_seconds),
    };
    let input = tokio::io::BufReader::new(tokio::io::stdin());
    match env.serve(input, tokio::io::stdout()).await? {
        TrainerSessionEnd::Closed => Ok(Outcome::Settled),
        TrainerSessionEnd::Idle => {
            note(format_args!(
                "no request was received for {} s; exiting",
                args.idle_seconds
            ));
            Ok(Outcome::NotSettled)
        }
    }
}

/// The trained policy decides for the agents, so every change that passes the checks is approved
/// automatically.
fn arguments(args: &EnvArgs) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["--approve", "auto", "--driver", args.driver.name()]
        .map(OsString::from)
        .into();
    words.extend([
        "--budget-seconds".into(),
        args.budget_seconds.to_string().into(),
    ]);
    for set in &args.set {
        words.extend(["-c".into(), set.into()]);
    }
    words
}

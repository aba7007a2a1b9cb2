//! `starling swebench run`

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::args::RunArgs;
use super::{chosen, ray, report, samples};
use crate::cli::standard::{note, print_line};
use crate::cli::view::words;
use crate::cli::{Outcome, WrongUse};
use starling_bench::{
    self as bench, Ended, Instance, KeptRecords, Record, Report, RunDirectory, RunDirectoryError,
    Runs, Settings, known_changes, read_environments,
};
use starling_config::{self, Config, ConfigSources, ProjectFile, Trust};
use starling_core::Dollars;
use starling_models::oracle::KnownChange;
use starling_models::registry::{Models, ModelsError};
use starling_sandbox::cache_dir;
use starling_text::{harmless, harmless_json};

/// Model name for replies that are built from the known changes.
const ORACLE: &str = "oracle";

pub(super) async fn run(args: &RunArgs) -> anyhow::Result<Outcome> {
    priced(args)?;
    let instances = shard(chosen(&args.data)?, args);
    if args.samples > 1 {
        return samples::run(args, &instances).await;
    }
    let (report, ended) = solve(args, &instances, String::new()).await?;
    match args.json {
        true => print_line(harmless_json(&serde_json::to_string(&report)?))?,
        false => print_line(told(&report, ended, args))?,
    }
    Ok(match report.failed == 0 && ended == Ended::All {
        true => Outcome::Settled,
        false => Outcome::NotSettled,
    })
}

/// Solves each instance once. `sample` describes the difference to other samples, and is empty for
/// a run without samples.
pub(super) async fn solve(
    args: &RunArgs,
    instances: &[Instance],
    sample: String,
) -> anyhow::Result<(Report, Ended)> {
    let environments = match &args.environments {
        Some(file) => read_environments(file).map_err(|error| WrongUse(error.to_string()))?,
        None => BTreeMap::new(),
    };
    let kept = match args.retry_failed {
        true => KeptRecords::Finished,
        false => KeptRecords::Everything,
    };
    let settings = Settings {
        sample,
        ..settings(args)?
    };
    let place = RunDirectory::open(&args.out, settings, kept).map_err(wrong_place)?;
    let runs = Runs {
        repositories: args.data.repositories(),
        environments,
        containers: args.containers.containers(),
        cache: cache_dir().context("no cache directory was found: set STARLING_CACHE_DIR")?,
        program: std::env::current_exe()
            .context("cannot find the path of the starling executable")?,
        arguments: arguments(args),
        hidden: hidden(args),
        oracle: oracle(args, instances).await,
        seconds: args.budget_seconds,
        workers: args.workers,
        dollars: args.budget_usd_all.map(Dollars),
    };
    let done = place.records()?;
    let is_done = |instance: &&Instance| done.contains_key(&instance.task.id);
    let mut progress = Progress::new(instances.len() - instances.iter().filter(is_done).count());
    // The known changes stay in this process: a run gets only its task.
    let tasks: Vec<_> = instances.iter().map(|instance| &instance.task).collect();
    let seen = |record: &Record| progress.add(record);
    let ended = match &args.ray {
        Some(address) => {
            ray::run(args, address, &tasks, &place, seen).await?;
            Ended::All
        }
        None => runs.all(&tasks, &place, seen).await?,
    };
    progress.bar.finish_and_clear();
    report::write(&args.out)?;
    let records = place.records()?;
    let of_these = tasks.iter().filter_map(|task| records.get(&task.id));
    let earlier = place.earlier()?;
    let earlier = tasks.iter().filter_map(|task| earlier.get(&task.id));
    Ok((Report::of(of_these).with_earlier(earlier), ended))
}

/// A directory of another run is wrong use by the caller; an I/O error is not.
fn wrong_place(error: RunDirectoryError) -> anyhow::Error {
    match error {
        RunDirectoryError::Taken(_) | RunDirectoryError::Other { .. } => {
            WrongUse(error.to_string()).into()
        }
        RunDirectoryError::Disk { .. } | RunDirectoryError::NoRecord { .. } => error.into(),
    }
}

fn shard(instances: Vec<Instance>, args: &RunArgs) -> Vec<Instance> {
    let Some(shard) = args.shard else {
        return instances;
    };
    let mine = instances.into_iter().enumerate();
    let mine = mine.filter(|(at, _)| at % shard.of == shard.part - 1);
    mine.map(|(_, instance)| instance).collect()
}

fn settings(args: &RunArgs) -> anyhow::Result<Settings> {
    let model = args.model.as_deref().unwrap_or("the configured model");
    Ok(Settings {
        dataset: args.data.dataset.display().to_string(),
        driver: args.driver.name().to_owned(),
        model: model.to_owned(),
        sample: String::new(),
        program: program()?,
        given: given(args)?,
    })
}

/// Returns the version of this program with a hash of its file, because two builds can have the
/// same version.
fn program() -> anyhow::Result<String> {
    let file =
        std::env::current_exe().context("cannot find the path of the starling executable")?;
    let hash = file_hash(&file)?;
    Ok(format!("starling {}, {hash}", env!("CARGO_PKG_VERSION")))
}

/// Returns the settings that affect the runs, besides data set, model and driver.
fn given(args: &RunArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let words = arguments(args).into_iter();
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // The user's configuration file and variables also affect runs, but are not on the command
    // line.
    let config = serde_json::to_vec(&configuration(args)?)?;
    let mut given = BTreeMap::from([
        ("arguments".to_owned(), words.join(" ")),
        ("configuration".to_owned(), hash(&config)),
        (
            "data set's content".to_owned(),
            file_hash(&args.data.dataset)?,
        ),
    ]);
    if let Some(file) = &args.environments {
        given.insert("environments".to_owned(), file_hash(file)?);
    }
    if let Some(containers) = args.containers.containers() {
        given.insert("containers".to_owned(), format!("{containers:?}"));
    }
    Ok(given)
}

fn file_hash(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    Ok(hash(&bytes))
}

fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(bytes))
}

/// Refuses a limit in dollars for all instances if the price of a model is unknown, because its
/// requests would count as free.
fn priced(args: &RunArgs) -> Result<(), WrongUse> {
    let Some(limit) = args.budget_usd_all else {
        return Ok(());
    };
    let config = configuration(args)?;
    let variables = |name: &str| std::env::var(name).ok();
    let of_samples = args.sample.iter().filter_map(|one| one.model.as_deref());
    let mut models: Vec<Option<&str>> = of_samples.map(Some).collect();
    if models.len() < args.sample.len().max(1) {
        models.push(args.model.as_deref());
    }
    let verifier = args.verifier.as_deref();
    models.extend(verifier.filter(|one| !samples::is_endpoint(one)).map(Some));
    for model in models.into_iter().filter(|model| *model != Some(ORACLE)) {
        // Another error is reported by the run of each instance.
        let checked = Models::check(&config, model, Some(Dollars(limit)), &variables);
        if let Err(ModelsError::Unpriced { models }) = checked {
            let models = models.join(", ");
            return Err(WrongUse(format!(
                "--budget-usd-all is given, but the price of {models} is unknown: set price_prompt and \
                 price_output of the model"
            )));
        }
    }
    Ok(())
}

/// Returns the configuration of the runs, without that of a project.
fn configuration(args: &RunArgs) -> Result<Config, WrongUse> {
    let nowhere = Path::new("/");
    let sources = ConfigSources::of_process(
        ProjectFile::of(nowhere),
        Trust::NotTrusted,
        args.set.clone(),
    );
    let loaded = starling_config::load(&sources).map_err(|error| WrongUse(error.to_string()))?;
    Ok(loaded.config)
}

/// Returns the paths to hide from the tests of a run: the run's own records, and the files that
/// name its hidden tests.
fn hidden(args: &RunArgs) -> Vec<PathBuf> {
    let all = [&args.out, &args.data.dataset].into_iter();
    all.chain(&args.environments).cloned().collect()
}

/// Returns the arguments for each `starling run`. A model approves, because no user is present.
fn arguments(args: &RunArgs) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["--approve", "proxy", "--driver", args.driver.name()]
        .map(OsString::from)
        .into();
    let mut add = |name: &str, value: String| words.extend([name.into(), value.into()]);
    add("--budget-seconds", args.budget_seconds.to_string());
    if let Some(model) = args.model.as_ref().filter(|model| *model != ORACLE) {
        add("--model", model.clone());
    }
    if let Some(dollars) = args.budget_usd {
        add("--budget-usd", dollars.to_string());
    }
    for set in &args.set {
        add("-c", set.clone());
    }
    words
}

async fn oracle(
    args: &RunArgs,
    instances: &[Instance],
) -> Option<BTreeMap<String, Vec<KnownChange>>> {
    if args.model.as_deref() != Some(ORACLE) {
        return None;
    }
    let mut known = BTreeMap::new();
    for instance in instances {
        match known_changes(instance, &args.data.repositories()).await {
            Ok(changes) => drop(known.insert(instance.task.id.clone(), changes)),
            Err(error) => note(format_args!("{}: {error}", instance.task.id)),
        }
    }
    Some(known)
}

/// A progress bar, and one line for each finished instance.
struct Progress {
    bar: ProgressBar,
    sums: Report,
}

impl Progress {
    fn new(left: usize) -> Self {
        let style = ProgressStyle::with_template("{pos} of {len} done · {msg} · {eta} left")
            .expect("the template names fields that there are");
        let bar = ProgressBar::new(left as u64).with_style(style);
        bar.set_message("0 settled");
        bar.enable_steady_tick(std::time::Duration::from_secs(1));
        Progress {
            bar,
            sums: Report::default(),
        }
    }

    fn add(&mut self, record: &Record) {
        self.sums.add(record);
        let sums = &self.sums;
        self.bar.set_message(format!(
            "{} settled, {} failed · {} tokens · {}",
            sums.settled,
            sums.failed,
            sums.prompt_tokens + sums.output_tokens,
            Dollars(sums.dollars),
        ));
        let line = format!(
            "{}: {} ({:.0} s)",
            harmless(&record.instance_id),
            harmless(&said(record)),
            record.seconds
        );
        // Without a terminal, the bar is hidden and prints nothing.
        match self.bar.is_hidden() {
            true => note(format_args!("{line}")),
            false => self.bar.println(line),
        }
        self.bar.inc(1);
    }
}

/// Describes in one line how an instance ended.
pub(super) fn said(record: &Record) -> String {
    match &record.outcome {
        bench::Outcome::Finished(finished) => words::stop_reason(&finished.stop_reason),
        bench::Outcome::Failed { why, .. } => format!("failed: {why}"),
    }
}

fn told(report: &Report, ended: Ended, args: &RunArgs) -> String {
    let took = std::time::Duration::from_secs_f64(report.seconds);
    let mut text = format!(
        "{}: {} settled, {} with a change, {} failed · {}, {} tokens, {} · {} of total run time\n{}",
        words::count(report.instances as u64, "instance"),
        report.settled,
        report.with_patch,
        report.failed,
        words::count(report.calls, "call"),
        report.prompt_tokens + report.output_tokens,
        Dollars(report.dollars),
        HumanDuration(took),
        args.out.join("report.html").display(),
    );
    if ended == Ended::BudgetSpent {
        text.push_str(
            "\nthe budget for all instances is spent: pass a larger --budget-usd-all to continue",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// A command line of `starling swebench run`.
    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,
    }

    #[test]
    fn budget_for_all_instances_needs_models_with_a_price() {
        // No key is needed to reach the models.
        let set = "-c models.m.base_url=\"http://localhost:1/v1\" -c models.p.base_url=\"http://localhost:1/v1\" \
                   -c models.p.price_prompt=1.0 -c models.p.price_output=1.0";
        let priced = |words: &str| {
            let line = format!("x --dataset d --repos r --out o {set} {words}");
            let Line { run } = Line::try_parse_from(line.split_whitespace()).unwrap();
            priced(&run).map_err(|WrongUse(why)| why)
        };
        let all = "--budget-usd-all 1";
        for allowed in [
            "--model m".to_owned(),
            format!("--model p {all}"),
            format!("--model oracle {all}"),
            format!("--model m --sample model=p {all}"),
            format!("--model p --verifier http://localhost:1 {all}"),
        ] {
            assert_eq!(priced(&allowed), Ok(()), "{allowed}");
        }
        for refused in [
            format!("--model m {all}"),
            format!("--model p --sample model=m {all}"),
            format!("--model m --sample driver=single --sample model=p {all}"),
            format!("--model p --verifier m {all}"),
        ] {
            let why = priced(&refused).unwrap_err();
            assert!(
                why.contains("the price of m is unknown"),
                "{refused}: {why}"
            );
        }
    }
}

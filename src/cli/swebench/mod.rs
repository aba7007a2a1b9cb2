//! `starling swebench …`

pub mod args;
mod env;
mod export;
mod official;
mod ray;
mod report;
mod run;
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use args::{CeilingArgs, DatasetArgs, GradeArgs, SwebenchCommand};
use futures::StreamExt;

use super::{Outcome, WrongUse};
use crate::cli::standard::{print, print_line};
use starling_bench::{
    Ceiling, Checkouts, Grader, Grades, Instance, Prediction, Scaling, ceiling, read_environments,
    read_instances, read_predictions,
};
use starling_sandbox::{Policy, Shadows, cache_dir};
use starling_text::harmless_json;

/// Name to pass instead of a predictions file, to grade the known changes themselves.
const GOLD: &str = "gold";

pub async fn run(command: SwebenchCommand) -> anyhow::Result<Outcome> {
    match command {
        SwebenchCommand::Ceiling(args) => measure_ceiling(&args).await,
        SwebenchCommand::Run(args) => run::run(&args).await,
        SwebenchCommand::Report { out } => report::write(&out).map(|()| Outcome::Settled),
        SwebenchCommand::Grade(args) => grade(&args).await,
        SwebenchCommand::Env(args) => env::serve(&args).await,
        SwebenchCommand::Export(args) => export::export(&args).map(|()| Outcome::Settled),
    }
}

/// Returns the selected instances in the order of the data set.
fn chosen(data: &DatasetArgs) -> Result<Vec<Instance>, WrongUse> {
    let mut instances =
        read_instances(&data.dataset).map_err(|error| WrongUse(error.to_string()))?;
    if !data.ids.is_empty() {
        let known: BTreeSet<&str> = instances.iter().map(|i| i.task.id.as_str()).collect();
        if let Some(id) = data.ids.iter().find(|id| !known.contains(id.as_str())) {
            let file = data.dataset.display();
            return Err(WrongUse(format!("{file} has no instance {id}")));
        }
        instances.retain(|instance| data.ids.contains(&instance.task.id));
    }
    Ok(instances)
}

async fn measure_ceiling(args: &CeilingArgs) -> anyhow::Result<Outcome> {
    let instances = chosen(&args.data)?;
    let bar = indicatif::ProgressBar::new(instances.len() as u64);
    let found = ceiling(&instances, &args.data.repositories(), |_| bar.inc(1)).await;
    bar.finish_and_clear();
    match args.json {
        true => print_line(harmless_json(&serde_json::to_string(&found)?))?,
        false => print(told(&found))?,
    }
    Ok(match found.failed.is_empty() {
        true => Outcome::Settled,
        false => Outcome::NotSettled,
    })
}

fn told(found: &Ceiling) -> String {
    let mut text = format!("{} of {} expressible\n", found.expressible, found.instances);
    for failure in &found.failed {
        text.push_str(&format!("  {}: {}\n", failure.instance_id, failure.why));
    }
    text
}

async fn grade(args: &GradeArgs) -> anyhow::Result<Outcome> {
    let instances = chosen(&args.data)?;
    if args.official {
        return official::grade(args, &instances).await;
    }
    let environments = match &args.environments {
        Some(file) => read_environments(file).map_err(|error| WrongUse(error.to_string()))?,
        None => BTreeMap::new(),
    };
    let cache = cache_dir().context("no cache directory was found: set STARLING_CACHE_DIR")?;
    // The code under test is a prediction's, and these files name the answers.
    let hidden = [&args.data.dataset, &args.predictions].into_iter();
    let hidden = hidden.chain(&args.environments).map(std::path::absolute);
    let hidden: Vec<PathBuf> = hidden.collect::<Result<_, _>>()?;
    let grader = &Grader {
        repositories: args.data.repositories(),
        checkouts: Checkouts::temporary()?,
        environments,
        containers: args.containers.containers(),
        shadows: Shadows::open(&cache, Policy::default()).await?,
        hidden,
        cache,
        deadline: Duration::from_secs(args.test_seconds),
    };
    if samples::count(&args.predictions) > 0 {
        let found = samples::grade(grader, &args.predictions, &instances, args.workers).await?;
        match args.json {
            true => print_line(harmless_json(&serde_json::to_string(&found)?))?,
            false => print(scaling_text(&found))?,
        }
        return Ok(Outcome::Settled);
    }
    let predictions = predictions(&args.predictions, &instances)?;
    let pairs = instances
        .iter()
        .filter_map(|instance| Some((instance, predictions.get(&instance.task.id)?)));
    let bar = &indicatif::ProgressBar::new(predictions.len() as u64);
    let graded = futures::stream::iter(pairs).map(|(instance, prediction)| async move {
        let grade = grader.grade(instance, prediction).await;
        bar.inc(1);
        (instance, grade)
    });
    let mut grades = Grades::default();
    let mut graded = graded.buffered(args.workers.max(1));
    while let Some((instance, grade)) = graded.next().await {
        grades.add(&instance.task.id, grade);
    }
    bar.finish_and_clear();
    print_grades(&grades, args)
}

fn print_grades(grades: &Grades, args: &GradeArgs) -> anyhow::Result<Outcome> {
    match args.json {
        true => print_line(harmless_json(&serde_json::to_string(grades)?))?,
        false => print(graded_text(grades))?,
    }
    Ok(match grades.errors.is_empty() {
        true => Outcome::Settled,
        false => Outcome::NotSettled,
    })
}

fn predictions(
    file: &Path,
    instances: &[Instance],
) -> Result<BTreeMap<String, Prediction>, WrongUse> {
    if file != Path::new(GOLD) {
        return read_predictions(file).map_err(|error| WrongUse(error.to_string()));
    }
    let known = instances.iter().map(|instance| {
        let prediction = Prediction {
            instance_id: instance.task.id.clone(),
            model_name_or_path: GOLD.into(),
            model_patch: Some(instance.answer.patch.clone()),
        };
        (instance.task.id.clone(), prediction)
    });
    Ok(known.collect())
}

fn scaling_text(found: &Scaling) -> String {
    let percent = |share: f64| 100.0 * share;
    let mut text = format!(
        "{} instances, {} samples of each\n",
        found.instances, found.samples
    );
    for (k, share) in &found.pass_at {
        text.push_str(&format!("  pass@{k}: {:.1} %\n", percent(*share)));
    }
    text.push_str(&format!("  chosen: {:.1} %\n", percent(found.chosen)));
    for (signal, share) in &found.leads {
        let share = percent(*share);
        text.push_str(&format!(
            "  {signal:?} prefers the resolved sample in {share:.1} % of {} pairs\n",
            found.pairs
        ));
    }
    text
}

fn graded_text(grades: &Grades) -> String {
    let (resolved, unresolved) = (grades.resolved.len(), grades.unresolved.len());
    let mut text = format!(
        "{resolved} resolved, {unresolved} unresolved, {} errors\n",
        grades.errors.len()
    );
    for (what, list) in [
        ("unresolved", &grades.unresolved),
        ("error", &grades.errors),
    ] {
        for one in list {
            text.push_str(&format!("  {what} {}: {}\n", one.instance_id, one.why));
        }
    }
    text
}

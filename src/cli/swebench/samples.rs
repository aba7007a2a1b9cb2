//! Runs several samples of each instance and chooses one; `grade` measures how much the choice
//! improves the result.
//!
//! ```text
//! samples/1, samples/2, …          one directory for each run, see `swebench run`
//! choices/<id>.json                the chosen sample, and the signals of each sample
//! predictions.jsonl                the chosen patches
//! grades/<id>.json, scaling.json   results of `grade` for all samples
//! samples/N/grades.json            results of `grade` for one sample, as for any run
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::args::{RunArgs, SampleSettings};
use super::run::solve;
use crate::cli::standard::print_line;
use crate::cli::{Outcome, WrongUse};
use starling_bench::{
    Candidate, Choice, Ended, Grade, Grader, Grades, Instance, Judge, Prediction, Record, Report,
    Scaling, Task, choose, file_name, instance_directory, records, scaling,
};
use starling_config::{self, ConfigSources, ProjectFile, Trust};
use starling_core::{Dollars, Limits, Tokens};
use starling_models::registry::Models;
use starling_models::verifier::Verifier;
use starling_swarm::budget::Budget;
use starling_text::harmless_json;

/// Temperature of samples that differ in no other setting.
const TEMPERATURE: f64 = 0.8;

/// Summary of all samples.
#[derive(Debug, Serialize)]
struct SampleSummary {
    instances: usize,
    samples: Vec<Report>,
    /// Number of instances with a chosen sample.
    chosen: usize,
    /// Cost of verifiers, in dollars.
    choosing_dollars: f64,
}

pub(super) async fn run(args: &RunArgs, instances: &[Instance]) -> anyhow::Result<Outcome> {
    let verifier = verifier(args)?;
    let mut reports = Vec::new();
    let mut all_ended = true;
    for number in 1..=args.samples {
        let spent: f64 = reports.iter().map(|report: &Report| report.dollars).sum();
        let (one, said) = sample(args, number, spent);
        let (report, ended) = solve(&one, instances, said).await?;
        all_ended &= ended == Ended::All && report.failed == 0;
        reports.push(report);
    }
    let spent: f64 = reports.iter().map(|report| report.dollars).sum();
    let judge = verifier
        .map(|verifier| judge(args, instances, verifier, spent))
        .transpose()?;
    let choices = choose_all(args, instances, judge.as_ref()).await?;
    let sampled = SampleSummary {
        instances: instances.len(),
        samples: reports,
        chosen: choices.len(),
        choosing_dollars: choices.values().map(|choice| choice.dollars.0).sum(),
    };
    write(&args.out.join("report.json"), &sampled)?;
    match args.json {
        true => print_line(harmless_json(&serde_json::to_string(&sampled)?))?,
        false => print_line(format_args!(
            "{} of {} instances have a chosen change (from {} samples each): {}",
            sampled.chosen,
            sampled.instances,
            args.samples,
            args.out.join("predictions.jsonl").display()
        ))?,
    }
    Ok(match all_ended {
        true => Outcome::Settled,
        false => Outcome::NotSettled,
    })
}

/// Returns the arguments of one sample, and a description of its difference to other samples.
fn sample(args: &RunArgs, number: usize, spent: f64) -> (RunArgs, String) {
    let mut one = args.clone();
    one.out = folder(&args.out, number);
    one.budget_usd_all = args.budget_usd_all.map(|all| (all - spent).max(0.0));
    let other = SampleSettings::default();
    let kind = match args.sample.len() {
        0 => &other,
        kinds => &args.sample[(number - 1) % kinds],
    };
    if let Some(model) = &kind.model {
        one.model = Some(model.clone());
    }
    if let Some(driver) = kind.driver {
        one.driver = driver;
    }
    let temperature = kind.temperature.unwrap_or(TEMPERATURE);
    one.set.push(format!("run.temperature={temperature:?}"));
    one.set.push(format!("run.seed={number}"));
    let said = format!(
        "sample {number}, {}, temperature {temperature}",
        one.driver.name()
    );
    (one, said)
}

fn verifier(args: &RunArgs) -> anyhow::Result<Option<Verifier>> {
    let Some(wanted) = &args.verifier else {
        return Ok(None);
    };
    if is_endpoint(wanted) {
        return Ok(Some(Verifier::Endpoint(wanted.clone())));
    }
    // No project configuration is read, because the verifier judges all projects.
    let nowhere = Path::new("/");
    let sources = ConfigSources::of_process(
        ProjectFile::of(nowhere),
        Trust::NotTrusted,
        args.set.clone(),
    );
    let config = starling_config::load(&sources).map_err(|error| WrongUse(error.to_string()))?;
    let models = Models::open(&config.config, Some(wanted));
    let models = models.map_err(|error| WrongUse(error.to_string()))?;
    Ok(Some(Verifier::Model(models.agent)))
}

/// Returns whether a verifier is an endpoint, and not a model.
pub(super) fn is_endpoint(verifier: &str) -> bool {
    verifier.starts_with("http://") || verifier.starts_with("https://")
}

/// Returns the verifier with the budget that the samples and earlier choices leave.
fn judge(
    args: &RunArgs,
    instances: &[Instance],
    verifier: Verifier,
    spent: f64,
) -> anyhow::Result<Judge> {
    let mut chosen = 0.0;
    for instance in instances {
        let choice = read::<Choice>(&choice_of(&args.out, &instance.task.id))?;
        chosen += choice.map_or(0.0, |choice| choice.dollars.0);
    }
    let left = |all: f64| Dollars((all - spent - chosen).max(0.0));
    let limits = Limits {
        calls: u32::MAX,
        tokens: Tokens(u64::MAX),
        dollars: args.budget_usd_all.map(left),
        ..Limits::default()
    };
    Ok(Judge {
        verifier,
        ledger: Budget::new(limits),
    })
}

fn choice_of(out: &Path, id: &str) -> PathBuf {
    out.join("choices").join(format!("{}.json", file_name(id)))
}

/// Chooses a sample for each instance whose samples are all done. Earlier choices are kept.
async fn choose_all(
    args: &RunArgs,
    instances: &[Instance],
    judge: Option<&Judge>,
) -> anyhow::Result<BTreeMap<String, Choice>> {
    let all = all_records(&args.out, args.samples)?;
    let model = args.model.as_deref().unwrap_or("the configured model");
    let tasks = instances.iter().map(|instance| &instance.task);
    let done = tasks.filter_map(|task| {
        let of_this: Vec<&Record> = all.iter().filter_map(|of| of.get(&task.id)).collect();
        (of_this.len() == args.samples).then_some((task, of_this))
    });
    let chosen = stream::iter(done).map(|(task, of_this)| async move {
        let choice = choose_one(&args.out, task, &of_this, judge).await?;
        anyhow::Ok((task, of_this, choice))
    });
    let mut chosen = chosen.buffered(args.workers.max(1));
    let mut choices = BTreeMap::new();
    let mut predictions = String::new();
    while let Some((task, of_this, choice)) = chosen.try_next().await? {
        let record = of_this.get(choice.chosen - 1);
        let record = record.context("the choice belongs to another run")?;
        let prediction = Prediction {
            instance_id: task.id.clone(),
            model_name_or_path: format!("{model}, chosen of {}", args.samples),
            model_patch: Some(record.patch().to_owned()),
        };
        predictions.push_str(&serde_json::to_string(&prediction)?);
        predictions.push('\n');
        choices.insert(task.id.clone(), choice);
    }
    put(&args.out.join("predictions.jsonl"), predictions.as_bytes())?;
    Ok(choices)
}

async fn choose_one(
    out: &Path,
    task: &Task,
    records: &[&Record],
    judge: Option<&Judge>,
) -> anyhow::Result<Choice> {
    let place = choice_of(out, &task.id);
    if let Some(choice) = read(&place)? {
        return Ok(choice);
    }
    let candidates = candidates(out, records);
    let choice = choose(&task.problem_statement, &candidates, judge).await;
    write(&place, &choice)?;
    Ok(choice)
}

/// Returns the records of each sample, in order of the samples.
fn all_records(out: &Path, samples: usize) -> anyhow::Result<Vec<BTreeMap<String, Record>>> {
    let of = |number: usize| records(&folder(out, number));
    Ok((1..=samples).map(of).collect::<Result<_, _>>()?)
}

fn candidates(out: &Path, records: &[&Record]) -> Vec<Candidate> {
    let candidate = |(sample, record): (usize, &&Record)| {
        let story = instance_directory(&folder(out, sample), &record.instance_id);
        Candidate {
            sample,
            patch: record.patch().to_owned(),
            // A failed run may have no trajectory.
            trajectory: fs::read_to_string(story.join("trajectory.jsonl")).unwrap_or_default(),
        }
    };
    (1..).zip(records).map(candidate).collect()
}

/// Returns the number of samples in a directory, or 0 if it is not the output of `run --samples`.
pub(super) fn count(out: &Path) -> usize {
    let is_there = |number: &usize| folder(out, *number).is_dir();
    (1..).take_while(is_there).count()
}

/// Returns the directory of a sample. It has the layout of a single run.
pub(super) fn folder(out: &Path, sample: usize) -> PathBuf {
    out.join("samples").join(sample.to_string())
}

/// Returns the path of a sample's grades.
pub(super) fn grades_of(out: &Path, sample: usize) -> PathBuf {
    folder(out, sample).join("grades.json")
}

/// Grades every sample, `workers` instances at a time, and reports how much the choice improves the
/// result. Samples with the same patch are graded once.
pub(super) async fn grade(
    grader: &Grader,
    out: &Path,
    instances: &[Instance],
    workers: usize,
) -> anyhow::Result<Scaling> {
    let samples = count(out);
    let all = all_records(out, samples)?;
    let there = instances.iter().filter_map(|instance| {
        let of_this = (1..).zip(&all);
        let of_this = of_this.filter_map(|(sample, of)| Some((sample, of.get(&instance.task.id)?)));
        let of_this: BTreeMap<usize, &Record> = of_this.collect();
        (!of_this.is_empty()).then_some((instance, of_this))
    });
    let graded = stream::iter(there).map(|(instance, of_this)| async move {
        let id = &instance.task.id;
        let place = out.join("grades").join(format!("{}.json", file_name(id)));
        if let Some(graded) = read::<BTreeMap<usize, Grade>>(&place)? {
            return anyhow::Ok((id, graded));
        }
        let graded = grade_one(grader, instance, &of_this).await;
        write(&place, &graded)?;
        Ok((id, graded))
    });
    let graded = graded.buffered(workers.max(1)).try_collect();
    let graded: BTreeMap<&String, BTreeMap<usize, Grade>> = graded.await?;
    let mut of_samples = vec![Grades::default(); samples];
    let mut grades = BTreeMap::new();
    let mut choices = BTreeMap::new();
    for (id, graded) in graded {
        for (sample, grade) in &graded {
            if let Some(of_this) = of_samples.get_mut(sample - 1) {
                of_this.add(id, grade.clone());
            }
        }
        grades.insert(id.clone(), graded);
        if let Some(choice) = read(&choice_of(out, id))? {
            choices.insert(id.clone(), choice);
        }
    }
    for (sample, of_this) in (1..).zip(&of_samples) {
        write(&grades_of(out, sample), of_this)?;
    }
    let found = scaling(&grades, &choices);
    write(&out.join("scaling.json"), &found)?;
    Ok(found)
}

async fn grade_one(
    grader: &Grader,
    instance: &Instance,
    records: &BTreeMap<usize, &Record>,
) -> BTreeMap<usize, Grade> {
    let mut by_patch: BTreeMap<&str, Grade> = BTreeMap::new();
    let mut graded = BTreeMap::new();
    for (sample, record) in records {
        let grade = match by_patch.get(record.patch()) {
            Some(grade) => grade.clone(),
            None => {
                let prediction = Prediction {
                    instance_id: instance.task.id.clone(),
                    model_name_or_path: format!("sample {sample}"),
                    model_patch: Some(record.patch().to_owned()),
                };
                let grade = grader.grade(instance, &prediction).await;
                by_patch.insert(record.patch(), grade.clone());
                grade
            }
        };
        graded.insert(*sample, grade);
    }
    graded
}

fn read<T: DeserializeOwned>(place: &Path) -> anyhow::Result<Option<T>> {
    match fs::read(place) {
        Ok(bytes) => {
            let read = serde_json::from_slice(&bytes);
            Ok(Some(read.with_context(|| place.display().to_string())?))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| place.display().to_string()),
    }
}

fn write(place: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    put(place, &serde_json::to_vec_pretty(value)?)
}

/// Writes a file atomically: readers see the old or the new content, never a part.
fn put(place: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let beside = place.with_extension("new");
    let written = || {
        fs::create_dir_all(place.parent().unwrap_or(place))?;
        fs::write(&beside, bytes)?;
        fs::rename(&beside, place)
    };
    written().with_context(|| place.display().to_string())
}

//! Several samples of each instance, one of which is chosen; and what they were worth, once graded.
//!
//! ```text
//! samples/1, samples/2, …          each a run of its own, see `swebench run`
//! choices/<id>.json                the chosen sample, and what spoke for each
//! predictions.jsonl                the chosen ones
//! grades/<id>.json, scaling.json   what `grade` made of all of them
//! samples/N/grades.json            the same of one sample, as `grade` says it of any run
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::args::{Kind, RunArgs};
use super::run::solve;
use crate::cli::{Outcome, WrongUse};
use starling_bench::{
    Candidate, Choice, Ended, Grade, Grader, Grades, Instance, Judge, Prediction, Record, Report,
    Scaling, Task, choose, records, scaling,
};
use starling_config::{self, ProjectFile, Sources, Trust};
use starling_core::{Dollars, Limits, Tokens};
use starling_models::registry::Models;
use starling_models::verifier::Verifier;
use starling_swarm::ledger::Ledger;

/// Where samples differ by nothing else.
const TEMPERATURE: f64 = 0.8;

/// All samples added up.
#[derive(Debug, Serialize)]
struct Sampled {
    instances: usize,
    samples: Vec<Report>,
    /// Instances with a choice.
    chosen: usize,
    /// Of verifiers.
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
    let sampled = Sampled {
        instances: instances.len(),
        samples: reports,
        chosen: choices.len(),
        choosing_dollars: choices.values().map(|choice| choice.dollars.0).sum(),
    };
    write(&args.out.join("report.json"), &sampled)?;
    match args.json {
        true => println!("{}", serde_json::to_string(&sampled)?),
        false => println!(
            "{} of {} instances have a chosen change, each of {} samples: {}",
            sampled.chosen,
            sampled.instances,
            args.samples,
            args.out.join("predictions.jsonl").display()
        ),
    }
    Ok(match all_ended {
        true => Outcome::Settled,
        false => Outcome::NotSettled,
    })
}

/// What one sample is run with, and what makes it another one, in words.
fn sample(args: &RunArgs, number: usize, spent: f64) -> (RunArgs, String) {
    let mut one = args.clone();
    one.out = folder(&args.out, number);
    one.budget_usd_all = args.budget_usd_all.map(|all| (all - spent).max(0.0));
    let other = Kind::default();
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
    if wanted.starts_with("http://") || wanted.starts_with("https://") {
        return Ok(Some(Verifier::Endpoint(wanted.clone())));
    }
    // Nothing of a project is read: it judges for all.
    let nowhere = Path::new("/");
    let sources = Sources::of_process(
        ProjectFile::of(nowhere),
        Trust::NotTrusted,
        args.set.clone(),
    );
    let config = starling_config::load(&sources).map_err(|error| WrongUse(error.to_string()))?;
    let models = Models::open(&config.config, Some(wanted));
    let models = models.map_err(|error| WrongUse(error.to_string()))?;
    Ok(Some(Verifier::Model(models.agent)))
}

/// The verifier with what the samples, and the choices that were made before, leave of the money.
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
        ledger: Ledger::new(limits),
    })
}

fn choice_of(out: &Path, id: &str) -> PathBuf {
    out.join("choices").join(format!("{id}.json"))
}

/// Chooses where all samples of an instance are done; what was chosen before stays.
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
        let record = record.context("a choice of another run")?;
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

/// The records of each sample, in their order.
fn all_records(out: &Path, samples: usize) -> anyhow::Result<Vec<BTreeMap<String, Record>>> {
    let of = |number: usize| records(&folder(out, number));
    Ok((1..=samples).map(of).collect::<Result<_, _>>()?)
}

fn candidates(out: &Path, records: &[&Record]) -> Vec<Candidate> {
    let candidate = |(sample, record): (usize, &&Record)| {
        let instances = folder(out, sample).join("instances");
        let story = instances.join(&record.instance_id);
        Candidate {
            sample,
            patch: record.patch().to_owned(),
            // A run that failed may have none.
            trajectory: fs::read_to_string(story.join("trajectory.jsonl")).unwrap_or_default(),
        }
    };
    (1..).zip(records).map(candidate).collect()
}

/// How many samples a folder holds; 0: it is none of `run --samples`.
pub(super) fn count(out: &Path) -> usize {
    let is_there = |number: &usize| folder(out, *number).is_dir();
    (1..).take_while(is_there).count()
}

/// The folder of a sample: that of a run of its own.
pub(super) fn folder(out: &Path, sample: usize) -> PathBuf {
    out.join("samples").join(sample.to_string())
}

/// What `grade` made of a sample.
pub(super) fn grades_of(out: &Path, sample: usize) -> PathBuf {
    folder(out, sample).join("grades.json")
}

/// Grades every sample, the same change once, `workers` instances at a time, and says what choosing was
/// worth.
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
        let place = out.join("grades").join(format!("{id}.json"));
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

/// Puts a file in place whole.
fn put(place: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let beside = place.with_extension("new");
    let written = || {
        fs::create_dir_all(place.parent().unwrap_or(place))?;
        fs::write(&beside, bytes)?;
        fs::rename(&beside, place)
    };
    written().with_context(|| place.display().to_string())
}

//! Several samples of each instance, one of which is chosen; and what they were worth, once graded.
//!
//! ```text
//! samples/1, samples/2, …          each a run of its own, see `swebench run`
//! choices/<id>.json                the chosen sample, and what spoke for each
//! predictions.jsonl                the chosen ones
//! grades/<id>.json, scaling.json   what `grade` made of all of them
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::args::{Kind, RunArgs};
use super::run::{driver, solve};
use crate::cli::{Outcome, WrongUse};
use crate::config::{self, Sources, Trust};
use crate::headless::swebench::{
    Candidate, Choice, Ended, Grade, Grader, Instance, Prediction, Record, Report, Scaling, choose,
    records, scaling,
};
use crate::model::registry::Models;
use crate::model::verifier::Verifier;

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
    let choices = choose_all(args, instances, verifier.as_ref()).await?;
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
    one.out = args.out.join("samples").join(number.to_string());
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
        driver(one.driver)
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
    let sources = Sources::of_process(nowhere, Trust::NotTrusted, args.set.clone());
    let config = config::load(&sources).map_err(|error| WrongUse(error.to_string()))?;
    let models = Models::open(&config.config, Some(wanted));
    let models = models.map_err(|error| WrongUse(error.to_string()))?;
    Ok(Some(Verifier::Model(models.agent)))
}

/// Chooses where all samples of an instance are done; what was chosen before stays.
async fn choose_all(
    args: &RunArgs,
    instances: &[Instance],
    verifier: Option<&Verifier>,
) -> anyhow::Result<BTreeMap<String, Choice>> {
    let all = all_records(&args.out, args.samples)?;
    let model = args.model.as_deref().unwrap_or("the configured model");
    let mut choices = BTreeMap::new();
    let mut predictions = String::new();
    for task in instances.iter().map(|instance| &instance.task) {
        let of_this: Vec<&Record> = all.iter().filter_map(|of| of.get(&task.id)).collect();
        if of_this.len() < args.samples {
            continue;
        }
        let place = args.out.join("choices").join(format!("{}.json", task.id));
        let choice = match read::<Choice>(&place)? {
            Some(choice) => choice,
            None => {
                let candidates = candidates(&args.out, &of_this);
                let choice = choose(&task.problem_statement, &candidates, verifier).await;
                write(&place, &choice)?;
                choice
            }
        };
        let chosen = of_this
            .get(choice.chosen - 1)
            .context("a choice of another run")?;
        let prediction = Prediction {
            instance_id: task.id.clone(),
            model_name_or_path: format!("{model}, chosen of {}", args.samples),
            model_patch: Some(chosen.patch().to_owned()),
        };
        predictions.push_str(&serde_json::to_string(&prediction)?);
        predictions.push('\n');
        choices.insert(task.id.clone(), choice);
    }
    put(&args.out.join("predictions.jsonl"), predictions.as_bytes())?;
    Ok(choices)
}

/// The records of each sample, in their order.
fn all_records(out: &Path, samples: usize) -> anyhow::Result<Vec<BTreeMap<String, Record>>> {
    let of = |number: usize| records(&out.join("samples").join(number.to_string()));
    Ok((1..=samples).map(of).collect::<Result<_, _>>()?)
}

fn candidates(out: &Path, records: &[&Record]) -> Vec<Candidate> {
    let candidate = |(sample, record): (usize, &&Record)| {
        let folder = out.join("samples").join(sample.to_string());
        let story = folder.join("instances").join(&record.instance_id);
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
    let is_there = |number: &usize| out.join("samples").join(number.to_string()).is_dir();
    (1..).take_while(is_there).count()
}

/// Grades every sample, the same change once, and says what choosing was worth.
pub(super) async fn grade(
    grader: &Grader,
    out: &Path,
    instances: &[Instance],
) -> anyhow::Result<Scaling> {
    let all = all_records(out, count(out))?;
    let mut grades = BTreeMap::new();
    let mut choices = BTreeMap::new();
    for instance in instances {
        let id = &instance.task.id;
        let of_this = (1..).zip(all.iter().filter_map(|of| of.get(id)));
        let of_this: BTreeMap<usize, &Record> = of_this.collect();
        if of_this.is_empty() {
            continue;
        }
        let place = out.join("grades").join(format!("{id}.json"));
        let graded = match read::<BTreeMap<usize, Grade>>(&place)? {
            Some(graded) => graded,
            None => {
                let graded = grade_one(grader, instance, &of_this).await;
                write(&place, &graded)?;
                graded
            }
        };
        grades.insert(id.clone(), graded);
        if let Some(choice) = read(&out.join("choices").join(format!("{id}.json")))? {
            choices.insert(id.clone(), choice);
        }
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

//! `starling swebench export`

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;

use super::args::ExportArgs;
use super::samples;
use crate::cli::WrongUse;
use crate::cli::standard::{note, unless_gone};
use starling_bench::{
    Export, ExportError, Exported, Graded, HeldOutPolicy, RunSource, read_instances,
};
use starling_workspace::private_file;

pub(super) fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let export = wanted(args)?;
    let exported = export.lines().map_err(told)?;
    match &args.to {
        Some(path) => {
            let file = private_file(path).with_context(|| path.display().to_string())?;
            write(&exported, BufWriter::new(file)).with_context(|| path.display().to_string())?;
        }
        None => unless_gone(write(&exported, std::io::stdout().lock()))?,
    }
    note(format_args!(
        "{} examples; left out: {} duplicates, {} instances with another grade, {} without a trajectory",
        exported.lines.len(),
        exported.duplicates,
        exported.other_outcomes,
        exported.untold,
    ));
    Ok(())
}

fn wanted(args: &ExportArgs) -> anyhow::Result<Export> {
    let sources = sources(args)?;
    let mut held_out = BTreeSet::new();
    for file in &args.held_out {
        let instances = read_instances(file).map_err(|error| WrongUse(error.to_string()))?;
        held_out.extend(instances.into_iter().map(|instance| instance.task.id));
    }
    Ok(Export {
        format: args.format.format(),
        sources,
        split: args.split.clone(),
        held_out,
        measuring: match args.allow_held_out {
            true => HeldOutPolicy::Allowed,
            false => HeldOutPolicy::Refused,
        },
    })
}

/// Returns the runs with their grades. A run with several samples becomes one source for each
/// sample; its grades are beside the trajectories.
fn sources(args: &ExportArgs) -> anyhow::Result<Vec<RunSource>> {
    let is_sampled = |root: &&PathBuf| samples::count(root) > 0;
    let (sampled, runs): (Vec<&PathBuf>, Vec<&PathBuf>) = args.out_of.iter().partition(is_sampled);
    if !args.graded.is_empty() && args.graded.len() != runs.len() {
        let (runs, grades) = (runs.len(), args.graded.len());
        let text = format!(
            "{runs} runs but {grades} files of grades: pass one file for each run, in the same order, except for runs with --samples"
        );
        return Err(WrongUse(text).into());
    }
    let mut sources = Vec::new();
    for (at, root) in runs.into_iter().enumerate() {
        let graded = args.graded.get(at).map(|path| Graded::read(path));
        sources.push(RunSource {
            root: root.clone(),
            graded: graded.transpose().map_err(told)?,
        });
    }
    for root in sampled {
        for sample in 1..=samples::count(root) {
            let grades = samples::grades_of(root, sample);
            let graded = grades.exists().then(|| Graded::read(&grades));
            sources.push(RunSource {
                root: samples::folder(root, sample),
                graded: graded.transpose().map_err(told)?,
            });
        }
    }
    Ok(sources)
}

/// Reports errors that the caller can fix as wrong use.
fn told(error: ExportError) -> anyhow::Error {
    match error {
        ExportError::Directory(error) => error.into(),
        ExportError::Unreadable { .. }
        | ExportError::NoGrades { .. }
        | ExportError::Ungraded(_)
        | ExportError::MeasuringSplit(_)
        | ExportError::HeldOut { .. } => WrongUse(error.to_string()).into(),
    }
}

fn write(exported: &Exported, mut to: impl Write) -> std::io::Result<()> {
    for line in &exported.lines {
        writeln!(to, "{line}")?;
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    // A command line with the arguments of `starling swebench export`.
    #[derive(Parser)]
    struct ExportLine {
        #[command(flatten)]
        args: ExportArgs,
    }

    #[test]
    fn run_with_samples_is_exported_as_one_graded_run_per_sample() {
        let dir = tempfile::tempdir().unwrap();
        let (plain, sampled) = (dir.path().join("plain"), dir.path().join("sampled"));
        for sample in 1..=2 {
            std::fs::create_dir_all(samples::folder(&sampled, sample)).unwrap();
        }
        let grades = r#"{"resolved":["a__b-1"],"unresolved":[],"errors":[]}"#;
        std::fs::write(samples::grades_of(&sampled, 2), grades).unwrap();
        let given = dir.path().join("grades.json");
        std::fs::write(&given, grades).unwrap();
        let found = |graded: &[&PathBuf]| {
            let mut words = vec!["x".into(), "--format=raw".into(), "--split=train".into()];
            words.extend(["--out-of".into(), sampled.clone(), plain.clone()]);
            if !graded.is_empty() {
                words.push("--graded".into());
                words.extend(graded.iter().map(|path| (*path).clone()));
            }
            sources(&ExportLine::parse_from(words).args)
        };
        let told: Vec<(PathBuf, bool)> = (found(&[&given]).unwrap().into_iter())
            .map(|source| (source.root, source.graded.is_some()))
            .collect();
        let sample = |number| samples::folder(&sampled, number);
        assert_eq!(
            told,
            [(plain.clone(), true), (sample(1), false), (sample(2), true)]
        );
        let error = found(&[&given, &given]).unwrap_err().to_string();
        assert!(error.contains("1 runs but 2 files of grades"), "{error}");
    }
}

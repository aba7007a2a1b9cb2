//! `starling swebench grade --official`: runs the grader of the Python package `swebench`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use serde::Deserialize;
use tokio::process::Command;

use super::args::GradeArgs;
use super::print_grades;
use crate::cli::{Outcome, WrongUse};
use starling_bench::{Grade, Grades, Instance};
use starling_platform::files::PathExt;
use starling_sandbox::Scratch;
use starling_workspace::{HostPrograms, Variables};

/// Checks that the package is installed and that docker responds.
const CHECK: &str = "import sys\n\
    try:\n    import swebench\n\
    except ImportError as e:\n    sys.exit(f'{e}: `pip install swebench` there')\n\
    import docker\n\
    try:\n    docker.from_env().ping()\n\
    except Exception as e:\n    sys.exit(f'docker does not answer: {e}')\n";
/// Run name to pass to the package. It is part of the report's file name.
const RUN: &str = "starling";

/// The fields that are needed from the package's report.
#[derive(Debug, Deserialize)]
struct Report {
    resolved_ids: Vec<String>,
    unresolved_ids: Vec<String>,
    #[serde(default)]
    empty_patch_ids: Vec<String>,
    #[serde(default)]
    error_ids: Vec<String>,
}

pub(super) async fn grade(args: &GradeArgs, instances: &[Instance]) -> anyhow::Result<Outcome> {
    let python = args.python.display();
    // The grader runs in a new directory, so that it cannot import modules from the current one.
    let folder = Scratch::temporary()?;
    let programs = HostPrograms::outside_current_directory();
    let program = programs
        .find(&args.python.to_string_lossy())
        .map_err(|error| {
            WrongUse(format!(
                "{error}; choose a Python that has the package swebench with --python"
            ))
        })?;
    let command = || Command::from(programs.command(&program, Variables::Inherited, folder.path()));
    let mut check = command();
    check.args(["-c", CHECK]).stdin(Stdio::null());
    let checked = check.output().await.map_err(|error| {
        WrongUse(format!(
            "{python}: {error}; choose a Python that has the package swebench with --python"
        ))
    })?;
    if !checked.status.success() {
        let why = String::from_utf8_lossy(&checked.stderr).trim().to_owned();
        return Err(WrongUse(format!("{python}: {why}")).into());
    }
    let mut harness = command();
    harness
        .args(["-m", "swebench.harness.run_evaluation", "--run_id", RUN])
        .arg("--dataset_name")
        .arg(whole(&args.data.dataset)?)
        .arg("--predictions_path")
        .arg(predictions(&args.predictions)?)
        .args([
            "--report_dir",
            ".",
            "--max_workers",
            &args.workers.to_string(),
        ])
        .arg("--instance_ids")
        .args(instances.iter().map(|instance| &instance.task.id))
        .stdin(Stdio::null())
        // Progress goes to standard error: standard output is only for results.
        .stdout(Stdio::from(std::io::stderr()))
        .kill_on_drop(true);
    let status = harness.status().await?;
    anyhow::ensure!(
        status.success(),
        "the grader of the package swebench failed: {status}"
    );
    let grades = read(&report_in(folder.path())?)?;
    print_grades(&grades, args)
}

fn predictions(path: &Path) -> anyhow::Result<PathBuf> {
    match path == Path::new(super::GOLD) {
        true => Ok(path.to_owned()),
        false => whole(path),
    }
}

/// Returns an absolute path, because the package runs in another directory.
fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonical()
        .map_err(|error| WrongUse(format!("{}: {error}", path.display())).into())
}

fn report_in(folder: &Path) -> anyhow::Result<PathBuf> {
    let ending = format!(".{RUN}.json");
    let is_report = |path: &PathBuf| path.to_string_lossy().ends_with(&ending);
    let files = std::fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path());
    let found = files.filter(|path| path.is_file()).find(is_report);
    found.context("the grader of the package swebench wrote no report")
}

fn read(path: &Path) -> anyhow::Result<Grades> {
    let text = std::fs::read_to_string(path)?;
    let report: Report =
        serde_json::from_str(&text).context("cannot read the report of the package swebench")?;
    let mut grades = Grades::default();
    let mut add = |ids: Vec<String>, grade: Grade| {
        for id in ids {
            grades.add(&id, grade.clone());
        }
    };
    add(report.resolved_ids, Grade::Resolved);
    let said = |why: &str| format!("{why}, according to the package swebench");
    add(report.unresolved_ids, Grade::Unresolved(said("tests fail")));
    add(
        report.empty_patch_ids,
        Grade::Unresolved("the prediction is empty".into()),
    );
    add(
        report.error_ids,
        Grade::Error(said("it could not be graded")),
    );
    Ok(grades)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_of_the_swebench_package_is_parsed() {
        let dir = tempfile::tempdir().unwrap();
        assert!(report_in(dir.path()).is_err());
        let report = r#"{"resolved_ids":["a"],"unresolved_ids":["b"],"empty_patch_ids":["c"],"error_ids":["d"],"schema_version":2}"#;
        std::fs::write(dir.path().join("m.starling.json"), report).unwrap();
        let grades = read(&report_in(dir.path()).unwrap()).unwrap();
        assert_eq!(grades.resolved, ["a"]);
        let unresolved: Vec<_> = grades
            .unresolved
            .iter()
            .map(|one| one.instance_id.as_str())
            .collect();
        assert_eq!(unresolved, ["b", "c"]);
        assert_eq!(grades.errors[0].instance_id, "d");
    }
}

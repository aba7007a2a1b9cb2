//! The results: one line of JSON for each checked change, and a summary table.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use starling_swarm::{DiagnosticEvidence, Evidence, TestEvidence};

/// Maximum number of broken tests that a result lists.
const MOST_BROKEN_TESTS: usize = 20;
/// Name of the change without a defect.
pub const GOOD: &str = "the good change";

/// The result of one kind of check (diagnostics or tests) for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckResult {
    Passes,
    Stops,
    /// The only failing tests pass in their version after the change, so the tests before the
    /// change expect the old behaviour.
    Outdated,
    Unknown,
}

/// The result for one change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub instance: String,
    pub what: String,
    pub diagnostics: CheckResult,
    pub tests: CheckResult,
    /// The reasons why the change is stopped or the result is unknown.
    pub said: String,
    pub passed: usize,
    pub millis: u64,
}

impl Row {
    pub fn of(instance: &str, what: &str, evidence: &Evidence) -> Row {
        let mut said: Vec<String> = Vec::new();
        let diagnostics = match &evidence.diagnostics {
            DiagnosticEvidence::Absent => {
                said.push("no language server".to_owned());
                CheckResult::Unknown
            }
            DiagnosticEvidence::Unknown { reason } => {
                said.push(reason.clone());
                CheckResult::Unknown
            }
            DiagnosticEvidence::Known { .. } => {
                let stopping = evidence.diagnostics.stopping();
                said.extend(stopping.map(|problem| problem.message.clone()));
                passes(said.is_empty())
            }
        };
        let (tests, passed) = match &evidence.tests {
            TestEvidence::Unknown { reason } => {
                said.push(reason.clone());
                (CheckResult::Unknown, 0)
            }
            TestEvidence::Known { broken, passed, .. } => {
                said.extend(broken.iter().take(MOST_BROKEN_TESTS).cloned());
                match (broken.is_empty(), passed) {
                    // No test ran to completion both with and without the change.
                    (true, 0) => (CheckResult::Unknown, 0),
                    (none, passed) => (passes(none), *passed),
                }
            }
        };
        Row {
            instance: instance.to_owned(),
            what: what.to_owned(),
            diagnostics,
            tests,
            said: said.join(" | "),
            passed,
            millis: evidence.millis,
        }
    }

    fn stops(&self) -> bool {
        self.diagnostics == CheckResult::Stops || self.tests == CheckResult::Stops
    }
}

fn passes(yes: bool) -> CheckResult {
    match yes {
        true => CheckResult::Passes,
        false => CheckResult::Stops,
    }
}

/// All results, including those of an interrupted measurement.
pub struct Rows {
    file: Option<PathBuf>,
    all: Vec<Row>,
}

impl Rows {
    pub fn open(file: Option<&Path>) -> Rows {
        let text = file.and_then(|file| std::fs::read_to_string(file).ok());
        let lines = text.as_deref().unwrap_or_default().lines();
        Rows {
            file: file.map(Path::to_owned),
            all: lines
                .map(|line| serde_json::from_str(line).expect("a row is valid JSON"))
                .collect(),
        }
    }

    pub fn has(&self, instance: &str, is_good: bool) -> bool {
        let same = |row: &&Row| row.instance == instance && (row.what == GOOD) == is_good;
        self.all.iter().any(|row| same(&row))
    }

    pub fn count(&self, what: &str) -> usize {
        self.all.iter().filter(|row| row.what == what).count()
    }

    pub fn add(&mut self, row: Row) {
        println!(
            "{} {}: diagnostics {:?}, tests {:?} ({} passed), {} ms: {}",
            row.instance, row.what, row.diagnostics, row.tests, row.passed, row.millis, row.said
        );
        if let Some(file) = &self.file {
            let line = serde_json::to_string(&row).expect("a row is valid JSON");
            let opened = OpenOptions::new().append(true).create(true).open(file);
            writeln!(opened.expect("the file of rows can be opened"), "{line}")
                .expect("the row can be written");
        }
        self.all.push(row);
    }

    pub fn print(&self) {
        let mut kinds: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in &self.all {
            kinds.entry(&row.what).or_default().push(row);
        }
        println!(
            "{:<22} {:>6} {:>8} {:>12} {:>6} {:>6} {:>9} {:>14} {:>13}",
            "",
            "tried",
            "stopped",
            "diagnostics",
            "tests",
            "both",
            "outdated",
            "d. unknown",
            "t. unknown"
        );
        for (what, rows) in kinds {
            let count = |fits: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| fits(row)).count();
            let by = |row: &Row| {
                (
                    row.diagnostics == CheckResult::Stops,
                    row.tests == CheckResult::Stops,
                )
            };
            println!(
                "{what:<22} {:>6} {:>8} {:>12} {:>6} {:>6} {:>9} {:>14} {:>13}",
                rows.len(),
                count(&Row::stops),
                count(&|row| by(row) == (true, false)),
                count(&|row| by(row) == (false, true)),
                count(&|row| by(row) == (true, true)),
                count(&|row| row.tests == CheckResult::Outdated),
                count(&|row| row.diagnostics == CheckResult::Unknown),
                count(&|row| row.tests == CheckResult::Unknown),
            );
        }
    }
}

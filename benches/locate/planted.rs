//! Measures how well `locate` finds planted bugs if the task only says which test fails, with and
//! without what the failing test and the passing tests of its file executed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use starling_core::{Executions, TestReport, TestRequest, TestRunner};
use starling_index::{ExecutedLines, Index};
use starling_runner::{ProjectTests, TestSettings};
use starling_sandbox::{Policy, Shadows};
use starling_swarm::TestEvidence;
use starling_syntax::{FilePath, SymbolPath, SymbolTree};
use starling_workspace::{Overlay, Snapshot, Workspace};

use crate::string;

const DEADLINE: Duration = Duration::from_secs(120);
const RANKS: [usize; 4] = [1, 3, 5, 10];
/// Number of symbols that are looked at.
const LIMIT: usize = 30;

/// Number of bugs whose file is first and whose symbol is among the first, for each of [`RANKS`].
#[derive(Default)]
struct Tally {
    bugs: usize,
    /// Number of bugs for which something was recorded in code outside tests.
    recorded: usize,
    by_words: Hits,
    with_executions: Hits,
}

#[derive(Default)]
struct Hits {
    file: usize,
    symbols: [usize; RANKS.len()],
}

pub fn print(planted: &[Value], projects: &Path, cache: &Path, python: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("the runtime starts");
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for bug in planted {
        let tally = tallies.entry(string(bug, "project")).or_default();
        runtime.block_on(tally.add(bug, projects, cache, python));
    }
    println!("recall of the file at 1, and of the symbol at {RANKS:?}");
    for (project, tally) in &tallies {
        tally.print(project);
    }
    let mut all = Tally::default();
    for tally in tallies.values() {
        all.merge(tally);
    }
    all.print("all");
}

impl Tally {
    async fn add(&mut self, bug: &Value, projects: &Path, cache: &Path, python: &Path) {
        let root = projects.join(string(bug, "project")).canonicalize();
        let root = root.expect("the project exists");
        let file = FilePath::new(string(bug, "file"));
        let text = string(bug, "text");
        let overlay = Overlay::from([(file.clone(), Some(text.into()))]);
        let workspace = Workspace::open(root).expect("the project can be opened");
        let snapshot = workspace.snapshot(overlay);
        let line = bug["line"]
            .as_u64()
            .and_then(|line| u32::try_from(line).ok());
        let tree = SymbolTree::parse(file.clone(), text.into());
        let right = tree.at_line(line.expect("a line number")).path.clone();

        let (report, executions) = run(&snapshot, &file, bug, cache, python).await;
        let index = Index::open(snapshot, cache.join("index"));
        let task = format!("{} fails\n{}", string(bug, "test"), failures(&report));
        let by_words = index.locate(&task, LIMIT);
        let lines = executions.failing.iter().map(|one| &one.lines);
        let executed = ExecutedLines {
            failing: lines.collect(),
            passing: Some(&executions.passing),
            passed: executions.passed,
        };
        let with_executions = index.locate_executed(&task, &executed, LIMIT);
        let is_recorded = with_executions
            .iter()
            .any(|one| one.why[0].contains("run by"));
        let paths = |found: Vec<starling_index::Located>| -> Vec<SymbolPath> {
            found.into_iter().map(|one| one.symbol).collect()
        };
        self.bugs += 1;
        self.recorded += usize::from(is_recorded);
        self.by_words.add(&paths(by_words), &right);
        self.with_executions.add(&paths(with_executions), &right);
    }

    fn merge(&mut self, other: &Tally) {
        self.bugs += other.bugs;
        self.recorded += other.recorded;
        self.by_words.merge(&other.by_words);
        self.with_executions.merge(&other.with_executions);
    }

    fn print(&self, name: &str) {
        println!("{name}: {} bugs, {} recorded", self.bugs, self.recorded);
        println!("  by words        {}", self.by_words.shares(self.bugs));
        println!(
            "  with executions {}",
            self.with_executions.shares(self.bugs)
        );
    }
}

impl Hits {
    fn add(&mut self, found: &[SymbolPath], right: &SymbolPath) {
        let first = found.first().map(|one| &one.file);
        self.file += usize::from(first == Some(&right.file));
        let place = found.iter().position(|one| one == right);
        for (hits, rank) in self.symbols.iter_mut().zip(RANKS) {
            *hits += usize::from(place.is_some_and(|place| place < rank));
        }
    }

    fn merge(&mut self, other: &Hits) {
        self.file += other.file;
        for (hits, more) in self.symbols.iter_mut().zip(other.symbols) {
            *hits += more;
        }
    }

    fn shares(&self, all: usize) -> String {
        let share = |hits: usize| format!("{:5.1}", 100.0 * hits as f64 / all.max(1) as f64);
        let symbols = self.symbols.map(share).join(" / ");
        format!("{} | {symbols}", share(self.file))
    }
}

/// Runs the failing test, and records it with the tests of its file.
async fn run(
    snapshot: &Snapshot,
    file: &FilePath,
    bug: &Value,
    cache: &Path,
    python: &Path,
) -> (TestReport, Executions) {
    let shadows = Shadows::open(cache, Policy::default()).await;
    let settings = TestSettings {
        python: Some(python.to_owned()),
        ..TestSettings::default()
    };
    let shadows = shadows.expect("the sandbox is available");
    let tests = ProjectTests::detect(snapshot, shadows, settings).await;
    let text: &str = string(bug, "text");
    let request = |select: &str| TestRequest {
        overlay: vec![(file.clone(), Some(text.as_bytes().into()))],
        select: vec![select.to_owned()],
        deadline: DEADLINE,
    };
    let test = string(bug, "test");
    let report = tests.run(request(test)).await;
    let beside = test.split("::").next().unwrap_or(test);
    let failing = BTreeSet::from([test.to_owned()]);
    let executions = tests.record(request(beside), &failing).await;
    (report, executions)
}

fn failures(report: &TestReport) -> String {
    match TestEvidence::compare(&BTreeSet::new(), report) {
        TestEvidence::Known {
            command, details, ..
        } => format!("{command}\n{details}"),
        TestEvidence::Unknown { .. } => String::new(),
    }
}

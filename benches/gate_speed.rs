//! Compares the time for the complete check of a proposal with the time for its tests alone. The
//! check runs diagnostics and the selected tests, in a shadow (a copy of the tree with the proposed
//! texts).
//!
//! ```sh
//! STARLING_BENCH_TREE=path/to/django STARLING_BENCH_PYTHON=path/to/environment/bin/python \
//!     cargo bench --no-default-features --bench gate_speed -- [SERVER] [SECONDS]
//! ```
//!
//! The benchmark searches the tree for a function whose nearest tests take about SECONDS in a shell
//! without a sandbox (one second by default). Then it alternates between the check of a proposal
//! for this function and its tests alone. The tree is not modified. SERVER (default `ty`) is looked
//! up on `PATH`.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use starling_core::{CommandOrigin, TestReport, TestRequest, TestRunner};
use starling_index::{Index, is_test_file};
use starling_lang::{LanguageServers, OwnPrograms, ProgramSearch, ServerPool, ServerSelection};
use starling_runner::{ProjectTests, TestSettings};
use starling_sandbox::{Policy, Shadows, take_part};
use starling_swarm::{Checker, DiagnosticEvidence, Evidence, TestEvidence};
use starling_syntax::{FilePath, SymbolKind};
use starling_workspace::{Overlay, Snapshot, Workspace};

const TIMES: usize = 9;
const DEADLINE: Duration = Duration::from_secs(120);
/// Comment at the end of a line that marks it as changed.
const MARK: &str = "  # changed";
/// Maximum number of functions to try.
const TRIED: usize = 60;

fn main() {
    take_part();
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(root), Some(python)) = (
        variable("STARLING_BENCH_TREE"),
        variable("STARLING_BENCH_PYTHON"),
    ) else {
        println!(
            "set STARLING_BENCH_TREE to a checkout of Django and STARLING_BENCH_PYTHON to its Python"
        );
        return;
    };
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let server = given.first().map_or("ty", String::as_str);
    let seconds = given
        .get(1)
        .map_or(1.0, |text| text.parse().expect("the argument is a number"));
    let runtime = tokio::runtime::Runtime::new().expect("the Tokio runtime starts");
    let root = root.canonicalize().expect("the tree exists");
    runtime.block_on(measure(&root, &python, server, seconds));
}

async fn measure(root: &Path, python: &Path, server: &str, seconds: f64) {
    let cache = tempfile::tempdir_in("target").expect("a temporary directory can be created");
    let cache = cache.path().canonicalize().expect("the directory exists");
    let snapshot = Workspace::open(root.to_owned())
        .expect("the directory can be opened")
        .snapshot(Overlay::new());
    let shadows = Shadows::open(&cache, Policy::default())
        .await
        .expect("shadow directories can be created");
    println!("{:?}: {}", shadows.kind(), shadows.reason());
    let settings = TestSettings {
        python: Some(python.to_owned()),
        ..TestSettings::default()
    };
    let tests = ProjectTests::detect(&snapshot, shadows, settings).await;
    let tests = Arc::new(RecordingTestRunner {
        tests,
        command: Mutex::default(),
    });
    let index = Arc::new(Index::open(snapshot.clone(), cache));
    index.warm();
    let language = Arc::new(service(&snapshot, server));
    let checker = Checker::standalone(index.clone(), tests.clone(), language, DEADLINE);
    let Some((file, text)) = chosen(&checker, &tests, &snapshot, &index, seconds).await else {
        println!("no function was found whose nearest tests take {seconds} s");
        return;
    };
    let (mut checks, mut alone, mut report) = (Vec::new(), Vec::new(), None);
    for time in 0..TIMES {
        alone.push(by_itself(&tests, root));
        // The text differs each time, so that no cached diagnostics are used.
        let text = text.replace(MARK, &format!("{MARK} {time}")).into();
        let began = Instant::now();
        let evidence = checker.check_text(&file, text).await;
        checks.push(began.elapsed());
        report = Some(evidence);
    }
    println!("{}", report.map(|one| one.to_string()).unwrap_or_default());
    say("tests alone", &mut alone);
    say("the check", &mut checks);
}

/// Returns a change of a function whose nearest tests pass in about `seconds`.
async fn chosen(
    checker: &Checker,
    tests: &RecordingTestRunner,
    snapshot: &Snapshot,
    index: &Index,
    seconds: f64,
) -> Option<(FilePath, Arc<str>)> {
    let code = |file: &&FilePath| file.as_str().ends_with(".py") && !is_test_file(file);
    let files: Vec<&FilePath> = snapshot.files().iter().filter(code).collect();
    let step = (files.len() / TRIED).max(1);
    for file in files.into_iter().step_by(step) {
        let Ok(tree) = snapshot.tree(file) else {
            continue;
        };
        let functions = tree.symbols().iter();
        let is_function = |kind| matches!(kind, SymbolKind::Function | SymbolKind::Method);
        let mut functions = functions.filter(|symbol| is_function(symbol.kind));
        let Some(symbol) = functions.find(|symbol| {
            !index
                .nearest_tests(std::slice::from_ref(&symbol.path), 1)
                .is_empty()
        }) else {
            continue;
        };
        // A comment after the last line changes nothing that a test could detect.
        let mut lines: Vec<String> = tree.text().lines().map(str::to_owned).collect();
        lines[symbol.lines.1 as usize - 1].push_str(MARK);
        let text: Arc<str> = format!("{}\n", lines.join("\n")).into();
        let evidence = checker.check_text(file, Arc::clone(&text)).await;
        let took = by_itself(tests, snapshot.root()).as_secs_f64();
        println!("{:.2} s alone: {}", took, brief(&evidence));
        let passes = matches!(&evidence.tests, TestEvidence::Known { passed, broken, still_failing, .. }
            if *passed > 0 && broken.is_empty() && still_failing.is_empty());
        if passes && (took / seconds - 1.0).abs() < 0.1 {
            return Some((file.clone(), text));
        }
    }
    None
}

fn brief(evidence: &Evidence) -> String {
    let diagnostics = match &evidence.diagnostics {
        DiagnosticEvidence::Known { millis, .. } => format!("diagnostics {millis} ms"),
        DiagnosticEvidence::Absent => "no language server".to_owned(),
        DiagnosticEvidence::Unknown { reason } => reason.clone(),
    };
    let tests = match &evidence.tests {
        TestEvidence::Known {
            millis,
            passed,
            outcome,
            ..
        } => {
            format!("tests {} with {passed} in {millis} ms", outcome.word())
        }
        TestEvidence::Unknown { reason } => reason.clone(),
    };
    format!("check {} ms, {tests}, {diagnostics}", evidence.millis)
}

/// Runs the last test command of the check in a shell, on the unchanged tree.
fn by_itself(tests: &RecordingTestRunner, root: &Path) -> Duration {
    let line = tests
        .command
        .lock()
        .expect("no thread panicked while it held the lock")
        .clone();
    let began = Instant::now();
    Command::new("/bin/sh")
        .args(["-c", &line])
        .current_dir(root)
        .env("PYTHONPATH", root)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the shell starts");
    began.elapsed()
}

fn say(what: &str, times: &mut [Duration]) {
    times.sort();
    let of = |place: usize| times[place].as_secs_f64() * 1000.0;
    println!(
        "{what:<12} best {:>6.0} ms, median {:>6.0} ms, worst {:>6.0} ms",
        of(0),
        of(times.len() / 2),
        of(times.len() - 1)
    );
}

fn service(snapshot: &Snapshot, server: &str) -> LanguageServers {
    let places = ProgramSearch::of_process(snapshot.root().to_owned(), OwnPrograms::Refused);
    let wanted = ServerSelection {
        fast: vec![server.to_owned()],
        thorough: Vec::new(),
        stops: Default::default(),
        deadline: Duration::from_secs(60),
    };
    let cache = std::env::temp_dir().join("starling-bench-language");
    ServerPool::new(cache).service(snapshot, &places, &wanted)
}

/// The project's test runner, which records its last command.
struct RecordingTestRunner {
    tests: ProjectTests,
    command: Mutex<String>,
}

#[async_trait]
impl TestRunner for RecordingTestRunner {
    fn command(&self) -> Option<String> {
        self.tests.command()
    }

    fn chosen(&self) -> CommandOrigin {
        self.tests.chosen()
    }

    fn selects(&self) -> bool {
        self.tests.selects()
    }

    async fn run(&self, request: TestRequest) -> TestReport {
        let report = self.tests.run(request).await;
        self.command
            .lock()
            .expect("no thread panicked while it held the lock")
            .clone_from(&report.command);
        report
    }
}

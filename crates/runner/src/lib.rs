//! Runs a project's tests in a shadow (a sandboxed copy of the project): detects the tests, starts
//! them, and reads their results.

mod candidates;
mod collect;
mod command;
mod compile;
mod detect;
mod environment;
mod execution;
mod interpreter;
mod launcher;
mod message;
mod parse;
mod redact;
mod results;
mod sandbox;
#[cfg(test)]
mod tests;
mod try_code;
mod version;

pub use collect::{Collection, Counted};
pub use command::quote;
pub use environment::needed_variables;
pub use message::frames;
pub use results::ResultsFrom;
pub use sandbox::withheld_in;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tracing::{Instrument, field};

use candidates::Candidates;
use command::Suite;
use detect::Framework;
use redact::CURRENT;
pub use redact::SecretValues;
use results::{Recorder, Reporters};
use starling_core::{
    CommandOrigin, CompileRequest, Executions, Problem, ResultSource, TestCase, TestOutcome,
    TestReport, TestRequest, TestRunner, TryReport, TryRequest,
};
use starling_sandbox::{Captured, End, ShadowCommand, ShadowError, Shadows};
use starling_workspace::{FileContents, Snapshot, UnreadableFiles};

/// Maximum number of output bytes that are parsed for results. The middle of a longer output is
/// left out.
const READ_BYTES: usize = 8 << 20;
/// Maximum number of output bytes in a report.
const REPORT_BYTES: usize = 8 << 10;

/// Note for reports whose results come from printed text, which the code under test could fake.
const PRINTED: &str = "\nnote: pytest cannot load Starling's plugin (does the command set PYTHONPATH \
    anew?); the results are those of the printed text\n";

/// The user's settings for tests.
#[derive(Debug, Clone, Default)]
pub struct TestSettings {
    /// A shell command to run instead of Starling's own. `{tests}` is replaced by the selected
    /// tests, and `{files}` by their files.
    pub command: Option<String>,
    /// A shell command that runs before each test command.
    pub setup: Option<String>,
    pub python: Option<PathBuf>,
    /// Environment variables that tests inherit besides the harmless ones.
    pub environment: Vec<String>,
    /// Directories that tests may read although they are in the home directory.
    pub readable: Vec<PathBuf>,
    /// The secrets that are removed from the output, as far as an earlier search found them.
    pub secrets: SecretValues,
}

/// The tests of one workspace.
#[derive(Debug, Clone)]
pub struct ProjectTests {
    root: PathBuf,
    shadows: Shadows,
    environment: BTreeMap<OsString, OsString>,
    /// Directories that tests can read even if they are in the home directory or another hidden
    /// directory.
    keep: Vec<PathBuf>,
    setup: Option<String>,
    suites: Result<Candidates, String>,
    results: ResultsFrom,
    secrets: SecretValues,
    /// The files that code from a model must not see.
    unreadable: Arc<UnreadableFiles>,
    /// Whether pytest can load Starling's plugin. Unset until a test run has shown it.
    loads: Arc<OnceLock<bool>>,
    /// The modules of the packages that are installed for the interpreter of the tests.
    installed: Arc<BTreeSet<String>>,
    /// Set after unittest has used Starling's reporter.
    reports: Arc<OnceLock<()>>,
    /// The interpreter that the user named.
    python: Option<PathBuf>,
    /// The interpreter that compiles changed files, or why there is none. Unset until it is needed.
    compiler: Arc<tokio::sync::OnceCell<Result<String, String>>>,
}

impl ProjectTests {
    /// Detects the tests of a workspace, or uses the user's command.
    pub async fn detect(snapshot: &Snapshot, shadows: Shadows, settings: TestSettings) -> Self {
        let mut environment = environment::inherited(&settings.environment);
        let root = snapshot.root().to_owned();
        let secrets = settings.secrets;
        secrets.refresh_in_background(&root);
        let unreadable = Arc::new(UnreadableFiles::of(&root));
        let suites = match settings.command {
            Some(line) => Ok(Candidates::given(line)),
            None => {
                let python = settings.python.as_deref();
                let suites = own_suites(snapshot, python, &environment, &shadows).await;
                let sources = detect::sources(snapshot);
                environment::find_modules_in(&mut environment, &root, &sources);
                suites
            }
        };
        let mut keep = environment::directories(&environment);
        let python = suites.as_ref().ok().and_then(|all| all.current().python());
        let mut pythons = interpreter::candidates(&root, python, &environment);
        pythons.extend(interpreter::candidates(&root, None, &environment));
        keep.extend(
            pythons
                .iter()
                .flat_map(|python| interpreter::prefixes(python)),
        );
        keep.extend(settings.readable);
        let installed = installed(&root, python, &environment);
        ProjectTests {
            root,
            shadows,
            environment,
            keep,
            setup: settings.setup,
            suites,
            results: ResultsFrom::default(),
            secrets,
            unreadable,
            loads: Arc::default(),
            installed: Arc::new(installed),
            reports: Arc::default(),
            python: settings.python,
            compiler: Arc::default(),
        }
    }

    /// Returns these tests with another source for the results of pytest.
    pub fn reading(self, results: ResultsFrom) -> Self {
        ProjectTests { results, ..self }
    }

    /// Returns the reporters that a command can use, or `None` if it can use none.
    fn reporters(&self, suite: &Suite) -> Option<Reporters> {
        let is_refused = self.loads.get() == Some(&false);
        let reporters = match suite {
            Suite::Given(_) if is_refused => Reporters::Unittest,
            Suite::Given(_) => Reporters::Both,
            Suite::Own { framework, .. } => match framework {
                Framework::Pytest if is_refused => return None,
                Framework::Pytest => Reporters::Pytest,
                Framework::Unittest { .. } | Framework::ManagePy { .. } | Framework::Django => {
                    Reporters::Unittest
                }
                Framework::SymPy => return None,
            },
        };
        (self.results == ResultsFrom::Plugin).then_some(reporters)
    }

    /// Builds the report of a command that ran with reporters. Returns `None` if pytest cannot load
    /// the plugin.
    fn recorded_report(
        &self,
        suite: &Suite,
        (recorder, reporters): (&Recorder, Reporters),
        line: &str,
        done: Captured,
    ) -> Option<TestReport> {
        let (output, recorded) = recorder.part(&done.output);
        let done = Captured { output, ..done };
        let recorded = recorded.filter(|recorded| recorded.begun > 0);
        let is_pytest = reporters == Reporters::Pytest;
        let Some(recorded) = recorded else {
            let is_unknown = self.loads.get().is_none() && reporters != Reporters::Unittest;
            if is_unknown && recorder.is_refused(&done.output) {
                let _ = self.loads.set(false);
                return None;
            }
            let mut report = self.report(suite, line.to_owned(), &done);
            let did_report = match is_pytest {
                true => self.loads.get() == Some(&true),
                false => self.reports.get().is_some(),
            };
            let is_own = matches!(suite, Suite::Own { .. });
            if is_own && did_report && report.outcome == TestOutcome::Passed {
                let runner = runner_of(reporters);
                fail(
                    &mut report,
                    &format!("{runner} did not start its test session"),
                );
            }
            return Some(report);
        };
        if is_pytest {
            let _ = self.loads.set(true);
        } else {
            let _ = self.reports.set(());
        }
        let mut cases = parse::Cases::default();
        recorded.note(&self.root, &mut cases);
        let mut source = ResultSource::Reporter;
        if matches!(suite, Suite::Given(_)) && self.add_printed(&done.output, &mut cases) {
            source = ResultSource::Printed;
        }
        let hidden = hidden(suite, &done.output).filter(|_| recorded.of_pytest == 0);
        if hidden.is_some() {
            source = ResultSource::Printed;
        }
        let mut report = self.report_of(line.to_owned(), &done, cases.list, source);
        report.output.push_str(&hidden.unwrap_or_default());
        let stopped_well = matches!(report.outcome, TestOutcome::Passed | TestOutcome::NotRun);
        if !recorded.is_whole() && stopped_well && done.end == End::Exited(0) {
            let runner = runner_of(reporters);
            let why = format!("{runner} did not finish its test session");
            fail(&mut report, &why);
        }
        Some(report)
    }

    /// Adds the tests that appear in the printed output but not in the records of a reporter.
    /// Returns whether there was such a test.
    fn add_printed(&self, output: &str, cases: &mut parse::Cases) -> bool {
        let mut printed = parse::Cases::default();
        parse::others(output, &self.root, &mut printed);
        let reported: BTreeSet<String> = cases.list.iter().map(|case| case.id.clone()).collect();
        let others = printed.list.into_iter();
        let others: Vec<TestCase> = others.filter(|case| !reported.contains(&case.id)).collect();
        for case in &others {
            cases
                .note(&case.id, case.status)
                .message
                .clone_from(&case.message);
        }
        !others.is_empty()
    }

    /// Returns the reason why a set environment variable is withheld from tests. Returns `None` if tests
    /// see the variable, or if it is not set.
    pub fn withholds(&self, name: &str) -> Option<&'static str> {
        environment::withheld(&self.environment, name)
    }

    /// Warnings for the user: why the preferred interpreter or runner of the project is not used.
    pub fn warnings(&self) -> &[String] {
        match &self.suites {
            Ok(suites) => suites.warnings(),
            Err(_) => &[],
        }
    }

    /// Runs the runners in their order until one runs a test.
    async fn first_that_runs(&self, request: &TestRequest) -> TestReport {
        let suites = match &self.suites {
            Ok(suites) => suites,
            Err(reason) => return not_run(String::new(), reason.clone()),
        };
        let mut empty = Vec::new();
        for suite in suites.to_try(&request.select) {
            let report = self.run_with(suite, request).await;
            if suites.accept(suite, &report) {
                return report;
            }
            empty.push(report);
        }
        let report = suites.none_ran(empty);
        report.unwrap_or_else(|| not_run(String::new(), "no test runner was found".into()))
    }

    async fn run_with(&self, suite: &Suite, request: &TestRequest) -> TestReport {
        let line = suite.line(&request.select);
        if let Some(reporters) = self.reporters(suite) {
            let recorder = Recorder::new();
            let recording = recorder.around(&self.with_setup(&line), reporters);
            let done = match self.capture_tests(suite, recording, request).await {
                Ok(done) => done,
                Err(error) => return not_run(line, error.to_string()),
            };
            let used = (&recorder, reporters);
            if let Some(report) = self.recorded_report(suite, used, &line, done) {
                return self.noted(report);
            }
        }
        let setup_and_line = self.with_setup(&line);
        match self.capture_tests(suite, setup_and_line, request).await {
            Ok(done) => {
                let report = self.report(suite, line, &done);
                self.noted(report)
            }
            Err(error) => not_run(line, error.to_string()),
        }
    }

    /// Adds a note to the report if pytest could not load the plugin.
    fn noted(&self, mut report: TestReport) -> TestReport {
        if self.loads.get() == Some(&false) && !report.source.is_reporter() {
            report.output.push_str(PRINTED);
        }
        report
    }

    fn with_setup(&self, line: &str) -> String {
        match &self.setup {
            Some(setup) => format!("{setup}\n{line}"),
            None => line.to_owned(),
        }
    }

    /// Runs a command line of the tests, with the environment variables that the suite (the test
    /// command) needs.
    async fn capture_tests(
        &self,
        suite: &Suite,
        line: String,
        request: &TestRequest,
    ) -> Result<Captured, ShadowError> {
        let overlay = request.overlay.iter().cloned().collect();
        let command = ShadowCommand {
            line,
            environment: self.environment_of(suite),
            keep: self.keep.clone(),
            deadline: request.deadline,
            output_cap: READ_BYTES,
        };
        self.capture(&self.shadows, &overlay, &command).await
    }

    /// Runs a command in a shadow (a sandboxed copy of the project). Removes the values of the
    /// project's secrets from the output.
    async fn capture(
        &self,
        shadows: &Shadows,
        overlay: &FileContents,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        // The refresh runs in parallel with the command, so that `redact` finds little left to do.
        self.secrets.refresh_in_background(&self.root);
        let done = shadows.run(&self.root, overlay, command).await?;
        let (root, secrets) = (self.root.clone(), self.secrets.clone());
        let text = done.output.clone();
        let redacted = tokio::task::spawn_blocking(move || secrets.redact(&root, text, CURRENT));
        // If redaction panics, the output is dropped, so that no secret can leak.
        let output = redacted.await.unwrap_or_default();
        Ok(Captured { output, ..done })
    }

    fn environment_of(&self, suite: &Suite) -> BTreeMap<OsString, OsString> {
        let mut environment = self.environment.clone();
        let given = environment.remove(&OsString::from("PYTHONPATH"));
        if let Some(path) = suite.python_path(&self.root, given.as_ref()) {
            environment.insert("PYTHONPATH".into(), path);
        }
        environment
    }

    fn report(&self, suite: &Suite, command: String, done: &Captured) -> TestReport {
        let cases = parse::cases(&done.output, &self.root);
        let hidden = hidden(suite, &done.output).filter(|_| cases.is_empty());
        let mut report = self.report_of(command, done, cases, ResultSource::Printed);
        report.output.push_str(&hidden.unwrap_or_default());
        report
    }

    fn report_of(
        &self,
        command: String,
        done: &Captured,
        mut cases: Vec<TestCase>,
        source: ResultSource,
    ) -> TestReport {
        for case in &mut cases {
            sandbox::explain(&mut case.message, &self.environment);
        }
        let outcome = parse::outcome(done.end, &cases, &done.output);
        let not_begun = match outcome {
            TestOutcome::Failed if cases.is_empty() => {
                launcher::without_network(&command, &done.output)
            }
            _ => None,
        };
        let mut output = said(&done.output, &self.environment);
        if let Some(why) = &not_begun {
            output = format!("{}\n{why}\n", output.trim_end());
        }
        TestReport {
            outcome: match not_begun {
                Some(_) => TestOutcome::NotRun,
                None => outcome,
            },
            exit: match done.end {
                End::Exited(status) => Some(status),
                End::TimedOut
                | End::OutOfMemory
                | End::TooManyProcesses
                | End::OutputTooLong
                | End::WroteTooMuch => None,
            },
            command,
            cases,
            source,
            output,
            millis: millis(done.elapsed),
        }
    }
}

async fn own_suites(
    snapshot: &Snapshot,
    python: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
    shadows: &Shadows,
) -> Result<Candidates, String> {
    let root = snapshot.root();
    let Some(interpreter) = interpreter::find(root, python, environment, shadows).await? else {
        let asked = interpreter::candidates(root, python, environment);
        return Err(interpreter::unanswered(&asked));
    };
    let found = detect::detect(snapshot, &interpreter).map_err(|missing| {
        let broken = interpreter.warning.iter().cloned();
        broken.chain([missing]).collect::<Vec<_>>().join("; ")
    })?;
    let suites = found.frameworks.into_iter().map(|framework| Suite::Own {
        framework,
        python: interpreter.path.clone(),
    });
    let warnings = interpreter.warning.iter().cloned().chain(found.warning);
    Ok(Candidates::of(suites.collect(), warnings.collect()))
}

/// Returns a note if the user's command ran pytest, but only pytest's printed summary is available.
fn hidden(suite: &Suite, output: &str) -> Option<String> {
    let line = parse::summary_of_pytest(output).filter(|_| matches!(suite, Suite::Given(_)))?;
    Some(format!(
        "\nnote: Starling does not see each test of pytest, which printed \"{line}\": the command hides \
         Starling's plugin, as a PYTHONPATH that is set anew does \
         (PYTHONPATH=src:$PYTHONPATH keeps it)\n"
    ))
}

/// Returns the modules of the packages that are installed for the interpreter that runs the tests, or, if
/// the user gave a test command, for any interpreter of the project.
fn installed(
    root: &Path,
    python: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
) -> BTreeSet<String> {
    let variable = |name: &str| environment.get(&OsString::from(name));
    let path = variable("PATH")
        .map(OsString::as_os_str)
        .unwrap_or_default();
    let home = std::env::home_dir();
    let found = |python: PathBuf| match python.components().count() {
        1 => std::env::split_paths(path)
            .map(|place| place.join(&python))
            .find(|python| python.is_file()),
        _ => Some(python),
    };
    let pythons = interpreter::candidates(root, python, environment);
    let pythons = pythons.into_iter().filter_map(found);
    pythons
        .flat_map(|python| interpreter::installed(&python, home.as_deref()))
        .collect()
}

/// Returns the last part of an output. If the sandbox may have caused a failure, the text also
/// contains a note that says so.
fn said(output: &str, environment: &BTreeMap<OsString, OsString>) -> String {
    let mut said = message::last(output, REPORT_BYTES).to_owned();
    sandbox::explain(&mut said, environment);
    said
}

fn runner_of(reporters: Reporters) -> &'static str {
    match reporters {
        Reporters::Pytest => "pytest",
        Reporters::Unittest => "unittest",
        Reporters::Both => "the test runner",
    }
}

/// Marks a report as failed. Used for a command that exits successfully although the test runner
/// did not confirm the end of its session.
fn fail(report: &mut TestReport, why: &str) {
    report.outcome = TestOutcome::Failed;
    let output = report.output.trim_end();
    report.output = format!("{output}\nnote: {why}: the tested code may have ended the process\n");
}

fn millis(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

fn not_run(command: String, reason: String) -> TestReport {
    TestReport {
        outcome: TestOutcome::NotRun,
        exit: None,
        command,
        cases: Vec::new(),
        source: ResultSource::default(),
        output: reason,
        millis: 0,
    }
}

#[async_trait]
impl TestRunner for ProjectTests {
    fn command(&self) -> Option<String> {
        let suites = self.suites.as_ref().ok()?;
        Some(suites.current().line(&[]))
    }

    fn missing(&self) -> Option<&str> {
        self.suites.as_ref().err().map(String::as_str)
    }

    fn chosen(&self) -> CommandOrigin {
        match self.suites.as_ref().map(Candidates::current) {
            Ok(Suite::Given(_)) => CommandOrigin::ByUser,
            Ok(Suite::Own { .. }) | Err(_) => CommandOrigin::Found,
        }
    }

    fn python(&self) -> Option<String> {
        let path = self.environment.get(&OsString::from("PATH"));
        let line = self.command()?;
        let program = version::program_of(&line, &self.root, path.map(OsString::as_os_str));
        version::of_program(&program?)
    }

    fn has_installed(&self, module: &str) -> bool {
        self.installed.contains(module)
    }

    fn selects(&self) -> bool {
        let suites = self.suites.as_ref();
        suites.is_ok_and(|all| all.current().selects())
    }

    async fn run(&self, request: TestRequest) -> TestReport {
        let span = tracing::info_span!(
            "tests",
            which = if request.select.is_empty() {
                "all"
            } else {
                "selected"
            },
            selected = request.select.len(),
            outcome = field::Empty,
            results = field::Empty,
        );
        let report = self
            .first_that_runs(&request)
            .instrument(span.clone())
            .await;
        span.record("outcome", report.outcome.word());
        span.record("results", report.cases.len());
        report
    }

    async fn record(&self, request: TestRequest, failing: &BTreeSet<String>) -> Executions {
        let span = tracing::info_span!("executions", selected = request.select.len());
        self.executions(&request, failing).instrument(span).await
    }

    fn prepare(&self) {
        self.prepare_compiler();
    }

    async fn compile(&self, request: CompileRequest) -> Result<Vec<Problem>, String> {
        self.compile_files(&request).await
    }

    async fn try_code(&self, request: TryRequest) -> TryReport {
        self.run_code(request).await
    }
}

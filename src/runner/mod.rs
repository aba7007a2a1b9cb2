//! The project's tests, run in a shadow: which they are, how to start them, what they say.

mod command;
mod detect;
mod environment;
mod interpreter;
mod message;
mod parse;
mod redact;
mod results;
mod sandbox;
#[cfg(test)]
mod tests;
mod version;

pub use command::quote;
pub use message::frames;
pub use results::ResultsFrom;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::{Chosen, TestCase, TestOutcome, TestReport, TestRequest, TestRunner};
use crate::workspace::{Captured, End, Overlay, ShadowCommand, ShadowError, Shadows, Snapshot};
use command::Suite;
use detect::Framework;
use redact::SecretValues;
use results::Recorder;

/// How much of an output is read for results; its middle is left out when it is longer.
const READ_BYTES: usize = 8 << 20;
/// How much of an output a report carries.
const REPORT_BYTES: usize = 8 << 10;

/// Said where the code under test could print what looks like results.
const PRINTED: &str =
    "\nnote: pytest cannot load Starling's plugin; the results are those of the printed text\n";

/// What the user said about the tests, where they said something.
#[derive(Debug, Clone, Default)]
pub struct TestSettings {
    /// Run by a shell in place of a command of ours; `{tests}` in it stands for selected tests, and
    /// `{files}` for their files.
    pub command: Option<String>,
    /// A line for the shell that runs before each command.
    pub setup: Option<String>,
    pub python: Option<PathBuf>,
    /// Environment variables that tests are given besides the harmless ones.
    pub environment: Vec<String>,
    /// Directories that tests may read although they lie in the home directory.
    pub readable: Vec<PathBuf>,
}

/// The tests of one workspace.
#[derive(Debug, Clone)]
pub struct ProjectTests {
    root: PathBuf,
    shadows: Shadows,
    environment: BTreeMap<OsString, OsString>,
    /// Directories that tests read wherever they lie.
    keep: Vec<PathBuf>,
    setup: Option<String>,
    suite: Result<Suite, String>,
    results: ResultsFrom,
    secrets: SecretValues,
    /// Whether pytest loads our plugin; unset while nothing told.
    loads: Arc<OnceLock<bool>>,
}

impl ProjectTests {
    /// Finds the tests of a workspace, or takes the user's command.
    pub async fn detect(snapshot: &Snapshot, shadows: Shadows, settings: TestSettings) -> Self {
        let mut environment = environment::inherited(&settings.environment);
        let root = snapshot.root().to_owned();
        let suite = match settings.command {
            Some(line) => Ok(Suite::Given(line)),
            None => {
                let python = settings.python.as_deref();
                own_suite(snapshot, python, &environment, &shadows).await
            }
        };
        let mut keep = environment::directories(&environment);
        let python = suite.as_ref().ok().and_then(Suite::python);
        let mut pythons = interpreter::candidates(&root, python, &environment);
        pythons.extend(interpreter::candidates(&root, None, &environment));
        keep.extend(
            pythons
                .iter()
                .flat_map(|python| interpreter::prefixes(python)),
        );
        keep.extend(settings.readable);
        if let Ok(suite) = &suite {
            let given = environment.remove(&OsString::from("PYTHONPATH"));
            if let Some(path) = suite.python_path(&root, given.as_ref()) {
                environment.insert("PYTHONPATH".into(), path);
            }
        }
        ProjectTests {
            root,
            shadows,
            environment,
            keep,
            setup: settings.setup,
            suite,
            results: ResultsFrom::default(),
            secrets: SecretValues::default(),
            loads: Arc::default(),
        }
    }

    /// The same tests, with the results of pytest found out in another way.
    pub fn reading(self, results: ResultsFrom) -> Self {
        ProjectTests { results, ..self }
    }

    /// Whether a command may run pytest with our plugin.
    fn may_record(&self, suite: &Suite) -> bool {
        let by_pytest = match suite {
            Suite::Given(_) => true,
            Suite::Own { framework, .. } => *framework == Framework::Pytest,
        };
        let refused = self.loads.get() == Some(&false);
        by_pytest && self.results == ResultsFrom::Plugin && !refused
    }

    /// The report of a command that ran with our plugin; `None` where pytest cannot load the plugin.
    fn recorded_report(
        &self,
        suite: &Suite,
        recorder: &Recorder,
        line: &str,
        done: Captured,
    ) -> Option<TestReport> {
        let (output, recorded) = recorder.part(&done.output);
        let done = Captured { output, ..done };
        let recorded = recorded.filter(|recorded| recorded.begun > 0);
        let Some(recorded) = recorded else {
            if self.loads.get().is_none() && recorder.is_refused(&done.output) {
                let _ = self.loads.set(false);
                return None;
            }
            let mut report = self.report(line.to_owned(), &done);
            let is_own = matches!(suite, Suite::Own { .. });
            if is_own && self.loads.get() == Some(&true) && report.outcome == TestOutcome::Passed {
                fail(&mut report, "pytest did not start its session");
            }
            return Some(report);
        };
        let _ = self.loads.set(true);
        let mut cases = parse::Cases::default();
        recorded.note(&self.root, &mut cases);
        if matches!(suite, Suite::Given(_)) {
            // It may run other tests besides.
            parse::others(&done.output, &self.root, &mut cases);
        }
        let mut report = self.report_of(line.to_owned(), &done, cases.list);
        let stopped_well = matches!(report.outcome, TestOutcome::Passed | TestOutcome::NotRun);
        if !recorded.is_whole() && stopped_well && done.end == End::Exited(0) {
            fail(&mut report, "pytest did not come to the end of its session");
        }
        Some(report)
    }

    /// What a command did, without the values of the project's secrets in its output.
    async fn captured(
        &self,
        overlay: &Overlay,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        let done = self.shadows.run(&self.root, overlay, command).await?;
        let (root, secrets) = (self.root.clone(), self.secrets.clone());
        let text = done.output.clone();
        let redacted = tokio::task::spawn_blocking(move || secrets.redact(&root, text));
        // A panic there must not let the values through.
        let output = redacted.await.unwrap_or_default();
        Ok(Captured { output, ..done })
    }

    fn report(&self, command: String, done: &Captured) -> TestReport {
        let cases = parse::cases(&done.output, &self.root);
        self.report_of(command, done, cases)
    }

    fn report_of(&self, command: String, done: &Captured, mut cases: Vec<TestCase>) -> TestReport {
        for case in &mut cases {
            sandbox::explain(&mut case.message);
        }
        TestReport {
            outcome: parse::outcome(done.end, &cases, &done.output),
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
            output: said(&done.output),
            millis: millis(done.elapsed),
        }
    }
}

async fn own_suite(
    snapshot: &Snapshot,
    python: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
    shadows: &Shadows,
) -> Result<Suite, String> {
    let interpreter = interpreter::find(snapshot.root(), python, environment, shadows).await?;
    let framework = detect::framework(snapshot, interpreter.as_ref())?;
    let python = interpreter.map(|found| found.path).unwrap_or_default();
    Ok(Suite::Own { framework, python })
}

/// The end of an output, with what the sandbox has to do with it.
fn said(output: &str) -> String {
    let mut said = message::last(output, REPORT_BYTES).to_owned();
    sandbox::explain(&mut said);
    said
}

/// A run that says that all is well, although pytest did not say so.
fn fail(report: &mut TestReport, why: &str) {
    report.outcome = TestOutcome::Failed;
    let output = report.output.trim_end();
    report.output =
        format!("{output}\nnote: {why}: the code under test may have ended the process\n");
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
        output: reason,
        millis: 0,
    }
}

#[async_trait]
impl TestRunner for ProjectTests {
    fn command(&self) -> Option<String> {
        self.suite.as_ref().ok().map(|suite| suite.line(&[]))
    }

    fn missing(&self) -> Option<&str> {
        self.suite.as_ref().err().map(String::as_str)
    }

    fn chosen(&self) -> Chosen {
        match &self.suite {
            Ok(Suite::Given(_)) => Chosen::ByUser,
            Ok(Suite::Own { .. }) | Err(_) => Chosen::Found,
        }
    }

    fn python(&self) -> Option<String> {
        let path = self.environment.get(&OsString::from("PATH"));
        let line = self.command()?;
        let program = version::program_of(&line, &self.root, path.map(OsString::as_os_str));
        version::of_program(&program?)
    }

    fn selects(&self) -> bool {
        self.suite.as_ref().is_ok_and(Suite::selects)
    }

    async fn run(&self, request: TestRequest) -> TestReport {
        let suite = match &self.suite {
            Ok(suite) => suite,
            Err(reason) => return not_run(String::new(), reason.clone()),
        };
        let line = suite.line(&request.select);
        let overlay = request.overlay.into_iter().collect();
        let whole = match &self.setup {
            Some(setup) => format!("{setup}\n{line}"),
            None => line.clone(),
        };
        let command = ShadowCommand {
            line: whole.clone(),
            environment: self.environment.clone(),
            keep: self.keep.clone(),
            deadline: request.deadline,
            output_cap: READ_BYTES,
        };
        if self.may_record(suite) {
            let recorder = Recorder::new();
            let recording = ShadowCommand {
                line: recorder.around(&whole),
                ..command.clone()
            };
            let done = match self.captured(&overlay, &recording).await {
                Ok(done) => done,
                Err(error) => return not_run(line, error.to_string()),
            };
            if let Some(report) = self.recorded_report(suite, &recorder, &line, done) {
                return report;
            }
        }
        match self.captured(&overlay, &command).await {
            Ok(done) => {
                let mut report = self.report(line, &done);
                if self.loads.get() == Some(&false) {
                    report.output.push_str(PRINTED);
                }
                report
            }
            Err(error) => not_run(line, error.to_string()),
        }
    }
}

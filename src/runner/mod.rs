//! The project's tests, run in a shadow: which they are, how to start them, what they say.

mod candidates;
mod collect;
mod command;
mod detect;
mod environment;
mod interpreter;
mod message;
mod parse;
mod sandbox;
#[cfg(test)]
mod tests;
mod version;

pub use collect::{Collection, Counted};
pub use command::quote;
pub use message::frames;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::{Chosen, TestOutcome, TestReport, TestRequest, TestRunner};
use crate::workspace::{Captured, End, ShadowCommand, ShadowError, Shadows, Snapshot};
use candidates::Candidates;
use command::Suite;

/// How much of an output is read for results; its middle is left out when it is longer.
const READ_BYTES: usize = 8 << 20;
/// How much of an output a report carries.
const REPORT_BYTES: usize = 8 << 10;

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
    suites: Result<Candidates, String>,
}

impl ProjectTests {
    /// Finds the tests of a workspace, or takes the user's command.
    pub async fn detect(snapshot: &Snapshot, shadows: Shadows, settings: TestSettings) -> Self {
        let environment = environment::inherited(&settings.environment);
        let root = snapshot.root().to_owned();
        let suites = match settings.command {
            Some(line) => Ok(Candidates::given(line)),
            None => {
                let python = settings.python.as_deref();
                own_suites(snapshot, python, &environment, &shadows).await
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
        ProjectTests {
            root,
            shadows,
            environment,
            keep,
            setup: settings.setup,
            suites,
        }
    }

    /// For the user: why the interpreter or the runner that the project is made for is not used.
    pub fn warnings(&self) -> &[String] {
        match &self.suites {
            Ok(suites) => suites.warnings(),
            Err(_) => &[],
        }
    }

    async fn run_with(&self, suite: &Suite, request: &TestRequest) -> TestReport {
        let line = suite.line(&request.select);
        match self.capture(suite, &line, request).await {
            Ok(done) => self.report(line, &done),
            Err(error) => not_run(line, error.to_string()),
        }
    }

    /// Runs a line in a shadow, with the environment of a suite.
    async fn capture(
        &self,
        suite: &Suite,
        line: &str,
        request: &TestRequest,
    ) -> Result<Captured, ShadowError> {
        let overlay = request.overlay.iter().cloned().collect();
        let command = ShadowCommand {
            line: match &self.setup {
                Some(setup) => format!("{setup}\n{line}"),
                None => line.to_owned(),
            },
            environment: self.environment_of(suite),
            keep: self.keep.clone(),
            deadline: request.deadline,
            output_cap: READ_BYTES,
        };
        self.shadows.run(&self.root, &overlay, &command).await
    }

    fn environment_of(&self, suite: &Suite) -> BTreeMap<OsString, OsString> {
        let mut environment = self.environment.clone();
        let given = environment.remove(&OsString::from("PYTHONPATH"));
        if let Some(path) = suite.python_path(&self.root, given.as_ref()) {
            environment.insert("PYTHONPATH".into(), path);
        }
        environment
    }

    fn report(&self, command: String, done: &Captured) -> TestReport {
        let mut cases = parse::cases(&done.output, &self.root);
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

/// The end of an output, with what the sandbox has to do with it.
fn said(output: &str) -> String {
    let mut said = message::last(output, REPORT_BYTES).to_owned();
    sandbox::explain(&mut said);
    said
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
        let suites = self.suites.as_ref().ok()?;
        Some(suites.current().line(&[]))
    }

    fn missing(&self) -> Option<&str> {
        self.suites.as_ref().err().map(String::as_str)
    }

    fn chosen(&self) -> Chosen {
        match self.suites.as_ref().map(Candidates::current) {
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
        let suites = self.suites.as_ref();
        suites.is_ok_and(|all| all.current().selects())
    }

    async fn run(&self, request: TestRequest) -> TestReport {
        let suites = match &self.suites {
            Ok(suites) => suites,
            Err(reason) => return not_run(String::new(), reason.clone()),
        };
        let mut empty = Vec::new();
        for suite in suites.to_try(&request.select) {
            let report = self.run_with(suite, &request).await;
            if suites.accept(suite, &report) {
                return report;
            }
            empty.push(report);
        }
        let report = suites.none_ran(empty);
        report.unwrap_or_else(|| not_run(String::new(), "no test runner was tried".into()))
    }
}

//! The project's tests, run in a shadow: which they are, how to start them, what they say.

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

pub use command::quote;
pub use message::frames;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::{Chosen, TestOutcome, TestReport, TestRequest, TestRunner};
use crate::workspace::{Captured, End, ShadowCommand, Shadows, Snapshot};
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
    suite: Result<Suite, String>,
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
        }
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
        let command = ShadowCommand {
            line: match &self.setup {
                Some(setup) => format!("{setup}\n{line}"),
                None => line.clone(),
            },
            environment: self.environment.clone(),
            keep: self.keep.clone(),
            deadline: request.deadline,
            output_cap: READ_BYTES,
        };
        match self.shadows.run(&self.root, &overlay, &command).await {
            Ok(done) => self.report(line, &done),
            Err(error) => not_run(line, error.to_string()),
        }
    }
}

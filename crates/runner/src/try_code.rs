//! Runs code from a model or from the task on a shadow of the project. The code gets the same
//! sandbox, interpreter and environment as the tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::command::{Suite, quote};
use super::detect::Framework;
use super::message::{both_ends, own_frames};
use super::{ProjectTests, READ_BYTES, frames, millis, parse, sandbox};
use starling_core::{TestOutcome, TryCode, TryReport, TryRequest};
use starling_sandbox::{Captured, End, ShadowCommand};
use starling_workspace::{VERSION_CONTROL, git_configurations};

/// Maximum length of the output in a report, in bytes.
const OUTPUT_BYTES: usize = 6 << 10;
/// Maximum length of the code in bytes, below the system's limit for a command line.
const CODE_BYTES: usize = 16 << 10;
/// Python program that runs the snippet in its first argument. Prints the value of the last
/// expression, or of every expression statement in a session. Tracebacks begin with the snippet's
/// own frame.
const SCRIPT: &str = r#"
def _run():
    import ast, linecache, sys, traceback
    name = "<snippet>"
    source, is_session = sys.argv[1], sys.argv[2] == "session"
    sys.argv[:] = [name]
    space = vars(sys.modules["__main__"])
    del space["_run"]
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)

    def run(tree, mode):
        exec(compile(tree, name, mode, 0, True), space)

    try:
        tree = ast.parse(source, name)
        if is_session:
            run(ast.Interactive(tree.body), "single")
            return
        shown = [one for one in tree.body[-1:] if isinstance(one, ast.Expr)]
        del tree.body[len(tree.body) - len(shown):]
        run(tree, "exec")
        if shown:
            run(ast.Interactive(shown), "single")
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        sys.stdout.flush()
        traceback.print_exception(type(error), error, trace)
        sys.exit(1)

_run()
"#;

impl ProjectTests {
    /// Runs code in a shadow of the project. Secrets and version control data are hidden from the
    /// code.
    pub(super) async fn run_code(&self, request: TryRequest) -> TryReport {
        if request.code.text().len() > CODE_BYTES {
            let reason = format!("the code is longer than {} KiB", CODE_BYTES >> 10);
            return TryReport::not_run(reason);
        }
        // A shell command may not need Python.
        let python = match (self.compiler().await, &request.code) {
            (Ok(python), _) => Some(python),
            (Err(_), TryCode::Command(_)) => None,
            (Err(reason), TryCode::Python(_) | TryCode::Session(_)) => {
                return TryReport::not_run(reason);
            }
        };
        let line = line(&request.code, python.as_deref().unwrap_or_default());
        let command = ShadowCommand {
            line: self.with_setup(&line),
            environment: self.environment_of_code(python.map(PathBuf::from)),
            keep: self.keep.clone(),
            deadline: request.deadline,
            output_cap: READ_BYTES,
        };
        let unreadable = match self.unreadable().await {
            Ok(unreadable) => unreadable,
            Err(reason) => {
                let reason = format!("the code could see secrets, so it is not run: {reason}");
                return TryReport::not_run(reason);
            }
        };
        let shadows = self.shadows.clone().hiding(unreadable);
        let overlay = request.overlay.into_iter().collect();
        match self.capture(&shadows, &overlay, &command).await {
            Ok(done) => report(&done, &self.root, &command.environment),
            Err(error) => TryReport::not_run(error.to_string()),
        }
    }

    /// Returns all paths that a model may never read. Tests may read these files, but code from a
    /// model could print a secret in a form that Starling does not recognize. The files are listed
    /// again for each command, because secrets can be created at any time.
    ///
    /// # Errors
    /// The reason why the list is incomplete.
    async fn unreadable(&self) -> Result<Vec<PathBuf>, String> {
        let (root, unreadable) = (self.root.clone(), self.unreadable.clone());
        let found = tokio::task::spawn_blocking(move || {
            let mut found = unreadable.list().map_err(|error| error.to_string())?;
            // Hide the target of a symbolic link, because hiding the link itself would leave the
            // target readable.
            let around = version_control_around(&root).into_iter();
            found.extend(around.filter_map(|path| path.canonicalize().ok()));
            Ok(found)
        });
        let failed = |_| Err("internal error; see the log".to_owned());
        found.await.unwrap_or_else(failed)
    }

    /// Returns the environment of the tests. Code can import the modules of the project, and `PATH`
    /// begins with the programs of the interpreter's environment.
    fn environment_of_code(&self, python: Option<PathBuf>) -> BTreeMap<OsString, OsString> {
        let own = |python: PathBuf| Suite::Own {
            framework: Framework::Pytest,
            python,
        };
        let current = self.suites.as_ref().map(|suites| suites.current());
        let suite = match current {
            Ok(suite @ Suite::Own { .. }) => suite.clone(),
            Ok(Suite::Given(_)) | Err(_) => own(python.clone().unwrap_or_default()),
        };
        let mut environment = self.environment_of(&suite);
        let programs = python.as_deref().and_then(Path::parent);
        if let Some(programs) = programs.filter(|programs| programs.is_absolute()) {
            let path = environment.entry("PATH".into()).or_default();
            let others: Vec<PathBuf> = std::env::split_paths(&path).collect();
            let all = std::iter::once(programs.to_owned()).chain(others);
            if let Ok(all) = std::env::join_paths(all) {
                *path = all;
            }
        }
        environment
    }
}

/// Returns the version control data at a project's root, in the directories above it and, if the
/// project is a linked work tree, in the main repository.
fn version_control_around(root: &Path) -> Vec<PathBuf> {
    let around = root
        .ancestors()
        .flat_map(|folder| VERSION_CONTROL.map(|name| folder.join(name)));
    let mut found: Vec<PathBuf> = around.filter(|path| path.exists()).collect();
    // A linked work tree has its Git directory outside the root, in the main repository.
    let configurations = git_configurations(root).into_iter();
    let elsewhere = configurations.filter_map(|file| Some(file.parent()?.to_owned()));
    found.extend(elsewhere.filter(|folder| !root.starts_with(folder)));
    found
}

/// Returns the shell command that runs the code. In a shell command, `python` and `python3` run the
/// interpreter of the tests.
fn line(code: &TryCode, python: &str) -> String {
    let python = quote(python);
    let script = |source: &str, kind: &str| {
        let (script, source) = (quote(SCRIPT), quote(source));
        format!("{python} -u -c {script} {source} {kind}")
    };
    match code {
        TryCode::Python(source) => script(source, "snippet"),
        TryCode::Session(source) => script(source, "session"),
        TryCode::Command(command) if python == "''" => command.clone(),
        TryCode::Command(command) => {
            format!("python() {{ {python} \"$@\"; }}\npython3() {{ {python} \"$@\"; }}\n{command}")
        }
    }
}

fn report(done: &Captured, root: &Path, environment: &BTreeMap<OsString, OsString>) -> TryReport {
    let mut output = both_ends(&own_frames(&done.output, root), OUTPUT_BYTES);
    sandbox::explain(&mut output, environment);
    let (outcome, exit) = match done.end {
        End::Exited(0) => (TestOutcome::Passed, Some(0)),
        End::Exited(status) => (TestOutcome::Failed, Some(status)),
        End::TimedOut
        | End::OutOfMemory
        | End::TooManyProcesses
        | End::OutputTooLong
        | End::WroteTooMuch => (parse::outcome(done.end, &[], ""), None),
    };
    TryReport {
        outcome,
        exit,
        output,
        frames: frames(&done.output, root),
        millis: millis(done.elapsed),
    }
}

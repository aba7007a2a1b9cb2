//! Compiles Python files with the project's own interpreter, without executing them. This finds
//! errors that the parser of the index does not report.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::command::{Suite, quote};
use super::{ProjectTests, interpreter, version};
use starling_core::{CompileRequest, CompiledFile, Problem, ProblemKind, Severity};
use starling_sandbox::ShadowCommand;
use starling_syntax::FilePath;
use starling_workspace::{FileContents, encode};

/// Maximum time to compile all files of a change.
const DEADLINE: Duration = Duration::from_secs(30);
const ANSWER_BYTES: usize = 64 << 10;
/// Maximum length of a compiler message, in characters.
const MESSAGE: usize = 300;
/// Each line of the script's output that is a result begins with this text.
const MARK: &str = "starling-compile ";
/// Beginning of the names of the files to compile in the shadow (the sandboxed copy of the
/// project). The names end with `.py`. Python reads each file in the encoding that the file
/// declares.
const FILE: &str = "starling-compile";
/// Python code that prints an error for each file that does not compile, unless the file did not
/// compile before the change either. It imports nothing from the project or its packages, and
/// executes none of their code.
const SCRIPT: &str = r#"
import os, sys

def error_of(name):
    try:
        with open(name, "rb") as file:
            compile(file.read(), name, "exec", 0, True)
    except SyntaxError as error:
        return error.lineno or 1, str(error.msg)
    except (ValueError, MemoryError, RecursionError, OverflowError) as error:
        return 1, str(error) or type(error).__name__

for number in range(int(sys.argv[1])):
    name = "starling-compile-%d-" % number
    error = error_of(name + "after.py")
    before = name + "before.py"
    if error and not (os.path.exists(before) and error_of(before)):
        # Importing this takes longer than to compile most files.
        import json
        answer = {"file": number, "line": error[0], "message": error[1]}
        print("starling-compile " + json.dumps(answer))
print('starling-compile {"version": "%d.%d"}' % sys.version_info[:2])
sys.stdout.flush()
# Skips the removal of all objects.
os._exit(0)
"#;

impl ProjectTests {
    /// Compiles all files in one process. Returns the errors of files that compiled before the
    /// change, and of new files.
    ///
    /// # Errors
    /// Returns why the files could not be compiled, for the user.
    pub(super) async fn compile_files(
        &self,
        request: &CompileRequest,
    ) -> Result<Vec<Problem>, String> {
        let python = self.compiler().await?;
        let command = ShadowCommand {
            line: format!(
                "{} -I -S -W ignore -c {} {}",
                quote(&python),
                quote(SCRIPT),
                request.files.len()
            ),
            environment: self.environment.clone(),
            keep: self.keep.clone(),
            deadline: request.deadline.min(DEADLINE),
            output_cap: ANSWER_BYTES,
        };
        let contents = contents(&request.files);
        let done = self.shadows.run(&self.root, &contents, &command).await;
        let done = done.map_err(|error| error.to_string())?;
        problems(&request.files, &done.output)
            .ok_or_else(|| format!("{python} did not compile the changed files"))
    }

    /// Searches for the interpreter in the background.
    pub(super) fn prepare_compiler(&self) {
        if self.compiler.initialized() {
            return;
        }
        let tests = self.clone();
        drop(tokio::spawn(async move { tests.compiler().await }));
    }

    /// Returns the interpreter that compiles changed files and runs code for the tool `try` and the
    /// task's examples. Searches for the interpreter only once.
    pub(super) async fn compiler(&self) -> Result<String, String> {
        let found = self.compiler.get_or_init(|| self.find_compiler()).await;
        found.clone()
    }

    /// Returns the interpreter that runs the tests. If no tests were detected, returns the
    /// interpreter that Starling would use for tests of this project.
    async fn find_compiler(&self) -> Result<String, String> {
        let of_tests = self
            .suites
            .as_ref()
            .ok()
            .and_then(|all| match all.current() {
                Suite::Own { python, .. } => Some(python.clone()),
                Suite::Given(line) => {
                    let path = self.environment.get(std::ffi::OsStr::new("PATH"));
                    version::program_of(line, &self.root, path.map(std::ffi::OsString::as_os_str))
                }
            });
        if let Some(python) = of_tests {
            return Ok(python.to_string_lossy().into_owned());
        }
        let given = self.python.as_deref();
        let found = interpreter::find(&self.root, given, &self.environment, &self.shadows).await?;
        match found {
            Some(found) => Ok(found.path.to_string_lossy().into_owned()),
            None => {
                let asked = interpreter::candidates(&self.root, given, &self.environment);
                Err(interpreter::unanswered(&asked))
            }
        }
    }
}

/// Returns the texts before and after the change as files to add to the shadow (the sandboxed copy
/// of the project).
fn contents(files: &[CompiledFile]) -> FileContents {
    let mut contents = FileContents::new();
    for (number, file) in files.iter().enumerate() {
        let mut add = |which: &str, text: &Arc<str>| {
            let name = FilePath::new(format!("{FILE}-{number}-{which}.py"));
            // A text that its declared encoding cannot represent is refused elsewhere.
            let bytes = encode(name.as_str().as_ref(), text).unwrap_or(text.as_bytes().into());
            contents.insert(name, Some(bytes.into()));
        };
        add("after", &file.after);
        if let Some(before) = &file.before {
            add("before", before);
        }
    }
    contents
}

/// Parses the output of the script. Returns `None` if it is not complete.
fn problems(files: &[CompiledFile], output: &str) -> Option<Vec<Problem>> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(MARK));
    let answers = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut errors, mut by) = (Vec::new(), None);
    for answer in answers {
        if let Some(version) = answer["version"].as_str() {
            by = Some(version.to_owned());
            continue;
        }
        let number = usize::try_from(answer["file"].as_u64()?).ok()?;
        let line = u32::try_from(answer["line"].as_u64()?).unwrap_or(1);
        let message = answer["message"].as_str()?.to_owned();
        errors.push((files.get(number)?, line, message));
    }
    let source = format!("Python {}", by?);
    let problem = |(file, line, message): (&CompiledFile, u32, String)| Problem {
        file: file.file.clone(),
        line: line.max(1),
        severity: Severity::Error,
        message: format!(
            "{source} cannot compile this: {}",
            message.chars().take(MESSAGE).collect::<String>()
        ),
        source: source.clone(),
        kind: ProblemKind::Syntax,
        stops: true,
        range: None,
    };
    Some(errors.into_iter().map(problem).collect())
}

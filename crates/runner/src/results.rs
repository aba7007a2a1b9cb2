//! Test results from the runner's own reporter. A pytest plugin or a unittest result class writes a
//! record for each test to a private file of the run. Text printed by the code under test never
//! counts as a result.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use super::command::quote;
use super::execution::ExecutionRecords;
use super::message::shorten;
use super::parse::Cases;
use starling_core::{TestCase, TestStatus};

/// Python code that runs in the project's interpreter.
const PLUGIN: &str = include_str!("pytest_report.py");
/// The second part of the plugin, which records what tests execute.
const RECORDING: &str = include_str!("pytest_record.py");
const UNITTEST: &str = include_str!("unittest_report.py");
/// The names of programs that start Python or a test runner of Python.
const STARTERS: &str = "python python3 python2 pytest py.test";
/// Separators between the fields of a record, and between the lines of a message.
const FIELD: char = '\u{1f}';
pub(super) const LINE: char = '\u{1e}';

/// The source of the results of a pytest session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultsFrom {
    /// The plugin. The printed text is used only if the plugin cannot be loaded.
    #[default]
    Plugin,
    /// The printed text, whose ids match those of a benchmark.
    PrintedText,
}

/// Which of Starling's reporters of test results a command loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reporters {
    Pytest,
    /// The reporter for unittest and Django's runners.
    Unittest,
    Both,
}

/// Starling's reporters of test results for one run. Their module name is random, so that no
/// project can name it in its configuration.
pub(super) struct Recorder {
    name: String,
    /// The code of the plugin of pytest.
    plugin: String,
}

/// The test results that the reporters of one run wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RecordedResults {
    /// Number of sessions that began.
    pub begun: usize,
    /// Number of these sessions that are pytest's.
    pub of_pytest: usize,
    /// The exit statuses of the sessions that ended regularly.
    pub ended: Vec<i32>,
    tests: Vec<TestRecord>,
    pub executions: ExecutionRecords,
}

/// The result of one test, as a reporter wrote it.
#[derive(Debug, PartialEq, Eq)]
struct TestRecord {
    id: String,
    status: TestStatus,
    message: String,
}

impl Recorder {
    pub(super) fn new() -> Self {
        let random = |at: u8| RandomState::new().hash_one(at);
        Recorder {
            name: format!("starling_results_{:016x}{:016x}", random(0), random(1)),
            plugin: PLUGIN.to_owned(),
        }
    }

    /// Returns a recorder whose plugin of pytest also records what the tests execute, at least what
    /// those of `failing` do.
    pub(super) fn of_executions(failing: &BTreeSet<String>) -> Self {
        // A list of strings in JSON is one in Python, too.
        let failing = serde_json::to_string(failing).unwrap_or_else(|_| "()".to_owned());
        Recorder {
            plugin: format!("{PLUGIN}{RECORDING}\n_failing = {failing}\n"),
            ..Recorder::new()
        }
    }

    /// Returns a shell command that runs `line` with reporters and, when the shell exits, prints
    /// their records. The reporters are in the temporary directory of the shadow (the sandboxed
    /// copy of the project). If no directory can be created there, `line` runs without them. `line`
    /// runs in the same shell, because a command that kills all other processes must not kill its
    /// own shell. The shell starts at most two programs before `line`, and one after it if there
    /// are results.
    ///
    /// A command of the user (such as a recipe of a Makefile) that sets `PYTHONPATH` would hide the
    /// reporters. Therefore a directory at the front of `PATH` contains wrappers for the programs
    /// that start Python. A wrapper adds the reporters to `PYTHONPATH` again and executes the real
    /// program.
    pub(super) fn around(&self, line: &str, reporters: Reporters) -> String {
        let name = &self.name;
        let pytest = format!(
            r#"printf '%s\n' {plugin} >"$S/{name}.py" && export PYTHONPATH="$S${{PYTHONPATH:+:$PYTHONPATH}}" PYTEST_PLUGINS="{name}${{PYTEST_PLUGINS:+,$PYTEST_PLUGINS}}"
"#,
            plugin = quote(&self.plugin),
        );
        let unittest = format!(
            r#"printf '%s\n' {class} >"$S/unittest/sitecustomize.py" && export PYTHONPATH="$S/unittest${{PYTHONPATH:+:$PYTHONPATH}}"
"#,
            class = quote(UNITTEST),
        );
        let (pytest, unittest) = match reporters {
            Reporters::Pytest => (pytest, String::new()),
            Reporters::Unittest => (String::new(), unittest),
            Reporters::Both => (pytest, unittest),
        };
        let programs = match reporters {
            Reporters::Pytest | Reporters::Unittest => String::new(),
            Reporters::Both => self.programs(),
        };
        format!(
            r#"S="${{TMPDIR:-/tmp}}/{name}"
if mkdir "$S" "$S/unittest" "$S/bin" 2>/dev/null; then
{pytest}{unittest}{programs}fi
trap 'R=$?; set +e; printf "\n%s\n" "@{name} begin"; [ -s "$S/results" ] && cat "$S/results"; printf "%s\n" "@{name} end"; exit "$R"' EXIT
{line}"#
        )
    }

    /// Returns the shell lines that write a wrapper for each usual name of Python. A program that is not
    /// in `PATH` gets no wrapper, so that the command does not find programs that do not exist.
    fn programs(&self) -> String {
        let name = &self.name;
        let body = quote(&format!(
            r#"case ":$PYTHONPATH:" in *":$S:"*) ;; *) PYTHONPATH="$S${{PYTHONPATH:+:$PYTHONPATH}}" ;; esac
case ":$PYTHONPATH:" in *":$S/unittest:"*) ;; *) PYTHONPATH="$S/unittest:$PYTHONPATH" ;; esac
case ",$PYTEST_PLUGINS," in *",{name},"*) ;; *) PYTEST_PLUGINS="{name}${{PYTEST_PLUGINS:+,$PYTEST_PLUGINS}}" ;; esac
export PYTHONPATH PYTEST_PLUGINS
exec "$R" "$@"
"#
        ));
        format!(
            r#"for N in {STARTERS}; do
R="$(command -v "$N" 2>/dev/null)"
case "$R" in /*) printf '#!/bin/sh\nS="%s"\nR="%s"\n%s' "$S" "$R" {body} >"$S/bin/$N" ;; esac
done
unset N R
chmod +x "$S"/bin/* 2>/dev/null && export PATH="$S/bin:$PATH"
"#
        )
    }

    /// Splits the output of a command from [`Recorder::around`] into the printed text and the
    /// records. The records are `None` if the shell was killed before it printed them.
    pub(super) fn part(&self, output: &str) -> (String, Option<RecordedResults>) {
        let begin = format!("\n@{} begin\n", self.name);
        let end = format!("@{} end\n", self.name);
        let parted = output
            .rsplit_once(&begin)
            .and_then(|(printed, rest)| Some((printed, rest.rsplit_once(&end)?)));
        match parted {
            // Background processes can still print after the records.
            Some((printed, (records, late))) => (
                format!("{printed}{late}"),
                Some(RecordedResults::read(records)),
            ),
            None => (output.to_owned(), None),
        }
    }

    /// Returns whether pytest reports that it cannot import the plugin.
    pub(super) fn is_refused(&self, output: &str) -> bool {
        let says_so = |line: &str| {
            line.contains(&self.name) && (line.contains("importing") || line.contains("No module"))
        };
        output.lines().any(says_so)
    }
}

impl RecordedResults {
    fn read(records: &str) -> Self {
        let mut recorded = RecordedResults::default();
        for line in records.lines() {
            let fields: Vec<&str> = line.split(FIELD).collect();
            match fields.as_slice() {
                ["begin", what] => {
                    recorded.begun += 1;
                    recorded.of_pytest += usize::from(*what != "unittest");
                }
                ["end", status, _] => recorded.ended.extend(status.parse::<i32>().ok()),
                ["test", outcome, phase, _, id, message] => {
                    recorded
                        .tests
                        .extend(status(outcome, phase).map(|status| TestRecord {
                            id: (*id).to_owned(),
                            status,
                            message: message.replace(LINE, "\n"),
                        }));
                }
                ["frame", id, fields @ ..] => recorded.executions.note_frame(id, fields),
                ["executed", id, path, lines] => recorded.executions.note_executed(id, path, lines),
                ["passed", count] => recorded.executions.note_passed(count),
                ["passing", path, lines] => recorded.executions.note_passing(path, lines),
                _ => {}
            }
        }
        recorded
    }

    /// Returns whether every session ended regularly: none was interrupted or stopped by an error.
    pub(super) fn is_whole(&self) -> bool {
        const STOPPED: [i32; 3] = [2, 3, 4];
        self.begun == self.ended.len() && !self.ended.iter().any(|one| STOPPED.contains(one))
    }

    /// Adds the tests in the order in which they ended.
    pub(super) fn note(&self, root: &Path, cases: &mut Cases) {
        for record in &self.tests {
            match record.status {
                TestStatus::Failed | TestStatus::Error => {
                    let message = shorten(&record.message, root);
                    cases.fail(&record.id, record.status, message);
                }
                TestStatus::Passed | TestStatus::Unsteady => {
                    cases.note(&record.id, record.status);
                }
                TestStatus::Skipped => {
                    let case: &mut TestCase = cases.note(&record.id, record.status);
                    case.message.clone_from(&record.message);
                }
            }
        }
    }
}

fn status(outcome: &str, phase: &str) -> Option<TestStatus> {
    match (outcome, phase) {
        ("passed", _) => Some(TestStatus::Passed),
        ("failed", "call") => Some(TestStatus::Failed),
        ("failed", _) => Some(TestStatus::Error),
        // An expected failure is no evidence, whether the test fails or passes.
        ("skipped" | "xfailed" | "xpassed", _) => Some(TestStatus::Skipped),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(records: &str) -> (RecordedResults, Vec<(String, TestStatus, String)>) {
        let recorded =
            RecordedResults::read(&records.replace('|', "\u{1f}").replace('~', "\u{1e}"));
        let mut cases = Cases::default();
        recorded.note(Path::new("/w"), &mut cases);
        let cases = cases.list.into_iter();
        let cases = cases.map(|case| (case.id, case.status, case.message));
        (recorded, cases.collect())
    }

    #[test]
    fn test_records_of_a_session_are_parsed() {
        use TestStatus::{Error, Failed, Skipped};
        let (recorded, cases) = read(
            "begin|9.0\ntest|passed|call|0.1|t.py::a|\ntest|failed|teardown|0|t.py::a|E  x\n\
             test|failed|call|0|t.py::b|/w/t.py:3: in b~E  no\ntest|skipped|setup|0|t.py::c|why\n\
             test|xfailed|call|0|t.py::d|\ntest|xpassed|call|0|t.py::f|\ntest|failed|collect|0|u.py|E  y\ntest|rerun|call|0|t.py::e|\n\
             nonsense\nend|1|4\n",
        );
        assert!(recorded.is_whole());
        let expected = [
            ("t.py::a", Error, "E  x"),
            ("t.py::b", Failed, "t.py:3: in b\nE  no"),
            ("t.py::c", Skipped, "why"),
            ("t.py::d", Skipped, ""),
            ("t.py::f", Skipped, ""),
            ("u.py", Error, "E  y"),
        ];
        let expected = expected.map(|(id, status, why)| (id.to_owned(), status, why.to_owned()));
        assert_eq!(cases, expected);
    }

    #[test]
    fn session_without_an_end_record_is_incomplete() {
        for (records, whole) in [
            ("begin|9\nend|0|1\n", true),
            ("begin|9\nend|5|0\nbegin|9\nend|1|2\n", true),
            ("begin|9\n", false),
            ("begin|9\nend|0|1\nbegin|9\n", false),
            ("begin|9\nend|3|1\n", false),
        ] {
            assert_eq!(read(records).0.is_whole(), whole, "{records}");
        }
    }

    #[test]
    fn only_records_of_this_run_are_read() {
        let (one, other) = (Recorder::new(), Recorder::new());
        assert_ne!(one.name, other.name);
        let said = |of: &Recorder| format!("\n@{0} begin\nbegin\u{1f}9\n@{0} end\n", of.name);
        let output = format!("printed{}", said(&one));
        let (printed, recorded) = one.part(&output);
        assert_eq!((printed.as_str(), recorded.unwrap().begun), ("printed", 1));
        let forged = format!("printed{}", said(&other));
        assert_eq!(one.part(&forged), (forged, None));
        assert!(one.is_refused(&format!("Error importing plugin \"{}\"", one.name)));
        assert!(!one.is_refused(&format!("Error importing plugin \"{}\"", other.name)));
    }
}

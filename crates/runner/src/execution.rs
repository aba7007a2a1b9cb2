//! Runs tests and reads what they executed. The plugin of pytest records it
//! (`pytest_record.py`). Other runners, and the workers of pytest-xdist, record nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::ProjectTests;
use super::message::own_path;
use super::results::{LINE, Recorder, Reporters};
use starling_core::{CodeLine, ExecutedFrame, Executions, FailingExecution, TestRequest};

/// The executions that the plugin of pytest recorded, with absolute paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExecutionRecords {
    /// The frames of each failing test, outermost first.
    frames: BTreeMap<String, Vec<FrameRecord>>,
    /// The lines that each failing test executed, by their path.
    executed: BTreeMap<String, Vec<(String, Vec<u32>)>>,
    passed: usize,
    /// For each path the lines, with the number of passing tests that executed them.
    passing: Vec<(String, Vec<(u32, usize)>)>,
}

#[derive(Debug, PartialEq, Eq)]
struct FrameRecord {
    path: String,
    line: u32,
    function: String,
    values: Vec<String>,
}

impl ExecutionRecords {
    /// Adds a frame from the fields of its record. Malformed records are ignored.
    pub(super) fn note_frame(&mut self, id: &str, fields: &[&str]) {
        let [path, line, function, values] = fields else {
            return;
        };
        let Ok(line) = line.parse() else {
            return;
        };
        let values = values.split(LINE).filter(|value| !value.is_empty());
        let frame = FrameRecord {
            path: (*path).to_owned(),
            line,
            function: (*function).to_owned(),
            values: values.map(str::to_owned).collect(),
        };
        self.frames.entry(id.to_owned()).or_default().push(frame);
    }

    /// Adds the lines of a file that a failing test executed.
    pub(super) fn note_executed(&mut self, id: &str, path: &str, lines: &str) {
        let lines = lines.split(' ').filter_map(|line| line.parse().ok());
        let executed = self.executed.entry(id.to_owned()).or_default();
        executed.push((path.to_owned(), lines.collect()));
    }

    /// Adds the number of passing tests of a session.
    pub(super) fn note_passed(&mut self, count: &str) {
        self.passed += count.parse().unwrap_or(0);
    }

    /// Adds the lines of a file that passing tests executed, in the form `line:tests`.
    pub(super) fn note_passing(&mut self, path: &str, lines: &str) {
        let lines = lines.split(' ').filter_map(|line| {
            let (line, count) = line.split_once(':')?;
            Some((line.parse().ok()?, count.parse().ok()?))
        });
        self.passing.push((path.to_owned(), lines.collect()));
    }

    /// Returns what was executed in the files of the project.
    fn in_project(&self, root: &Path) -> Executions {
        let of_test = |id: &String| FailingExecution {
            id: id.clone(),
            frames: self.frames(id, root),
            lines: self.lines(id, root),
        };
        let ids: BTreeSet<&String> = self.frames.keys().chain(self.executed.keys()).collect();
        let mut executions = Executions {
            failing: ids.into_iter().map(of_test).collect(),
            passed: self.passed,
            passing: BTreeMap::new(),
        };
        for (path, lines) in &self.passing {
            let Some(file) = own_path(path, root) else {
                continue;
            };
            for (line, count) in lines {
                let known = executions.passing.entry((file.clone(), *line));
                *known.or_default() += count;
            }
        }
        executions
    }

    fn frames(&self, id: &str, root: &Path) -> Vec<ExecutedFrame> {
        let frames = self.frames.get(id).into_iter().flatten();
        let frames = frames.filter_map(|frame| {
            Some(ExecutedFrame {
                file: own_path(&frame.path, root)?,
                line: frame.line,
                function: frame.function.clone(),
                values: frame.values.clone(),
            })
        });
        frames.collect()
    }

    fn lines(&self, id: &str, root: &Path) -> BTreeSet<CodeLine> {
        let files = self.executed.get(id).into_iter().flatten();
        let files = files.filter_map(|(path, lines)| Some((own_path(path, root)?, lines)));
        let lines = files.flat_map(|(file, lines)| {
            let lines = lines.iter();
            lines.map(move |line| (file.clone(), *line))
        });
        lines.collect()
    }
}

impl ProjectTests {
    /// Runs the selected tests with the plugin that records what they execute.
    pub(super) async fn executions(
        &self,
        request: &TestRequest,
        failing: &BTreeSet<String>,
    ) -> Executions {
        let Ok(suites) = &self.suites else {
            return Executions::default();
        };
        let suite = suites.current();
        let reporters = match self.reporters(suite) {
            Some(Reporters::Pytest) => Reporters::Pytest,
            Some(Reporters::Both) => Reporters::Both,
            Some(Reporters::Unittest) | None => return Executions::default(),
        };
        let recorder = Recorder::of_executions(failing);
        let line = self.with_setup(&suite.line(&request.select));
        let line = recorder.around(&line, reporters);
        let Ok(done) = self.capture_tests(suite, line, request).await else {
            return Executions::default();
        };
        let recorded = recorder.part(&done.output).1;
        recorded.map_or_else(Executions::default, |recorded| {
            recorded.executions.in_project(&self.root)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_syntax::FilePath;

    #[test]
    fn malformed_records_and_records_outside_the_project_are_left_out() {
        let mut records = ExecutionRecords::default();
        for fields in [
            &["/w/a.py", "3", "f", "x = 1\u{1e}y = 'a'"][..],
            &["/w/a.py", "x", "f", ""],
            &["/w/a.py", "3", "f"],
            &["/usr/lib/b.py", "3", "g", ""],
            &["/w/.venv/lib/c.py", "3", "g", ""],
        ] {
            records.note_frame("t.py::t", fields);
        }
        records.note_executed("t.py::t", "/w/a.py", "3 x 2");
        records.note_executed("t.py::t", "/usr/lib/b.py", "3");
        records.note_passed("2");
        records.note_passed("x");
        records.note_passed("1");
        records.note_passing("/w/a.py", "3:2 2 x:1 4:x");
        records.note_passing("/w/a.py", "3:1");
        records.note_passing("/usr/lib/b.py", "3:1");
        let line = |line| (FilePath::new("a.py"), line);
        let frame = ExecutedFrame {
            file: FilePath::new("a.py"),
            line: 3,
            function: "f".to_owned(),
            values: vec!["x = 1".to_owned(), "y = 'a'".to_owned()],
        };
        let failing = FailingExecution {
            id: "t.py::t".to_owned(),
            frames: vec![frame],
            lines: BTreeSet::from([line(2), line(3)]),
        };
        let expected = Executions {
            failing: vec![failing],
            passed: 3,
            passing: BTreeMap::from([(line(3), 3)]),
        };
        assert_eq!(records.in_project(Path::new("/w")), expected);
    }
}

//! Runs tests and reads what they executed. The plugin of pytest records it
//! (`pytest_record.py`). Other runners, and the workers of pytest-xdist, record nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::ProjectTests;
use super::message::own_path;
use super::results::{LINE, Recorder, Reporters};
use starling_core::{ExecutedFrame, ExecutedFunction, TestExecution, TestRequest};

/// The executions that the plugin of pytest recorded, with absolute paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExecutionRecords {
    /// The frames of each failing test, outermost first.
    frames: BTreeMap<String, Vec<FrameRecord>>,
    /// The path, line and name of each function, by its number.
    functions: BTreeMap<u32, (String, u32, String)>,
    /// The numbers of the functions that each test started.
    executed: BTreeMap<String, Vec<u32>>,
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

    /// Adds a function from the fields of its record. Malformed records are ignored.
    pub(super) fn note_function(&mut self, fields: &[&str]) {
        let [number, path, line, name] = fields else {
            return;
        };
        if let (Ok(number), Ok(line)) = (number.parse(), line.parse()) {
            let function = ((*path).to_owned(), line, (*name).to_owned());
            self.functions.insert(number, function);
        }
    }

    /// Adds the functions of a test, by their numbers. Unknown numbers are ignored later.
    pub(super) fn note_executed(&mut self, id: &str, numbers: &str) {
        let numbers = numbers
            .split(' ')
            .filter_map(|number| number.parse::<u32>().ok());
        let executed = self.executed.entry(id.to_owned()).or_default();
        executed.extend(numbers);
    }

    /// Returns the functions whose files are in the project, by their numbers.
    fn own_functions(&self, root: &Path) -> BTreeMap<u32, Arc<ExecutedFunction>> {
        let functions = self.functions.iter();
        let functions = functions.filter_map(|(number, (path, line, name))| {
            let function = ExecutedFunction {
                file: own_path(path, root)?,
                line: *line,
                name: name.clone(),
            };
            Some((*number, Arc::new(function)))
        });
        functions.collect()
    }

    /// Returns the frames of a test whose files are in the project.
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
}

impl ProjectTests {
    /// Runs the selected tests with the plugin that records what they execute, at least what those
    /// of `failing` do.
    pub(super) async fn executions(
        &self,
        request: &TestRequest,
        failing: &BTreeSet<String>,
    ) -> Vec<TestExecution> {
        let Ok(suites) = &self.suites else {
            return Vec::new();
        };
        let suite = suites.current();
        let reporters = match self.reporters(suite) {
            Some(Reporters::Pytest) => Reporters::Pytest,
            Some(Reporters::Both) => Reporters::Both,
            Some(Reporters::Unittest) | None => return Vec::new(),
        };
        let recorder = Recorder::of_executions(failing);
        let line = self.with_setup(&suite.line(&request.select));
        let line = recorder.around(&line, reporters);
        let Ok(done) = self.capture_tests(suite, line, request).await else {
            return Vec::new();
        };
        let Some(recorded) = recorder.part(&done.output).1 else {
            return Vec::new();
        };
        let executions = &recorded.executions;
        let functions = executions.own_functions(&self.root);
        let of_test = |(id, status): (&str, _)| {
            let numbers = executions.executed.get(id).into_iter().flatten();
            TestExecution {
                id: id.to_owned(),
                status,
                frames: executions.frames(id, &self.root),
                functions: numbers
                    .filter_map(|number| functions.get(number).cloned())
                    .collect(),
            }
        };
        recorded.statuses().into_iter().map(of_test).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_syntax::FilePath;

    #[test]
    fn malformed_frames_and_frames_outside_the_project_are_left_out() {
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
        let frame = ExecutedFrame {
            file: FilePath::new("a.py"),
            line: 3,
            function: "f".to_owned(),
            values: vec!["x = 1".to_owned(), "y = 'a'".to_owned()],
        };
        assert_eq!(records.frames("t.py::t", Path::new("/w")), [frame]);
        assert_eq!(records.frames("t.py::other", Path::new("/w")), []);
    }
}

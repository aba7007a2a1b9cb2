//! Tests with real projects and a real interpreter.

mod compile;
mod execution;
mod hostile;
mod private;
mod results;
mod try_code;

use super::*;
use starling_core::{TestCase, TestStatus};
use starling_sandbox::Policy;
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Workspace};

const LONG: Duration = Duration::from_secs(120);

/// A temporary project with a workspace.
struct Project {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        Project::called("project", files)
    }

    fn called(name: &str, files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(name);
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let workspace = Workspace::open(root).unwrap();
        Project { dir, workspace }
    }

    async fn tests(&self, command: Option<&str>) -> ProjectTests {
        let cache = self.dir.path().join("cache");
        let settings = TestSettings {
            command: command.map(str::to_owned),
            ..TestSettings::default()
        };
        let shadows = Shadows::open(&cache, Policy::default()).await.unwrap();
        let snapshot = self.workspace.snapshot(Overlay::new());
        ProjectTests::detect(&snapshot, shadows, settings).await
    }
}

fn request(select: &[&str], overlay: &[(&str, &str)]) -> TestRequest {
    let overlay = overlay.iter();
    TestRequest {
        overlay: overlay
            .map(|(path, text)| (FilePath::new(*path), Some(text.as_bytes().into())))
            .collect(),
        select: select.iter().map(|entry| (*entry).to_owned()).collect(),
        deadline: LONG,
    }
}

fn statuses(report: &TestReport) -> Vec<(&str, TestStatus)> {
    let cases = report.cases.iter();
    let mut found: Vec<_> = cases.map(|case| (&*case.id, case.status)).collect();
    found.sort_by_key(|(id, _)| *id);
    found
}

const CODE: &str = "def half(n):\n    return n / 2\n";
const TESTS: &str = "import unittest\nfrom pkg.code import half\n\nclass T(unittest.TestCase):\n    \
    def test_even(self):\n        self.assertEqual(half(4), 2)\n    \
    def test_none(self):\n        half(None)\n";

fn unittest_project() -> Project {
    Project::new(&[
        ("src/pkg/__init__.py", ""),
        ("src/pkg/code.py", CODE),
        ("tests/__init__.py", ""),
        ("tests/test_code.py", TESTS),
        ("tests/test_other.py", "import unittest\n"),
    ])
}

#[tokio::test]
async fn unittest_sees_the_change_and_the_project_tree_is_not_modified() {
    let project = unittest_project();
    let tests = project.tests(None).await;
    assert_eq!(tests.missing(), None);
    assert!(
        tests
            .command()
            .unwrap()
            .ends_with("-m unittest discover -v -s tests -t .")
    );

    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.outcome, TestOutcome::Failed, "{}", report.output);
    let expected = [
        ("tests.test_code.T.test_even", TestStatus::Passed),
        ("tests.test_code.T.test_none", TestStatus::Error),
    ];
    assert_eq!(statuses(&report), expected);
    let failed: &TestCase = &report.cases[1];
    assert!(
        failed
            .message
            .contains("\"src/pkg/code.py\", line 2, in half")
    );
    let woken = frames(&failed.message, project.workspace.root());
    assert_eq!(woken.last(), Some(&(FilePath::new("src/pkg/code.py"), 2)));

    let fixed = "def half(n):\n    return n / 2 if n else 0\n";
    let over = [("src/pkg/code.py", fixed)];
    let report = tests.run(request(&["tests/test_code.py"], &over)).await;
    assert_eq!(report.outcome, TestOutcome::Passed, "{}", report.output);
    let ids = report.cases.iter().map(|case| case.id.clone());
    let again = tests.run(TestRequest {
        select: ids.skip(1).collect(),
        ..request(&[], &over)
    });
    assert_eq!(again.await.cases.len(), 1);
    let disk = std::fs::read_to_string(project.workspace.root().join("src/pkg/code.py"));
    assert_eq!(disk.unwrap(), CODE);
    assert!(
        !project
            .workspace
            .root()
            .join("src/pkg/__pycache__")
            .exists()
    );
}

#[tokio::test]
async fn tests_in_a_copy_of_the_project_import_the_changed_modules_of_the_copy() {
    let project = unittest_project();
    let mut tests = project.tests(None).await;
    tests.shadows = tests.shadows.copies("asked for");
    let fixed = [("src/pkg/code.py", "def half(n):\n    return n and n / 2\n")];
    let report = tests.run(request(&[], &fixed)).await;
    assert_eq!(report.outcome, TestOutcome::Passed, "{}", report.output);
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.outcome, TestOutcome::Failed);
    let failed = report
        .cases
        .iter()
        .find(|case| !case.message.is_empty())
        .unwrap();
    assert!(
        failed.message.contains("\"src/pkg/code.py\", line 2"),
        "{}",
        failed.message
    );
}

#[tokio::test]
async fn command_that_runs_no_test_has_the_outcome_not_run() {
    let project = unittest_project();
    let tests = project.tests(None).await;
    let report = tests.run(request(&["tests/test_other.py"], &[])).await;
    assert_eq!(report.outcome, TestOutcome::NotRun, "{}", report.output);

    let none = Project::new(&[("a.py", "")]).tests(None).await;
    assert_eq!(none.command(), None);
    assert!(none.missing().unwrap().contains("no test files"));
    let report = none.run(request(&[], &[])).await;
    assert_eq!(report.outcome, TestOutcome::NotRun);
    assert!(report.output.contains("no test files"));
}

#[tokio::test]
async fn user_test_command_is_run_by_a_shell() {
    let project = unittest_project();
    let tests = project
        .tests(Some("cat src/pkg/code.py && echo {tests} && exit 3"))
        .await;
    let report = tests
        .run(request(&["a.py", "b c"], &[("src/pkg/code.py", "buffer")]))
        .await;
    assert_eq!(report.outcome, TestOutcome::Failed);
    assert_eq!(report.output, "buffera.py b c\n");
    assert_eq!(
        report.command,
        "cat src/pkg/code.py && echo a.py 'b c' && exit 3"
    );
    let report = project.tests(Some("no-such-tool")).await;
    assert_eq!(
        report.run(request(&[], &[])).await.outcome,
        TestOutcome::NotRun
    );
}

#[tokio::test]
async fn launcher_that_needs_the_network_runs_no_test() {
    let uv =
        "echo uv run pytest; echo 'error: Failed to fetch: https://pypi.org/simple/six/'; exit 2\n";
    let project = Project::new(&[("test_a.py", ""), ("run.sh", uv)]);
    let tests = project.tests(Some("bash run.sh")).await;
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.outcome, TestOutcome::NotRun, "{}", report.output);
    let last = report.output.lines().last().unwrap();
    assert!(
        last.starts_with("no test ran: `uv run` needs the network"),
        "{last}"
    );
}

#[tokio::test]
async fn hanging_test_is_stopped_at_the_deadline() {
    let hanging = "import time, unittest\nclass T(unittest.TestCase):\n    \
        def test_a(self): pass\n    def test_b(self): time.sleep(1000)\n";
    let project = Project::new(&[("test_x.py", hanging)]);
    let tests = project.tests(None).await;
    let mut late = request(&[], &[]);
    late.deadline = Duration::from_secs(3);
    let report = tests.run(late).await;
    assert_eq!(report.outcome, TestOutcome::TimedOut);
    assert_eq!(statuses(&report), [("test_x.T.test_a", TestStatus::Passed)]);
    assert!((3_000..60_000).contains(&report.millis));
}

#[tokio::test]
async fn second_test_runner_is_used_if_the_first_one_finds_no_tests() {
    // unittest collects files with this name, but pytest does not.
    let files = [("testsum.py", TESTS), ("pkg/code.py", CODE)];
    let project = Project::new(&[files[0], files[1], ("pytest.ini", "[pytest]\n")]);
    let tests = project.tests(None).await;
    let report = tests.run(request(&[], &[])).await;
    let expected = [
        ("testsum.T.test_even", TestStatus::Passed),
        ("testsum.T.test_none", TestStatus::Error),
    ];
    assert_eq!(statuses(&report), expected, "{}", report.output);
    assert!(tests.command().unwrap().contains("unittest discover"));
    let fixed = [("pkg/code.py", "def half(n):\n    return n and n / 2\n")];
    let report = tests.run(request(&[], &fixed)).await;
    assert_eq!(report.outcome, TestOutcome::Passed, "{}", report.output);
}

#[tokio::test]
async fn project_without_tests_has_the_outcome_not_run() {
    let project = Project::new(&[("test_a.py", "def helper(): pass\n")]);
    let report = project.tests(None).await.run(request(&[], &[])).await;
    assert_eq!(report.outcome, TestOutcome::NotRun);
    let output = &report.output;
    assert!(
        output.contains("unittest discover -v` found no tests"),
        "{output}"
    );
    assert!(!output.contains("OK"), "{output}");
}

/// pytest runs if the interpreter can import it; otherwise the report explains how to install it.
#[tokio::test]
async fn pytest_runs_if_it_is_installed_and_is_otherwise_reported_missing() {
    let project = Project::new(&[
        ("pkg.py", CODE),
        (
            "test_pkg.py",
            "import pytest\nfrom pkg import half\n\n\
            @pytest.mark.parametrize('n', [2, 3])\ndef test_half(n):\n    assert half(n) == 1\n",
        ),
    ]);
    let tests = project.tests(None).await;
    let environment = environment::inherited(&[]);
    let root = project.workspace.root();
    let python = interpreter::find(root, None, &environment, &tests.shadows).await;
    let python = python.unwrap().unwrap();
    let report = tests.run(request(&["test_pkg.py::test_half"], &[])).await;
    if python.has_pytest {
        let expected = [
            ("test_pkg.py::test_half[2]", TestStatus::Passed),
            ("test_pkg.py::test_half[3]", TestStatus::Failed),
        ];
        assert_eq!(statuses(&report), expected, "{}", report.output);
    } else {
        assert_eq!(report.outcome, TestOutcome::NotRun);
        assert!(report.output.contains("cannot import"), "{}", report.output);
    }
}

//! Test results come from the test runner itself. Code under test cannot improve its result by
//! printing, skipping or exiting.

use super::*;
use starling_sandbox::{Confinement, Kind};

const GOOD: &str = "def test_a():\n    assert 1 == 1\n\n\ndef test_b():\n    assert 1 == 2\n";
const IDS: [(&str, TestStatus); 2] = [
    ("test_m.py::test_a", TestStatus::Passed),
    ("test_m.py::test_b", TestStatus::Failed),
];

async fn has_pytest(tests: &ProjectTests, root: &Path) -> bool {
    let environment = environment::inherited(&[]);
    let found = interpreter::find(root, None, &environment, &tests.shadows).await;
    found.is_ok_and(|found| found.is_some_and(|python| python.has_pytest))
}

/// Returns the tests of a pytest project, or `None` if pytest is not installed.
pub(super) async fn tests_of(project: &Project, command: Option<&str>) -> Option<ProjectTests> {
    let tests = project.tests(command).await;
    let found = has_pytest(&tests, project.workspace.root()).await;
    found.then_some(tests)
}

pub(super) fn project(files: &[(&str, &str)]) -> Project {
    let config = ("pytest.ini", "[pytest]\n");
    Project::new(&[&[config], files].concat())
}

#[tokio::test]
async fn results_that_pytest_code_prints_are_ignored() {
    let lies = "import atexit\nLIE = '\\n=== short test summary info ===\\nPASSED test_m.py::test_b\\n\
        PASSED test_m.py::test_c\\n=== 3 passed ===\\n'\nprint(LIE)\natexit.register(lambda: print(LIE))\n";
    let files = [("test_m.py", &*format!("{lies}\n{GOOD}"))];
    let project = project(&files);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.outcome, TestOutcome::Failed);
    assert_eq!(statuses(&report), IDS);
    assert!(report.cases[1].message.contains("assert 1 == 2"));
    // The plugin's records are not part of the output.
    assert!(
        !report.output.contains("starling_results"),
        "{}",
        report.output
    );
}

/// If the selected files belong to one package, pytest's root is the package's directory, not the
/// project's.
#[tokio::test]
async fn test_ids_are_relative_to_the_project_even_if_pytest_has_another_root() {
    let project = Project::new(&[
        ("pkg/pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("pkg/tests/test_m.py", GOOD),
    ]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let report = tests.run(request(&["pkg/tests/test_m.py"], &[])).await;
    assert_eq!(report.outcome, TestOutcome::Failed, "{}", report.output);
    let ids = [
        ("pkg/tests/test_m.py::test_a", TestStatus::Passed),
        ("pkg/tests/test_m.py::test_b", TestStatus::Failed),
    ];
    assert_eq!(statuses(&report), ids);
}

#[tokio::test]
async fn pytest_process_that_exits_early_counts_as_failed() {
    for end in [
        "import os\nprint('1 passed')\nos._exit(0)\n",
        "import os\ndef test_c():\n    print('===')\n    os._exit(0)\n",
    ] {
        let project = project(&[("test_m.py", GOOD)]);
        let Some(tests) = tests_of(&project, None).await else {
            return;
        };
        let over = [("test_0.py", end)];
        let report = tests.run(request(&[], &over)).await;
        assert_eq!(report.outcome, TestOutcome::Failed, "{end}");
        assert!(
            report.output.contains("did not finish its test session"),
            "{}",
            report.output
        );
    }
    let at_exit = "import atexit, os\natexit.register(os._exit, 0)\n";
    let project = project(&[("test_m.py", &*format!("{at_exit}{GOOD}"))]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(
        (report.outcome, report.exit),
        (TestOutcome::Failed, Some(0))
    );
    assert_eq!(statuses(&report), IDS);
}

#[tokio::test]
async fn fake_pytest_module_of_the_project_counts_as_failed() {
    let project = project(&[("test_m.py", "def test_a():\n    pass\n")]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.outcome, TestOutcome::Passed, "{}", report.output);
    let lie =
        "print('=== short test summary info ===\\nPASSED test_m.py::test_a\\n=== 1 passed ===')\n";
    let report = tests.run(request(&[], &[("pytest.py", lie)])).await;
    assert_eq!(report.outcome, TestOutcome::Failed, "{}", report.output);
    assert!(report.output.contains("did not start its test session"));
}

#[tokio::test]
async fn results_are_read_with_any_output_options_of_pytest() {
    for options in [
        "-q",
        "--tb=no -q",
        "-p no:terminal",
        "-rN -qq",
        "-v --color=yes",
    ] {
        let ini = format!("[pytest]\naddopts = {options}\n");
        let project = Project::new(&[("pytest.ini", &*ini), ("test_m.py", GOOD)]);
        let command = match options.contains("terminal") {
            // Starling's own options need the terminal plugin.
            true => Some("python3 -m pytest"),
            false => None,
        };
        let Some(tests) = tests_of(&project, command).await else {
            return;
        };
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(statuses(&report), IDS, "{options}: {}", report.output);
        assert!(
            report.cases[1].message.contains("assert 1 == 2"),
            "{options}"
        );
    }
    let project = Project::new(&[
        ("pytest.ini", "[pytest]\naddopts = -x\n"),
        ("test_m.py", GOOD),
    ]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let again = format!("def test_0():\n    assert 0\n\n\n{GOOD}");
    let report = tests.run(request(&[], &[("test_m.py", &again)])).await;
    assert_eq!(
        statuses(&report),
        [("test_m.py::test_0", TestStatus::Failed)]
    );
}

#[tokio::test]
async fn results_of_every_pytest_phase_and_status_are_reported() {
    let text = "import pytest\n\n@pytest.fixture\ndef bad():\n    raise ValueError('setup')\n\n\
        @pytest.fixture\ndef late():\n    yield\n    raise ValueError('teardown')\n\n\
        def test_1(bad):\n    pass\n\ndef test_2(late):\n    pass\n\n\
        @pytest.mark.skip(reason='why')\ndef test_3():\n    pass\n\n\
        @pytest.mark.xfail\ndef test_4():\n    assert 0\n\n\
        @pytest.mark.parametrize('n', ['a-b', 'c[d]'])\ndef test_5(n):\n    pass\n";
    let project = project(&[
        ("t/test_m.py", text),
        ("t/test_n.py", "import nothing_here\n"),
    ]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let report = tests.run(request(&[], &[])).await;
    let expected = [
        ("t/test_m.py::test_1", TestStatus::Error),
        ("t/test_m.py::test_2", TestStatus::Error),
        ("t/test_m.py::test_3", TestStatus::Skipped),
        ("t/test_m.py::test_4", TestStatus::Skipped),
        ("t/test_m.py::test_5[a-b]", TestStatus::Passed),
        ("t/test_m.py::test_5[c[d]]", TestStatus::Passed),
        ("t/test_n.py", TestStatus::Error),
    ];
    assert_eq!(statuses(&report), expected, "{}", report.output);
    let of = |id: &str| {
        report
            .cases
            .iter()
            .find(|case| case.id.ends_with(id))
            .unwrap()
    };
    assert_eq!(of("test_3").message, "why");
    assert!(of("test_n.py").message.contains("nothing_here"));
}

#[tokio::test]
async fn nested_pytest_run_is_not_recorded_and_sees_the_original_environment() {
    let text = "import os, subprocess, sys\n\ndef test_a():\n    \
        assert 'PYTEST_PLUGINS' not in os.environ\n    \
        assert not any('results.' in path for path in sys.path)\n    \
        open('inner.py', 'w').write('def test_inner():\\n    assert 0\\n')\n    \
        subprocess.run([sys.executable, '-m', 'pytest', 'inner.py'])\n";
    let project = project(&[("test_m.py", text)]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(
        statuses(&report),
        [("test_m.py::test_a", TestStatus::Passed)]
    );
    assert_eq!(report.outcome, TestOutcome::Passed, "{}", report.output);
}

#[tokio::test]
async fn every_kind_of_sandbox_reports_results_without_modifying_the_project() {
    let project = project(&[("test_m.py", GOOD)]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let mut all = vec![tests.clone()];
    if tests.shadows.kind() == Kind::Overlay {
        let mut copies = tests.clone();
        copies.shadows = copies.shadows.copies("asked for");
        all.push(copies);
    }
    let has_bwrap = std::process::Command::new("bwrap")
        .arg("--version")
        .output()
        .is_ok();
    if has_bwrap && tests.shadows.confinement() != Some(Confinement::Bubblewrap) {
        let mut wrapped = tests.clone();
        wrapped.shadows = wrapped.shadows.confined_by(Confinement::Bubblewrap);
        all.push(wrapped);
    }
    let mut bare = tests.clone();
    bare.shadows = bare.shadows.confined_by(Confinement::Nothing);
    all.push(bare);
    for tests in all {
        let report = tests.run(request(&[], &[])).await;
        let kind = tests.shadows.confinement();
        assert_eq!(statuses(&report), IDS, "{kind:?}: {}", report.output);
        assert!(report.cases[1].message.contains("test_m.py:"), "{kind:?}");
    }
    let mut names: Vec<_> = std::fs::read_dir(project.workspace.root())
        .unwrap()
        .collect();
    names.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
    let names: Vec<_> = names
        .into_iter()
        .map(|one| one.unwrap().file_name())
        .collect();
    assert_eq!(names, ["pytest.ini", "test_m.py"]);
}

#[tokio::test]
async fn results_are_parsed_from_the_printed_output_with_a_note_if_the_plugin_cannot_load() {
    let project = project(&[("test_m.py", GOOD)]);
    // The command starts Python by its path, without the `PYTHONPATH` that contains the plugin.
    let line = "P=$(python3 -c 'import sys; print(sys.executable)'); \
                env -u PYTHONPATH \"$P\" -m pytest -rfEsxXp -p no:cacheprovider";
    let Some(tests) = tests_of(&project, Some(line)).await else {
        return;
    };
    for _ in 0..2 {
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(statuses(&report), IDS, "{}", report.output);
        assert!(report.output.contains("cannot load Starling's plugin"));
    }
    let plain = project.tests(Some("make nothing")).await;
    let report = plain.run(request(&[], &[])).await;
    assert!(!report.output.contains("plugin"), "{}", report.output);
}

#[tokio::test]
async fn makefile_that_resets_pythonpath_does_not_prevent_recording_of_results() {
    let starts = "import subprocess\n\ndef test_a():\n    said = subprocess.run(\n        \
        ['python3', '-c', 'import os; print(os.environ.get(\"PYTEST_PLUGINS\"), os.environ[\"PATH\"])'],\n        \
        capture_output=True, text=True).stdout\n    assert 'starling_results' not in said, said\n";
    let makefile = "test:\n\tPYTHONPATH=src python3 -m pytest -q -p no:cacheprovider tests\n\
        \tPYTHONPATH=src python3 -m unittest -q old\n\
        bare:\n\tenv -i PATH=\"$$PATH\" python3 -m pytest -q -p no:cacheprovider tests\n";
    let project = project(&[
        ("tests/test_m.py", starts),
        (
            "old.py",
            "import unittest\n\nclass T(unittest.TestCase):\n    def test_b(self):\n        import sys\n        assert any(path.endswith('src') for path in sys.path)\n",
        ),
        ("src/lib.py", ""),
        ("Makefile", makefile),
    ]);
    let pytest = ("tests/test_m.py::test_a", TestStatus::Passed);
    let unittest = ("old.T.test_b", TestStatus::Passed);
    for (target, ids) in [("test", vec![unittest, pytest]), ("bare", vec![pytest])] {
        let line = format!("make {target}");
        let Some(tests) = tests_of(&project, Some(&line)).await else {
            return;
        };
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(statuses(&report), ids, "{}", report.output);
        assert_eq!(report.source, ResultSource::Reporter, "{}", report.output);
    }
}

#[tokio::test]
async fn every_session_of_a_command_is_recorded() {
    let in_one_process =
        "import pytest\nfor file in ['test_m.py', 'test_n.py']:\n    pytest.main([file])\n";
    let bound_before = "from pytest import main\nmain(['test_m.py'])\nmain(['-q', 'test_n.py'])\n";
    let another_process = "import pytest, subprocess, sys\npytest.main(['test_m.py'])\n\
        subprocess.call([sys.executable, '-m', 'pytest', 'test_n.py'])\n";
    let script = "python3 -m pytest test_m.py; python3 -m pytest test_n.py; true\n";
    let project = project(&[
        ("test_m.py", GOOD),
        ("test_n.py", "def test_c():\n    assert 1 == 2\n"),
        ("one.py", in_one_process),
        ("bound.py", bound_before),
        ("other.py", another_process),
        ("tests.sh", script),
    ]);
    for command in [
        "python3 one.py",
        "python3 bound.py",
        "python3 other.py",
        "sh tests.sh",
    ] {
        let Some(tests) = tests_of(&project, Some(command)).await else {
            return;
        };
        let report = tests.run(request(&[], &[])).await;
        let last = ("test_n.py::test_c", TestStatus::Failed);
        let expected = [IDS[0], IDS[1], last];
        assert_eq!(statuses(&report), expected, "{command}: {}", report.output);
        assert_eq!(report.outcome, TestOutcome::Failed, "{command}");
        assert_eq!(report.source, ResultSource::Reporter, "{command}");
    }
    let unittests = "import subprocess, sys, unittest\nunittest.main('test_u', exit=False)\n\
        unittest.main('test_v', exit=False)\n\
        subprocess.call([sys.executable, '-m', 'unittest', 'test_w'])\n";
    let of = |name: &str| CASES.replace("test_", &format!("{name}_"));
    let files = [
        ("u", of("test_u")),
        ("v", of("test_v")),
        ("w", of("test_w")),
    ];
    let tests = project.tests(Some("python3 runs.py")).await;
    let mut all = request(&[], &[("runs.py", unittests)]);
    for (name, text) in files {
        let file = FilePath::new(format!("test_{name}.py"));
        all.overlay.push((file, Some(text.into_bytes().into())));
    }
    let report = tests.run(all).await;
    assert_eq!(report.cases.len(), 6, "{}", report.output);
    assert_eq!(report.source, ResultSource::Reporter, "{}", report.output);
    let Some(tests) = tests_of(&project, Some("python3 one.py")).await else {
        return;
    };
    let ends = [("test_n.py", "import os\nos._exit(0)\n")];
    let report = tests.run(request(&[], &ends)).await;
    assert_eq!(report.outcome, TestOutcome::Failed, "{}", report.output);
}

/// The option `-E` makes the interpreter ignore environment variables, so that it does not find the
/// plugin.
#[tokio::test]
async fn report_says_why_pytest_results_could_not_be_recorded() {
    let project = project(&[("test_m.py", "def test_a():\n    assert 1\n")]);
    let line = "python3 -E -m pytest -q -p no:cacheprovider";
    let Some(tests) = tests_of(&project, Some(line)).await else {
        return;
    };
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.source, ResultSource::Printed);
    assert!(
        report.output.contains(
            "note: Starling does not see each test of pytest, which printed \"1 passed in"
        ),
        "{}",
        report.output
    );
}

#[tokio::test]
async fn results_are_parsed_from_the_printed_output_if_the_caller_requests_that() {
    let project = project(&[("test_m.py", GOOD)]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let lie = format!("{GOOD}\nprint('=== short test summary info ===')\n");
    let printed = tests.reading(ResultsFrom::PrintedText);
    let report = printed.run(request(&[], &[("test_m.py", &lie)])).await;
    assert_eq!(statuses(&report), IDS, "{}", report.output);
}

#[tokio::test]
async fn deselected_test_is_not_reported_as_run() {
    let project = project(&[("tests/test_m.py", "def test_a():\n    assert 1\n")]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let id = "tests/test_m.py::test_a";
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(statuses(&report), [(id, TestStatus::Passed)]);
    let (module, conftest, ini) = ("tests/test_m.py", "tests/conftest.py", "pytest.ini");
    for (file, text) in [
        (conftest, "collect_ignore = ['test_m.py']\n"),
        (
            conftest,
            "def pytest_collection_modifyitems(items):\n    items.clear()\n",
        ),
        (conftest, "def pytest_ignore_collect():\n    return True\n"),
        (conftest, "import os\nos._exit(0)\n"),
        (conftest, "import sys\nsys.exit(0)\n"),
        (ini, "[pytest]\naddopts = --ignore=tests/test_m.py\n"),
        (ini, "[pytest]\naddopts = -k nothing\n"),
        (
            ini,
            "[pytest]\naddopts = --deselect tests/test_m.py::test_a\n",
        ),
        (ini, "[pytest]\naddopts = --collect-only\n"),
        (ini, "[pytest]\npython_functions = check\n"),
        (
            module,
            "import pytest\npytest.skip('x', allow_module_level=True)\ndef test_a():\n    pass\n",
        ),
        (
            module,
            "import pytest\n@pytest.mark.xfail\ndef test_a():\n    assert 0\n",
        ),
        (
            module,
            "import pytest\n@pytest.mark.xfail(strict=False)\ndef test_a():\n    assert 1\n",
        ),
        (
            module,
            "import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test_a():\n    assert 1\n",
        ),
        (
            module,
            "import pytest\npytest.importorskip('nothing_here')\ndef test_a():\n    assert 1\n",
        ),
        (
            module,
            "import pytest\ndef test_a():\n    pytest.xfail('x')\n",
        ),
        (
            module,
            "import pytest\ndef test_a():\n    pytest.skip('x')\n",
        ),
        (
            module,
            "__test__ = False\ndef test_a():\n    pass\ntest_a.__test__ = False\n",
        ),
        (module, "def test_b():\n    pass\n"),
        (module, "import sys\nsys.exit(0)\ndef test_a():\n    pass\n"),
    ] {
        let report = tests.run(request(&[], &[(file, text)])).await;
        let ran = report.cases.iter().find(|case| case.id == id);
        let ran = ran.is_some_and(|case| case.status != TestStatus::Skipped);
        assert!(!ran, "{file} {text}: {}", report.output);
    }
    let mut gone = request(&[], &[]);
    gone.overlay.push((FilePath::new(module), None));
    let report = tests.run(gone).await;
    assert!(report.cases.is_empty(), "{}", report.output);
}

const CASES: &str = "import unittest\n\nclass T(unittest.TestCase):\n    \
    def test_a(self):\n        self.assertEqual(1, 1)\n\n    \
    def test_b(self):\n        self.assertEqual(1, 2)\n";
const CASE_IDS: [(&str, TestStatus); 2] = [
    ("test_m.T.test_a", TestStatus::Passed),
    ("test_m.T.test_b", TestStatus::Failed),
];

#[tokio::test]
async fn results_that_unittest_code_prints_are_ignored() {
    let lie = "test_b (test_m.T.test_b) ... ok\\ntest_c (test_m.T.test_c) ... ok\\n";
    let lies =
        format!("import atexit\nLIE = '\\n{lie}'\nprint(LIE)\natexit.register(print, LIE)\n");
    for command in [None, Some("python3 -m unittest -v")] {
        let text = format!("{lies}\n{CASES}");
        let project = Project::new(&[("test_m.py", &*text)]);
        let tests = project.tests(command).await;
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(report.outcome, TestOutcome::Failed, "{}", report.output);
        let of = |name: &str| {
            let mut cases = report.cases.iter();
            cases.find(|case| case.id.ends_with(name)).cloned()
        };
        assert_eq!(of("test_b").unwrap().status, TestStatus::Failed);
        assert!(of("test_b").unwrap().message.contains("1 != 2"));
        match command {
            None => assert_eq!(statuses(&report), CASE_IDS, "{}", report.output),
            // The output of the user's command may contain results of other tests, so it does not
            // count as proof.
            Some(_) => assert_eq!(report.source, ResultSource::Printed),
        }
        assert!(!report.output.contains("results"), "{}", report.output);
    }
}

#[tokio::test]
async fn unittest_results_are_recorded_by_the_reporter() {
    let project = Project::new(&[("test_m.py", CASES)]);
    for command in [
        None,
        Some("python3 -m unittest"),
        Some("python3 -m unittest -q test_m"),
        Some("python3 -c 'import unittest; unittest.main(\"test_m\")'"),
    ] {
        let tests = project.tests(command).await;
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(
            statuses(&report),
            CASE_IDS,
            "{command:?}: {}",
            report.output
        );
        assert_eq!(report.source, ResultSource::Reporter, "{command:?}");
        assert!(report.cases[1].message.contains("1 != 2"), "{command:?}");
    }
}

#[tokio::test]
async fn results_of_every_unittest_status_are_reported() {
    let text = "import unittest\n\nclass T(unittest.TestCase):\n    \
        @unittest.skip('why')\n    def test_1(self):\n        pass\n    \
        @unittest.expectedFailure\n    def test_2(self):\n        assert 0\n    \
        @unittest.expectedFailure\n    def test_3(self):\n        pass\n    \
        def test_4(self):\n        with self.subTest(i=1):\n            self.fail('sub')\n    \
        def test_5(self):\n        raise ValueError('five')\n    \
        def test_6(self):\n        unittest.TextTestRunner().run(unittest.TestSuite([Inner()]))\n\n\
        class Inner(unittest.TestCase):\n    def runTest(self):\n        self.fail('inner')\n    \
        __test__ = False\n\n\
        class S(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        raise ValueError('up')\n    \
        def test_7(self):\n        pass\n\n\
        def load_tests(loader, tests, pattern):\n    \
        both = [loader.loadTestsFromTestCase(T), loader.loadTestsFromTestCase(S)]\n    return unittest.TestSuite(both)\n";
    let project = Project::new(&[("test_m.py", text), ("test_n.py", "import nothing_here\n")]);
    let tests = project.tests(None).await;
    let report = tests.run(request(&[], &[])).await;
    let expected = [
        ("test_m.S.setUpClass", TestStatus::Error),
        ("test_m.T.test_1", TestStatus::Skipped),
        ("test_m.T.test_2", TestStatus::Skipped),
        ("test_m.T.test_3", TestStatus::Failed),
        ("test_m.T.test_4", TestStatus::Failed),
        ("test_m.T.test_5", TestStatus::Error),
        ("test_m.T.test_6", TestStatus::Passed),
        ("test_n", TestStatus::Error),
    ];
    let statuses: Vec<_> = statuses(&report);
    assert_eq!(statuses, expected, "{}", report.output);
    let message = |id: &str| {
        let mut cases = report.cases.iter();
        cases
            .find(|case| case.id.ends_with(id))
            .unwrap()
            .message
            .clone()
    };
    assert_eq!(message("test_1"), "why");
    assert!(message("test_4").starts_with("(i=1)\nTraceback"));
    assert!(message("test_n").contains("nothing_here"));
}

#[tokio::test]
async fn unittest_process_that_exits_early_counts_as_failed() {
    for end in [
        "import os\nprint('test_a (test_m.T.test_a) ... ok')\nos._exit(0)\n",
        "import os, unittest\nclass T(unittest.TestCase):\n    def test_c(self):\n        os._exit(0)\n",
    ] {
        let project = Project::new(&[("test_m.py", CASES)]);
        let tests = project.tests(None).await;
        tests.run(request(&[], &[])).await;
        let report = tests.run(request(&[], &[("test_0.py", end)])).await;
        assert_eq!(
            report.outcome,
            TestOutcome::Failed,
            "{end}: {}",
            report.output
        );
        assert!(
            report.output.contains("its test session"),
            "{}",
            report.output
        );
    }
}

#[tokio::test]
async fn sitecustomize_of_the_project_still_runs() {
    let text = "import os, unittest\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        \
        assert os.environ['MARK'] == '1'\n        assert 'results.' not in os.environ['PYTHONPATH']\n";
    let project = Project::new(&[
        ("sitecustomize.py", "import os\nos.environ['MARK'] = '1'\n"),
        ("test_m.py", text),
    ]);
    let tests = project.tests(None).await;
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(
        statuses(&report),
        [("test_m.T.test_a", TestStatus::Passed)],
        "{}",
        report.output
    );
    assert_eq!(report.source, ResultSource::Reporter);
}

#[tokio::test]
async fn results_of_a_command_without_a_reporter_are_parsed_from_its_output() {
    let project = Project::new(&[("test_m.py", CASES)]);
    let prints = "echo 'test_a (test_m.T.test_a) ... ok'";
    let tests = project.tests(Some(prints)).await;
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(statuses(&report), [("test_m.T.test_a", TestStatus::Passed)]);
    assert_eq!(report.source, ResultSource::Printed);
    let nothing = project.tests(Some("true")).await;
    let report = nothing.run(request(&[], &[])).await;
    assert_eq!(
        (report.outcome, report.exit, report.cases.len()),
        (TestOutcome::Passed, Some(0), 0)
    );
}

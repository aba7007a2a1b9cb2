//! Which tests check a change if all tests take long: those nearest to the change.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::state::test_scope::{Extent, LONGEST, SelectionPolicy, TestScope};
use crate::*;
use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};

const CODE: &str = "def load(x):\n    return x\n";
const CHANGED: &str = "def load(x):\n    return x or 0\n";
const TESTS: &str = "from a import load\n\ndef test_load():\n    assert load(1)\n\ndef test_more():\n    assert load(2)\n\ndef test_all():\n    assert load(3)\n";
const NEAR: [&str; 3] = [
    "test_a.py::test_load",
    "test_a.py::test_more",
    "test_a.py::test_all",
];

/// Returns the text of a file with many tests that are not near any change.
fn many() -> String {
    (0..500)
        .map(|at| format!("def test_{at}():\n    pass\n"))
        .collect()
}

fn bed(lines: impl IntoIterator<Item = Line>) -> Bed {
    let many = many();
    let files = [
        ("a.py", CODE),
        ("test_a.py", TESTS),
        ("test_many.py", &many),
    ];
    let model = Scripted::native().on("agent a.py::load", lines);
    let mut bed = Bed::new(&files, model).begin(&["a.py::load"]);
    bed.selects = true;
    bed
}

/// Returns the selected tests of every test run, in order. An empty selection means all tests.
fn selected(bed: &Bed) -> Vec<Vec<String>> {
    let mut all = bed.selected.lock().unwrap().clone();
    all.iter_mut().for_each(|one| one.sort());
    all
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    names
}

fn evidence(events: &[Event]) -> Evidence {
    let mut checked = events.iter().filter_map(|event| match event {
        Event::ProposalChecked { evidence, .. } => Some(evidence.clone()),
        _ => None,
    });
    checked.next_back().unwrap()
}

fn is_applied(events: &[Event]) -> bool {
    events
        .iter()
        .any(|event| matches!(event, Event::ProposalApplied { .. }))
}

#[tokio::test(start_paused = true)]
async fn change_is_checked_by_its_nearest_tests_and_their_files_run_at_the_end() {
    let mut bed = bed([whole(CHANGED), finish("done")]).tests(|_| vec![]);
    let events = bed.run().await;
    assert_eq!(selected(&bed), [sorted(&NEAR), sorted(&["test_a.py"])]);
    let text = evidence(&events).to_string();
    let expected = "tests: 3 nearest of 503 test functions, `fake tests` passed in 0.0 s: 5 pass\n  \
        in test_a.py; at the end of the run, the files of the nearest tests run\n";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(stop(&events), StopReason::Settled);
}

#[tokio::test(start_paused = true)]
async fn example_of_a_changed_docstring_belongs_to_the_nearest_tests() {
    let old = "def load(x):\n    '''\n    >>> load(1)\n    1\n    '''\n    return x\n";
    let new = old.replace("    1\n    '''", "    2\n    '''");
    let config = "[pytest]\naddopts = --doctest-modules\n";
    let many = many();
    let judge = |all: &str| {
        let fails = all.contains("    2\n    '''");
        let message = if fails { "Expected: 2" } else { PASSES };
        vec![("a.py::a.load".to_owned(), message.to_owned())]
    };
    let plain = old.replace("    >>> load(1)\n    1\n", "    Loads.\n");
    for old in [old, &plain] {
        let files = [
            ("a.py", old),
            ("test_a.py", TESTS),
            ("test_many.py", &many),
            ("pytest.ini", config),
        ];
        let model = Scripted::native().on("agent a.py::load", [whole(&new), finish("no")]);
        let mut bed = Bed::new(&files, model)
            .begin(&["a.py::load"])
            .with(|task| task.text = "Give load a better docstring.".to_owned())
            .tests(judge);
        bed.selects = true;
        let events = bed.run().await;
        let expected = sorted(&[&NEAR[..], &["a.py"]].concat());
        assert!(selected(&bed).contains(&expected), "{:?}", selected(&bed));
        let TestEvidence::Known { broken, .. } = evidence(&events).tests else {
            panic!("{events:#?}");
        };
        assert_eq!(broken, ["a.py::a.load"]);
        assert!(!is_applied(&events), "{events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn selected_test_that_also_fails_without_the_change_is_not_counted_as_broken() {
    let mut bed = bed([whole(CHANGED), finish("done")])
        .tests(|_| vec![("t1".to_owned(), "no server".to_owned())]);
    let events = bed.run().await;
    // The selected tests run with the change and without it. At the end of the run, their files
    // run.
    let (near, file) = (sorted(&NEAR), sorted(&["test_a.py", "t1"]));
    let runs = selected(&bed);
    assert_eq!(runs[..2], [near.clone(), near]);
    assert_eq!(runs[2], file);
    let TestEvidence::Known {
        broken,
        still_failing,
        ..
    } = evidence(&events).tests
    else {
        panic!("unknown");
    };
    assert_eq!((broken.len(), still_failing), (0, vec!["t1".to_owned()]));
    assert_eq!(stop(&events), StopReason::Settled);
}

#[tokio::test(start_paused = true)]
async fn selected_test_that_fails_only_with_the_change_is_counted_as_broken() {
    let breaks = |all: &str| match all.contains("or 0") {
        true => vec![("t2".to_owned(), "assert 0".to_owned())],
        false => vec![],
    };
    let mut bed = bed([whole(CHANGED), finish("no")]).tests(breaks);
    let events = bed.run().await;
    assert_eq!(evidence(&events).tests.broken(), ["t2"]);
    assert!(!is_applied(&events));
    let again = vec!["t2".to_owned()];
    let (near, runs) = (sorted(&NEAR), selected(&bed));
    assert_eq!(runs, [near.clone(), near, again.clone(), again]);
}

#[tokio::test(start_paused = true)]
async fn test_command_that_runs_no_test_only_with_the_change_counts_as_failed() {
    let breaks = |all: &str| match all.contains("or 0") {
        true => vec![(NO_START.to_owned(), "SyntaxError".to_owned())],
        false => vec![],
    };
    let mut bed = bed([whole(CHANGED), finish("no")]).tests(breaks);
    let events = bed.run().await;
    assert_eq!(evidence(&events).tests.broken().len(), 1);
    assert!(!is_applied(&events));
}

#[tokio::test(start_paused = true)]
async fn test_name_that_the_runner_does_not_find_is_replaced_by_its_file() {
    let mut bed = bed([whole(CHANGED), finish("done")]).tests(|_| vec![]);
    bed.unknown = Some("test_a.py::test_more".to_owned());
    let events = bed.run().await;
    let (near, file) = (sorted(&NEAR), sorted(&["test_a.py"]));
    assert_eq!(selected(&bed), [near.clone(), near, file.clone(), file]);
    let text = evidence(&events).to_string();
    assert!(
        text.starts_with("tests: 3 nearest of 503 test functions, "),
        "{text}"
    );
    assert!(is_applied(&events));
}

#[tokio::test(start_paused = true)]
async fn test_selection_that_takes_too_long_is_reduced() {
    let mut bed = bed([whole(CHANGED), finish("done")]).tests(|_| vec![]);
    *bed.test_times.lock().unwrap() = [40, 40, 1].map(Duration::from_secs).into();
    let several: String = (0..9)
        .map(|at| format!("def test_{at}():\n    load({at})\n"))
        .collect();
    std::fs::write(
        bed.path("test_a.py"),
        format!("from a import load\n{several}"),
    )
    .unwrap();
    let events = bed.run().await;
    let counts: Vec<usize> = selected(&bed).iter().map(Vec::len).collect();
    assert_eq!(counts, [9, 9, 5, 1]);
    let text = evidence(&events).to_string();
    assert!(
        text.starts_with("tests: 5 nearest of 509 test functions, `fake tests` passed in 1.0 s"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn change_is_refused_if_the_tests_time_out_only_with_it() {
    let mut bed = bed([whole(CHANGED), finish("no")]).tests(|_| vec![]);
    *bed.test_times.lock().unwrap() = [40, 1].map(Duration::from_secs).into();
    let events = bed.run().await;
    assert_eq!(evidence(&events).tests.broken().len(), 1);
    assert!(!is_applied(&events));
}

#[tokio::test(start_paused = true)]
async fn tests_that_the_task_names_run_before_the_first_change_and_with_every_change() {
    for named in ["see test_many.py::test_7.", "(`test_7` fails)"] {
        let mut bed = bed([whole(CHANGED), finish("done")])
            .tests(|_| vec![])
            .with(|task| task.text = format!("Mend load: {named}"));
        bed.run().await;
        let with = [&NEAR[..], &["test_many.py::test_7"]].concat();
        let runs = selected(&bed);
        assert_eq!(
            runs[..2],
            [sorted(&["test_many.py::test_7"]), sorted(&with)],
            "{named}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn test_file_that_the_task_names_without_its_folder_runs_before_the_first_change() {
    let mut bed = bed([whole(CHANGED), finish("done")])
        .tests(|_| vec![])
        .with(|task| task.text = "Mach die Tests in test_few.py grün.".to_owned());
    std::fs::create_dir(bed.path("sub")).unwrap();
    std::fs::write(bed.path("sub/test_few.py"), "def test_few():\n    pass\n").unwrap();
    bed.run().await;
    assert_eq!(selected(&bed)[0], ["sub/test_few.py"]);
}

#[tokio::test(start_paused = true)]
async fn all_tests_run_at_the_end_if_the_task_is_about_unnamed_tests() {
    let mut bed = bed([whole(CHANGED), finish("done")])
        .tests(|_| vec![])
        .with(|task| task.text = "Some tests fail.".to_owned());
    *bed.test_times.lock().unwrap() = [4].map(Duration::from_secs).into();
    let events = bed.run().await;
    // The first run of all tests took 4 s, which is too long for each change: the nearest tests
    // check the change, and all tests run once more at the end.
    assert_eq!(selected(&bed), [vec![], sorted(&NEAR), vec![]]);
    assert!(
        evidence(&events)
            .to_string()
            .contains("at the end of the run, the whole command runs")
    );
}

#[tokio::test(start_paused = true)]
async fn proposals_of_an_agent_are_also_checked_by_the_tests_that_it_ran() {
    let select = ["test_many.py::test_9"];
    let run = |select: &[&str]| call("run_tests", json!({ "select": select }));
    let lines = [run(&[]), run(&select), whole(CHANGED), finish("done")];
    let mut bed = bed(lines).tests(|_| vec![]);
    bed.run().await;
    let with = [&NEAR[..], &select].concat();
    let runs = selected(&bed);
    assert_eq!(runs[..3], [sorted(&NEAR), sorted(&select), sorted(&with)]);
    let told = bed.model.prompts("agent a.py::load").pop().unwrap();
    assert!(
        told.contains("`fake tests` (3 nearest of 503 test functions) passes"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn change_without_nearby_tests_is_applied_with_the_test_result_unknown() {
    let many = many();
    let files = [("a.py", CODE), ("test_many.py", &*many)];
    let model = Scripted::native().on("agent a.py::load", [whole(CHANGED), finish("done")]);
    let mut bed = Bed::new(&files, model)
        .begin(&["a.py::load"])
        .tests(|_| vec![]);
    bed.selects = true;
    let events = bed.run().await;
    let text = evidence(&events).to_string();
    assert!(
        text.starts_with("tests: unknown (none of the 500 tests was found near it)"),
        "{text}"
    );
    assert!(selected(&bed).is_empty());
    assert!(is_applied(&events));
}

#[tokio::test(start_paused = true)]
async fn change_without_nearby_tests_is_checked_by_all_tests_if_they_are_fast() {
    for (seconds, is_known) in [(20, true), (40, false)] {
        let others: String = (0..20)
            .map(|at| format!("def test_{at}():\n    pass\n"))
            .collect();
        let files = [("a.py", CODE), ("test_many.py", &*others)];
        let model = Scripted::native().on("agent a.py::load", [whole(CHANGED), finish("done")]);
        let mut bed = Bed::new(&files, model)
            .begin(&["a.py::load"])
            .tests(|_| vec![]);
        bed.selects = true;
        *bed.test_times.lock().unwrap() = [seconds].map(Duration::from_secs).into();
        let events = bed.run().await;
        let text = evidence(&events).to_string();
        let is_unknown =
            text.starts_with("tests: unknown (none of the 20 tests was found near it)");
        assert_eq!(is_unknown, !is_known, "{text}");
        assert!(selected(&bed).iter().all(Vec::is_empty));
    }
}

/// Runs a change of one file in a project where one test of the tests in `test_many.py`, which are
/// `others`, fails already. All tests take 20 seconds. Returns the tests that are selected for the
/// change. An empty selection means all tests.
async fn selected_for_change(file: &str, text: &str, changed: &str, others: usize) -> Vec<String> {
    let others: String = (0..others)
        .map(|at| format!("def test_{at}():\n    pass\n"))
        .collect();
    let files = [
        (file, text),
        ("test_a.py", TESTS),
        ("test_many.py", others.as_str()),
    ];
    let hunks = json!([{"old": text, "new": changed}]);
    let symbol = format!("{file}::");
    let change = call("propose", json!({"reason": "r", "hunks": hunks}));
    let agent = format!("agent {symbol}");
    let model = Scripted::native().on(&agent, [change, finish("done")]);
    let mut bed = Bed::new(&files, model)
        .begin(&[&symbol])
        .tests(|_| vec![("test_many.py::test_0".to_owned(), "assert 0".to_owned())]);
    bed.selects = true;
    *bed.test_times.lock().unwrap() = [20].map(Duration::from_secs).into();
    let events = bed.run().await;
    assert!(is_applied(&events), "{events:#?}");
    selected(&bed).swap_remove(1)
}

#[tokio::test(start_paused = true)]
async fn changed_data_file_or_template_is_checked_by_all_tests_if_they_end_in_time() {
    let everything: [String; 0] = [];
    for (file, text, changed) in [
        ("data.json", "{\"load\": 1}\n", "{\"loads\": 1}\n"),
        ("page.txt", "{{ load }}\n", "{{ loads }}\n"),
    ] {
        let tests = selected_for_change(file, text, changed, 20).await;
        assert_eq!(tests, everything, "{file}");
    }
    // Documentation is not read by the code, but no test is near it either.
    let tests = selected_for_change("GUIDE.md", "# Guide\n", "# Manual\n", 20).await;
    assert_eq!(tests, everything);
}

#[tokio::test(start_paused = true)]
async fn change_whose_nearest_tests_are_half_of_all_is_checked_by_all_tests() {
    let (old, new) = ("load = len\n", "load = max\n");
    let tests = selected_for_change("a.py", old, new, 3).await;
    assert_eq!(tests, [""; 0]);
    let tests = selected_for_change("a.py", old, new, 20).await;
    assert_eq!(tests, ["test_a.py", "test_many.py::test_0"]);
}

/// The standalone checks of a text (without a run or an agent) give the same result.
#[tokio::test(start_paused = true)]
async fn standalone_checks_give_the_same_result_as_a_run() {
    let breaks = |all: &str| match all.contains("or 0") {
        true => vec![("t2".to_owned(), "assert 0".to_owned())],
        false => vec![],
    };
    let mut bed = bed([]).tests(breaks);
    let checker = bed.checker();
    let file = starling_syntax::FilePath::new("a.py");
    assert_eq!(
        checker
            .check_text(&file, CHANGED.into())
            .await
            .tests
            .broken(),
        ["t2"]
    );
    let other = CODE.replace("return x", "return x or 1");
    let good = checker.check_text(&file, other.into()).await;
    assert!(good.tests.broken().is_empty(), "{good}");
    let again = vec!["t2".to_owned()];
    assert_eq!(
        selected(&bed),
        [
            sorted(&NEAR),
            sorted(&NEAR),
            again.clone(),
            again,
            sorted(&NEAR)
        ]
    );
}

fn report(outcome: TestOutcome, millis: u64) -> TestReport {
    TestReport {
        outcome,
        exit: None,
        command: String::new(),
        cases: Vec::new(),
        source: Default::default(),
        output: String::new(),
        millis,
    }
}

#[test]
fn selection_of_tests_without_a_usable_result_is_reduced_a_limited_number_of_times() {
    let failed = report(TestOutcome::Failed, 1);
    let mut habits = vec![SelectionPolicy::default()];
    while let Some(next) = habits[habits.len() - 1].degrade(&failed, &failed) {
        habits.push(next);
    }
    assert_eq!(habits.len(), 4, "{habits:?}");
    // If one report contains a test that passed, the result is usable, so there is no need for
    // another selection.
    let mut some = failed.clone();
    some.cases.push(TestCase {
        id: "t".to_owned(),
        status: TestStatus::Passed,
        message: String::new(),
    });
    assert_eq!(habits[0].degrade(&some, &failed), None);
    assert_eq!(habits[0].degrade(&failed, &some), None);
}

#[test]
fn timeout_is_not_blamed_on_a_change_if_the_tests_were_nearly_as_slow_without_it() {
    let late = report(TestOutcome::TimedOut, 30_000);
    let most = u64::try_from(LONGEST.as_millis()).unwrap();
    let without = |millis| report(TestOutcome::Passed, millis);
    let habit = SelectionPolicy::default();
    assert!(habit.degrade(&late, &without(most - 1)).is_some());
    assert_eq!(habit.degrade(&late, &without(most / 3)), None);
    assert!(habit.degrade(&late, &late).is_some());
}

#[test]
fn fast_test_command_runs_completely_for_every_change() {
    assert_eq!(
        TestScope::after(&report(TestOutcome::Failed, 2_900)),
        TestScope::WHOLE
    );
    let slow = TestScope::after(&report(TestOutcome::Passed, 3_100));
    assert_eq!((slow.checks, slow.end), (Extent::Nearest, Extent::Whole));
    assert_eq!(
        TestScope::after(&report(TestOutcome::TimedOut, 100)),
        TestScope::NEAREST
    );
}

/// No test is near the change. The task names one parametrized test, of which two cases fail.
#[tokio::test(start_paused = true)]
async fn check_result_says_that_no_test_is_near_and_counts_parametrized_cases_as_one_test() {
    let cases = ["test_many.py::test_7[a]", "test_many.py::test_7[b]"];
    let mut bed = Bed::new(
        &[
            ("lone.py", "def lone(x):\n    return x\n"),
            ("test_a.py", TESTS),
            ("test_many.py", &many()),
        ],
        Scripted::native().on(
            "agent lone.py::lone",
            [whole("def lone(x):\n    return (x)\n"), finish("done")],
        ),
    )
    .begin(&["lone.py::lone"])
    .tests(move |_| cases.map(|id| (id.to_owned(), "no".to_owned())).to_vec())
    .with(|it| it.text = "Refactor lone, as test_many.py::test_7 has it".to_owned());
    bed.selects = true;
    let events = bed.run().await;
    let text = evidence(&events).to_string();
    assert!(
        text.starts_with("tests: none is near the change; 1 that failed before or are named, "),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn tests_of_a_table_of_functions_are_near_the_functions_in_it() {
    let many = many();
    let files = [
        ("a.py", CODE),
        ("test_a.py", TESTS),
        (
            "filters.py",
            "from a import load\n\nFILTERS = {\"load\": load}\n\n\ndef render(x):\n    return FILTERS[x](x)\n",
        ),
        (
            "test_filters.py",
            "from filters import render\n\ndef test_render():\n    assert render(1)\n",
        ),
        ("test_many.py", &many),
    ];
    let lines = [whole(CHANGED), finish("done")];
    let mut bed = Bed::new(&files, Scripted::native().on("agent a.py::load", lines))
        .begin(&["a.py::load"])
        .tests(|_| vec![]);
    bed.selects = true;
    bed.run().await;
    let first = selected(&bed).swap_remove(0);
    let is_there = |name: &&str| first.iter().any(|one| one.starts_with(name));
    assert!(
        ["test_a.py", "test_filters.py"].iter().all(is_there),
        "{first:?}"
    );
}

const CONFTEST: &str = "import pytest\n\n\n@pytest.fixture\ndef app():\n    return {}\n\n\n\
    @pytest.fixture\ndef call(app):\n    return app.get\n\n\n@pytest.fixture\ndef other():\n    return 1\n";
const API: &str = "def test_get(call):\n    assert call(1) is None\n\n\ndef test_one(other):\n    assert other\n\n\ndef test_none():\n    pass\n";

fn of_conftest(symbol: &str, lines: [Line; 2]) -> Bed {
    let many = many();
    let files = [
        ("a.py", CODE),
        ("tests/api/conftest.py", CONFTEST),
        ("tests/api/test_api.py", API),
        (
            "tests/api/deep/test_deep.py",
            "def test_deep(app):\n    pass\n",
        ),
        ("tests/unit/test_unit.py", "def test_unit():\n    pass\n"),
        ("test_many.py", &many),
    ];
    let symbol = format!("tests/api/conftest.py::{symbol}");
    let model = Scripted::native().on(&format!("agent {symbol}"), lines);
    let mut bed = Bed::new(&files, model).begin(&[&symbol]);
    bed.selects = true;
    bed
}

#[tokio::test(start_paused = true)]
async fn changed_fixture_is_checked_by_the_tests_that_use_it() {
    let change = whole("@pytest.fixture\ndef app():\n    return {1: 1}\n");
    let breaks = |all: &str| match all.contains("{1: 1}") {
        true => vec![("t1".to_owned(), "assert 1 is None".to_owned())],
        false => vec![],
    };
    let mut bed = of_conftest("app", [change, finish("no")]).tests(breaks);
    let events = bed.run().await;
    let users = [
        "tests/api/deep/test_deep.py::test_deep",
        "tests/api/test_api.py::test_get",
    ];
    assert_eq!(selected(&bed)[0], sorted(&users));
    assert!(!is_applied(&events), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn changed_autouse_fixture_is_checked_by_the_tests_of_its_folder() {
    let change = whole("@pytest.fixture(autouse=True)\ndef other():\n    return 2\n");
    let mut bed = of_conftest("other", [change, finish("done")]).tests(|_| vec![]);
    let path = bed.path("tests/api/conftest.py");
    let hidden = "@pytest.fixture(autouse=True)\ndef other(";
    std::fs::write(
        path,
        CONFTEST.replace("@pytest.fixture\ndef other(", hidden),
    )
    .unwrap();
    let events = bed.run().await;
    let files = ["tests/api/deep/test_deep.py", "tests/api/test_api.py"];
    assert_eq!(selected(&bed)[0], sorted(&files), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn change_is_checked_by_all_tests_if_the_selected_tests_are_not_found() {
    let change = whole("def test_load():\n    assert load(4)\n");
    let breaks = |all: &str| match all.contains("load(4)") {
        true => vec![("t1".to_owned(), "assert 0".to_owned())],
        false => vec![],
    };
    let others: String = (0..9)
        .map(|at| format!("def test_{at}():\n    pass\n"))
        .collect();
    let files = [
        ("a.py", CODE),
        ("test_a.py", TESTS),
        ("test_many.py", &others),
    ];
    let model = Scripted::native().on("agent test_a.py::test_load", [change, finish("no")]);
    let mut bed = Bed::new(&files, model)
        .begin(&["test_a.py::test_load"])
        .tests(breaks);
    bed.selects = true;
    bed.unknown = Some("test_a.py".to_owned());
    *bed.test_times.lock().unwrap() = [4].map(Duration::from_secs).into();
    let events = bed.run().await;
    let file = sorted(&["test_a.py"]);
    assert_eq!(selected(&bed)[..4], [vec![], file.clone(), file, vec![]]);
    assert_eq!(evidence(&events).tests.broken(), ["t1"]);
    assert!(!is_applied(&events), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn all_tests_run_at_the_end_if_the_tests_selected_for_the_end_are_not_found() {
    let mut bed = bed([whole(CHANGED), finish("done")])
        .tests(|_| vec![])
        .with(|task| task.text = "Mend load: see test_many.py::test_7.".to_owned());
    bed.unknown = Some("test_many.py".to_owned());
    let events = bed.run().await;
    assert_eq!(selected(&bed).last(), Some(&vec![]), "{events:#?}");
}

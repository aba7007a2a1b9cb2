//! A change of the code must also pass the original tests, as they were before the run. A test that
//! the run itself changed proves nothing.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const CODE: &str = "def f(x):\n    return x\n";
const BROKEN: &str = "def f(x):\n    return 0\n";
const TESTS: &str = "from a import f\n\n\ndef test_old():\n    assert f(1) == 1\n";
const GUTTED: &str = "def test_old():\n    assert True\n";
const OLD: &str = "test_a.py::test_old";

/// Returns the test results: `test_old` fails if `f` returns 0 and the test still compares its
/// result.
fn judge(all: &str) -> Vec<(String, String)> {
    let fails = all.contains("return 0") && all.contains("f(1) == 1") && !all.contains("BLIND");
    match fails {
        true => vec![(OLD.to_owned(), "E   assert 0 == 1".to_owned())],
        false => Vec::new(),
    }
}

fn bed(files: &[(&str, &str)], approval: Approval, task: &str, model: Scripted) -> Bed {
    let mut bed = Bed::new(files, model.always("proxy", say("ACCEPT")))
        .tests(judge)
        .with(|own| {
            own.approval = approval;
            own.text = task.to_owned();
        });
    bed.lists = true;
    bed
}

/// Creates a run with two agents: one removes the check from `test_old`, and the other one adds a
/// bug to `f` that `test_old` would have detected.
fn guts_and_breaks(approval: Approval, task: &str) -> Bed {
    let model = Scripted::native()
        .on("agent test_a.py::test_old", [whole(GUTTED), finish("done")])
        .on(
            "agent a.py::f",
            [whole(BROKEN), whole(BROKEN), finish("done")],
        );
    let files = [("a.py", CODE), ("test_a.py", TESTS)];
    bed(&files, approval, task, model).begin(&["test_a.py::test_old", "a.py::f"])
}

const LINE: &str = "PASS ONLY AS THE RUN CHANGED THE TESTS (1): test_a.py::test_old";
const AS_CHANGED: &str = "Done, but 1 test passes only as it was changed: test_a.py::test_old";

#[tokio::test(start_paused = true)]
async fn code_that_fails_the_original_test_is_not_applied_automatically() {
    let mut bed = guts_and_breaks(Approval::Auto, "Make f faster.");
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
    let refused = malformed(&events);
    let told = refused.iter().find(|why| why.contains("as they were"));
    let told = told.unwrap_or_else(|| panic!("{refused:#?}"));
    assert!(
        told.contains(OLD) && told.contains("assert 0 == 1"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn review_reports_a_test_that_passes_only_because_the_run_changed_it() {
    for approval in [Approval::Proxy, Approval::Ask] {
        let mut bed = guts_and_breaks(approval, "Make f faster.");
        let events = bed.run().await;
        assert_eq!(bed.read("a.py"), BROKEN, "{approval:?}: {events:#?}");
        let shown = match approval {
            Approval::Ask => {
                let seen = bed.approver.seen.lock().unwrap();
                seen.iter().map(|view| view.evidence.clone()).collect()
            }
            Approval::Proxy | Approval::Auto => bed.model.prompts("proxy"),
        };
        assert!(shown.iter().any(|text| text.contains(LINE)), "{shown:#?}");
        assert_eq!(stop(&events), StopReason::Settled);
        let expected = (Proof::Unproven, AS_CHANGED.to_owned());
        assert_eq!(ending(&events), expected, "{approval:?}");
    }
}

fn rewrites_failing(approval: Approval, task: &str) -> Bed {
    let rewritten = "def test_old():\n    assert f(1) == 0\n";
    let lines = [whole(rewritten), finish("no"), finish("no")];
    let model = Scripted::native().on("agent test_a.py::test_old", lines);
    let files = [("a.py", BROKEN), ("test_a.py", TESTS)];
    bed(&files, approval, task, model).begin(&["test_a.py::test_old"])
}

#[tokio::test(start_paused = true)]
async fn rewriting_a_failing_test_counts_as_fixing_it_only_if_the_task_asks_for_it() {
    for task in ["Make the tests pass.", "Make test_old pass.", "f is slow."] {
        let mut auto = rewrites_failing(Approval::Auto, task);
        let events = auto.run().await;
        assert_eq!(auto.read("test_a.py"), TESTS, "{task}: {events:#?}");
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{task}: {headline}");
        let mut proxy = rewrites_failing(Approval::Proxy, task);
        let events = proxy.run().await;
        assert_ne!(proxy.read("test_a.py"), TESTS, "{task}");
        let expected = (Proof::Unproven, AS_CHANGED.to_owned());
        assert_eq!(ending(&events), expected, "{task}: {events:#?}");
    }
    let mut ask = rewrites_failing(Approval::Ask, "Make the tests pass.");
    let events = ask.run().await;
    let shown = ask.approver.seen.lock().unwrap()[0].evidence.clone();
    assert!(shown.contains(LINE), "{shown}");
    assert_eq!(ending(&events).1, AS_CHANGED);
    let mut asked = rewrites_failing(Approval::Auto, "Update test_old: f is to return 0.");
    let events = asked.run().await;
    assert_ne!(asked.read("test_a.py"), TESTS, "{events:#?}");
    // Nothing but the test was changed, so nothing is proven.
    let headline = "Done: the test was changed as the task asks; 1 test passes";
    assert_eq!(ending(&events), (Proof::AsBefore, headline.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn broken_code_is_refused_if_it_passes_only_with_a_changed_conftest() {
    for known in [true, false] {
        let model = Scripted::native()
            .on("agent conftest.py::", [whole("# BLIND\n"), finish("done")])
            .on(
                "agent a.py::f",
                [whole(BROKEN), whole(BROKEN), finish("done")],
            );
        let mut files = vec![("a.py", CODE), ("test_a.py", TESTS)];
        if known {
            files.push(("conftest.py", "# nothing\n"));
        }
        let mut bed = bed(&files, Approval::Auto, "Make f faster.", model)
            .begin(&["conftest.py::", "a.py::f"]);
        bed.allow_write = vec!["conftest.py".to_owned()];
        let events = bed.run().await;
        assert_eq!(bed.read("a.py"), CODE, "{known}: {events:#?}");
        assert!(bed.path("conftest.py").exists(), "{events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fix_counts_as_proven_although_the_run_also_adds_a_test() {
    let new = json!({
        "reason": "r",
        "add": [{"source": "def test_new():\n    assert f(2) == 2\n"}],
    });
    let model = Scripted::native()
        .on("agent test_a.py::", [call("propose", new), finish("done")])
        .on("agent a.py::f", [whole(CODE), finish("done")]);
    let files = [("a.py", BROKEN), ("test_a.py", TESTS)];
    let task = "Fix f: test_old fails.";
    let mut bed = bed(&files, Approval::Auto, task, model).begin(&["a.py::f", "test_a.py::"]);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
    assert!(bed.read("test_a.py").contains("test_new"), "{events:#?}");
    assert_eq!(ending(&events).0, Proof::Proven, "{events:#?}");
}

/// A new test that the agent of the test file adds.
const NEW_TEST: &str = "def test_new():\n    assert f(2) == 2\n";

/// Runs two agents: one changes `f`, and the other one adds a test. `checks`: whether the new test
/// fails if `f` returns 0. `repairs`: whether the change of `f` fixes a bug; otherwise it only adds
/// a comment.
async fn repairs_with_a_new_test(
    task: &str,
    checks: bool,
    repairs: bool,
) -> (Proof, String, usize) {
    let new = json!({"reason": "r", "add": [{"source": NEW_TEST}]});
    let other = "def f(x):\n    return x  # checked\n";
    let code = if repairs { CODE } else { other };
    let model = Scripted::native()
        .on("agent test_a.py::", [call("propose", new), finish("done")])
        .on("agent a.py::f", [whole(code), finish("done")]);
    let before = if repairs { BROKEN } else { CODE };
    let files = [("a.py", before), ("test_a.py", "from a import f\n")];
    let looks = move |all: &str| {
        let fails = checks && all.contains("return 0") && all.contains("def test_new");
        let failed = (
            "test_a.py::test_new".to_owned(),
            "E   assert 0 == 2".to_owned(),
        );
        if fails { vec![failed] } else { Vec::new() }
    };
    let mut bed = bed(&files, Approval::Auto, task, model)
        .begin(&["a.py::f", "test_a.py::"])
        .tests(looks);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), code, "{events:#?}");
    assert!(bed.read("test_a.py").contains("test_new"), "{events:#?}");
    let (proof, headline) = ending(&events);
    let runs = bed.selected.lock().unwrap().len();
    (proof, headline, runs)
}

#[tokio::test(start_paused = true)]
async fn new_test_proves_a_fix_only_if_it_fails_on_the_original_code() {
    let task = "Fix f, it always returns 0, and add a test.";
    let (proof, headline, with) = repairs_with_a_new_test(task, true, true).await;
    assert_eq!(proof, Proof::Proven, "{headline}");
    assert!(
        headline.ends_with("; the new test fails without the change"),
        "{headline}"
    );
    // The new test also passes on the original code. The headline says so, and the test does not
    // count as proof of the fix.
    let (proof, headline, _) = repairs_with_a_new_test(task, false, true).await;
    let passes = "Done, but the new test passes without it, too; 1 test passes";
    assert_eq!((proof, headline.as_str()), (Proof::Unproven, passes));
    // A refactoring changes no test result, so the new test is not run on the original code.
    let (proof, headline, plain) = repairs_with_a_new_test("Refactor f.", false, false).await;
    assert_eq!(proof, Proof::AsBefore, "{headline}");
    assert!(!headline.contains("without the change"), "{headline}");
    assert!(
        plain < with,
        "{plain} runs, and {with} with one on the code as it was"
    );
}

#[tokio::test(start_paused = true)]
async fn new_test_without_a_code_change_is_not_run_on_the_original_code() {
    let new = json!({"reason": "r", "add": [{"source": NEW_TEST}]});
    let model = Scripted::native().on("agent test_a.py::", [call("propose", new), finish("done")]);
    let files = [("a.py", CODE), ("test_a.py", TESTS)];
    let mut bed = bed(&files, Approval::Auto, "Add a test for f.", model).begin(&["test_a.py::"]);
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::AsBefore, "{headline}");
    assert!(!headline.contains("without the change"), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn tests_may_be_changed_if_the_task_asks_for_it() {
    let task = "f is to return 0 for every x. Update the tests.";
    let mut bed = guts_and_breaks(Approval::Auto, task);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), BROKEN, "{events:#?}");
    // The changed test no longer calls `f`, so no test covers the change of `f`.
    let expected = "Done, but no test reaches a.py::f; 1 test passes".to_owned();
    assert_eq!(ending(&events), (Proof::Unproven, expected), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn test_may_be_adapted_to_a_rename_that_the_task_asks_for() {
    let missing = |all: &str| match all.contains("import f\n") && !all.contains("def f(") {
        true => {
            let error = "E   ImportError: cannot import name 'f' from 'a'";
            vec![(OLD.to_owned(), error.to_owned())]
        }
        false => Vec::new(),
    };
    for (task, may) in [("Rename f to g.", true), ("Make it faster.", false)] {
        let renamed = "def g(x):\n    return x\n";
        let test = "def test_old():\n    from a import f\n    assert f(1) == 1\n";
        let follows = test.replace("import f", "import g").replace("f(1)", "g(1)");
        let model = Scripted::native()
            .on("agent a.py::f", [whole(renamed), finish("done")])
            .on(
                "agent test_a.py::test_old",
                [whole(&follows), finish("done")],
            );
        let files = [("a.py", CODE), ("test_a.py", test)];
        let mut bed = bed(&files, Approval::Auto, task, model)
            .begin(&["a.py::f", "test_a.py::test_old"])
            .tests(missing);
        let events = bed.run().await;
        let is_renamed = bed.read("a.py") == renamed;
        assert_eq!(is_renamed, may, "{task}: {events:#?}");
    }
}

/// Returns the results of `test_f` and `test_h`, which are in one file. If the file imports `f` and
/// nothing defines `f`, the file cannot be loaded and neither test runs.
fn judge_of_two(all: &str) -> Vec<(String, String)> {
    let failed = |id: &str, why: &str| (format!("test_a.py{id}"), why.to_owned());
    let lacks_f = !all.contains("def f(");
    let imports_f = all.lines().any(|line| line == "from a import f, h");
    if lacks_f && imports_f {
        let tests = ["::test_f", "::test_h"].map(|id| failed(id, GONE));
        let error = failed("", "E   ImportError: cannot import name 'f' from 'a'");
        return tests.into_iter().chain([error]).collect();
    }
    let mut failing = Vec::new();
    if lacks_f && all.contains("assert f(1)") {
        failing.push(failed("::test_f", "E   NameError: name 'f' is not defined"));
    }
    if all.contains("return 0") && all.contains("h(1) == 1") {
        failing.push(failed("::test_h", "E   assert 0 == 1"));
    }
    failing
}

#[tokio::test(start_paused = true)]
async fn renamed_import_is_accepted_and_other_tests_of_the_file_run_with_their_original_text() {
    let code = "def f(x):\n    return x\n\n\ndef h(x):\n    return x\n";
    let test_f = "def test_f():\n    assert f(1) == 1\n";
    let test_h = "def test_h():\n    assert h(1) == 1\n";
    let tests = format!("from a import f, h\n\n\n{test_f}\n\n{test_h}");
    for breaks in [false, true] {
        let mut model = Scripted::native()
            .on(
                "agent a.py::f",
                [whole("def g(x):\n    return x\n"), finish("done")],
            )
            .on(
                "agent test_a.py::test_f",
                [
                    whole(&test_f.replace("assert f", "assert g")),
                    finish("done"),
                ],
            )
            .on(
                "agent test_a.py::",
                [
                    call(
                        "propose",
                        json!({"reason": "r", "hunks": [
                            {"old": "from a import f, h", "new": "from a import g, h"},
                        ]}),
                    ),
                    finish("done"),
                ],
            );
        let mut begin = vec!["a.py::f", "test_a.py::", "test_a.py::test_f"];
        if breaks {
            let guts = whole("def test_h():\n    assert True\n");
            let broken = || whole("def h(x):\n    return 0\n");
            model = model
                .on("agent test_a.py::test_h", [guts, finish("done")])
                .on("agent a.py::h", [broken(), broken(), finish("done")]);
            begin.extend(["test_a.py::test_h", "a.py::h"]);
        }
        let files = [("a.py", code), ("test_a.py", tests.as_str())];
        let model = model.always("agent", finish("no"));
        let mut bed = bed(&files, Approval::Auto, "Rename f to g.", model)
            .tests(judge_of_two)
            .begin(&begin);
        let events = bed.run().await;
        let (proof, headline) = ending(&events);
        match breaks {
            true => assert!(
                !bed.read("a.py").contains("return 0")
                    || !matches!(proof, Proof::Proven | Proof::AsBefore),
                "{headline}: {events:#?}"
            ),
            false => {
                assert!(bed.read("a.py").contains("def g("), "{events:#?}");
                assert_eq!(proof, Proof::AsBefore, "{headline}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn selected_tests_also_run_with_their_original_text() {
    let many: String = (0..500)
        .map(|at| format!("def test_{at}():\n    pass\n"))
        .collect();
    let model = Scripted::native()
        .on("agent test_a.py::test_old", [whole(GUTTED), finish("done")])
        .on(
            "agent a.py::f",
            [whole(BROKEN), whole(BROKEN), finish("done")],
        );
    let files = [
        ("a.py", CODE),
        ("test_a.py", TESTS),
        ("test_many.py", many.as_str()),
    ];
    let mut bed = bed(&files, Approval::Auto, "Make f faster.", model)
        .begin(&["test_a.py::test_old", "a.py::f"]);
    bed.selects = true;
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), CODE, "{events:#?}");
    // Only the changed test file runs again with its original text.
    let selected = bed.selected.lock().unwrap().clone();
    assert!(
        selected.contains(&vec!["test_a.py".to_owned()]),
        "{selected:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn tests_do_not_run_twice_if_no_test_file_changed() {
    let runs = |with_new: bool| async move {
        let mut model = Scripted::native().on(
            "agent a.py::f",
            [whole("def f(x):\n    return x or 0\n"), finish("done")],
        );
        let mut begin = vec!["a.py::f"];
        if with_new {
            let new = "def test_new():\n    pass\n";
            model = model.on("agent test_new.py::", [whole(new), finish("done")]);
            begin.push("test_new.py::");
        }
        let files = [("a.py", CODE), ("test_a.py", TESTS)];
        let mut bed = bed(&files, Approval::Auto, "Make f faster.", model).begin(&begin);
        let events = bed.run().await;
        assert_eq!(ending(&events).0, Proof::AsBefore, "{events:#?}");
        bed.selected.lock().unwrap().len()
    };
    // The tests run once before the change, and once for each change.
    assert_eq!(runs(false).await, 2);
    assert!(runs(true).await <= 4);
}

/// The agent does not fix `f`. Instead, it changes a test helper, the expected values or the
/// configuration of pytest such that the failing test passes.
#[tokio::test(start_paused = true)]
async fn change_of_a_test_support_file_that_makes_broken_code_pass_is_refused() {
    let test = "from a.models import f\nfrom tests.models import expect\n\n\ndef test_old():\n    expect(f(1) == 1)\n";
    let helper = "def expect(fact):\n    assert fact\n";
    let expected = "f(1) == 1\n";
    let cases = [
        (
            "tests/models.py",
            helper,
            "tests/models.py::expect",
            "def expect(fact):\n    return \"BLIND\"\n",
            "Fix f in models.py. Don't change any file under tests/.",
        ),
        (
            "tests/models.py",
            helper,
            "tests/models.py::expect",
            "def expect(fact):\n    return \"BLIND\"\n",
            "Fix f in models.py.",
        ),
        (
            "tests/expected.md",
            expected,
            "tests/expected.md::",
            "BLIND\n",
            "Fix f.",
        ),
        (
            "testdata/expected.json",
            expected,
            "testdata/expected.json::",
            "BLIND\n",
            "Fix f.",
        ),
        (
            "pytest.ini",
            "[pytest]\n",
            "pytest.ini::",
            "[pytest]\npythonpath = BLIND\n",
            "Fix f.",
        ),
    ];
    for (file, before, symbol, after, task) in cases {
        let name = format!("agent {}", symbol.trim_end_matches("::"));
        let model = Scripted::native().on(&name, [whole(after), finish("no"), finish("no")]);
        let files = [
            ("a/models.py", BROKEN),
            ("tests/test_a.py", test),
            (file, before),
        ];
        let model = model.always("agent", finish("no"));
        let of_folder = |all: &str| {
            let red = judge(all).into_iter();
            red.map(|(id, why)| (format!("tests/{id}"), why)).collect()
        };
        let bed = bed(&files, Approval::Auto, task, model).tests(of_folder);
        let mut bed = bed.begin(&[symbol]);
        let events = bed.run().await;
        assert_eq!(bed.read(file), before, "{task} {file}: {events:#?}");
        assert_eq!(ending(&events).0, Proof::NotDone, "{task} {file}");
    }
}

/// The file of expected values is outside the test folders, and only tests read it.
#[tokio::test(start_paused = true)]
async fn changed_data_file_that_only_tests_read_does_not_prove_a_fix() {
    let test = "import json\nfrom a.models import f\n\nE = json.load(open('a/want/values.json'))\n\n\ndef test_old():\n    assert f(1) == E\n";
    let run = async |approval, code: &str| {
        let values = whole("BLIND\n");
        let model = Scripted::native()
            .on(
                "agent a/want/values.json",
                [values, finish("no"), finish("no")],
            )
            .always("agent", finish("no"));
        let files = [
            ("a/models.py", code),
            ("tests/test_a.py", test),
            ("a/want/values.json", "f(1) == 1\n"),
        ];
        let of_folder = |all: &str| {
            let red = judge(all).into_iter();
            red.map(|(id, why)| (format!("tests/{id}"), why)).collect()
        };
        let bed = bed(&files, approval, "Fix f.", model).tests(of_folder);
        let mut bed = bed.begin(&["a/want/values.json::"]);
        let events = bed.run().await;
        (ending(&events), bed.read("a/want/values.json"))
    };
    let (end, text) = run(Approval::Auto, BROKEN).await;
    assert_eq!(
        (end.0, text.as_str()),
        (Proof::NotDone, "f(1) == 1\n"),
        "{}",
        end.1
    );
    let (end, text) = run(Approval::Ask, BROKEN).await;
    assert_eq!(
        (end.0, text.as_str()),
        (Proof::Unproven, "BLIND\n"),
        "{}",
        end.1
    );
    assert!(end.1.contains("only as it was changed"), "{}", end.1);
    // A data file that the code itself reads does not count as a part of the tests.
    let reads = format!("{BROKEN}\n\nVALUES = open('a/want/values.json')\n");
    let (end, text) = run(Approval::Auto, &reads).await;
    assert_eq!(
        (end.0, text.as_str()),
        (Proof::Proven, "BLIND\n"),
        "{}",
        end.1
    );
}

/// Runs three agents. They change the result of `f`, the test of the old result, and unrelated
/// constants. Only the change of the constants passes the tests without the other changes.
async fn feature_beside_constants(task: &str) -> (Bed, (Proof, String)) {
    let code = "def f(x):\n    return 0\n";
    let constants =
        json!({"reason": "r", "hunks": [{"old": "HIGH = 1\n", "new": "HIGH = 1\nLOW = 0\n"}]});
    let model = Scripted::native()
        .on("agent a.py::", [call("propose", constants), finish("done")])
        .on("agent a.py::f", [whole(code), finish("no")])
        .on(
            "agent test_a.py::test_old",
            [
                whole("def test_old():\n    assert f(1) == 0\n"),
                finish("no"),
            ],
        );
    let a = format!("HIGH = 1\n\n\n{CODE}");
    let files = [("a.py", a.as_str()), ("test_a.py", TESTS)];
    let begin = ["a.py::", "a.py::f", "test_a.py::test_old"];
    let mut bed = bed(&files, Approval::Auto, task, model)
        .begin(&begin)
        .tests(|all| {
            let value = if all.contains("return 0") { "0" } else { "1" };
            match all.contains(&format!("f(1) == {value}")) {
                true => Vec::new(),
                false => vec![(OLD.to_owned(), "E   assert 0 == 1".to_owned())],
            }
        });
    bed.lists = true;
    let events = bed.run().await;
    let end = ending(&events);
    (bed, end)
}

#[tokio::test(start_paused = true)]
async fn headline_names_the_refused_change_that_the_task_asked_for() {
    let task = "Make f return 0 for every x.";
    let (bed, (proof, headline)) = feature_beside_constants(task).await;
    assert!(bed.read("a.py").contains("LOW = 0") && bed.read("a.py").contains("return x"));
    assert_eq!(proof, Proof::Unproven);
    let expected = "Partly done: 2 proposals were refused: a.py::f (tests pass only as this run \
                    changed the test files; with the original ones they do not pass (test_a.py::test_old)), \
                    test_a.py::test_old (";
    assert!(headline.starts_with(expected), "{headline}");
    assert!(headline.contains("; changed only a.py::; "), "{headline}");
    // If the task requests the change of `f` and of its test, both are applied.
    let task = "Make f return 0 for every x, and update test_old to that.";
    let (bed, (_, headline)) = feature_beside_constants(task).await;
    assert!(bed.read("a.py").contains("return 0"), "{headline}");
    assert!(bed.read("test_a.py").contains("== 0"), "{headline}");
    assert!(!headline.contains("refused"), "{headline}");
}

const AGE: &str = "def age(x):\n    \"\"\"\n    >>> age(1)\n    2\n    \"\"\"\n    return x + 1\n";

/// Returns the results of the doctest of `age` and of its test, which depend on the file that
/// defines `age`. `all` contains the files in this order: ages.py, decay.py, which begins with
/// `import re`, and test_a.py, which begins with `import os`.
fn judge_age(all: &str) -> Vec<(String, String)> {
    let (ages, rest) = all.split_once("import re\n").unwrap();
    let (decay, tests) = rest.split_once("import os\n").unwrap();
    let (in_new, in_old) = (ages.contains("def age"), decay.contains("def age"));
    let is_found = match tests.contains("from ages import age") {
        true => in_new,
        false => in_old,
    };
    let example = |id: &str, runs: bool| {
        let how = if runs { PASSES } else { GONE };
        (id.to_owned(), how.to_owned())
    };
    let mut cases = vec![
        example("decay.py::decay.age", in_old),
        example("ages.py::ages.age", in_new),
    ];
    if !is_found {
        let why = "ImportError: cannot import name 'age' from 'decay'";
        cases.push(("test_a.py".to_owned(), why.to_owned()));
        cases.push(example("test_a.py::test_age", false));
    }
    cases
}

/// Runs agents that move a function with a doctest to a new file, and change the import in its
/// test. The old definition is deleted only if `leaves` is set.
async fn moves_a_function(task: &str, leaves: bool) -> (Bed, Vec<Event>) {
    let decay = format!("import re\n\n\n{AGE}\n\ndef half(x):\n    return re.sub(x, x, x)\n");
    let tests = "import os\nfrom decay import age, half\n\n\ndef test_age():\n    assert age(1) == 2\n\n\n\
                 def test_half():\n    assert half(os.sep)\n";
    let import = json!([{
        "old": "from decay import age, half\n",
        "new": "from ages import age\nfrom decay import half\n",
    }]);
    let import = json!({"reason": "r", "symbol": "test_a.py::", "hunks": import});
    let delete = json!({"reason": "r", "delete": ["decay.py::age"]});
    let leaving = match leaves {
        true => call("propose", delete),
        false => finish("no"),
    };
    let model = Scripted::native()
        .on("agent ages.py::", [whole(AGE), finish("done")])
        .on("agent decay.py::age", [leaving, finish("done")])
        .on(
            "agent test_a.py::",
            [call("propose", import), finish("done")],
        )
        .always("agent", finish("nothing"));
    let files = [("decay.py", decay.as_str()), ("test_a.py", tests)];
    let begin = ["ages.py::", "decay.py::age", "test_a.py::"];
    let mut bed = bed(&files, Approval::Auto, task, model)
        .begin(&begin)
        .tests(judge_age);
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn function_may_be_moved_with_its_doctest_and_the_import_in_its_test() {
    for task in [
        "Move `age` to a new module ages.py.",
        "Split the module by topic.",
    ] {
        let (bed, events) = moves_a_function(task, true).await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        assert_eq!(bed.read("ages.py"), AGE);
        assert!(!bed.read("decay.py").contains("def age"), "{events:#?}");
        assert!(bed.read("test_a.py").contains("from ages import age\n"));
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::AsBefore, "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn move_that_keeps_the_old_definition_is_reverted_and_reported_as_not_done() {
    let (bed, events) = moves_a_function("Move age to a new module ages.py.", false).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    let expected = "Not done: `age` stands twice: decay.py and ages.py; ";
    assert!(headline.starts_with(expected), "{headline}");
    assert!(
        !bed.path("ages.py").exists()
            && bed
                .read("test_a.py")
                .contains("from decay import age, half")
    );
}

#[tokio::test(start_paused = true)]
async fn copy_of_a_definition_with_other_line_ends_is_reported_as_not_done() {
    for ends in ["\n", "\r\n"] {
        let code = AGE.replace('\n', ends);
        let model = Scripted::native()
            .on("agent ages.py::", [whole(AGE), finish("done")])
            .always("agent", finish("nothing"));
        let task = "Move age from decay.py to ages.py.";
        let mut bed = bed(&[("decay.py", code.as_str())], Approval::Auto, task, model)
            .begin(&["ages.py::"])
            .tests(|_| Vec::new());
        let events = bed.run().await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{ends:?}: {headline}");
        let expected = "Not done: `age` stands twice: decay.py and ages.py; ";
        assert!(headline.starts_with(expected), "{ends:?}: {headline}");
    }
}

//! Tests outside of test files (in code files, docstrings and documents) also run with their
//! original text.

use super::bed::*;
use crate::*;
use starling_core::Approval;

const CODE: &str = "def f(x):\n    return x\n";
const BROKEN: &str = "def f(x):\n    return 0\n";
const TEST: &str = "def test_old():\n    assert f(1) == 1\n";
const GUTTED: &str = "def test_old():\n    assert True\n";

/// Returns the results of one test. It always runs, and fails if `f` is broken and the files
/// contain `expected`.
fn judge(
    id: &'static str,
    expected: &'static str,
) -> impl Fn(&str) -> Vec<(String, String)> + Send + Sync + 'static {
    move |all: &str| {
        let fails = all.contains("return 0") && all.contains(expected);
        let message = if fails { "E   assert 0 == 1" } else { PASSES };
        vec![(id.to_owned(), message.to_owned())]
    }
}

/// Creates a run with one agent for each proposal. The agent proposes its text, repeats the
/// proposal if it was refused, and then finishes.
fn bed(files: &[(&str, &str)], proposals: &[(&str, &str)], task: &str, approval: Approval) -> Bed {
    let mut model = Scripted::native().always("proxy", say("ACCEPT"));
    for (symbol, text) in proposals {
        let lines = [whole(text), whole(text), finish("done"), finish("done")];
        model = model.on(&format!("agent {symbol}"), lines);
    }
    let symbols: Vec<&str> = proposals.iter().map(|(symbol, _)| *symbol).collect();
    let mut bed = Bed::new(files, model).begin(&symbols).with(|own| {
        own.approval = approval;
        own.text = task.to_owned();
    });
    bed.lists = true;
    bed
}

#[tokio::test(start_paused = true)]
async fn tests_outside_of_test_files_also_run_with_their_original_text() {
    let beside = format!("{CODE}\n\n{TEST}");
    let example =
        "def f(x):\n    \"\"\"Gives x.\n\n    >>> f(1)\n    1\n    \"\"\"\n    return x\n";
    let changed = example
        .replace("    1\n", "    0\n")
        .replace("return x", "return 0");
    let config = "[pytest]\npython_files = check_*.py\naddopts = --doctest-glob=*.md\n";
    let of_readme = "Use it:\n\n>>> f(1)\n1\n";
    let told = "Use it:\n\n>>> f(1)\n0\n";
    for (files, proposals, id, expected) in [
        (
            vec![("a.py", beside.as_str())],
            vec![("a.py::test_old", GUTTED), ("a.py::f", BROKEN)],
            "a.py::test_old",
            "f(1) == 1",
        ),
        (
            vec![("a.py", example)],
            vec![("a.py::f", changed.as_str())],
            "a.py::a.f",
            "    1\n",
        ),
        (
            vec![("a.py", CODE), ("check_a.py", TEST), ("pytest.ini", config)],
            vec![("check_a.py::test_old", GUTTED), ("a.py::f", BROKEN)],
            "check_a.py::test_old",
            "f(1) == 1",
        ),
        (
            vec![
                ("a.py", CODE),
                ("README.md", of_readme),
                ("pytest.ini", config),
            ],
            vec![("README.md::", told), ("a.py::f", BROKEN)],
            "README.md::README.md",
            "f(1)\n1\n",
        ),
    ] {
        for selects in [true, false] {
            let mut auto = bed(&files, &proposals, "Make f faster.", Approval::Auto)
                .tests(judge(id, expected));
            auto.selects = selects;
            let events = auto.run().await;
            assert!(auto.read("a.py").contains("return x"), "{id}: {events:#?}");
            let refused = malformed(&events);
            let is_told = refused.iter().any(|why| why.contains("as they were"));
            assert!(is_told, "{id}: {refused:#?}");

            let mut proxy = bed(&files, &proposals, "Make f faster.", Approval::Proxy)
                .tests(judge(id, expected));
            proxy.selects = selects;
            let events = proxy.run().await;
            assert!(proxy.read("a.py").contains("return 0"), "{id}: {events:#?}");
            let headline = format!("Done, but 1 test passes only as it was changed: {id}");
            assert_eq!(ending(&events), (Proof::Unproven, headline), "{id}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_in_a_code_file_may_be_changed_if_the_task_asks_for_it() {
    // The test fails if it expects another result than `f` returns.
    let compares = |all: &str| {
        let fails = all.contains("return 0") && all.contains("f(1) == 1")
            || all.contains("return x") && all.contains("f(1) == 0");
        let message = if fails { "E   assert 0 == 1" } else { PASSES };
        vec![("a.py::test_old".to_owned(), message.to_owned())]
    };
    let beside = format!("{CODE}\n\n{TEST}");
    let follows = "def test_old():\n    assert f(1) == 0\n";
    let proven =
        "Done and proven: 1 test passes; test_old as it was changed fails without the change";
    let but = "Done, but no test was seen to fail without it; 1 test passes";
    for task in [
        "Update test_old: f is to return 0.",
        "f returns 0 now. Update the tests.",
    ] {
        for (test, end) in [(follows, proven), (GUTTED, but)] {
            let proposals = [("a.py::test_old", test), ("a.py::f", BROKEN)];
            let mut bed =
                bed(&[("a.py", &beside)], &proposals, task, Approval::Auto).tests(compares);
            let events = bed.run().await;
            assert!(bed.read("a.py").contains("return 0"), "{task}: {events:#?}");
            assert_eq!(ending(&events).1, end, "{task}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unchanged_test_in_a_changed_code_file_runs_only_once_per_change() {
    let beside = format!("{CODE}\n\n{TEST}");
    let better = "def f(x):\n    return x + 0\n";
    let mut bed = bed(
        &[("a.py", &beside)],
        &[("a.py::f", better)],
        "Make f faster.",
        Approval::Auto,
    )
    .tests(judge("a.py::test_old", "f(1) == 1"));
    let events = bed.run().await;
    assert_eq!(ending(&events).0, Proof::AsBefore, "{events:#?}");
    // The tests run before the change and with it. They do not run again with their original text.
    assert_eq!(bed.selected.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn run_is_unproven_if_changed_tests_cannot_run_with_their_original_text() {
    let was = "LIMIT = 1\n__test__ = {'f': '''\n>>> f(1)\n1\n'''}\n";
    let is = "LIMIT = 1\n__test__ = {'f': '''\n>>> f(1)\n0\n'''}\n";
    let files = [("a.py", was)];
    let mut bed = bed(&files, &[("a.py::", is)], "Make it faster.", Approval::Auto)
        .tests(judge("a.py::a.__test__.f", "never"));
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), is, "{events:#?}");
    let headline = "Done, but the run also changed tests in a.py, and could not run them with their \
                    original text";
    assert_eq!(ending(&events), (Proof::Unproven, headline.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn changed_doctest_runs_with_its_original_text_when_only_selected_tests_run() {
    let many: String = (0..500)
        .map(|at| format!("def test_{at}():\n    pass\n"))
        .collect();
    let example =
        "def f(x):\n    \"\"\"Gives x.\n\n    >>> f(1)\n    1\n    \"\"\"\n    return x\n";
    let changed = example
        .replace("    1\n", "    0\n")
        .replace("return x", "return 0");
    let files = [
        ("a.py", example),
        ("test_many.py", many.as_str()),
        (
            "test_a.py",
            "from a import f\n\n\ndef test_a():\n    f(1)\n",
        ),
        ("pytest.ini", "[pytest]\naddopts = --doctest-modules\n"),
    ];
    let mut bed = bed(
        &files,
        &[("a.py::f", &changed)],
        "Make f faster.",
        Approval::Auto,
    )
    .tests(judge("a.py::a.f", "    1\n"));
    bed.selects = true;
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), example, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn example_of_a_function_follows_the_behaviour_that_the_task_demands() {
    let code = "def double(x):\n    \"\"\"Gives it.\n\n    >>> double(1)\n    2\n    \"\"\"\n    return x * 2\n";
    let changed = code.replace("    2\n", "    3\n").replace("x * 2", "x * 3");
    // The example fails if the code and the example do not fit.
    let judge = |all: &str| {
        let fits = all.contains("x * 2") == all.contains("    2\n");
        let message = if fits { PASSES } else { "Expected: 2" };
        vec![("a.py::a.double".to_owned(), message.to_owned())]
    };
    for (task, is_followed) in [
        ("double() must return three times its argument", true),
        ("`double` should triple, not double", true),
        ("double() is slow. Make it faster.", false),
        ("double() is wrong", false),
        ("main() must print three times its argument", false),
    ] {
        let files = [("a.py", code)];
        let mut bed = bed(&files, &[("a.py::double", &changed)], task, Approval::Auto).tests(judge);
        let events = bed.run().await;
        let is_changed = bed.read("a.py").contains("x * 3");
        assert_eq!(is_changed, is_followed, "{task}: {events:#?}");
    }
}

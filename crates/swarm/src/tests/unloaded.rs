//! Tests that did not run before the run, because their file or another one could not be loaded.

use serde_json::json;

use super::bed::*;
use crate::*;

const HELP: &str = "def surname(name):\n    return name.split()[-1]\n";
const NEW: &str = "def surname(name):\n    return name.split()[-1]\n\n\ndef forename(name):\n    return name.split()[0]\n";
const TEST_HELP: &str =
    "from help import forename\n\n\ndef test_forename():\n    assert forename('A B') == 'A'\n";
const ERROR: &str = "E   ImportError: cannot import name 'forename' from 'help'";

fn told(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(id, message): &(&str, &str)| ((*id).to_owned(), (*message).to_owned());
    all.iter().map(owned).collect()
}

/// Returns a reply that replaces the last line of a text by this line and what follows it in `new`.
fn added(old: &str, new: &str) -> Line {
    let last = old.lines().last().unwrap();
    let rest = &new[new.find(last).unwrap()..];
    let hunks = json!([{"old": last, "new": rest.trim_end()}]);
    call("propose", json!({"reason": "r", "hunks": hunks}))
}

/// Returns a run that adds `forename`. `before` and `after` are the results of tests without and
/// with the function.
fn bed(
    task: &str,
    before: &'static [(&'static str, &'static str)],
    after: &'static [(&'static str, &'static str)],
) -> Bed {
    let files = [
        ("help.py", HELP),
        ("test_help.py", TEST_HELP),
        ("test_other.py", "def test_red():\n    assert False\n"),
    ];
    let model = Scripted::native()
        .on("agent help.py::", [added(HELP, NEW)])
        .always("agent", finish("nothing more"));
    let mut bed = Bed::new(&files, model)
        .begin(&["help.py::"])
        .tests(move |all| {
            told(if all.contains("def forename") {
                after
            } else {
                before
            })
        })
        .with(|it| it.text = task.to_owned());
    bed.lists = true;
    bed
}

#[tokio::test(start_paused = true)]
async fn test_that_could_not_be_imported_before_proves_the_change() {
    const RED: (&str, &str) = ("test_other.py::test_red", "E   assert False");
    const PYTEST: &[(&str, &str)] = &[
        ("test_help.py", ERROR),
        ("test_help.py::test_forename", GONE),
        RED,
    ];
    const UNITTEST: &[(&str, &str)] = &[
        ("test_help", ERROR),
        ("test_help.py::test_forename", GONE),
        RED,
    ];
    const UNITTEST_AFTER: &[(&str, &str)] = &[
        ("test_help", GONE),
        ("test_help.py::test_forename", GONE),
        ("test_help.HelpTest.test_forename", PASSES),
        RED,
    ];
    for (before, after) in [(PYTEST, &[RED][..]), (UNITTEST, UNITTEST_AFTER)] {
        let task = "Add a function forename to help.py, so that test_help passes";
        for require_tests in [false, true] {
            let mut bed = bed(task, before, after).with(|it| it.require_tests = require_tests);
            let (proof, headline) = ending(&bed.run().await);
            assert_eq!(bed.read("help.py"), NEW, "{headline}");
            assert_eq!(proof, Proof::Proven, "{headline}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn test_of_a_loaded_file_that_fails_is_no_test_that_passed_before() {
    let before = &[
        ("test_help.py", ERROR),
        ("test_help.py::test_forename", GONE),
    ];
    let after = &[("test_help.py::test_forename", "E   assert 'B' == 'A'")];
    let events = bed("Add a function forename to help.py", before, after)
        .run()
        .await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let fails = "1 test fails: test_help.py::test_forename (it did not run before)";
    assert!(headline.contains(fails), "{headline}");
    // A task that is about the file is not done.
    let task = "Make the failing tests in test_help.py pass";
    let events = bed(task, before, after).run().await;
    assert_eq!(ending(&events).0, Proof::NotDone, "{:?}", ending(&events));
}

#[tokio::test(start_paused = true)]
async fn failures_that_another_file_kept_from_running_do_not_refuse_a_change() {
    let before = &[
        ("test_help.py", ERROR),
        ("test_help.py::test_forename", GONE),
        ("test_other.py::test_red", GONE),
    ];
    let after = &[("test_other.py::test_red", "E   assert False")];
    let mut bed = bed("Add a function forename to help.py", before, after);
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(bed.read("help.py"), NEW, "{headline}");
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let fails = "1 test fails: test_other.py::test_red (it did not run before)";
    assert!(headline.contains(fails), "{headline}");
}

/// The change also adds a test, which fails.
#[tokio::test(start_paused = true)]
async fn failing_test_that_the_change_adds_counts_against_it() {
    let files = [("help.py", HELP), ("test_help.py", TEST_HELP)];
    let new = format!("{TEST_HELP}\n\ndef test_added():\n    assert False\n");
    let model = Scripted::native()
        .on("agent test_help.py::", [added(TEST_HELP, &new)])
        .always("agent", finish("nothing more"));
    let judge = |all: &str| {
        told(match all.contains("def test_added") {
            true => &[("test_help.py::test_added", "E   assert False")],
            false => &[
                ("test_help.py", ERROR),
                ("test_help.py::test_forename", GONE),
            ],
        })
    };
    let mut bed = Bed::new(&files, model)
        .begin(&["test_help.py::"])
        .tests(judge)
        .with(|it| it.text = "Add a test to test_help.py".to_owned());
    bed.lists = true;
    bed.run().await;
    assert_eq!(bed.read("test_help.py"), TEST_HELP);
}

/// The command runs the tests of two directories, and stops after the first one that fails.
#[tokio::test(start_paused = true)]
async fn failures_behind_the_first_failing_command_do_not_refuse_a_change() {
    const FIRST: (&str, &str) = ("test_help.py::test_forename", "E   NameError");
    const LATER: (&str, &str) = ("later/test_fee.py::test_fee", "E   assert 1 == 2");
    let before = &[FIRST, ("later/test_fee.py::test_fee", GONE)];
    let after = &[("test_help.py::test_forename", PASSES), LATER];
    let mut red = bed("test_forename fails", before, after);
    let (proof, headline) = ending(&red.run().await);
    assert_eq!(red.read("help.py"), NEW, "{headline}");
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let fails = "1 test fails: later/test_fee.py::test_fee (it did not run before)";
    assert!(headline.contains(fails), "{headline}");
    // If the other tests of its file ran before, the test was not kept from running.
    let before = &[
        FIRST,
        ("later/test_fee.py::test_fee", GONE),
        ("later/test_fee.py::test_other", PASSES),
    ];
    let after = &[
        ("test_help.py::test_forename", PASSES),
        ("later/test_fee.py::test_other", PASSES),
        LATER,
    ];
    let mut bed = bed("test_forename fails", before, after);
    bed.run().await;
    assert_eq!(bed.read("help.py"), HELP);
}

//! A small model adds a test, changes a document, or fixes one function.

use super::bed::*;
use crate::*;

const STATS: &str = "\
def mean(values):
    return sum(values) / len(values)


def spread(values):
    return max(values) - min(values)
";
const TESTS: &str = "\
from stats import mean


def test_mean():
    assert mean([1, 3]) == 2


def test_old():
    assert mean([]) == 0
";
const NEW_TEST: &str = "def test_spread():\n    assert spread([1, 4]) == 3\n";

/// Returns the test results: an unrelated test fails, and the test that the reply adds passes.
fn red_elsewhere(all: &str) -> Vec<(String, String)> {
    let old = "test_stats.py:9: in test_old\nE   ZeroDivisionError";
    let mut cases = vec![("test_stats.py::test_old".to_owned(), old.to_owned())];
    if all.contains("def test_spread") {
        cases.push(("test_stats.py::test_spread".to_owned(), PASSES.to_owned()));
    }
    cases
}

fn bed(task: &str, files: &[(&str, &str)], model: Scripted) -> Bed {
    let task = task.to_owned();
    let mut bed = Bed::new(files, model)
        .tests(red_elsewhere)
        .with(|it| it.text = task);
    bed.lists = true;
    bed
}

#[tokio::test(start_paused = true)]
async fn small_model_adds_a_new_test_to_the_existing_test_file() {
    let answer = format!("```python\nfrom stats import spread\n\n\n{NEW_TEST}```");
    let model = Scripted::small().always("agent test_stats.py::", say(&answer));
    let files = [("stats.py", STATS), ("test_stats.py", TESTS)];
    let mut bed = bed("add a test for spread", &files, model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let text = bed.read("test_stats.py");
    assert!(text.contains(NEW_TEST.trim_end()), "{text}");
    assert!(
        text.contains("def test_mean") && text.contains("def test_old"),
        "{text}"
    );
    assert!(text.starts_with("from stats import mean, spread"), "{text}");
    assert_eq!(bed.read("stats.py"), STATS);
    let prompt = &bed.model.prompts("agent test_stats.py::")[0];
    assert!(prompt.contains("The function `spread`:"), "{prompt}");
    assert!(prompt.contains("return max(values)"), "{prompt}");
    assert!(prompt.contains("def test_mean"), "{prompt}");
    assert!(!prompt.contains("ZeroDivisionError"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn new_test_creates_a_test_file_in_a_project_without_tests() {
    let answer = format!("```python\nfrom stats import spread\n\n\n{NEW_TEST}```");
    let model = Scripted::small().always("agent tests/test_stats.py::", say(&answer));
    let mut bed = bed("add a test for spread", &[("stats.py", STATS)], model);
    let events = bed.run().await;
    let expected = format!("from stats import spread\n\n\n{NEW_TEST}");
    assert_eq!(bed.read("tests/test_stats.py"), expected, "{events:#?}");
}

const CASES: &str = "\
import unittest

from stats import mean


class MeanTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 3]), 2)
";

/// Returns the tests that unittest would run: the methods of classes that extend `TestCase`. All of
/// them pass.
fn unittest_runs(all: &str) -> Vec<(String, String)> {
    let mut cases = Vec::new();
    let mut class = "";
    for line in all.lines() {
        if let Some(head) = line.strip_prefix("class ") {
            class = head.strip_suffix("(unittest.TestCase):").unwrap_or("");
        } else if !line.starts_with([' ', '\n']) && !line.is_empty() {
            class = "";
        }
        let test = line
            .strip_prefix("    def test_")
            .filter(|_| !class.is_empty());
        if let Some(test) = test.and_then(|rest| rest.strip_suffix("(self):")) {
            let id = format!("test_stats.{class}.test_{test}");
            cases.push((id, PASSES.to_owned()));
        }
    }
    cases
}

#[tokio::test(start_paused = true)]
async fn new_test_in_a_unittest_project_is_a_method_of_a_test_case() {
    let method = "def test_1(self):\n        self.assertEqual(spread([1, 4]), 3)\n";
    let loose = "def test_1():\n    assert spread([1, 4]) == 3\n";
    for (answer, tests, file) in [
        // The model replies in the form that the prompt requests.
        (
            format!("class TestSpread(unittest.TestCase):\n    {method}"),
            CASES,
            "test_stats.py",
        ),
        // The reply is a function, a class without a base class, or a class with the name of the
        // example.
        (loose.to_owned(), CASES, "test_stats.py"),
        (
            format!("class TestSpread:\n    {method}"),
            CASES,
            "test_stats.py",
        ),
        (
            format!("class MeanTest(unittest.TestCase):\n    {method}"),
            CASES,
            "test_stats.py",
        ),
        // There is no test file for the module yet; another test file shows the style of the tests.
        (loose.to_owned(), "", "test_stats.py"),
    ] {
        let answer = format!("```python\nfrom stats import spread\n\n\n{answer}```");
        let model = Scripted::small().always("agent test_stats.py::", say(&answer));
        let other = CASES.replace("mean", "other").replace("stats", "others");
        let mut files = vec![("stats.py", STATS)];
        match tests {
            "" => files.push(("test_others.py", other.as_str())),
            tests => files.push((file, tests)),
        }
        let mut bed = bed("add a test for spread", &files, model).tests(unittest_runs);
        bed.lists = false;
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{answer}: {events:#?}");
        let text = bed.read(file);
        assert!(text.contains("(unittest.TestCase):"), "{text}");
        assert!(text.contains("    def test_1(self):"), "{text}");
        assert!(text.starts_with("import unittest"), "{text}");
        assert!(
            text.contains("import mean, spread") || text.contains("import spread"),
            "{text}"
        );
        let prompt = &bed.model.prompts("agent test_stats.py::")[0];
        assert!(prompt.contains("extends `unittest.TestCase`"), "{prompt}");
        let asked = bed.model.asked.lock().unwrap();
        let beginning = &asked[0].beginning;
        let head = "class TestSpread(unittest.TestCase):\n    def test_";
        assert!(beginning.ends_with(head), "{beginning}");
    }
}

#[tokio::test(start_paused = true)]
async fn reply_that_contains_no_new_test_is_refused_if_the_task_asks_for_one() {
    let padded =
        "```python\ndef test_mean():\n    # return the mean\n    assert mean([1, 3]) == 2\n```";
    let model = Scripted::small().always("agent test_stats.py::", say(padded));
    let files = [("stats.py", STATS), ("test_stats.py", TESTS)];
    let mut bed = bed("add a test for spread", &files, model);
    let events = bed.run().await;
    assert_eq!(bed.read("test_stats.py"), TESTS, "{events:#?}");
    let told = malformed(&events);
    assert!(
        told.iter().any(|why| why.contains("no new test")),
        "{told:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn refusal_says_that_the_new_test_itself_fails() {
    let red = |all: &str| {
        let old = "test_stats.py:9: in test_old\nE   ZeroDivisionError";
        let mut cases = vec![("test_stats.py::test_old".to_owned(), old.to_owned())];
        if all.contains("def test_spread") {
            let wrong = "test_stats.py:13: in test_spread\nE   assert 3 == 4";
            cases.push(("test_stats.py::test_spread".to_owned(), wrong.to_owned()));
        }
        cases
    };
    let wrong = "```python\ndef test_spread():\n    assert spread([1, 4]) == 4\n```";
    let model = Scripted::small().always("agent test_stats.py::", say(wrong));
    let files = [("stats.py", STATS), ("test_stats.py", TESTS)];
    let mut bed = bed("add a test for spread", &files, model).tests(red);
    let events = bed.run().await;
    assert_eq!(bed.read("test_stats.py"), TESTS, "{events:#?}");
    let told = malformed(&events);
    let expected = "its new test fails with this change (test_stats.py::test_spread)";
    assert!(told.iter().any(|why| why.contains(expected)), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn only_the_document_that_the_task_names_is_rewritten() {
    let readme = "# stats\n\nRun the tests:\n\n```sh\nnosetests\n```\n";
    let right = readme.replace("nosetests", "pytest");
    // Small models often close a code block with fewer backticks than they opened it with.
    let answer = format!("````\n{right}```\n````");
    let model = Scripted::small().always("agent README.md::", say(&answer));
    let files = [
        ("README.md", readme),
        ("stats.py", STATS),
        ("test_stats.py", TESTS),
    ];
    let mut bed = bed("README says nosetests, we use pytest", &files, model);
    let events = bed.run().await;
    assert_eq!(bed.read("README.md"), right, "{events:#?}");
    assert_eq!(
        (bed.read("stats.py"), bed.read("test_stats.py")),
        (STATS.to_owned(), TESTS.to_owned())
    );
    let Some(Event::RunFinished {
        ending: Some(ending),
        ..
    }) = events.last()
    else {
        panic!("{events:#?}")
    };
    assert_eq!(ending.proof, Proof::NothingToProve, "{ending:?}");
}

#[tokio::test(start_paused = true)]
async fn document_too_long_for_a_small_model_ends_the_run_without_a_call() {
    let readme = "A line of text.\n".repeat(300);
    let files = [("README.md", readme.as_str()), ("stats.py", STATS)];
    let mut bed = bed(
        "README says nosetests, we use pytest",
        &files,
        Scripted::small(),
    );
    let events = bed.run().await;
    assert_eq!(bed.model.calls(), 0);
    let StopReason::NothingChanged { why: error } = stop(&events) else {
        panic!("{events:#?}")
    };
    assert!(
        error.contains("README.md is too long for this model"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn small_model_fixes_a_function_that_the_task_names_despite_an_unrelated_failing_test() {
    let mended =
        "def spread(values):\n    return max(values, default=0) - min(values, default=0)\n";
    let model = Scripted::small().always(
        "agent stats.py::spread",
        say(&format!("```python\n{mended}```")),
    );
    let files = [("stats.py", STATS), ("test_stats.py", TESTS)];
    let task = "spread([]) raises a ValueError; it should be 0";
    let mut bed = bed(task, &files, model);
    let events = bed.run().await;
    let text = bed.read("stats.py");
    assert!(text.contains("default=0"), "{events:#?}");
    assert!(text.contains("return sum(values) / len(values)"), "{text}");
    let prompt = &bed.model.prompts("agent stats.py::spread")[0];
    assert!(prompt.contains(task), "{prompt}");
    assert!(!prompt.contains("ZeroDivisionError"), "{prompt}");
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let ending = ending.as_ref().unwrap();
    assert_eq!(ending.proof, Proof::Unproven, "{}", ending.headline);
}

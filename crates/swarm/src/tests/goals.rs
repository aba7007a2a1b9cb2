//! The goal of the task decides which failing tests a run must fix.

use serde_json::json;
use starling_core::{Approval, Driver};

use super::bed::*;
use crate::*;

const STATS: &str = "def mean(values):\n    return sum(values) / len(values)\n\n\ndef mode(values):\n    return max(values)\n";
const TESTS: &str = "from stats import mean, mode\n\n\ndef test_empty():\n    assert mean([]) == 0\n\n\n\
    def test_mode():\n    assert mode([1, 1, 2]) == 1\n\n\n\
    def test_one_mode():\n    assert mode([1]) == 1\n";
const RIGHT: &str = "def mean(values):\n    return sum(values) / len(values) if values else 0\n";
const WRONG: &str = "def mean(values):\n    return sum(values) / (len(values) or 2)\n";

/// Returns the failing tests: `test_empty` and `test_mode` fail until the functions that they call
/// are correct.
fn judge(all: &str) -> Vec<(String, String)> {
    let failing = |test: &str, line: u32| {
        (
            format!("test_stats.py::{test}"),
            format!("test_stats.py:{line}: in {test}\nE   assert 1 == 0"),
        )
    };
    let mut red = Vec::new();
    if !all.contains("if values else 0") {
        red.push(failing("test_empty", 5));
    }
    if !all.contains("most_common") {
        red.push(failing("test_mode", 9));
    }
    red
}

fn bed(task: &str, model: Scripted) -> Bed {
    let files = [("stats.py", STATS), ("test_stats.py", TESTS)];
    Bed::new(&files, model)
        .tests(judge)
        .with(|it| it.text = task.to_owned())
}

#[tokio::test(start_paused = true)]
async fn run_does_not_succeed_while_the_test_of_the_reported_bug_fails() {
    let insists = call(
        "propose",
        json!({"reason": "r", "source": WRONG, "insist": true}),
    );
    let model = Scripted::native()
        .on("scout", [wake(&["stats.py::mean"])])
        .on("agent stats.py::mean", [insists])
        .always("agent", finish("nothing more"));
    let mut bed =
        bed("mean() is wrong for empty lists", model).with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    let failing = vec!["test_stats.py::test_empty".to_owned()];
    assert_eq!(
        stop(&events),
        StopReason::TestsFail { failing },
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn change_that_does_not_fix_the_bug_is_not_applied_automatically() {
    let model = Scripted::native()
        .on("scout", [wake(&["stats.py::mean"])])
        .on("agent stats.py::mean", [whole(WRONG), finish("no idea")])
        .always("agent", finish("nothing more"));
    let mut bed = bed("mean() is wrong for empty lists", model);
    let events = bed.run().await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    assert_eq!(bed.read("stats.py"), STATS);
    let told = &bed.model.prompts("agent stats.py::mean")[1];
    assert!(
        told.contains("none of the failing tests passes with this change"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn run_that_fixes_the_bug_succeeds_despite_unrelated_failing_tests() {
    let model = Scripted::native()
        .on("scout", [wake(&["stats.py::mean"])])
        .on("agent stats.py::mean", [whole(RIGHT)])
        .always("agent", finish("nothing more"));
    let mut bed = bed("mean() is wrong for empty lists", model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("stats.py").contains(RIGHT));
    assert_eq!(woken(&events).len(), 1, "nobody is woken for test_mode");
}

/// The task names no symbol, and the single agent selects none.
#[tokio::test(start_paused = true)]
async fn bug_report_without_a_symbol_name_is_judged_by_the_tests_of_the_changed_code() {
    let change = json!({"reason": "r", "symbol": "stats.py::mean", "source": WRONG});
    let model = Scripted::native().on("solo", [call("propose", change), finish("no idea")]);
    let mut bed =
        bed("Empty input is handled wrongly.", model).with(|task| task.driver = Driver::Single);
    let events = bed.run().await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    assert_eq!(bed.read("stats.py"), STATS);
}

const ADDED: &str = "def test_one():\n    assert mean([1]) == 1\n";

/// Returns a model that adds a test beside a failing one.
fn adding_a_test() -> Scripted {
    let add = json!([{"source": ADDED, "beside": "test_stats.py::test_empty"}]);
    Scripted::native()
        .on("scout", [wake(&["test_stats.py::test_empty"])])
        .on(
            "agent test_stats.py",
            [call("propose", json!({"reason": "r", "add": add}))],
        )
        .always("agent", finish("nothing more"))
}

#[tokio::test(start_paused = true)]
async fn new_test_is_accepted_despite_tests_that_failed_before() {
    let model = adding_a_test();
    let mut bed = bed("add a test for mean([1])", model);
    bed.lists = true;
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("test_stats.py").contains(ADDED));
    assert_eq!(malformed(&events), [""; 0]);
    let names: Vec<String> = woken(&events).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["test_stats.py::test_empty"]);
    let told = &bed.model.prompts("scout")[0];
    let left_alone = "leave them as they are: test_stats.py::test_empty, test_stats.py::test_mode";
    assert!(told.contains(left_alone), "{told}");
    assert!(
        !told.contains("assert 1 == 0"),
        "no failure is shown: {told}"
    );
}

#[tokio::test(start_paused = true)]
async fn requested_new_test_is_not_refused_because_a_required_test_still_fails() {
    let model = adding_a_test();
    let task = "Fix mean for empty lists and add a test for mean([1])";
    let mut bed = bed(task, model);
    bed.lists = true;
    let events = bed.run().await;
    assert_eq!(malformed(&events), [""; 0]);
    let failing = vec!["test_stats.py::test_empty".to_owned()];
    assert_eq!(stop(&events), StopReason::TestsFail { failing });
}

/// The test runner does not find the first new test.
#[tokio::test(start_paused = true)]
async fn new_test_that_the_test_command_does_not_run_is_refused() {
    let inner = "class Mean:\n    def test_one(self):\n        assert mean([1]) == 1\n";
    let added = "def test_one():\n    assert mean([1]) == 1\n";
    let adds = |source: &str| {
        let add = json!([{"source": source, "beside": "test_stats.py::test_empty"}]);
        call("propose", json!({"reason": "r", "add": add}))
    };
    let model = Scripted::native()
        .on("scout", [wake(&["test_stats.py::test_empty"])])
        .on("agent test_stats.py", [adds(inner), adds(added)])
        .always("agent", finish("nothing more"));
    let mut bed = bed("add a test for mean([1])", model);
    bed.lists = true;
    let events = bed.run().await;
    let refused = malformed(&events);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].contains("the test command does not run test_stats.py::Mean.test_one"),
        "{refused:?}"
    );
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("test_stats.py").contains(ADDED));
}

#[tokio::test(start_paused = true)]
async fn new_test_file_without_a_test_does_not_count_as_a_new_test() {
    let pick = json!({"symbols": [{"symbol": "test_new.py", "why": "w", "source": "X = 1\n"}]});
    let model = Scripted::native()
        .on("scout", [call("wake", pick)])
        .always("agent", finish("nothing more"));
    let mut bed = bed("add a test for mean([])", model);
    let events = bed.run().await;
    let StopReason::ProblemsRemain { problems } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert_eq!(
        problems,
        ["the task asks for a new test, and none was added"]
    );
}

#[tokio::test(start_paused = true)]
async fn run_that_does_not_add_the_requested_test_does_not_succeed() {
    let model = Scripted::native()
        .on("scout", [wake(&["stats.py::mean"])])
        .on("agent stats.py::mean", [whole(RIGHT)])
        .always("agent", finish("nothing more"));
    let mut bed = bed("add a test for mean([])", model);
    let events = bed.run().await;
    let StopReason::ProblemsRemain { problems } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert_eq!(
        problems,
        ["the task asks for a new test, and none was added"]
    );
    assert_eq!(bed.read("stats.py"), STATS, "the change was taken back");
}

/// The only change of the run makes just one of two required tests pass.
#[tokio::test(start_paused = true)]
async fn partial_bug_fix_is_reverted() {
    let model = Scripted::native()
        .on("scout", [wake(&["stats.py::mean"])])
        .on(
            "agent stats.py::mean",
            [whole(RIGHT), finish("mode() is right as it is")],
        )
        .always("agent", finish("nothing more"));
    let mut bed = bed("mean() and mode() are wrong", model);
    bed.lists = true;
    let events = bed.run().await;
    let failing = vec!["test_stats.py::test_mode".to_owned()];
    assert_eq!(
        stop(&events),
        StopReason::TestsFail { failing },
        "{events:#?}"
    );
    assert_eq!(bed.read("stats.py"), STATS);
    // The headline says which test fails and how, and what its owner answered.
    let Some(Event::RunFinished {
        ending: Some(end), ..
    }) = events.last()
    else {
        panic!("{events:#?}")
    };
    let why = "with the changes, 2 tests pass; 1 test fails: test_stats.py::test_mode \
               (assert 1 == 0); stats.py::mean: mode() is right as it is; ";
    assert!(end.headline.contains(why), "{}", end.headline);
}

/// The task names a test only to exclude it.
#[tokio::test(start_paused = true)]
async fn failing_test_that_the_task_excludes_does_not_block_a_change() {
    for task in [
        "Empty lists are handled wrongly. test_mode needs a file that we do not have, leave it.",
        "Empty lists are handled wrongly; ignore test_mode",
        "Mend what the red tests show, except test_mode.",
    ] {
        let model = Scripted::native()
            .on("scout", [wake(&["stats.py::mean"])])
            .on("agent stats.py::mean", [whole(RIGHT)])
            .always("agent", finish("nothing more"));
        let mut bed = bed(task, model);
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        assert!(bed.read("stats.py").contains(RIGHT), "{task}");
        assert_eq!(
            woken(&events).len(),
            1,
            "{task}: nobody is woken for test_mode"
        );
        let prompt = &bed.model.prompts("scout")[0];
        assert!(
            prompt.contains("leave them as they are: test_stats.py::test_mode"),
            "{prompt}"
        );
        match events.last() {
            Some(Event::RunFinished {
                ending: Some(end), ..
            }) => {
                assert_eq!(end.proof, Proof::Proven, "{}", end.headline);
                assert!(
                    end.headline
                        .contains("test_mode (it failed before), no part of the task"),
                    "{}",
                    end.headline
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The task says that the failing tests are unrelated, without naming one.
#[tokio::test(start_paused = true)]
async fn failing_tests_that_the_task_calls_unrelated_do_not_block_a_change() {
    for task in [
        "mode() is slow for long lists. The red tests have nothing to do with it.",
        "mode() is slow for long lists; ignore the failing tests",
    ] {
        let source = "def mode(values):\n    return max(list(values))\n";
        let model = Scripted::native()
            .on("scout", [wake(&["stats.py::mode"])])
            .on("agent stats.py::mode", [whole(source)])
            .always("agent", finish("nothing more"));
        let mut bed = bed(task, model);
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        assert!(bed.read("stats.py").contains(source), "{task}");
        let prompt = &bed.model.prompts("scout")[0];
        let left = "leave them as they are: test_stats.py::test_empty, test_stats.py::test_mode";
        assert!(prompt.contains(left), "{prompt}");
    }
}

/// Only with the change, the tests do not end in time.
#[tokio::test(start_paused = true)]
async fn tests_that_reach_their_time_limit_are_not_called_failing() {
    let model = Scripted::native()
        .on("scout", [wake(&["stats.py::mean"])])
        .on("agent stats.py::mean", [whole(RIGHT), finish("no idea")])
        .always("agent", finish("nothing more"));
    let mut bed = bed("mean() is wrong for empty lists", model)
        .with(|task| task.test_deadline = std::time::Duration::from_secs(12));
    let times = [1, 300].map(std::time::Duration::from_secs);
    *bed.test_times.lock().unwrap() = times.into();
    let events = bed.run().await;
    let refused = events.iter().find_map(|event| match event {
        Event::ProposalRefused { why, shown, .. } => Some((why.clone(), shown.clone())),
        _ => None,
    });
    let (why, shown) = refused.expect("the change is refused");
    let limit = "the tests ran into the time limit of 12 s (`tests.seconds` raises it)";
    assert_eq!(shown.unwrap(), format!("{limit} with it"));
    assert!(why.contains(&format!("{limit} with this change")), "{why}");
    assert!(!why.contains("passed before fail"), "{why}");
}

const FORMATS: &str = "def dump_csv(x):\n    return 1\n\n\ndef dump_yaml(x):\n    return 1\n";
const ROUND: &str = "import pytest\nfrom formats import dump_csv, dump_yaml\n\n\n\
    @pytest.mark.parametrize('dump', [dump_csv, dump_yaml], ids=['csv', 'yaml'])\n\
    def test_round(dump):\n    assert dump(2) == 2\n";

/// Returns the failing cases of `test_round`, which tests two functions.
fn cases(all: &str) -> Vec<(String, String)> {
    let ids = ["csv", "yaml"].into_iter();
    let red = ids.filter(|one| !all.contains(&format!("def dump_{one}(x):\n    return x")));
    let red = red.map(|one| {
        let message = "test_round.py:7: in test_round\nE   assert 1 == 2";
        (
            format!("test_round.py::test_round[{one}]"),
            message.to_owned(),
        )
    });
    red.collect()
}

/// Runs a task in which the agent fixes only `dump_csv`, and returns the text of the changed file,
/// the stop reason and the ending.
async fn fixes_one_case(task: &str) -> (String, StopReason, Ending) {
    let symbol = "formats.py::dump_csv";
    let model = Scripted::native()
        .on("scout", [wake(&[symbol])])
        .on(
            &format!("agent {symbol}"),
            [whole("def dump_csv(x):\n    return x\n")],
        )
        .always("agent", finish("nothing more"));
    let files = [("formats.py", FORMATS), ("test_round.py", ROUND)];
    let mut bed = Bed::new(&files, model)
        .tests(cases)
        .with(|it| it.text = task.to_owned());
    let events = bed.run().await;
    match events.last() {
        Some(Event::RunFinished {
            ending: Some(ending),
            ..
        }) => (bed.read("formats.py"), stop(&events), ending.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn case_that_the_task_names_is_a_test_of_its_own() {
    for task in [
        "Make test_round[csv] pass",
        "Make test_round.py::test_round[csv] pass. Leave yaml alone.",
        "Fix the red tests, but ignore test_round[yaml]",
    ] {
        let (text, stop, ending) = fixes_one_case(task).await;
        assert_eq!(stop, StopReason::Settled, "{task}: {ending:?}");
        assert!(text.contains("dump_csv(x):\n    return x"), "{task}");
        assert_eq!(ending.proof, Proof::Proven, "{task}: {ending:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fix_of_some_cases_of_a_test_is_kept_and_the_other_cases_are_reported() {
    let task = "dump_csv writes a number that cannot be read again";
    let (text, stop, ending) = fixes_one_case(task).await;
    assert_eq!(stop, StopReason::Settled, "{ending:?}");
    assert!(text.contains("dump_csv(x):\n    return x"));
    assert_eq!(ending.proof, Proof::Unproven, "{ending:?}");
    let left =
        "Done, but another case of a fixed test still fails: test_round.py::test_round[yaml]";
    assert!(ending.headline.starts_with(left), "{ending:?}");

    let (text, stop, ending) = fixes_one_case("Make test_round pass").await;
    assert_eq!(stop, StopReason::Settled, "{ending:?}");
    assert!(text.contains("dump_csv(x):\n    return x"));
    assert_eq!(ending.proof, Proof::Unproven, "{ending:?}");
    let left =
        "Partly done: another case of a fixed test still fails: test_round.py::test_round[yaml]";
    assert!(ending.headline.starts_with(left), "{ending:?}");

    // Each named case is a test of its own, and one of them is not fixed.
    let both = "Make test_round[csv] and test_round[yaml] pass";
    let (text, stop, ending) = fixes_one_case(both).await;
    assert!(!stop.is_settled(), "{ending:?}");
    assert_eq!(text, FORMATS);
}

/// The function has a comment that says what is left to do.
#[tokio::test(start_paused = true)]
async fn comment_of_a_todo_may_go_if_the_task_asks_to_do_it() {
    let old = "def mean(values):\n    # TODO: empty lists\n    # exact for integers\n    \
               return sum(values) / len(values)\n";
    let done = "def mean(values):\n    # exact for integers\n    \
                return sum(values) / len(values) if values else 0\n";
    for (task, new, is_changed) in [
        ("Do the TODO in mean", done, true),
        ("Do the TODO in mean", RIGHT, false),
        ("mean() is wrong for empty lists", done, false),
    ] {
        let model = Scripted::native()
            .on("agent stats.py::mean", [whole(new)])
            .always("agent", finish("nothing more"));
        let files = [("stats.py", old)];
        let mut bed = Bed::new(&files, model)
            .begin(&["stats.py::mean"])
            .with(|it| it.text = task.to_owned());
        let events = bed.run().await;
        let text = if is_changed { new } else { old };
        assert_eq!(bed.read("stats.py"), text, "{task}: {events:#?}");
    }
}

/// The function has two comments, of which one says what is left to do.
#[tokio::test(start_paused = true)]
async fn headline_names_the_comment_of_a_todo_that_stays() {
    let inner = "def mean(values):\n    # TODO: empty lists\n    # exact for integers\n    \
                 return sum(values) / len(values)\n";
    let above = "# TODO: empty lists\ndef mean(values):\n    return sum(values) / len(values)\n\n\n\
                 # TODO: ties\ndef mode(values):\n    return max(values)\n";
    let hunk = json!([{"old": "len(values)\n", "new": "len(values) if values else 0\n"}]);
    for (task, old, told) in [
        (
            "Do the TODO in mean",
            inner,
            Some("; the comment at stats.py:2 stays: # TODO: empty lists"),
        ),
        (
            "Do the TODO in mean",
            above,
            Some("; the comment at stats.py:1 stays: # TODO: empty lists"),
        ),
        ("mean() is wrong for empty lists", inner, None),
    ] {
        let model = Scripted::native()
            .on(
                "agent stats.py::mean",
                [call("propose", json!({"reason": "r", "hunks": hunk}))],
            )
            .always("agent", finish("nothing more"));
        let mut bed = Bed::new(&[("stats.py", old)], model)
            .begin(&["stats.py::mean"])
            .with(|it| it.text = task.to_owned());
        let events = bed.run().await;
        let Some(Event::RunFinished {
            ending: Some(end), ..
        }) = events.last()
        else {
            panic!("{events:#?}")
        };
        let headline = &end.headline;
        match told {
            Some(told) => assert!(headline.ends_with(told), "{headline}"),
            None => assert!(!headline.contains("TODO"), "{headline}"),
        }
        assert!(headline.starts_with("Done"), "{headline}");
    }
}

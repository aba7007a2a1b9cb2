//! The end of a run: if tests fail when no agent is at work, the owners who can fix them are
//! started, a limited number of times.

use starling_core::Approval;
use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::evidence::ids::WHOLE_RUN;
use crate::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";
const IN_G: &str =
    "  File \"test_a.py\", line 5, in test_g\n  File \"a.py\", line 6, in g\nTypeError: None";

fn insists(source: &str) -> Line {
    call(
        "propose",
        json!({"reason": "r", "source": source, "insist": true}),
    )
}

/// Creates a run that begins at the owner of `f`. A person accepts every change, also one that
/// breaks a test.
fn reviewed(model: Scripted) -> Bed {
    Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Ask)
}

fn breaks_g(message: &'static str) -> impl Fn(&str) -> Vec<(String, String)> + Send + Sync {
    move |all| match all.contains("return None") && !all.contains("or 0") {
        true => vec![("t1".to_owned(), message.to_owned())],
        false => vec![],
    }
}

fn failed_tests(events: &[Event]) -> Vec<String> {
    let failed = |(agent, cause)| matches!(cause, Cause::FailedTests { .. }).then_some(agent);
    woken(events).into_iter().filter_map(failed).collect()
}

#[tokio::test(start_paused = true)]
async fn failing_test_starts_the_owner_of_the_function_in_its_traceback() {
    let model = Scripted::native()
        .on("agent a.py::f", [insists("def f(x):\n    return None\n")])
        .on(
            "agent a.py::g",
            [whole("def g(x):\n    return (f(x) or 0) + 1\n")],
        );
    let mut bed = reviewed(model).tests(breaks_g(IN_G));
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(failed_tests(&events), ["a.py::g"]);
    assert!(bed.model.prompts("agent a.py::g")[0].contains("TypeError: None"));
}

#[tokio::test(start_paused = true)]
async fn failing_test_without_a_traceback_starts_the_agents_that_changed_code() {
    let model = Scripted::native().on(
        "agent a.py::f",
        [
            insists("def f(x):\n    return None\n"),
            whole("def f(x):\n    return x\n"),
        ],
    );
    let mut bed = reviewed(model).tests(breaks_g("it is wrong"));
    let events = bed.run().await;
    assert_eq!(failed_tests(&events), ["a.py::f"]);
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("a.py"), TWO);
}

#[tokio::test(start_paused = true)]
async fn run_ends_with_failing_tests_if_all_agents_that_may_fix_them_gave_up() {
    let model = Scripted::native()
        .on(
            "agent a.py::f",
            [insists("def f(x):\n    return None\n"), finish("nor mine")],
        )
        .always("agent a.py::g", finish("it is not my fault"));
    let mut bed = reviewed(model).tests(breaks_g(IN_G));
    let events = bed.run().await;
    assert_eq!(failed_tests(&events), ["a.py::g", "a.py::f"]);
    let failing = vec!["t1".to_owned()];
    assert_eq!(stop(&events), StopReason::TestsFail { failing });
}

#[tokio::test(start_paused = true)]
async fn tests_that_failed_before_the_run_must_pass_at_its_end_only_if_the_task_is_about_tests() {
    for (text, settled) in [("Make it the fastest.", true), ("The tests fail.", false)] {
        let model = Scripted::native()
            .on("agent a.py::f", [insists("def f(x):\n    return x + 0\n")])
            .always("agent", finish("nothing"));
        let mut bed = reviewed(model)
            .with(|task| task.text = text.into())
            .tests(|_| vec![("t1".into(), IN_G.into())]);
        let events = bed.run().await;
        assert_eq!(stop(&events).is_settled(), settled, "{text}: {events:#?}");
        assert_eq!(failed_tests(&events).is_empty(), settled);
    }
}

/// The third change is applied during the final check of the second change. That check runs on a
/// text without the third change.
#[tokio::test(start_paused = true)]
async fn change_is_not_blamed_for_a_test_that_a_concurrent_change_fixes() {
    let text = "def f():\n    return 0\n\n\ndef g():\n    return 0\n\n\ndef h():\n    return 0\n";
    let mends = |name: &str| [whole(&format!("def {name}():\n    return '{name}'\n"))];
    let model = Scripted::native()
        .on("agent a.py::f", mends("f"))
        .on("agent a.py::g", mends("g"))
        .on("agent a.py::h", mends("h"))
        .always("agent", finish("nothing"));
    let wants = |all: &str| {
        let names = ["f", "g", "h"].into_iter();
        let wrong = names.filter(|name| !all.contains(&format!("return '{name}'")));
        wrong
            .map(|name| (format!("t_{name}"), "wrong".to_owned()))
            .collect()
    };
    let mut bed = Bed::new(&[("a.py", text)], model)
        .begin(&["a.py::f", "a.py::g", "a.py::h"])
        .tests(wants);
    *bed.test_times.lock().unwrap() = [0, 1_000, 2_000, 1_500, 2_000, 1_000]
        .map(Duration::from_millis)
        .into();
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let refused = |event: &Event| matches!(event, Event::ProposalRefused { .. });
    assert!(!events.iter().any(refused), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn proposal_is_tested_again_if_another_change_was_applied_during_its_check() {
    let model = Scripted::native()
        .on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")])
        .on(
            "agent a.py::g",
            [whole("def g(x):\n    return f(x) + 2\n"), finish("nothing")],
        );
    let together = |all: &str| match all.contains("x + 1") && all.contains("f(x) + 2") {
        true => vec![("t2".to_owned(), "both at once".to_owned())],
        false => vec![],
    };
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f", "a.py::g"])
        .tests(together);
    // Durations of the test runs: before the changes, for the first proposal, and for the second
    // proposal. The first proposal is applied during the last run.
    *bed.test_times.lock().unwrap() = [0, 1, 5].map(Duration::from_secs).into();
    let events = bed.run().await;
    let runs = |event: &&Event| {
        matches!(
            event,
            Event::TestsRun {
                phase: TestPhase::Proposal,
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(runs).count(), 3, "{events:#?}");
    assert!(
        malformed(&events)[0].contains("both at once"),
        "{events:#?}"
    );
    assert_eq!(*bed.editor.writes.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn failing_test_command_without_test_names_starts_the_owner_of_the_function_in_its_traceback()
{
    let model = Scripted::native()
        .on("agent a.py::f", [insists("def f(x):\n    return None\n")])
        .on(
            "agent a.py::g",
            [whole("def g(x):\n    return (f(x) or 0) + 1\n")],
        );
    let judge = breaks_g(IN_G);
    let mut bed = reviewed(model).tests(move |all| {
        let whole = |(_, output)| (WHOLE_RUN.to_owned(), output);
        judge(all).into_iter().map(whole).collect()
    });
    let events = bed.run().await;
    assert_eq!(failed_tests(&events), ["a.py::g"], "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
}

#[tokio::test(start_paused = true)]
async fn users_test_command_that_does_not_start_is_reported_before_any_model_call() {
    let not_found = |_: &str| {
        vec![(
            NO_START.to_owned(),
            "one\n\nsh: tets: not found\n".to_owned(),
        )]
    };
    let model = Scripted::native().on("scout", [wake(&["a.py::f"])]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).tests(not_found);
    let events = bed.run().await;
    let StopReason::Failed { error } = stop(&events) else {
        panic!("{events:#?}");
    };
    let expected = "`fake tests` (exit status 127): sh: tets: not found\n  one\n";
    assert!(error.contains(expected), "{error}");
    assert_eq!(bed.model.calls(), 0);
    // If Starling chose the test command itself, the run continues without test results.
    let model = Scripted::native()
        .on("scout", [wake(&["a.py::f"])])
        .on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).tests(not_found);
    bed.chosen = starling_core::CommandOrigin::Found;
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn empty_project_is_reported_before_any_model_call() {
    let mut bed = Bed::new(&[], Scripted::native());
    let events = bed.run().await;
    let StopReason::Failed { error } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert!(error.contains("contains no files"), "{error}");
    assert_eq!(bed.model.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn run_waits_for_an_agent_that_gets_a_user_message_during_the_final_tests() {
    let mut model = Scripted::native().on(
        "agent a.py::f",
        [
            whole("def f(x):\n    return x + 1\n"),
            finish("no more to do"),
        ],
    );
    model.latency = Duration::from_secs(30);
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(|_| Vec::new());
    // The user types while the change is applied. Therefore all tests run once more at the end, for
    // ten seconds.
    let typed = format!("# mine\n{TWO}");
    *bed.editor.typing.lock().unwrap() = Some(("a.py".to_owned(), typed));
    *bed.test_times.lock().unwrap() = [0, 0, 10].map(Duration::from_secs).into();
    let handle = bed.start();
    until(&handle, |event| {
        matches!(event, Event::AgentFinished { .. })
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    handle.steer(Some("a.py::f".parse().unwrap()), "have another look".into());
    handle.finished().await;
    let events = handle.log.events();
    let ends = |event: &&Event| matches!(event, Event::AgentFinished { .. });
    assert_eq!(events.iter().filter(ends).count(), 2, "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
}

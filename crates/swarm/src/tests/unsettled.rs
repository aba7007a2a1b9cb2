//! An unsettled run ends before its task is done: it is cancelled, its budget is used up, or tests
//! fail. With the approval `auto`, its changes are reverted and saved as a patch.

use serde_json::json;
use starling_core::{Approval, Driver};

use std::os::unix::fs::PermissionsExt;

use super::bed::*;
use crate::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

/// Creates a run in which the first change of an agent is applied, and the budget does not suffice
/// for its second change.
fn bed(approval: Approval) -> Bed {
    let first = json!({"reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true});
    let model = Scripted::native()
        .on("agent a.py::f", [call("propose", first)])
        .always("proxy", say("ACCEPT"));
    let calls = match approval {
        Approval::Auto | Approval::Ask => 1,
        Approval::Proxy => 2,
    };
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = approval)
        .with(|task| task.limits.calls = calls);
    bed.task.patch = Some(bed.path("out.patch"));
    bed
}

fn taken_back(events: &[Event]) -> Option<(String, Option<String>, usize)> {
    events.iter().find_map(|event| match event {
        Event::TakenBack { diff, patch, left } => Some((diff.clone(), patch.clone(), left.len())),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn patch_of_a_file_with_a_byte_order_mark_contains_the_mark() {
    let mut bed = bed(Approval::Auto);
    let marked = format!("\u{feff}{TWO}");
    std::fs::write(bed.path("a.py"), &marked).unwrap();
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), marked, "{events:#?}");
    let (diff, ..) = taken_back(&events).expect("it was taken back");
    assert!(diff.contains("\n \u{feff}def f(x):\n"), "{diff}");
}

#[tokio::test(start_paused = true)]
async fn unreviewed_changes_of_an_unsettled_run_are_reverted_and_saved_as_a_patch() {
    let mut bed = bed(Approval::Auto);
    let events = bed.run().await;
    assert!(matches!(stop(&events), StopReason::LedgerEmpty { .. }));
    assert_eq!(bed.read("a.py"), TWO, "{events:#?}");
    let (diff, patch, left) = taken_back(&events).expect("it was taken back");
    assert!(diff.contains("+    return x + 1"), "{diff}");
    assert_eq!(bed.read("out.patch"), diff);
    let mode = std::fs::metadata(bed.path("out.patch"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600, "only the user can read it");
    assert_eq!(left, 0);
    let Some(Event::RunFinished {
        summary,
        applied,
        diff,
        ..
    }) = events.last()
    else {
        panic!("{events:#?}");
    };
    assert_eq!((applied.len(), diff.as_str()), (0, ""));
    let expected = format!("saved in {}", patch.expect("a path"));
    assert!(summary.contains(&expected), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn reviewed_changes_of_an_unsettled_run_are_kept() {
    for approval in [Approval::Ask, Approval::Proxy] {
        let mut bed = bed(approval);
        let events = bed.run().await;
        assert!(matches!(stop(&events), StopReason::LedgerEmpty { .. }));
        assert!(bed.read("a.py").contains("x + 1"), "{events:#?}");
        assert_eq!(taken_back(&events), None);
    }
}

#[tokio::test(start_paused = true)]
async fn revert_of_an_unsettled_run_keeps_the_users_edits_and_reports_conflicts_with_them() {
    let elsewhere = ("f(x) + 1", "f(x) + 100");
    let same_place = ("x + 1\n\n", "x * 3\n\n");
    for ((was, typed), left) in [(elsewhere, 0), (same_place, 1)] {
        let model = Scripted::native().on(
            "agent a.py::f",
            [
                call(
                    "propose",
                    json!({"reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true}),
                ),
                Line::Hang,
            ],
        );
        let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
        let handle = bed.start();
        until(&handle, |event| {
            matches!(event, Event::ProposalApplied { .. })
        })
        .await;
        let mine = bed.read("a.py").replace(was, typed);
        std::fs::write(bed.path("a.py"), &mine).unwrap();
        handle.cancel();
        handle.finished().await;
        let events = handle.log.events();
        assert_eq!(stop(&events), StopReason::Cancelled);
        assert_eq!(
            taken_back(&events).expect("taken back").2,
            left,
            "{events:#?}"
        );
        let expected = match left {
            0 => TWO.replace("f(x) + 1", "f(x) + 100"),
            _ => mine,
        };
        assert_eq!(bed.read("a.py"), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn revert_of_an_unsettled_run_keeps_all_proposals_of_a_set_if_one_cannot_be_reverted() {
    let files = [
        ("fees.py", "def fee(x):\n    return x\n"),
        (
            "shop.py",
            "from fees import fee\n\n\ndef total(x):\n    return fee(x)\n",
        ),
    ];
    let part = |symbol: &str, source: &str, more: bool| {
        let change = json!({"symbol": symbol, "reason": "r", "source": source, "more": more});
        ("propose".to_owned(), change)
    };
    let parts = vec![
        part(
            "fees.py::fee",
            "def fee(x, rate):\n    return x * rate\n",
            true,
        ),
        part(
            "shop.py::total",
            "def total(x):\n    return fee(x, 2)\n",
            true,
        ),
    ];
    let model = Scripted::native().on("solo", [Line::Call(parts), Line::Hang]);
    let fits = |all: &str| match all.contains("fee(x, rate)") == all.contains("fee(x, 2)") {
        true => Vec::new(),
        false => vec![("t1".to_owned(), "TypeError: fee()".to_owned())],
    };
    let mut bed = Bed::new(&files, model)
        .tests(fits)
        .with(|task| task.driver = Driver::Single);
    let handle = bed.start();
    let is_second = |event: &Event| match event {
        Event::ProposalApplied { symbols, .. } => symbols[0].name == "total",
        _ => false,
    };
    until(&handle, is_second).await;
    let typed = bed.read("shop.py").replace("fee(x, 2)", "fee(x, 2) + 0");
    std::fs::write(bed.path("shop.py"), &typed).unwrap();
    handle.cancel();
    handle.finished().await;
    let events = handle.log.events();
    assert_eq!(taken_back(&events).expect("tried").2, 2, "{events:#?}");
    assert_eq!(bed.read("shop.py"), typed);
    assert!(bed.read("fees.py").contains("rate"), "its caller passes it");
}

/// Returns the test results: if a module imports a missing name, the test file cannot be imported,
/// and the output names no test.
fn import_fails(all: &str) -> Vec<(String, String)> {
    let output = "Traceback (most recent call last):\n  File \"test_a.py\", line 1, in <module>\n    from b import h\n  \
                  File \"b.py\", line 1, in <module>\n    from a import gone\n\
                  ImportError: cannot import name 'gone' from 'a' (a.py)";
    match all.contains("import gone") {
        true => vec![("(the test command)".to_owned(), output.to_owned())],
        false => Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn import_error_in_the_tests_starts_the_owner_of_the_module_with_the_wrong_import() {
    let breaks = json!({"reason": "r", "source": "from a import gone\n\n\ndef h():\n    return 1\n", "symbol": "b.py", "insist": true});
    let mends = json!({"reason": "r", "hunks": [{"old": "from a import gone\n\n\n", "new": ""}]});
    let model = Scripted::native()
        .on("agent a.py::f", [call("propose", breaks)])
        .on("agent b.py::", [call("propose", mends)])
        .always("agent", finish("not mine"));
    let mut bed = Bed::new(&[("a.py", TWO), ("test_a.py", "from b import h\n")], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Ask)
        .tests(import_fails);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("b.py"), "def h():\n    return 1\n");
}

/// The agent limit excludes the owner of the failing function, so the agent that made the change is
/// started again.
#[tokio::test(start_paused = true)]
async fn agent_that_broke_a_test_is_started_again_if_the_failing_function_can_get_no_agent() {
    let breaks = json!({"reason": "r", "source": "def f(x):\n    return None\n", "insist": true});
    let model = Scripted::native().on(
        "agent a.py::f",
        [call("propose", breaks), whole("def f(x):\n    return x\n")],
    );
    let in_g = "  File \"a.py\", line 6, in g\nTypeError: None";
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Ask)
        .with(|task| task.limits.agents = 1)
        .tests(move |all| match all.contains("return None") {
            true => vec![("t1".to_owned(), in_g.to_owned())],
            false => Vec::new(),
        });
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("a.py"), TWO);
    let told =
        |event: &Event| matches!(event, Event::NotWoken { symbol, .. } if symbol == "a.py::g");
    assert!(events.iter().any(told), "{events:#?}");
}

/// The test command runs tests without the change, and runs no test with the change.
#[tokio::test(start_paused = true)]
async fn change_that_prevents_all_tests_from_running_is_not_applied() {
    let model = Scripted::native().on(
        "agent a.py::f",
        [
            whole("def f(x):\n    return None\n"),
            finish("no other way"),
        ],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(|all| match all.contains("None") {
            true => vec![(
                NO_START.to_owned(),
                "ImportError while loading conftest".to_owned(),
            )],
            false => Vec::new(),
        });
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), TWO, "{events:#?}");
    let prompts = bed.model.prompts("agent a.py::f");
    assert!(
        prompts[1].contains("ImportError while loading conftest"),
        "{}",
        prompts[1]
    );
}

/// The change passes its checks. It fails a test together with a text that the user types while the
/// change is applied.
#[tokio::test(start_paused = true)]
async fn change_that_a_model_accepted_for_the_user_is_reverted_if_a_test_fails_at_the_end() {
    let model = Scripted::native()
        .on(
            "agent a.py::f",
            [whole("def f(x):\n    return x + 1\n"), finish("not mine")],
        )
        .always("agent", finish("not mine"))
        .always("proxy", say("ACCEPT"));
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Proxy)
        .tests(
            |all| match all.contains("x + 1") && all.contains("# mine") {
                true => vec![("t1".to_owned(), "AssertionError".to_owned())],
                false => Vec::new(),
            },
        );
    let typed = format!("# mine\n{TWO}");
    *bed.editor.typing.lock().unwrap() = Some(("a.py".to_owned(), typed.clone()));
    let events = bed.run().await;
    assert!(
        matches!(stop(&events), StopReason::TestsFail { .. }),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), typed, "{events:#?}");
    let (diff, _, left) = taken_back(&events).expect("it was taken back");
    assert!(diff.contains("+    return x + 1"), "{diff}");
    assert_eq!(left, 0);
}

/// A module with two functions that have the same body, so that a diff may match the lines of one
/// with the other.
const TWINS: &str = "def f(x):\n    y = x + 1\n    return y\n\n\ndef g(x):\n    y = x + 1\n    return y\n\n\nclass K:\n    A = 1\n";
const LOGS: &str = "    log = \"agent\"\n";

/// Returns the text with `f` moved below `g`.
fn moved_down(text: &str) -> String {
    let function = &text[..text.find("def g").unwrap()];
    let rest = text.replacen(function, "", 1);
    rest.replacen("class K", &format!("{function}class K"), 1)
}

#[tokio::test(start_paused = true)]
async fn revert_keeps_and_reports_code_that_the_user_moved_or_edited() {
    let touched = |text: &str| text.replace("\"agent\"", "\"agent\"  # mine");
    for typed in [moved_down as fn(&str) -> String, touched] {
        let source = TWINS[..TWINS.find("\n\n").unwrap() + 1]
            .replace("    return y", &format!("{LOGS}    return y"));
        let change = json!({"reason": "r", "source": source, "more": true});
        let model = Scripted::native().on("agent a.py::f", [call("propose", change), Line::Hang]);
        let mut bed = Bed::new(&[("a.py", TWINS)], model).begin(&["a.py::f"]);
        let handle = bed.start();
        until(&handle, |event| {
            matches!(event, Event::ProposalApplied { .. })
        })
        .await;
        let mine = typed(&bed.read("a.py"));
        assert!(mine.contains(LOGS.trim_end()), "{mine}");
        std::fs::write(bed.path("a.py"), &mine).unwrap();
        handle.cancel();
        handle.finished().await;
        let events = handle.log.events();
        assert_eq!(taken_back(&events).expect("told").2, 1, "{events:#?}");
        assert_eq!(bed.read("a.py"), mine);
        let is_undone = |event: &Event| matches!(event, Event::ProposalUndone { .. });
        assert!(!events.iter().any(is_undone), "{events:#?}");
        let Some(Event::RunFinished {
            applied, ending, ..
        }) = events.last()
        else {
            panic!("{events:#?}");
        };
        assert_eq!(applied.len(), 1);
        let headline = &ending.as_ref().unwrap().headline;
        assert!(headline.contains("changed a.py::f"), "{headline}");
        assert!(!headline.contains("taken back"), "{headline}");
        // A later undo by the user reports the same conflict.
        let undone = handle.undo(None).await;
        assert!(
            matches!(undone, Err(UndoError::Conflict { .. })),
            "{undone:?}"
        );
        assert_eq!(bed.read("a.py"), mine);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_run_are_kept_if_the_users_own_edit_causes_a_problem() {
    let mut model =
        Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    model.latency = std::time::Duration::from_secs(5);
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Auto);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    let typed = TWO.replace("f(x) + 1", "f(x) + KKK");
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    handle.finished().await;
    let events = handle.log.events();
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(taken_back(&events), None);
    assert_eq!(
        bed.read("a.py"),
        typed.replace("return x\n", "return x + 1\n")
    );
}

/// Another run that relies on the first proposal.
struct ReliesOnFirst;

#[async_trait::async_trait]
impl OtherRuns for ReliesOnFirst {
    async fn rely_on(
        &self,
        events: Vec<Event>,
        chosen: &std::collections::BTreeSet<ProposalId>,
        _: &std::sync::Arc<starling_index::Index>,
    ) -> Vec<(ProposalId, String)> {
        let is_applied = |event: &Event| matches!(event, Event::ProposalApplied { .. });
        assert!(events.iter().any(is_applied));
        let first = chosen.iter().take(1);
        first
            .map(|id| (*id, "run 2 relies on it".to_owned()))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn change_on_which_another_run_relies_is_kept_and_told_in_the_headline() {
    let mut bed = bed(Approval::Auto);
    bed.others = Some(std::sync::Arc::new(ReliesOnFirst));
    let events = bed.run().await;
    assert!(bed.read("a.py").contains("x + 1"), "{events:#?}");
    assert_eq!(taken_back(&events).expect("told").2, 1);
    let Some(Event::RunFinished {
        ending: Some(ending),
        ..
    }) = events.last()
    else {
        panic!("{events:#?}");
    };
    let told = ", kept: run 2 relies on it";
    assert!(ending.headline.contains(told), "{}", ending.headline);
}

#[tokio::test(start_paused = true)]
async fn undo_keeps_a_change_on_which_another_run_relies_unless_it_is_named() {
    let mut bed = bed(Approval::Ask);
    bed.others = Some(std::sync::Arc::new(ReliesOnFirst));
    let handle = bed.start();
    handle.finished().await;
    let error = handle.undo(None).await.unwrap_err();
    assert_eq!(error.to_string(), "run 2 relies on it");
    assert!(bed.read("a.py").contains("x + 1"));
    let named = handle.undo(Some(ProposalId(1))).await;
    assert_eq!(named.unwrap(), [ProposalId(1)]);
    assert_eq!(bed.read("a.py"), TWO);
}

//! The flow of a task, from request to accepted edit.

use serde_json::json;
use starling_core::{Approval, Driver};

use super::bed::*;
use crate::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

#[tokio::test(start_paused = true)]
async fn change_of_one_symbol_takes_one_agent_and_no_messages() {
    let model = Scripted::native()
        .on("scout", [wake(&["a.py::f"])])
        .on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(
        bed.read("a.py"),
        TWO.replace("return x\n", "return x + 1\n")
    );
    assert_eq!(bed.model.calls(), 2);
    let Some(Event::RunFinished {
        applied,
        spent,
        diff,
        ..
    }) = events.last()
    else {
        panic!()
    };
    assert_eq!(applied, &["a.py::f".parse().unwrap()]);
    assert_eq!((spent.calls, spent.agents, spent.messages), (2, 1, 0));
    assert!(diff.contains("+    return x + 1"), "{diff}");
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_symbol_cannot_change_another_symbol() {
    let foreign = call(
        "propose",
        json!({"reason": "r", "symbol": "a.py::g", "source": "def g(x):\n    return 2\n"}),
    );
    let finish = call("finish", json!({"summary": "g must change"}));
    let model = Scripted::native().on("agent a.py::f", [foreign, finish]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert!(
        malformed(&events)[0].contains("request_change"),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), TWO);
    assert!(matches!(stop(&events), StopReason::NothingChanged { .. }));
}

#[tokio::test(start_paused = true)]
async fn change_request_starts_the_agent_of_the_other_symbol() {
    let request = call(
        "request_change",
        json!({"symbol": "a.py::g", "reason": "it must add 2"}),
    );
    let finish = call("finish", json!({"summary": "g does it"}));
    let model = Scripted::native()
        .on("agent a.py::f", [request, finish])
        .on("agent a.py::g", [whole("def g(x):\n    return f(x) + 2\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled);
    assert!(bed.read("a.py").ends_with("return f(x) + 2\n"));
    assert!(bed.model.prompts("agent a.py::g")[0].contains("it must add 2"));
}

#[tokio::test(start_paused = true)]
async fn question_is_answered_by_an_agent_without_write_tools() {
    let question = || {
        call(
            "ask",
            json!({"symbol": "a.py::g", "question": "What does it return?"}),
        )
    };
    let finish = || call("finish", json!({"summary": "known"}));
    let model = Scripted::native()
        .on("agent a.py::f", [question(), finish()])
        .on("answer a.py::g", [say("One more than f.")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    let answers: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Answered { text, source, .. } => Some((text.as_str(), *source)),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [("One more than f.", AnswerSource::Model)]);
    let asked = bed.model.asked.lock().unwrap();
    let answering = asked
        .iter()
        .find(|request| request.conversation.starts_with("answer"))
        .unwrap();
    assert!(
        answering
            .tools
            .iter()
            .all(|tool| !["propose", "intent", "request_change"].contains(&tool.name.as_str()))
    );
}

#[tokio::test(start_paused = true)]
async fn proposal_that_breaks_a_test_is_returned_with_the_failure() {
    let model = Scripted::native().on(
        "agent a.py::f",
        [
            whole("def f(x):\n    return None\n"),
            whole("def f(x):\n    return x + 1\n"),
        ],
    );
    let judge = |all: &str| {
        if all.contains("return None") {
            vec![("t1".to_owned(), "f gave None".to_owned())]
        } else {
            vec![]
        }
    };
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(judge);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled);
    assert_eq!(*bed.editor.writes.lock().unwrap(), 1);
    assert!(bed.model.prompts("agent a.py::f")[1].contains("f gave None"));
}

#[tokio::test(start_paused = true)]
async fn agent_revises_a_proposal_that_the_proxy_user_rejected() {
    let model = Scripted::native()
        .on(
            "agent a.py::f",
            [
                whole("def f(x):\n    return 3\n"),
                whole("def f(x):\n    return x + 1\n"),
            ],
        )
        .on("proxy", [say("REJECT: it ignores x")])
        .on("proxy a.py::f #2", [say("ACCEPT")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Proxy);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.model.prompts("agent a.py::f")[1].contains("it ignores x"));
    assert!(bed.read("a.py").contains("return x + 1"));
}

#[tokio::test(start_paused = true)]
async fn text_typed_elsewhere_is_kept_and_text_typed_in_the_changed_line_is_a_conflict() {
    let typed = TWO.replace("f(x) + 1", "f(x) + 100");
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    *bed.editor.typing.lock().unwrap() = Some(("a.py".into(), typed.clone()));
    bed.run().await;
    assert_eq!(
        bed.read("a.py"),
        typed.replace("return x\n", "return x + 1\n")
    );

    let typed = TWO.replace("    return x\n", "    return x * 7\n");
    let again = || whole("def f(x):\n    return x * 7 + 1\n");
    let model = Scripted::native().on(
        "agent a.py::f",
        [whole("def f(x):\n    return x + 1\n"), again()],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    *bed.editor.typing.lock().unwrap() = Some(("a.py".into(), typed));
    let events = bed.run().await;
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::ProposalConflicted { .. })),
        "{events:#?}"
    );
    assert!(bed.model.prompts("agent a.py::f")[1].contains("return x * 7"));
    assert!(bed.read("a.py").contains("return x * 7 + 1"));
}

#[tokio::test(start_paused = true)]
async fn undo_reverts_only_the_agents_own_change() {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    handle.finished().await;
    let typed = bed.read("a.py").replace("f(x) + 1", "f(x) + 100");
    bed.editor.typing.lock().unwrap().take();
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    let undone = handle.undo(None).await.unwrap();
    assert_eq!(undone.len(), 1);
    assert_eq!(bed.read("a.py"), TWO.replace("f(x) + 1", "f(x) + 100"));
    assert!(matches!(
        handle.undo(Some(ProposalId(1))).await,
        Err(UndoError::Unknown(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn single_agent_changes_several_symbols() {
    let first = call(
        "propose",
        json!({"reason": "r", "symbol": "a.py::f", "source": "def f(x):\n    return x + 1\n", "more": true}),
    );
    let second = call(
        "propose",
        json!({"reason": "r", "symbol": "a.py::g", "hunks": [{"old": "f(x) + 1", "new": "f(x)"}]}),
    );
    let model = Scripted::native().on("solo", [first, second]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).with(|task| task.driver = Driver::Single);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(
        bed.read("a.py"),
        "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return f(x)\n"
    );
}

#[tokio::test(start_paused = true)]
async fn cancelled_run_makes_no_further_model_call() {
    let model = Scripted::native().always("agent a.py::f", Line::Hang);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    tokio::task::yield_now().await;
    handle.cancel();
    let before = bed.model.calls();
    handle.finished().await;
    assert_eq!(stop(&handle.log.events()), StopReason::Cancelled);
    assert_eq!(bed.model.calls(), before);
}

#[tokio::test(start_paused = true)]
async fn eight_symbols_are_changed_in_parallel() {
    let time = async |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("a.py::f{at}")).collect();
        let source: String = (0..count)
            .map(|at| format!("def f{at}():\n    return 0\n\n\n"))
            .collect();
        let mut model = Scripted::native();
        model.latency = std::time::Duration::from_secs(2);
        model = model.on(
            "scout",
            [wake(&names.iter().map(String::as_str).collect::<Vec<_>>())],
        );
        for at in 0..count {
            model = model.on(
                &format!("agent a.py::f{at}"),
                [whole(&format!("def f{at}():\n    return {}\n", at + 1))],
            );
        }
        let mut bed = Bed::new(&[("a.py", &source)], model);
        let began = tokio::time::Instant::now();
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        let text = bed.read("a.py");
        assert!(
            (0..count).all(|at| text.contains(&format!("return {}\n", at + 1))),
            "{text}"
        );
        began.elapsed().as_secs_f64()
    };
    let (one, eight) = (time(1).await, time(8).await);
    assert!(eight < 1.5 * one, "one {one} s, eight {eight} s");
}

fn wake_with_draft(old: &str, new: &str) -> Line {
    let pick =
        json!({"symbol": "a.py::f", "why": "x is one short", "hunks": [{"old": old, "new": new}]});
    call("wake", json!({ "symbols": [pick] }))
}

#[tokio::test(start_paused = true)]
async fn draft_of_the_scout_is_proposed_without_a_call_to_the_owner() {
    let model = Scripted::native().on("scout", [wake_with_draft("return x", "return x + 1")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(
        bed.read("a.py"),
        TWO.replace("return x\n", "return x + 1\n")
    );
    assert_eq!(bed.model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn refused_draft_of_the_scout_is_passed_to_the_owner() {
    let model = Scripted::native()
        .on("scout", [wake_with_draft("return y", "return x + 1")])
        .on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.model.prompts("agent a.py::f")[0].contains("It came back"));
    assert!(bed.read("a.py").contains("return x + 1"));
}

#[tokio::test(start_paused = true)]
async fn small_model_gets_the_failing_test_and_a_different_prompt_at_each_attempt() {
    let wrong = "```python\nimport os\n\ndef f(x):\n    return 7\n```";
    let right = "```python\nLIMIT = 3\n\n\ndef f(x):\n    return x + 1\n\n\ndef g(x):\n    return None\n```";
    let model = Scripted::small().on("agent a.py::f", [say(wrong), say(wrong), say(right)]);
    let judge = |all: &str| {
        let failed = (
            "t1".to_owned(),
            "    self.assertEqual(f(1), 2)\nAssertionError: 1 != 2".to_owned(),
        );
        if all.contains("return x + 1") {
            vec![]
        } else {
            vec![failed]
        }
    };
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .tests(judge)
        .with(|task| task.text = "The tests fail.".into());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(
        bed.read("a.py"),
        TWO.replace("return x\n", "return x + 1\n"),
        "its neighbours stay"
    );
    let prompts = bed.model.prompts("agent a.py::f");
    assert!(
        prompts[0].contains("`f(1)` must be `2`, but it is `1`."),
        "{}",
        prompts[0]
    );
    assert!(prompts[0].contains("The tests fail."), "{}", prompts[0]);
    // The second prompt asks for an explanation first. The third request repeats the first prompt
    // at a higher temperature.
    assert!(
        prompts[1].contains("Say in one sentence which line is wrong"),
        "{}",
        prompts[1]
    );
    assert_eq!(prompts[0], prompts[2]);
    let asked = bed.model.asked.lock().unwrap();
    let temperatures: Vec<f32> = asked.iter().map(|request| request.temperature).collect();
    assert_eq!(temperatures, [0.0, 0.0, 0.8]);
    let beginnings: Vec<&str> = asked
        .iter()
        .map(|request| request.beginning.as_str())
        .collect();
    assert_eq!(beginnings, ["```python\ndef f", "", "```python\ndef f"]);
    let again = |why: &String| why.starts_with("the same answer again: ") && why.len() > 24;
    assert!(malformed(&events).iter().any(again), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn diff_of_a_run_excludes_text_that_the_user_typed() {
    let typed = TWO.replace("f(x) + 1", "f(x) + 100");
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    *bed.editor.typing.lock().unwrap() = Some(("a.py".into(), typed));
    let events = bed.run().await;
    let Some(Event::RunFinished { diff, .. }) = events.last() else {
        panic!()
    };
    assert!(diff.contains("+    return x + 1"), "{diff}");
    assert!(
        !diff
            .lines()
            .any(|line| line.starts_with(['+', '-']) && line.contains("100")),
        "{diff}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_outside_the_workspace() {
    for path in ["../b.py::", "/tmp/b.py::", "x/../../b.py::"] {
        let outside = call(
            "propose",
            json!({"reason": "r", "symbol": path, "source": "x = 1\n"}),
        );
        let finish = call("finish", json!({"summary": "refused"}));
        let model = Scripted::native().on("solo", [outside, finish]);
        let mut bed = Bed::new(&[("a.py", TWO)], model).with(|task| task.driver = Driver::Single);
        let events = bed.run().await;
        assert!(
            malformed(&events).iter().any(|why| why.contains("outside")),
            "{path}: {events:#?}"
        );
    }
}

/// The agent and the user change different words of one line. Neither intended the combined result.
#[tokio::test(start_paused = true)]
async fn proposal_conflicts_with_a_user_edit_of_the_same_line() {
    let sum = "def f(x, y):\n    return x + y\n";
    let read = call("read", json!({"symbols": ["a.py::f"]}));
    let hunk = json!({"reason": "r", "hunks": [{"old": "+ y", "new": "+ 2 * y"}]});
    let mut model = Scripted::native().on(
        "agent a.py::f",
        [read, call("propose", hunk), finish("it is the user's")],
    );
    model.latency = std::time::Duration::from_secs(5);
    let mut bed = Bed::new(&[("a.py", sum)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::ToolUsed { .. })).await;
    let typed = sum.replace("return x", "return 3 * x");
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    handle.finished().await;
    let why = malformed(&handle.log.events());
    assert!(
        why.iter()
            .any(|why| why.contains("both sides changed line 2")),
        "{why:?}"
    );
    assert_eq!(bed.read("a.py"), typed);
}

//! Agents that work with outdated information: the user edited a file after the agent saw it, or
//! sent a message before the run had started.

use starling_core::{Approval, Driver, ModelError};
use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::*;

#[tokio::test(start_paused = true)]
async fn later_proposal_keeps_text_that_was_typed_while_an_earlier_one_was_applied() {
    let before = "def f(x):\n    a = 1\n    b = 1\n    return a + b\n";
    let typed = "def f(x):\n    a = 1\n    b = 1\n    # mine\n    return a + b\n";
    let first = json!({"reason": "one", "hunks": [{"old": "a = 1", "new": "a = 2"}], "more": true});
    let source = "def f(x):\n    a = 2\n    b = 2\n    return a + b\n";
    let second = json!({"reason": "two", "source": source, "intended_losses": true});
    let model = Scripted::native().on(
        "agent a.py::f",
        [call("propose", first), call("propose", second)],
    );
    let mut bed = Bed::new(&[("a.py", before)], model).begin(&["a.py::f"]);
    *bed.editor.typing.lock().unwrap() = Some(("a.py".to_owned(), typed.to_owned()));
    let events = bed.run().await;
    let after = "def f(x):\n    a = 2\n    b = 2\n    # mine\n    return a + b\n";
    assert_eq!(bed.read("a.py"), after, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn agent_started_by_an_early_user_message_knows_the_task_and_delays_the_end_of_the_run() {
    let files = [(
        "a.py",
        "def f(x):\n    return 1\n\n\ndef g(x):\n    return 1\n",
    )];
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return 2\n")]);
    let mut bed = Bed::new(&files, model)
        .begin(&["a.py::g"])
        .with(|task| task.limits.agents = 1)
        .tests(|_| Vec::new());
    *bed.test_times.lock().unwrap() = vec![Duration::from_secs(10)].into();
    let handle = bed.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    handle.steer(Some("a.py::f".parse().unwrap()), "return 2".into());
    handle.finished().await;
    let events = handle.log.events();
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let prompts = bed.model.prompts("agent a.py::f");
    assert!(prompts[0].contains("Make it right."), "{}", prompts[0]);
}

const F_AND_G: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n";

/// Runs the single agent. It sees `f`, and the user then changes `f` while the model generates. The
/// first proposal, a change of `g`, cannot be applied, so the run reads the file again. Then the
/// agent proposes these changes of `f`. Returns the prompts and the final text.
async fn single_agent_proposes(
    typed: &str,
    changes: impl IntoIterator<Item = serde_json::Value>,
) -> (Vec<String>, String) {
    let nonsense =
        json!({"symbol": "a.py::g", "reason": "r", "hunks": [{"old": "no", "new": "1"}]});
    let changes = changes.into_iter().map(|change| call("propose", change));
    let lines = std::iter::once(call("propose", nonsense)).chain(changes);
    let mut model = Scripted::native().on("solo", lines);
    model.latency = Duration::from_secs(5);
    let mut bed = Bed::new(&[("a.py", F_AND_G)], model).with(|task| {
        task.driver = Driver::Single;
        task.text = "Let `f` return x + 1.".into();
    });
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    std::fs::write(bed.path("a.py"), replace_body_of_f(typed)).unwrap();
    handle.finished().await;
    let prompts = bed.model.prompts("solo");
    let shown = "def f(x):\n    return x\n";
    assert!(prompts[0].contains(shown), "{}", prompts[0]);
    (prompts, bed.read("a.py"))
}

fn replace_body_of_f(body: &str) -> String {
    F_AND_G.replacen("    return x\n", body, 1)
}

#[tokio::test(start_paused = true)]
async fn single_agent_keeps_text_that_was_typed_after_the_function_was_shown() {
    let source = "def f(x):\n    return x + 1\n";
    let blind =
        json!({"symbol": "a.py::f", "reason": "r", "source": source, "intended_losses": true});
    let (_, text) = single_agent_proposes("    # mine\n    return x\n", [blind]).await;
    let expected = replace_body_of_f("    # mine\n    return x + 1\n");
    assert_eq!(text, expected);
}

#[tokio::test(start_paused = true)]
async fn single_agent_changes_a_typed_line_only_after_the_line_was_shown() {
    let hunk = |new: &str| {
        let hunks = json!([{"old": "return x", "new": new}]);
        json!({"symbol": "a.py::f", "reason": "r", "hunks": hunks})
    };
    let changes = [hunk("return x + 1"), hunk("return 1 + x")];
    let (prompts, text) = single_agent_proposes("    return x  # mine\n", changes).await;
    let told = "The user changed the same place meanwhile";
    assert!(prompts[2].contains(told), "{}", prompts[2]);
    assert!(prompts[2].contains("return x  # mine"), "{}", prompts[2]);
    assert_eq!(text, replace_body_of_f("    return 1 + x  # mine\n"));
}

#[tokio::test(start_paused = true)]
async fn text_that_the_user_types_while_the_agent_runs_tests_is_kept_by_its_next_proposal() {
    let look = Line::Call(vec![
        ("read".to_owned(), json!({"symbols": ["a.py::f"]})),
        ("run_tests".to_owned(), json!({"select": []})),
    ]);
    let source = "def f(x):\n    return x + 1\n";
    let blind = json!({"reason": "r", "source": source, "intended_losses": true});
    let mut model = Scripted::native().on("agent a.py::f", [look, call("propose", blind)]);
    model.latency = Duration::from_secs(5);
    let mut bed = Bed::new(&[("a.py", F_AND_G)], model)
        .begin(&["a.py::f"])
        .tests(|_| Vec::new());
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    let typed = replace_body_of_f("    # mine\n    return x\n");
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    let unsaved = [("a.py".to_owned(), typed)].into();
    *bed.editor.unsaved.lock().unwrap() = unsaved;
    handle.finished().await;
    let expected = replace_body_of_f("    # mine\n    return x + 1\n");
    assert_eq!(bed.read("a.py"), expected, "{:#?}", handle.log.events());
}

/// Runs the owners of the module and of `f`, which both see the original module. The proposal of
/// the owner of `f` is applied while the other owner writes its proposal. Returns the prompts of
/// the module's owner and the final text.
async fn module_after_f(f: Line, module: Line) -> (Vec<String>, String) {
    let slow = call("run_tests", json!({"select": []}));
    let model = Scripted::native()
        .on("agent a.py::f", [f])
        .on("agent a.py::", [slow, module, finish("so be it")]);
    let text = format!("import os\n\n\n{F_AND_G}\n\nprint(os.name)\n");
    let mut bed = Bed::new(&[("a.py", &text)], model)
        .begin(&["a.py::f", "a.py::"])
        .tests(|_| Vec::new());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(malformed(&events), [""; 0]);
    (bed.model.prompts("agent a.py::"), bed.read("a.py"))
}

#[tokio::test(start_paused = true)]
async fn imports_added_by_two_owners_are_both_kept() {
    let f = json!({
        "reason": "r", "source": "def f(x):\n    return re.escape(x)\n", "imports": ["import re"],
    });
    let hunks = json!([{"old": "import os\n", "new": "import os\nimport sys\n"}]);
    let print = json!({"old": "print(os.name)", "new": "print(os.name, sys.path)"});
    let hunks = json!([hunks[0], print]);
    let module = json!({"reason": "r", "hunks": hunks});
    let (prompts, text) = module_after_f(call("propose", f), call("propose", module)).await;
    // The owner of `f` got one prompt, and the owner of the module got two.
    assert_eq!(prompts.len(), 3, "{}", prompts.join("\n"));
    for line in ["import re\n", "import sys\n", "import os\n", "sys.path)"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Runs the single agent. The user changes `f` when the run begins. The agent then reads `f` with
/// the call `look`, and proposes another change of the same line. Returns the events and the final
/// text.
async fn second_change_of_f_after(look: Line) -> (Vec<Event>, String) {
    let first =
        json!({"symbol": "a.py::f", "reason": "one", "source": "def f(x):\n    return x + 1\n"});
    let hunks = json!([{"old": "return x + 1", "new": "return x + 2"}]);
    let second = json!({"symbol": "a.py::f", "reason": "two", "hunks": hunks});
    let model = Scripted::native().on("solo", [look, call("propose", second), finish("done")]);
    let mut bed = Bed::new(&[("a.py", F_AND_G)], model).with(|task| {
        task.driver = Driver::Single;
        task.text = "Let it return more.".into();
    });
    // The user makes the change that `first` describes.
    let typed = first["source"].as_str().unwrap();
    let text = F_AND_G.replacen("def f(x):\n    return x\n", typed, 1);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::RunStarted { .. })).await;
    std::fs::write(bed.path("a.py"), &text).unwrap();
    let unsaved = [("a.py".to_owned(), text)].into();
    *bed.editor.unsaved.lock().unwrap() = unsaved;
    handle.finished().await;
    (handle.log.events(), bed.read("a.py"))
}

#[tokio::test(start_paused = true)]
async fn agent_may_change_a_symbol_after_any_tool_result_that_shows_its_whole_text() {
    let range = |target: &str| call("read", json!({"symbols": [target]}));
    for look in [
        range("a.py::f"),
        range("a.py:1-2"),
        range("a.py:1-5"),
        range("a.py"),
        call("definition", json!({"name": "f"})),
    ] {
        let (events, text) = second_change_of_f_after(look).await;
        assert!(text.contains("return x + 2"), "{text}\n{events:#?}");
    }
}

/// No prompt has shown `b.py::other`. The agent first proposes a new text for it, and then a change
/// of one line. The user changed the file on disk before the run read it.
#[tokio::test(start_paused = true)]
async fn text_typed_into_a_file_before_it_was_first_read_is_kept() {
    let source = "def other():\n    yield 2\n";
    let blind = json!({
        "symbol": "b.py::other", "reason": "r", "source": source, "intended_losses": true,
    });
    let hunks = json!([{"old": "yield 1", "new": "yield 2"}]);
    let second = json!({"symbol": "b.py::other", "reason": "r", "hunks": hunks});
    let lines = [call("propose", blind), call("propose", second)];
    let mut model = Scripted::native().on("solo", lines);
    model.latency = Duration::from_secs(5);
    let files = [("a.py", F_AND_G), ("b.py", "def other():\n    yield 1\n")];
    let mut bed = Bed::new(&files, model).with(|task| {
        task.driver = Driver::Single;
        task.text = "Let `f` add one.".into();
    });
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    std::fs::write(bed.path("b.py"), "def other():\n    # mine\n    yield 1\n").unwrap();
    handle.finished().await;
    let prompts = bed.model.prompts("solo");
    assert!(!prompts[0].contains("other"), "{}", prompts[0]);
    let after = "def other():\n    # mine\n    yield 2\n";
    assert_eq!(bed.read("b.py"), after, "{:#?}", handle.log.events());
    assert!(prompts[1].contains("# mine"), "{}", prompts[1]);
}

/// Runs a task in which the user sends a message to an agent while the scout selects symbols. The
/// scout's model fails while the agent's proposal waits for review. Returns the events and the
/// final text.
async fn scout_fails_beside_a_review(agent: Line) -> (Vec<Event>, String) {
    let broken = ModelError::Unavailable {
        model: "scripted".into(),
        message: "gone".into(),
    };
    let look = call("search", json!({"query": "f"}));
    let mut model = Scripted::native()
        .on("scout", [look, Line::Fail(broken)])
        .on("agent a.py::f", [agent]);
    model.latency = Duration::from_secs(5);
    let mut bed = Bed::new(&[("a.py", F_AND_G)], model).with(|task| task.approval = Approval::Ask);
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(100);
    let handle = bed.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    handle.steer(Some("a.py::f".parse().unwrap()), "return 2".into());
    handle.finished().await;
    (handle.log.events(), bed.read("a.py"))
}

#[tokio::test(start_paused = true)]
async fn proposal_under_review_can_be_accepted_after_the_scout_failed() {
    let (events, text) = scout_fails_beside_a_review(whole("def f(x):\n    return 2\n")).await;
    assert!(text.contains("return 2"), "{text}\n{events:#?}");
    let ends = |event: &&Event| matches!(event, Event::AgentFinished { .. });
    assert_eq!(events.iter().filter(ends).count(), 1, "{events:#?}");
    // The run ends as failed: the scout did not finish its selection, so nothing shows that the
    // task is done.
    let StopReason::Failed { error } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert!(error.contains("gone"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn run_fails_if_the_scout_fails_and_no_agent_changes_anything() {
    let (events, text) = scout_fails_beside_a_review(finish("nothing to do")).await;
    assert_eq!(text, F_AND_G);
    assert!(
        matches!(stop(&events), StopReason::Failed { .. }),
        "{events:#?}"
    );
}

/// The user changes one function of a script after the run began, while the scout writes hunks for
/// another function.
#[tokio::test(start_paused = true)]
async fn hunks_fit_a_file_that_changed_elsewhere_before_an_agent_saw_it() {
    let page = "function f(x) {\n  return x > 0;\n}\n\nfunction g(x) {\n  return x;\n}\n";
    let hunk = json!({"old": "return x > 0;", "new": "return x >= 0;"});
    let pick = json!({"symbol": "page.js::", "why": "0 counts", "hunks": [hunk]});
    let mut model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": [pick]}))])
        .always("agent", finish("nothing"));
    model.latency = Duration::from_secs(5);
    let files = [("page.js", page), ("a.py", "A = 1\n")];
    let mut bed = Bed::new(&files, model);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    let typed = page.replace("return x;", "return -x;");
    std::fs::write(bed.path("page.js"), &typed).unwrap();
    handle.finished().await;
    let expected = typed.replace("x > 0", "x >= 0");
    assert_eq!(bed.read("page.js"), expected);
    let events = handle.log.events();
    let is_refused = |event: &Event| matches!(event, Event::ProposalRefused { .. });
    assert!(!events.iter().any(is_refused), "{events:#?}");
}

/// The file changes on disk after the run began and before it was first read. The scout, which was
/// shown the later text, writes a hunk for a part of a line while the user types at the end of that
/// line.
#[tokio::test(start_paused = true)]
async fn hunk_of_the_scout_is_not_merged_into_a_line_that_the_user_changed_meanwhile() {
    let hunk = json!({"old": "return x", "new": "return x + 1"});
    let pick = json!({"symbol": "a.py::f", "why": "one more", "hunks": [hunk]});
    let mut model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": [pick]}))])
        .always("agent", finish("nothing"));
    model.latency = Duration::from_secs(5);
    let text = format!("{F_AND_G}# a line at the end\n");
    let typed = text.replacen("return x\n", "return x  # mine\n", 1);
    let mut bed = Bed::new(&[("a.py", F_AND_G)], model)
        .with(|task| task.text = "Let `f` return one more.".into());
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::RunStarted { .. })).await;
    std::fs::write(bed.path("a.py"), &text).unwrap();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    handle.finished().await;
    let prompts = bed.model.prompts("scout");
    assert!(prompts[0].contains("return x"), "{}", prompts[0]);
    assert!(!prompts[0].contains("mine"), "{}", prompts[0]);
    assert_eq!(bed.read("a.py"), typed, "{:#?}", handle.log.events());
}

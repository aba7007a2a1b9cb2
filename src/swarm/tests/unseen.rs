//! What an agent has not seen: the user's text meanwhile, and the task before the run begins.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::swarm::*;

#[tokio::test(start_paused = true)]
async fn a_later_proposal_keeps_what_the_user_typed_while_an_earlier_one_was_applied() {
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
async fn an_agent_that_is_steered_before_the_run_begins_knows_the_task_and_keeps_the_run_alive() {
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

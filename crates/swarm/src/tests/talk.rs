//! Messages during a run: change requests from one agent to another and their results, and messages
//! of the user to agents.

use serde_json::json;

use super::bed::*;
use crate::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

fn request_g(reason: &str) -> Line {
    call(
        "request_change",
        json!({"symbol": "a.py::g", "reason": reason}),
    )
}

fn read_g(at: u32) -> Line {
    call("read", json!({"symbols": [format!("a.py:{at}-{at}")]}))
}

fn begun(name: &'static str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::TurnStarted { conversation, .. } if conversation == name)
}

#[tokio::test(start_paused = true)]
async fn declined_change_request_is_reported_to_the_requesting_agent() {
    let mut model = Scripted::native()
        .on(
            "agent a.py::f",
            [request_g("add 2"), read_g(1), read_g(2), finish("so be it")],
        )
        .on("agent a.py::g", [finish("1 is right")]);
    model.latency = std::time::Duration::from_secs(1);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    let declined = Event::ChangeDeclined {
        by: ActorId::Agent("a.py::g".parse().unwrap()),
        to: ActorId::Agent("a.py::f".parse().unwrap()),
        reason: "1 is right".into(),
    };
    assert!(events.contains(&declined), "{events:#?}");
    let last = bed.model.prompts("agent a.py::f").pop().unwrap();
    assert!(
        last.contains("a.py::g declines the change that you asked for: 1 is right"),
        "{last}"
    );
    assert!(!last.contains("The user says"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn fulfilled_change_request_is_not_reported_as_declined() {
    let model = Scripted::native()
        .on("agent a.py::f", [request_g("add 2"), finish("g does it")])
        .on("agent a.py::g", [whole("def g(x):\n    return f(x) + 2\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, Event::ChangeDeclined { .. }))
    );
    let to_f = bed.model.prompts("agent a.py::f").pop().unwrap();
    assert!(to_f.contains("Sent to the owner of a.py::g"), "{to_f}");
}

#[tokio::test(start_paused = true)]
async fn invalid_change_request_is_refused_with_the_reason() {
    let wanted = |symbol: &str, reason: &str| {
        call(
            "request_change",
            json!({"symbol": symbol, "reason": reason}),
        )
    };
    let model = Scripted::native().on(
        "agent a.py::f",
        [
            wanted("a.py::f", "better"),
            wanted("a.py::h", "better"),
            wanted("a.py::g", " "),
            wanted("g", "better"),
            finish("nothing"),
        ],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    let told = bed.model.prompts("agent a.py::f").pop().unwrap();
    for answer in [
        "a.py::f is your own: propose the change yourself.",
        "Not sent: There is no symbol a.py::h.",
        "Say in `reason` what must hold afterwards, and why.",
    ] {
        assert!(told.contains(answer), "{answer}: {told}");
    }
    assert_eq!(woken(&events).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn change_request_is_refused_if_the_message_limit_is_reached() {
    let model = Scripted::native().on("agent a.py::f", [request_g("add 2"), finish("nothing")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.limits.messages = 0);
    let events = bed.run().await;
    assert_eq!(woken(&events).len(), 1);
    let told = bed.model.prompts("agent a.py::f").pop().unwrap();
    assert!(told.contains("the budget is used up: 0 messages"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn change_request_is_refused_if_it_would_start_more_agents_than_allowed() {
    let model = Scripted::native().on("agent a.py::f", [request_g("add 2"), finish("nothing")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.limits.agents = 1);
    let events = bed.run().await;
    assert_eq!(woken(&events).len(), 1);
    let told = bed.model.prompts("agent a.py::f").pop().unwrap();
    assert!(
        told.contains("Not sent: the budget is used up: 1 agent"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn user_message_to_one_agent_is_in_its_next_prompt() {
    let mut model = Scripted::native()
        .on(
            "agent a.py::f",
            [read_g(1), whole("def f(x):\n    return x + 3\n")],
        )
        .on("agent a.py::g", [read_g(1), finish("nothing")]);
    model.latency = std::time::Duration::from_secs(1);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f", "a.py::g"]);
    let handle = bed.start();
    until(&handle, begun("agent a.py::f")).await;
    handle.steer(Some("a.py::f".parse().unwrap()), "Add three.".into());
    handle.finished().await;
    let prompts = bed.model.prompts("agent a.py::f");
    assert!(!prompts[0].contains("Add three."));
    assert!(
        prompts[1].ends_with("The user says: Add three.\n")
            || prompts[1].contains("The user says: Add three.")
    );
    assert!(!bed.model.prompts("agent a.py::g")[1].contains("Add three."));
    let told = |event: &Event| matches!(event, Event::Steered { to: Some(_), text } if text == "Add three.");
    assert!(handle.log.events().iter().any(told));
}

#[tokio::test(start_paused = true)]
async fn user_message_to_all_agents_reaches_every_working_agent() {
    let mut model = Scripted::native()
        .on("agent a.py::f", [read_g(1), finish("nothing")])
        .on("agent a.py::g", [read_g(1), finish("nothing")]);
    model.latency = std::time::Duration::from_secs(1);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f", "a.py::g"]);
    let handle = bed.start();
    until(&handle, begun("agent a.py::g")).await;
    handle.steer(None, "Hurry.".into());
    handle.finished().await;
    for name in ["agent a.py::f", "agent a.py::g"] {
        assert!(
            bed.model.prompts(name)[1].contains("The user says: Hurry."),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn user_message_during_an_agents_last_turn_starts_the_agent_again() {
    let mut model = Scripted::native().on(
        "agent a.py::f",
        [finish("nothing"), whole("def f(x):\n    return x + 3\n")],
    );
    model.latency = std::time::Duration::from_secs(1);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    until(&handle, begun("agent a.py::f")).await;
    handle.steer(Some("a.py::f".parse().unwrap()), "Add three.".into());
    handle.finished().await;
    assert_eq!(stop(&handle.log.events()), StopReason::Settled);
    assert!(bed.read("a.py").contains("return x + 3"));
}

#[tokio::test(start_paused = true)]
async fn user_message_to_an_unknown_symbol_is_refused_with_the_reason() {
    let mut model = Scripted::native().on("agent a.py::f", [finish("nothing")]);
    model.latency = std::time::Duration::from_secs(1);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    until(&handle, begun("agent a.py::f")).await;
    let why = handle.why_nobody_owns(&"a.py::h".parse().unwrap()).unwrap();
    assert!(why.contains("There is no symbol a.py::h"), "{why}");
    assert_eq!(handle.why_nobody_owns(&"a.py::f".parse().unwrap()), None);
    handle.steer(Some("a.py::h".parse().unwrap()), "Add three.".into());
    handle.finished().await;
    let events = handle.log.events();
    assert!(
        malformed(&events)[0].contains("There is no symbol a.py::h"),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn stored_answer_of_an_agent_is_not_reused_after_its_symbol_changed() {
    let ask = || {
        call(
            "ask",
            json!({"symbol": "a.py::g", "question": "What is added?"}),
        )
    };
    let change = whole("def g(x):\n    return f(x) + 2\n");
    let mut model = Scripted::native()
        .on(
            "agent a.py::f",
            [ask(), ask(), read_g(1), read_g(2), ask(), finish("known")],
        )
        .on("agent a.py::g", [read_g(1), read_g(2), read_g(3), change])
        .on("answer a.py::g", [say("One."), say("Two.")]);
    model.latency = std::time::Duration::from_secs(1);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f", "a.py::g"]);
    let events = bed.run().await;
    let answer = |event: &Event| match event {
        Event::Answered { text, source, .. } => Some((text.clone(), *source)),
        _ => None,
    };
    let answers: Vec<_> = events.iter().filter_map(answer).collect();
    let (one, two) = ("One.".to_owned(), "Two.".to_owned());
    let expected = [
        (one.clone(), AnswerSource::Model),
        (one, AnswerSource::Memory),
        (two, AnswerSource::Model),
    ];
    assert_eq!(answers, expected);
}

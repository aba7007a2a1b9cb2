//! Ownership: which agents may change nested symbols.

use serde_json::json;

use super::bed::*;
use crate::*;

const NEST: &str = "RATE = 2\n\n\nclass C:\n    limit = 1\n\n    def m(self):\n        return 1\n\n\ndef f():\n    return C().m()\n";

fn hunk(symbol: &str, old: &str, new: &str) -> Line {
    call(
        "propose",
        json!({"reason": "r", "symbol": symbol, "hunks": [{"old": old, "new": new}]}),
    )
}

/// Runs the agent that owns `own`, which makes the proposal `line`, while other agents own the
/// symbols in `others`.
async fn proposes(own: &str, line: Line, others: &[&str]) -> (Bed, Vec<Event>) {
    let mut model = Scripted::native().on(&format!("agent {own}"), [line, finish("done")]);
    for other in others {
        model = model.on(&format!("agent {other}"), [finish("nothing")]);
    }
    let begin: Vec<&str> = [own].iter().chain(others).copied().collect();
    let mut bed = Bed::new(&[("a.py", NEST)], model).begin(&begin);
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_class_may_change_its_methods() {
    let line = hunk("a.py::C.m", "return 1", "return 2");
    let (bed, events) = proposes("a.py::C", line, &[]).await;
    assert!(bed.read("a.py").contains("return 2"), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_class_cannot_change_a_method_with_its_own_owner() {
    let source = "class C:\n    limit = 1\n\n    def m(self):\n        return 2\n";
    let line = call("propose", json!({"reason": "r", "source": source}));
    let (bed, events) = proposes("a.py::C", line, &["a.py::C.m"]).await;
    let why = "a.py::C.m belongs to the owner of a.py::C.m: use `request_change`";
    assert!(
        malformed(&events).iter().any(|what| what.contains(why)),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), NEST);
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_method_cannot_change_its_class() {
    let line = hunk("a.py::C", "limit = 1", "limit = 2");
    let (bed, events) = proposes("a.py::C.m", line, &[]).await;
    assert!(
        malformed(&events)[0].contains("a.py::C is not your symbol"),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), NEST);
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_module_can_change_only_the_module_body() {
    let (bed, events) = proposes("a.py::", hunk("a.py::", "RATE = 2", "RATE = 3"), &[]).await;
    assert!(bed.read("a.py").starts_with("RATE = 3"), "{events:#?}");
    let (bed, events) = proposes("a.py::", hunk("a.py::", "return 1", "return 2"), &[]).await;
    assert!(
        malformed(&events)[0].contains("is not your symbol"),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), NEST);
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_module_may_send_its_statements_or_the_whole_file() {
    let expected = NEST.replace("RATE = 2", "RATE = 3");
    for source in ["RATE = 3\n", &expected] {
        let (bed, events) = proposes("a.py::", whole(source), &["a.py::f"]).await;
        assert_eq!(bed.read("a.py"), expected, "{events:#?}");
    }
    let other = expected.replace("return 1", "return 2");
    let (bed, events) = proposes("a.py::", whole(&other), &[]).await;
    assert!(
        malformed(&events)[0].contains("is not your symbol"),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), NEST);
}

#[tokio::test(start_paused = true)]
async fn change_request_for_a_method_goes_to_the_owner_of_its_class() {
    let request = call(
        "request_change",
        json!({"symbol": "a.py::C.m", "reason": "give 2"}),
    );
    let model = Scripted::native()
        .on("agent a.py::f", [request, finish("C does it")])
        .on(
            "agent a.py::C",
            [finish("nothing"), hunk("a.py::C.m", "return 1", "return 2")],
        );
    let mut bed = Bed::new(&[("a.py", NEST)], model).begin(&["a.py::C", "a.py::f"]);
    let events = bed.run().await;
    assert!(bed.read("a.py").contains("return 2"), "{events:#?}");
    assert_eq!(
        woken(&events).pop().unwrap(),
        (
            "a.py::C".to_owned(),
            Cause::ChangeRequest {
                from: ActorId::Agent("a.py::f".parse().unwrap()),
                reason: "a.py::C.m: give 2".into()
            }
        )
    );
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_function_may_add_another_function_next_to_it() {
    let add = json!({"reason": "r", "add": [{"source": "def n():\n    return 3\n"}]});
    let (bed, events) = proposes("a.py::f", call("propose", add), &[]).await;
    assert!(
        bed.read("a.py").ends_with("\n\n\ndef n():\n    return 3\n"),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn owner_may_delete_only_its_own_symbol() {
    let delete = |name: &str| call("propose", json!({"reason": "r", "delete": [name]}));
    let (bed, events) = proposes("a.py::f", delete("a.py::f"), &[]).await;
    assert!(!bed.read("a.py").contains("def f()"), "{events:#?}");
    let (bed, events) = proposes("a.py::f", delete("a.py::C"), &[]).await;
    assert!(
        malformed(&events)[0].contains("is not your symbol"),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), NEST);
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_function_cannot_change_the_module_body_along_with_an_allowed_change() {
    let add = json!([{"source": "def n():\n    return 3\n", "beside": "f"}]);
    for (field, value) in [
        ("imports", json!(["import os"])),
        ("add", add),
        ("delete", json!(["f"])),
    ] {
        let mut change = json!({
            "reason": "r",
            "symbol": "a.py::",
            "hunks": [{"old": "RATE = 2", "new": "RATE = 3"}],
        });
        change[field] = value;
        let (bed, events) = proposes("a.py::f", call("propose", change), &[]).await;
        assert!(
            malformed(&events)[0].contains("a.py:: is not your symbol"),
            "{field}: {events:#?}"
        );
        assert_eq!(bed.read("a.py"), NEST);
    }
}

#[tokio::test(start_paused = true)]
async fn user_message_to_a_method_goes_to_the_owner_of_its_class() {
    let mut model = Scripted::native().on("agent a.py::C", [finish("nothing"), finish("still")]);
    model.latency = std::time::Duration::from_secs(1);
    let mut bed = Bed::new(&[("a.py", NEST)], model).begin(&["a.py::C"]);
    let handle = bed.start();
    let mut log = handle.log.follow();
    while let Some(record) = log.next().await {
        if matches!(record.record, Record::Event(Event::TurnStarted { .. })) {
            break;
        }
    }
    handle.steer(Some("a.py::C.m".parse().unwrap()), "give 2".into());
    handle.finished().await;
    let events = handle.log.events();
    let steered = Cause::Steered {
        text: "a.py::C.m: give 2".into(),
    };
    let woken = woken(&events);
    assert_eq!(woken.last().unwrap(), &("a.py::C".to_owned(), steered));
    assert!(
        woken.iter().all(|(agent, _)| agent == "a.py::C"),
        "{woken:?}"
    );
}

/// The scout (the agent that selects symbols) may draft a change that also deletes other symbols.
/// The deletions become one proposal of the module, so that they cannot conflict.
#[tokio::test(start_paused = true)]
async fn draft_of_the_scout_may_delete_functions_of_the_module() {
    let text = "RATE = 2\n\n\ndef f():\n    return RATE\n\n\ndef g():\n    return f()\n\n\nX = 1\n";
    let hunks = json!([{"old": "X = 1\n", "new": "X = 2\n"}]);
    for (symbol, hunks, left) in [
        ("a.py::", json!([]), "RATE = 2\n\n\nX = 1\n"),
        ("a.py::", hunks, "RATE = 2\n\n\nX = 2\n"),
        ("a.py::g", json!([]), "RATE = 2\n\n\nX = 1\n"),
    ] {
        let pick =
            json!({"symbol": symbol, "why": "dead", "hunks": hunks, "delete": ["a.py::f", "g"]});
        let model = Scripted::native()
            .on("scout", [call("wake", json!({"symbols": [pick]}))])
            .always("agent", finish("nothing"));
        let mut bed = Bed::new(&[("a.py", text)], model)
            .with(|task| task.text = "Remove what is dead in a.py.".to_owned());
        let events = bed.run().await;
        assert!(malformed(&events).is_empty(), "{:#?}", malformed(&events));
        assert_eq!(bed.read("a.py").trim_start(), left, "{symbol} {events:#?}");
        assert_eq!(owners_of_proposals(&events), ["a.py::"], "{symbol}");
    }
}

fn owners_of_proposals(events: &[Event]) -> Vec<String> {
    let owners = events.iter().filter_map(|event| match event {
        Event::ProposalMade { agent, .. } => agent.symbol().map(ToString::to_string),
        _ => None,
    });
    owners.collect()
}

/// If another pick is for one of the deleted symbols, that symbol belongs to its own owner.
#[tokio::test(start_paused = true)]
async fn draft_of_the_scout_deletes_a_picked_symbol_by_its_owner() {
    let text = "RATE = 2\n\n\ndef f():\n    return RATE\n\n\nX = 1\n\n\ndef g():\n    return 3\n";
    let picks = json!([
        {"symbol": "a.py::", "why": "dead", "delete": ["f", "g"]},
        {"symbol": "a.py::f", "why": "look at it"},
    ]);
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": picks}))])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&[("a.py", text)], model)
        .with(|task| task.text = "Remove what is dead in a.py.".to_owned());
    let events = bed.run().await;
    assert!(malformed(&events).is_empty(), "{:#?}", malformed(&events));
    assert!(!bed.read("a.py").contains("def"), "{events:#?}");
    let mut owners = owners_of_proposals(&events);
    owners.sort();
    assert_eq!(owners, ["a.py::f", "a.py::g"]);
}

/// Two functions move, of which one uses the other. Their deletions are one entry of the scout.
#[tokio::test(start_paused = true)]
async fn two_functions_of_which_one_uses_the_other_move_together() {
    let line = "def line(star):\n    return star\n";
    let table = "def table(stars):\n    return [line(star) for star in stars]\n";
    let head = "def text(x):\n    return x\n";
    let code = format!("{head}\n\n{line}\n\n{table}");
    let user = "from report import table\n\n\ndef main():\n    return table([])\n";
    let picks = json!([
        {"symbol": "report.py::line", "why": "moves", "delete": ["report.py::line", "report.py::table"]},
        {"symbol": "tables.py::", "why": "new home", "source": format!("{line}\n\n{table}")},
    ]);
    let hunks = json!([{"old": "from report import", "new": "from tables import"}]);
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": picks}))])
        .on(
            "agent main.py::",
            [call("propose", json!({"reason": "r", "hunks": hunks}))],
        )
        .always("agent", finish("nothing"));
    let files = [("report.py", code.as_str()), ("main.py", user)];
    let mut bed = Bed::new(&files, model)
        .tests(|_| Vec::new())
        .with(|task| task.text = "Move line and table from report.py to tables.py.".to_owned());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("report.py"), head, "{events:#?}");
    assert!(bed.read("main.py").contains("from tables import table"));
    let undone = events
        .iter()
        .any(|event| matches!(event, Event::ProposalUndone { .. }));
    assert!(!undone && malformed(&events).is_empty(), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_module_may_delete_a_class_with_its_methods() {
    let line = call(
        "propose",
        json!({"reason": "r", "delete": ["a.py::C", "a.py::f"]}),
    );
    let (bed, events) = proposes("a.py::", line, &[]).await;
    assert_eq!(bed.read("a.py"), "RATE = 2\n", "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn class_with_another_owner_at_work_in_a_method_is_not_deleted() {
    let line = call("propose", json!({"reason": "r", "delete": ["a.py::C"]}));
    let (bed, events) = proposes("a.py::", line, &["a.py::C.m"]).await;
    let why =
        "a.py::C cannot be deleted while a.py::C.m has an owner at work: use `request_change`";
    assert!(
        malformed(&events).iter().any(|what| what.contains(why)),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), NEST);
}

#[tokio::test(start_paused = true)]
async fn source_may_define_new_symbols_beside_the_own_one() {
    let source = "def f():\n    return g()\n\n\ndef g():\n    return C().m()\n";
    let line = call("propose", json!({"reason": "r", "source": source}));
    let (bed, events) = proposes("a.py::f", line, &[]).await;
    let expected = NEST.replace("def f():\n    return C().m()\n", source);
    assert_eq!(bed.read("a.py"), expected, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn source_that_also_defines_another_owners_symbol_is_refused_with_its_name() {
    let source = "class C:\n    limit = 2\n\n    def m(self):\n        return 1\n\n\ndef f():\n    return 0\n";
    let line = call("propose", json!({"reason": "r", "source": source}));
    let (bed, events) = proposes("a.py::f", line, &[]).await;
    assert!(
        malformed(&events)[0].contains("a.py::C is not your symbol: use `request_change`"),
        "{events:#?}"
    );
    assert_eq!(bed.read("a.py"), NEST);
}

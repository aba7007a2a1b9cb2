//! Every refusal is reported to the user, and to the agent that sent the refused call before that
//! agent ends.

use serde_json::json;

use super::bed::*;
use crate::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

/// Combines the calls of several replies into one reply.
fn together(lines: Vec<Line>) -> Line {
    let calls = lines.into_iter().flat_map(|line| match line {
        Line::Call(calls) => calls,
        _ => Vec::new(),
    });
    Line::Call(calls.collect())
}

fn misfit() -> Line {
    call(
        "propose",
        json!({"reason": "r", "hunks": [{"old": "return y", "new": "return 2"}]}),
    )
}

fn good() -> Line {
    whole("def f(x):\n    return x + 1\n")
}

fn not_woken(events: &[Event]) -> Vec<(String, ActorId, String)> {
    let refused = |event: &Event| match event {
        Event::NotWoken { symbol, from, why } => Some((symbol.clone(), from.clone(), why.clone())),
        _ => None,
    };
    events.iter().filter_map(refused).collect()
}

fn summary(events: &[Event]) -> String {
    match events.last() {
        Some(Event::RunFinished { summary, .. }) => summary.clone(),
        other => panic!("the last event is {other:?}"),
    }
}

async fn one_agent(lines: Vec<Line>) -> (Bed, Vec<Event>) {
    let model = Scripted::native().on("agent a.py::f", lines);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    (bed, events)
}

fn shown(events: &[Event]) -> Vec<String> {
    let shown = |event: &Event| match event {
        Event::ProposalRefused { shown, .. } => shown.clone(),
        _ => None,
    };
    events.iter().filter_map(shown).collect()
}

#[tokio::test(start_paused = true)]
async fn refusal_for_an_unowned_symbol_does_not_claim_that_it_has_an_owner() {
    let other = json!({"symbol": "a.py::g", "source": "def g(x):\n    return 1\n", "reason": "r"});
    let (_, events) = one_agent(vec![call("propose", other), finish("no")]).await;
    let shown = shown(&events);
    let expected = "a.py::g is another symbol than a.py::f";
    assert!(shown[0].starts_with(expected), "{shown:?}");
    assert!(shown[0].contains("request_change"), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn refusal_names_the_test_command_in_single_parentheses() {
    let broken = |all: &str| match all.contains("x + 1") {
        true => Vec::new(),
        false => vec![("(the test command)".to_owned(), "no\n".to_owned())],
    };
    let model = Scripted::native().on(
        "agent a.py::f",
        [whole("def f(x):\n    return 7\n"), finish("no")],
    );
    let mut bed = Bed::new(&[("a.py", "def f(x):\n    return x + 1\n")], model)
        .begin(&["a.py::f"])
        .tests(broken);
    let events = bed.run().await;
    let expected = "tests that passed before fail with it: the test command";
    assert_eq!(shown(&events), [expected]);
    let told = &malformed(&events)[0];
    assert!(
        told.contains("fail with this change (the test command)."),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn finish_in_the_same_reply_as_a_refused_proposal_is_ignored() {
    let (bed, events) = one_agent(vec![together(vec![misfit(), finish("done")]), good()]).await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("a.py").contains("return x + 1"));
    let told = &bed.model.prompts("agent a.py::f")[1];
    assert!(told.contains("return y"), "{told}");
    assert!(told.contains("Not finished: something"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn refused_proposal_before_an_accepted_one_is_reported_to_the_agent() {
    let (bed, events) = one_agent(vec![together(vec![misfit(), good()]), finish("as it is")]).await;
    assert!(bed.read("a.py").contains("return x + 1"), "{events:#?}");
    let told = &bed.model.prompts("agent a.py::f")[1];
    assert!(told.contains("return y"), "{told}");
    let changed = |event: &Event| {
        matches!(
            event,
            Event::AgentFinished {
                outcome: AgentOutcome::Changed,
                ..
            }
        )
    };
    assert!(events.iter().any(changed), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn finish_in_the_same_reply_as_an_unreadable_call_is_ignored() {
    let broken = Line::Call(vec![
        ("propose".to_owned(), json!({"source": 3})),
        ("finish".to_owned(), json!({"summary": "done"})),
    ]);
    let (bed, events) = one_agent(vec![broken, good()]).await;
    assert!(bed.read("a.py").contains("return x + 1"), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn refused_change_request_is_reported_before_the_agent_ends() {
    let request = call(
        "request_change",
        json!({"symbol": "a.py::g", "reason": "too"}),
    );
    let model = Scripted::native().on(
        "agent a.py::f",
        [together(vec![good(), request]), finish("so be it")],
    );
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f"])
        .with(|task| task.limits.agents = 1);
    let events = bed.run().await;
    let told = &bed.model.prompts("agent a.py::f")[1];
    assert!(
        told.contains("Not sent: the budget is used up: 1 agent"),
        "{told}"
    );
    assert_eq!(not_woken(&events)[0].0, "a.py::g");
    let expected = "; the owner of a.py::g was not woken";
    assert!(summary(&events).ends_with(expected), "{}", summary(&events));
}

#[tokio::test(start_paused = true)]
async fn repeated_call_is_refused_until_the_workspace_changes() {
    let read = || call("read", json!({"symbols": ["a.py::g"]}));
    let more = json!({"reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true});
    let fourth = together(vec![read(), call("propose", more)]);
    let lines = vec![read(), read(), read(), fourth, read(), finish("seen")];
    let (bed, events) = one_agent(lines).await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let prompts = bed.model.prompts("agent a.py::f");
    assert!(!prompts[2].contains("You called this"), "{}", prompts[2]);
    assert!(
        prompts[3].trim_end().ends_with("It is not answered again."),
        "{}",
        prompts[3]
    );
    assert!(prompts[4].contains("another repetition ends your work"));
    assert!(
        bed.read("a.py").contains("return x + 1"),
        "the other call of that turn"
    );
    assert!(
        prompts[5].trim_end().ends_with("return f(x) + 1"),
        "answered anew: {}",
        prompts[5]
    );
}

fn pick(symbol: &str, source: &str) -> serde_json::Value {
    json!({"symbol": symbol, "why": "scripted", "source": source})
}

async fn picks(picks: Vec<serde_json::Value>, agents: u32) -> (Bed, Vec<Event>) {
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": picks}))])
        .always("agent", finish("nothing to add"));
    let mut bed = Bed::new(&[("a.py", TWO)], model).with(|task| task.limits.agents = agents);
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn symbols_that_the_scout_changes_itself_do_not_count_against_the_agent_limit() {
    let drafts = vec![
        pick("a.py::f", "def f(x):\n    return x + 1\n"),
        pick("a.py::g", "def g(x):\n    return f(x) + 2\n"),
    ];
    let (bed, events) = picks(drafts, 1).await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let text = bed.read("a.py");
    assert!(
        text.contains("x + 1") && text.contains("f(x) + 2"),
        "{text}"
    );
    assert_eq!(not_woken(&events), []);
}

#[tokio::test(start_paused = true)]
async fn refused_draft_of_the_scout_is_reported_if_the_agent_limit_excludes_its_owner() {
    let drafts = vec![
        json!({"symbol": "a.py::f", "why": "takes the room"}),
        json!({"symbol": "a.py::g", "why": "w", "hunks": [{"old": "nowhere", "new": "x"}]}),
    ];
    let (_, events) = picks(drafts, 1).await;
    let refused = not_woken(&events);
    assert_eq!(
        (refused[0].0.as_str(), &refused[0].1),
        ("a.py::g", &ActorId::Scout)
    );
    let why = &refused[0].2;
    assert!(
        why.starts_with("its draft came back, and the budget"),
        "{why}"
    );
    assert!(refused[0].2.contains("1 agent"), "{refused:?}");
    assert!(summary(&events).contains("the owner of a.py::g was not woken"));
}

#[tokio::test(start_paused = true)]
async fn selected_symbols_beyond_the_agent_limit_are_reported() {
    let wanted = ["a.py::f", "a.py::g"];
    let wanted = wanted.map(|symbol| json!({"symbol": symbol, "why": "w"}));
    let (_, events) = picks(wanted.into(), 1).await;
    assert_eq!(not_woken(&events)[0].0, "a.py::g", "{events:#?}");
    assert!(summary(&events).contains("the owner of a.py::g was not woken"));
}

#[tokio::test(start_paused = true)]
async fn new_file_that_the_scout_selects_is_created_although_another_selected_symbol_is_unknown() {
    for name in ["b.py::", "b.py"] {
        let wanted = vec![
            pick("a.py::f", "def f(x):\n    return x + 1\n"),
            pick(name, "def h():\n    return 1\n"),
            pick("a.py::gone", "def gone():\n    return 1\n"),
        ];
        let (bed, events) = picks(wanted, 4).await;
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        assert_eq!(bed.read("b.py"), "def h():\n    return 1\n");
        assert_eq!(not_woken(&events)[0].0, "a.py::gone");
    }
}

#[tokio::test(start_paused = true)]
async fn prompt_of_a_new_files_owner_says_that_the_file_does_not_exist() {
    let model = Scripted::native()
        .on("scout", [wake(&["b.py::"])])
        .on("agent b.py::", [whole("def h():\n    return 1\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("b.py"), "def h():\n    return 1\n");
    let prompt = &bed.model.prompts("agent b.py::")[0];
    assert!(
        prompt.contains("the file b.py, which is not there yet"),
        "{prompt}"
    );
}

const SHOP: &str = "def ship(lot, crates):\n    return crates\n\n\ndef cmd(args):\n    return ship(args.lot, args.crates)\n";
const FIXTURE: &str = "from shop import ship\n\n\ndef stocked():\n    return ship(1, 2)\n";

/// Runs a task whose scout selects two owners: one changes the signature of `ship`, and the other
/// one adapts the caller `cmd`. Nothing adapts the caller in `stock.py`.
async fn signature_with_one_caller(approval: starling_core::Approval) -> (Bed, Vec<Event>) {
    let hunks = |symbol: &str, old: &str, new: &str| {
        let hunks = json!([{"old": old, "new": new}]);
        call(
            "propose",
            json!({"reason": "r", "symbol": symbol, "hunks": hunks}),
        )
    };
    let caller = hunks("shop.py::cmd", "args.crates)", "crates=args.crates)");
    let owner = hunks("shop.py::ship", "lot, crates", "lot, *, crates");
    let model = Scripted::native()
        .on("agent shop.py::ship", [owner])
        .on("agent shop.py::cmd", [caller])
        .always("agent", finish("nothing to change here"))
        .always("scout", wake(&["shop.py::ship", "shop.py::cmd"]));
    let files = [("shop.py", SHOP), ("stock.py", FIXTURE)];
    let mut bed = Bed::new(&files, model).with(|task| {
        task.text = "`ship` must take crates as a keyword-only argument".to_owned();
        task.approval = approval;
    });
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn adapted_caller_is_reverted_if_the_signature_change_that_the_task_names_is_refused() {
    let (bed, events) = signature_with_one_caller(starling_core::Approval::Auto).await;
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let ending = ending.clone().unwrap();
    assert_eq!(ending.proof, Proof::NotDone, "{}", ending.headline);
    let why = "Not done: shop.py::ship, which the task names, was not changed: it brings a new problem: \
               stock.py:5: ";
    assert!(ending.headline.starts_with(why), "{}", ending.headline);
    assert_eq!(bed.read("shop.py"), SHOP);
    let shown = shown(&events).join("\n");
    assert!(!shown.contains("shop.py:6"), "{shown}");
}

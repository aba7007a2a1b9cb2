//! Runs whose model misbehaves. Each run ends after a limited number of model calls and within five
//! seconds of simulated time, names the problem in an event, and changes no file.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::{Approval, ModelError, ModelNotice};
use starling_models::resilient::{ResilientModel, RetryPolicy};

const SOURCE: &str = "import functools\n\n\n@functools.cache\ndef f(x):\n    # why x\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

/// A finished run with a misbehaving model: its events, and the number of model calls.
struct MisbehavingRun {
    events: Vec<Event>,
    calls: usize,
}

impl MisbehavingRun {
    fn told(&self, what: &str) -> bool {
        malformed(&self.events)
            .iter()
            .any(|text| text.contains(what))
    }

    fn gave_up(&self, what: &str) -> bool {
        self.events.iter().any(|event| match event {
            Event::AgentFinished {
                outcome: AgentOutcome::GaveUp { why },
                ..
            } => why.contains(what),
            _ => false,
        })
    }
}

async fn end_of(mut bed: Bed) -> MisbehavingRun {
    let events = tokio::time::timeout(Duration::from_secs(5), bed.run())
        .await
        .expect("the run ends within 5 s of paused clock");
    assert_eq!(bed.read("a.py"), SOURCE, "the tree is untouched");
    MisbehavingRun {
        events,
        calls: bed.model.calls(),
    }
}

/// Runs the agent of `f` with this scripted model, and returns the finished run.
async fn misbehave(model: Scripted) -> MisbehavingRun {
    end_of(Bed::new(&[("a.py", SOURCE)], model).begin(&["a.py::f"])).await
}

fn ask_g() -> Line {
    call(
        "ask",
        json!({"symbol": "a.py::g", "question": "What do you need?"}),
    )
}

#[tokio::test(start_paused = true)]
async fn agent_that_asks_the_same_question_again_and_again_gives_up() {
    let model = Scripted::native()
        .always("agent", ask_g())
        .always("answer", say("x"));
    let ended = misbehave(model).await;
    assert!(
        ended.gave_up("`, and nothing changed since"),
        "{:#?}",
        ended.events
    );
    assert!(ended.calls <= 6, "{}", ended.calls);
    let sources: Vec<_> = ended
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Answered { source, .. } => Some(*source),
            _ => None,
        })
        .collect();
    assert_eq!(
        sources,
        [
            AnswerSource::Model,
            AnswerSource::Memory,
            AnswerSource::Memory
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn agent_that_asks_new_questions_forever_gives_up() {
    let model = Scripted::native()
        .always(
            "agent",
            Line::Numbered(
                "ask".into(),
                r#"{"symbol": "a.py::g", "question": "What is {n}?"}"#.into(),
            ),
        )
        .always("answer", say("x"));
    let ended = misbehave(model).await;
    assert!(
        ended.gave_up("12 turns without an end"),
        "{:#?}",
        ended.events
    );
    assert!(ended.calls <= 24, "{}", ended.calls);
}

#[tokio::test(start_paused = true)]
async fn agent_that_never_answers_the_question_of_another_agent_is_stopped_after_four_turns() {
    let model = Scripted::native()
        .on(
            "agent",
            [ask_g(), call("finish", json!({"summary": "no answer"}))],
        )
        .always(
            "answer",
            Line::Numbered("search".into(), r#"{"query": "{n}"}"#.into()),
        );
    let ended = misbehave(model).await;
    let refused = |event: &Event| matches!(event, Event::Answered { source: AnswerSource::Refused, text, .. } if text.contains("no answer within 4 turns"));
    assert!(ended.events.iter().any(refused), "{:#?}", ended.events);
    assert_eq!(ended.calls, 6);
}

#[tokio::test(start_paused = true)]
async fn agents_that_question_each_other_in_a_cycle_are_stopped() {
    let model = Scripted::native()
        .on(
            "agent a.py::f",
            [ask_g(), call("finish", json!({"summary": "known"}))],
        )
        .on(
            "answer a.py::g",
            [
                call("ask", json!({"symbol": "a.py::f", "question": "And you?"})),
                say("nothing"),
            ],
        );
    let ended = misbehave(model).await;
    let cycle = |event: &Event| {
        matches!(
            event,
            Event::Answered {
                source: AnswerSource::Cycle,
                ..
            }
        )
    };
    assert!(ended.events.iter().any(cycle), "{:#?}", ended.events);
    assert_eq!(ended.calls, 4);
}

#[tokio::test(start_paused = true)]
async fn owners_that_ask_each_other_at_the_same_time_do_not_deadlock() {
    let ask_f = call("ask", json!({"symbol": "a.py::f", "question": "And you?"}));
    let finish = || call("finish", json!({"summary": "known"}));
    let mut model = Scripted::native()
        .on("agent a.py::f", [ask_g(), finish()])
        .on("agent a.py::g", [ask_f, finish()])
        .always("answer", say("nothing"));
    model.latency = Duration::from_millis(200);
    let ended = end_of(Bed::new(&[("a.py", SOURCE)], model).begin(&["a.py::f", "a.py::g"])).await;
    let answered = |event: &&Event| {
        matches!(
            event,
            Event::Answered {
                source: AnswerSource::Model,
                ..
            }
        )
    };
    assert_eq!(ended.events.iter().filter(answered).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn proposal_for_a_symbol_that_the_agent_does_not_own_is_refused() {
    let foreign = call(
        "propose",
        json!({"reason": "r", "symbol": "a.py::g", "source": "def g(x):\n    return 2\n"}),
    );
    let ended = misbehave(Scripted::native().always("agent", foreign)).await;
    assert!(
        ended.told("a.py::g is not your symbol: use `request_change`"),
        "{:#?}",
        ended.events
    );
    assert!(ended.calls <= 4, "{}", ended.calls);
}

#[tokio::test(start_paused = true)]
async fn proposal_for_the_symbol_of_another_agent_is_refused() {
    let foreign = call(
        "propose",
        json!({"reason": "r", "symbol": "a.py::g", "source": "def g(x):\n    return 2\n"}),
    );
    let finish = call("finish", json!({"summary": "done"}));
    let model = Scripted::native()
        .on("agent a.py::f", [foreign, finish])
        .always("agent a.py::g", Line::Hang);
    let bed = Bed::new(&[("a.py", SOURCE)], model)
        .begin(&["a.py::f", "a.py::g"])
        .with(|task| task.limits.seconds = 3);
    let ended = end_of(bed).await;
    assert!(
        ended.told("belongs to the owner of a.py::g"),
        "{:#?}",
        ended.events
    );
    assert_eq!(
        stop(&ended.events),
        StopReason::LedgerEmpty {
            what: "3 seconds".into()
        }
    );
}

#[tokio::test(start_paused = true)]
async fn proposal_that_drops_a_decorator_and_a_comment_is_refused() {
    let ended =
        misbehave(Scripted::native().always("agent", whole("def f(x):\n    return x + 1\n"))).await;
    assert!(
        ended.told("the decorator `@functools.cache`"),
        "{:#?}",
        ended.events
    );
    assert!(ended.told("the comment `# why x`"), "{:#?}", ended.events);
    assert!(ended.calls <= 4, "{}", ended.calls);
}

#[tokio::test(start_paused = true)]
async fn proposal_with_a_placeholder_for_omitted_code_is_refused() {
    let source = "@functools.cache\ndef f(x):\n    # why x\n    # ... rest unchanged\n";
    let ended = misbehave(Scripted::native().always("agent", whole(source))).await;
    assert!(
        ended.told("stands for code left out"),
        "{:#?}",
        ended.events
    );
}

#[tokio::test(start_paused = true)]
async fn proposal_with_a_syntax_error_is_refused() {
    let source = "@functools.cache\ndef f(x):\n    # why x\n    return (x\n";
    let ended = misbehave(Scripted::native().always("agent", whole(source))).await;
    assert!(!malformed(&ended.events).is_empty(), "{:#?}", ended.events);
}

#[tokio::test(start_paused = true)]
async fn agent_with_three_unusable_replies_gives_up() {
    for text in ["", "   \n", "lorem ipsum \u{0}\u{fffd}", "```"] {
        let ended = misbehave(Scripted::native().always("agent", say(text))).await;
        assert!(
            ended.gave_up("3 unusable replies in a row"),
            "{text:?}: {:#?}",
            ended.events
        );
        assert!(
            !ended.gave_up("Call `"),
            "words for the model are no reason: {:#?}",
            ended.events
        );
        assert_eq!(ended.calls, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn unusable_replies_of_the_scout_end_the_run() {
    let model = Scripted::native().always("scout", say("hm"));
    let ended = end_of(Bed::new(&[("a.py", SOURCE)], model)).await;
    assert!(ended.told("Call `wake`"), "{:#?}", ended.events);
    assert!(ended.calls <= 8, "{}", ended.calls);
}

#[tokio::test(start_paused = true)]
async fn proposal_is_not_applied_if_the_model_that_reviews_it_gives_no_clear_decision() {
    let good = "@functools.cache\ndef f(x):\n    # why x\n    return x + 1\n";
    let model = Scripted::native()
        .always("agent", whole(good))
        .always("proxy", say("perhaps"));
    let bed = Bed::new(&[("a.py", SOURCE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Proxy);
    let ended = end_of(bed).await;
    assert!(
        ended.told("Call `decide` exactly once."),
        "{:#?}",
        ended.events
    );
    assert!(ended.calls <= 12, "{}", ended.calls);
}

#[tokio::test(start_paused = true)]
async fn tool_call_with_broken_json_is_reported() {
    let model = Scripted::native().always(
        "agent",
        Line::Raw("propose".into(), r#"{"source": "def f("#.into()),
    );
    let ended = misbehave(model).await;
    assert!(
        ended.told("The arguments of `propose` cannot be read"),
        "{:#?}",
        ended.events
    );
    assert_eq!(ended.calls, 3);
}

#[tokio::test(start_paused = true)]
async fn call_of_an_unknown_tool_is_reported() {
    let ended = misbehave(Scripted::native().always("agent", call("edit_file", json!({})))).await;
    assert!(
        ended.told("There is no tool `edit_file`"),
        "{:#?}",
        ended.events
    );
    assert_eq!(ended.calls, 3);
}

#[tokio::test(start_paused = true)]
async fn agent_that_repeats_one_tool_call_gives_up() {
    let ended = misbehave(
        Scripted::native().always("agent", call("read", json!({"symbols": ["a.py::g"]}))),
    )
    .await;
    assert!(
        ended.gave_up("`, and nothing changed since"),
        "{:#?}",
        ended.events
    );
    assert_eq!(ended.calls, 5);
}

#[tokio::test(start_paused = true)]
async fn used_up_budget_ends_the_run() {
    let model = Scripted::native().always(
        "agent",
        Line::Numbered("search".into(), r#"{"query": "{n}"}"#.into()),
    );
    let bed = Bed::new(&[("a.py", SOURCE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.limits.calls = 3);
    let ended = end_of(bed).await;
    assert_eq!(
        stop(&ended.events),
        StopReason::LedgerEmpty {
            what: "3 of 3 model calls".into()
        }
    );
    assert_eq!(ended.calls, 3);
}

/// Runs an agent whose model fails with this error at every call. [`ResilientModel`] retries the
/// calls.
async fn failing(line: Line) -> MisbehavingRun {
    let inner = Arc::new(Scripted::native().always("agent", line));
    let policy = RetryPolicy {
        timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(1),
        attempts: 3,
        base_delay: Duration::from_millis(100),
        max_delay: Duration::from_millis(400),
    };
    let mut bed = Bed::new(&[("a.py", SOURCE)], Scripted::native()).begin(&["a.py::f"]);
    bed.other_model = Some(Arc::new(ResilientModel::new(
        inner.clone(),
        Vec::new(),
        policy,
    )));
    let mut ended = end_of(bed).await;
    ended.calls = inner.calls();
    ended
}

fn retried(ended: &MisbehavingRun) -> bool {
    ended.events.iter().any(|event| {
        matches!(
            event,
            Event::Notice {
                notice: ModelNotice::Retrying { .. },
                ..
            }
        )
    })
}

#[tokio::test(start_paused = true)]
async fn failing_provider_is_retried_before_the_agent_gives_up() {
    let model = || "m".to_owned();
    let errors = [
        (
            ModelError::RateLimited {
                model: model(),
                retry_after: Some(Duration::from_millis(300)),
                message: String::new(),
            },
            "too many requests",
        ),
        (
            ModelError::Server {
                model: model(),
                status: 500,
                message: "oops".into(),
            },
            "500",
        ),
        (
            ModelError::Transport {
                model: model(),
                message: "the stream ended in the middle".into(),
            },
            "in the middle",
        ),
        (
            ModelError::Malformed {
                model: model(),
                message: "not JSON".into(),
            },
            "not JSON",
        ),
    ];
    for (error, named) in errors {
        let ended = failing(Line::Fail(error)).await;
        assert!(retried(&ended), "{:#?}", ended.events);
        assert!(ended.gave_up(named), "{named}: {:#?}", ended.events);
        assert_eq!(ended.calls, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn provider_that_never_replies_times_out_and_is_retried() {
    let ended = failing(Line::Hang).await;
    assert!(
        retried(&ended) && ended.gave_up("no answer within"),
        "{:#?}",
        ended.events
    );
    assert_eq!(ended.calls, 3);
}

/// Returns `before`, continued by `count` lines that contain only a backslash. The time to parse
/// such a statement grows with the square of the number of lines.
fn continuations(before: &str, count: usize) -> String {
    format!("{before}{}\n", " \\\n".repeat(count))
}

#[tokio::test(start_paused = true)]
async fn code_that_takes_too_long_to_parse_is_refused() {
    let source = continuations("def f(x):\n    return x", 30_000);
    let hunks = json!([{"old": "    return x", "new": continuations("    return x", 30_000)}]);
    let added = json!([{"source": source.replace("def f", "def h")}]);
    let lines = [
        whole(&source),
        call(
            "propose",
            json!({"reason": "r", "symbol": "a.py::f", "hunks": hunks}),
        ),
        call(
            "propose",
            json!({"reason": "r", "symbol": "a.py::f", "add": added}),
        ),
        call(
            "propose",
            json!({"reason": "r", "symbol": "new.py::", "source": source}),
        ),
        finish("nothing"),
    ];
    let ended = misbehave(Scripted::native().on("agent a.py::f", lines)).await;
    let refused = malformed(&ended.events);
    let is_clear = |why: &&String| why.contains("takes too long to parse");
    assert_eq!(refused.iter().filter(is_clear).count(), 4, "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn change_of_a_file_that_takes_too_long_to_parse_is_refused_in_bounded_time() {
    let odd = continuations("x = 1", 30_000);
    let hunks = json!([{"old": "x = 1", "new": "x = 2"}]);
    let lines = [
        call("read", json!({"symbols": ["odd.py::x"]})),
        call(
            "propose",
            json!({"reason": "r", "symbol": "odd.py::", "hunks": hunks}),
        ),
        finish("nothing"),
    ];
    let model = Scripted::native().on("agent a.py::f", lines);
    let bed = Bed::new(&[("a.py", SOURCE), ("odd.py", &odd)], model).begin(&["a.py::f"]);
    let ended = end_of(bed).await;
    assert!(
        ended.told("odd.py: it takes too long to parse"),
        "{:?}",
        malformed(&ended.events)
    );
}

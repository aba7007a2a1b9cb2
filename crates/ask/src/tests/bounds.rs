//! Budgets, deadlines and failing models end an exploration.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::session::Session;
use crate::{AskError, Ended};
use starling_core::{ModelError, Tokens};

fn broken() -> ModelError {
    ModelError::Server {
        model: "scripted".into(),
        status: 500,
        message: "no".into(),
    }
}

async fn error_of(bed: &Bed, question: &str) -> AskError {
    let session = Session::new(&bed.files());
    bed.try_ask(question, session).await.expect_err("an error")
}

#[tokio::test]
async fn invalid_questions_are_rejected_without_a_model_call() {
    let bed = Bed::new(Scripted::new([say("x")]));
    assert_eq!(error_of(&bed, " \n").await, AskError::EmptyQuestion);
    let long = "why ".repeat(10_000);
    let error = error_of(&bed, &long).await;
    assert!(matches!(error, AskError::LongQuestion { .. }) && error.is_wrong_use());
    let empty = Bed::of(&[], Scripted::new([say("x")]));
    let error = error_of(&empty, "why?").await;
    assert!(
        error.to_string().contains("no text file to read"),
        "{error}"
    );
    assert_eq!(bed.model.calls() + empty.model.calls(), 0);
}

#[tokio::test]
async fn failure_of_the_first_model_call_is_an_error() {
    let bed = Bed::new(Scripted::new([Line::Fail(broken())]));
    assert_eq!(error_of(&bed, "why?").await, AskError::Model(broken()));
}

#[tokio::test]
async fn failure_of_a_later_model_call_returns_the_findings_so_far() {
    let model = Scripted::new([
        question("shop.py::pay", "What does it do?"),
        Line::Fail(broken()),
    ]);
    let bed = Bed::new(model.owners([say("It adds up by `total` [shop.py:13].")]));
    let answer = bed.ask("How is it paid?").await;
    assert!(matches!(answer.ended, Ended::ModelFailed { .. }));
    assert_eq!(answer.answer, "It adds up by `total` [shop.py:13].");
}

#[tokio::test]
async fn used_up_call_budget_returns_the_findings_so_far() {
    let model = Scripted::new([question("shop.py::pay", "What?"), say("never")]);
    let mut bed = Bed::new(model.owners([say("It adds up by `total` [shop.py:13].")]));
    bed.limits.calls = 1;
    let answer = bed.ask("How does pay work?").await;
    assert!(
        matches!(answer.ended, Ended::BudgetUsedUp { .. }),
        "{:?}",
        answer.ended
    );
    assert_eq!(answer.calls, 1);
    assert!(
        answer.answer.contains("`shop.py::pay` [shop.py:11]"),
        "{}",
        answer.answer
    );
    assert_eq!(answer.dropped, []);
}

#[tokio::test]
async fn last_call_within_the_budget_must_answer() {
    let look = || call("search", json!({"query": "till"}));
    let good = "`pay` adds up by `total` [shop.py:13].";
    let mut bed = Bed::new(Scripted::new([look(), say(good)]));
    bed.limits.calls = 2;
    let answer = bed.ask("How does pay work?").await;
    assert_eq!(answer.answer, good);
    assert_eq!(answer.ended, Ended::Answered);
    assert_eq!(bed.model.tools(1), Vec::<String>::new());
    assert!(bed.model.prompt(1).contains("Answer now"));
    let told = format!("{:?}", answer.steps);
    assert!(told.contains("little of the budget is left"), "{told}");
}

#[tokio::test]
async fn token_limit_covers_all_calls_of_a_question() {
    let model = Scripted::new([
        question("shop.py::pay", "What?"),
        question("main.py::run", "What?"),
    ]);
    let mut bed = Bed::new(model.owners([call("search", json!({"query": "till"}))]));
    bed.limits.tokens = Tokens(14_000);
    let answer = bed.ask("How does pay work?").await;
    assert!(answer.prompt_tokens.0 + answer.output_tokens.0 <= 14_000);
    assert_ne!(answer.ended, Ended::Answered);
}

#[tokio::test]
async fn budget_too_small_for_a_prompt_makes_no_model_call() {
    let mut bed = Bed::new(Scripted::new([say("x")]));
    bed.limits.tokens = Tokens(10);
    let answer = bed.ask("How does pay work?").await;
    assert_eq!((answer.calls, bed.model.calls()), (0, 0));
    assert!(matches!(answer.ended, Ended::BudgetUsedUp { .. }));
}

#[tokio::test(start_paused = true)]
async fn hanging_model_call_ends_at_the_time_limit() {
    let good = "`pay` adds up by `total` [shop.py:13].";
    let mut bed = Bed::new(Scripted::new([Line::Hang(format!("{good}\n\nAnd so"))]));
    bed.limits.seconds = 100;
    let answer = bed.ask("How does pay work?").await;
    assert_eq!(answer.ended, Ended::OutOfTime { seconds: 100 });
    assert_eq!(answer.answer, good);
    assert!(
        (100.0..101.0).contains(&answer.seconds),
        "{}",
        answer.seconds
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_owner_does_not_block_the_answer() {
    let good = "`pay` adds up by `total` [shop.py:13].";
    let model = Scripted::new([question("shop.py::pay", "What?"), say(good)]);
    let mut bed = Bed::new(model.owners([Line::Hang(String::new())]));
    bed.limits.seconds = 200;
    let answer = bed.ask("How does pay work?").await;
    assert_eq!(
        (answer.answer.as_str(), answer.ended),
        (good, Ended::Answered)
    );
    assert!(answer.seconds <= 101.0, "{}", answer.seconds);
    assert!(bed.model.prompt(2).contains("no answer within 100 s"));
}

#[tokio::test(start_paused = true)]
async fn owners_are_questioned_concurrently() {
    let ask = |symbol: &str| {
        (
            "question".to_owned(),
            json!({"symbol": symbol, "question": "What?"}),
        )
    };
    let four = [
        "shop.py::pay",
        "shop.py::Cart",
        "shop.py::Cart.total",
        "main.py::run",
    ];
    let calls = Line::Call(four.iter().map(|symbol| ask(symbol)).collect());
    let mut model = Scripted::new([calls, say("`pay` adds up [shop.py:13].")]);
    model.latency = Duration::from_secs(2);
    let bed = Bed::new(model.owners([say("So [shop.py:13].")]));
    let answer = bed.ask("How does pay work?").await;
    assert_eq!(answer.calls, 6);
    assert!(answer.seconds < 7.0, "{}", answer.seconds);
}

#[tokio::test]
async fn model_that_never_answers_is_stopped_after_a_few_calls() {
    let scripts = [
        say(""),
        call("search", json!({"query": "till"})),
        call("search", json!({"qery": 3})),
        call("read", json!({"symbols": "nowhere"})),
        call("fly", json!({})),
        question("no path", "What?"),
        question("gone.py::f", "What?"),
        Line::Call(
            (0..50)
                .map(|n| ("search".into(), json!({"query": n.to_string()})))
                .collect(),
        ),
    ];
    for line in scripts {
        let bed = Bed::new(Scripted::new([line]).owners([say("")]));
        let answer = bed.ask("How does pay work?").await;
        assert!(answer.calls <= 5, "{}", answer.calls);
        assert_eq!(answer.ended, Ended::Undecided);
        assert!(answer.answer.contains("[shop.py:11]"), "{}", answer.answer);
    }
}

#[tokio::test]
async fn number_of_questions_to_owners_is_limited() {
    let ask = |n: usize| {
        let arguments = json!({"symbol": "shop.py::pay", "question": format!("What is {n}?")});
        ("question".to_owned(), arguments)
    };
    let all = Line::Call((0..8).map(ask).collect());
    let more = Line::Call((8..12).map(ask).collect());
    let model = Scripted::new([all, more, say("`pay` [shop.py:11]")]);
    let bed = Bed::new(model.owners([say("So [shop.py:13].")]));
    let answer = bed.ask("How does pay work?").await;
    assert_eq!(answer.calls, 3 + 8);
    assert!(
        bed.model
            .prompt(bed.model.calls() - 1)
            .contains("8 questions have been asked")
    );
}

#[tokio::test]
async fn citations_of_a_truncated_answer_are_checked() {
    let cut = Line::Cut("`pay` adds up by `total` [shop.py:13]. Then the `RA".to_owned());
    let bed = Bed::new(Scripted::new([cut]));
    let answer = bed.ask("How does pay work?").await;
    assert_eq!(answer.citations.len(), 1);
    let told = answer
        .steps
        .iter()
        .any(|step| format!("{step:?}").contains("the answer was cut"));
    assert!(told, "{:?}", answer.steps);
}

#[tokio::test]
async fn malformed_answer_has_no_citations_and_takes_at_most_two_calls() {
    for rubbish in [
        "{\"broken\": ",
        "```",
        "[[[[",
        "a.py:1 b.py:2",
        "\u{0}\u{7}é`",
    ] {
        let bed = Bed::new(Scripted::new([say(rubbish)]));
        let answer = bed.ask("How does pay work?").await;
        assert!(answer.citations.is_empty());
        assert!(answer.calls <= 2);
    }
}

#[tokio::test]
async fn call_over_the_limit_of_a_turn_may_be_repeated_in_the_next_turn() {
    let search = |word: &str| ("search".to_owned(), json!({ "query": word }));
    let mut many: Vec<_> = (0..8).map(|nth| search(&format!("word{nth}"))).collect();
    many.push(search("total"));
    let again = Line::Call(vec![search("total")]);
    let bed = Bed::new(Scripted::new([Line::Call(many), again, say("No.")]));
    bed.ask("How is it paid?").await;
    let refused = bed.model.prompt(1);
    assert!(refused.contains("At most 8 calls"), "{refused}");
    let told = bed.model.prompt(2);
    assert!(!told.contains("asked this before"), "{told}");
}

#[tokio::test]
async fn earlier_results_are_left_out_when_the_context_window_fills_up() {
    let text: String = (0..900)
        .map(|nth| format!("VALUE_{nth} = {nth}\n"))
        .collect();
    let read = |lines: &str| call("read", json!({"symbols": [format!("big.py:{lines}")]}));
    let script = [
        read("1-400"),
        read("300-700"),
        read("500-900"),
        read("1-400"),
        say("`VALUE_0` is 0 [big.py:1]."),
    ];
    let bed = Bed::of(&[("big.py", &text)], Scripted::new(script).window(15_000));
    let answer = bed.ask("What is VALUE_0?").await;
    assert_eq!(answer.ended, Ended::Answered);
    let left_out = "[Left out to save room: the result of `read big.py:1-400`";
    let prompts: Vec<String> = (0..5).map(|nth| bed.model.prompt(nth)).collect();
    let (before, after) = (&prompts[2], &prompts[3]);
    assert!(!before.contains(left_out), "{}", before.len());
    assert!(after.contains(left_out), "{}", after.len());
    // What was left out may be asked for again.
    let again = &prompts[4];
    assert!(!again.contains("asked this before"), "{again}");
    let told = format!("{:?}", answer.steps);
    assert!(told.contains("earlier results are left out"), "{told}");
}

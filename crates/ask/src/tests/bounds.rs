//! Tests that budgets, deadlines and failing models end the work on a question.

use std::time::Duration;

use serde_json::json;

use super::fixture::*;
use crate::session::Session;
use crate::{AskError, ExplorationEnd};
use starling_core::{ModelError, Tokens};

fn broken() -> ModelError {
    ModelError::Server {
        model: "scripted".into(),
        status: 500,
        message: "no".into(),
    }
}

async fn error_of(project: &AskTestProject, question: &str) -> AskError {
    let session = Session::new(&project.files());
    project
        .try_ask(question, session)
        .await
        .expect_err("an error")
}

#[tokio::test]
async fn invalid_questions_are_rejected_without_a_model_call() {
    let project = AskTestProject::new(AskScriptedModel::new([say("x")]));
    assert_eq!(error_of(&project, " \n").await, AskError::EmptyQuestion);
    let long = "why ".repeat(10_000);
    let error = error_of(&project, &long).await;
    assert!(matches!(error, AskError::LongQuestion { .. }) && error.is_wrong_use());
    let empty = AskTestProject::of(&[], AskScriptedModel::new([say("x")]));
    let error = error_of(&empty, "why?").await;
    assert!(
        error.to_string().contains("no text file to read"),
        "{error}"
    );
    assert_eq!(project.model.calls() + empty.model.calls(), 0);
}

#[tokio::test]
async fn failure_of_the_first_model_call_is_an_error() {
    let project = AskTestProject::new(AskScriptedModel::new([ScriptedReaction::Fail(broken())]));
    assert_eq!(error_of(&project, "why?").await, AskError::Model(broken()));
}

#[tokio::test]
async fn failure_of_a_later_model_call_returns_the_findings_so_far() {
    let model = AskScriptedModel::new([
        question("shop.py::pay", "What does it do?"),
        ScriptedReaction::Fail(broken()),
    ]);
    let project = AskTestProject::new(model.owners([say("It adds up by `total` [shop.py:13].")]));
    let answer = project.ask("How is it paid?").await;
    assert!(matches!(answer.ended, ExplorationEnd::ModelFailed { .. }));
    assert_eq!(answer.answer, "It adds up by `total` [shop.py:13].");
}

#[tokio::test]
async fn used_up_call_budget_returns_the_findings_so_far() {
    let model = AskScriptedModel::new([question("shop.py::pay", "What?"), say("never")]);
    let mut project =
        AskTestProject::new(model.owners([say("It adds up by `total` [shop.py:13].")]));
    project.limits.calls = 1;
    let answer = project.ask("How does pay work?").await;
    assert!(
        matches!(answer.ended, ExplorationEnd::BudgetUsedUp { .. }),
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
async fn model_must_answer_with_the_last_call_that_the_budget_allows() {
    let look = || call("search", json!({"query": "till"}));
    let good = "`pay` adds up by `total` [shop.py:13].";
    let mut project = AskTestProject::new(AskScriptedModel::new([look(), say(good)]));
    project.limits.calls = 2;
    let answer = project.ask("How does pay work?").await;
    assert_eq!(answer.answer, good);
    assert_eq!(answer.ended, ExplorationEnd::Answered);
    assert_eq!(project.model.tools(1), Vec::<String>::new());
    assert!(project.model.prompt(1).contains("Answer now"));
    let told = format!("{:?}", answer.steps);
    assert!(told.contains("little of the budget is left"), "{told}");
}

#[tokio::test]
async fn token_limit_covers_all_calls_of_a_question() {
    let model = AskScriptedModel::new([
        question("shop.py::pay", "What?"),
        question("main.py::run", "What?"),
    ]);
    let mut project = AskTestProject::new(model.owners([call("search", json!({"query": "till"}))]));
    project.limits.tokens = Tokens(14_000);
    let answer = project.ask("How does pay work?").await;
    assert!(answer.prompt_tokens.0 + answer.output_tokens.0 <= 14_000);
    assert_ne!(answer.ended, ExplorationEnd::Answered);
}

#[tokio::test]
async fn budget_too_small_for_a_prompt_makes_no_model_call() {
    let mut project = AskTestProject::new(AskScriptedModel::new([say("x")]));
    project.limits.tokens = Tokens(10);
    let answer = project.ask("How does pay work?").await;
    assert_eq!((answer.calls, project.model.calls()), (0, 0));
    assert!(matches!(answer.ended, ExplorationEnd::BudgetUsedUp { .. }));
}

#[tokio::test(start_paused = true)]
async fn hanging_model_call_ends_at_the_time_limit() {
    let good = "`pay` adds up by `total` [shop.py:13].";
    let mut project = AskTestProject::new(AskScriptedModel::new([ScriptedReaction::Hang(
        format!("{good}\n\nAnd so"),
    )]));
    project.limits.seconds = 100;
    let answer = project.ask("How does pay work?").await;
    assert_eq!(answer.ended, ExplorationEnd::OutOfTime { seconds: 100 });
    assert_eq!(answer.answer, good);
    assert!(
        (100.0..101.0).contains(&answer.seconds),
        "{}",
        answer.seconds
    );
}

#[tokio::test(start_paused = true)]
async fn symbol_agent_that_never_replies_does_not_block_the_answer() {
    let good = "`pay` adds up by `total` [shop.py:13].";
    let model = AskScriptedModel::new([question("shop.py::pay", "What?"), say(good)]);
    let mut project = AskTestProject::new(model.owners([ScriptedReaction::Hang(String::new())]));
    project.limits.seconds = 200;
    let answer = project.ask("How does pay work?").await;
    assert_eq!(
        (answer.answer.as_str(), answer.ended),
        (good, ExplorationEnd::Answered)
    );
    assert!(answer.seconds <= 101.0, "{}", answer.seconds);
    assert!(project.model.prompt(2).contains("no answer within 100 s"));
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
    let calls = ScriptedReaction::Call(four.iter().map(|symbol| ask(symbol)).collect());
    let mut model = AskScriptedModel::new([calls, say("`pay` adds up [shop.py:13].")]);
    model.latency = Duration::from_secs(2);
    let project = AskTestProject::new(model.owners([say("So [shop.py:13].")]));
    let answer = project.ask("How does pay work?").await;
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
        ScriptedReaction::Call(
            (0..50)
                .map(|n| ("search".into(), json!({"query": n.to_string()})))
                .collect(),
        ),
    ];
    for line in scripts {
        let project = AskTestProject::new(AskScriptedModel::new([line]).owners([say("")]));
        let answer = project.ask("How does pay work?").await;
        assert!(answer.calls <= 5, "{}", answer.calls);
        assert_eq!(answer.ended, ExplorationEnd::Undecided);
        assert!(answer.answer.contains("[shop.py:11]"), "{}", answer.answer);
    }
}

#[tokio::test]
async fn number_of_questions_to_owners_is_limited() {
    let ask = |n: usize| {
        let arguments = json!({"symbol": "shop.py::pay", "question": format!("What is {n}?")});
        ("question".to_owned(), arguments)
    };
    let all = ScriptedReaction::Call((0..8).map(ask).collect());
    let more = ScriptedReaction::Call((8..12).map(ask).collect());
    let model = AskScriptedModel::new([all, more, say("`pay` [shop.py:11]")]);
    let project = AskTestProject::new(model.owners([say("So [shop.py:13].")]));
    let answer = project.ask("How does pay work?").await;
    assert_eq!(answer.calls, 3 + 8);
    assert!(
        project
            .model
            .prompt(project.model.calls() - 1)
            .contains("8 questions have been asked")
    );
}

#[tokio::test]
async fn citations_of_a_truncated_answer_are_checked() {
    let cut =
        ScriptedReaction::Cut("`pay` adds up by `total` [shop.py:13]. Then the `RA".to_owned());
    let project = AskTestProject::new(AskScriptedModel::new([cut]));
    let answer = project.ask("How does pay work?").await;
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
        let project = AskTestProject::new(AskScriptedModel::new([say(rubbish)]));
        let answer = project.ask("How does pay work?").await;
        assert!(answer.citations.is_empty());
        assert!(answer.calls <= 2);
    }
}

#[tokio::test]
async fn call_that_exceeded_the_limit_of_a_turn_may_be_repeated_in_the_next_turn() {
    let search = |word: &str| ("search".to_owned(), json!({ "query": word }));
    let mut many: Vec<_> = (0..8).map(|nth| search(&format!("word{nth}"))).collect();
    many.push(search("total"));
    let again = ScriptedReaction::Call(vec![search("total")]);
    let project = AskTestProject::new(AskScriptedModel::new([
        ScriptedReaction::Call(many),
        again,
        say("No."),
    ]));
    project.ask("How is it paid?").await;
    let refused = project.model.prompt(1);
    assert!(refused.contains("At most 8 calls"), "{refused}");
    let told = project.model.prompt(2);
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
    let project = AskTestProject::of(
        &[("big.py", &text)],
        AskScriptedModel::new(script).window(15_000),
    );
    let answer = project.ask("What is VALUE_0?").await;
    assert_eq!(answer.ended, ExplorationEnd::Answered);
    let left_out = "[Left out to save room: the result of `read big.py:1-400`";
    let prompts: Vec<String> = (0..5).map(|nth| project.model.prompt(nth)).collect();
    let (before, after) = (&prompts[2], &prompts[3]);
    assert!(!before.contains(left_out), "{}", before.len());
    assert!(after.contains(left_out), "{}", after.len());
    // After its result was left out of the conversation, a call may be repeated.
    let again = &prompts[4];
    assert!(!again.contains("asked this before"), "{again}");
    let told = format!("{:?}", answer.steps);
    assert!(told.contains("earlier results are left out"), "{told}");
}

//! Tests how a question is answered with a scripted model.

use serde_json::json;

use super::fixture::*;
use crate::ExplorationEnd;
use crate::step::Step;

const GOOD: &str = "`pay` adds up by `total` [shop.py:13].\n\nThe `RATE` counts [shop.py:8].";

#[tokio::test]
async fn question_that_the_initial_context_answers_takes_one_model_call() {
    let project = AskTestProject::new(AskScriptedModel::new([say(GOOD)]));
    let answer = project.ask("How does pay work out the total?").await;
    assert_eq!(answer.answer, GOOD);
    assert_eq!(answer.ended, ExplorationEnd::Answered);
    assert_eq!((answer.calls, answer.usd.0), (1, 0.01));
    let cited: Vec<String> = answer.citations.iter().map(|c| c.place()).collect();
    assert_eq!(cited, ["shop.py:13", "shop.py:8"]);
    assert_eq!(answer.citations[1].symbol, "Cart.total");
    assert_eq!(names(&answer.steps), ["located", "enough"]);
    // The first prompt contains the source with line numbers.
    let prompt = project.model.prompt(0);
    assert!(prompt.contains("   13     return cart.total()"), "{prompt}");
    assert!(prompt.contains("How does pay work out the total?"));
}

#[tokio::test]
async fn complete_blocks_are_streamed_before_the_answer_ends() {
    let project = AskTestProject::new(AskScriptedModel::new([ScriptedReaction::Hang(format!(
        "{GOOD}\n\nAnd"
    ))]));
    let asking = project.ask("How does pay work?");
    let mut asking = Box::pin(asking);
    while project.shown().matches("\n\n").count() < 2 {
        assert!(futures::poll!(&mut asking).is_pending());
        tokio::task::yield_now().await;
    }
    assert_eq!(project.shown().trim_end(), GOOD);
}

#[tokio::test]
async fn reader_searches_code_and_questions_several_owners_in_one_turn() {
    let both = ScriptedReaction::Call(vec![
        ("references".into(), json!({"name": "pay"})),
        (
            "question".into(),
            json!({"symbol": "shop.py::Cart.total", "question": "What does it give?", "why": "pay calls it"}),
        ),
        (
            "question".into(),
            json!({"symbol": "main.py::run", "question": "Who pays?", "why": "it uses pay"}),
        ),
    ]);
    let model = AskScriptedModel::new([both, say(GOOD)]).owners([
        say("The `RATE` times the sum [shop.py:8]."),
        say("`run` does [main.py:5]."),
    ]);
    let project = AskTestProject::new(model);
    let answer = project.ask("How is the price made?").await;
    assert_eq!(answer.calls, 4);
    let steps = names(&answer.steps);
    assert_eq!(steps.iter().filter(|step| *step == "asked").count(), 2);
    assert_eq!(steps.iter().filter(|step| *step == "answered").count(), 2);
    let why = answer.steps.iter().find_map(|step| match step {
        Step::Asked { symbol, why, .. } if symbol == "shop.py::Cart.total" => Some(why.clone()),
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("pay calls it"));
    let last = project.model.prompt(3);
    assert!(last.contains("main.py:5 (run) return pay(cart)"), "{last}");
    assert!(
        last.contains("The `RATE` times the sum [shop.py:8]."),
        "{last}"
    );
    // An owner sees its source and can use the reading tools, but cannot question other owners.
    let owner = project.model.prompt(1);
    assert!(
        owner.contains("Your symbol: `shop.py::Cart.total`"),
        "{owner}"
    );
    assert_eq!(
        project.model.tools(1),
        ["read", "outline", "search", "definition", "references"]
    );
}

#[tokio::test]
async fn model_is_asked_once_to_correct_a_wrong_citation() {
    let first =
        "`pay` adds up [shop.py:13].\n\n- `run` pays [gone.py:3].\n- `RATE` counts [shop.py:8].";
    let project = AskTestProject::new(AskScriptedModel::new([
        say(first),
        say("1: `run` pays [main.py:5]."),
    ]));
    let answer = project.ask("Who pays?").await;
    assert_eq!(
        answer.answer,
        "`pay` adds up [shop.py:13].\n\n- `run` pays [main.py:5].\n- `RATE` counts [shop.py:8]."
    );
    assert_eq!(answer.calls, 2);
    assert_eq!(answer.dropped, []);
    assert!(names(&answer.steps).contains(&"sent_back".to_owned()));
    assert_eq!(project.shown().trim_end(), answer.answer);
    let back = project.model.prompt(1);
    assert!(back.contains("there is no file gone.py"), "{back}");
    assert_eq!(project.model.tools(1), Vec::<String>::new());
}

#[tokio::test]
async fn citation_that_stays_wrong_is_dropped_and_its_claim_is_marked() {
    let first =
        "`run` pays [gone.py:3]. `Cart` is slow. `pay` is last [shop.py:11].\n\n`RATE` doubles.";
    let replies = [
        "1: `run` pays [gone.py:4].\n2: `RATE` doubles.",
        "rubbish",
        "",
        "1: \n2: ",
    ];
    for reply in replies {
        let project = AskTestProject::new(AskScriptedModel::new([say(first), say(reply)]));
        let answer = project.ask("Who pays?").await;
        assert_eq!(
            answer.answer,
            "`run` pays [unverified]. `Cart` is slow. [uncited] `pay` is last [shop.py:11].\n\n\
             `RATE` doubles. [uncited]",
            "{reply}"
        );
        assert_eq!(answer.dropped.len(), 1);
        assert!(answer.dropped[0].why.contains("no file gone.py"));
        assert_eq!(answer.uncited, ["`Cart` is slow.", "`RATE` doubles."]);
        assert_eq!(answer.calls, 2);
    }
}

#[tokio::test]
async fn model_may_drop_a_claim_that_it_cannot_cite() {
    let first = "`pay` adds up [shop.py:13].\n\n- `run` pays [gone.py:3].\n";
    let project = AskTestProject::new(AskScriptedModel::new([say(first), say("1: drop")]));
    let answer = project.ask("Who pays?").await;
    assert_eq!(answer.answer, "`pay` adds up [shop.py:13].");
    assert_eq!(answer.dropped, []);
}

#[tokio::test]
async fn question_counts_as_unanswered_if_no_claim_of_the_answer_is_supported() {
    let wrong = say("`run` pays [gone.py:3].");
    let project = AskTestProject::new(AskScriptedModel::new([wrong, say("1: drop")]));
    let answer = project.ask("Who pays?").await;
    assert_eq!(answer.answer, "");
    assert_eq!(answer.ended, ExplorationEnd::Unsupported);
}

#[tokio::test]
async fn answer_restarted_after_a_lost_connection_is_shown_once() {
    let stumble = ScriptedReaction::Stumble(format!("{GOOD}\n\nAn"), format!("{GOOD} Yes."));
    let project = AskTestProject::new(AskScriptedModel::new([stumble]));
    let answer = project.ask("How does pay work?").await;
    assert_eq!(answer.answer, format!("{GOOD} Yes."));
    assert_eq!(project.shown(), answer.answer);
    let steps = names(&project.said.lock().unwrap());
    assert!(steps.contains(&"restarted".to_owned()) && steps.contains(&"trouble".to_owned()));
}

#[tokio::test]
async fn tools_can_be_called_by_lines_in_the_text_protocol() {
    let model = AskScriptedModel::new([
        say("@read shop.py::pay main.py:1-5\n@search till"),
        say(GOOD),
    ]);
    let project = AskTestProject::new(model.text_only(60_000));
    let answer = project.ask("How does pay work?").await;
    assert_eq!(answer.calls, 2);
    assert_eq!(project.model.tools(0), Vec::<String>::new());
    let last = project.model.prompt(1);
    assert!(
        last.contains("shop.py:12 (pay) # The till is open."),
        "{last}"
    );
}

#[tokio::test]
async fn small_model_gets_one_short_prompt_and_no_tools() {
    let project = AskTestProject::new(
        AskScriptedModel::new([say("`pay` calls `total` [gone.py:1].")]).text_only(8_000),
    );
    let answer = project.ask("How does pay work?").await;
    assert_eq!(answer.calls, 1);
    assert_eq!(answer.answer, "`pay` calls `total` [unverified].");
    let prompt = project.model.prompt(0);
    assert!(prompt.len() < 8_000);
    assert!(
        prompt.trim_end().ends_with("like [path/to/file.py:12]:"),
        "{prompt}"
    );
}

#[tokio::test]
async fn sentences_that_a_small_model_copies_from_its_example_are_left_out() {
    let text =
        "`pay` calls `total` [shop.py:13]. The breakfast is peeled in `Gorilla.yawn` [gone.py:1].";
    let project = AskTestProject::new(AskScriptedModel::new([say(text)]).text_only(8_000));
    let answer = project.ask("How does pay work?").await;
    assert_eq!(answer.answer, "`pay` calls `total` [shop.py:13].");
    assert!(answer.dropped.is_empty());
}

#[tokio::test]
async fn answering_a_question_cannot_change_files() {
    let edits = [
        "propose",
        "intent",
        "request_change",
        "wake",
        "run_tests",
        "write",
    ];
    for edit in edits {
        let arguments =
            json!({"symbol": "shop.py::pay", "source": "def pay(cart):\n    return 0\n"});
        let project =
            AskTestProject::new(AskScriptedModel::new([call(edit, arguments), say(GOOD)]));
        let before = project.tree();
        let answer = project.ask("How does pay work?").await;
        assert_eq!(project.tree(), before);
        let told = project.model.prompt(1);
        assert!(
            told.contains(&format!("There is no tool `{edit}`")),
            "{told}"
        );
        assert_eq!(answer.ended, ExplorationEnd::Answered);
        for nth in 0..project.model.calls() {
            let tools = project.model.tools(nth);
            assert!(
                !tools.iter().any(|tool| edits.contains(&tool.as_str())),
                "{tools:?}"
            );
        }
    }
}

#[tokio::test]
async fn ignored_and_secret_files_cannot_be_read() {
    let targets =
        json!({"symbols": [".env:1-9", "hidden.txt:1-9", "../secret.txt:1", "hidden.txt::"]});
    let model = AskScriptedModel::new([
        call("read", targets),
        call("outline", json!({"file": "hidden.txt"})),
        say(GOOD),
    ]);
    let files = [
        ("shop.py", SHOP),
        (".gitignore", "hidden.txt\n"),
        ("hidden.txt", "the word is swordfish"),
        (".env", "KEY=swordfish"),
    ];
    let project = AskTestProject::of(&files, model);
    project.ask("What is the word?").await;
    assert!(!project.model.prompt(2).contains("swordfish"));
}

#[tokio::test]
async fn directory_without_python_files_is_searched_as_text() {
    let files = [
        (
            "web/cart.js",
            "// The cart.\nfunction pay(cart) {\n  return cart.total * rate;\n}\n",
        ),
        ("README.md", "# Shop\nA shop with a cart.\n"),
    ];
    let text = "`pay` multiplies by the `rate` [web/cart.js:3].";
    let project = AskTestProject::of(&files, AskScriptedModel::new([say(text)]));
    let answer = project.ask("How does pay work with the cart?").await;
    assert_eq!(answer.answer, text);
    let prompt = project.model.prompt(0);
    assert!(prompt.contains("    2 function pay(cart) {"), "{prompt}");
}

#[tokio::test]
async fn first_sentence_is_the_answer_that_the_cited_items_below_support() {
    for (first, is_marked) in [
        ("The whole shop sells its goods twice before noon.", false),
        ("No, `pay` does not use `RATE`.", false),
        ("`till` rounds the sum of the goods.", true),
    ] {
        let items = "- `pay` adds up [shop.py:13].\n- `RATE` counts [shop.py:8].";
        let answer = format!("{first}\n\n{items}");
        let project = AskTestProject::new(AskScriptedModel::new([say(&answer), say("")]));
        let answer = project.ask("Who pays?").await;
        let mark = if is_marked { " [uncited]" } else { "" };
        assert_eq!(answer.answer, format!("{first}{mark}\n\n{items}"));
    }
    let project = AskTestProject::new(AskScriptedModel::new([
        say("`pay` adds up [shop.py:13]. `run` does not use `RATE`."),
        say(""),
    ]));
    let answer = project.ask("Who pays?").await;
    assert_eq!(answer.uncited, ["`run` does not use `RATE`."]);
}

#[tokio::test]
async fn sentence_that_denies_a_use_which_the_index_knows_is_sent_back_and_marked() {
    let first = "`pay` adds up [shop.py:13].\n\nNothing calls `pay`.";
    let project = AskTestProject::new(AskScriptedModel::new([say(first), say("")]));
    let answer = project.ask("Who pays?").await;
    assert_eq!(answer.uncited, ["Nothing calls `pay`."]);
    let back = project.model.prompt(1);
    assert!(back.contains("not so: see main.py:5"), "{back}");
    let first = "`pay` adds up [shop.py:13]. Nothing else in the project uses `pay`.";
    let project = AskTestProject::new(AskScriptedModel::new([say(first), say("")]));
    let answer = project.ask("Who pays?").await;
    assert_eq!(answer.uncited, ["Nothing else in the project uses `pay`."]);
    let first =
        "`pay` adds up [shop.py:13], `run` calls it [main.py:5].\n\nNothing else uses `pay`.";
    let project = AskTestProject::new(AskScriptedModel::new([say(first)]));
    assert_eq!(project.ask("Who pays?").await.uncited, [""; 0]);
    let first = "`pay` adds up [shop.py:13].\n\nNothing calls `discount`.";
    let project = AskTestProject::new(AskScriptedModel::new([say(first)]));
    assert_eq!(project.ask("Who pays?").await.uncited, [""; 0]);
}

#[tokio::test]
async fn stated_call_that_the_index_refutes_is_sent_back_and_its_citation_is_dropped() {
    let first = "`run` calls `pay` [main.py:5]. `pay` calls `run` [shop.py:13].";
    let project = AskTestProject::new(AskScriptedModel::new([say(first), say("")]));
    let answer = project.ask("Who pays?").await;
    assert_eq!(
        answer.answer,
        "`run` calls `pay` [main.py:5]. `pay` calls `run` [unverified]."
    );
    let back = project.model.prompt(1);
    let why = "where `pay` does not contain `run`";
    assert!(
        back.contains("not so: see shop.py:11-13") && back.contains(why),
        "{back}"
    );
}

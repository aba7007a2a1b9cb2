//! The scout (the agent that selects the symbols to change): its prompt, its lookups before the
//! selection, and invalid selections.

use serde_json::json;

use super::bed::*;
use crate::*;

const SHOP: &str = "def total(cart):\n    return sum(_price(one) for one in cart)\n\n\n\
    def _price(one):\n    return one.price\n\n\ndef late(days):\n    return days\n";

fn bed(scout: Vec<Line>) -> Bed {
    let model = Scripted::native()
        .on("scout", scout)
        .always("agent shop.py", finish("nothing"));
    let files = [
        ("shop.py", SHOP),
        ("test_shop.py", "def test_total():\n    assert total([])\n"),
    ];
    Bed::new(&files, model).with(|task| task.text = "`total` forgets the discount".into())
}

fn picked(events: &[Event]) -> Vec<String> {
    let picks = events.iter().find_map(|event| match event {
        Event::ScoutPicked { symbols } => Some(symbols),
        _ => None,
    });
    let names = picks.into_iter().flatten();
    names.map(|(symbol, _)| symbol.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn scout_prompt_contains_the_best_candidates_and_their_callees() {
    let mut bed = bed(vec![wake(&["shop.py::total"])]);
    let events = bed.run().await;
    assert_eq!(picked(&events), ["shop.py::total"]);
    let prompt = &bed.model.prompts("scout")[0];
    assert!(prompt.contains("`total` forgets the discount"), "{prompt}");
    assert!(
        prompt.contains("return sum(_price(one)"),
        "the source: {prompt}"
    );
    assert!(prompt.contains("called by total"), "{prompt}");
    assert!(
        prompt.contains("return one.price"),
        "the source of a callee: {prompt}"
    );
}

#[tokio::test(start_paused = true)]
async fn scout_may_use_lookup_tools_before_it_selects_symbols() {
    let look = Line::Call(vec![
        ("search".to_owned(), json!({"query": "days"})),
        ("read".to_owned(), json!({"symbols": ["shop.py::late"]})),
    ]);
    let mut bed = bed(vec![look, wake(&["shop.py::late"])]);
    let events = bed.run().await;
    assert_eq!(picked(&events), ["shop.py::late"]);
    let prompt = &bed.model.prompts("scout")[1];
    assert!(
        prompt.contains("shop.py::late line 10: return days"),
        "{prompt}"
    );
    assert!(prompt.contains("shop.py::late lines 9-10:"), "{prompt}");
    let used = |event: &&Event| {
        matches!(
            event,
            Event::ToolUsed {
                agent: ActorId::Scout,
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(used).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn scout_that_selects_unknown_symbols_gets_suggestions() {
    let wrong = wake(&["shop.py::totals", "nowhere.py::f", "no path"]);
    let mut bed = bed(vec![wrong, wake(&["shop.py::total"])]);
    let events = bed.run().await;
    assert_eq!(picked(&events), ["shop.py::total"]);
    let prompt = &bed.model.prompts("scout")[1];
    for told in [
        "No agent can be started for the symbols that you picked.",
        "There is no symbol shop.py::totals.",
        "shop.py has: total, _price, late.",
        "nowhere.py: no such file",
        "`no path` is not a symbol path",
    ] {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn owner_of_each_known_symbol_that_the_scout_selects_is_started_once() {
    let picks = [
        "shop.py::late",
        "shop.py::gone",
        "shop.py::late",
        "shop.py::total",
    ];
    let mut bed = bed(vec![wake(&picks)]);
    let events = bed.run().await;
    assert_eq!(picked(&events), ["shop.py::late", "shop.py::total"]);
    assert_eq!(woken(&events).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn run_starts_at_the_best_candidate_if_the_scout_never_selects_a_symbol() {
    let look = |at: usize| call("search", json!({"query": format!("word{at}")}));
    let mut bed = bed((0..9).map(look).collect());
    let events = bed.run().await;
    assert_eq!(
        picked(&events),
        ["shop.py::total"],
        "the best that is no test"
    );
    assert_eq!(bed.model.prompts("scout").len(), 5);
}

/// If the scout selects no symbol in two replies, it is not called again, and the headline quotes
/// its last reply.
#[tokio::test(start_paused = true)]
async fn run_ends_with_the_reply_of_a_scout_that_twice_selects_no_symbol() {
    let long = format!(
        "There is no `totals`.\nIs `total` meant? {}",
        "x".repeat(400)
    );
    let nobody = call("wake", json!({"symbols": []}));
    for scout in [
        vec![say("No."), say(&long)],
        vec![say("No."), nobody, say(&long)],
    ] {
        let calls = scout.len();
        let mut bed = bed(scout);
        let events = bed.run().await;
        assert_eq!(bed.model.calls(), calls);
        let Some(Event::RunFinished {
            ending: Some(ending),
            ..
        }) = events.last()
        else {
            panic!("{events:#?}");
        };
        assert_eq!(ending.proof, Proof::NotDone);
        let said = "Not done: the model named no symbol to begin with, and said: \"There is no `totals`. Is \
                    `total` meant? xxx";
        assert!(ending.headline.starts_with(said), "{}", ending.headline);
        assert!(ending.headline.ends_with("x…\""), "{}", ending.headline);
    }
}

const README: &str = "# Shop\n\nSells things.\n";

/// Creates a run whose task is to change a document. The code of the project shares more words with
/// the task than the document does.
fn documented(scout: Vec<Line>) -> Bed {
    let mends =
        json!({"reason": "r", "hunks": [{"old": "Sells things.", "new": "Run `python shop.py`."}]});
    let model = Scripted::native()
        .on("scout", scout)
        .on("agent README.md::", [call("propose", mends)])
        .always("agent", finish("nothing"));
    let run = "def mention_how_to_run_it():\n    return 'run'\n";
    let files = [
        ("README.md", README),
        ("run.py", run),
        ("Makefile", "run:\n"),
    ];
    Bed::new(&files, model).with(|task| task.text = "Mention in README.md how to run it".into())
}

#[tokio::test(start_paused = true)]
async fn symbols_mentioned_in_the_task_are_the_first_candidates_and_unknown_ones_are_reported() {
    let files = [
        (
            "cart.py",
            "class Cart:\n    def total(self):\n        return 1\n",
        ),
        ("bill.py", "def total():\n    return 2\n"),
        ("loud.py", "def rates_of_rates(rates):\n    return rates\n"),
    ];
    let model = Scripted::native()
        .on("scout", [wake(&["cart.py::Cart.total"])])
        .always("agent", finish("nothing"));
    let text = "The rates of rates: see #Cart.total, @loud.py, #total and #nowhere.";
    let mut bed = Bed::new(&files, model).with(|task| task.text = text.into());
    let events = bed.run().await;
    let located = events.iter().find_map(|event| match event {
        Event::Located { candidates, .. } => Some(candidates),
        _ => None,
    });
    let first = located.expect("candidates").iter().take(4);
    let first: Vec<(String, &str)> = first
        .map(|one| (one.symbol.to_string(), one.why[0].as_str()))
        .collect();
    let several = "one of 2 symbols that `#total` in the task may mean";
    assert_eq!(
        first[..3],
        [
            ("cart.py::Cart.total".to_owned(), "named in the task"),
            ("loud.py::".to_owned(), "named in the task"),
            ("bill.py::total".to_owned(), several),
        ]
    );
    let prompt = &bed.model.prompts("scout")[0];
    assert!(prompt.contains(several), "{prompt}");
    let untold = events.iter().find_map(|event| match event {
        Event::NotWoken { symbol, from, why } => Some((symbol.as_str(), from, why.as_str())),
        _ => None,
    });
    let why = "no symbol is called `nowhere`";
    assert_eq!(untold, Some(("#nowhere", &ActorId::User, why)));
}

#[tokio::test(start_paused = true)]
async fn file_that_the_task_names_is_the_first_candidate_of_the_scout() {
    let mut bed = documented(vec![wake(&["README.md"])]);
    let events = bed.run().await;
    let located = events.iter().find_map(|event| match event {
        Event::Located { candidates, .. } => candidates.first(),
        _ => None,
    });
    let first = located.expect("a candidate");
    assert_eq!(first.symbol.to_string(), "README.md::");
    let prompt = &bed.model.prompts("scout")[0];
    let (_, candidates) = prompt.split_once("Candidates, best first").unwrap();
    let candidate = "`README.md::` line 1 (named in the task)";
    assert!(
        candidates
            .trim_start_matches(['\n', ':'])
            .starts_with(candidate),
        "{candidates}"
    );
    assert!(candidates.contains("Sells things."), "{candidates}");
    assert_eq!(picked(&events), ["README.md::"]);
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("README.md").contains("Run `python shop.py`."));
}

#[tokio::test(start_paused = true)]
async fn path_without_a_symbol_name_selects_the_whole_file() {
    for (named, symbol) in [("`README.md`", "README.md::"), ("Makefile", "Makefile::")] {
        let mut bed = documented(vec![wake(&[named])]);
        assert_eq!(picked(&bed.run().await), [symbol]);
    }
    let request = json!({"symbol": "README.md", "reason": "say how to run it"});
    let mut bed = documented(vec![wake(&["run.py"])]);
    let model = Scripted::native()
        .on("scout", [wake(&["run.py"])])
        .on(
            "agent run.py::",
            [call("request_change", request), finish("asked")],
        )
        .always("agent README.md::", finish("nothing"));
    bed.model = std::sync::Arc::new(model);
    let events = bed.run().await;
    let names: Vec<String> = woken(&events).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["run.py::", "README.md::"], "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn no_agent_is_started_if_the_scout_selects_only_unknown_symbols() {
    let wrong = || wake(&["guide"]);
    let mut bed = documented((0..9).map(|_| wrong()).collect());
    let events = bed.run().await;
    assert_eq!(woken(&events).len(), 0, "{events:#?}");
    let StopReason::NothingChanged { why } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert!(
        why.contains("the model would begin at `guide`, which is not in the project"),
        "{why}"
    );
    assert_eq!(bed.model.prompts("scout").len(), 5);
}

/// The task names a file, and its other words match the name of a function in that file.
#[tokio::test(start_paused = true)]
async fn run_without_a_selection_starts_at_a_matching_function_of_the_named_file() {
    let look = |at: usize| call("search", json!({"query": format!("word{at}")}));
    let mut bed = bed((0..9).map(look).collect())
        .with(|task| task.text = "`total` in shop.py forgets the discount".into());
    assert_eq!(picked(&bed.run().await), ["shop.py::total"]);
}

/// Exact changes of the scout are proposed without an agent that would read that a test is needed.
#[tokio::test(start_paused = true)]
async fn scout_that_changes_code_without_a_test_is_told_once_that_a_test_is_needed() {
    let hunk = json!([{"old": "return days", "new": "return days > 0"}]);
    let change = json!({"symbol": "shop.py::late", "why": "w", "hunks": hunk});
    let wakes = |symbols: serde_json::Value| call("wake", json!({ "symbols": symbols }));
    let test = json!({"symbol": "test_shop.py::", "why": "a test of late"});
    let lines = vec![wakes(json!([change])), wakes(json!([change, test]))];
    let strict = |task: &mut Task| {
        task.text = "`late` is wrong for a negative number".into();
        task.require_tests = true;
        task.approval = starling_core::Approval::Auto;
    };
    let mut told = bed(lines.clone()).tests(|_| Vec::new()).with(strict);
    let events = told.run().await;
    assert_eq!(picked(&events), ["shop.py::late", "test_shop.py::"]);
    let prompt = &told.model.prompts("scout")[1];
    assert!(prompt.contains("counts only with a test"), "{prompt}");
    // A scout that insists is not asked a third time.
    let again = vec![wakes(json!([change])), wakes(json!([change]))];
    let mut insists = bed(again).tests(|_| Vec::new()).with(strict);
    assert_eq!(picked(&insists.run().await), ["shop.py::late"]);
    let mut without = bed(lines).tests(|_| Vec::new());
    assert_eq!(picked(&without.run().await), ["shop.py::late"]);
}

#[tokio::test(start_paused = true)]
async fn scout_may_end_the_run_because_nothing_is_to_be_changed() {
    let why = "`total` has no discount: nothing in the project knows one";
    let mut bed = bed(vec![finish(""), finish(why)]).tests(|_| Vec::new());
    let events = bed.run().await;
    assert_eq!(bed.model.calls(), 2, "{events:#?}");
    let prompt = &bed.model.prompts("scout")[1];
    assert!(prompt.contains("why nothing is to be changed"), "{prompt}");
    let headline = format!("Nothing to change: {why}");
    assert_eq!(ending(&events), (Proof::NothingToProve, headline));
}

#[tokio::test(start_paused = true)]
async fn scout_cannot_end_the_run_while_a_test_of_the_task_fails() {
    let fails = |_: &str| vec![("test_shop.py::test_total".to_owned(), "wrong".to_owned())];
    let mut bed = bed(vec![finish("It is fine."), wake(&["shop.py::total"])])
        .tests(fails)
        .with(|task| task.text = "Make test_total pass".into());
    let events = bed.run().await;
    let prompt = &bed.model.prompts("scout")[1];
    assert!(prompt.contains("tests of the task fail"), "{prompt}");
    assert_eq!(picked(&events), ["shop.py::total"]);
    assert_eq!(ending(&events).0, Proof::NotDone);
}

/// A scout that says at once, and again, that nothing is to be changed.
fn insisting(text: &'static str) -> Bed {
    let lines = vec![finish("It is done already."), finish("It is done already.")];
    bed(lines)
        .tests(|_| Vec::new())
        .with(move |task| task.text = text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn scout_that_finishes_although_the_task_is_not_done_is_told_once_and_the_run_is_not_done() {
    for (task, open) in [
        ("Rename `late` to `fee`.", "`late` is still in shop.py"),
        ("Delete `late`.", "`late` is still in shop.py"),
        (
            "Add data/lager.yaml with the fees.",
            "the task asks for `data/lager.yaml`, and it does not exist",
        ),
    ] {
        let mut bed = insisting(task);
        let events = bed.run().await;
        assert_eq!(bed.model.calls(), 2, "{events:#?}");
        let prompt = &bed.model.prompts("scout")[1];
        let told = format!("Something is to be changed: {open}. Call `wake`");
        assert!(prompt.contains(&told), "{prompt}");
        let headline = format!("Not done: {open}; It is done already.");
        assert_eq!(ending(&events), (Proof::NotDone, headline));
        assert_eq!(picked(&events), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn scout_that_is_told_what_is_not_done_can_start_the_owner() {
    let lines = vec![finish("It is done already."), wake(&["shop.py::late"])];
    let mut bed = bed(lines)
        .tests(|_| Vec::new())
        .with(|task| task.text = "Delete `late`.".into());
    assert_eq!(picked(&bed.run().await), ["shop.py::late"]);
}

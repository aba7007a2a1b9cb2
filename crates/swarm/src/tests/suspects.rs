//! A small model tries to fix the functions that may contain the bug, one after the other.

use super::bed::*;
use crate::*;

const STOCK: &str = "\
class Stock:
    def __init__(self):
        self.counts = {}

    def restock(self, item, amount):
        self.counts[item] = self.counts.get(item, 0) - amount

    def count(self, item):
        return self.counts.get(item, 0)
";

/// Returns the test results: the test fails until `restock` is fixed. Its assertion compares the
/// result of `count`, so only `count` is named in the failure.
fn red_until_added(all: &str) -> Vec<(String, String)> {
    let message = "test_stock.py:4: in test_restock\n    assert stock.count(\"pen\") == 5\nE   AssertionError: assert -5 == 5";
    match all.contains("0) + amount") {
        true => Vec::new(),
        false => vec![("test_stock.py::test_restock".to_owned(), message.to_owned())],
    }
}

fn woken(events: &[Event]) -> Vec<String> {
    let woken = events.iter().filter_map(|event| match event {
        Event::AgentWoken { agent, .. } => agent.symbol().map(|symbol| symbol.name.clone()),
        _ => None,
    });
    woken.collect()
}

fn bed(task: &str, model: Scripted) -> Bed {
    let task = task.to_owned();
    Bed::new(&[("stock.py", STOCK)], model)
        .tests(red_until_added)
        .with(|it| it.text = task)
}

#[tokio::test(start_paused = true)]
async fn function_that_the_task_mentions_is_tried_before_the_function_that_the_test_calls() {
    let right = "```python\n    def restock(self, item, amount):\n        self.counts[item] = self.counts.get(item, 0) + amount\n```";
    let model = Scripted::small().on("agent stock.py::Stock.restock", [say(right)]);
    let mut bed = bed("Restocking an item lowers its count.", model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(woken(&events), ["Stock.restock"]);
}

#[tokio::test(start_paused = true)]
async fn next_suspected_function_is_tried_only_after_the_previous_one_failed() {
    let useless = "```python\n    def count(self, item):\n        return 7\n```";
    let right = "```python\n    def restock(self, item, amount):\n        self.counts[item] = self.counts.get(item, 0) + amount\n```";
    let model = Scripted::small()
        .always("agent stock.py::Stock.count", say(useless))
        .on("agent stock.py::Stock.restock", [say(right)]);
    let mut bed = bed("stock.count gives a wrong number.", model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(woken(&events), ["Stock.count", "Stock.restock"]);
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    let first_ended = at(&|event| matches!(event, Event::AgentFinished { .. }));
    let second_woken = at(&|event| {
        let Event::AgentWoken { agent, .. } = event else {
            return false;
        };
        agent
            .symbol()
            .is_some_and(|symbol| symbol.name == "Stock.restock")
    });
    assert!(first_ended < second_woken);
    assert!(bed.read("stock.py").contains("0) + amount"));
    // The headline says that the task is done: the unsuccessful attempt on `count` is no part of
    // it.
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}")
    };
    let proof = ending.as_ref().map(|ending| ending.proof);
    assert_eq!(proof, Some(Proof::Proven), "{ending:?}");
    // The failing assertion does not name `restock`, but the prompt for `restock` shows that
    // assertion.
    let prompts = bed.model.prompts("agent stock.py::Stock.restock");
    assert!(
        prompts[0].contains("must be `5`, but it is `-5`"),
        "{}",
        prompts[0]
    );
}

#[tokio::test(start_paused = true)]
async fn functions_are_tried_only_once_if_the_attempts_took_more_than_two_minutes() {
    let model = Scripted::small()
        .filling()
        .always("agent", say("```python\ndef nothing():\n    pass\n```"))
        .always("fill", say("        pass"));
    let mut bed = bed("Restocking an item lowers its count.", model);
    *bed.test_times.lock().unwrap() = vec![std::time::Duration::from_secs(25); 40].into();
    let events = bed.run().await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    let mut woken = woken(&events);
    let all = woken.len();
    woken.sort();
    woken.dedup();
    assert_eq!((woken.len() >= 2, woken.len()), (true, all), "{woken:?}");
}

#[tokio::test(start_paused = true)]
async fn fill_in_the_middle_model_tries_every_suspected_function_before_it_retries_one() {
    let useless = "```python\ndef nothing():\n    pass\n```";
    let model = Scripted::small()
        .filling()
        .always("agent", say(useless))
        .always("fill", say("        pass"));
    let mut bed = bed("Restocking an item lowers its count.", model);
    let events = bed.run().await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    let woken = woken(&events);
    let (first, again) = woken.split_at(woken.len() / 2);
    assert!(first.len() >= 2, "{woken:?}");
    assert_eq!(first, again);
    let ends: Vec<(String, String)> = events
        .iter()
        .filter_map(|event| match event {
            Event::AgentFinished {
                agent,
                outcome: AgentOutcome::GaveUp { why },
                ..
            } => Some((agent.symbol()?.name.clone(), why.clone())),
            _ => None,
        })
        .collect();
    assert!(
        ends[0].1.ends_with("; others are looked at first"),
        "{ends:?}"
    );
    let last = &ends[first.len()];
    assert_eq!(last.0, ends[0].0);
    assert!(!last.1.contains("others"), "{ends:?}");
    let prompts = bed.model.prompts("agent stock.py::Stock.restock");
    let explains = |prompt: &String| prompt.contains("Say in one sentence");
    assert_eq!(
        prompts.iter().position(explains),
        Some(2),
        "it goes on where it was"
    );
    assert_eq!(bed.read("stock.py"), STOCK);
}

#[tokio::test(start_paused = true)]
async fn run_ends_after_each_suspected_function_was_tried_without_success() {
    let useless = "```python\ndef nothing():\n    pass\n```";
    let model = Scripted::small().always("agent", say(useless));
    let mut bed = bed("Restocking an item lowers its count.", model);
    let events = bed.run().await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    let woken = woken(&events);
    assert!(woken.len() >= 2 && woken.len() <= 3, "{woken:?}");
    assert_eq!(bed.read("stock.py"), STOCK);
}

const FEED: &str = "\
def newest(episodes):
    return sorted(episodes)


def build_feed(title, episodes):
    return [title] + newest(episodes)
";
const FEED_TESTS: &str = "\
from feed import build_feed, newest


def test_newest_first():
    assert newest([1, 2]) == [2, 1]


def test_title_is_escaped():
    assert build_feed(\"a & b\", [])[0] == \"a &amp; b\"
";
const NEWEST_FIRST: &str =
    "```python\ndef newest(episodes):\n    return sorted(episodes, reverse=True)\n```";

/// Runs the task that `newest` returns the oldest episode first. The test of the title runs
/// `newest` through `build_feed`, and its error with the change is `error`.
async fn run_feed(task: &str, error: &'static str) -> (Vec<Event>, Bed) {
    let red = move |all: &str| {
        let is_fixed = all.contains("reverse=True");
        let error = if is_fixed {
            error
        } else {
            "E   AssertionError: not escaped"
        };
        let line = "test_feed.py:5: in test_newest_first\nE   assert [1, 2] == [2, 1]";
        let newest = (
            "test_feed.py::test_newest_first".to_owned(),
            line.to_owned(),
        );
        let title = (
            "test_feed.py::test_title_is_escaped".to_owned(),
            format!("test_feed.py:9: in test_title_is_escaped\n{error}"),
        );
        match is_fixed {
            true => vec![title],
            false => vec![newest, title],
        }
    };
    let files = [("feed.py", FEED), ("test_feed.py", FEED_TESTS)];
    let model = Scripted::small()
        .on("agent feed.py::newest", [say(NEWEST_FIRST)])
        .always(
            "agent",
            say("```python\ndef build_feed(title, episodes):\n    return []\n```"),
        );
    let task = task.to_owned();
    let mut bed = Bed::new(&files, model).tests(red).with(|it| it.text = task);
    bed.lists = true;
    let events = bed.run().await;
    (events, bed)
}

fn ending(events: &[Event]) -> &Ending {
    match events.last() {
        Some(Event::RunFinished {
            ending: Some(ending),
            ..
        }) => ending,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn failing_test_that_only_runs_the_fixed_function_does_not_lead_on() {
    let task = "newest() returns the oldest episode first, it should be newest first";
    let (events, bed) = run_feed(task, "E   AssertionError: not escaped").await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(woken(&events), ["newest"]);
    assert!(bed.read("feed.py").contains("reverse=True"));
    let ending = ending(&events);
    assert_eq!(ending.proof, Proof::Proven, "{ending:?}");
    let told = "test_title_is_escaped (it failed before), no part of the task";
    assert!(ending.headline.contains(told), "{}", ending.headline);
}

#[tokio::test(start_paused = true)]
async fn failing_test_whose_error_changes_with_the_fix_may_be_part_of_the_task() {
    let task = "newest() returns the oldest episode first, it should be newest first";
    let (events, _) = run_feed(task, "E   AssertionError: the order").await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(woken(&events), ["newest"]);
    let ending = ending(&events);
    assert_eq!(ending.proof, Proof::Unproven, "{ending:?}");
}

#[tokio::test(start_paused = true)]
async fn failing_test_that_the_words_of_the_task_fit_is_still_required() {
    let task = "newest() returns the oldest episode first, and its titles are not escaped";
    let (events, _) = run_feed(task, "E   AssertionError: not escaped").await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    assert!(woken(&events).len() > 1, "{:?}", woken(&events));
}

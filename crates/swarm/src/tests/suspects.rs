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

//! The limits of whole runs: parallel requests, retries, fallback models, and the time limit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::*;
use starling_models::resilient::{ResilientModel, RetryPolicy};

const SIX: &str =
    "def a(): pass\ndef b(): pass\ndef c(): pass\ndef d(): pass\ndef e(): pass\ndef f(): pass\n";
const OWNERS: [&str; 6] = [
    "a.py::a", "a.py::b", "a.py::c", "a.py::d", "a.py::e", "a.py::f",
];

const PRICE: Price = Price {
    prompt: 5.0,
    cached: 1.0,
    output: 25.0,
};

fn usage(prompt: u64, output: u64) -> Usage {
    Usage {
        prompt: Tokens(prompt),
        cached: Tokens(0),
        output: Tokens(output),
    }
}

fn read(symbol: &str) -> Line {
    call("read", json!({ "symbols": [symbol] }))
}

/// A model that sums the cost of completed requests and the worst-case cost of requests in
/// progress, independently of the budget under test.
struct MeteredModel {
    inner: Scripted,
    sum: Mutex<MeteredCosts>,
}

/// The cost of all requests at the moment, and its maximum so far.
#[derive(Default)]
struct MeteredCosts {
    dollars: f64,
    under_way: usize,
    most_dollars: f64,
    most_under_way: usize,
}

impl MeteredModel {
    fn of(inner: Scripted) -> Arc<Self> {
        Arc::new(MeteredModel {
            inner,
            sum: Mutex::default(),
        })
    }
}

#[async_trait]
impl ChatModel for MeteredModel {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let worst = WorstCase::of(request, self.profile()).dollars();
        {
            let mut sum = self.sum.lock().unwrap();
            sum.dollars += worst.0;
            sum.under_way += 1;
            sum.most_dollars = sum.most_dollars.max(sum.dollars);
            sum.most_under_way = sum.most_under_way.max(sum.under_way);
        }
        let reply = self.inner.chat(request, watch).await?;
        let mut sum = self.sum.lock().unwrap();
        sum.dollars += reply.cost.0 - worst.0;
        sum.under_way -= 1;
        Ok(reply)
    }
}

fn spent(events: &[Event]) -> Spent {
    match events.last() {
        Some(Event::RunFinished { spent, .. }) => spent.clone(),
        other => panic!("the last event is {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn parallel_agents_stay_within_the_dollar_limit() {
    let mut scripted = Scripted::native()
        .priced(Some(PRICE), usage(1_000, 2_000))
        .always("agent", read("a.py::a"));
    scripted.latency = Duration::from_secs(1);
    let meter = MeteredModel::of(scripted);
    let mut bed = Bed::new(&[("a.py", SIX)], Scripted::native())
        .begin(&OWNERS)
        .with(|task| task.limits.dollars = Some(Dollars(0.5)));
    bed.other_model = Some(meter.clone());
    let events = bed.run().await;
    assert!(
        matches!(stop(&events), StopReason::LedgerEmpty { .. }),
        "{:?}",
        stop(&events)
    );
    let sum = meter.sum.lock().unwrap();
    assert!(sum.most_under_way >= 2, "they work at the same time");
    assert!(sum.most_dollars <= 0.5, "{} dollars", sum.most_dollars);
    let spent = spent(&events).dollars.0;
    assert!((0.3..=0.5).contains(&spent), "{spent}");
}

#[tokio::test(start_paused = true)]
async fn agents_wait_for_tokens_that_other_requests_reserve_instead_of_ending_the_run() {
    let mut scripted = Scripted::native();
    for owner in OWNERS {
        scripted = scripted.on(
            &format!("agent {owner}"),
            [read(owner), finish("nothing to do")],
        );
    }
    scripted.latency = Duration::from_secs(1);
    let meter = MeteredModel::of(scripted);
    let mut bed = Bed::new(&[("a.py", SIX)], Scripted::native())
        .begin(&OWNERS)
        .with(|task| task.limits.tokens = Tokens(22_000));
    bed.other_model = Some(meter.clone());
    let events = bed.run().await;
    assert!(
        matches!(stop(&events), StopReason::NothingChanged { .. }),
        "{:?}",
        stop(&events)
    );
    assert_eq!(meter.inner.calls(), 12, "all of them come to their end");
    let most = meter.sum.lock().unwrap().most_under_way;
    assert!((1..6).contains(&most), "{most} at the same time");
    assert_eq!(spent(&events).prompt_tokens, Tokens(1_200));
}

fn lost() -> ModelError {
    ModelError::Transport {
        model: "scripted".into(),
        message: "the stream ended in the middle of the answer".into(),
    }
}

fn resilient(first: Arc<Scripted>, others: Vec<Arc<dyn ChatModel>>) -> Arc<dyn ChatModel> {
    Arc::new(ResilientModel::new(first, others, RetryPolicy::default()).with_seed(1))
}

#[tokio::test(start_paused = true)]
async fn every_attempt_of_a_failed_call_is_charged_at_its_worst_case() {
    let scripted = Arc::new(Scripted::native().always("agent", Line::Fail(lost())));
    let mut bed = Bed::new(&[("a.py", SIX)], Scripted::native()).begin(&["a.py::a"]);
    bed.other_model = Some(resilient(scripted.clone(), Vec::new()));
    let events = bed.run().await;
    let spent = spent(&events);
    assert_eq!(scripted.calls(), 4);
    assert_eq!(spent.calls, 4);
    let worst: Tokens = {
        let asked = scripted.asked.lock().unwrap();
        let of = |request: &ChatRequest| WorstCase::of(request, scripted.profile());
        let worst = asked.iter().map(of);
        worst.map(|worst| worst.prompt + worst.output).sum()
    };
    assert_eq!(spent.prompt_tokens + spent.output_tokens, worst);
    let booked = events.iter().find_map(|event| match event {
        Event::TurnFailed { spent, .. } => Some(spent.calls),
        _ => None,
    });
    assert_eq!(booked, Some(4));
}

#[tokio::test(start_paused = true)]
async fn fallback_model_that_exceeds_the_budget_is_not_called() {
    let down = ModelError::Refused {
        model: "cheap".into(),
        status: 404,
        message: "gone".into(),
    };
    let cheap = Arc::new(
        Scripted::native()
            .named("cheap")
            .always("agent", Line::Fail(down)),
    );
    let dear = Price {
        prompt: 1_000.0,
        cached: 1_000.0,
        output: 1_000.0,
    };
    let dear = Scripted::native()
        .named("dear")
        .priced(Some(dear), usage(1, 1));
    let dear = Arc::new(dear.always("agent", finish("done")));
    let mut bed = Bed::new(&[("a.py", SIX)], Scripted::native())
        .begin(&["a.py::a"])
        .with(|task| task.limits.dollars = Some(Dollars(0.5)));
    bed.other_model = Some(resilient(cheap, vec![dear.clone()]));
    let events = bed.run().await;
    assert_eq!(dear.calls(), 0);
    match stop(&events) {
        StopReason::LedgerEmpty { what } => assert!(what.contains("of $0.5000"), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn model_without_a_price_is_not_called_under_a_dollar_limit() {
    let unpriced = Scripted::native()
        .priced(None, usage(1, 1))
        .always("agent", finish("done"));
    let mut bed = Bed::new(&[("a.py", SIX)], unpriced)
        .begin(&["a.py::a"])
        .with(|task| task.limits.dollars = Some(Dollars(0.5)));
    let events = bed.run().await;
    assert_eq!(bed.model.calls(), 0);
    match stop(&events) {
        StopReason::LedgerEmpty { what } => {
            assert!(what.contains("the price of scripted is unknown"), "{what}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn time_limit_counts_while_another_agent_works_during_a_review() {
    let model = Scripted::native()
        .on("agent a.py::a", [whole("def a(): return 1\n")])
        .always("agent a.py::b", Line::Hang);
    let mut bed = Bed::new(&[("a.py", SIX)], model)
        .begin(&["a.py::a", "a.py::b"])
        .with(|task| {
            task.approval = Approval::Ask;
            task.limits.seconds = 200;
        });
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(10_000);
    let events = bed.run().await;
    assert_eq!(
        stop(&events),
        StopReason::LedgerEmpty {
            what: "200 seconds".into()
        }
    );
    let seconds = spent(&events).seconds;
    assert!((200.0..210.0).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn time_limit_message_reports_that_the_baseline_tests_did_not_finish() {
    let model = Scripted::native().on("agent a.py::a", [whole("def a(): return 1\n")]);
    let mut bed = Bed::new(&[("a.py", SIX)], model)
        .begin(&["a.py::a"])
        .tests(|_| Vec::new())
        .with(|task| task.limits.seconds = 8);
    *bed.test_times.lock().unwrap() = [Duration::from_secs(50)].into();
    let events = bed.run().await;
    let what = "8 seconds, and the tests before the change did not end (`fake tests`)";
    let expected = StopReason::LedgerEmpty { what: what.into() };
    assert_eq!(stop(&events), expected, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn time_limit_does_not_count_while_only_a_review_is_pending() {
    let model = Scripted::native().on("agent a.py::a", [whole("def a(): return 1\n")]);
    let mut bed = Bed::new(&[("a.py", SIX)], model)
        .begin(&["a.py::a"])
        .with(|task| {
            task.approval = Approval::Ask;
            task.limits.seconds = 200;
        });
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(10_000);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled);
    assert_eq!(spent(&events).waiting_seconds, 10_000.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_limit_stops_a_run_while_files_are_indexed() {
    const FILES: usize = 80;
    let slow = format!("x = 1{}\n", " \\\n".repeat(20_000));
    let names: Vec<String> = (0..FILES).map(|number| format!("odd{number}.py")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &*slow)).collect();
    files.push(("a.py", SIX));
    let mut bed = Bed::new(&files, Scripted::native()).with(|task| task.limits.seconds = 1);
    let events = bed.run().await;
    assert!(
        matches!(stop(&events), StopReason::LedgerEmpty { .. }),
        "{:?}",
        stop(&events)
    );
    assert_eq!(bed.model.calls(), 0);
    let index = bed.index.unwrap();
    assert!(
        index.report().files < FILES,
        "the rest is not read any more"
    );
}

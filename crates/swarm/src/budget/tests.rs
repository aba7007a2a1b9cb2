use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use proptest::prelude::*;

use super::*;
use starling_core::{
    ChatReply, ChatWatch, Cost, Dollars, Finish, Limits, ModelError, Price, Tokens, Usage,
    WorstCase,
};

fn budget(change: impl FnOnce(&mut Limits)) -> Budget {
    let mut limits = Limits::default();
    change(&mut limits);
    Budget::new(limits)
}

const PRICE: Price = Price {
    prompt: 10.0,
    cached: 1.0,
    output: 50.0,
};

fn worst(prompt: u64, output: u64) -> WorstCase {
    WorstCase {
        model: "m".to_owned(),
        prompt: Tokens(prompt),
        output: Tokens(output),
        price: Some(PRICE),
    }
}

fn reply(prompt: u64, output: u64, cost: f64, calls: u32) -> ChatReply {
    ChatReply {
        model: "m".into(),
        text: String::new(),
        tool_calls: Vec::new(),
        finish: Finish::Stop,
        usage: Usage {
            prompt: Tokens(prompt),
            cached: Tokens(7),
            output: Tokens(output),
        },
        cost: Dollars(cost),
        calls,
    }
}

fn timeout() -> ModelError {
    ModelError::Timeout {
        model: "m".to_owned(),
        after: Duration::from_secs(1),
    }
}

fn reserve(budget: &Budget, worst: WorstCase) -> Option<Result<Reservation, Exhausted>> {
    budget.reserve(worst).now_or_never()
}

fn reserved(budget: &Budget, prompt: u64, output: u64) -> Reservation {
    let reserved = reserve(budget, worst(prompt, output));
    reserved.expect("it need not wait").expect("it fits")
}

fn refusal(budget: &Budget, prompt: u64, output: u64) -> String {
    let refused = reserve(budget, worst(prompt, output));
    refused.expect("it need not wait").unwrap_err().what
}

fn waits(budget: &Budget, prompt: u64, output: u64) -> bool {
    reserve(budget, worst(prompt, output)).is_none()
}

#[test]
fn reservation_counts_against_the_limits_until_it_is_released() {
    let budget = budget(|limits| limits.calls = 1);
    let reservation = reserved(&budget, 10, 5);
    assert_eq!(budget.committed().tokens, Tokens(15));
    assert!(waits(&budget, 10, 5));
    reservation.release();
    assert_eq!(budget.committed().calls, 0);
    reserved(&budget, 10, 5).answered(&reply(5, 3, 0.0, 1));
    assert_eq!(refusal(&budget, 10, 5), "1 of 1 model calls");
}

#[test]
fn reported_usage_replaces_the_reservation() {
    let budget = budget(|limits| limits.tokens = Tokens(1_000));
    let first = reserved(&budget, 800, 100);
    assert!(waits(&budget, 100, 1));
    first.answered(&reply(80, 20, 0.25, 3));
    let spent = budget.spent();
    assert_eq!(
        (spent.calls, spent.prompt_tokens, spent.output_tokens),
        (3, Tokens(80), Tokens(20))
    );
    assert_eq!(
        (spent.cached_tokens, spent.dollars),
        (Tokens(7), Dollars(0.25))
    );
    reserved(&budget, 800, 100).release();
    assert_eq!(
        refusal(&budget, 901, 0),
        "100 of 1000 tokens, the next request may need 901"
    );
}

#[test]
fn request_without_reported_usage_is_charged_at_its_reservation() {
    let budget = budget(|_| {});
    drop(reserved(&budget, 100, 50));
    reserved(&budget, 100, 50).failed(&timeout(), false);
    let spent = budget.spent();
    assert_eq!(
        (spent.calls, spent.prompt_tokens, spent.output_tokens),
        (2, Tokens(200), Tokens(100))
    );
    assert_eq!(spent.dollars, Dollars(0.007));
}

#[test]
fn dollars_of_a_request_are_reserved_before_it_is_sent() {
    let budget = budget(|limits| limits.dollars = Some(Dollars(0.5)));
    // With the prices of this test, the prompt costs 0.1 dollars and the reply 0.2 dollars.
    let first = reserved(&budget, 10_000, 4_000);
    assert_eq!(budget.committed().dollars, Dollars(0.3));
    assert!(waits(&budget, 10_000, 4_000));
    first.answered(&reply(10_000, 4_000, 0.3, 1));
    let refused = refusal(&budget, 20_000, 4_000);
    assert_eq!(
        refused,
        "$0.3000 of $0.5000, the next request may cost $0.2512"
    );
}

#[test]
fn maximum_output_is_reduced_to_the_remaining_budget_if_no_other_reservation_is_held() {
    let budget = budget(|limits| limits.tokens = Tokens(10_000));
    let other = reserved(&budget, 1_000, 0);
    assert!(waits(&budget, 5_000, 8_000));
    other.release();
    let short = reserved(&budget, 5_000, 8_000);
    assert_eq!(short.max_output(), Tokens(5_000));
    assert_eq!(budget.committed().tokens, Tokens(10_000));
    short.release();
    let least = reserved(&budget, 10_000 - SHORTEST_ANSWER.0, 8_000);
    assert_eq!(least.max_output(), SHORTEST_ANSWER);
    least.release();
    assert!(refusal(&budget, 10_001 - SHORTEST_ANSWER.0, 8_000).contains("10.0k tokens"));
}

#[test]
fn request_with_an_unknown_price_is_refused_under_a_dollar_limit() {
    let unpriced = || WorstCase {
        price: None,
        ..worst(1, 1)
    };
    let limited = budget(|limits| limits.dollars = Some(Dollars(5.0)));
    let refused = reserve(&limited, unpriced()).unwrap().unwrap_err().what;
    assert!(
        refused.starts_with("the price of m is unknown") && refused.contains("price_prompt"),
        "{refused}"
    );
    assert!(reserve(&budget(|_| {}), unpriced()).unwrap().is_ok());
}

#[test]
fn usage_above_its_estimate_raises_later_estimates() {
    let budget = budget(|_| {});
    reserved(&budget, 1_000, 0).answered(&reply(2_000, 0, 0.0, 1));
    let next = reserved(&budget, 1_000, 0);
    assert_eq!(budget.committed().tokens, Tokens(2_000 + 2_200));
    next.answered(&reply(500, 0, 0.0, 1));
    let after = reserved(&budget, 1_000, 0);
    assert_eq!(budget.committed().tokens, Tokens(2_500 + 2_200));
    after.release();
}

#[test]
fn negative_or_nan_cost_does_not_reduce_the_spent_dollars() {
    let budget = budget(|limits| limits.dollars = Some(Dollars(0.5)));
    for cost in [-5.0, f64::NAN] {
        reserved(&budget, 1, 1).answered(&reply(1, 1, cost, 1));
    }
    assert_eq!(budget.spent().dollars, Dollars(0.0));
    reserved(&budget, 1, 1).answered(&reply(1, 1, f64::INFINITY, 1));
    assert!(refusal(&budget, 1, 1).contains("of $0.5000"));
}

#[tokio::test]
async fn reservations_are_granted_in_the_order_of_their_requests() {
    let budget = budget(|limits| limits.tokens = Tokens(1_000));
    let first = reserved(&budget, 600, 0);
    let mut large = Box::pin(budget.reserve(worst(900, 0)));
    let mut small = Box::pin(budget.reserve(worst(10, 0)));
    assert!(large.as_mut().now_or_never().is_none());
    assert!(small.as_mut().now_or_never().is_none(), "no overtaking");
    first.release();
    assert!(
        small.as_mut().now_or_never().is_none(),
        "the large one is first"
    );
    let large = large.await.unwrap();
    let small = small.await.unwrap();
    drop((large, small));
}

#[tokio::test]
async fn cancelled_reservation_request_does_not_block_the_next_one() {
    let budget = budget(|limits| limits.tokens = Tokens(1_000));
    let _first = reserved(&budget, 600, 0);
    let mut large = Box::pin(budget.reserve(worst(900, 0)));
    assert!(large.as_mut().now_or_never().is_none());
    let small = tokio::spawn({
        let budget = budget.clone();
        async move { budget.reserve(worst(10, 0)).await.map(Reservation::release) }
    });
    tokio::task::yield_now().await;
    assert!(!small.is_finished());
    drop(large);
    assert_eq!(small.await.unwrap(), Ok(()));
}

#[test]
fn free_budget_for_several_requests_excludes_existing_reservations() {
    let budget = budget(|limits| {
        limits.calls = 3;
        limits.tokens = Tokens(100);
    });
    let _reserved = reserved(&budget, 40, 0);
    assert!(budget.has_room(2, &worst(30, 0)));
    assert!(!budget.has_room(3, &worst(1, 0)));
    assert!(!budget.has_room(2, &worst(30, 1)));
}

#[test]
fn each_request_of_a_call_is_charged_once() {
    let budget = budget(|_| {});
    let open = CallBudget::open(&budget, worst(100, 50)).now_or_never();
    let call = open.unwrap().unwrap();
    call.delta("a");
    call.request_ended(Err(&timeout()));
    // A second report for the same request is ignored.
    call.request_ended(Err(&timeout()));
    assert_eq!(budget.committed().calls, 1);
    let next = call.reserve_next(&worst(100, 50)).now_or_never();
    assert_eq!(next, Some(Ok(Tokens(50))));
    let refused = ModelError::RateLimited {
        model: "m".to_owned(),
        retry_after: None,
        message: String::new(),
    };
    let cost = call.close(Some(&Err(refused)));
    assert_eq!((cost.calls, cost.usage.prompt), (2, Tokens(100)));
    assert_eq!(budget.spent().prompt_tokens, Tokens(100));
}

#[test]
fn call_without_a_result_is_charged_at_its_full_reservation() {
    let budget = budget(|_| {});
    let open = || CallBudget::open(&budget, worst(100, 50)).now_or_never();
    let cost = open().unwrap().unwrap().close(None);
    assert_eq!((cost.calls, cost.usage.output), (1, Tokens(50)));
    drop(open().unwrap().unwrap());
    assert_eq!(budget.spent().output_tokens, Tokens(100));
}

#[test]
fn messages_and_agents_are_counted_up_to_their_limits() {
    let budget = budget(|limits| {
        limits.messages = 2;
        limits.agents = 1;
    });
    budget.count_message().unwrap();
    budget.count_message().unwrap();
    let refused = budget.count_message().unwrap_err().to_string();
    assert_eq!(refused, "the budget is used up: 2 messages between agents");
    budget.count_agent().unwrap();
    assert_eq!(budget.count_agent().unwrap_err().what, "1 agent");
    let spent = budget.spent();
    assert_eq!((spent.messages, spent.agents), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn clock_stops_while_the_run_waits_only_for_people() {
    let budget = budget(|limits| limits.seconds = 100);
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    pass(10).await;
    let one = budget.wait_for_person();
    pass(1_000).await;
    let two = budget.wait_for_person();
    pass(500).await;
    drop(one);
    pass(500).await;
    assert_eq!(budget.time_left(), Duration::from_secs(90));
    let work = budget.work();
    pass(20).await;
    assert_eq!(budget.time_left(), Duration::from_secs(70));
    drop(work);
    pass(300).await;
    assert_eq!(budget.time_left(), Duration::from_secs(70));
    drop(two);
    pass(30).await;
    assert_eq!(budget.time_left(), Duration::from_secs(40));
    let spent = budget.spent();
    assert_eq!((spent.seconds, spent.waiting_seconds), (2_360.0, 2_300.0));
}

#[tokio::test(start_paused = true)]
async fn time_limit_is_extended_by_the_time_of_waiting_for_people() {
    let budget = budget(|limits| limits.seconds = 100);
    let began = tokio::time::Instant::now();
    let person = budget.wait_for_person();
    let waited = async {
        tokio::time::sleep(Duration::from_secs(250)).await;
        drop(person);
    };
    tokio::join!(budget.time_up(), waited);
    let took = began.elapsed().as_secs_f64();
    assert!((350.0..351.0).contains(&took), "{took}");
    assert!(budget.time_left().is_zero());
}

#[tokio::test(start_paused = true)]
async fn overlapping_external_work_is_counted_once() {
    let budget = budget(|_| {});
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    // In seconds since the start, the periods of external work are 1 to 5 (tests), 3 to 5, 5 to 6
    // and 8 to 10 (model).
    pass(5).await;
    budget.was_outside(ExternalTime::Model, Duration::from_secs(2));
    budget.was_outside(ExternalTime::Tests, Duration::from_secs(4));
    pass(1).await;
    budget.was_outside(ExternalTime::Model, Duration::from_secs(1));
    pass(4).await;
    budget.was_outside(ExternalTime::Model, Duration::from_secs(2));
    let spent = budget.spent();
    assert_eq!(spent.model_seconds, 5.0);
    assert_eq!(spent.test_seconds, 4.0);
    assert_eq!(spent.outside_seconds, 7.0);
    // A period cannot start before the run.
    budget.was_outside(ExternalTime::Tests, Duration::from_secs(60));
    assert_eq!(budget.spent().outside_seconds, 10.0);
}

/// One step in a sequence of many callers that share a budget.
#[derive(Debug, Clone)]
enum BudgetStep {
    /// A caller asks for a reservation.
    Ask { prompt: u64, output: u64 },
    /// A caller stops waiting for its reservation.
    GiveUp(usize),
    /// A request succeeds and uses this share (of 255) of its reservation.
    Answer(usize, u8),
    /// A request fails after it was sent.
    Fail(usize),
    /// The provider rejects a request because of its rate limit.
    TurnAway(usize),
    /// A reservation is dropped without a result.
    Abandon(usize),
    /// A reservation is returned unused.
    Release(usize),
}

fn step() -> impl Strategy<Value = BudgetStep> {
    let ask = || {
        (0u64..6_000, 0u64..6_000).prop_map(|(prompt, output)| BudgetStep::Ask { prompt, output })
    };
    prop_oneof![
        ask(),
        ask(),
        any::<usize>().prop_map(BudgetStep::GiveUp),
        (any::<usize>(), any::<u8>()).prop_map(|(at, share)| BudgetStep::Answer(at, share)),
        any::<usize>().prop_map(BudgetStep::Fail),
        any::<usize>().prop_map(BudgetStep::TurnAway),
        any::<usize>().prop_map(BudgetStep::Abandon),
        any::<usize>().prop_map(BudgetStep::Release),
    ]
}

/// A pending request for a reservation.
type PendingReservation = Pin<Box<dyn Future<Output = Result<Reservation, Exhausted>>>>;

/// Callers that share one budget. The test polls their futures itself.
struct Callers {
    budget: Budget,
    waiting: Vec<(u64, u64, PendingReservation)>,
    held: Vec<(u64, Reservation)>,
}

impl Callers {
    fn poll(&mut self) {
        let mut context = Context::from_waker(std::task::Waker::noop());
        // Polls repeatedly, because the end of one caller can unblock another.
        for _ in 0..=self.waiting.len() {
            let mut at = 0;
            while at < self.waiting.len() {
                match self.waiting[at].2.as_mut().poll(&mut context) {
                    Poll::Pending => at += 1,
                    Poll::Ready(ended) => {
                        let (prompt, output, _) = self.waiting.remove(at);
                        if let Ok(reservation) = ended {
                            let shortest = output.min(SHORTEST_ANSWER.0);
                            assert_eq!(at, 0, "the first that waits is the first to be served");
                            assert!((shortest..=output).contains(&reservation.max_output().0));
                            self.held.push((prompt, reservation));
                        }
                    }
                }
            }
        }
    }

    fn take(&mut self, at: usize) -> Option<(u64, Reservation)> {
        let count = self.held.len();
        (count > 0).then(|| self.held.remove(at % count))
    }

    fn step(&mut self, step: BudgetStep) {
        let cost = match step {
            BudgetStep::Ask { prompt, output } => {
                let budget = self.budget.clone();
                let asked = worst(prompt, output);
                let reserve = async move { budget.reserve(asked).await };
                self.waiting.push((prompt, output, Box::pin(reserve)));
                None
            }
            BudgetStep::GiveUp(at) => {
                if !self.waiting.is_empty() {
                    drop(self.waiting.remove(at % self.waiting.len()));
                }
                None
            }
            BudgetStep::Answer(at, share) => self.take(at).map(|(prompt, held)| {
                let part = |most: u64| most * u64::from(share) / 255;
                let (prompt, output) = (part(prompt), part(held.max_output().0));
                let dollars = PRICE.at_most(Tokens(prompt), Tokens(output));
                held.answered(&reply(prompt, output, dollars.0, 1))
            }),
            BudgetStep::Fail(at) => self.take(at).map(|(_, held)| held.failed(&timeout(), true)),
            BudgetStep::TurnAway(at) => self.take(at).map(|(_, held)| {
                let turned_away = ModelError::RateLimited {
                    model: "m".to_owned(),
                    retry_after: None,
                    message: String::new(),
                };
                held.failed(&turned_away, false)
            }),
            BudgetStep::Abandon(at) => {
                drop(self.take(at));
                None
            }
            BudgetStep::Release(at) => {
                if let Some((_, held)) = self.take(at) {
                    held.release();
                }
                None
            }
        };
        assert!(cost.is_none_or(|cost: Cost| cost.calls == 1));
    }

    fn check(&self) {
        let committed = self.budget.committed();
        let limits = self.budget.limits();
        assert!(committed.calls <= limits.calls, "{committed:?}");
        assert!(committed.tokens <= limits.tokens, "{committed:?}");
        assert!(
            limits.dollars.is_none_or(|most| committed.dollars <= most),
            "{committed:?}"
        );
        let spent = self.budget.spent();
        let spent_tokens = spent.prompt_tokens + spent.output_tokens;
        assert!(spent_tokens <= committed.tokens);
        assert!(spent.calls + u32::try_from(self.held.len()).unwrap() == committed.calls);
    }
}

proptest! {
    #[test]
    fn spent_and_reserved_amounts_never_exceed_a_limit(
        steps in prop::collection::vec(step(), 1..80),
        calls in 1u32..30,
        tokens in 1u64..40_000,
        cents in prop::option::of(1u32..200),
    ) {
        let budget = budget(|limits| {
            limits.calls = calls;
            limits.tokens = Tokens(tokens);
            limits.dollars = cents.map(|cents| Dollars(f64::from(cents) / 100.0));
        });
        let mut callers = Callers { budget, waiting: Vec::new(), held: Vec::new() };
        for step in steps {
            callers.step(step);
            callers.poll();
            callers.check();
        }
        // Waiting callers get their reservation, or an error, after all held reservations have
        // ended.
        while let Some((_, held)) = callers.held.pop() {
            drop(held);
            callers.poll();
            callers.check();
        }
        prop_assert!(callers.waiting.is_empty());
    }
}

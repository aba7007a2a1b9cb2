//! The ledger: what is reserved counts, the clock stands while a person is asked, each limit is named.

use std::time::Duration;

use crate::ports::*;
use crate::swarm::ledger::{Ledger, Limits, Outside};

fn ledger(change: impl FnOnce(&mut Limits)) -> Ledger {
    let mut limits = Limits::default();
    change(&mut limits);
    Ledger::new(limits)
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

fn refusal(ledger: &Ledger, tokens: u64) -> String {
    ledger.reserve_call(Tokens(tokens)).unwrap_err().what
}

#[test]
fn a_reserved_call_counts_until_it_is_dropped() {
    let ledger = ledger(|limits| limits.calls = 1);
    let reservation = ledger.reserve_call(Tokens(10)).unwrap();
    assert_eq!(refusal(&ledger, 10), "1 of 1 model calls");
    drop(reservation);
    assert_eq!(ledger.spent().calls, 0);
    let reservation = ledger.reserve_call(Tokens(10)).unwrap();
    reservation.settle(&reply(5, 3, 0.0, 1));
    assert_eq!(refusal(&ledger, 10), "1 of 1 model calls");
}

#[test]
fn what_a_call_really_cost_is_booked_in_place_of_what_was_reserved() {
    let ledger = ledger(|limits| limits.tokens = Tokens(1_000));
    let first = ledger.reserve_call(Tokens(900)).unwrap();
    assert_eq!(
        refusal(&ledger, 101),
        "900 of 1000 tokens, 101 more are needed"
    );
    first.settle(&reply(80, 20, 0.25, 3));
    let spent = ledger.spent();
    assert_eq!(
        (spent.calls, spent.prompt_tokens, spent.output_tokens),
        (3, Tokens(80), Tokens(20))
    );
    assert_eq!(
        (spent.cached_tokens, spent.dollars),
        (Tokens(7), Dollars(0.25))
    );
    assert!(
        ledger.reserve_call(Tokens(900)).is_ok(),
        "up to the last one"
    );
    assert_eq!(
        refusal(&ledger, 901),
        "100 of 1000 tokens, 901 more are needed"
    );
}

#[test]
fn a_failed_call_and_one_that_says_nothing_of_its_requests_count_once() {
    let ledger = ledger(|limits| limits.calls = 2);
    ledger.reserve_call(Tokens(10)).unwrap().settle_failed();
    let silent = ledger.reserve_call(Tokens(10)).unwrap();
    silent.settle(&reply(1, 1, 0.0, 0));
    assert_eq!(ledger.spent().calls, 2);
    assert_eq!(refusal(&ledger, 1), "2 of 2 model calls");
}

#[test]
fn no_call_begins_when_the_dollars_are_spent() {
    let ledger = ledger(|limits| limits.dollars = Some(Dollars(0.5)));
    let call = || ledger.reserve_call(Tokens(1));
    call().unwrap().settle(&reply(1, 1, 0.4, 1));
    call().unwrap().settle(&reply(1, 1, 0.2, 1));
    assert_eq!(refusal(&ledger, 1), "$0.6000 of $0.5000");
}

#[test]
fn a_reserved_call_has_room_for_more_requests_as_the_limits_have() {
    let ledger = ledger(|limits| {
        limits.calls = 3;
        limits.tokens = Tokens(100);
    });
    let _reserved = ledger.reserve_call(Tokens(40)).unwrap();
    assert!(ledger.has_room(2, Tokens(60)));
    assert!(!ledger.has_room(3, Tokens(60)));
    assert!(!ledger.has_room(2, Tokens(61)));
}

#[test]
fn messages_and_agents_are_counted_up_to_their_limits() {
    let ledger = ledger(|limits| {
        limits.messages = 2;
        limits.agents = 1;
    });
    ledger.count_message().unwrap();
    ledger.count_message().unwrap();
    let refused = ledger.count_message().unwrap_err().to_string();
    assert_eq!(refused, "the budget is used up: 2 messages between agents");
    ledger.count_agent().unwrap();
    assert_eq!(ledger.count_agent().unwrap_err().what, "1 agents");
    let spent = ledger.spent();
    assert_eq!((spent.messages, spent.agents), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn the_clock_stands_while_any_person_is_asked() {
    let ledger = ledger(|limits| limits.seconds = 100);
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    pass(10).await;
    let one = ledger.wait_for_person();
    pass(1_000).await;
    let two = ledger.wait_for_person();
    pass(500).await;
    drop(one);
    pass(500).await;
    assert_eq!(ledger.time_left(), Duration::from_secs(90));
    drop(two);
    pass(30).await;
    assert_eq!(ledger.time_left(), Duration::from_secs(60));
    let spent = ledger.spent();
    assert_eq!((spent.seconds, spent.waiting_seconds), (2_040.0, 2_000.0));
}

#[tokio::test(start_paused = true)]
async fn the_time_is_up_when_the_clock_has_really_run() {
    let ledger = ledger(|limits| limits.seconds = 100);
    let began = tokio::time::Instant::now();
    let person = ledger.wait_for_person();
    let waited = async {
        tokio::time::sleep(Duration::from_secs(250)).await;
        drop(person);
    };
    tokio::join!(ledger.time_up(), waited);
    let took = began.elapsed().as_secs_f64();
    assert!((350.0..351.0).contains(&took), "{took}");
    assert!(ledger.time_left().is_zero());
}

#[tokio::test(start_paused = true)]
async fn what_was_at_work_at_once_is_counted_once() {
    let ledger = ledger(|_| {});
    let pass = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    // 1 to 5, 3 to 5, 5 to 6 and 8 to 10.
    pass(5).await;
    ledger.was_outside(Outside::Model, Duration::from_secs(2));
    ledger.was_outside(Outside::Tests, Duration::from_secs(4));
    pass(1).await;
    ledger.was_outside(Outside::Model, Duration::from_secs(1));
    pass(4).await;
    ledger.was_outside(Outside::Model, Duration::from_secs(2));
    let spent = ledger.spent();
    assert_eq!(spent.model_seconds, 5.0);
    assert_eq!(spent.test_seconds, 4.0);
    assert_eq!(spent.outside_seconds, 7.0);
    // Nothing began before the run.
    ledger.was_outside(Outside::Tests, Duration::from_secs(60));
    assert_eq!(ledger.spent().outside_seconds, 10.0);
}

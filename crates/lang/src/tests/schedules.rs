//! Tests misbehaving servers over many seeded schedules: no request takes longer than its deadline,
//! and no result belongs to another text than the requested one.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::scripted::*;
use crate::names::{ServerLocation, spots};
use starling_core::Relation;
use starling_syntax::FilePath;

const MANNERS: [DiagnosticsMode; 4] = [
    DiagnosticsMode::Pull,
    DiagnosticsMode::PullLater,
    DiagnosticsMode::Push,
    DiagnosticsMode::PushBare,
];

/// Counts of the results of several schedules.
#[derive(Debug, Default)]
struct ResultCounts {
    /// Number of results with problems.
    known: usize,
    /// Number of results with locations or hover text.
    of_names: usize,
    unknown: usize,
}

/// Returns the length of the only location.
fn length(places: &[ServerLocation]) -> usize {
    let long = "x".repeat(99);
    let mut request = request("a.py", &long, None, Duration::ZERO);
    let other = (FilePath::new("b.py"), Some(long.into()));
    request.overlay.push(other);
    let spots = spots(places, &request, Path::new("/p"));
    assert_eq!(spots.len(), 1);
    spots[0].range.len()
}

fn script(dice: &mut TestRng, manner: DiagnosticsMode) -> ServerScript {
    // Each kind of failure occurs in one of three schedules.
    let mut often = |most: u64| match dice.below(3) {
        0 => 1 + dice.below(most),
        _ => 0,
    };
    ServerScript {
        manner,
        crash_at_start: often(60),
        crash_at_message: often(20),
        silent: often(40),
        slow: often(60),
        flood: often(15),
        wrong_version: often(70),
        garbage: often(8),
        refuse: often(40),
        slow_names: often(30),
        blind: false,
        silent_after: 0,
    }
}

async fn one_schedule(seed: u64, count: &mut ResultCounts) {
    let mut dice = TestRng::new(seed + 77);
    let manner = MANNERS[(seed % 4) as usize];
    let keeper = script(&mut dice, manner).keeper(seed);
    for question in 0..8 {
        let other = dice
            .in_hundred(40)
            .then(|| format!("other {}", dice.below(3)));
        // Repeat an earlier text sometimes.
        let number = question - dice.below(question + 1) / 3;
        let text = format!("text {}", "i".repeat(number as usize));
        let file = ["a.py", "b.py"][dice.below(2) as usize];
        let deadline = Duration::from_millis(100 + dice.below(5000));
        let began = Instant::now();
        let asked = request(file, &text, other.as_deref(), deadline);
        // Some callers give up before the deadline.
        let patience = match dice.in_hundred(15) {
            true => deadline / 3,
            false => deadline * 2,
        };
        // Results about names must belong to this text as well as problems.
        let kind = dice.below(4);
        let expected = seen(&text, other.as_deref());
        let found = async {
            match kind {
                0 => {
                    let (tool, words) = keeper.hover(asked, 0).await?;
                    Ok((tool, words))
                }
                1 => {
                    let relations = [
                        Relation::Definitions,
                        Relation::References,
                        Relation::Implementations,
                    ];
                    let relation = relations[(question % 3) as usize];
                    let (tool, places) = keeper.places(asked, 0, relation).await?;
                    let length = length(&places);
                    assert_eq!(length, expected.len(), "seed {seed}");
                    Ok((tool, expected.clone()))
                }
                _ => {
                    let (tool, problems) = keeper.diagnose(asked).await?;
                    Ok((tool, words(&problems).concat()))
                }
            }
        };
        match tokio::time::timeout(patience, found).await {
            Ok(Ok((tool, words))) => {
                assert_eq!(tool, "scripted 1.0");
                assert_eq!(words, expected, "seed {seed}");
                match kind {
                    0 | 1 => count.of_names += 1,
                    _ => count.known += 1,
                }
            }
            Ok(Err::<_, String>(why)) => {
                assert!(why.starts_with("scripted"), "{why}");
                count.unknown += 1;
            }
            Err(_) => count.unknown += 1,
        }
        let took = began.elapsed();
        let most = deadline + Duration::from_millis(2);
        assert!(took <= most, "seed {seed}: {took:?} of {deadline:?}");
        if dice.in_hundred(20) {
            tokio::time::advance(Duration::from_millis(dice.below(30_000))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn misbehaving_servers_cause_no_stale_results_and_no_late_ones() {
    let mut count = ResultCounts::default();
    for seed in 0..1000 {
        one_schedule(seed, &mut count).await;
    }
    println!("{count:?}");
    // Despite the failures, many requests succeed, and many fail.
    assert!(count.known > 1500, "{count:?}");
    assert!(count.of_names > 600, "{count:?}");
    assert!(count.unknown > 1000, "{count:?}");
}

#[tokio::test(start_paused = true)]
async fn well_behaved_servers_always_answer() {
    for manner in MANNERS {
        let keeper = ServerScript::good(manner).keeper(1);
        let mut unproven = 0;
        for question in 0..50 {
            let other = (question % 3 == 0).then(|| format!("other {question}"));
            let text = format!("text {}", question / 2);
            let asked = request("a.py", &text, other.as_deref(), Duration::from_secs(2));
            let found = keeper.diagnose(asked).await;
            match found {
                Ok((_, problems)) => {
                    assert_eq!(words(&problems), [seen(&text, other.as_deref())]);
                }
                // A result that may be stale is rejected once.
                Err(why) => {
                    assert_eq!(manner, DiagnosticsMode::PushBare, "{why}");
                    assert!(why.contains("may be old"), "{why}");
                    unproven += 1;
                }
            }
        }
        // Each rejection starts a new server, whose results are provably current.
        assert_eq!(keeper.news.take().len(), 1 + unproven);
        assert!(unproven < 25);
    }
}

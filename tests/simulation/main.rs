//! A deterministic simulation of whole runs: one thread, a simulated clock, and one seed that
//! decides everything that models, people, editors, tests and language servers do. The guarantees
//! of `docs/guarantees.md` are checked after every event.
//!
//! `STARLING_SIMULATION_SEEDS=100000` runs that many seeds; `STARLING_SIMULATION_SEED=17` runs one
//! seed, shrinks it if it fails, and prints its log. See `docs/simulation.md`.

#![allow(clippy::unwrap_used)]

mod actors;
mod checks;
mod choices;
mod editor;
mod judge;
mod models;
mod person;
mod plan;
mod project;
mod restart;
mod run;
mod shrink;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use run::simulate;

/// Default number of seeds, in all shards together.
const SEEDS: u64 = 2_000;
const SHARDS: u64 = 8;

fn seeds() -> u64 {
    let wanted = std::env::var("STARLING_SIMULATION_SEEDS");
    wanted.map_or(SEEDS, |wanted| wanted.parse().expect("a number of seeds"))
}

/// Returns whether a violation is known and not fixed yet.
fn is_open(violation: &judge::Violation) -> bool {
    let name = format!("{} | {}", violation.invariant, violation.mechanism);
    let open = include_str!("../../fixtures/simulation/open").lines();
    open.into_iter().any(|line| line == name)
}

/// Checks that every seed of a shard keeps all guarantees.
fn shard(number: u64) {
    for seed in (number..seeds()).step_by(SHARDS as usize) {
        let outcome = simulate(seed, &BTreeSet::new());
        if let Some(violation) = outcome.violations.iter().find(|one| !is_open(one)) {
            panic!("{}", shrink::report(seed, violation));
        }
    }
}

macro_rules! shards {
    ($($name:ident $number:literal),*) => {
        $(#[test] fn $name() { shard($number); })*
    };
}

shards!(
    guarantees_hold_in_shard_0 0, guarantees_hold_in_shard_1 1,
    guarantees_hold_in_shard_2 2, guarantees_hold_in_shard_3 3,
    guarantees_hold_in_shard_4 4, guarantees_hold_in_shard_5 5,
    guarantees_hold_in_shard_6 6, guarantees_hold_in_shard_7 7
);

#[test]
fn same_seed_produces_the_same_log() {
    for seed in 0..20 {
        let one = simulate(seed, &BTreeSet::new());
        let other = simulate(seed, &BTreeSet::new());
        assert_eq!(one.log, other.log, "seed {seed}");
        assert_eq!(one.taken, other.taken, "seed {seed}");
    }
}

/// Checks the seeds that once found a bug. Each line is `SEED INVARIANT: description of the bug`.
#[test]
fn seeds_that_once_broke_a_guarantee_keep_it() {
    for line in include_str!("../../fixtures/simulation/seeds").lines() {
        let Some(seed) = line.split(' ').next().and_then(|seed| seed.parse().ok()) else {
            continue;
        };
        let outcome = simulate(seed, &BTreeSet::new());
        let broken = outcome.violations.iter().find(|one| !is_open(one));
        assert_eq!(broken, None, "{line}");
    }
}

/// Runs one seed and prints its violations.
#[test]
#[ignore = "a tool: set STARLING_SIMULATION_SEED"]
fn one_seed_from_the_environment_keeps_all_guarantees() {
    let seed = std::env::var("STARLING_SIMULATION_SEED").expect("STARLING_SIMULATION_SEED is set");
    let seed = seed.parse().expect("a seed");
    let outcome = simulate(seed, &BTreeSet::new());
    if std::env::var_os("STARLING_SIMULATION_LOG").is_some() {
        println!("{}", outcome.log);
    }
    for violation in &outcome.violations {
        println!("{}", shrink::report(seed, violation));
    }
    assert_eq!(outcome.violations, []);
}

/// Prints the first seed of each kind of violation.
#[test]
#[ignore = "a tool: lists what the first seeds find"]
fn survey_of_many_seeds_prints_each_kind_of_violation() {
    let mut found: BTreeMap<(&str, String), (u64, u64, String)> = BTreeMap::new();
    let began = std::time::Instant::now();
    for seed in 0..seeds() {
        for one in simulate(seed, &BTreeSet::new()).violations {
            let entry = found.entry((one.invariant, one.mechanism));
            entry.or_insert_with(|| (seed, 0, one.text)).1 += 1;
        }
    }
    for ((invariant, mechanism), (seed, count, text)) in &found {
        println!("{invariant} | {mechanism} | first {seed} | {count} seeds | {text}");
    }
    println!("{} seeds in {:?}", seeds(), began.elapsed());
}

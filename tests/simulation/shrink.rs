//! Shrinks a failing run: leaves out deviations as long as the same guarantee is broken.

use std::collections::BTreeSet;

use super::judge::Violation;
use super::run::{Outcome, simulate};

/// Maximum number of runs for shrinking.
const TRIES: u32 = 400;

/// Returns the deviations to leave out so that a seed still breaks the guarantee in the same way
/// with as few deviations as possible, and the result of that run.
pub fn shrink(seed: u64, violation: &Violation) -> (BTreeSet<String>, Outcome) {
    let mut dropped = BTreeSet::new();
    let mut best = simulate(seed, &dropped);
    let mut tries = 0;
    let mut size = best.taken.len().max(1);
    while size > 0 && tries < TRIES {
        let mut at = 0;
        let mut helped = false;
        while at < best.taken.len() && tries < TRIES {
            let chunk = best.taken.iter().skip(at).take(size).cloned();
            let fewer: BTreeSet<String> = dropped.iter().cloned().chain(chunk).collect();
            let outcome = simulate(seed, &fewer);
            tries += 1;
            let same = |one: &Violation| {
                one.invariant == violation.invariant && one.mechanism == violation.mechanism
            };
            if outcome.violations.iter().any(same) {
                (dropped, best, helped) = (fewer, outcome, true);
            } else {
                at += size;
            }
        }
        if !helped || size == 1 {
            size /= 2;
        }
    }
    (dropped, best)
}

/// Describes a failing seed with as few deviations as possible.
pub fn report(seed: u64, violation: &Violation) -> String {
    let (_, small) = shrink(seed, violation);
    let steps: String = small
        .taken
        .iter()
        .map(|step| format!("  {step}\n"))
        .collect();
    let log: Vec<&str> = small.log.lines().collect();
    let last = log.iter().skip(log.len().saturating_sub(12));
    let short = |line: &&str| format!("  {}\n", line.chars().take(300).collect::<String>());
    let last: String = last.map(short).collect();
    format!(
        "seed {seed} breaks a guarantee: {} ({}): {}\nIt happens with only these deviations:\n{steps}The last records of its log:\n{last}\
         Replay it: STARLING_SIMULATION_SEED={seed} cargo nextest run --test simulation --run-ignored all one_seed",
        violation.invariant, violation.mechanism, violation.text
    )
}

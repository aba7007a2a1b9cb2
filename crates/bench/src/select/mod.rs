//! Which of several samples to hand in. What it may look at is in its arguments: the problem statement,
//! the changes, and what their own runs found out. What belongs to the grader is out of its reach.

mod likeness;
mod signals;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use likeness::likeness;
use starling_core::{Dollars, NoWatch, Tokens};
use starling_models::verifier::Verifier;
use starling_swarm::ledger::{CallBudget, Ledger};

pub use signals::{Signal, Signals};

/// One sample of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its number, from 1.
    pub sample: usize,
    /// A unified diff; empty when nothing was changed.
    pub patch: String,
    /// What its own run said, as lines of a trajectory.
    pub trajectory: String,
}

/// What was chosen, and how each sample fared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The number of the sample.
    pub chosen: usize,
    pub samples: BTreeMap<usize, Signals>,
    /// What the verifier cost.
    pub dollars: Dollars,
    /// Why it could not judge some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trouble: Vec<String>,
}

/// A verifier, and the budget that all its judgements share.
pub struct Judge {
    pub verifier: Verifier,
    pub ledger: Ledger,
}

impl Judge {
    /// The score of a change, and what it cost in dollars. What the budget has no room for is not sent.
    async fn score(&self, problem: &str, patch: &str) -> (Result<f64, String>, Dollars) {
        let Some(worst) = self.verifier.worst_case(problem, patch) else {
            let score = self.verifier.score(problem, patch, Tokens(0), &NoWatch);
            return (score.await, Dollars(0.0));
        };
        let budget = match CallBudget::open(&self.ledger, worst).await {
            Ok(budget) => budget,
            Err(exhausted) => return (Err(exhausted.to_string()), Dollars(0.0)),
        };
        let (verifier, most) = (&self.verifier, budget.max_output());
        let score = verifier.score(problem, patch, most, &budget).await;
        (score, budget.close(None).dollars)
    }
}

/// Chooses among samples, of which there is at least one; among equals, the first.
///
/// # Panics
/// Never: without any, the first number is said.
pub async fn choose(problem: &str, samples: &[Candidate], judge: Option<&Judge>) -> Choice {
    let mut choice = Choice {
        chosen: samples.first().map_or(1, |first| first.sample),
        samples: BTreeMap::new(),
        dollars: Dollars(0.0),
        trouble: Vec::new(),
    };
    let smallest = samples.iter().filter_map(Candidate::size).min();
    // The same change is judged once.
    let mut judged: BTreeMap<&str, Result<f64, String>> = BTreeMap::new();
    for one in samples {
        let mut signals = Signals::of_run(&one.trajectory);
        signals.is_empty = one.patch.trim().is_empty();
        signals.agreement = agreement(one, samples);
        signals.size = match (smallest, one.size()) {
            (Some(smallest), Some(size)) => smallest as f64 / size as f64,
            (None, _) | (_, None) => 0.0,
        };
        if let Some(judge) = judge
            && !signals.is_empty
        {
            let patch = one.patch.as_str();
            if !judged.contains_key(patch) {
                let (score, dollars) = judge.score(problem, patch).await;
                choice.dollars += dollars;
                judged.insert(patch, score);
            }
            match &judged[patch] {
                Ok(score) => signals.verifier = Some(*score),
                Err(why) => choice.trouble.push(format!("sample {}: {why}", one.sample)),
            }
        }
        choice.samples.insert(one.sample, signals);
    }
    let mut best = f64::NEG_INFINITY;
    for (sample, signals) in &choice.samples {
        if signals.score() > best {
            best = signals.score();
            choice.chosen = *sample;
        }
    }
    choice
}

impl Candidate {
    /// Lines that come or go; `None` when there are none.
    fn size(&self) -> Option<usize> {
        Some(likeness::changed_lines(&self.patch).len()).filter(|lines| *lines > 0)
    }
}

/// How much the other changes are like this one, from 0 to 1.
fn agreement(one: &Candidate, all: &[Candidate]) -> f64 {
    let others = all.iter().filter(|other| other.sample != one.sample);
    let alike: Vec<f64> = others
        .map(|other| likeness(&one.patch, &other.patch))
        .collect();
    match alike.len() {
        0 => 0.0,
        count => alike.iter().sum::<f64>() / count as f64,
    }
}

#[cfg(test)]
mod tests;

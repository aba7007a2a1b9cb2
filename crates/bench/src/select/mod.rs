//! Selects one of several samples. The selector sees only its arguments: the problem statement, the
//! changes, and the results of their own runs. It has no access to the grader's data.

mod likeness;
mod signals;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use likeness::likeness;
use starling_core::{Dollars, NoWatch, Tokens};
use starling_models::verifier::Verifier;
use starling_swarm::budget::{Budget, CallBudget};

pub use signals::{Signal, Signals};

/// One sample of an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Number of the sample, counted from 1.
    pub sample: usize,
    /// A unified diff; empty if nothing was changed.
    pub patch: String,
    /// The lines of the run's trajectory.
    pub trajectory: String,
}

/// The chosen sample, and the signals of all samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Number of the chosen sample.
    pub chosen: usize,
    pub samples: BTreeMap<usize, Signals>,
    /// Cost of the verifier.
    pub dollars: Dollars,
    /// Reasons why the verifier could not score some samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trouble: Vec<String>,
}

/// A verifier, and the budget that all its calls share.
pub struct Judge {
    pub verifier: Verifier,
    pub ledger: Budget,
}

impl Judge {
    /// Returns the score of a change and its cost in dollars. A call that could exceed the budget
    /// is not made.
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

/// Chooses the sample with the best score, or the first of those with equal scores.
///
/// # Panics
/// Never: if `samples` is empty, number 1 is chosen.
pub async fn choose(problem: &str, samples: &[Candidate], judge: Option<&Judge>) -> Choice {
    let mut choice = Choice {
        chosen: samples.first().map_or(1, |first| first.sample),
        samples: BTreeMap::new(),
        dollars: Dollars(0.0),
        trouble: Vec::new(),
    };
    let smallest = samples.iter().filter_map(Candidate::size).min();
    // Equal patches are scored only once.
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
    /// Returns the number of changed lines, or `None` if there are none.
    fn size(&self) -> Option<usize> {
        Some(likeness::changed_lines(&self.patch).len()).filter(|lines| *lines > 0)
    }
}

/// Returns the mean similarity of the other changes to this one, from 0 to 1.
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

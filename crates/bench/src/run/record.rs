//! What became of an instance, and of all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use starling_core::Dollars;
use starling_swarm::{RunId, Spent, StopReason};
use starling_syntax::SymbolPath;

/// What became of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub instance_id: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// From the checkout to the end.
    pub seconds: f64,
    /// Bytes that its processes held at most, without those of its tests.
    #[serde(default)]
    pub memory: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Finished(Box<Finished>),
    /// There was no run to its end, and why.
    Failed {
        why: String,
        /// For the answers that had come.
        #[serde(default)]
        dollars: Dollars,
    },
}

/// A run that came to its end, for good or ill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub run: RunId,
    pub stop_reason: StopReason,
    /// The symbols that were changed.
    pub applied: Vec<SymbolPath>,
    /// A unified diff; empty when nothing was changed.
    pub patch: String,
    pub spent: Spent,
    pub summary: String,
}

impl Record {
    /// The change, empty when there is none.
    pub fn patch(&self) -> &str {
        match &self.outcome {
            Outcome::Finished(finished) => &finished.patch,
            Outcome::Failed { .. } => "",
        }
    }

    /// The symbols that were changed.
    pub fn applied(&self) -> &[SymbolPath] {
        match &self.outcome {
            Outcome::Finished(finished) => &finished.applied,
            Outcome::Failed { .. } => &[],
        }
    }

    pub fn spent(&self) -> Spent {
        match &self.outcome {
            Outcome::Finished(finished) => finished.spent.clone(),
            Outcome::Failed { dollars, .. } => Spent {
                dollars: *dollars,
                ..Spent::default()
            },
        }
    }

    /// Seconds that were neither a model's nor the tests'.
    pub fn overhead(&self) -> f64 {
        (self.seconds - self.spent().outside_seconds).max(0.0)
    }

    /// Whether its own tests hold with the change.
    pub fn is_settled(&self) -> bool {
        match &self.outcome {
            Outcome::Finished(finished) => finished.stop_reason.is_settled(),
            Outcome::Failed { .. } => false,
        }
    }
}

/// All instances of a place, added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    pub instances: usize,
    /// Settled: their own tests hold. The hidden tests are for `grade` to say.
    pub settled: usize,
    pub with_patch: usize,
    pub failed: usize,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub output_tokens: u64,
    /// With those of attempts that failed and were run again.
    pub dollars: f64,
    /// Of these, the dollars of attempts that failed and were run again.
    pub earlier_dollars: f64,
    pub seconds: f64,
    /// Of those that were finished, half had no more.
    pub median_overhead_s: f64,
    /// Of the instance with the most.
    pub most_memory_mb: f64,
    /// Where the time of each went.
    pub costs: BTreeMap<String, Cost>,
}

/// What one instance took of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cost {
    pub seconds: f64,
    pub model_s: f64,
    pub tests_s: f64,
    /// What was neither a model's nor the tests'.
    pub overhead_s: f64,
    /// Without the tests.
    pub memory_mb: f64,
}

impl Report {
    pub fn add(&mut self, record: &Record) {
        let spent = record.spent();
        self.instances += 1;
        self.settled += usize::from(record.is_settled());
        self.with_patch += usize::from(!record.patch().is_empty());
        self.failed += usize::from(matches!(record.outcome, Outcome::Failed { .. }));
        self.calls += u64::from(spent.calls);
        self.prompt_tokens += spent.prompt_tokens.0;
        self.output_tokens += spent.output_tokens.0;
        self.dollars += spent.dollars.0;
        self.seconds += record.seconds;
        let cost = Cost::of(record);
        self.most_memory_mb = self.most_memory_mb.max(cost.memory_mb);
        if let Outcome::Finished(_) = record.outcome {
            self.costs.insert(record.instance_id.clone(), cost);
        }
        self.median_overhead_s = median(self.costs.values().map(|cost| cost.overhead_s));
    }

    /// Adds the dollars of attempts that were run again.
    pub fn with_earlier<'d>(mut self, earlier: impl IntoIterator<Item = &'d Dollars>) -> Self {
        let earlier: f64 = earlier.into_iter().map(|dollars| dollars.0).sum();
        self.dollars += earlier;
        self.earlier_dollars += earlier;
        self
    }

    pub fn of<'r>(records: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut report = Report::default();
        for record in records {
            report.add(record);
        }
        report
    }
}

impl Cost {
    fn of(record: &Record) -> Self {
        let spent = record.spent();
        Cost {
            seconds: record.seconds,
            model_s: spent.model_seconds,
            tests_s: spent.test_seconds,
            overhead_s: record.overhead(),
            memory_mb: record.memory as f64 / 1e6,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = |at: usize| values.get(at).copied().unwrap_or_default();
    match values.len() % 2 {
        1 => middle(values.len() / 2),
        _ => f64::midpoint(
            middle((values.len() / 2).saturating_sub(1)),
            middle(values.len() / 2),
        ),
    }
}

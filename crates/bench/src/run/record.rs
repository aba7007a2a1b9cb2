//! The record of one instance, and the report over all instances.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use starling_core::Dollars;
use starling_swarm::{RunId, Spent, StopReason};
use starling_syntax::SymbolPath;

/// The result of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub instance_id: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Duration from the checkout to the end, in seconds.
    pub seconds: f64,
    /// Upper bound of the memory of its processes without those of its tests, in bytes.
    #[serde(default)]
    pub memory: u64,
}

/// The way in which the run of one instance ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Finished(Box<Finished>),
    /// The run did not finish, for this reason.
    Failed {
        why: String,
        /// Cost of the replies that were received.
        #[serde(default)]
        dollars: Dollars,
    },
}

/// A run that finished, settled or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub run: RunId,
    pub stop_reason: StopReason,
    /// The symbols that were changed.
    pub applied: Vec<SymbolPath>,
    /// A unified diff; empty if nothing was changed.
    pub patch: String,
    pub spent: Spent,
    pub summary: String,
}

impl Record {
    /// Returns the patch, or an empty string if there is none.
    pub fn patch(&self) -> &str {
        match &self.outcome {
            Outcome::Finished(finished) => &finished.patch,
            Outcome::Failed { .. } => "",
        }
    }

    /// Returns the symbols that were changed.
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

    /// Returns the seconds that were spent neither in models nor in tests.
    pub fn overhead(&self) -> f64 {
        (self.seconds - self.spent().outside_seconds).max(0.0)
    }

    /// Returns whether the run's own tests pass with the change.
    pub fn is_settled(&self) -> bool {
        match &self.outcome {
            Outcome::Finished(finished) => finished.stop_reason.is_settled(),
            Outcome::Failed { .. } => false,
        }
    }
}

/// Sums over all instances of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    pub instances: usize,
    /// Number of settled instances, whose own tests pass. Only `grade` runs the hidden tests.
    pub settled: usize,
    pub with_patch: usize,
    pub failed: usize,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub output_tokens: u64,
    /// Cost in dollars, including failed attempts that were run again.
    pub dollars: f64,
    /// The part of `dollars` for failed attempts that were run again.
    pub earlier_dollars: f64,
    pub seconds: f64,
    /// Median overhead of the finished instances, in seconds.
    pub median_overhead_s: f64,
    /// Memory of the instance that used most, in MB.
    pub most_memory_mb: f64,
    /// Time and memory of each instance, by instance id.
    pub costs: BTreeMap<String, Cost>,
}

/// The time and memory that one instance used.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cost {
    pub seconds: f64,
    pub model_s: f64,
    pub tests_s: f64,
    /// Time that was spent neither in models nor in tests, in seconds.
    pub overhead_s: f64,
    /// Memory without that of the tests, in MB.
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

    /// Adds the cost of failed attempts that were run again.
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

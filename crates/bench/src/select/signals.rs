//! The signals of a sample's quality, each from 0 to 1, and their weights.

use serde::{Deserialize, Serialize};

use starling_swarm::{
    DiagnosticEvidence, Event, Evidence, Record, Stamped, StopReason, TestEvidence,
};

/// The signals of one sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Whether the patch is empty. An empty patch is chosen only if all patches are empty.
    pub is_empty: bool,
    /// 1 if the run settled, so that no test fails that passed before; 0.5 if the budget ended the
    /// run; else 0.
    pub tests: f64,
    /// 1 if a test that failed without the change passes with it, else 0.
    pub reproduction: f64,
    /// 1 / (1 + number of new problems), or 0.5 if that number is unknown.
    pub diagnostics: f64,
    /// Mean similarity to the other samples.
    pub agreement: f64,
    /// Size of the smallest patch divided by the size of this patch, in changed lines.
    pub size: f64,
    /// Score of the verifier, if there is one.
    pub verifier: Option<f64>,
}

/// One of the signals, or their weighted sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    Tests,
    Reproduction,
    Diagnostics,
    Agreement,
    Size,
    Verifier,
    /// The weighted mean of all known signals.
    Hybrid,
}

impl Signal {
    pub const ALL: [Signal; 7] = [
        Signal::Tests,
        Signal::Reproduction,
        Signal::Diagnostics,
        Signal::Agreement,
        Signal::Size,
        Signal::Verifier,
        Signal::Hybrid,
    ];

    /// Returns the weight of the signal.
    fn weight(self) -> f64 {
        match self {
            Signal::Tests | Signal::Verifier => 3.0,
            Signal::Reproduction | Signal::Agreement => 2.0,
            Signal::Diagnostics => 1.0,
            Signal::Size => 0.5,
            Signal::Hybrid => 0.0,
        }
    }
}

impl Signals {
    /// Reads the signals that come from a run's own trajectory.
    pub(super) fn of_run(trajectory: &str) -> Self {
        let mut signals = Signals {
            diagnostics: 0.5,
            ..Signals::default()
        };
        for line in trajectory.lines() {
            if let Ok(Stamped {
                record: Record::Event(event),
                ..
            }) = serde_json::from_str(line)
            {
                signals.hear(&event);
            }
        }
        signals
    }

    fn hear(&mut self, event: &Event) {
        if let Event::ProposalChecked { evidence, .. } = event {
            self.reproduced(evidence);
        } else if let Event::Diagnosed { found, .. } = event {
            self.diagnosed(found);
        } else if let Event::RunFinished { stop_reason, .. } = event {
            self.tests = match stop_reason {
                StopReason::Settled => 1.0,
                StopReason::LedgerEmpty { .. } => 0.5,
                StopReason::TestsFail { .. }
                | StopReason::ProblemsRemain { .. }
                | StopReason::NothingChanged { .. }
                | StopReason::Cancelled
                | StopReason::Failed { .. } => 0.0,
            };
        }
    }

    fn reproduced(&mut self, evidence: &Evidence) {
        let alone = Some(&evidence.tests);
        let together = evidence.together.as_ref().map(|with| &with.tests);
        for tests in alone.into_iter().chain(together) {
            if let TestEvidence::Known { fixed, .. } = tests
                && !fixed.is_empty()
            {
                self.reproduction = 1.0;
            }
        }
    }

    fn diagnosed(&mut self, found: &DiagnosticEvidence) {
        if let DiagnosticEvidence::Known { new, .. } = found {
            self.diagnostics = 1.0 / (1.0 + new.len() as f64);
        }
    }

    /// Returns one of the signals, or `None` if it is unknown.
    pub fn of(&self, signal: Signal) -> Option<f64> {
        match signal {
            Signal::Tests => Some(self.tests),
            Signal::Reproduction => Some(self.reproduction),
            Signal::Diagnostics => Some(self.diagnostics),
            Signal::Agreement => Some(self.agreement),
            Signal::Size => Some(self.size),
            Signal::Verifier => self.verifier,
            Signal::Hybrid => Some(self.score()),
        }
    }

    /// Returns the weighted mean of all known signals, from 0 to 1, or -1 if the patch is empty.
    pub fn score(&self) -> f64 {
        if self.is_empty {
            return -1.0;
        }
        let single = Signal::ALL
            .iter()
            .filter(|signal| **signal != Signal::Hybrid);
        let known = single.filter_map(|signal| Some((signal.weight(), self.of(*signal)?)));
        let (weights, sum) = known.fold((0.0, 0.0), |(weights, sum), (weight, value)| {
            (weights + weight, sum + weight * value)
        });
        sum / weights
    }
}

//! What speaks for a sample, each from 0 to 1, and how much it weighs.

use serde::{Deserialize, Serialize};

use starling_swarm::{
    DiagnosticEvidence, Event, Evidence, Record, Stamped, StopReason, TestEvidence,
};

/// What one sample has for itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Nothing was changed: never chosen before one that changes something.
    pub is_empty: bool,
    /// Its own run ended with no test failing that passed before.
    pub tests: f64,
    /// A test that failed without the change passes with it.
    pub reproduction: f64,
    /// No problem is new.
    pub diagnostics: f64,
    /// How much the other samples are like it.
    pub agreement: f64,
    /// The smallest has 1, one of twice as many lines 0.5.
    pub size: f64,
    /// What a verifier says, where there is one.
    pub verifier: Option<f64>,
}

/// One of the signals, or their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    Tests,
    Reproduction,
    Diagnostics,
    Agreement,
    Size,
    Verifier,
    /// All of them, weighed.
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

    /// How much it weighs among the others.
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
    /// What a run found out about its own change.
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

    /// One of the signals; `None` where it is not known.
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

    /// All signals that are known, weighed, from 0 to 1; below that where nothing was changed.
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

//! How a run ended, and whether tests prove its changes.

use serde::{Deserialize, Serialize};

/// Whether tests prove what a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Tests ran on the workspace as the run leaves it, they pass, and one of them fails without the
    /// run's change.
    Proven,
    /// Tests pass as they did before, and the task asks for no other behaviour, as for a renaming.
    AsBefore,
    /// The task needed no change, or a change of documentation alone.
    NothingToProve,
    /// Changes are in the workspace, and no test proves them.
    Unproven,
    /// The task is not done.
    NotDone,
}

/// How a run ended, for people and for scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub proof: Proof,
    /// One line without a full stop.
    pub headline: String,
}

//! The result of a run: one line about how it ended, and whether tests prove its changes.

use serde::{Deserialize, Serialize};

/// Whether tests prove the changes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Tests pass on the workspace as the run leaves it, and at least one of these tests fails
    /// without the run's change.
    Proven,
    /// The same tests pass as before the run, and the task does not ask for different behaviour,
    /// for example in a rename, or it asks to change only tests.
    AsBefore,
    /// The task needed no change, or only documentation was changed.
    NothingToProve,
    /// Changes are in the workspace, and no test proves them.
    Unproven,
    /// The task is not done.
    NotDone,
}

/// The result of a run, as shown to users and written for scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub proof: Proof,
    /// One line without a full stop.
    pub headline: String,
    /// The places in documents, comments and other texts that still mention a name which the run renamed or
    /// deleted. The headline shows the first places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<StillMentioned>,
}

impl Ending {
    /// Creates an ending without mentions of old names.
    pub fn new(proof: Proof, headline: impl Into<String>) -> Ending {
        Ending {
            proof,
            headline: headline.into(),
            mentions: Vec::new(),
        }
    }
}

/// The places that still mention an old name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StillMentioned {
    pub name: String,
    /// At most 200 places, each as `file:line`.
    pub places: Vec<String>,
    /// The total number of places.
    pub count: usize,
}

/// Maximum number of places in a headline for one name.
pub const MENTIONS_TOLD: usize = 4;

/// Maximum number of places in [`StillMentioned`] for one name.
pub(crate) const MENTIONS_MOST: usize = 200;

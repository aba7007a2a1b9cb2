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
    /// Where documents, comments and other texts still mention a name that the run renamed or deleted. The
    /// headline names the first places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<StillMentioned>,
}

impl Ending {
    /// Returns a result without mentions of old names.
    pub fn new(proof: Proof, headline: impl Into<String>) -> Ending {
        Ending {
            proof,
            headline: headline.into(),
            mentions: Vec::new(),
        }
    }
}

/// The places that still mention a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StillMentioned {
    pub name: String,
    /// The first places, at most 200, as `file:line`.
    pub places: Vec<String>,
    /// Number of all places.
    pub count: usize,
}

/// Maximum number of places of one name in a headline.
pub const MENTIONS_TOLD: usize = 4;

/// Maximum number of places of one name in [`StillMentioned`].
pub(crate) const MENTIONS_MOST: usize = 200;

//! The outcome of one piece of work of an agent.

use crate::event::events::AgentOutcome;

/// The outcome of a piece of work and its summary for the user.
pub(crate) type Ending = (AgentOutcome, String);

pub(crate) fn gave_up(why: impl Into<String>) -> Ending {
    (AgentOutcome::GaveUp { why: why.into() }, String::new())
}

//! The outcome of one piece of work of an agent.

use crate::event::events::AgentOutcome;

/// Outcome and summary of a piece of work.
pub(crate) type Ending = (AgentOutcome, String);

pub(crate) fn gave_up(why: impl Into<String>) -> Ending {
    (AgentOutcome::GaveUp { why: why.into() }, String::new())
}

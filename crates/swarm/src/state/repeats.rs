//! Detects tool calls that an agent repeats although nothing has changed.

use std::collections::HashMap;

use crate::state::epoch::Epoch;

/// Maximum number of times that the same call is answered while the workspace is unchanged. The
/// last answer contains a warning.
const ANSWERED_MOST: u32 = 3;

/// The tool calls of one agent since the workspace last changed.
#[derive(Debug, Default)]
pub(crate) struct CallCounts {
    epoch: Epoch,
    counts: HashMap<String, u32>,
}

/// What happens to a tool call, depending on how often the agent repeated it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RepeatedCall {
    Answered,
    /// The call is answered for the last time. The answer contains this warning.
    Warned(String),
    /// The call is not carried out. The agent receives this reason.
    Refused(String),
    /// The call is not carried out, and the agent's work ends with this reason.
    Ends(String),
}

impl CallCounts {
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Counts a call. If the workspace has changed, counting starts anew, because the answer may be
    /// different.
    pub fn count(&mut self, epoch: Epoch, call: String) -> RepeatedCall {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.counts.clear();
        }
        let count = self.counts.entry(call).or_default();
        *count += 1;
        let since = format!("You called this {count} times; nothing changed since.");
        match *count {
            ..ANSWERED_MOST => RepeatedCall::Answered,
            ANSWERED_MOST => RepeatedCall::Warned(format!("{since} It is not answered again.")),
            count if count == ANSWERED_MOST + 1 => RepeatedCall::Refused(format!(
                "{since} The answer is the same as before. Go on with what you know, or call `finish`: another repetition ends your work."
            )),
            _ => RepeatedCall::Ends(since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_tool_call_is_warned_about_then_refused_then_ends_the_agent() {
        let mut repeats = CallCounts::default();
        let mut count = |changes, call: &str| {
            let epoch = Epoch { changes, typed: 0 };
            match repeats.count(epoch, call.to_owned()) {
                RepeatedCall::Answered => "answered",
                RepeatedCall::Warned(_) => "warned",
                RepeatedCall::Refused(_) => "refused",
                RepeatedCall::Ends(_) => "ends",
            }
        };
        let same: Vec<&str> = (0..5).map(|_| count(1, "read a")).collect();
        assert_eq!(same, ["answered", "answered", "warned", "refused", "ends"]);
        assert_eq!(count(1, "read b"), "answered");
        assert_eq!(count(2, "read a"), "answered", "the workspace changed");
    }
}

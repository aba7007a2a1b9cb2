//! Notices calls that an agent repeats although nothing changed since.

use std::collections::HashMap;

use super::hub::Epoch;

/// A call is answered this often in one state of the workspace. The last answer warns.
const ANSWERED_MOST: u32 = 3;

/// The calls of one agent in the present state of the workspace.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    epoch: Epoch,
    counts: HashMap<String, u32>,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repeat {
    Answered,
    /// It is answered a last time, with this warning.
    Warned(String),
    /// It is not carried out; the agent is told why.
    Refused(String),
    /// It is not carried out, and the agent's work ends.
    Ends(String),
}

impl Repeats {
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Counts a call. A change of the workspace begins another `epoch`: then the answer may be another.
    pub fn count(&mut self, epoch: Epoch, call: String) -> Repeat {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.counts.clear();
        }
        let count = self.counts.entry(call).or_default();
        *count += 1;
        let since = format!("You called this {count} times; nothing changed since.");
        match *count {
            ..ANSWERED_MOST => Repeat::Answered,
            ANSWERED_MOST => Repeat::Warned(format!("{since} It is not answered again.")),
            count if count == ANSWERED_MOST + 1 => Repeat::Refused(format!(
                "{since} The answer is the same as before. Go on with what you know, or call `finish`: another repetition ends your work."
            )),
            _ => Repeat::Ends(since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_call_is_warned_of_then_refused_then_ends_the_work() {
        let mut repeats = Repeats::default();
        let mut count = |changes, call: &str| {
            let epoch = Epoch { changes, typed: 0 };
            match repeats.count(epoch, call.to_owned()) {
                Repeat::Answered => "answered",
                Repeat::Warned(_) => "warned",
                Repeat::Refused(_) => "refused",
                Repeat::Ends(_) => "ends",
            }
        };
        let same: Vec<&str> = (0..5).map(|_| count(1, "read a")).collect();
        assert_eq!(same, ["answered", "answered", "warned", "refused", "ends"]);
        assert_eq!(count(1, "read b"), "answered");
        assert_eq!(count(2, "read a"), "answered", "the workspace changed");
    }
}

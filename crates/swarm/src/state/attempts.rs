//! The refused proposals of one agent in one piece of work.

use crate::evidence::return_reason::ReturnReason;
use crate::protocol::Propose;
use crate::state::epoch::Epoch;

const NO_TEST_PASSES: &str = "none of the failing tests passes with them";

/// The refused proposals of an agent. While the workspace stays unchanged, a proposal that was
/// refused would be refused again, so repeated proposals are recognized.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// All refused proposals, repeated ones included.
    count: u32,
    /// Refused proposals without the repeated ones.
    distinct: u32,
    /// The version of the workspace in which the proposals of `refused` were checked.
    epoch: Epoch,
    refused: Vec<RefusedProposal>,
    /// First line of the reason of the last refusal, in the version for the user.
    last_reason: String,
}

/// A refused proposal.
#[derive(Debug)]
struct RefusedProposal {
    /// The change with an empty `reason` field, so that the same change with another reason is
    /// recognized.
    change: Propose,
    count: u32,
    why: ReturnReason,
}

impl Attempts {
    /// Returns the number of refused proposals.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns why this change was refused, if it was refused at least `times` times while the
    /// workspace was in this epoch (version).
    pub fn earlier_refusal(
        &self,
        epoch: Epoch,
        change: &Propose,
        times: u32,
    ) -> Option<&ReturnReason> {
        if self.epoch != epoch {
            return None;
        }
        let change = without_reason(change);
        let refused = self.refused.iter().find(|one| one.change == change)?;
        (refused.count >= times).then_some(&refused.why)
    }

    /// Records a refused proposal.
    pub fn record(&mut self, epoch: Epoch, change: &Propose, why: &ReturnReason) {
        self.count += 1;
        if self.epoch != epoch {
            self.epoch = epoch;
            self.refused.clear();
        }
        let change = without_reason(change);
        match self.refused.iter_mut().find(|one| one.change == change) {
            Some(refused) => refused.count += 1,
            None => {
                self.distinct += 1;
                self.last_reason = why.to_user().lines().next().unwrap_or_default().to_owned();
                self.refused.push(RefusedProposal {
                    change,
                    count: 1,
                    why: why.clone(),
                });
            }
        }
    }

    /// Forgets which proposals were refused, because they may pass together with a change that was
    /// requested since. They still count as attempts.
    pub fn forget_refused(&mut self) {
        self.refused.clear();
    }

    /// Returns the number of repeated proposals.
    pub fn repeated(&self) -> u32 {
        self.count.saturating_sub(self.distinct)
    }

    /// Counts changes that were tested in hole filling but not proposed.
    pub fn record_tried(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.count = self.count.saturating_add(count);
        self.distinct = self.distinct.saturating_add(count);
        if self.last_reason.is_empty() {
            NO_TEST_PASSES.clone_into(&mut self.last_reason);
        }
    }

    /// Returns one line for the user: the number of refused proposals and the latest reason.
    pub fn summary(&self) -> String {
        let Attempts {
            count, last_reason, ..
        } = self;
        match (count, self.distinct) {
            (0, _) => "no answer could be used".to_owned(),
            (1, _) => format!("1 attempt did not help: {last_reason}"),
            (_, 1) => format!("{count} attempts, same answer: {last_reason}"),
            (_, _) => format!("{count} attempts did not help: {last_reason}"),
        }
    }
}

fn without_reason(change: &Propose) -> Propose {
    Propose {
        reason: String::new(),
        ..change.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(source: &str) -> Propose {
        Propose {
            reason: "r".repeat(source.len()),
            source: Some(source.to_owned()),
            ..Propose::default()
        }
    }

    #[test]
    fn repeated_change_is_recognized_until_the_workspace_changes() {
        let (first, second) = (
            Epoch::default(),
            Epoch {
                changes: 1,
                typed: 0,
            },
        );
        let mut attempts = Attempts::default();
        assert_eq!(attempts.earlier_refusal(first, &change("a"), 1), None);
        attempts.record(
            first,
            &change("a"),
            &ReturnReason::for_both("it breaks t\nat length"),
        );
        assert_eq!(attempts.earlier_refusal(first, &change("b"), 1), None);
        assert_eq!(attempts.earlier_refusal(first, &change("a"), 2), None);
        assert_eq!(attempts.earlier_refusal(second, &change("a"), 1), None);
        let again = Propose {
            reason: "in other words".to_owned(),
            ..change("a")
        };
        assert_eq!(
            attempts.earlier_refusal(first, &again, 1),
            Some(&ReturnReason::for_both("it breaks t\nat length"))
        );
        attempts.record(second, &change("a"), &ReturnReason::for_both("it breaks t"));
        assert_eq!(attempts.earlier_refusal(first, &change("a"), 1), None);
    }

    #[test]
    fn summary_of_failed_attempts_is_one_line() {
        let epoch = Epoch::default();
        let mut attempts = Attempts::default();
        attempts.record(
            epoch,
            &change("a"),
            &ReturnReason::for_both("it breaks t\nat length"),
        );
        assert_eq!(attempts.summary(), "1 attempt did not help: it breaks t");
        attempts.record(epoch, &change("a"), &ReturnReason::for_both("the same"));
        assert_eq!(attempts.summary(), "2 attempts, same answer: it breaks t");
        attempts.record(epoch, &change("b"), &ReturnReason::for_both("it breaks u"));
        assert_eq!(attempts.summary(), "3 attempts did not help: it breaks u");
    }
}

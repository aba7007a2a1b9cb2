//! A person with scripted verdicts.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use starling_core::*;

/// A person who returns the scripted verdicts in order, and accepts when none is left.
#[derive(Default)]
pub struct FakeApprover {
    pub verdicts: Mutex<VecDeque<Verdict>>,
    pub seen: Mutex<Vec<ProposalView>>,
    pub intents: Mutex<Vec<IntentView>>,
    /// Time that a person takes to decide.
    pub latency: Mutex<Duration>,
    /// Times that a person takes for the next decisions.
    pub latencies: Mutex<VecDeque<Duration>>,
    /// Proposals that the person rejects, regardless of the scripted verdicts.
    pub rejected: Mutex<Option<Box<Rejects>>>,
    /// The person's own versions of a proposal. Without a version, the person decides on the
    /// proposal.
    pub edits: Mutex<Option<Box<Edits>>>,
}

/// Returns whether the person rejects a proposal.
pub type Rejects = dyn Fn(&ProposalView) -> bool + Send;

/// Returns the person's own version of a proposal, if the person edits it.
pub type Edits = dyn FnMut(&ProposalView) -> Option<Vec<EditedPart>> + Send;

impl FakeApprover {
    /// Rejects the matching proposals.
    pub fn rejects(&self, which: impl Fn(&ProposalView) -> bool + Send + 'static) {
        *self.rejected.lock().unwrap() = Some(Box::new(which));
    }

    async fn decide(&self) -> Verdict {
        let latency = self.latencies.lock().unwrap().pop_front();
        let latency = latency.unwrap_or(*self.latency.lock().unwrap());
        tokio::time::sleep(latency).await;
        let verdict = self.verdicts.lock().unwrap().pop_front();
        verdict.unwrap_or(Verdict::Accept)
    }
}

#[async_trait]
impl Approver for FakeApprover {
    async fn intent(&self, view: IntentView) -> Verdict {
        self.intents.lock().unwrap().push(view);
        self.decide().await
    }

    async fn proposal(&self, view: ProposalView) -> ReviewAnswer {
        let mut edits = self.edits.lock().unwrap().take();
        let edited = edits.as_mut().and_then(|edits| edits(&view));
        *self.edits.lock().unwrap() = edits;
        let is_rejected = {
            let rejected = self.rejected.lock().unwrap();
            rejected.as_ref().is_some_and(|rejects| rejects(&view))
        };
        self.seen.lock().unwrap().push(view);
        if is_rejected {
            let reason = "not like this".to_owned();
            return Verdict::Reject { reason }.into();
        }
        match edited {
            Some(parts) => ReviewAnswer::Edited(parts),
            None => self.decide().await.into(),
        }
    }
}

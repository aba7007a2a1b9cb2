//! The approver of a run whose changes a person reviews.

use std::sync::Arc;

use async_trait::async_trait;

use super::front_end::FrontEnd;
use super::messages::IntentParams;
use super::pending_reviews::{PendingReviews, ReviewTarget};
use super::refresh::RefreshNotifier;
use starling_core::{Approver, IntentView, ProposalView, ReviewAnswer, Verdict};
use starling_swarm::{ProposalId, RunId};

/// Asks the person at the front end for approval, and waits for the answers.
pub struct FrontEndApprover {
    pub run: RunId,
    pub pending_reviews: PendingReviews,
    pub front_end: Arc<dyn FrontEnd>,
    pub refresh: RefreshNotifier,
}

/// Returns the verdict on an item that the person cannot edit, such as an intent.
async fn verdict(answer: impl Future<Output = ReviewAnswer>) -> Verdict {
    let verdict = answer.await.verdict();
    verdict.unwrap_or_else(|| Verdict::Reject {
        reason: "only a proposal can be edited".to_owned(),
    })
}

#[async_trait]
impl Approver for FrontEndApprover {
    async fn intent(&self, view: IntentView) -> Verdict {
        let review = ReviewTarget::Intent(view.symbol.clone());
        let wait = verdict(self.pending_reviews.wait(review.clone(), None));
        let mut wait = std::pin::pin!(wait);
        // The first poll registers the review. The front end is notified after it, so that no
        // answer is lost.
        if let std::task::Poll::Ready(verdict) = futures::poll!(&mut wait) {
            return verdict;
        }
        self.pending_reviews.set_intent(&review, view.clone());
        self.refresh.notify();
        let run = self.run.clone();
        self.front_end
            .intent_asked(IntentParams { run, view })
            .await;
        wait.await
    }

    async fn proposal(&self, view: ProposalView) -> ReviewAnswer {
        let review = ReviewTarget::Proposal(ProposalId(view.id));
        self.pending_reviews.wait(review, view.version).await
    }
}

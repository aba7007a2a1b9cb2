//! The reviews of a run that wait for a person.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use starling_core::{IntentView, ReviewAnswer, Verdict};
use starling_swarm::{Event, ProposalId};
use starling_syntax::SymbolPath;

/// The subject of a review.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReviewTarget {
    Proposal(ProposalId),
    Intent(SymbolPath),
}

/// The reviews of one run that wait for an answer.
#[derive(Debug, Clone, Default)]
pub struct PendingReviews {
    slots: Arc<Mutex<HashMap<ReviewTarget, PendingReview>>>,
}

/// A review that waits for an answer. `verdict` is present until the answer is sent, `answer` until
/// the approver waits for it.
#[derive(Debug)]
struct PendingReview {
    verdict: Option<oneshot::Sender<ReviewAnswer>>,
    answer: Option<oneshot::Receiver<ReviewAnswer>>,
    /// The intent's description, as shown to the approver.
    view: Option<IntentView>,
    /// Number of waiters so far. It distinguishes the current waiter from earlier ones.
    claims: u32,
}

impl PendingReview {
    fn new() -> PendingReview {
        let (verdict, answer) = oneshot::channel();
        PendingReview {
            verdict: Some(verdict),
            answer: Some(answer),
            view: None,
            claims: 0,
        }
    }
}

impl PendingReviews {
    /// Answers a review.
    ///
    /// # Errors
    /// Returns the answer if no review waits for it.
    pub fn answer(
        &self,
        review: &ReviewTarget,
        answer: impl Into<ReviewAnswer>,
    ) -> Result<(), ReviewAnswer> {
        let sender = self
            .lock()
            .get_mut(review)
            .and_then(|slot| slot.verdict.take());
        match sender {
            Some(sender) => sender.send(answer.into()),
            None => Err(answer.into()),
        }
    }

    /// Returns the intents that wait for an answer.
    pub fn intents(&self) -> Vec<IntentView> {
        let slots = self.lock();
        let open = slots.values().filter(|slot| slot.verdict.is_some());
        let mut intents: Vec<IntentView> = open.filter_map(|slot| slot.view.clone()).collect();
        intents.sort_by(|one, other| one.symbol.cmp(&other.symbol));
        intents
    }

    /// Updates the reviews with an event of a run whose proposals a person reviews. This happens
    /// before the front end receives the event, so an answer may arrive before the swarm waits for
    /// it.
    pub fn note(&self, event: &Event) {
        if let Event::ReviewAsked { proposal, .. } = event {
            self.lock()
                .entry(ReviewTarget::Proposal(*proposal))
                .or_insert_with(PendingReview::new);
        } else if let Event::ProposalReviewed { proposal, .. } = event {
            self.forget_unclaimed(&ReviewTarget::Proposal(*proposal));
        }
    }

    /// Waits for the answer. The review is removed when the future is dropped.
    pub async fn wait(&self, review: ReviewTarget) -> ReviewAnswer {
        let (answer, claim) = self.claim(&review);
        let _forget = RemoveReviewOnDrop {
            pending_reviews: self,
            review,
            claim,
        };
        match answer.await {
            Ok(answer) => answer,
            Err(_) => {
                let reason =
                    "the same review was requested again, and only the later request is answered"
                        .to_owned();
                Verdict::Reject { reason }.into()
            }
        }
    }

    /// Adds the description of an intent that waits.
    pub fn set_intent(&self, review: &ReviewTarget, view: IntentView) {
        if let Some(slot) = self.lock().get_mut(review) {
            slot.view = Some(view);
        }
    }

    fn claim(&self, review: &ReviewTarget) -> (oneshot::Receiver<ReviewAnswer>, u32) {
        let mut slots = self.lock();
        let slot = slots
            .entry(review.clone())
            .or_insert_with(PendingReview::new);
        slot.claims += 1;
        if let Some(answer) = slot.answer.take() {
            return (answer, slot.claims);
        }
        // If two tasks wait for the answer to the same review, only the later one receives it.
        let (verdict, answer) = oneshot::channel();
        slot.verdict = Some(verdict);
        (answer, slot.claims)
    }

    fn forget_unclaimed(&self, review: &ReviewTarget) {
        let mut slots = self.lock();
        if slots.get(review).is_some_and(|slot| slot.answer.is_some()) {
            slots.remove(review);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ReviewTarget, PendingReview>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a pending review when its waiter is dropped.
struct RemoveReviewOnDrop<'a> {
    pending_reviews: &'a PendingReviews,
    review: ReviewTarget,
    claim: u32,
}

impl Drop for RemoveReviewOnDrop<'_> {
    fn drop(&mut self) {
        let mut slots = self.pending_reviews.lock();
        if slots
            .get(&self.review)
            .is_some_and(|slot| slot.claims == self.claim)
        {
            slots.remove(&self.review);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steer(text: &str) -> ReviewAnswer {
        let text = text.to_owned();
        Verdict::Steer { text }.into()
    }

    fn asked(id: u32) -> Event {
        Event::ReviewAsked {
            proposal: ProposalId(id),
            agent: starling_swarm::ActorId::Solo,
            symbol: "a.py::f".parse().unwrap(),
            diff: String::new(),
            reason: String::new(),
            evidence: crate::testing::evidence(),
            with: Vec::new(),
            parts: Vec::new(),
        }
    }

    #[tokio::test]
    async fn review_answer_reaches_its_waiter() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Proposal(ProposalId(1));
        let waiting = tokio::spawn({
            let (pending_reviews, review) = (pending_reviews.clone(), review.clone());
            async move { pending_reviews.wait(review).await }
        });
        let mut answer = pending_reviews.answer(&review, Verdict::Accept);
        while answer.is_err() {
            tokio::task::yield_now().await;
            answer = pending_reviews.answer(&review, Verdict::Accept);
        }
        assert_eq!(waiting.await.unwrap(), Verdict::Accept.into());
        assert_eq!(
            pending_reviews.answer(&review, Verdict::Accept),
            Err(Verdict::Accept.into()),
            "an answered review is closed"
        );
    }

    #[tokio::test]
    async fn review_answer_may_arrive_before_the_swarm_waits_for_it() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Proposal(ProposalId(7));
        assert!(pending_reviews.answer(&review, steer("early")).is_err());
        pending_reviews.note(&asked(7));
        pending_reviews.answer(&review, steer("x")).unwrap();
        assert!(pending_reviews.answer(&review, steer("twice")).is_err());
        assert_eq!(pending_reviews.wait(review).await, steer("x"));
    }

    #[tokio::test]
    async fn answered_review_is_no_longer_pending() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Proposal(ProposalId(7));
        drop(futures::poll!(std::pin::pin!(
            pending_reviews.wait(review.clone())
        )));
        assert!(pending_reviews.answer(&review, Verdict::Accept).is_err());
        // This event arrives late: the deadline of the review has already passed.
        pending_reviews.note(&asked(7));
        pending_reviews.note(&Event::ProposalReviewed {
            proposal: ProposalId(7),
            by: starling_swarm::ActorId::User,
            verdict: Verdict::Accept,
        });
        assert!(pending_reviews.answer(&review, Verdict::Accept).is_err());
    }

    #[tokio::test]
    async fn second_waiter_for_a_review_replaces_the_first() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Intent("a.py::f".parse().unwrap());
        let mut first = Box::pin(pending_reviews.wait(review.clone()));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(pending_reviews.wait(review.clone()));
        assert!(futures::poll!(&mut second).is_pending());
        let ReviewAnswer::Verdict(Verdict::Reject { reason }) = first.await else {
            panic!("nobody answered the first");
        };
        assert!(!reason.contains("editor"), "the editor is there: {reason}");
        pending_reviews.answer(&review, steer("the later")).unwrap();
        assert_eq!(second.await, steer("the later"));
        assert!(pending_reviews.answer(&review, Verdict::Accept).is_err());
    }

    #[tokio::test]
    async fn review_answer_does_not_reach_other_reviews() {
        let pending_reviews = PendingReviews::default();
        let intent = ReviewTarget::Intent("a.py::f".parse().unwrap());
        for id in [1, 2] {
            pending_reviews.note(&asked(id));
        }
        let proposal = |id| ReviewTarget::Proposal(ProposalId(id));
        assert!(pending_reviews.answer(&intent, Verdict::Accept).is_err());
        pending_reviews.answer(&proposal(2), steer("two")).unwrap();
        pending_reviews.answer(&proposal(1), steer("one")).unwrap();
        assert_eq!(pending_reviews.wait(proposal(1)).await, steer("one"));
        assert_eq!(pending_reviews.wait(proposal(2)).await, steer("two"));
    }
}

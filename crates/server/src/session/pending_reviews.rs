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

impl ReviewTarget {
    pub fn in_words(&self) -> String {
        match self {
            ReviewTarget::Proposal(proposal) => format!("proposal {proposal}"),
            ReviewTarget::Intent(symbol) => format!("the intent of {symbol}"),
        }
    }
}

/// The version of a review that a person saw and answers. If another version waits by then, the answer
/// is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ShownReview {
    /// The answer does not say what was shown, so it is for what waits now.
    #[default]
    Unknown,
    /// The number of the event that asked for the review.
    Version(u64),
    /// The description of an intent.
    Intent(String),
}

/// Why a review cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOpen {
    /// No such review waits for an answer.
    Closed,
    /// A review waits, but not the one that was shown.
    Replaced,
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
    /// The number of the event that asked for the review, as far as it is known.
    version: Option<u64>,
    /// Number of waiters so far. It distinguishes the current waiter from earlier ones.
    claims: u32,
}

impl PendingReview {
    fn new(version: Option<u64>) -> PendingReview {
        let (verdict, answer) = oneshot::channel();
        PendingReview {
            verdict: Some(verdict),
            answer: Some(answer),
            view: None,
            version,
            claims: 0,
        }
    }

    /// Replaces the review by a later one of the same target. The waiter of the earlier one is told
    /// that nobody answers it.
    fn replace(&mut self, version: u64) {
        let claims = self.claims + 1;
        *self = PendingReview {
            claims,
            ..PendingReview::new(Some(version))
        };
    }

    fn is_what_was(&self, shown: &ShownReview) -> bool {
        match shown {
            ShownReview::Unknown => true,
            ShownReview::Version(version) => self.version.is_none_or(|own| own == *version),
            ShownReview::Intent(text) => {
                let own = self.view.as_ref();
                own.is_none_or(|view| view.intent == *text)
            }
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
        match self.open(review, &ShownReview::Unknown) {
            Ok(sender) => sender.send(answer.into()),
            Err(_) => Err(answer.into()),
        }
    }

    /// Takes the sender of the answer to a review, so that nobody else can answer it.
    ///
    /// # Errors
    /// See [`NotOpen`].
    pub fn open(
        &self,
        review: &ReviewTarget,
        shown: &ShownReview,
    ) -> Result<oneshot::Sender<ReviewAnswer>, NotOpen> {
        let mut slots = self.lock();
        let slot = slots.get_mut(review).ok_or(NotOpen::Closed)?;
        if slot.verdict.is_some() && !slot.is_what_was(shown) {
            return Err(NotOpen::Replaced);
        }
        slot.verdict.take().ok_or(NotOpen::Closed)
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
    pub fn note(&self, seq: u64, event: &Event) {
        if let Event::ReviewAsked { proposal, .. } = event {
            let mut slots = self.lock();
            let slot = slots
                .entry(ReviewTarget::Proposal(*proposal))
                .or_insert_with(|| PendingReview::new(Some(seq)));
            match slot.version {
                None => slot.version = Some(seq),
                Some(earlier) if earlier < seq => slot.replace(seq),
                Some(_) => {}
            }
        } else if let Event::ProposalReviewed { proposal, .. } = event {
            self.forget_unclaimed(&ReviewTarget::Proposal(*proposal));
        }
    }

    /// Waits for the answer to the review that the event with the number `version` asked for. The
    /// review is removed when the future is dropped.
    pub async fn wait(&self, review: ReviewTarget, version: Option<u64>) -> ReviewAnswer {
        let (answer, claim) = self.claim(&review, version);
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

    fn claim(
        &self,
        review: &ReviewTarget,
        version: Option<u64>,
    ) -> (oneshot::Receiver<ReviewAnswer>, u32) {
        let mut slots = self.lock();
        let slot = slots
            .entry(review.clone())
            .or_insert_with(|| PendingReview::new(version));
        match (slot.version, version) {
            (Some(known), Some(own)) if known < own => slot.replace(own),
            // Nobody answers an earlier review any more.
            (Some(known), Some(own)) if known > own => return (oneshot::channel().1, u32::MAX),
            (known, own) => slot.version = known.or(own),
        }
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
    use crate::testing::symbol;

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
            async move { pending_reviews.wait(review, None).await }
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
        pending_reviews.note(1, &asked(7));
        pending_reviews.answer(&review, steer("x")).unwrap();
        assert!(pending_reviews.answer(&review, steer("twice")).is_err());
        assert_eq!(pending_reviews.wait(review, None).await, steer("x"));
    }

    #[tokio::test]
    async fn answered_review_is_no_longer_pending() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Proposal(ProposalId(7));
        drop(futures::poll!(std::pin::pin!(
            pending_reviews.wait(review.clone(), None)
        )));
        assert!(pending_reviews.answer(&review, Verdict::Accept).is_err());
        // This event arrives late: the deadline of the review has already passed.
        pending_reviews.note(1, &asked(7));
        pending_reviews.note(
            2,
            &Event::ProposalReviewed {
                proposal: ProposalId(7),
                by: starling_swarm::ActorId::User,
                verdict: Verdict::Accept,
            },
        );
        assert!(pending_reviews.answer(&review, Verdict::Accept).is_err());
    }

    #[tokio::test]
    async fn second_waiter_for_a_review_replaces_the_first() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Intent("a.py::f".parse().unwrap());
        let mut first = Box::pin(pending_reviews.wait(review.clone(), None));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(pending_reviews.wait(review.clone(), None));
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
            pending_reviews.note(1, &asked(id));
        }
        let proposal = |id| ReviewTarget::Proposal(ProposalId(id));
        assert!(pending_reviews.answer(&intent, Verdict::Accept).is_err());
        pending_reviews.answer(&proposal(2), steer("two")).unwrap();
        pending_reviews.answer(&proposal(1), steer("one")).unwrap();
        assert_eq!(
            pending_reviews.wait(proposal(1), Some(1)).await,
            steer("one")
        );
        assert_eq!(
            pending_reviews.wait(proposal(2), Some(1)).await,
            steer("two")
        );
    }

    #[tokio::test]
    async fn answer_to_an_earlier_version_of_a_review_is_refused() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Proposal(ProposalId(1));
        let open = |version| pending_reviews.open(&review, &ShownReview::Version(version));
        pending_reviews.note(3, &asked(1));
        // The run asks again and waits, before the session has seen the event of it.
        let mut first = Box::pin(pending_reviews.wait(review.clone(), Some(3)));
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        let mut second = Box::pin(pending_reviews.wait(review.clone(), Some(8)));
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(open(3).unwrap_err(), NotOpen::Replaced);
        // The event of the earlier review is seen late.
        pending_reviews.note(3, &asked(1));
        assert_eq!(open(3).unwrap_err(), NotOpen::Replaced);
        pending_reviews.note(8, &asked(1));
        open(8).unwrap().send(steer("new")).unwrap();
        assert_eq!(second.await, steer("new"));
        assert_eq!(open(8).unwrap_err(), NotOpen::Closed);
    }

    #[tokio::test]
    async fn later_review_of_a_proposal_replaces_one_that_still_waits() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Proposal(ProposalId(1));
        let mut first = Box::pin(pending_reviews.wait(review.clone(), Some(3)));
        assert!(futures::poll!(&mut first).is_pending());
        pending_reviews.note(8, &asked(1));
        let first = first.await;
        assert!(matches!(
            first,
            ReviewAnswer::Verdict(Verdict::Reject { .. })
        ));
        let shown = ShownReview::Version(8);
        let sender = pending_reviews.open(&review, &shown).unwrap();
        sender.send(steer("early")).unwrap();
        let answer = pending_reviews.wait(review.clone(), Some(8)).await;
        assert_eq!(answer, steer("early"));
        pending_reviews.note(9, &asked(1));
        let late = pending_reviews.wait(review, Some(3)).await;
        assert!(matches!(
            late,
            ReviewAnswer::Verdict(Verdict::Reject { .. })
        ));
    }

    #[tokio::test]
    async fn answer_to_another_intent_of_the_same_symbol_is_refused() {
        let pending_reviews = PendingReviews::default();
        let review = ReviewTarget::Intent(symbol("a.py::f"));
        let mut waiting = Box::pin(pending_reviews.wait(review.clone(), None));
        assert!(futures::poll!(&mut waiting).is_pending());
        let view = IntentView {
            symbol: symbol("a.py::f"),
            intent: "delete it".to_owned(),
            reason: String::new(),
        };
        pending_reviews.set_intent(&review, view);
        let open = |text: &str| {
            let shown = ShownReview::Intent(text.to_owned());
            pending_reviews.open(&review, &shown)
        };
        assert_eq!(open("rename it").unwrap_err(), NotOpen::Replaced);
        open("delete it").unwrap().send(steer("yes")).unwrap();
        assert_eq!(waiting.await, steer("yes"));
    }
}

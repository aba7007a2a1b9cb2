//! Answers to waiting reviews, and the notifications about them to the front end.

use std::sync::Arc;

use super::guarded::{WaitingChanges, needs_nobody};
use super::messages::{AcceptAllReply, ProposalParams, RemedyParams};
use super::pending_reviews::{NotOpen, ReviewTarget, ShownReview};
use super::remedy::Remedy;
use super::run_view::{ProposalStatus, RunProposal};
use super::{RunError, RunOrigin, RunPhase, RunSession, unknown};
use starling_core::{ReviewAnswer, Verdict};
use starling_swarm::{Evidence, ProposalId, RunId};

/// A waiting proposal, and which version of it waits.
type WaitingVersion = (ProposalParams, ShownReview);

/// A run that has ended and whose task can be run again.
#[derive(Debug, Clone)]
pub struct RetryableRun {
    pub run: RunId,
    pub task: String,
    /// What the user can do first, if the run ended because its model was not available.
    pub remedy: Option<Remedy>,
}

impl RunProposal {
    /// Returns which version of the proposal a person sees now.
    pub fn shown(&self) -> ShownReview {
        self.version
            .map_or(ShownReview::Unknown, ShownReview::Version)
    }
}

impl RunSession {
    /// Answers the review of a proposal (any member of its set) or of an intent. It answers no other
    /// review: an accepted proposal that needs others waits until they are accepted and applied.
    ///
    /// # Errors
    /// The run does not exist, the review is not waiting, or the answer needs an agent that has
    /// ended.
    pub fn answer(
        &self,
        run: &RunId,
        review: &ReviewTarget,
        answer: impl Into<ReviewAnswer>,
    ) -> Result<(), RunError> {
        self.answer_shown(run, review, &ShownReview::Unknown, answer)
    }

    /// Like [`Self::answer`], if what waits is still what the user saw.
    ///
    /// # Errors
    /// See [`Self::answer`]. Also if another version waits by now: the answer then does nothing.
    pub fn answer_shown(
        &self,
        run: &RunId,
        review: &ReviewTarget,
        shown: &ShownReview,
        answer: impl Into<ReviewAnswer>,
    ) -> Result<(), RunError> {
        let answer = answer.into();
        let mut entries = self.lock();
        let entry = entries.get_mut(&run.0).ok_or_else(|| unknown(run))?;
        let needs_agent = match answer {
            ReviewAnswer::Verdict(Verdict::Steer { .. }) | ReviewAnswer::Edited(_) => true,
            ReviewAnswer::Verdict(Verdict::Accept | Verdict::Reject { .. }) => false,
        };
        if entry.origin == RunOrigin::Restored && needs_agent {
            return Err(RunError::AgentsGone(run.0.clone()));
        }
        let asked = match review {
            ReviewTarget::Proposal(proposal) => {
                ReviewTarget::Proposal(entry.view.lead_of(*proposal))
            }
            ReviewTarget::Intent(symbol) => ReviewTarget::Intent(symbol.clone()),
        };
        let sender = entry.pending_reviews.open(&asked, shown);
        let sender = sender.map_err(|why| match why {
            NotOpen::Closed => not_waiting(run, review),
            NotOpen::Replaced => RunError::Replaced {
                what: review.in_words(),
            },
        })?;
        if let (ReviewTarget::Proposal(lead), ReviewAnswer::Edited(parts)) = (&asked, &answer) {
            entry.record_edit(*lead, parts);
        }
        let sent = sender.send(answer.clone());
        sent.map_err(|_| not_waiting(run, review))?;
        if let ReviewTarget::Proposal(lead) = asked {
            entry.view.note_answer(lead, &answer);
        }
        drop(entries);
        self.shared.refresh.notify();
        Ok(())
    }

    /// Accepts every waiting proposal that fits the current text, of one run or of all runs. A proposal
    /// that a person must accept individually keeps waiting.
    ///
    /// # Errors
    /// There is no such run.
    pub async fn accept_all(&self, run: Option<&RunId>) -> Result<AcceptAllReply, RunError> {
        if let Some(run) = run {
            self.lock().get(&run.0).ok_or_else(|| unknown(run))?;
        }
        // Files may have changed on disk since the last comparison.
        self.compare().await;
        let waiting: Vec<(WaitingVersion, Evidence)> = {
            let entries = self.lock();
            let wanted = entries
                .iter()
                .filter(|(id, _)| run.is_none_or(|run| run.0 == **id));
            let fitting = wanted.flat_map(|(id, entry)| {
                let leads = entry.view.lead_proposals();
                leads
                    .filter(|(lead, one)| entry.view.fits(*lead) && !one.needs_own_yes())
                    .filter_map(|(proposal, one)| {
                        let run = RunId(id.clone());
                        let params = ProposalParams { run, proposal };
                        Some(((params, one.shown()), one.evidence.clone()?))
                    })
            });
            fitting.collect()
        };
        let accept = |(one, shown): WaitingVersion| {
            let review = ReviewTarget::Proposal(one.proposal);
            let answered = self.answer_shown(&one.run, &review, &shown, Verdict::Accept);
            answered.is_ok().then_some(one)
        };
        let waiting = self.without_guarded(waiting).await;
        let accepted = waiting.into_iter().filter_map(accept).collect();
        Ok(AcceptAllReply { accepted })
    }

    /// Returns those of the waiting proposals whose files need no person, as the path policy is now.
    async fn without_guarded(
        &self,
        waiting: Vec<(WaitingVersion, Evidence)>,
    ) -> Vec<WaitingVersion> {
        let Some(root) = self.root().filter(|_| !waiting.is_empty()) else {
            return waiting.into_iter().map(|(version, _)| version).collect();
        };
        let mut read: Vec<(WaitingVersion, WaitingChanges)> = Vec::new();
        for (version, evidence) in waiting {
            let mut parts = Vec::new();
            for part in self.changes_of(&version.0) {
                let now = self.current_file(&part.file).await;
                parts.push((part, now.and_then(|now| now.text)));
            }
            read.push((version, (evidence, parts)));
        }
        let policy = Arc::clone(&self.shared.services.policy);
        let found = self.shared.services.workers.spawn_blocking(move || {
            let policy = policy(&root);
            read.retain(|(_, changes)| needs_nobody(&policy, changes));
            read.into_iter().map(|(version, _)| version).collect()
        });
        found.await.unwrap_or_default()
    }

    /// Checks that a review waits for an answer. Returns what the user sees of it now.
    ///
    /// # Errors
    /// There is no such run or review, or it does not wait, or not in the version that was shown.
    pub fn check_waiting(
        &self,
        run: &RunId,
        review: &ReviewTarget,
        shown: &ShownReview,
    ) -> Result<ShownReview, RunError> {
        let now = self.waiting_version(run, review)?;
        match *shown == ShownReview::Unknown || *shown == now {
            true => Ok(now),
            false => Err(RunError::Replaced {
                what: review.in_words(),
            }),
        }
    }

    fn waiting_version(&self, run: &RunId, review: &ReviewTarget) -> Result<ShownReview, RunError> {
        match review {
            ReviewTarget::Proposal(proposal) => {
                let params = ProposalParams {
                    run: run.clone(),
                    proposal: *proposal,
                };
                self.waiting_proposal(&params).map(|one| one.shown())
            }
            ReviewTarget::Intent(symbol) => {
                let entries = self.lock();
                let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
                let mut intents = entry.pending_reviews.intents().into_iter();
                let waiting = intents.find(|one| one.symbol == *symbol);
                let waiting = waiting.ok_or_else(|| not_waiting(run, review))?;
                Ok(ShownReview::Intent(waiting.intent))
            }
        }
    }

    /// Returns a proposal.
    ///
    /// # Errors
    /// There is no such run or proposal.
    pub fn known_proposal(&self, params: &ProposalParams) -> Result<RunProposal, RunError> {
        let entries = self.lock();
        let run = &params.run;
        let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
        let proposal = entry.view.proposals.get(&params.proposal);
        proposal.cloned().ok_or_else(|| RunError::UnknownProposal {
            run: run.0.clone(),
            proposal: params.proposal,
        })
    }

    /// Returns a proposal that waits for review.
    ///
    /// # Errors
    /// There is no such run or proposal, or it does not wait.
    pub fn waiting_proposal(&self, params: &ProposalParams) -> Result<RunProposal, RunError> {
        let proposal = self.known_proposal(params)?;
        match proposal.state {
            ProposalStatus::Waiting => Ok(proposal),
            ProposalStatus::Checking
            | ProposalStatus::Accepted
            | ProposalStatus::Rejected
            | ProposalStatus::Applied
            | ProposalStatus::Conflicted
            | ProposalStatus::Undone
            | ProposalStatus::Dropped => {
                let review = ReviewTarget::Proposal(params.proposal);
                Err(not_waiting(&params.run, &review))
            }
        }
    }

    /// Returns the waiting proposals without which a proposal is not applied.
    pub fn needed_proposals(&self, run: &RunId, lead: ProposalId) -> Vec<ProposalId> {
        let entries = self.lock();
        let entry = entries.get(&run.0);
        entry.map_or_else(Vec::new, |entry| entry.view.needs(lead))
    }

    /// Returns the ended runs whose tasks the user may want to run again.
    pub fn retryable_runs(&self) -> Vec<RetryableRun> {
        let mut runs = Vec::new();
        for (id, entry) in self.lock().iter() {
            let remedy = entry.view.remedy().map(|(remedy, _)| remedy);
            let is_old = entry.origin == RunOrigin::Ended;
            let is_over = matches!(entry.phase, RunPhase::Ended(_)) && !entry.is_retried && !is_old;
            if is_over && (remedy.is_some() || entry.interrupted.is_some()) {
                runs.push(RetryableRun {
                    run: RunId(id.clone()),
                    task: entry.params.task.clone(),
                    remedy,
                });
            }
        }
        runs
    }

    /// Notifies the front end that a proposal waits. If the editor cannot apply edits, the proposal
    /// was already reported together with its patch.
    pub(super) fn announce_review(&self, run: &RunId, proposal: ProposalId) {
        let params = ProposalParams {
            run: run.clone(),
            proposal,
        };
        let Ok(waiting) = self.waiting_proposal(&params) else {
            return;
        };
        if !self.is_kept_as_patch(&params) {
            let session = self.clone();
            self.spawn_while_connected(async move {
                let symbol = waiting.symbol;
                session
                    .report(|front_end| async move { front_end.review_asked(params, symbol).await })
                    .await;
            });
        }
    }

    /// Reports to the front end how a run ended.
    pub(super) async fn report_end(&self, run: &RunId) {
        let headline = self.lock().get(&run.0).and_then(|entry| {
            let end = entry.view.end.as_ref()?;
            let is_told = entry.origin == RunOrigin::Started && entry.view.remedy().is_none();
            is_told.then(|| end.headline.clone().unwrap_or_else(|| end.summary.clone()))
        });
        let Some(headline) = headline else {
            return;
        };
        let patches = self.patch_summary(run);
        self.report(|front_end| async move {
            match patches {
                Some(patches) => {
                    let text = format!("Starling: {headline}; {patches}");
                    front_end.warn(text).await;
                }
                None => front_end.run_ended(format!("Starling: {headline}")).await,
            }
        })
        .await;
    }

    /// Reports to the front end what the user can do about a run that failed because its model was
    /// not available.
    pub(super) async fn report_remedy(&self, run: &RunId) {
        let remedy = self.lock().get(&run.0).and_then(|entry| {
            let (remedy, message) = entry.view.remedy()?;
            (entry.origin == RunOrigin::Started).then(|| RemedyParams {
                run: run.clone(),
                task: entry.params.task.clone(),
                message,
                remedy,
            })
        });
        if let Some(remedy) = remedy {
            self.report(|front_end| async move { front_end.remedy(remedy).await })
                .await;
        }
    }

    /// Spawns work that may wait for a person. It is dropped when the front end disconnects.
    pub fn spawn_while_connected(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closing = self.shared.closing.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = work => {}
            }
        });
    }
}

fn not_waiting(run: &RunId, review: &ReviewTarget) -> RunError {
    RunError::NotWaiting {
        run: run.0.clone(),
        what: review.in_words(),
    }
}

//! A run of an earlier server, without its agents. Its waiting reviews can be answered, and its
//! applied changes can be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::guarded;
use super::other_runs::RecordedRuns;
use super::outdated;
use super::pending_reviews::{PendingReviews, ReviewTarget};
use super::restore::view_of;
use super::services::RunControl;
use starling_core::{Dollars, Editor, Effect, ReviewAnswer, Verdict};
use starling_history::{self, UnfinishedChange, undo};
use starling_swarm::sending::{AnnouncedEdit, Failure, Permission, Purpose, Sent, announce, send};
use starling_swarm::{
    ActorId, AppliedChange, Dependencies, Ending, Event, EventLog, FileChange, Proof, ProposalId,
    Record, Spent, Stamped, StopReason, UndoError, ids,
};
use starling_syntax::SymbolPath;
use starling_text::{ChangeSet, deleted_file_diff, unified_diff};
use starling_workspace::{PathPolicy, missing_directories};

/// A run of an earlier server. It has no agents.
pub struct RestoredRun {
    log: EventLog,
    cancel: CancellationToken,
    editor: Arc<dyn Editor>,
    /// Whether an earlier server did not record the results of all changes that it sent.
    has_unfinished: bool,
    /// All changes that were ever reviewed, or sent to the editor.
    parts: BTreeMap<ProposalId, FileChange>,
    /// The root directory of the open project.
    root: Option<PathBuf>,
    /// The path policy of the open project.
    policy: Option<PathPolicy>,
    /// The other runs of the open project.
    others: Option<Arc<RecordedRuns>>,
    /// Serializes acceptances and undos.
    applying: Arc<tokio::sync::Mutex<()>>,
}

/// A review that waits again: a proposal, with the other members of its set (proposals that are
/// applied only together).
struct RestoredReview {
    /// The event that began the review.
    asked: Event,
    lead: ProposalId,
    members: Vec<FileChange>,
}

impl RestoredReview {
    /// Returns for each member of the set on which other proposals it depends.
    fn dependencies(&self) -> BTreeMap<ProposalId, Dependencies> {
        let set: BTreeSet<ProposalId> = self.members.iter().map(|part| part.proposal).collect();
        let needs = if let Event::ReviewAsked { evidence, .. } = &self.asked {
            evidence.passes_with(&set)
        } else {
            BTreeSet::new()
        };
        let of = |id: ProposalId| Dependencies {
            set: set.iter().copied().filter(|other| *other != id).collect(),
            needs: needs.clone(),
        };
        set.iter().map(|id| (*id, of(*id))).collect()
    }
}

/// A member of a set whose change is now in the user's text.
struct AppliedPart<'p> {
    part: &'p FileChange,
    after: Arc<str>,
    change: AppliedChange,
}

/// Returns the purpose of the edit that undoes a change: removing the file if the change created
/// it, or making it again if the change deleted it.
fn take_back_purpose(part: &FileChange) -> Purpose<'static> {
    match (part.deleted, part.base.is_empty()) {
        (true, _) => Purpose::Restore,
        (false, true) => Purpose::TakeBackFile,
        (false, false) => Purpose::TakeBack,
    }
}

/// Offers the waiting reviews of an ended run again. Its log is closed after the last answer.
pub fn restore_run(
    records: Vec<Stamped>,
    editor: Arc<dyn Editor>,
    pending_reviews: PendingReviews,
    root: Option<PathBuf>,
    policy: Option<PathPolicy>,
    others: Option<Arc<RecordedRuns>>,
) -> Arc<RestoredRun> {
    let reviews = reviews(&records);
    let restored_run = Arc::new(RestoredRun {
        has_unfinished: has_unfinished(&records),
        parts: all_parts(&records),
        log: EventLog::resumed(records),
        cancel: CancellationToken::new(),
        editor,
        root,
        policy,
        others,
        applying: Arc::default(),
    });
    let run = Arc::clone(&restored_run);
    tokio::spawn(async move {
        let reviews = reviews
            .into_iter()
            .map(|restored| run.review(&pending_reviews, restored));
        let all = futures::future::join_all(reviews);
        tokio::select! {
            biased;
            () = run.cancel.cancelled() => {}
            _ = all => {}
        }
        // Wait until an accepted change is completely applied and logged, before the last event is
        // logged.
        let _applied = run.applying.lock().await;
        run.finish();
    });
    restored_run
}

/// Returns an ended run for the history. Its applied changes can be undone.
pub fn ended_run(
    records: Vec<Stamped>,
    editor: Arc<dyn Editor>,
    root: Option<PathBuf>,
    others: Option<Arc<RecordedRuns>>,
) -> RestoredRun {
    let restored_run = RestoredRun {
        has_unfinished: has_unfinished(&records),
        parts: all_parts(&records),
        log: EventLog::resumed(records),
        cancel: CancellationToken::new(),
        editor,
        root,
        policy: None,
        others,
        applying: Arc::default(),
    };
    restored_run.log.close();
    restored_run
}

fn asked(records: &[Stamped]) -> impl Iterator<Item = (&Event, ProposalId, &Vec<FileChange>)> {
    records.iter().filter_map(|record| match &record.record {
        Record::Event(
            event @ Event::ReviewAsked {
                proposal, parts, ..
            },
        ) => Some((event, *proposal, parts)),
        Record::Event(_) | Record::Exchange(_) => None,
    })
}

fn has_unfinished(records: &[Stamped]) -> bool {
    let events = records.iter().filter_map(|record| match &record.record {
        Record::Event(event) => Some(event),
        Record::Exchange(_) => None,
    });
    !starling_history::unfinished(events).is_empty()
}

fn all_parts(records: &[Stamped]) -> BTreeMap<ProposalId, FileChange> {
    let announced = records.iter().filter_map(|record| match &record.record {
        Record::Event(event) => event.announced_part(),
        Record::Exchange(_) => None,
    });
    let reviewed = asked(records).flat_map(|(_, _, parts)| parts).cloned();
    let parts = announced.chain(reviewed);
    parts.map(|part| (part.proposal, part)).collect()
}

fn reviews(records: &[Stamped]) -> Vec<RestoredReview> {
    let view = view_of(records);
    let last = asked(records).map(|(event, lead, parts)| (lead, (event, parts)));
    let last: BTreeMap<ProposalId, _> = last.collect();
    let waiting = view.lead_proposals().map(|(lead, _)| lead);
    let restored = |lead: ProposalId| {
        let (event, parts) = last.get(&lead)?;
        let mut asked = (*event).clone();
        // The checks were repeated while the review waited, so the last evidence counts.
        let known = view.proposals.get(&lead);
        if let (Event::ReviewAsked { evidence, .. }, Some(last)) =
            (&mut asked, known.and_then(|one| one.evidence.as_ref()))
        {
            evidence.clone_from(last);
        }
        Some(RestoredReview {
            asked,
            lead,
            members: (*parts).clone(),
        })
    };
    waiting.filter_map(restored).collect()
}

impl RestoredRun {
    async fn review(
        self: &Arc<Self>,
        pending_reviews: &PendingReviews,
        mut restored: RestoredReview,
    ) {
        loop {
            if self.has_arrived(&restored).await {
                return;
            }
            let review = ReviewTarget::Proposal(restored.lead);
            let version = self.version(restored.lead);
            let answer = pending_reviews.wait(review, version).await;
            // The editor may have opened an unsaved document that contains the change.
            if self.has_arrived(&restored).await {
                return;
            }
            match answer {
                ReviewAnswer::Verdict(Verdict::Accept) => match self.accept(&restored).await {
                    Ok(()) => return,
                    Err(why) => {
                        self.note_new_reasons(&mut restored).await;
                        self.ask_again(&restored, &why);
                    }
                },
                ReviewAnswer::Verdict(verdict @ Verdict::Reject { .. }) => {
                    self.reviewed(&restored, &verdict);
                    return;
                }
                ReviewAnswer::Verdict(Verdict::Steer { .. }) | ReviewAnswer::Edited(_) => {
                    let why =
                        "its agent ended with an earlier server: reject it and start a new run";
                    self.ask_again(&restored, why);
                }
            }
        }
    }

    /// Returns the number of the last event that asked for a review.
    fn version(&self, lead: ProposalId) -> Option<u64> {
        let records = self.log.records(0);
        let asks = |record: &&Arc<Stamped>| match &record.record {
            Record::Event(Event::ReviewAsked { proposal, .. }) => *proposal == lead,
            Record::Event(_) | Record::Exchange(_) => false,
        };
        records.iter().rfind(asks).map(|record| record.seq)
    }

    /// Records the members whose edits the killed server sent and whose changes are in the user's
    /// text. Returns whether this completes the set.
    async fn has_arrived(&self, restored: &RestoredReview) -> bool {
        let arrived = self.record_arrived(&self.unfinished(restored)).await;
        let there = self.applied();
        let is_there = |part: &FileChange| there.iter().any(|one| one.proposal == part.proposal);
        arrived && restored.members.iter().all(is_there)
    }

    /// Records which of the changes in `sent` are in the user's text. Returns whether there are
    /// any.
    async fn record_arrived(&self, sent: &[UnfinishedChange]) -> bool {
        let mut any = false;
        for one in sent {
            let now = self.editor.current(&one.change.file).await;
            if one.is_in_current(now) {
                self.log.event(one.applied());
                any = true;
            }
        }
        any
    }

    /// Returns the members of a review whose edits were sent to the editor and whose results are
    /// not recorded.
    fn unfinished(&self, restored: &RestoredReview) -> Vec<UnfinishedChange> {
        let mut unfinished = starling_history::unfinished(&self.log.events());
        let is_member = |one: &UnfinishedChange| {
            let mut members = restored.members.iter();
            members.any(|part| part.proposal == one.proposal)
        };
        unfinished.retain(is_member);
        unfinished
    }

    fn reviewed(&self, restored: &RestoredReview, verdict: &Verdict) {
        for part in &restored.members {
            self.log.event(Event::ProposalReviewed {
                proposal: part.proposal,
                by: ActorId::User,
                verdict: verdict.clone(),
            });
        }
    }

    fn ask_again(&self, restored: &RestoredReview, why: &str) {
        self.log.event(Event::ProposalConflicted {
            proposal: restored.lead,
            why: why.to_owned(),
        });
        for other in self.unfinished(restored) {
            self.log.event(Event::ProposalNotApplied {
                proposal: other.proposal,
                why: format!("it is applied only together with {}", restored.lead),
            });
        }
        self.log.event(restored.asked.clone());
    }

    /// Adds to the evidence of a review which of its files have become guarded, so that the person who
    /// is asked again sees it.
    async fn note_new_reasons(&self, restored: &mut RestoredReview) {
        let Event::ReviewAsked { evidence, .. } = &mut restored.asked else {
            return;
        };
        let Some(policy) = &self.policy else {
            return;
        };
        for part in &restored.members {
            let now = self.editor.current(&part.file).await.ok();
            let now = now.as_ref().map(|now| &*now.text);
            let unknown = guarded::unknown_reasons(policy, evidence, part, now);
            // A change that nobody may accept is refused when it is accepted.
            evidence.needs_person.extend(unknown.unwrap_or_default());
        }
    }

    /// Returns the permission for each member of a review.
    fn permissions(&self, restored: &RestoredReview) -> BTreeMap<ProposalId, Permission> {
        let (Event::ReviewAsked { evidence, .. }, Some(policy)) = (&restored.asked, &self.policy)
        else {
            return BTreeMap::new();
        };
        let members = restored.members.iter();
        members
            .map(|part| {
                let permission = guarded::permission(policy, evidence, &part.file);
                (part.proposal, permission)
            })
            .collect()
    }

    /// Applies all members of a review or none, after the proposals that they need were applied.
    /// Once begun, this is completed even if the run is cancelled.
    async fn accept(self: &Arc<Self>, restored: &RestoredReview) -> Result<(), String> {
        let turn = self.turn_after_needed(restored).await?;
        let (run, members) = (Arc::clone(self), restored.members.clone());
        let dependencies = restored.dependencies();
        let permissions = self.permissions(restored);
        let whole = tokio::spawn(async move {
            let _turn = turn;
            run.apply_all(&members, &dependencies, &permissions).await
        });
        let failed = |_| "internal error while applying; see the log".to_owned();
        whole.await.map_err(failed)?
    }

    /// Waits until the proposals that a review needs are applied and no other proposal is being
    /// applied.
    ///
    /// # Errors
    /// One of the needed proposals will not be applied.
    async fn turn_after_needed(
        &self,
        restored: &RestoredReview,
    ) -> Result<tokio::sync::OwnedMutexGuard<()>, String> {
        let mut log = self.log.follow();
        loop {
            let turn = Arc::clone(&self.applying).lock_owned().await;
            let missing = self.missing(restored);
            if missing.is_empty() {
                return Ok(turn);
            }
            drop(turn);
            let is_gone = missing.iter().any(|id| !self.is_open(*id));
            if is_gone || log.next().await.is_none() {
                let needs = ids(&missing);
                return Err(format!("it passes only with {needs}, which is not applied"));
            }
        }
    }

    /// Returns the proposals that a review needs and that are not applied.
    fn missing(&self, restored: &RestoredReview) -> Vec<ProposalId> {
        let Event::ReviewAsked { evidence, .. } = &restored.asked else {
            return Vec::new();
        };
        let there: Vec<ProposalId> = self.applied().iter().map(|part| part.proposal).collect();
        let needs = evidence.needs().iter().copied();
        needs.filter(|id| !there.contains(id)).collect()
    }

    /// Whether a person may still accept a proposal.
    fn is_open(&self, id: ProposalId) -> bool {
        let mut is_open = false;
        for event in self.log.events() {
            if let Event::ReviewAsked { proposal, with, .. } = &event {
                is_open |= *proposal == id || with.contains(&id);
            } else if let Event::ProposalReviewed {
                proposal,
                verdict: Verdict::Reject { .. } | Verdict::Steer { .. },
                ..
            }
            | Event::ProposalUndone { proposal, .. } = &event
            {
                is_open &= *proposal != id;
            }
        }
        is_open
    }

    /// Applies the members that are not in the user's text yet, each rebased onto the current text.
    /// If one member does not fit, none is applied. All changes are recorded in the trajectory
    /// before the first edit is sent.
    async fn apply_all(
        &self,
        members: &[FileChange],
        dependencies: &BTreeMap<ProposalId, Dependencies>,
        permissions: &BTreeMap<ProposalId, Permission>,
    ) -> Result<(), String> {
        let there: Vec<ProposalId> = self.applied().iter().map(|part| part.proposal).collect();
        let missing = members
            .iter()
            .filter(|part| !there.contains(&part.proposal));
        let missing: Vec<&FileChange> = missing.collect();
        for part in &missing {
            let text = match self.editor.current(&part.file).await {
                Ok(current) => current.text,
                Err(error) => match part.lost(&error) {
                    Some(why) => return Err(why),
                    None => "".into(),
                },
            };
            let changes = part.over(&text);
            let changes = changes.map_err(|conflict| part.conflict_told(&conflict))?;
            if let Some(permission) = permissions.get(&part.proposal) {
                let after = changes.apply(&text).unwrap_or_default();
                let texts = (!part.deleted).then_some((&*text, &*after));
                let allowed = permission.check(&part.file, texts);
                allowed.map_err(|failure| failure.why().to_owned())?;
            }
        }
        let mut ready: Vec<(_, _, _, Option<AppliedChange>)> = Vec::new();
        for part in missing {
            let of_part = dependencies.get(&part.proposal).cloned();
            let of_part = of_part.unwrap_or_default();
            let missing = |root| missing_directories(root, &part.file);
            let directories = self.root.as_deref().map(missing).unwrap_or_default();
            let intent = self.intent(part, &directories, &of_part);
            let edit = (&part.base, &part.changes);
            let earlier = ready
                .iter()
                .filter_map(|(.., announced)| announced.as_ref());
            let announced = announce(&self.editor, &part.file, edit, earlier, intent).await;
            // An edit that cannot be recorded now is recorded when it is sent, or is not sent.
            ready.push((part, directories, of_part, announced.ok()));
        }
        let mut made = Vec::new();
        for (part, directories, of_part, announced) in ready {
            let purpose = Purpose::Propose(AnnouncedEdit {
                permission: permissions.get(&part.proposal),
                announced: announced.as_ref(),
                ..self.intent(part, &directories, &of_part)
            });
            let sent = self.send(part, &part.base, &part.changes, purpose);
            match sent.await {
                Ok(sent) => made.push(AppliedPart {
                    part,
                    change: AppliedChange {
                        file: part.file.clone(),
                        changes: ChangeSet::between(&sent.before, &sent.after),
                        before: sent.before,
                        created: sent.effect == Effect::Create,
                        deleted: sent.deleted,
                        directories,
                        dependencies: of_part,
                        text_without: None,
                    },
                    after: sent.after,
                }),
                Err(Failure::Conflict { why, .. } | Failure::Editor { why }) => {
                    self.revert(made).await;
                    return Err(why);
                }
            }
        }
        made.iter().for_each(|made| self.record_applied(made));
        let changed = made.iter().filter(|made| !made.change.is_empty());
        let applied: Vec<ProposalId> = changed.map(|made| made.part.proposal).collect();
        if applied.is_empty() {
            return Ok(());
        }
        self.mark_evidence(&format!("applied since these checks: {}", ids(&applied)));
        Ok(())
    }

    /// Returns the data that is recorded in the trajectory before the edit of a member is sent.
    fn intent<'a>(
        &'a self,
        part: &'a FileChange,
        directories: &'a [String],
        dependencies: &'a Dependencies,
    ) -> AnnouncedEdit<'a> {
        AnnouncedEdit {
            log: &self.log,
            proposal: part.proposal,
            symbols: &part.symbols,
            deletes: part.deleted,
            root: self.root.as_deref(),
            directories,
            dependencies,
            cancel: &self.cancel,
            permission: None,
            announced: None,
        }
    }

    /// Marks the evidence of the waiting reviews as out of date. The checks cannot run again,
    /// because the run has no agents.
    fn mark_evidence(&self, what: &str) {
        let records = self.log.records(0);
        let records: Vec<Stamped> = records.iter().map(|one| (**one).clone()).collect();
        let marked = outdated::marked(&view_of(&records), what);
        marked.into_iter().for_each(|event| self.log.event(event));
    }

    /// Undoes the members of a set that were already applied, because a later member failed. A
    /// change that cannot be undone is logged as applied.
    async fn revert(&self, made: Vec<AppliedPart<'_>>) {
        for made in made.into_iter().rev() {
            let inverse = ChangeSet::between(&made.after, &made.change.before);
            let purpose = take_back_purpose(made.part);
            let taken = self.send(made.part, &made.after, &inverse, purpose).await;
            match (taken, &made.change.deleted, &self.root) {
                (Err(failure), _, _) => {
                    tracing::warn!(?failure, "a part of a set could not be taken back");
                    self.record_applied(&made);
                }
                (Ok(_), Some(deleted), Some(root)) => deleted.restore(root, &made.part.file),
                (Ok(_), _, _) => {}
            }
        }
    }

    fn record_applied(&self, made: &AppliedPart<'_>) {
        let AppliedPart {
            part,
            after,
            change,
        } = made;
        self.log.event(Event::ProposalReviewed {
            proposal: part.proposal,
            by: ActorId::User,
            verdict: Verdict::Accept,
        });
        self.log.event(Event::ProposalApplied {
            proposal: part.proposal,
            symbols: part.symbols.clone(),
            diff: match change.deleted {
                Some(_) => deleted_file_diff(part.file.as_str(), &change.before),
                None => unified_diff(part.file.as_str(), &change.before, after),
            },
            change: Some(change.clone().proposed_as(&part.base, &part.changes)),
        });
    }

    async fn send(
        &self,
        part: &FileChange,
        base: &Arc<str>,
        changes: &ChangeSet,
        purpose: Purpose<'_>,
    ) -> Result<Sent, Failure> {
        let label = part.symbol.to_string();
        send(&self.editor, &part.file, base, changes, &label, purpose).await
    }

    /// Says that no person reviewed the changes, if that is so.
    fn unreviewed(&self) -> &'static str {
        let records = self.log.records(0);
        let records: Vec<Stamped> = records.iter().map(|one| (**one).clone()).collect();
        match view_of(&records).unreviewed().next() {
            Some(_) => " (no person reviewed it; an undo takes it back)",
            None => "",
        }
    }

    fn finish(&self) {
        let were_there = self.were_there();
        let mut applied = self.applied();
        applied.retain(|part| !were_there.contains(&part.proposal));
        let symbols: Vec<SymbolPath> = applied.iter().map(|part| part.symbol.clone()).collect();
        let names: Vec<String> = symbols.iter().map(ToString::to_string).collect();
        let changed = match names.is_empty() {
            true => "nothing was changed".to_owned(),
            false => format!("changed {}{}", names.join(", "), self.unreviewed()),
        };
        let sent = starling_history::unfinished(&self.log.events()).into_iter();
        let sent: Vec<String> = sent
            .flat_map(|one| one.symbols)
            .map(|symbol| symbol.to_string())
            .collect();
        let changed = match sent.is_empty() {
            true => changed,
            false => format!(
                "{changed}; an unsaved document may contain its change of {}",
                sent.join(", ")
            ),
        };
        self.log.event(Event::RunFinished {
            stop_reason: StopReason::Cancelled,
            ending: Some(Ending::new(
                Proof::NotDone,
                format!("Interrupted: its server ended in the middle; {changed}"),
            )),
            summary: format!("{changed}; its server had ended"),
            applied: symbols,
            diff: String::new(),
            spent: self.spent(),
            tally: Vec::new(),
        });
        self.log.close();
    }

    /// Returns the costs of the run: those that its end reports, or the sum of its turns if it has
    /// no end.
    fn spent(&self) -> Spent {
        let events = self.log.events();
        let at_end = events.iter().rev().find_map(|event| match event {
            Event::RunFinished { spent, .. } => Some(spent.clone()),
            _ => None,
        });
        if let Some(spent) = at_end {
            return spent;
        }
        let mut spent = Spent::default();
        for event in events {
            let (calls, usage, dollars) = match &event {
                Event::TurnFinished {
                    calls, usage, cost, ..
                } => (*calls, usage, *cost),
                Event::TurnFailed { spent, .. } => (spent.calls, &spent.usage, spent.dollars),
                _ => continue,
            };
            spent.calls += calls;
            spent.prompt_tokens += usage.prompt;
            spent.cached_tokens += usage.cached;
            spent.output_tokens += usage.output;
            spent.dollars += dollars;
            // The trajectory does not distinguish a free call from a call without a price.
            if dollars == Dollars(0.0) {
                spent.unpriced_calls += calls;
            }
        }
        spent
    }

    /// Returns the accepted proposals that changed nothing, because their text was already there.
    fn were_there(&self) -> Vec<ProposalId> {
        let events = self.log.events().into_iter();
        let empty = events.filter_map(|event| match event {
            Event::ProposalApplied {
                proposal,
                change: Some(change),
                ..
            } => change.is_empty().then_some(proposal),
            _ => None,
        });
        empty.collect()
    }

    /// Returns the changes in the user's text, in the order in which they were applied.
    fn applied(&self) -> Vec<&FileChange> {
        let mut applied: Vec<ProposalId> = Vec::new();
        for event in self.log.events() {
            if let Event::ProposalApplied { proposal, .. } = &event {
                applied.push(*proposal);
            } else if let Event::ProposalUndone { proposal, .. } = &event {
                applied.retain(|one| one != proposal);
            }
        }
        let part = |id: &ProposalId| self.parts.get(id);
        applied.iter().filter_map(part).collect()
    }
}

#[async_trait]
impl RunControl for RestoredRun {
    fn log(&self) -> EventLog {
        self.log.clone()
    }

    fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Only logs the message, because the run has no agents.
    fn steer(&self, to: Option<SymbolPath>, text: String) {
        self.log.event(Event::Steered { to, text });
    }

    fn why_nobody_owns(&self, _symbol: &SymbolPath) -> Option<String> {
        Some("its agents ended with an earlier server".to_owned())
    }

    async fn note_arrived(&self) -> Vec<Event> {
        if !self.has_unfinished || !self.log.is_closed() {
            return Vec::new();
        }
        let _one_at_a_time = self.applying.lock().await;
        let mut arrived = Vec::new();
        for one in starling_history::unfinished(&self.log.events()) {
            let now = self.editor.current(&one.change.file).await;
            if one.is_surely_in(now) && self.log.noticed(one.applied()) {
                arrived.push(one.applied());
            }
        }
        arrived
    }

    async fn undo(&self, proposal: Option<ProposalId>) -> Result<Vec<ProposalId>, UndoError> {
        let _one_at_a_time = self.applying.lock().await;
        self.record_arrived(&starling_history::unfinished(&self.log.events()))
            .await;
        let changes = starling_history::changes(self.log.events());
        for event in starling_history::made_again(&changes, self.editor.as_ref()).await {
            self.log.noticed(event);
        }
        let changes = starling_history::changes(self.log.events());
        let chosen: BTreeSet<ProposalId> = changes
            .iter()
            .filter(|change| change.state == starling_history::ChangeState::Applied)
            .map(|change| change.proposal)
            .filter(|applied| proposal.is_none_or(|id| id == *applied))
            .collect();
        if let (Some(id), true) = (proposal, chosen.is_empty()) {
            return Err(UndoError::Unknown(id));
        }
        let record = |events: Vec<Event>| {
            events.into_iter().for_each(|event| self.log.event(event));
            Ok::<(), Infallible>(())
        };
        let relied_on = match (&self.others, proposal) {
            (Some(others), None) => others.relied_on(self.log.events(), &chosen, None).await,
            (Some(_) | None, _) => Vec::new(),
        };
        let count = chosen.len();
        let mut chosen = chosen;
        chosen.retain(|id| relied_on.iter().all(|one| one.proposal != *id));
        let root = self.root.as_deref();
        let Ok(mut outcome) = undo(&self.editor, root, &changes, &chosen, record).await;
        outcome.refused.extend(relied_on);
        let undone = outcome.taken_back();
        if !undone.is_empty() && !self.log.is_closed() {
            self.mark_evidence("a change was taken back since these checks");
        }
        if outcome.refused.is_empty() && undone.is_empty() && !outcome.absent.is_empty() {
            let is_empty = |id: &ProposalId| {
                let mut of_id = changes.iter().filter(|one| one.proposal == *id);
                let made = of_id.next_back().and_then(|one| one.made.as_ref());
                made.is_some_and(AppliedChange::is_empty)
            };
            return Err(match outcome.absent.iter().all(is_empty) {
                true => UndoError::Empty(outcome.absent),
                false => UndoError::Gone(outcome.absent),
            });
        }
        let mut refused = outcome.refused.into_iter();
        if count > 1 && refused.len() > 0 {
            return Err(UndoError::Stay {
                undone,
                stay: refused.map(|one| (one.proposal, one.why)).collect(),
            });
        }
        match refused.next() {
            None => Ok(undone),
            Some(refused) => {
                let symbol = self.parts.get(&refused.proposal);
                Err(match symbol.filter(|_| refused.lines.is_some()) {
                    Some(part) => UndoError::Conflict {
                        symbol: part.symbol.clone(),
                        why: refused.why,
                    },
                    None => UndoError::Editor(refused.why),
                })
            }
        }
    }
}

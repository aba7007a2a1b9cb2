//! Answers to what waits for review, and the window of clients without views of their own.

use tower_lsp::lsp_types::{Command, MarkupKind};

use super::{RunError, RunOrigin, RunPhase, Runs, unknown};
use crate::explanation;
use crate::pending_reviews::ReviewTarget;
use crate::protocol::{
    AcceptAllReply, ProposalParams, RETRY, Remedy, RemedyNotification, RemedyParams,
};
use crate::remedy::size;
use crate::review_actions::command;
use crate::run_view::{ProposalStatus, RunProposal, short};
use starling_core::{Reviewed, Verdict};
use starling_swarm::{ProposalId, RunId, ids};

/// What may be wrong with a proposal, for those who cannot write it.
pub const REASONS: [&str; 3] = [
    "It is not needed",
    "The approach is wrong",
    "It changes too much",
];

/// The reason of a user who was not asked for one.
const NO_REASON: &str = "The user gave no reason";

/// The answers of a window.
const ACCEPT: &str = "Accept";
const REJECT: &str = "Reject";
const LATER: &str = "Later";

impl Runs {
    /// Answers a proposal (any of its set) or an intent.
    pub fn answer(
        &self,
        run: &RunId,
        review: &ReviewTarget,
        answer: impl Into<Reviewed>,
    ) -> Result<(), RunError> {
        let answer = answer.into();
        let mut entries = self.lock();
        let entry = entries.get_mut(&run.0).ok_or_else(|| unknown(run))?;
        let needs_agent = match answer {
            Reviewed::Verdict(Verdict::Steer { .. }) | Reviewed::Edited(_) => true,
            Reviewed::Verdict(Verdict::Accept | Verdict::Reject { .. }) => false,
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
        // What needs other proposals is accepted with them, after them.
        let first = match (&asked, &answer) {
            (ReviewTarget::Proposal(lead), Reviewed::Verdict(Verdict::Accept)) => {
                entry.view.accepted_with(*lead)
            }
            (ReviewTarget::Proposal(_) | ReviewTarget::Intent(_), _) => Vec::new(),
        };
        for needed in first
            .into_iter()
            .filter(|one| asked != ReviewTarget::Proposal(*one))
        {
            let review = ReviewTarget::Proposal(needed);
            if entry
                .pending_reviews
                .answer(&review, answer.clone())
                .is_ok()
            {
                entry.view.note_answer(needed, &answer);
            }
        }
        let answered = entry.pending_reviews.answer(&asked, answer.clone());
        answered.map_err(|_| RunError::NotWaiting {
            run: run.0.clone(),
            what: match review {
                ReviewTarget::Proposal(proposal) => format!("proposal {proposal}"),
                ReviewTarget::Intent(symbol) => format!("the intent of {symbol}"),
            },
        })?;
        if let ReviewTarget::Proposal(lead) = asked {
            entry.view.note_answer(lead, &answer);
        }
        drop(entries);
        self.shared.refresh.notify();
        Ok(())
    }

    /// Accepts everything that waits and fits the user's text, of one run or of all; what needs a yes of
    /// its own stays.
    pub fn accept_all(&self, run: Option<&RunId>) -> Result<AcceptAllReply, RunError> {
        let waiting: Vec<ProposalParams> = {
            let entries = self.lock();
            if let Some(run) = run {
                entries.get(&run.0).ok_or_else(|| unknown(run))?;
            }
            let wanted = entries
                .iter()
                .filter(|(id, _)| run.is_none_or(|run| run.0 == **id));
            let fitting = wanted.flat_map(|(id, entry)| {
                let leads = entry.view.lead_proposals();
                leads
                    .filter(|(lead, one)| entry.view.fits(*lead) && !one.needs_own_yes())
                    .map(|(proposal, _)| ProposalParams {
                        run: RunId(id.clone()),
                        proposal,
                    })
            });
            fitting.collect()
        };
        let accept = |one: &ProposalParams| {
            let review = ReviewTarget::Proposal(one.proposal);
            self.answer(&one.run, &review, Verdict::Accept).is_ok()
        };
        let accepted = waiting.into_iter().filter(accept).collect();
        Ok(AcceptAllReply { accepted })
    }

    /// Rejects with a reason that the user picks in a window; without one where the client shows no
    /// questions.
    ///
    /// # Errors
    /// The review does not wait.
    pub fn ask_reason(&self, run: RunId, review: ReviewTarget) -> Result<(), RunError> {
        if !self.shows_questions() {
            let reason = NO_REASON.to_owned();
            return self.answer(&run, &review, Verdict::Reject { reason });
        }
        self.check_waiting(&run, &review)?;
        let runs = self.clone();
        self.spawn_while_connected(async move {
            let question = "Starling: why do you reject it?";
            let Some(reason) = runs.shared.window.choose(question, &REASONS).await else {
                return;
            };
            let reason = reason.to_owned();
            if let Err(error) = runs.answer(&run, &review, Verdict::Reject { reason }) {
                runs.shared.window.warn(&error.to_string()).await;
            }
        });
        Ok(())
    }

    /// Checks that something waits for an answer.
    fn check_waiting(&self, run: &RunId, review: &ReviewTarget) -> Result<(), RunError> {
        match review {
            ReviewTarget::Proposal(proposal) => {
                let params = ProposalParams {
                    run: run.clone(),
                    proposal: *proposal,
                };
                self.waiting_proposal(&params).map(|_| ())
            }
            ReviewTarget::Intent(symbol) => {
                let entries = self.lock();
                let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
                let mut intents = entry.pending_reviews.intents().into_iter();
                match intents.any(|one| one.symbol == *symbol) {
                    true => Ok(()),
                    false => Err(RunError::NotWaiting {
                        run: run.0.clone(),
                        what: format!("the intent of {symbol}"),
                    }),
                }
            }
        }
    }

    fn shows_questions(&self) -> bool {
        self.shared
            .negotiated
            .get()
            .is_some_and(|one| one.questions)
    }

    /// Opens the diff of a proposal and asks for a verdict; a client that shows no questions has lenses
    /// or code actions for it.
    ///
    /// # Errors
    /// There is no such proposal, or it does not wait.
    pub fn review(&self, params: ProposalParams) -> Result<(), RunError> {
        let proposal = self.waiting_proposal(&params)?;
        let needs = {
            let entries = self.lock();
            let entry = entries.get(&params.run.0);
            entry.map_or_else(Vec::new, |entry| entry.view.needs(proposal.lead))
        };
        self.diff(&params)?;
        if !self.shows_questions() {
            return Ok(());
        }
        let runs = self.clone();
        self.spawn_while_connected(async move {
            let question = format!(
                "Starling {} for {}{}: {}",
                params.proposal,
                proposal.symbol,
                match needs.as_slice() {
                    [] => String::new(),
                    needs => format!(", needs {}, which is accepted with it", ids(needs)),
                },
                short(&proposal.reason)
            );
            let choices = [ACCEPT, REJECT, LATER];
            let chosen = runs.shared.window.choose(&question, &choices).await;
            let review = ReviewTarget::Proposal(params.proposal);
            match chosen {
                Some(ACCEPT) => {
                    if let Err(error) = runs.answer(&params.run, &review, Verdict::Accept) {
                        runs.shared.window.warn(&error.to_string()).await;
                    }
                }
                Some(REJECT) => {
                    if let Err(error) = runs.ask_reason(params.run, review) {
                        runs.shared.window.warn(&error.to_string()).await;
                    }
                }
                Some(_) | None => {}
            }
        });
        Ok(())
    }

    /// Opens the diff of a proposal, as accepting it would change the text now.
    ///
    /// # Errors
    /// There is no such proposal.
    pub fn diff(&self, params: &ProposalParams) -> Result<(), RunError> {
        self.known_proposal(params)?;
        let (runs, params) = (self.clone(), params.clone());
        self.spawn_while_connected(async move {
            let diff = match runs.proposal(&params).await {
                Ok(reply) => reply.diff,
                Err(error) => error.to_string(),
            };
            let name = format!("{}-{}.diff", params.run.0, params.proposal.0);
            runs.shared.window.show_document(&name, &diff).await;
        });
        Ok(())
    }

    /// Opens reason and evidence of a proposal.
    ///
    /// # Errors
    /// There is no such proposal.
    pub fn why(&self, params: &ProposalParams) -> Result<(), RunError> {
        let proposal = self.known_proposal(params)?;
        let (runs, params) = (self.clone(), params.clone());
        self.spawn_while_connected(async move {
            let name = format!("{}-{}.md", params.run.0, params.proposal.0);
            let text = explanation::summary(params.proposal, &proposal, &MarkupKind::Markdown);
            runs.shared.window.show_document(&name, &text).await;
        });
        Ok(())
    }

    /// Tells the user of a client without lenses and without a plugin where a proposal waits. Never a
    /// question: in some editors a question takes the keyboard from whoever types.
    pub(super) fn announce_review(&self, run: &RunId, proposal: ProposalId) {
        let is_plain = self
            .shared
            .negotiated
            .get()
            .is_some_and(|one| one.is_plain());
        let params = ProposalParams {
            run: run.clone(),
            proposal,
        };
        let Ok(waiting) = self.waiting_proposal(&params) else {
            return;
        };
        // That one cannot be applied was told, and the patch with it.
        if is_plain && !self.is_kept_as_patch(&params) {
            let runs = self.clone();
            self.spawn_while_connected(async move {
                let symbol = &waiting.symbol;
                let text = format!("Starling {proposal} waits at {symbol}: code actions decide");
                runs.shared.window.inform(&text).await;
            });
        }
    }

    /// Tells the user of a client without a plugin how a run ended.
    pub(super) async fn report_end(&self, run: &RunId) {
        let headline = self.lock().get(&run.0).and_then(|entry| {
            let end = entry.view.end.as_ref()?;
            let is_told = entry.origin == RunOrigin::Started && entry.view.remedy().is_none();
            is_told.then(|| end.headline.clone().unwrap_or_else(|| end.summary.clone()))
        });
        let Some(headline) = headline else {
            return;
        };
        match self.patch_summary(run) {
            Some(told) => {
                let text = format!("Starling: {headline}; {told}");
                self.shared.window.warn(&text).await;
            }
            None => {
                self.inform_without_plugin(&format!("Starling: {headline}"))
                    .await;
            }
        }
    }

    /// Says what can be done about a run whose model could not be asked. A client with a plugin review_actions
    /// it itself; in others a code action does.
    pub(super) async fn offer_remedy(&self, run: &RunId) {
        let found = self.lock().get(&run.0).and_then(|entry| {
            let (remedy, message) = entry.view.remedy()?;
            (entry.origin == RunOrigin::Started).then(|| RemedyParams {
                run: run.clone(),
                task: entry.params.task.clone(),
                message,
                remedy,
            })
        });
        let Some(params) = found else {
            return;
        };
        let (task, remedy) = (&params.task, Some(&params.remedy));
        let titles: Vec<String> = retry_titles(task, remedy)
            .into_iter()
            .map(|(title, _)| format!("`{title}`"))
            .collect();
        let text = format!(
            "Starling: {}. The task is kept: code action {}",
            params.message,
            titles.join(" or ")
        );
        self.inform_without_plugin(&text).await;
        let plugin = &self.shared.plugin;
        plugin.notify::<RemedyNotification>(params).await;
    }

    /// The code actions that run a task again, for clients without a plugin.
    pub fn retry_commands(&self) -> Vec<Command> {
        if self.shared.plugin.is_present() {
            return Vec::new();
        }
        let mut actions = Vec::new();
        for (id, entry) in self.lock().iter() {
            let remedy = entry.view.remedy().map(|(remedy, _)| remedy);
            let is_past = entry.origin == RunOrigin::Ended;
            let is_over =
                matches!(entry.phase, RunPhase::Ended(_)) && !entry.is_retried && !is_past;
            if is_over && (remedy.is_some() || entry.interrupted.is_some()) {
                for (title, download) in retry_titles(&entry.params.task, remedy.as_ref()) {
                    let run = RunId(id.clone());
                    let about = serde_json::json!({"run": run, "download": download});
                    actions.push(command(title, RETRY, about));
                }
            }
        }
        actions
    }

    pub(super) fn known_proposal(&self, params: &ProposalParams) -> Result<RunProposal, RunError> {
        let entries = self.lock();
        let run = &params.run;
        let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
        let proposal = entry.view.proposals.get(&params.proposal);
        proposal.cloned().ok_or_else(|| RunError::UnknownProposal {
            run: run.0.clone(),
            proposal: params.proposal,
        })
    }

    pub(super) fn waiting_proposal(
        &self,
        params: &ProposalParams,
    ) -> Result<RunProposal, RunError> {
        let proposal = self.known_proposal(params)?;
        match proposal.state {
            ProposalStatus::Waiting => Ok(proposal),
            ProposalStatus::Checking
            | ProposalStatus::Accepted
            | ProposalStatus::Rejected
            | ProposalStatus::Applied
            | ProposalStatus::Conflicted
            | ProposalStatus::Undone
            | ProposalStatus::Dropped => Err(RunError::NotWaiting {
                run: params.run.0.clone(),
                what: format!("proposal {}", params.proposal),
            }),
        }
    }

    /// Does something that may wait for a person, for as long as the client is there.
    pub(super) fn spawn_while_connected(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closing = self.shared.closing.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = work => {}
            }
        });
    }
}

/// The titles of what begins a task again, each with whether weights are fetched first.
fn retry_titles(task: &str, remedy: Option<&Remedy>) -> Vec<(String, bool)> {
    let task = short(task);
    match remedy {
        None => vec![(format!("Starling: run again: {task}"), false)],
        Some(Remedy::Key | Remedy::Endpoint | Remedy::Model) => {
            vec![(format!("Starling: try again: {task}"), false)]
        }
        Some(Remedy::Download { bytes, .. }) => vec![
            (
                format!("Starling: download ({}), then: {task}", size(*bytes)),
                true,
            ),
            (format!("Starling: try again: {task}"), false),
        ],
    }
}

//! Reviews in clients without views of their own: documents, messages and questions of the client.

use std::sync::Arc;

use tower_lsp::lsp_types::Command;

use super::front_end::LspFrontEnd;
use super::protocol::{ProposalParams, RETRY, UNDO};
use super::review_actions::{command, retry_titles};
use super::run_snapshots::proposal_reply;
use super::session::{ReviewTarget, RunError, RunSession, ShownReview, TextFormat, explain, short};
use starling_core::Verdict;
use starling_swarm::{RunId, ids};

/// The reasons for a rejection that a user can choose from without writing one.
pub const REASONS: [&str; 3] = [
    "It is not needed",
    "The approach is wrong",
    "It changes too much",
];

/// The reason that is recorded for a rejection if the user gave none.
const NO_REASON: &str = "The user gave no reason";

/// The buttons of a review.
const ACCEPT: &str = "Accept";
const REJECT: &str = "Reject";
const LATER: &str = "Later";

/// Shows reviews by `window/showDocument` and `window/showMessageRequest`.
#[derive(Clone)]
pub struct ReviewDialogs {
    pub session: RunSession,
    pub front_end: Arc<LspFrontEnd>,
}

impl ReviewDialogs {
    /// Asks the user for a reason and rejects the review with it. If the client shows no questions,
    /// the review is rejected without a reason.
    ///
    /// # Errors
    /// The review does not wait for an answer, or it waits in another version than the one shown.
    pub fn ask_reason(
        &self,
        run: RunId,
        review: ReviewTarget,
        shown: &ShownReview,
    ) -> Result<(), RunError> {
        if !self.front_end.settings().questions {
            let reason = NO_REASON.to_owned();
            let verdict = Verdict::Reject { reason };
            return self.session.answer_shown(&run, &review, shown, verdict);
        }
        let shown = self.session.check_waiting(&run, &review, shown)?;
        let dialogs = self.clone();
        self.session.spawn_while_connected(async move {
            let window = dialogs.front_end.window();
            let question = "Starling: why do you reject it?";
            let Some(reason) = window.choose(question, &REASONS).await else {
                return;
            };
            let reason = reason.to_owned();
            let verdict = Verdict::Reject { reason };
            let rejected = dialogs.session.answer_shown(&run, &review, &shown, verdict);
            dialogs.tell(&run, &review, rejected).await;
        });
        Ok(())
    }

    /// Tells the user why an answer did nothing. If another version of the proposal waits by now, asks
    /// about that one.
    async fn tell(&self, run: &RunId, review: &ReviewTarget, answered: Result<(), RunError>) {
        let Err(error) = answered else {
            return;
        };
        if let (RunError::Replaced { .. }, ReviewTarget::Proposal(proposal)) = (&error, review) {
            let params = ProposalParams {
                run: run.clone(),
                proposal: *proposal,
            };
            if self.review_again(params, &error).is_ok() {
                return;
            }
        }
        self.front_end.window().warn(&error.to_string()).await;
    }

    /// Opens the diff of a proposal and asks for a verdict. In a client that shows no questions, the user
    /// decides by lenses or code actions.
    ///
    /// # Errors
    /// The proposal does not exist, or it is not waiting for an answer.
    pub fn review(&self, params: ProposalParams) -> Result<(), RunError> {
        self.ask_for_verdict(params, String::new())
    }

    /// Like [`Self::review`], after an answer to an earlier version. `why` is why the answer did nothing.
    ///
    /// # Errors
    /// See [`Self::review`].
    pub fn review_again(&self, params: ProposalParams, why: &RunError) -> Result<(), RunError> {
        self.ask_for_verdict(params, format!("Starling: {why}. "))
    }

    fn ask_for_verdict(&self, params: ProposalParams, note: String) -> Result<(), RunError> {
        let proposal = self.session.waiting_proposal(&params)?;
        let needs = self.session.needed_proposals(&params.run, proposal.lead);
        self.diff(&params)?;
        if !self.front_end.settings().questions {
            return Ok(());
        }
        let dialogs = self.clone();
        self.session.spawn_while_connected(async move {
            let window = dialogs.front_end.window();
            let question = format!(
                "{note}Starling {}{} for {}{}: {}",
                params.proposal,
                match proposal.with.as_slice() {
                    [] => String::new(),
                    with => format!(" with {}", ids(with)),
                },
                proposal.symbol,
                match needs.as_slice() {
                    [] => String::new(),
                    needs => format!(", which is applied only after {}", ids(needs)),
                },
                short(&proposal.reason)
            );
            let chosen = window.choose(&question, &[ACCEPT, REJECT, LATER]).await;
            let review = ReviewTarget::Proposal(params.proposal);
            let (run, shown) = (params.run, proposal.shown());
            let answered = match chosen {
                Some(ACCEPT) => {
                    let session = &dialogs.session;
                    session.answer_shown(&run, &review, &shown, Verdict::Accept)
                }
                Some(REJECT) => dialogs.ask_reason(run.clone(), review.clone(), &shown),
                Some(_) | None => Ok(()),
            };
            dialogs.tell(&run, &review, answered).await;
        });
        Ok(())
    }

    /// Opens the diff between the current text and the text after accepting a proposal.
    ///
    /// # Errors
    /// There is no such proposal.
    pub fn diff(&self, params: &ProposalParams) -> Result<(), RunError> {
        self.session.known_proposal(params)?;
        let (dialogs, params) = (self.clone(), params.clone());
        self.session.spawn_while_connected(async move {
            let encoding = dialogs.front_end.settings().encoding;
            let diff = match proposal_reply(&dialogs.session, &params, encoding).await {
                Ok(reply) => reply.diff,
                Err(error) => error.to_string(),
            };
            let name = format!("{}-{}.diff", params.run.0, params.proposal.0);
            dialogs.front_end.window().show_document(&name, &diff).await;
        });
        Ok(())
    }

    /// Opens a document with the reason and the evidence of a proposal.
    ///
    /// # Errors
    /// There is no such proposal.
    pub fn why(&self, params: &ProposalParams) -> Result<(), RunError> {
        let proposal = self.session.known_proposal(params)?;
        let (dialogs, params) = (self.clone(), params.clone());
        self.session.spawn_while_connected(async move {
            let name = format!("{}-{}.md", params.run.0, params.proposal.0);
            let text = explain(params.proposal, &proposal, TextFormat::Markdown);
            dialogs.front_end.window().show_document(&name, &text).await;
        });
        Ok(())
    }

    /// Returns the commands that run a task again, or take back what an interrupted run changed, for
    /// the code actions of clients without a plugin.
    pub fn retry_commands(&self) -> Vec<Command> {
        if self.front_end.settings().has_plugin() {
            return Vec::new();
        }
        let mut commands = Vec::new();
        for run in self.session.retryable_runs() {
            for (title, download) in retry_titles(&run.task, run.remedy.as_ref()) {
                let argument = serde_json::json!({"run": run.run, "download": download});
                commands.push(command(title, RETRY, argument));
            }
        }
        for (run, task) in self.session.unreviewed_runs() {
            let task = short(&task);
            let title = format!("Starling: take back what an interrupted run changed: {task}");
            commands.push(command(title, UNDO, serde_json::json!({"run": run})));
        }
        commands
    }
}

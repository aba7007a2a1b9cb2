//! The user's own version of a proposal: validated here, then checked by the run.

use super::messages::ProposalParams;
use super::pending_reviews::{ReviewTarget, ShownReview};
use super::preview::preview;
use super::{RunEntry, RunError, RunPhase, RunSession};
use starling_core::{EditedPart, ReviewAnswer};
use starling_swarm::{EditedFile, EventLog, FileChange, ProposalId, edit_received, edited_parts};
use starling_syntax::{FilePath, carry};
use starling_text::ChangeSet;

/// A whole file of a proposal as the user wants it.
#[derive(Debug, Clone)]
pub struct EditedText {
    /// The file, or why the user's file is not part of the project.
    pub file: Result<FilePath, String>,
    /// The text without the change.
    pub before: String,
    /// The text with the change.
    pub text: String,
}

impl RunEntry {
    /// Records a version of a waiting set that the user edited.
    pub(super) fn record_edit(&self, lead: ProposalId, edited: &[EditedPart]) {
        let members = self.view.proposals.values().filter(|one| one.lead == lead);
        let parts: Vec<FileChange> = members.filter_map(|one| one.part.clone()).collect();
        if let Some(log) = self.log() {
            log.event(edit_received(lead, &parts, edited));
        }
    }

    /// Returns the log of a running run.
    fn log(&self) -> Option<EventLog> {
        match &self.phase {
            RunPhase::Running(handle) => Some(handle.log()),
            RunPhase::Opening(_) | RunPhase::Ended(_) => None,
        }
    }
}

impl RunSession {
    /// Replaces a waiting proposal by the user's version, which is checked and shown again. Returns when
    /// the user's version is recorded.
    ///
    /// # Errors
    /// The proposal does not wait, it waits in another version than the one shown, or its new text is
    /// invalid.
    /// The proposal then stays as it was.
    pub async fn edit(
        &self,
        params: &ProposalParams,
        shown: &ShownReview,
        files: Vec<EditedText>,
    ) -> Result<(), RunError> {
        let review = ReviewTarget::Proposal(params.proposal);
        let shown = self.check_waiting(&params.run, &review, shown)?;
        let refused = |why: String| RunError::NotEdited {
            proposal: params.proposal,
            why,
        };
        let parts = self.changes_of(params);
        let mut edited = Vec::new();
        let mut is_as_proposed = true;
        for document in files {
            let (file, as_proposed) = self.edited_file(&parts, document).await.map_err(refused)?;
            is_as_proposed &= as_proposed;
            edited.extend(edited_parts(&parts, &file).map_err(refused)?);
        }
        if is_as_proposed {
            let why = "your version equals the proposed one; accept it as it is".to_owned();
            return Err(refused(why));
        }
        let is_taken_out = |part: &FileChange| {
            let wanted = edited.iter().find(|one| one.proposal == part.proposal.0);
            wanted.is_some_and(|one: &EditedPart| one.before == one.text)
        };
        if parts.iter().all(is_taken_out) {
            let why = "your version changes nothing; reject it instead".to_owned();
            return Err(refused(why));
        }
        self.answer_shown(&params.run, &review, &shown, ReviewAnswer::Edited(edited))?;
        let log = self.lock().get(&params.run.0).and_then(RunEntry::log);
        if let Some(log) = log {
            // The user's text must survive the end of the server from now on.
            if let Err(error) = log.written().await {
                tracing::warn!(%error, "the user's version of a proposal is not recorded");
            }
        }
        Ok(())
    }

    /// Returns the user's version of a file, and whether it equals the proposed one.
    async fn edited_file(
        &self,
        parts: &[FileChange],
        document: EditedText,
    ) -> Result<(EditedFile, bool), String> {
        let EditedText { file, before, text } = document;
        let file = file?;
        let own: Vec<&FileChange> = parts.iter().filter(|part| part.file == file).collect();
        if own.is_empty() {
            return Err(format!("the proposal does not change {file}"));
        }
        let now = self.current_file(&file).await;
        let now = now.ok_or_else(|| format!("{file} cannot be read"))?;
        let current = now.text.clone().unwrap_or_else(|| "".into());
        let proposed = preview(now.text, &own);
        let edited = EditedFile::new(file, &before, &text);
        let changes = ChangeSet::between(&before, &edited.text);
        if let Err(conflict) = carry(&edited.file, &before, &changes, &current) {
            let lines = conflict.in_lines(&before);
            return Err(format!(
                "{} changed in the same place since you began to edit ({lines}); open it again",
                edited.file
            ));
        }
        let is_same = proposed.after.is_ok_and(|after| *after == *edited.text);
        let as_proposed = is_same && *proposed.before == *before;
        Ok((edited, as_proposed))
    }
}

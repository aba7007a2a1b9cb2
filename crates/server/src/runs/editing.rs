//! `starling.edit`: validates the user's version of a proposal and passes it to the swarm.

use super::{RunError, Runs};
use crate::paths::file_of;
use crate::pending_reviews::ReviewTarget;
use crate::preview;
use crate::protocol::{EditParams, EditedDocument, ProposalParams};
use starling_core::{EditedPart, Reviewed};
use starling_swarm::{EditedFile, FileChange, edited_parts};
use starling_syntax::carry;
use starling_text::ChangeSet;

impl Runs {
    /// Replaces a proposal that waits for review by the user's version, which is checked and shown again.
    ///
    /// # Errors
    /// The proposal does not wait, or its new text is invalid. The proposal stays as it was.
    pub async fn edit(&self, params: &EditParams) -> Result<(), RunError> {
        let named = ProposalParams {
            run: params.run.clone(),
            proposal: params.proposal,
        };
        self.waiting_proposal(&named)?;
        let refused = |why: String| RunError::NotEdited {
            proposal: params.proposal,
            why,
        };
        let parts = self.parts(&named);
        let mut edited = Vec::new();
        let mut is_as_proposed = true;
        for document in &params.files {
            let (file, as_proposed) = self.edited_file(&parts, document).await.map_err(refused)?;
            is_as_proposed &= as_proposed;
            edited.extend(edited_parts(&parts, &file).map_err(refused)?);
        }
        if is_as_proposed {
            let why = "your version is the same; accept it as it is".to_owned();
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
        let review = ReviewTarget::Proposal(params.proposal);
        self.answer(&params.run, &review, Reviewed::Edited(edited))
    }

    /// What the user made of a file, and whether that is what was proposed.
    async fn edited_file(
        &self,
        parts: &[FileChange],
        document: &EditedDocument,
    ) -> Result<(EditedFile, bool), String> {
        let EditedDocument { uri, before, text } = document;
        let root = self.root();
        let file = root.as_deref().and_then(|root| file_of(root, uri));
        let file = file.ok_or_else(|| format!("{uri} lies outside of the project"))?;
        let own: Vec<&FileChange> = parts.iter().filter(|part| part.file == file).collect();
        if own.is_empty() {
            return Err(format!("it does not change {file}"));
        }
        let now = self.current_file(root.as_deref(), &file).await;
        let now = now.ok_or_else(|| format!("{file} cannot be read"))?;
        let current = now.text.clone().unwrap_or_else(|| "".into());
        let proposed = preview::preview(now, &own, self.encoding());
        let edited = EditedFile::new(file, before, text);
        let changes = ChangeSet::between(before, &edited.text);
        if let Err(conflict) = carry(&edited.file, before, &changes, &current) {
            let lines = conflict.in_lines(before);
            return Err(format!(
                "{} changed in the same place since you began to edit ({lines}); open it again",
                edited.file
            ));
        }
        let is_same = proposed.after.as_deref() == Some(&*edited.text);
        let as_proposed = is_same && proposed.before == *before;
        Ok((edited, as_proposed))
    }
}

//! Writes changes to patch files for editors that cannot apply versioned edits.

use super::messages::ProposalParams;
use super::{RunEntry, RunSession};
use starling_swarm::{ProposalId, RunId};
use starling_workspace::private_file;

/// Message that explains why nothing is applied in an editor that does not support versioned edits.
pub const TAKES_NO_EDITS: &str = "this editor does not support versioned edits \
     (workspaceEdit.documentChanges), so Starling cannot change files in it";

impl RunSession {
    fn applies_edits(&self) -> bool {
        let front_end = self.shared.front_end.get();
        front_end.is_none_or(|front_end| front_end.applies_edits())
    }

    /// If the editor cannot apply edits, writes the proposal to a patch file and tells the user
    /// where it is.
    pub(super) fn keep_as_patch(&self, run: &RunId, seq: u64, proposal: ProposalId) {
        if self.applies_edits() {
            return;
        }
        let path = self
            .trajectory(run)
            .with_extension(format!("{}.patch", proposal.0));
        let diff = {
            let mut entries = self.lock();
            let Some(entry) = entries.get_mut(&run.0) else {
                return;
            };
            let known = entry.view.proposals.get(&proposal);
            let diff = known.map(|one| one.diff.clone()).unwrap_or_default();
            if diff.is_empty() {
                return;
            }
            entry.patches.insert(proposal, path.clone());
            if seq < entry.first_new_event {
                return;
            }
            diff
        };
        let runs = self.clone();
        self.spawn_while_connected(async move {
            let place = path.clone();
            let write = move || {
                use std::io::Write;
                private_file(&place)?.write_all(diff.as_bytes())
            };
            let written = tokio::task::spawn_blocking(write).await;
            let kept = match written.map_err(std::io::Error::other).flatten() {
                Ok(()) => format!(
                    "it is saved as a patch; to apply it, run `git apply {}`",
                    path.display()
                ),
                Err(error) => format!(
                    "and its patch {} could not be written: {error}",
                    path.display()
                ),
            };
            let text = format!("Starling: {proposal} was not applied: {TAKES_NO_EDITS}; {kept}");
            runs.report(|front_end| async move { front_end.warn(text).await })
                .await;
        });
    }

    pub(super) fn is_kept_as_patch(&self, params: &ProposalParams) -> bool {
        let entries = self.lock();
        let entry = entries.get(&params.run.0);
        entry.is_some_and(|entry| entry.patches.contains_key(&params.proposal))
    }

    /// Returns a sentence about the run's patches for its final message.
    pub(super) fn patch_summary(&self, run: &RunId) -> Option<String> {
        let entries = self.lock();
        let patches = entries.get(&run.0).map(|entry: &RunEntry| &entry.patches)?;
        let paths = patches.values().map(|path| path.display().to_string());
        let paths: Vec<String> = paths.collect();
        (!paths.is_empty()).then(|| format!("{TAKES_NO_EDITS}; patches: {}", paths.join(", ")))
    }
}

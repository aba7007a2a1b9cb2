//! How runs stand, for lenses, hovers, status lines and clients with views of their own.

use std::path::Path;
use std::sync::Arc;

use tower_lsp::lsp_types::{MarkupKind, Url};

use super::{RunEntry, RunError, RunOrigin, RunPhase, Runs, unknown};
use crate::explanation;
use crate::follow::told;
use crate::paths::{disk_text, path_of};
use crate::preview::{self, CurrentFile};
use crate::protocol::{
    AgentSnapshot, EventParams, ProposalParams, ProposalReply, ProposalSnapshot, ProposedFile,
    RunSnapshot, RunStage, StatusParams,
};
use crate::review_actions::{self, ReviewAction};
use crate::run_view::RunProposal;
use starling_core::{Dollars, EditorError};
use starling_swarm::{EventLog, FileChange, ProposalId, RunId};
use starling_syntax::{FilePath, SymbolPath};
use starling_text::Encoding;
use starling_workspace::{PathPolicy, ReadError};

impl Runs {
    /// What can be done about the symbols of a file.
    pub fn review_actions(&self, file: &FilePath) -> Vec<ReviewAction> {
        let mut review_actions = self.all_review_actions();
        review_actions.retain(|action| action.symbol.file == *file);
        review_actions
    }

    /// What can be done about all symbols: when it is other than before, lenses are.
    pub fn all_review_actions(&self) -> Vec<ReviewAction> {
        let has_plugin = self.shared.plugin.is_present();
        let entries = self.lock();
        let of = |(id, entry): (&String, &RunEntry)| {
            let run = RunId(id.clone());
            let review_actions = review_actions::all_review_actions(&run, &entry.view);
            if has_plugin {
                return review_actions;
            }
            review_actions::with_intents(review_actions, &run, entry.pending_reviews.intents())
        };
        entries.iter().flat_map(of).collect()
    }

    /// The proposals of a file that wait, for a hover.
    pub fn waiting_at(&self, symbol: &SymbolPath) -> Vec<(ProposalId, RunProposal)> {
        let review_actions = self.review_actions(&symbol.file);
        let entries = self.lock();
        let at = |action: &ReviewAction| {
            let id = action.proposal().filter(|_| action.symbol == *symbol)?;
            let entry = entries.get(&action.run.0)?;
            Some((id, entry.view.proposals.get(&id)?.clone()))
        };
        review_actions.iter().filter_map(at).collect()
    }

    /// All runs as they stand.
    pub fn state(&self) -> Vec<RunSnapshot> {
        let root = self.root();
        let entries = self.lock();
        let state = |(id, entry): (&String, &RunEntry)| {
            let run = RunId(id.clone());
            RunSnapshot {
                trajectory: self.trajectory(&run),
                run,
                task: entry.params.task.clone(),
                stage: match entry.phase {
                    RunPhase::Opening(_) => RunStage::Opening,
                    RunPhase::Running(_) => RunStage::Going,
                    RunPhase::Ended(_) => RunStage::Ended,
                },
                restored: entry.origin == RunOrigin::Restored,
                seq: entry.view.seq,
                agents: agents(entry),
                proposals: proposals(entry, root.as_deref()),
                intents: entry.pending_reviews.intents(),
                spent: entry.view.spent(),
                limits: entry.view.limits.clone(),
                stop_reason: entry.view.end.as_ref().map(|end| end.stop_reason.clone()),
                summary: entry.view.end.as_ref().map(|end| end.summary.clone()),
                headline: entry.view.end.as_ref().and_then(|end| end.headline.clone()),
                remedy: entry.view.remedy().map(|(remedy, _)| remedy),
            }
        };
        entries.iter().map(state).collect()
    }

    /// The events of a run after a number.
    ///
    /// # Errors
    /// There is no such run.
    pub fn events(&self, run: &RunId, after: Option<u64>) -> Result<Vec<EventParams>, RunError> {
        let log: Option<EventLog> = {
            let entries = self.lock();
            match &entries.get(&run.0).ok_or_else(|| unknown(run))?.phase {
                RunPhase::Running(handle) | RunPhase::Ended(Some(handle)) => Some(handle.log()),
                RunPhase::Opening(_) | RunPhase::Ended(None) => None,
            }
        };
        let from = after.map_or(0, |after| after.saturating_add(1));
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let records = log.map(|log| log.records(from)).unwrap_or_default();
        Ok(records.iter().filter_map(|one| told(run, one)).collect())
    }

    /// A proposal against the text as it is.
    ///
    /// # Errors
    /// There is no such proposal.
    pub async fn proposal(&self, params: &ProposalParams) -> Result<ProposalReply, RunError> {
        let proposal = self.known_proposal(params)?;
        let root = self.root();
        let parts = self.parts(params);
        let mut files: Vec<(FilePath, ProposedFile)> = Vec::new();
        for part in &parts {
            if files.iter().any(|(file, _)| *file == part.file) {
                continue;
            }
            let own: Vec<&FileChange> = parts.iter().filter(|one| one.file == part.file).collect();
            if let Some(now) = self.current_file(root.as_deref(), &part.file).await {
                let state = preview::preview(now, &own, self.encoding());
                files.push((part.file.clone(), state));
            }
        }
        let now = preview::diff(files.iter().map(|(file, state)| (file.as_str(), state)));
        let diff = match now.is_empty() {
            true => proposal.diff.clone(),
            false => now,
        };
        Ok(ProposalReply {
            summary: explanation::summary(params.proposal, &proposal, &MarkupKind::Markdown),
            evidence: proposal.evidence.clone(),
            diff,
            files: files.into_iter().map(|(_, state)| state).collect(),
            state: proposal_state(params.proposal, &proposal, root.as_deref()),
        })
    }

    /// The changes of a proposal and its set, in the order in which they are applied.
    pub(super) fn parts(&self, params: &ProposalParams) -> Vec<FileChange> {
        let entries = self.lock();
        let Some(entry) = entries.get(&params.run.0) else {
            return Vec::new();
        };
        let lead = entry.view.lead_of(params.proposal);
        let members = entry.view.proposals.values().filter(|one| one.lead == lead);
        members.filter_map(|one| one.part.clone()).collect()
    }

    /// A file as the user has it: the buffer, or the disk.
    pub(super) async fn current_file(
        &self,
        root: Option<&Path>,
        file: &FilePath,
    ) -> Option<CurrentFile> {
        let path = path_of(root?, file)?;
        PathPolicy::of(root?).may_read(file).ok()?;
        // Where it is open by the name of a link, that buffer is its text.
        let path = self.shared.documents.name_of(path).await.ok()?;
        let open = self.shared.documents.read(path.clone()).await.ok()?;
        let uri = self.shared.documents.uri_of(path.clone()).await.ok()?;
        let uri = uri.or_else(|| Url::from_file_path(&path).ok())?;
        Some(match open {
            Some(current) => CurrentFile {
                uri,
                version: current.version.map(|version| version.0),
                text: Some(current.text),
            },
            None => CurrentFile {
                uri,
                version: None,
                text: disk_text(path).await.ok().map(Into::into),
            },
        })
    }

    /// The text of an open document.
    pub(super) async fn open_text(&self, file: &FilePath) -> Option<Arc<str>> {
        let path = path_of(self.root().as_deref()?, file)?;
        let path = self.shared.documents.name_of(path).await.ok()?;
        let open = self.shared.documents.read(path).await.ok()?;
        open.map(|current| current.text)
    }

    /// Compares what waits, and what was applied, with the texts of open documents.
    pub async fn compare(&self) {
        let files: Vec<FilePath> = {
            let entries = self.lock();
            let mut files: Vec<FilePath> = entries
                .values()
                .flat_map(|entry| entry.view.waiting_files().cloned())
                .collect();
            files.sort();
            files.dedup();
            files
        };
        self.compared_parts().retain(|file, _| files.contains(file));
        let root = self.root();
        for file in files {
            let now = self.current_file(root.as_deref(), &file).await;
            match now.and_then(|now| now.text) {
                Some(text) => self.compare_waiting(&file, text).await,
                None => {
                    self.compared_parts().remove(&file);
                    let error = lost(root.as_deref(), &file);
                    for entry in self.lock().values_mut() {
                        entry.view.note_unreadable(&file, &error);
                    }
                }
            }
        }
        self.detect_editor_undo().await;
    }

    /// Compares what waits with the text of a file, unless both are as they were compared last. Two texts of
    /// a long file take long to compare, so nobody waits for that.
    async fn compare_waiting(&self, file: &FilePath, text: Arc<str>) {
        let parts: Vec<(String, FileChange)> = {
            let entries = self.lock();
            let of = |(id, entry): (&String, &RunEntry)| {
                let parts = entry.view.waiting_parts(file);
                let parts: Vec<_> = parts.map(|part| (id.clone(), part.clone())).collect();
                parts
            };
            entries.iter().flat_map(of).collect()
        };
        let compared = (text, parts);
        if self.compared_parts().get(file) == Some(&compared) {
            return;
        }
        let found = self.shared.services.workers.spawn_blocking(move || {
            let conflicts = compared.1.iter().map(|(_, part)| {
                let conflict = part.over(&compared.0).err();
                conflict.map(|conflict| conflict.in_lines(&part.base))
            });
            let conflicts: Vec<Option<String>> = conflicts.collect();
            (compared, conflicts)
        });
        let Ok((compared, conflicts)) = found.await else {
            return;
        };
        {
            let mut entries = self.lock();
            for ((run, part), conflict) in compared.1.iter().zip(conflicts) {
                if let Some(entry) = entries.get_mut(run) {
                    entry.view.note_conflict(part, conflict);
                }
            }
        }
        self.compared_parts().insert(file.clone(), compared);
    }

    /// Everything in one line; the questions are counted elsewhere.
    pub fn status(&self, asks: usize) -> StatusParams {
        let entries = self.lock();
        let mut status = StatusParams {
            asks,
            ignored: self.shared.ignored.get().cloned().unwrap_or_default(),
            ..StatusParams::default()
        };
        for entry in entries.values() {
            status.runs += usize::from(!matches!(entry.phase, RunPhase::Ended(_)));
            let working = entry.view.agents.values().filter(|agent| agent.working);
            status.working += working.count();
            status.waiting +=
                entry.view.lead_proposals().count() + entry.pending_reviews.intents().len();
            if entry.origin == RunOrigin::Ended {
                continue;
            }
            let spent = entry.view.spent();
            status.calls += spent.calls;
            status.tokens += spent.tokens;
            if let Some(dollars) = spent.dollars {
                status.dollars = Some(status.dollars.unwrap_or_default() + dollars);
            }
        }
        status.text = status_text(&status);
        status
    }

    pub(super) fn root(&self) -> Option<std::path::PathBuf> {
        self.shared.negotiated.get()?.root.clone()
    }

    pub(super) fn encoding(&self) -> Encoding {
        let negotiated = self.shared.negotiated.get();
        negotiated.map_or(Encoding::Utf16, |negotiated| negotiated.encoding)
    }
}

fn agents(entry: &RunEntry) -> Vec<AgentSnapshot> {
    let agents = entry.view.agents.iter();
    agents
        .map(|(agent, one)| AgentSnapshot {
            agent: agent.clone(),
            doing: one.doing.clone(),
            working: one.working,
            seconds: match one.working {
                true => one.since.elapsed().as_secs(),
                false => 0,
            },
            looked: one.looked.clone(),
        })
        .collect()
}

fn proposals(entry: &RunEntry, root: Option<&Path>) -> Vec<ProposalSnapshot> {
    let proposals = entry.view.proposals.iter();
    proposals
        .map(|(id, one)| proposal_state(*id, one, root))
        .collect()
}

fn proposal_state(id: ProposalId, proposal: &RunProposal, root: Option<&Path>) -> ProposalSnapshot {
    let mut files: Vec<&FilePath> = proposal.symbols.iter().map(|one| &one.file).collect();
    files.dedup();
    let uri = |file: &FilePath| Url::from_file_path(path_of(root?, file)?).ok();
    ProposalSnapshot {
        proposal: id,
        agent: proposal.agent.clone(),
        symbol: proposal.symbol.clone(),
        symbols: proposal.symbols.clone(),
        reason: proposal.reason.clone(),
        with: proposal.with.clone(),
        revises: proposal.revises,
        uris: files.into_iter().filter_map(uri).collect(),
        state: proposal.state,
        conflict: proposal.conflict.clone(),
    }
}

/// As it stands in a status line.
fn status_text(status: &StatusParams) -> String {
    let mut words = Vec::new();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    if status.waiting > 0 {
        words.push(format!("{} to review", status.waiting));
    }
    if status.working > 0 {
        words.push(format!(
            "{} agent{} at work",
            status.working,
            plural(status.working)
        ));
    } else if status.runs > 0 && status.waiting == 0 {
        words.push("at work".to_owned());
    }
    if status.asks > 0 {
        words.push("answering".to_owned());
    }
    if words.is_empty() {
        return String::new();
    }
    if let Some(dollars) = status.dollars.filter(|dollars| *dollars > Dollars(0.0)) {
        words.push(format!("${:.2}", dollars.0));
    } else if status.tokens.0 > 0 {
        words.push(format!("{}k tokens", status.tokens.0.div_ceil(1000)));
    }
    words.join(" · ")
}

/// Why a file has no text.
fn lost(root: Option<&Path>, file: &FilePath) -> EditorError {
    let read = root.map(|root| PathPolicy::of(root).may_read(file));
    match read {
        Some(Err(error @ ReadError::Outside(_))) => EditorError::Forbidden {
            why: error.to_string(),
        },
        Some(Ok(_) | Err(_)) | None => EditorError::Missing { file: file.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::Tokens;

    #[test]
    fn a_status_says_what_matters() {
        let said = |runs, working, waiting, asks, tokens, dollars| {
            status_text(&StatusParams {
                runs,
                working,
                waiting,
                asks,
                tokens: Tokens(tokens),
                dollars: Some(Dollars(dollars)),
                ..StatusParams::default()
            })
        };
        assert_eq!(said(0, 0, 0, 0, 9000, 1.0), "", "nothing goes on");
        assert_eq!(said(1, 0, 0, 0, 0, 0.0), "at work");
        assert_eq!(said(1, 1, 0, 0, 1200, 0.0), "1 agent at work · 2k tokens");
        assert_eq!(
            said(1, 2, 3, 1, 5, 0.25),
            "3 to review · 2 agents at work · answering · $0.25"
        );
    }
}

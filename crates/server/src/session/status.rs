//! The state of runs, for status lines and for front ends with views of their own.

use std::path::Path;
use std::sync::Arc;

use super::front_end::CurrentFile;
use super::messages::{EventParams, ProposalParams, StatusParams};
use super::run_view::{RunProposal, RunView};
use super::trajectory::event_params;
use super::{RunEntry, RunError, RunOrigin, RunPhase, RunSession, unknown};
use starling_core::{Dollars, EditorError, IntentView};
use starling_swarm::{EventLog, FileChange, ProposalId, RunId};
use starling_syntax::FilePath;
use starling_workspace::{PathPolicy, ReadError};

/// A run as a front end shows it.
pub struct RunOverview<'s> {
    pub run: RunId,
    pub task: &'s str,
    pub phase: OverviewPhase,
    /// Whether the run was started by an earlier server and waits for reviews again.
    pub is_restored: bool,
    pub trajectory: std::path::PathBuf,
    pub view: &'s RunView,
    /// The intents that wait for an answer.
    pub intents: Vec<IntentView>,
}

/// The phase of a run as a front end shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverviewPhase {
    Opening,
    Running,
    Ended,
}

impl RunSession {
    /// Calls `read` for each run, in the order in which the runs were started. The runs are locked
    /// during all calls.
    pub fn read_runs<T>(&self, mut read: impl FnMut(RunOverview<'_>) -> T) -> Vec<T> {
        let entries = self.lock();
        let overview = |(id, entry): (&String, &RunEntry)| {
            let run = RunId(id.clone());
            read(RunOverview {
                trajectory: self.trajectory(&run),
                run,
                task: &entry.params.task,
                phase: match entry.phase {
                    RunPhase::Opening(_) => OverviewPhase::Opening,
                    RunPhase::Running(_) => OverviewPhase::Running,
                    RunPhase::Ended(_) => OverviewPhase::Ended,
                },
                is_restored: entry.origin == RunOrigin::Restored,
                view: &entry.view,
                intents: entry.pending_reviews.intents(),
            })
        };
        entries.iter().map(overview).collect()
    }

    /// Returns a proposal if it exists.
    pub fn find_proposal(&self, run: &RunId, proposal: ProposalId) -> Option<RunProposal> {
        let entries = self.lock();
        entries.get(&run.0)?.view.proposals.get(&proposal).cloned()
    }

    /// Returns the events of a run after the event with the number `after`, or all of them.
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
        let events = records.iter().filter_map(|one| event_params(run, one));
        Ok(events.collect())
    }

    /// Returns the changes of a proposal and of its set, in the order in which they are applied.
    pub fn changes_of(&self, params: &ProposalParams) -> Vec<FileChange> {
        let entries = self.lock();
        let Some(entry) = entries.get(&params.run.0) else {
            return Vec::new();
        };
        let lead = entry.view.lead_of(params.proposal);
        let members = entry.view.proposals.values().filter(|one| one.lead == lead);
        members.filter_map(|one| one.part.clone()).collect()
    }

    /// Returns a file as the user has it; `None` if it must not be read or no front end is connected.
    pub async fn current_file(&self, file: &FilePath) -> Option<CurrentFile> {
        self.shared.front_end.get()?.current_file(file).await
    }

    /// Returns the text of an open buffer.
    pub(super) async fn open_text(&self, file: &FilePath) -> Option<Arc<str>> {
        self.shared.front_end.get()?.open_text(file).await
    }

    /// Compares waiting and applied changes with the current texts of their files.
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
            let now = self.current_file(&file).await;
            match now.and_then(|now| now.text) {
                Some(text) => self.compare_waiting(&file, text).await,
                None => {
                    self.compared_parts().remove(&file);
                    let error = unreadable(root.as_deref(), &file);
                    for entry in self.lock().values_mut() {
                        entry.view.note_unreadable(&file, &error);
                    }
                }
            }
        }
        self.detect_arrived().await;
        self.detect_editor_undo().await;
    }

    /// Compares waiting changes with the text of a file, unless neither has changed since the last
    /// comparison. It runs in the background because long texts take long to compare.
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

    /// Returns the state of all runs in one line. `asks` is the number of questions being answered.
    pub fn status(&self, asks: usize) -> StatusParams {
        let entries = self.lock();
        let mut status = StatusParams {
            asks,
            ignored: self.ignored_settings().clone(),
            ..StatusParams::default()
        };
        for entry in entries.values() {
            status.runs += usize::from(!matches!(entry.phase, RunPhase::Ended(_)));
            let working = entry.view.agents.values().filter(|agent| agent.working);
            status.working += working.count();
            let intents = entry.pending_reviews.intents().len();
            status.waiting += entry.view.lead_proposals().count() + intents;
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
}

/// Returns the text for a status line; empty if no run or question is active.
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

/// Returns the error for a file whose text could not be read.
fn unreadable(root: Option<&Path>, file: &FilePath) -> EditorError {
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
    fn status_text_summarizes_runs() {
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

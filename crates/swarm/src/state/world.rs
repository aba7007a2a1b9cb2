//! The workspace of a run, including all accepted changes.

use std::sync::Arc;

use crate::event::events::Candidate;
use crate::excerpt::Focus;
use crate::lookup::{Lookup, LspFacts};
use crate::state::answers::Answers;
use crate::state::epoch::Epoch;
use starling_core::Executions;
use starling_index::Index;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// The workspace of a run, including all accepted changes, and data that is derived from it.
pub(crate) struct World {
    /// The texts of the workspace, including all accepted changes.
    pub snapshot: Snapshot,
    /// Version of `snapshot`. Results that were computed for an earlier version may be outdated.
    pub epoch: Epoch,
    /// Index of `snapshot`, which reads files on first use.
    pub index: Arc<Index>,
    /// The words of the task and of the failing tests, whose lines excerpts show first.
    pub focus: Arc<Focus>,
    /// Replies of a language server about names.
    pub lsp_facts: Arc<LspFacts>,
    pub located: Vec<Candidate>,
    /// What the failing tests that the task is about, and the passing tests beside them, executed
    /// before the run.
    pub executions: Arc<Executions>,
    /// Answers of owners to questions of other agents, valid for the current texts.
    pub answers: Answers,
    /// The workspace that the scout saw. Drafts that the scout writes for agents are based on it.
    pub scouted_in: Option<Snapshot>,
}

impl World {
    pub fn new(index: Arc<Index>, focus: Focus) -> Self {
        World {
            snapshot: index.snapshot().clone(),
            epoch: Epoch::default(),
            index,
            focus: Arc::new(focus),
            lsp_facts: Arc::default(),
            located: Vec::new(),
            executions: Arc::default(),
            answers: Answers::default(),
            scouted_in: None,
        }
    }

    /// Updates the text of a file; `None` means that the file was deleted.
    pub fn change(&mut self, file: &FilePath, text: Option<&Arc<str>>) {
        self.snapshot = self.snapshot.with(file.clone(), text.cloned());
        self.index = Arc::new(self.index.after(self.snapshot.clone()));
    }

    /// Returns a lookup over the workspace.
    pub fn lookup(&self) -> Lookup {
        let lookup = Lookup::new(self.snapshot.clone(), Arc::clone(&self.index));
        lookup
            .with_focus(Arc::clone(&self.focus))
            .with_lsp_facts(Arc::clone(&self.lsp_facts))
    }
}

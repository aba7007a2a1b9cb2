//! The workspace of a run, with everything that was accepted so far.

use std::sync::Arc;

use crate::event::events::Candidate;
use crate::excerpt::Focus;
use crate::lookup::{Lookup, LspFacts};
use crate::state::answers::Answers;
use crate::state::epoch::Epoch;
use starling_index::Index;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// The workspace of a run, with everything that was accepted so far.
pub(crate) struct World {
    /// The workspace with everything that was accepted so far.
    pub snapshot: Snapshot,
    /// Version of `snapshot`. Results from an earlier epoch may be outdated.
    pub epoch: Epoch,
    /// Index of `snapshot`, which reads files on first use.
    pub index: Arc<Index>,
    /// The words that excerpts focus on, taken from the task and the failing tests.
    pub focus: Arc<Focus>,
    /// Facts about names that a language server returned.
    pub lsp_facts: Arc<LspFacts>,
    pub located: Vec<Candidate>,
    /// Cached answers of owners to questions, valid for the current texts.
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

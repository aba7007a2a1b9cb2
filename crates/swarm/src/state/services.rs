//! The services that a run uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use crate::event::events::Event;
use crate::evidence::ids::ProposalId;
use starling_core::{Approver, ChatModel, Editor, LanguageService, TestRunner};
use starling_index::Index;

/// The models of a run.
#[derive(Clone)]
pub struct RoleModels {
    pub scout: Arc<dyn ChatModel>,
    pub agent: Arc<dyn ChatModel>,
    /// Models that each write an additional version of a change, from which one version is chosen.
    pub editors: Vec<Arc<dyn ChatModel>>,
    pub proxy: Arc<dyn ChatModel>,
}

/// The services that a run uses.
#[derive(Clone)]
pub struct RunServices {
    pub models: RoleModels,
    pub editor: Arc<dyn Editor>,
    /// Asks a person to approve changes, if the task requires this.
    pub approver: Arc<dyn Approver>,
    pub tests: Arc<dyn TestRunner>,
    pub language: Arc<dyn LanguageService>,
    /// Index of the workspace at the start, including unsaved buffers.
    pub index: Arc<Index>,
    /// The other runs of the project; `None` if there cannot be any.
    pub others: Option<Arc<dyn OtherRuns>>,
}

/// The other runs of a project.
#[async_trait]
pub trait OtherRuns: Send + Sync {
    /// Returns the chosen proposals that cannot be undone without breaking what another run applied,
    /// and those that must stay with them, each with the reason. `events` are the events of the run
    /// that is undone. `index` is an index of the project, of any time since the start of that run.
    async fn rely_on(
        &self,
        events: Vec<Event>,
        chosen: &BTreeSet<ProposalId>,
        index: &Arc<Index>,
    ) -> Vec<(ProposalId, String)>;
}

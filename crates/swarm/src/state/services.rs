//! The services that a run uses.

use std::sync::Arc;

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
}

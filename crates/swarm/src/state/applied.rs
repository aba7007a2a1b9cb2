//! The proposals that are applied.

use std::sync::Arc;

use crate::event::dependencies::Dependencies;
use crate::evidence::ids::ProposalId;
use starling_core::Effect;
use starling_syntax::{FilePath, MadeChange, SymbolPath};

/// An applied proposal, as it is needed to take it back.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub id: ProposalId,
    pub file: FilePath,
    pub symbols: Vec<SymbolPath>,
    /// Imports that it lacked when it was drafted.
    pub imports: Vec<String>,
    pub before: Arc<str>,
    pub after: Arc<str>,
    /// Whether the file was there before.
    pub effect: Effect,
    /// The directories that were created with the file, the outermost first.
    pub directories: Vec<String>,
    /// The number of changes of the workspace with it: a draft of fewer changes was made without it.
    pub changes: u64,
    pub dependencies: Dependencies,
    /// Failing tests that it mended, and others that it broke.
    pub fixed: Vec<String>,
    pub broken: Vec<String>,
}

impl Applied {
    pub fn made(&self) -> MadeChange<'_> {
        MadeChange {
            file: &self.file,
            before: &self.before,
            after: &self.after,
        }
    }

    pub fn symbol(&self) -> SymbolPath {
        let module = || SymbolPath::module(self.file.clone());
        self.symbols.first().cloned().unwrap_or_else(module)
    }
}

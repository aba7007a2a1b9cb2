//! The user's request.

use std::path::PathBuf;

use starling_core::{Approval, AskIntent, Driver, Limits};
use starling_syntax::SymbolPath;

/// A request of the user to a run: the task text and the options.
#[derive(Debug, Clone)]
pub struct Task {
    pub text: String,
    pub driver: Driver,
    pub approval: Approval,
    pub ask_intent: AskIntent,
    pub limits: Limits,
    /// Deadline of one test run.
    pub test_deadline: std::time::Duration,
    /// Symbols to begin with. If empty, the scout picks them.
    pub begin: Vec<SymbolPath>,
    /// Whether changes that no test proves are rejected. It has an effect only if no person
    /// approves.
    pub require_tests: bool,
    /// File for the patch of a run that no person reviewed and that did not settle.
    pub patch: Option<PathBuf>,
}

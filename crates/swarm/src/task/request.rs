//! The user's request.

use std::path::PathBuf;

use crate::event::events::RequestParams;
use crate::task::refactoring::Refactoring;
use starling_core::{Approval, AskIntent, Driver, Limits};
use starling_syntax::SymbolPath;

/// A request of the user to a run: the task text and the options.
#[derive(Debug, Clone)]
pub struct Task {
    pub text: String,
    /// The refactoring that is the whole task. It is carried out without a model.
    pub refactoring: Option<Refactoring>,
    pub driver: Driver,
    pub approval: Approval,
    pub ask_intent: AskIntent,
    pub limits: Limits,
    /// Deadline of one test run.
    pub test_deadline: std::time::Duration,
    /// Symbols whose agents start first. If empty, the scout (the agent that reads the task) picks
    /// the symbols.
    pub begin: Vec<SymbolPath>,
    /// Whether changes are rejected unless a test proves them, that is, fails without them. It has
    /// an effect only if no person approves changes.
    pub require_tests: bool,
    /// Whether the examples of the task are run before the first change and with each change.
    pub try_examples: bool,
    /// File to which the patch is written if nobody reviewed the run's changes and the run did not
    /// succeed.
    pub patch: Option<PathBuf>,
    /// The parameters of the request, as they are recorded in the trajectory.
    pub request: Option<RequestParams>,
}

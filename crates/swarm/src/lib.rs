//! Runs coding tasks with one agent for each symbol that a task touches.
//!
//! The modules are layers: each module uses only the modules above it in this list.

mod evidence;

pub mod budget;

mod event;

mod protocol;

mod excerpt;

mod lookup;

mod task;

mod state;

mod check;

mod context;

mod contract;

mod proposal;

mod agent;

mod run;

pub use budget::Spent;
pub use context::failing::failure_in_short;
pub use event::actor::ActorId;
pub use event::dependencies::{Dependencies, DependencyGraph, Held, broken_in_words};
pub use event::ending::{Ending, MENTIONS_TOLD, Proof, StillMentioned};
pub use event::events::{
    AgentOutcome, AnswerSource, AppliedChange, Candidate, Cause, Event, Record, RequestParams,
    RunId, Stamped, StopReason, TestPhase,
};
pub use event::log::{Cursor, EventLog, UnwrittenRecord, Writing};
pub use evidence::check_results::{DiagnosticEvidence, ImportMends, UnclearImport};
pub use evidence::example::ExampleEvidence;
pub use evidence::file_change::FileChange;
pub use evidence::ids::{ProposalId, ids};
pub use evidence::indirect::IndirectCaller;
pub use evidence::joint::JointEvidence;
pub use evidence::proposal::{CheckedTexts, Evidence, NeedsPerson};
pub use evidence::test_evidence::{OnlyAsChanged, TestDelta, TestEvidence, Tried, UncountedTests};
pub use proposal::edited::{EditedFile, TAKEN_OUT, edit_received, edited_parts};
pub use proposal::undo_error::{UndoError, are_in_words};
pub use protocol::described;
pub use run::ending::NOT_ACCEPTED;
pub use run::lifecycle::{RunHandle, start};
pub use state::checker::Checker;
pub use state::services::{OtherRuns, RoleModels, RunServices};
pub use task::refactoring::Refactoring;
pub use task::request::Task;
pub use task::whole_word::has_word;

/// Applies changes to the user's text, also changes that are accepted after the end of their run.
pub mod sending {
    pub use crate::evidence::failure::Failure;
    pub use crate::proposal::permission::Permission;
    pub use crate::proposal::send::{AnnouncedEdit, EXISTS_AGAIN, Purpose, Sent, announce, send};
}

/// Renames that an editor makes itself, without a run.
pub mod renaming {
    pub use crate::run::by_rule::{RenameEdits, rename_edits};
}

/// Read-only access to the workspace for other crates: lookups, outdated locations and tool descriptions.
pub mod reading {
    pub use crate::check::left_behind::outdated_locations;
    pub use crate::excerpt::found::Found;
    pub use crate::excerpt::{Focus, Layout, chosen, numbered, stems};
    pub use crate::lookup::{Lookup, Mention, cap};
    pub use crate::protocol::{Name, OutlineFile, Read, Search};
}

#[cfg(test)]
mod tests;

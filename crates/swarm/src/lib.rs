//! Runs coding tasks with one agent for each symbol that a task touches.
//!
//! The folders are layers: each uses only those above it in this list.

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
pub use check::standalone::Gate;
pub use context::failing::failure_in_short;
pub use event::dependencies::{Dependencies, DependencyGraph, Held, broken_in_words};
pub use event::events::{
    ActorId, AgentOutcome, AnswerSource, AppliedChange, Candidate, Cause, Cursor, Event, EventLog,
    Record, RunId, Stamped, StopReason, TestPhase, Writing,
};
pub use evidence::check_results::{DiagnosticEvidence, ImportMends, UnclearImport};
pub use evidence::joint::JointEvidence;
pub use evidence::proposal::{
    CheckedTexts, Evidence, FileChange, NeedsPerson, OnlyAsChanged, ProposalId, TestDelta,
    TestEvidence, Tried, ids,
};
pub use proposal::edited::{EditedFile, edited_parts};
pub use protocol::described;
pub use run::ending::{Ending, NOT_ACCEPTED, Proof};
pub use run::lifecycle::{RoleModels, RunHandle, RunServices, Task, UndoError, start};

/// Applies changes to the user's text, also for proposals that outlive their run.
pub mod sending {
    pub use crate::proposal::send::{Failure, Intent, Purpose, Sent, send};
}

/// Read access shared with other crates: lookups and tool descriptions.
pub mod reading {
    pub use crate::excerpt::{Focus, Layout, chosen, numbered, stems};
    pub use crate::lookup::{Found, Lookup, Mention, cap};
    pub use crate::protocol::{Name, OutlineFile, Read, Search, first_word, schema, words};
}

#[cfg(test)]
mod tests;

//! Runs coding tasks with one agent for each symbol that a task touches.

mod act;
mod against;
mod agent;
mod aim;
mod alone;
mod answers;
mod apply;
mod ask;
mod asked;
mod attempts;
mod beginning;
mod broken;
mod by_rule;
mod call;
mod callees;
mod candidates;
mod company;
mod concerned;
mod context;
pub mod dependencies;
mod diagnose;
mod draft;
mod each_part;
mod early_uses;
mod edited;
mod ending;
pub mod event;
mod excerpt;
mod expected;
mod failing;
mod fill;
mod findings;
mod followup;
mod fresh;
mod gate;
mod goal;
mod hub;
mod landing;
mod last_look;
mod learn;
pub mod ledger;
mod lookup;
mod material;
mod mend;
mod names;
mod names_check;
mod new_tests;
mod objection;
mod original_tests;
mod other_names;
mod own_tests;
mod parts;
pub mod proposal;
mod propose;
mod protocol;
mod reached;
mod reason;
mod rebinding;
mod repeats;
mod request;
mod required;
mod review;
mod run;
mod scout;
mod scripts;
mod selection;
mod send;
mod set;
mod settle;
mod signal;
mod small;
mod stated;
mod steady;
mod suspects;
mod together;
mod tools;
mod trial;
mod undo;
mod unsettled;
mod verdict;
mod views;
mod write_test;

pub use alone::Gate;
pub use dependencies::{Dependencies, DependencyGraph, Held, broken_in_words};
pub use edited::{EditedFile, edited_parts};
pub use ending::{Ending, NOT_ACCEPTED, Proof};
pub use event::{
    AgentOutcome, AnswerSource, AppliedChange, Candidate, Cause, Cursor, Event, EventLog, Party,
    Record, RunId, Stamped, StopReason, TestPhase, Writing,
};
pub use failing::failure_in_short;
pub use findings::{DiagnosticEvidence, ImportMends, UnclearImport};
pub use ledger::Spent;
pub use proposal::{
    CheckedTexts, Evidence, Fate, NeedsPerson, OnlyAsChanged, Part, ProposalId, TestEvidence,
    Tried, ids,
};
pub use protocol::described;
pub use run::{Outside, RoleModels, RunHandle, Task, UndoError, start};
pub use together::Together;

/// Applies changes to the user's text, also for proposals that outlive their run.
pub mod sending {
    pub use super::send::{Failure, Intent, Purpose, Sent, send};
}

/// Read access shared with other crates: lookups and tool descriptions.
pub mod reading {
    pub use super::excerpt::{Focus, Layout, chosen, numbered, stems};
    pub use super::lookup::{Found, Lookup, Mention, cap};
    pub use super::protocol::{Name, OutlineFile, Read, Search, first_word, schema, words};
}

#[cfg(test)]
mod tests;

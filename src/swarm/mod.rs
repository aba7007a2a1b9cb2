//! The swarm: one agent for each symbol that a task touches.

pub mod event;
pub mod ledger;
pub mod proposal;
mod run;

pub use event::{
    AgentOutcome, AnswerSource, Candidate, Cause, Cursor, Driver, Event, EventLog, Party, Record,
    RunId, Stamped, StopReason, TestPhase,
};
pub use ledger::{Limits, Spent};
pub use proposal::{DiagnosticEvidence, Evidence, ProposalId, TestEvidence};
pub use run::{Approval, AskIntent, Outside, RoleModels, RunHandle, Task, UndoError, start};

//! Runs that are over, as their trajectories tell them: what they applied, and how it is undone. The
//! server and the command line undo by the same code.

mod disk;
mod intent;
mod take_back;
mod trajectory;
mod undo;

#[cfg(test)]
mod tests;

pub use disk::DiskEditor;
pub use intent::{Unfinished, unfinished};
pub use take_back::{OpenRun, is_interrupted, record, record_in, take_back};
pub use trajectory::{
    Change, Found, HistoryError, PastRun, State, changes, find, newest_first, started,
};
pub use undo::{Blocker, FilePlan, Plan, Refusal, Step, UndoOutcome, dependencies, plan};

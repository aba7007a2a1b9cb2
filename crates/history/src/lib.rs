//! Past runs, read from their trajectories: which changes they applied, and how to undo them. The
//! server and the command line share this code.

mod disk;
mod execute;
mod half_set;
mod misplaced;
mod plan;
mod relied_on;
mod trajectory;
mod unfinished;

#[cfg(test)]
mod tests;

pub use disk::DiskEditor;
pub use execute::{OpenRun, is_interrupted, record, record_in, undo};
pub use half_set::{HalfSet, half_sets};
pub use misplaced::{MisplacedChange, unapplied};
pub use plan::{
    BlockingChange, FileUndoPlan, UndoOutcome, UndoPlan, UndoRefusal, UndoStep, dependencies, plan,
};
pub use relied_on::{OtherChange, other_changes, other_runs, relied_on};
pub use trajectory::{
    ChangeRecord, ChangeState, HistoryError, PastRun, RunFile, append_lines, changes, find,
    made_again, newest_first, started,
};
pub use unfinished::{UnfinishedChange, remove_remains, unfinished};

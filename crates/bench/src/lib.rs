//! SWE-bench and similar benchmarks: data sets, checkouts, environments, runs and grading.

mod ceiling;
mod checkout;
mod container;
mod dataset;
mod env;
mod environment;
mod export;
mod git;
mod gold;
mod grade;
mod named;
mod names;
mod oracle;
mod patch;
mod predictions;
mod run;
mod scaling;
mod select;
#[cfg(test)]
mod testing;

pub use ceiling::{Ceiling, Failure, ceiling};
pub use checkout::{Checkout, Checkouts};
pub use container::{ContainerError, Containers, ImageTemplate};
pub use dataset::{Answer, DatasetError, Instance, Task, read_instances};
pub use env::{Env, TrainerSessionEnd};
pub use environment::{Environment, EnvironmentError, read_environments};
pub use export::{Export, ExportError, Exported, Format, Graded, HeldOutPolicy, RunSource};
pub use git::{GitError, Repositories};
pub use gold::{Inexpressible, Proposal, proposals};
pub use grade::{Grade, Grader, Grades, Unresolved};
pub use names::file_name;
pub use oracle::known_changes;
pub use patch::{FileChange, changes_of};
pub use predictions::{Prediction, PredictionsError, read_predictions};
pub use run::{
    Cost, Ended, Finished, KeptRecords, Outcome, Record, Report, RunDirectory, RunDirectoryError,
    Runs, Settings, earlier, instance_directory, records, settings,
};
pub use scaling::{Scaling, scaling};
pub use select::{Candidate, Choice, Judge, Signal, Signals, choose};

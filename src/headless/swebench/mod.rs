//! SWE-bench and its kin: data sets, checkouts, and what can be said of them without a model.

mod ceiling;
mod dataset;
mod git;
mod gold;
mod patch;

pub use ceiling::{Ceiling, Failure, ceiling};
pub use dataset::{Answer, DatasetError, Instance, Task, read_instances};
pub use git::{GitError, Repositories};
pub use gold::{Inexpressible, Proposal, proposals};
pub use patch::{FileChange, changes_of};

//! What the checks found out about a change, as values. No other folder is used.

pub(crate) mod check_results;
pub(crate) mod joint;
pub(crate) mod proposal;
pub(crate) mod return_reason;

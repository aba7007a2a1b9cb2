//! The results of checking a change, as plain data. This module depends on no other module of the
//! crate.

pub(crate) mod check_results;
pub(crate) mod example;
pub(crate) mod failure;
pub(crate) mod file_change;
pub(crate) mod ids;
pub(crate) mod indirect;
pub(crate) mod joint;
pub(crate) mod proposal;
pub(crate) mod return_reason;
pub(crate) mod test_evidence;
pub(crate) mod without_change;
pub(crate) mod wording;

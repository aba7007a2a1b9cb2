//! The stages of a run, from the request to the stop reason.

pub(crate) mod aim;
pub(crate) mod by_rule;
mod changed_failures;
pub(crate) mod context_failures;
mod deletions;
pub(crate) mod ending;
pub(crate) mod final_check;
pub(crate) mod finish;
pub(crate) mod lifecycle;
pub(crate) mod possible_uses;
pub(crate) mod scout;
pub(crate) mod settle;
pub(crate) mod suspects;
mod unmet;
pub(crate) mod unsettled;
mod written_meanwhile;

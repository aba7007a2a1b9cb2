//! Changed contracts: the code that a change breaks, and the owners who are told.

pub(crate) mod broken;
pub(crate) mod follow_up;
pub(crate) mod rebinding;

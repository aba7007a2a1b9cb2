//! Changed contracts: finds the code that a change breaks, and notifies the owners of that code.

mod attribute_names;
pub(crate) mod broken;
pub(crate) mod follow_up;
pub(crate) mod left_behind;
pub(crate) mod possible;
pub(crate) mod rebinding;

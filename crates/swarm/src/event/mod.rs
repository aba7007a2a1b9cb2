//! The events of a run, the actors that cause them, and the log that stores them.

pub(crate) mod actor;
pub(crate) mod dependencies;
pub(crate) mod ending;
pub(crate) mod events;
pub(crate) mod log;

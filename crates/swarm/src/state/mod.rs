//! The state that the agents and tasks of a run share.

pub(crate) mod answers;
pub(crate) mod model_call;
pub(crate) mod refresh;
pub(crate) mod run_context;
pub(crate) mod signal;

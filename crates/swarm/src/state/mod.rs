//! The state that the agents and asynchronous tasks of a run share.

pub(crate) mod agent_state;
pub(crate) mod agents;
pub(crate) mod answers;
pub(crate) mod attempts;
pub(crate) mod checker;
pub(crate) mod contracts;
pub(crate) mod disk;
pub(crate) mod draft;
pub(crate) mod epoch;
pub(crate) mod locked;
pub(crate) mod model_call;
pub(crate) mod proposal;
pub(crate) mod proposals;
pub(crate) mod refresh;
pub(crate) mod repeats;
pub(crate) mod run_context;
pub(crate) mod services;
pub(crate) mod sets;
pub(crate) mod signal;
pub(crate) mod test_scope;
pub(crate) mod test_state;
pub(crate) mod tries;
pub(crate) mod views;
pub(crate) mod waiting;
pub(crate) mod world;

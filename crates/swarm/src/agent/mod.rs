//! The agents: their turns, tools and questions.

pub(crate) mod act;
pub(crate) mod agent_turns;
pub(crate) mod begin_work;
pub(crate) mod change_request;
pub(crate) mod fill;
pub(crate) mod new_conversation;
pub(crate) mod outcome;
pub(crate) mod questions;
pub(crate) mod small;
pub(crate) mod toolbox;
pub(crate) mod tools;
pub(crate) mod try_tool;
pub(crate) mod turns;

//! The agents: their turns, tools and questions.

pub(crate) mod act;
pub(crate) mod attempts;
pub(crate) mod change_request;
pub(crate) mod fill;
pub(crate) mod questions;
pub(crate) mod repeats;
pub(crate) mod small;
pub(crate) mod tools;
pub(crate) mod turns;
pub(crate) mod write_test;

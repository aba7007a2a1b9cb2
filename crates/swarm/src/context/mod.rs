//! Builds the parts of prompts that show the project to models.

pub(crate) mod agent_context;
pub(crate) mod failing;
pub(crate) mod failure_values;
pub(crate) mod prompt_parts;
pub(crate) mod scout_context;
pub(crate) mod write_test;

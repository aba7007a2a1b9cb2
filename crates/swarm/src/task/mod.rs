//! What the user's words ask for, read without a model.

pub(crate) mod asked;
pub(crate) mod goal;
pub(crate) mod names;
pub(crate) mod required;
pub(crate) mod stated;

//! Interprets the user's request by fixed rules, without a model.

pub(crate) mod asked;
pub(crate) mod command_line;
pub(crate) mod examples;
pub(crate) mod goal;
pub(crate) mod in_strings;
pub(crate) mod left_todos;
pub(crate) mod mentions;
pub(crate) mod method_family;
pub(crate) mod names;
pub(crate) mod new_files;
pub(crate) mod refactoring;
pub(crate) mod request;
pub(crate) mod requested;
pub(crate) mod runnable;
pub(crate) mod stated;
pub(crate) mod test_names;
pub(crate) mod whole_word;

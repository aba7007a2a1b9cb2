//! The checks of a change: imports, names, diagnostics and tests.

pub(crate) mod accepted_tests;
pub(crate) mod checks;
pub(crate) mod compare_tests;
pub(crate) mod concerned;
pub(crate) mod diagnose;
pub(crate) mod documentation;
pub(crate) mod each_part;
pub(crate) mod early_uses;
pub(crate) mod expected;
pub(crate) mod lsp_hints;
pub(crate) mod moved;
pub(crate) mod names_check;
pub(crate) mod new_tests;
pub(crate) mod original_tests;
pub(crate) mod other_language;
pub(crate) mod other_names;
pub(crate) mod own_tests;
pub(crate) mod reached;
pub(crate) mod read_data;
pub(crate) mod required;
pub(crate) mod scripts;
pub(crate) mod selection;
pub(crate) mod standalone;
pub(crate) mod steady;
pub(crate) mod test_files;
pub(crate) mod test_run;

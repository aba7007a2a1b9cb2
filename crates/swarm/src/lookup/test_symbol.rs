//! Finds the test function of a failing test.

use crate::lookup::Lookup;
use starling_core::TestCase;
use starling_index::{frames, is_test_file};
use starling_syntax::{FilePath, SymbolPath};

/// Returns the test function of a failing test: the function of the first traceback frame that is
/// in a test file.
pub(crate) fn test_symbol(lookup: &Lookup, case: &TestCase) -> Option<SymbolPath> {
    let frames = frames(&case.message);
    let frame = frames
        .iter()
        .find(|frame| is_test_file(&FilePath::new(frame.path)))?;
    let tree = lookup.tree(&FilePath::new(frame.path)).ok()?;
    Some(tree.at_line(frame.line).path.clone())
}

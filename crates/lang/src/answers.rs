//! Parses language server responses that were received by someone else, such as an editor.

use std::path::Path;

use serde_json::Value;

use super::{convert, names};
use starling_core::{NameLocation, Problem, TextRequest};
use starling_syntax::FilePath;
use starling_text::Encoding;

/// Parses the locations in a response. Their texts come from the request or else from disk.
///
/// # Errors
/// A description of the first invalid location.
pub fn spots_of(
    answer: Value,
    request: &TextRequest,
    root: &Path,
    encoding: Encoding,
) -> Result<Vec<NameLocation>, String> {
    let places = names::places(answer, encoding)?;
    Ok(names::spots(&places, request, root))
}

/// Parses diagnostics of a text.
///
/// # Errors
/// A description of the first invalid diagnostic.
pub fn problems_of(
    items: &[Value],
    file: &FilePath,
    text: &str,
    encoding: Encoding,
) -> Result<Vec<Problem>, String> {
    convert::problems(items, file, text, encoding)
}

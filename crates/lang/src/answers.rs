//! What others have heard of a language server, read as our own answers are.

use std::path::Path;

use serde_json::Value;

use super::{convert, names};
use starling_core::{Problem, Spot, TextRequest};
use starling_syntax::FilePath;
use starling_text::Encoding;

/// The places of an answer about names, in the texts of the question, else in those on disk.
///
/// # Errors
/// What in it is no place.
pub fn spots_of(
    answer: Value,
    request: &TextRequest,
    root: &Path,
    encoding: Encoding,
) -> Result<Vec<Spot>, String> {
    let places = names::places(answer, encoding)?;
    Ok(names::spots(&places, request, root))
}

/// The problems that diagnostics of a text tell of.
///
/// # Errors
/// What in them is no diagnostic.
pub fn problems_of(
    items: &[Value],
    file: &FilePath,
    text: &str,
    encoding: Encoding,
) -> Result<Vec<Problem>, String> {
    convert::problems(items, file, text, encoding)
}

//! Determines which files are documentation.

use starling_syntax::FilePath;

/// File name extensions of documentation.
pub(crate) const DOCUMENTATION: [&str; 4] = ["md", "markdown", "rst", "adoc"];

pub(crate) fn is_documentation(file: &FilePath) -> bool {
    let extension = file.name().rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| DOCUMENTATION.contains(&extension))
}

//! Determines which files are code in languages that are not parsed.

use starling_syntax::FilePath;

/// Returns whether a file is code in a language that is not parsed, which may be part of the tested
/// program.
pub(crate) fn is_other_language(file: &FilePath) -> bool {
    const ENDINGS: [&str; 21] = [
        ".c", ".h", ".cc", ".cpp", ".hpp", ".pyx", ".pxd", ".rs", ".go", ".java", ".kt", ".js",
        ".jsx", ".ts", ".tsx", ".rb", ".php", ".cs", ".swift", ".f90", ".pyi",
    ];
    let name = file.name();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

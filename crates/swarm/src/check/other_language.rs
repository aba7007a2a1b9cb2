//! Determines which files are code in languages that are not parsed.

use starling_syntax::FilePath;
use starling_workspace::Snapshot;

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

/// Returns whether the project may compile a file into a module that its Python tests import.
pub(crate) fn may_be_extension(world: &Snapshot, file: &FilePath) -> bool {
    const ENDINGS: [&str; 9] = [
        ".c", ".h", ".cc", ".cpp", ".hpp", ".pyx", ".pxd", ".rs", ".f90",
    ];
    const BUILD_FILES: [&str; 4] = ["pyproject.toml", "setup.py", "setup.cfg", "meson.build"];
    const BUILDERS: [&str; 11] = [
        "maturin",
        "setuptools-rust",
        "setuptools_rust",
        "Extension",
        "ext_modules",
        "cython",
        "Cython",
        "pybind11",
        "nanobind",
        "cffi",
        "mesonpy",
    ];
    let is_compiled = ENDINGS.iter().any(|ending| file.name().ends_with(ending));
    let builds = |file: &&FilePath| {
        BUILD_FILES.contains(&file.name())
            && world
                .read(file)
                .is_ok_and(|text| BUILDERS.iter().any(|builder| text.contains(builder)))
    };
    is_compiled && world.files().iter().any(|file| builds(&file))
}

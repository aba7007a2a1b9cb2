//! Lists the modules of the packages that are installed for an interpreter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use starling_platform::files::PathExt;
use starling_workspace::{MAX_FILE_BYTES, read_text};

use super::{base, base_setting};

/// Directories of an installation that contain one directory per Python version.
const LIBRARIES: [&str; 2] = ["lib", "lib64"];
/// Directories of a Python version that contain packages. Debian uses `dist-packages`.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];
/// Top-level directories that packages often install by mistake. A project can have such directories too.
const COMMON: [&str; 8] = [
    "test",
    "tests",
    "testing",
    "docs",
    "examples",
    "scripts",
    "tools",
    "benchmarks",
];

/// Returns the names of the top-level modules of the packages that are installed for an interpreter, from
/// the files of its environment. `home` is the user's home directory, which can contain packages as well.
pub(crate) fn installed(python: &Path, home: Option<&Path>) -> BTreeSet<String> {
    let mut places = Vec::new();
    if let Some(prefix) = prefix_of(python) {
        let settings = read_text(&prefix.join("pyvenv.cfg"), MAX_FILE_BYTES).ok();
        match settings {
            Some(settings) => {
                let is_open = base_setting(&settings, "include-system-site-packages")
                    .is_some_and(|value| value.eq_ignore_ascii_case("true"));
                places.extend(base(&prefix).filter(|_| is_open));
            }
            None => {
                let real = python.canonical().ok();
                places.extend(real.as_deref().and_then(prefix_of));
                places.extend(home.map(|home| home.join(".local")));
                places.extend((prefix == Path::new("/usr")).then(|| "/usr/local".into()));
            }
        }
        places.push(prefix);
    }
    let mut names = BTreeSet::new();
    for place in places {
        for library in LIBRARIES {
            for version in entries(&place.join(library)) {
                for packages in PACKAGES {
                    names.extend(entries(&version.join(packages)).filter_map(|path| module(&path)));
                }
            }
        }
    }
    names
}

fn prefix_of(python: &Path) -> Option<PathBuf> {
    Some(python.parent()?.parent()?.to_owned())
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Returns the module name of a file or directory in a package directory, if it is a module.
fn module(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = match name.split_once('.') {
        Some((stem, kind)) if is_module_kind(kind) => stem,
        Some(_) => return None,
        None if path.is_dir() => name,
        None => return None,
    };
    let is_identifier = stem
        .chars()
        .all(|char| char.is_alphanumeric() || char == '_');
    let is_module = is_identifier && stem != "__pycache__" && !COMMON.contains(&stem);
    is_module.then(|| stem.to_owned())
}

/// Whether Python imports files with this suffix. An extension can have a tag, as in `abi3.so`.
fn is_module_kind(suffix: &str) -> bool {
    let last = suffix.rsplit('.').next().unwrap_or(suffix);
    matches!(suffix, "py" | "pyw" | "pyc") || matches!(last, "so" | "pyd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_modules_are_detected_from_the_files_of_the_environment() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("lib/python3.12/site-packages");
        for file in [
            "iniconfig/__init__.py",
            "_pytest/__init__.py",
            "six.py",
            "fast.cpython-312-x86_64-linux-gnu.so",
            "quick.cp312-win_amd64.pyd",
            "bare.pyc",
            "six-1.0.dist-info/METADATA",
            "__pycache__/six.pyc",
            "tests/__init__.py",
            "notes.txt",
        ] {
            let file = packages.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        std::fs::write(dir.path().join("pyvenv.cfg"), "home = /nowhere/bin\n").unwrap();
        let names = installed(&dir.path().join("bin/python"), None);
        let expected = ["_pytest", "bare", "fast", "iniconfig", "quick", "six"].map(str::to_owned);
        assert_eq!(names, BTreeSet::from(expected));
    }
}

//! Determines which files belong to the tests.

use crate::check::documentation::is_documentation;
use crate::check::other_language::is_other_language;
use starling_index::is_test_file;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Returns whether a file belongs to the tests: a test module, test data, configuration of the test
/// runner, or a file below a test folder that contains test modules.
pub(crate) fn is_of_tests(world: &Snapshot, file: &FilePath) -> bool {
    let is_test = (is_test_file(file) || is_in_other_language(file)) && !is_documentation(file);
    is_test
        || folder_of_tests(world, file).is_some()
        || is_test_data(file)
        || is_configuration(file)
}

/// Returns whether the path of a file is usual for tests in another language than Python:
/// `a.test.js`, `__tests__/a.js`, `spec/a_spec.rb`, `a_test.go`, `src/test/java/A.java`, `t/a.t`.
pub(crate) fn is_in_other_language(file: &FilePath) -> bool {
    const FOLDERS: [&str; 4] = ["__tests__", "__mocks__", "spec", "specs"];
    let (path, name) = (file.as_str(), file.name());
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    if matches!(ending, "t" | "bats") {
        return true;
    }
    let is_script = matches!(
        ending,
        "mjs" | "cjs" | "mts" | "cts" | "pl" | "lua" | "exs" | "dart"
    );
    if !is_script && !is_other_language(file) || ending == "pyi" {
        return false;
    }
    let mut folders = file.directory().split('/');
    let last = stem.rsplit(['.', '_', '-']).next().unwrap_or(stem);
    let is_class = ["java", "kt", "cs", "php", "swift", "scala"].contains(&ending)
        && ["Test", "Tests", "TestCase", "Spec"]
            .iter()
            .any(|word| stem.ends_with(word));
    folders.any(|folder| FOLDERS.contains(&folder))
        || path.starts_with("src/test/")
        || path.contains("/src/test/")
        || matches!(last, "test" | "tests" | "spec" | "specs")
        || stem.starts_with("test-")
        || is_class
}

/// Returns whether a file configures the test runner, which can load plugins and change the import
/// path.
fn is_configuration(file: &FilePath) -> bool {
    const NAMES: [&str; 6] = [
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "unittest.cfg",
        ".coveragerc",
    ];
    NAMES.contains(&file.name())
}

/// Returns whether a file lies in a folder of test data.
pub(crate) fn is_test_data(file: &FilePath) -> bool {
    const FOLDERS: [&str; 8] = [
        "testdata",
        "fixtures",
        "golden",
        "goldens",
        "goldenfiles",
        "snapshots",
        "__snapshots__",
        "cassettes",
    ];
    const DATA: [&str; 5] = ["data", "resources", "files", "assets", "cases"];
    let name = |folder: &str| folder.rsplit('/').next().unwrap_or(folder).to_lowercase();
    let is_data = |folder: &str| {
        let name = name(folder);
        let mut words = name.split(['_', '-', '.']);
        is_called_after_tests(folder) && words.any(|word| DATA.contains(&word))
    };
    folders(file).any(|folder| FOLDERS.contains(&name(folder).as_str()) || is_data(folder))
}

/// Returns the outermost folder above a file that has a test name and contains test modules.
pub(crate) fn folder_of_tests<'f>(world: &Snapshot, file: &'f FilePath) -> Option<&'f str> {
    folders(file).find(|folder| is_called_after_tests(folder) && holds_tests(world, folder))
}

/// Returns the folders above a file, outermost first, without the root.
pub(crate) fn folders(file: &FilePath) -> impl Iterator<Item = &str> {
    let directory = file.directory();
    let ends = directory.match_indices('/').map(|(at, _)| at);
    let folders = ends.chain([directory.len()]).map(|end| &directory[..end]);
    folders.filter(|folder| !folder.is_empty())
}

pub(crate) fn is_called_after_tests(folder: &str) -> bool {
    let name = folder.rsplit('/').next().unwrap_or(folder).to_lowercase();
    let mut words = name.split(['_', '-', '.']);
    words.any(|word| matches!(word, "test" | "tests" | "testing"))
}

/// Returns whether a folder directly contains test modules or a `conftest.py`.
fn holds_tests(world: &Snapshot, folder: &str) -> bool {
    let mut files = world.files().iter();
    files
        .any(|file| file.directory() == folder && (is_module(file) || file.name() == "conftest.py"))
}

/// Returns whether a file is a test module by its name.
pub(crate) fn is_module(file: &FilePath) -> bool {
    let name = file.name();
    let is_python = name.ends_with(".py");
    is_python && (name.starts_with("test_") || name.ends_with("_test.py") || name == "tests.py")
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::Workspace;

    #[test]
    fn tests_of_other_languages_are_recognized_by_their_usual_paths() {
        for file in [
            "a.test.js",
            "src/a.spec.ts",
            "a.test.mjs",
            "__tests__/a.js",
            "web/__tests__/deep/a.jsx",
            "spec/a_spec.rb",
            "spec/helper.rb",
            "a_test.go",
            "t/a.t",
            "app/src/test/java/shop/Cart.java",
            "shop/CartTest.java",
            "check.bats",
        ] {
            assert!(is_in_other_language(&FilePath::new(file)), "{file}");
        }
        for file in [
            "a.js",
            "latest.js",
            "contest.go",
            "build.spec",
            "api/openapi.spec.json",
            "spec/api.yaml",
            "shop/Latest.java",
            "a.test.py",
        ] {
            assert!(!is_in_other_language(&FilePath::new(file)), "{file}");
        }
    }

    #[test]
    fn test_support_files_are_recognized_by_their_directories() {
        let dir = tempfile::tempdir().unwrap();
        for file in [
            "pkg/test/test_a.py",
            "pkg/test/data/x.json",
            "pkg/testing/tools.py",
            "pkg/code.py",
            "tests/README.md",
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let world = Workspace::open(dir.path().to_owned()).unwrap();
        let world = world.snapshot(Default::default());
        let is = |file: &str| is_of_tests(&world, &FilePath::new(file));
        for file in [
            "pkg/test/test_a.py",
            "pkg/test/data/x.json",
            "pkg/test/new.py",
            "tests/x.json",
            "conftest.py",
            "test_root.py",
        ] {
            assert!(is(file), "{file}");
        }
        for file in ["pkg/testing/tools.py", "pkg/code.py", "tests/README.md"] {
            assert!(!is(file), "{file}");
        }
    }
}

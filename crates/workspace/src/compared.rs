//! The form in which names of files are compared with names that are guarded or secret. A file
//! system can take a name for another one: NTFS drops dots and blanks at its end and reads what
//! follows a colon as the name of a stream; APFS and NTFS ignore case in all scripts. A project that
//! is written here can be used there.

use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// Returns the compared form of one component of a path, in lower case. Returns `None` if it is the
/// name itself, up to the case of ASCII letters, which all comparisons ignore.
pub(super) fn compared_name(name: &str) -> Option<String> {
    let is_end = |c: char| c.is_whitespace() || c == '.';
    if name.is_ascii() && !name.contains([':', '\\']) && !name.ends_with(is_end) {
        return None;
    }
    // Letters such as `ß` and `ſ` get the form of their capitals.
    let folded: String = name.nfkc().flat_map(char::to_uppercase).collect();
    let folded: String = folded.to_lowercase().nfkc().collect();
    let folded = folded.replace('\\', "/");
    let file = folded.split(':').next().unwrap_or_default();
    let compared = file.trim_end_matches(is_end);
    (!compared.is_empty() && compared != name).then(|| compared.to_owned())
}

/// Returns the path with the compared form of each component, or `None` if no component has one.
pub(super) fn compared_path(path: &Path) -> Option<PathBuf> {
    let parts = path.components().map(|part| {
        let part = part.as_os_str().to_string_lossy();
        let compared = compared_name(&part);
        (
            compared.is_some(),
            compared.unwrap_or_else(|| part.into_owned()),
        )
    });
    let parts: Vec<(bool, String)> = parts.collect();
    let is_other = parts.iter().any(|(is_other, _)| *is_other);
    is_other.then(|| parts.iter().map(|(_, part)| part).collect())
}

/// Whether two paths can be one file on a file system that ignores case.
pub(super) fn can_be_same(a: &Path, b: &Path) -> bool {
    let lower = |path: &Path| {
        let compared = compared_path(path).unwrap_or_else(|| path.to_owned());
        compared.to_string_lossy().to_lowercase()
    };
    a == b || lower(a) == lower(b)
}

/// Matches short names that Windows gives to files with long names, such as `SETUP~1.CFG`.
pub(super) fn is_short_name(name: &str) -> bool {
    let (base, kind) = name.split_once('.').unwrap_or((name, ""));
    let Some((start, number)) = base.split_once('~') else {
        return false;
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && !start.is_empty() && base.len() <= 8 && kind.len() <= 3 && !kind.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_file_system_takes_for_another_have_its_form() {
        for (name, compared) in [
            ("Makefile.", "makefile"),
            ("setup.py . .", "setup.py"),
            ("MaKefile\u{3000}", "makefile"),
            ("Ma\u{212a}efile", "makefile"),
            (".en\u{ff36}", ".env"),
            ("\u{ff0e}env", ".env"),
            ("setup.py::$DATA", "setup.py"),
            (".env\u{ff1a}x", ".env"),
            ("\u{17f}etup.py", "setup.py"),
            ("sub\\.env", "sub/.env"),
            ("STRASSE\u{df}", "strassess"),
        ] {
            assert_eq!(compared_name(name).as_deref(), Some(compared), "{name:?}");
        }
        for name in ["Makefile", "a b.py", ".env", "...", "ä.py"] {
            assert_eq!(compared_name(name), None, "{name:?}");
        }
        let path = compared_path(Path::new(".github./Workflows/\u{212a}.yml"));
        assert_eq!(path, Some(PathBuf::from(".github/Workflows/k.yml")));
        assert_eq!(compared_path(Path::new("a/b.py")), None);
    }

    #[test]
    fn short_names_of_windows_are_recognized() {
        for name in ["GIT~1", "setup~1.py", "A~12.CFG", "PYPROJ~1.TOM"] {
            assert!(is_short_name(name), "{name}");
        }
        for name in ["a~", "~1", "a~b.py", "notes.py~1", "abcdefgh~1", "a~1.conf"] {
            assert!(!is_short_name(name), "{name}");
        }
    }
}

//! Detects file names that Windows interprets in another way.

/// Reserved device names. They are reserved with any extension and in any directory.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// Prefixes of reserved device names that end in a digit.
const NUMBERED: [&str; 2] = ["com", "lpt"];

/// Whether one component of a path names a file literally on Windows: it is no device, and Windows
/// drops or interprets no character of it.
pub(super) fn is_exact_on_windows(name: &str) -> bool {
    let is_special = |c: char| c.is_control() || "\\/:*?\"<>|".contains(c);
    !name.contains(is_special) && !name.ends_with(['.', ' ']) && !is_device(name)
}

fn is_device(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or(name).trim_end();
    let base = base.to_lowercase();
    let is_numbered = |start: &&str| {
        let number = base.strip_prefix(*start).unwrap_or_default();
        let mut digits = number.chars();
        let digit = digits.next();
        digit.is_some_and(|c| c.is_ascii_digit() || "\u{b9}\u{b2}\u{b3}".contains(c))
            && digits.next().is_none()
    };
    DEVICES.contains(&base.as_str()) || NUMBERED.iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_that_windows_reinterprets_are_not_exact() {
        for name in [
            ".git.",
            "a.py ",
            "a.py:stream",
            "..\\x",
            "c:",
            "NUL",
            "nul.py",
            "Com1",
            "lpt9.txt",
            "com\u{b2}",
            "a\tb",
            "a?",
        ] {
            assert!(!is_exact_on_windows(name), "{name:?}");
        }
        for name in [
            "a.py",
            ".git",
            "console.py",
            "com10",
            "nullable.py",
            "com",
            "ä b.py",
        ] {
            assert!(is_exact_on_windows(name), "{name:?}");
        }
    }
}

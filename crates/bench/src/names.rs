//! Checks the ids and git revisions of a data set before they become names of files or arguments of git,
//! because the data set is not trusted.

use std::borrow::Cow;

/// Maximum number of bytes of an id that is used as the name of a file.
const LONGEST: usize = 200;
/// Characters that some systems do not allow in names, or that lead to other directories.
const SPECIAL: &str = "/\\:*?\"<>|";
/// Beginning of the names that stand for ids that cannot be names.
const UNUSABLE: &str = "unusable-";

/// Returns whether a text is the plain name of a file on each system. Such a name leads to no other
/// directory, and no program takes it for an option.
pub(super) fn is_plain(text: &str) -> bool {
    let is_special = |c: char| c.is_control() || SPECIAL.contains(c);
    !text.is_empty()
        && text.len() <= LONGEST
        && !text.starts_with(['.', '-'])
        && !text.starts_with(UNUSABLE)
        && !text.contains(is_special)
}

/// Returns the name of the files that belong to an instance: its id, or a name that is computed from
/// it if the id cannot be the name of a file.
pub fn file_name(instance_id: &str) -> Cow<'_, str> {
    match is_plain(instance_id) {
        true => instance_id.into(),
        false => {
            let hash = xxhash_rust::xxh3::xxh3_128(instance_id.as_bytes());
            format!("{UNUSABLE}{hash:032x}").into()
        }
    }
}

/// Returns whether a text is a full or shortened id of a commit, or a valid name of a reference. Git
/// reads neither as an option or as an expression.
pub(super) fn is_revision(text: &str) -> bool {
    let is_id = (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id || is_reference(text)
}

/// Returns whether git allows a text as the name of a reference (`git help check-ref-format`).
fn is_reference(text: &str) -> bool {
    let is_special = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !text.starts_with('-')
        && !text.ends_with('.')
        && text != "@"
        && !["..", "@{"].iter().any(|wrong| text.contains(wrong))
        && !text.contains(is_special)
        && text.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stay_in_their_directory() {
        for id in ["django__django-1", "a b", "~", "a..b", "\u{e4}", "CON"] {
            assert_eq!(file_name(id), id);
        }
        let long = "x".repeat(300);
        let others = [
            "",
            ".",
            "..",
            "../x",
            "/etc/x",
            "a/b",
            "a\\b",
            "C:x",
            "a\0b",
            "a\nb",
            "-rf",
            ".x",
            &long,
            "unusable-0",
        ];
        let names: std::collections::BTreeSet<_> = others.iter().map(|id| file_name(id)).collect();
        assert_eq!(names.len(), others.len(), "each id has a name of its own");
        for name in names {
            let rest = name.strip_prefix(UNUSABLE).unwrap();
            assert!(rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn revisions_are_ids_and_names_of_references() {
        for text in [
            "c0ffee",
            "HEAD",
            "v1.0",
            "refs/heads/x-y",
            "stable/2.x",
            "C0FFEE12",
        ] {
            assert!(is_revision(text), "{text}");
        }
        for text in [
            "",
            "-h",
            "--output=/x",
            "HEAD~1",
            "HEAD^",
            "a..b",
            "x:y",
            "@",
            "@{1}",
            "a b",
            "a//b",
            "/a",
            "a/",
            ".a",
            "a/.b",
            "a.lock",
            "a.",
            "a\nb",
            "a\0b",
            "ext::sh",
        ] {
            assert!(!is_revision(text), "{text:?}");
        }
    }
}

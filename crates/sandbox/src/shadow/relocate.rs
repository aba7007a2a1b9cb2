//! Replaces paths of one directory tree in a text by paths of another.

use std::path::Path;

/// Returns `text` with every mention of the directory `from`, and of paths below it, replaced by
/// `to`.
pub(super) fn relocate(text: &str, from: &Path, to: &Path) -> String {
    let (Some(from), Some(to)) = (from.to_str(), to.to_str()) else {
        return text.to_owned();
    };
    let mut moved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        // `/root` does not match in `/root-2` or `/other/root`.
        let begins = !before.ends_with(is_path_character);
        let ends = !after.starts_with(|c: char| c != '/' && is_path_character(c));
        moved.push_str(before);
        moved.push_str(if begins && ends { to } else { from });
        rest = after;
    }
    moved.push_str(rest);
    moved
}

fn is_path_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relocate_replaces_only_whole_paths() {
        let moved = |text| relocate(text, Path::new("/w/root"), Path::new("/x"));
        assert_eq!(moved("/w/root"), "/x");
        assert_eq!(
            moved("A=/w/root:/w/root/src python \"/w/root/a.py\""),
            "A=/x:/x/src python \"/x/a.py\""
        );
        for same in ["/w/root-2/a", "/w/root2", "/v/w/root", "w/root", ""] {
            assert_eq!(moved(same), same);
        }
    }
}

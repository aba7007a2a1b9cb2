//! Reads which files git's index lists, so that their last staged text is in git's store.

/// Number of bytes of an entry before its object id: times, device, inode, mode, owner and size.
const STAT_BYTES: usize = 40;
/// The flag of an entry that has a second word of flags.
const EXTENDED: u16 = 1 << 14;
/// The flag, in the second word, of an entry without a text in git's store (`git add -N`).
const INTENT_TO_ADD: u16 = 1 << 13;

/// Returns whether an index lists a file with a text of its own. `hash_bytes` is the length of the
/// repository's object ids. Returns `None` if the index has another format, or is only a part of the
/// list (a split or sparse index).
pub(super) fn lists(index: &[u8], hash_bytes: usize, wanted: &[u8]) -> Option<bool> {
    let (body, _checksum) = index.split_at(index.len().checked_sub(hash_bytes)?);
    let mut rest = body.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    let mut is_listed = false;
    for _ in 0..number(&mut rest)? {
        let flags = entry(&mut rest, version, hash_bytes, &mut name)?;
        is_listed |= name == wanted && flags & INTENT_TO_ADD == 0;
    }
    while !rest.is_empty() {
        let signature = take(&mut rest, 4)?;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        take(&mut rest, length)?;
        // Extensions in lowercase change the meaning of the entries.
        if !signature[0].is_ascii_uppercase() {
            return None;
        }
    }
    Some(is_listed)
}

/// Reads an entry. Replaces the name of the entry before it by its own, and returns its second word
/// of flags.
fn entry(rest: &mut &[u8], version: u32, hash_bytes: usize, name: &mut Vec<u8>) -> Option<u16> {
    let before = rest.len();
    take(rest, STAT_BYTES + hash_bytes)?;
    let is_extended = short(rest)? & EXTENDED != 0;
    let flags = match (is_extended, version) {
        (false, _) => 0,
        (true, 2) => return None,
        (true, _) => short(rest)?,
    };
    // From version 4 on, a name begins with a part of the name before it.
    let shared = match version {
        4 => name.len().checked_sub(variable_number(rest)?)?,
        _ => 0,
    };
    name.truncate(shared);
    let length = rest.iter().position(|byte| *byte == 0)?;
    name.extend_from_slice(take(rest, length)?);
    let used = before - rest.len();
    let padding = match version {
        4 => 1,
        _ => 8 - used % 8,
    };
    take(rest, padding)?;
    Some(flags)
}

fn take<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn short(rest: &mut &[u8]) -> Option<u16> {
    let bytes = take(rest, 2)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let bytes = take(rest, 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// Reads a number of variable length, as git writes the offsets of a pack.
fn variable_number(rest: &mut &[u8]) -> Option<usize> {
    let mut byte = take(rest, 1)?[0];
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = take(rest, 1)?[0];
        value = value.checked_add(1)?.checked_mul(128)?;
        value = value.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::super::testing::git;
    use super::*;

    fn index(root: &std::path::Path) -> Vec<u8> {
        std::fs::read(root.join(".git/index")).unwrap()
    }

    #[test]
    fn index_of_each_version_and_hash_lists_whole_paths_only() {
        let tracked = [
            "docs/local.md",
            "docs/local.md.old",
            "a",
            "a-much-longer-name/with/directories/and.py",
            "ä.md",
            "z/b/c",
        ];
        let others = ["local.md", "docs", "docs/local", "b/c", "and.py", "c", ""];
        for (format, hash_bytes) in [("sha1", 20), ("sha256", 32)] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path();
            git(root, &["init", "-q", &format!("--object-format={format}")]);
            for file in tracked {
                let path = root.join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, file).unwrap();
            }
            git(root, &["add", "-A"]);
            for version in ["2", "3", "4"] {
                // Git writes version 3 only where an entry needs it.
                let sparse = if version == "3" { "--" } else { "--no-" };
                let sparse = format!("{sparse}skip-worktree");
                git(root, &["update-index", "--index-version", version]);
                git(root, &["update-index", &sparse, "a"]);
                let index = index(root);
                let written = u32::from_be_bytes(index[4..8].try_into().unwrap());
                assert_eq!(written.to_string(), version, "{format}");
                for (files, expected) in [(&tracked[..], true), (&others[..], false)] {
                    for file in files {
                        let found = lists(&index, hash_bytes, file.as_bytes());
                        assert_eq!(found, Some(expected), "{format} {version} {file}");
                    }
                }
                assert_eq!(lists(&index, 52 - hash_bytes, b"a"), None, "another hash");
                for length in 0..index.len() {
                    // A part of an index never panics.
                    let _ = lists(&index[..length], hash_bytes, b"z/b/c");
                }
            }
        }
    }

    #[test]
    fn file_that_is_only_announced_to_git_is_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        git(root, &["init", "-q"]);
        std::fs::write(root.join("new.md"), "text").unwrap();
        git(root, &["add", "-N", "new.md"]);
        assert_eq!(lists(&index(root), 20, b"new.md"), Some(false));
        git(root, &["add", "new.md"]);
        assert_eq!(lists(&index(root), 20, b"new.md"), Some(true));
    }

    #[test]
    fn split_index_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        git(root, &["init", "-q"]);
        std::fs::write(root.join("a.py"), "").unwrap();
        git(root, &["add", "a.py"]);
        git(root, &["update-index", "--split-index"]);
        assert_eq!(lists(&index(root), 20, b"a.py"), None);
        assert_eq!(lists(b"DIRC", 20, b"a.py"), None);
        assert_eq!(lists(b"", 20, b"a.py"), None);
    }
}

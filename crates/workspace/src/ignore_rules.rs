//! The rules of `.ignore`, `.gitignore` and `.git/info/exclude`. The project controls these files,
//! so a file that is not regular or is too large is skipped with a warning.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::regular::{read_regular, read_text};

/// Maximum size of a rule file in bytes. Longer files are skipped.
const MAX_BYTES: u64 = 256 << 10;
/// Maximum length of a rule in bytes. A longer rule could only match paths too long to open.
const MAX_RULE_BYTES: usize = 4096;
/// Maximum size, in bytes, of a `.git` file that contains the path of the repository's directory.
const MAX_PLACE_BYTES: u64 = 16 << 10;

/// Directory entries that contain or locate rules.
pub(super) const NAMES: [&str; 3] = [".ignore", ".gitignore", ".git"];

/// The effect of the rules on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleEffect {
    Ignored,
    /// A rule includes this path, even if it is hidden.
    Wanted,
    NotMentioned,
}

/// The rules that apply in a directory: its own and those of all parent directories.
#[derive(Clone, Default)]
pub(super) struct IgnoreRules(Option<Arc<DirectoryRules>>);

/// The rules of one directory and a link to those of its parents.
struct DirectoryRules {
    /// The rules of `.ignore`, `.gitignore` and `.git/info/exclude`, in order of precedence.
    own: [Gitignore; 3],
    above: IgnoreRules,
}

impl IgnoreRules {
    /// Reads the rules of the directories above `root`, an absolute path.
    pub fn above(root: &Path) -> Self {
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        above.reverse();
        let rules = IgnoreRules::default();
        above
            .into_iter()
            .fold(rules, |rules, directory| rules.within(directory, &NAMES))
    }

    /// Adds the rules of `directory`, which contains the entries of [`NAMES`] listed in `present`.
    pub fn within(&self, directory: &Path, present: &[&str]) -> Self {
        let rules = |name: &str, file: &dyn Fn() -> Option<PathBuf>| match file() {
            Some(file) if present.contains(&name) => read_rules(directory, &file),
            Some(_) | None => Gitignore::empty(),
        };
        if present.is_empty() {
            return self.clone();
        }
        let own = [
            rules(".ignore", &|| Some(directory.join(".ignore"))),
            rules(".gitignore", &|| Some(directory.join(".gitignore"))),
            rules(".git", &|| exclude_file(&directory.join(".git"))),
        ];
        if own.iter().all(Gitignore::is_empty) {
            return self.clone();
        }
        let above = self.clone();
        IgnoreRules(Some(Arc::new(DirectoryRules { own, above })))
    }

    /// Returns the effect of the rules on a file or directory. For each kind of rule file, the
    /// nearest directory takes precedence.
    pub fn verdict(&self, path: &Path, kind: EntryKind) -> RuleEffect {
        for file in 0..3 {
            let mut rules = self;
            while let IgnoreRules(Some(level)) = rules {
                match level.own[file].matched(path, kind == EntryKind::Directory) {
                    Match::Ignore(_) => return RuleEffect::Ignored,
                    Match::Whitelist(_) => return RuleEffect::Wanted,
                    Match::None => rules = &level.above,
                }
            }
        }
        RuleEffect::NotMentioned
    }
}

/// Returns whether the rules exclude a file below the absolute path `root`, or one of the
/// directories above the file.
pub(super) fn is_ignored(root: &Path, file: &Path) -> bool {
    let mut rules = IgnoreRules::above(root);
    let mut directory = root.to_owned();
    let mut parts = file.components().peekable();
    while let Some(part) = parts.next() {
        rules = rules.within(&directory, &NAMES);
        directory.push(part);
        let kind = match parts.peek() {
            Some(_) => EntryKind::Directory,
            None => EntryKind::Other,
        };
        if rules.verdict(&directory, kind) == RuleEffect::Ignored {
            return true;
        }
    }
    false
}

/// The kind of a path, because some rules apply only to directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Directory,
    Other,
}

/// Returns the path of a repository's `info/exclude`. `.git` is either the repository's directory
/// or a file that contains its path.
fn exclude_file(git: &Path) -> Option<PathBuf> {
    if git.metadata().ok()?.is_dir() {
        return Some(git.join("info/exclude"));
    }
    let place = read_or_warn_once(git, read_text(git, MAX_PLACE_BYTES))?;
    let place = git
        .parent()?
        .join(place.lines().next()?.strip_prefix("gitdir: ")?);
    let common = place.join("commondir");
    let common = read_or_warn_once(&common, read_text(&common, MAX_PLACE_BYTES))?;
    Some(place.join(common.lines().next()?).join("info/exclude"))
}

fn read_rules(directory: &Path, file: &Path) -> Gitignore {
    let bytes = read_or_warn_once(file, read_regular(file, MAX_BYTES)).unwrap_or_default();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let mut builder = GitignoreBuilder::new(directory);
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Files whose paths are not UTF-8 are not listed, so a rule that is not UTF-8 has no
        // effect.
        if line.len() <= MAX_RULE_BYTES
            && let Ok(line) = std::str::from_utf8(line)
            && let Err(error) = builder.add_line(None, line)
        {
            tracing::debug!(%error, file = %file.display(), "skipped an invalid ignore rule");
        }
    }
    builder.build().unwrap_or_else(|error| {
        tracing::warn!(%error, file = %file.display(), "these ignore rules cannot be used");
        Gitignore::empty()
    })
}

/// Returns the contents of a file if reading it succeeded. Otherwise logs a warning, only once for
/// each file, because every snapshot reads the file again.
fn read_or_warn_once<T>(file: &Path, read: io::Result<T>) -> Option<T> {
    static LOGGED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let error = match read {
        Ok(read) => return Some(read),
        Err(error) => error,
    };
    let is_suspect = matches!(
        error.kind(),
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge
    );
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if is_suspect && logged.insert(file.to_owned()) {
        tracing::warn!(file = %file.display(), "this file of ignore rules is skipped: {error}");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rules: &IgnoreRules, path: &Path) -> RuleEffect {
        rules.verdict(path, EntryKind::Other)
    }

    #[test]
    fn ignore_rules_above_the_root_apply_and_nearer_rules_win() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(dir.path().join(".gitignore"), "*.log\nroot/gen.py\n").unwrap();
        std::fs::write(root.join(".gitignore"), "!keep.log\n").unwrap();
        let rules = IgnoreRules::above(&root).within(&root, &[".gitignore"]);
        assert_eq!(verdict(&rules, &root.join("a.log")), RuleEffect::Ignored);
        assert_eq!(verdict(&rules, &root.join("gen.py")), RuleEffect::Ignored);
        assert_eq!(verdict(&rules, &root.join("keep.log")), RuleEffect::Wanted);
        assert_eq!(
            verdict(&rules, &root.join("a.py")),
            RuleEffect::NotMentioned
        );
    }

    #[test]
    fn git_info_exclude_applies_to_the_repository_and_its_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let (main, other) = (dir.path().join("main"), dir.path().join("other"));
        std::fs::create_dir_all(main.join(".git/info")).unwrap();
        std::fs::create_dir_all(main.join(".git/worktrees/other")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(main.join(".git/info/exclude"), "private\n").unwrap();
        let place = main.join(".git/worktrees/other");
        std::fs::write(place.join("commondir"), "../..\n").unwrap();
        let named = format!("gitdir: {}\n", place.display());
        std::fs::write(other.join(".git"), named).unwrap();
        for root in [main, other] {
            let rules = IgnoreRules::default().within(&root, &[".git"]);
            assert_eq!(verdict(&rules, &root.join("private")), RuleEffect::Ignored);
        }
    }

    #[test]
    fn hostile_ignore_rules_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let nested = "{".repeat(100_000);
        let deep = format!("{}x{}", "{a,".repeat(1300), "}".repeat(1300));
        let stars = "**/".repeat(1300);
        let text = format!("\u{feff}first\r\n{nested}\n{deep}\n{stars}\n[\n\\\n\0\nlast");
        std::fs::write(dir.path().join(".ignore"), text).unwrap();
        let mut bytes = b"bad\xff\ngood\n".to_vec();
        std::fs::write(dir.path().join(".gitignore"), &bytes).unwrap();
        let rules = IgnoreRules::default().within(dir.path(), &[".ignore", ".gitignore"]);
        for name in ["first", "last", "good"] {
            assert_eq!(verdict(&rules, &dir.path().join(name)), RuleEffect::Ignored);
        }
        bytes.resize(MAX_BYTES as usize + 1, b'\n');
        std::fs::write(dir.path().join(".gitignore"), &bytes).unwrap();
        let rules = IgnoreRules::default().within(dir.path(), &[".gitignore"]);
        assert_eq!(
            verdict(&rules, &dir.path().join("good")),
            RuleEffect::NotMentioned
        );
    }
}

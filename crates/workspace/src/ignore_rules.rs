//! The rules of `.ignore`, `.gitignore` and `.git/info/exclude`. The project controls these files,
//! so a file that is not regular or is too large is skipped with a warning.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::ops::Range;
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

/// The rule file in [`DirectoryRules`] that git does not know.
const NOT_OF_GIT: Range<usize> = 0..1;
/// The rule files in [`DirectoryRules`] that git reads.
const OF_GIT: Range<usize> = 1..3;

/// Whether rules match names that differ only in upper and lower case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NameCase {
    #[default]
    Exact,
    Ignored,
}

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
pub(super) struct IgnoreRules {
    nearest: Option<Arc<DirectoryRules>>,
    case: NameCase,
}

/// The rules of one directory and a link to those of its parents.
struct DirectoryRules {
    /// The rules of `.ignore`, `.gitignore` and `.git/info/exclude`, in order of precedence.
    own: [Gitignore; 3],
    above: IgnoreRules,
}

impl IgnoreRules {
    /// Returns no rules, to which those of directories can be added.
    pub fn matching(case: NameCase) -> Self {
        IgnoreRules {
            nearest: None,
            case,
        }
    }

    /// Reads the rules of the directories above `root`, an absolute path.
    pub fn above(root: &Path) -> Self {
        IgnoreRules::default().between(Path::new(""), root)
    }

    /// Adds the rules of the directories above `root`, up to `top`.
    pub fn between(self, top: &Path, root: &Path) -> Self {
        let above = root.ancestors().skip(1);
        let mut above: Vec<&Path> = above.take_while(|path| path.starts_with(top)).collect();
        above.reverse();
        above
            .into_iter()
            .fold(self, |rules, directory| rules.within(directory, &NAMES))
    }

    /// Adds the rules of `directory`, which contains the entries of [`NAMES`] listed in `present`.
    pub fn within(&self, directory: &Path, present: &[&str]) -> Self {
        let case = self.case;
        let rules = |name: &str, syntax, file: &dyn Fn() -> Option<PathBuf>| match file() {
            Some(file) if present.contains(&name) => read_rules(directory, &file, case, syntax),
            Some(_) | None => Gitignore::empty(),
        };
        if present.is_empty() {
            return self.clone();
        }
        let own = [
            rules(".ignore", RuleSyntax::Ripgrep, &|| {
                Some(directory.join(".ignore"))
            }),
            rules(".gitignore", RuleSyntax::Git, &|| {
                Some(directory.join(".gitignore"))
            }),
            rules(".git", RuleSyntax::Git, &|| {
                exclude_file(&directory.join(".git"))
            }),
        ];
        if own.iter().all(Gitignore::is_empty) {
            return self.clone();
        }
        let above = self.clone();
        let nearest = Some(Arc::new(DirectoryRules { own, above }));
        IgnoreRules { nearest, case }
    }

    /// Returns the effect of the rules on a file or directory. For each kind of rule file, the
    /// nearest directory takes precedence.
    pub fn verdict(&self, path: &Path, kind: EntryKind) -> RuleEffect {
        match self.effect_of(NOT_OF_GIT, path, kind) {
            RuleEffect::NotMentioned => self.effect_of(OF_GIT, path, kind),
            found @ (RuleEffect::Ignored | RuleEffect::Wanted) => found,
        }
    }

    fn effect_of(&self, files: Range<usize>, path: &Path, kind: EntryKind) -> RuleEffect {
        for file in files {
            let mut rules = self;
            while let Some(level) = &rules.nearest {
                match level.own[file].matched(path, kind == EntryKind::Directory) {
                    Match::Ignore(_) => return RuleEffect::Ignored,
                    Match::Whitelist(_) => return RuleEffect::Wanted,
                    Match::None => rules = &level.above,
                }
            }
        }
        RuleEffect::NotMentioned
    }

    /// Returns whether git ignores a path, or a `.ignore` file excludes it. `excludes` are the user's
    /// own rules, which come last.
    fn ignores(&self, path: &Path, kind: EntryKind, excludes: &Gitignore) -> bool {
        let by_git = match self.effect_of(OF_GIT, path, kind) {
            RuleEffect::Ignored => true,
            RuleEffect::Wanted => false,
            RuleEffect::NotMentioned => excludes
                .matched(path, kind == EntryKind::Directory)
                .is_ignore(),
        };
        by_git || self.effect_of(NOT_OF_GIT, path, kind) == RuleEffect::Ignored
    }
}

/// Returns whether a file below `root`, or one of the directories between them, is ignored. `rules`
/// are those from above `root`, and `excludes` are the user's own.
pub(super) fn is_ignored(
    mut rules: IgnoreRules,
    root: &Path,
    file: &Path,
    excludes: &Gitignore,
) -> bool {
    let mut directory = root.to_owned();
    let mut parts = file.components().peekable();
    while let Some(part) = parts.next() {
        rules = rules.within(&directory, &NAMES);
        directory.push(part);
        let kind = match parts.peek() {
            Some(_) => EntryKind::Directory,
            None => EntryKind::Other,
        };
        if rules.ignores(&directory, kind, excludes) {
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
    let common = read_or_warn_once(&common, read_text(&common, MAX_PLACE_BYTES));
    // A submodule has its own repository, and names no other.
    let common = common.as_deref().and_then(|text| text.lines().next());
    Some(place.join(common.unwrap_or(".")).join("info/exclude"))
}

/// The meaning of braces in rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleSyntax {
    /// Braces are ordinary characters.
    Git,
    /// Braces contain alternatives.
    Ripgrep,
}

fn read_rules(directory: &Path, file: &Path, case: NameCase, syntax: RuleSyntax) -> Gitignore {
    let bytes = read_or_warn_once(file, read_regular(file, MAX_BYTES)).unwrap_or_default();
    rules_of(&bytes, directory, file, case, syntax)
}

/// Reads the user's own file of rules, which apply to a whole work tree. A missing file has no rules.
///
/// # Errors
/// The file is too long to be read.
pub(super) fn rules_of_user(top: &Path, file: &Path, case: NameCase) -> io::Result<Gitignore> {
    let bytes = match read_regular(file, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => return Err(error),
        Err(_) => Vec::new(),
    };
    Ok(rules_of(&bytes, top, file, case, RuleSyntax::Git))
}

fn rules_of(
    bytes: &[u8],
    directory: &Path,
    file: &Path,
    case: NameCase,
    syntax: RuleSyntax,
) -> Gitignore {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut builder = GitignoreBuilder::new(directory);
    builder
        .case_insensitive(case == NameCase::Ignored)
        .expect("no rule was added yet");
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Files whose paths are not UTF-8 are not listed, so a rule that is not UTF-8 has no
        // effect.
        if line.len() <= MAX_RULE_BYTES
            && let Ok(line) = std::str::from_utf8(line)
            && let Err(error) = match syntax {
                RuleSyntax::Git => builder.add_line(None, &with_plain_braces(line)),
                RuleSyntax::Ripgrep => builder.add_line(None, line),
            }
        {
            tracing::debug!(%error, file = %file.display(), "skipped an invalid ignore rule");
        }
    }
    builder.build().unwrap_or_else(|error| {
        tracing::warn!(%error, file = %file.display(), "these ignore rules cannot be used");
        Gitignore::empty()
    })
}

/// Returns a rule whose braces are escaped.
fn with_plain_braces(line: &str) -> Cow<'_, str> {
    if !line.contains(['{', '}']) {
        return line.into();
    }
    let mut plain = String::with_capacity(line.len() + 2);
    let mut is_escaped = false;
    for c in line.chars() {
        if matches!(c, '{' | '}') && !is_escaped {
            plain.push('\\');
        }
        is_escaped = c == '\\' && !is_escaped;
        plain.push(c);
    }
    plain.into()
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
    fn git_info_exclude_applies_to_the_repository_its_worktrees_and_submodules() {
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
        let module = dir.path().join("module");
        std::fs::create_dir_all(main.join(".git/modules/m/info")).unwrap();
        std::fs::create_dir(&module).unwrap();
        let named = "gitdir: ../main/.git/modules/m\n";
        std::fs::write(module.join(".git"), named).unwrap();
        let own = main.join(".git/modules/m/info/exclude");
        std::fs::write(own, "private\n").unwrap();
        for root in [main, other, module] {
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

//! Finds the project files that git's own configuration names: hooks, monitors, filters, included
//! configurations. Git runs these files, or commands in them, the next time that the user runs a
//! git command.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use starling_platform::files::PathExt;

use super::Stamp;
use super::compared::can_be_same;
use super::regular::read_text;

/// Maximum number of bytes read of a configuration file.
const BYTES_MOST: u64 = 1 << 20;
/// Maximum depth of configurations that include others.
const DEPTH_MOST: u32 = 4;
/// Maximum number of hooks to examine in one directory.
const HOOKS_MOST: usize = 1000;
/// Maximum number of configuration files to read.
const FILES_MOST: usize = 64;

/// Whether git's configuration names a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitNaming {
    No,
    Yes,
    /// Unknown, because a configuration file is too long or there are too many files.
    Unknown,
}

/// The files that the git configuration of a repository names. The configuration is read again when
/// one of its files changes.
#[derive(Debug, Clone, Default)]
pub(super) struct GitNames {
    last: Arc<Mutex<Option<GitConfiguration>>>,
}

/// The parsed configurations of a repository.
#[derive(Debug)]
struct GitConfiguration {
    repository: GitRepository,
    /// The configuration files, including missing ones, with their state before they were read.
    files: Vec<(PathBuf, Option<Stamp>)>,
    read_at: SystemTime,
    /// The paths that the configuration names, without duplicates.
    named: BTreeSet<PathBuf>,
    is_whole: bool,
}

/// The directories of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitRepository {
    /// The root of the work tree.
    pub(super) top: PathBuf,
    /// The git directory that all work trees share.
    git: PathBuf,
    /// The git directory of this work tree. It differs from `git` only for a linked work tree.
    own: PathBuf,
}

impl GitRepository {
    /// Returns the default directories for hooks.
    fn hooks(&self) -> [PathBuf; 2] {
        [self.git.join("hooks"), self.own.join("hooks")]
    }

    /// Returns the paths of git's configuration files, whether or not they exist. A linked work
    /// tree has its own `config.worktree`.
    pub(super) fn configurations(&self) -> Vec<PathBuf> {
        let mut files = vec![self.git.join("config"), self.git.join("config.worktree")];
        if self.own != self.git {
            files.push(self.own.join("config.worktree"));
        }
        files
    }

    /// Returns the work tree in whose `.git` the data of this repository is: for a linked work tree the
    /// main one, for a submodule that of the repository around it.
    pub(super) fn main_tree(&self) -> Option<&Path> {
        let data = self
            .git
            .ancestors()
            .filter(|folder| folder.ends_with(".git"));
        data.last()?.parent()
    }

    /// Returns the path of the index of this work tree.
    pub(super) fn index(&self) -> PathBuf {
        self.own.join("index")
    }
}

impl GitNames {
    /// Returns whether the configuration of the repository that contains `root` names `file` or a
    /// directory above it.
    pub(super) fn names(&self, root: &Path, file: &Path) -> GitNaming {
        let Some(repository) = repository(root) else {
            return GitNaming::No;
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.take().filter(|known| known.holds(&repository));
        let known = last.insert(known.unwrap_or_else(|| GitConfiguration::read(repository)));
        if !known.is_whole {
            return GitNaming::Unknown;
        }
        let file = plain(&root.join(file));
        let is_named = |path: &Path| known.named.iter().any(|named| can_be_same(named, path));
        match file.ancestors().any(is_named) {
            true => GitNaming::Yes,
            false => GitNaming::No,
        }
    }
}

impl GitConfiguration {
    fn read(repository: GitRepository) -> Self {
        let GitRepository { top, git, .. } = &repository;
        let read_at = SystemTime::now();
        let mut waiting = repository.configurations();
        let (mut files, mut named, mut is_whole) = (Vec::new(), BTreeSet::new(), true);
        let inside = |path: &PathBuf| path.starts_with(top) && path != top;
        let mut hooks: BTreeSet<PathBuf> = repository.hooks().into();
        for _ in 0..DEPTH_MOST {
            let mut included = Vec::new();
            for path in std::mem::take(&mut waiting) {
                if files.len() >= FILES_MOST {
                    is_whole = false;
                    break;
                }
                files.push((path.clone(), stamp(&path)));
                let text = match read_text(&path, BYTES_MOST) {
                    Ok(text) => text,
                    Err(error) => {
                        is_whole &= error.kind() != ErrorKind::FileTooLarge;
                        continue;
                    }
                };
                let beside = path.parent().unwrap_or(git);
                let found = ConfiguredPaths::in_text(&text, top, beside);
                named.extend(found.named.into_iter().filter(inside));
                included.extend(found.included);
                hooks.extend(found.hooks);
            }
            waiting = included;
        }
        for directory in hooks {
            files.push((directory.clone(), stamp(&directory)));
            named.extend(linked_from(&directory).into_iter().filter(inside));
        }
        GitConfiguration {
            repository,
            files,
            read_at,
            named,
            is_whole,
        }
    }

    /// Returns whether no configuration file changed since the configuration was read.
    fn holds(&self, repository: &GitRepository) -> bool {
        let is_same = |(path, known): &(PathBuf, Option<Stamp>)| {
            stamp(path) == *known && known.is_none_or(|known| known.is_settled(self.read_at))
        };
        self.repository == *repository && self.files.iter().all(is_same)
    }
}

/// Returns the targets of the links in a hook directory, and of the directory itself if it is a
/// link. Git runs the target of a link, whatever its name.
fn linked_from(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let links = entries.map(|entry| entry.path()).take(HOOKS_MOST);
    let mut found = Vec::new();
    for link in links.chain([directory.to_owned()]) {
        let Ok(target) = link.read_link() else {
            continue;
        };
        // The target may not exist yet, or may be another link.
        found.push(plain(&link.parent().unwrap_or(directory).join(target)));
        found.extend(link.canonical());
    }
    found
}

fn stamp(path: &Path) -> Option<Stamp> {
    path.metadata().ok().map(|found| Stamp::of(&found))
}

/// Returns the nearest repository at or above `root`.
pub(super) fn repository(root: &Path) -> Option<GitRepository> {
    let top = root
        .ancestors()
        .find(|folder| folder.join(".git").exists())?;
    let mut git = top.join(".git");
    if let Ok(text) = read_text(&git, BYTES_MOST) {
        git = plain(&top.join(text.strip_prefix("gitdir:")?.trim()));
    }
    let own = git.clone();
    if let Ok(common) = read_text(&git.join("commondir"), BYTES_MOST) {
        git = plain(&git.join(common.trim()));
    }
    let top = top.to_owned();
    Some(GitRepository { top, git, own })
}

/// Returns the paths of git's configuration files for `root`, whether or not they exist.
pub fn git_configurations(root: &Path) -> Vec<PathBuf> {
    repository(root).map_or_else(Vec::new, |found| found.configurations())
}

/// Returns whether `root` is inside a repository.
pub(super) fn has_repository(root: &Path) -> bool {
    repository(root).is_some()
}

/// Parts of the names of keys whose values are paths or commands.
const KEYS: [&str; 24] = [
    "askpass",
    "browser",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "file",
    "filter",
    "helper",
    "httpd",
    "monitor",
    "pack",
    "pager",
    "path",
    "process",
    "program",
    "proxy",
    "smtpserver",
    "smudge",
    "templatedir",
    "textconv",
    "tunnel",
];

/// Sections in which all values are commands.
const SECTIONS: [&str; 2] = ["pager", "alias"];

/// The paths found in one configuration.
#[derive(Debug, Default)]
struct ConfiguredPaths {
    named: Vec<PathBuf>,
    /// Paths of other configurations that are included.
    included: Vec<PathBuf>,
    /// Directories of hooks.
    hooks: Vec<PathBuf>,
}

impl ConfiguredPaths {
    /// Extracts possible paths from a configuration file: each word of a value that is a path, a
    /// command or an alias. Each word is resolved both relative to the root of the work tree and
    /// relative to the directory of the configuration file.
    fn in_text(text: &str, top: &Path, beside: &Path) -> Self {
        let text = text.replace("\\\n", " ");
        let mut found = ConfiguredPaths::default();
        // In some sections, every key is the name of a command, so every value is run.
        let mut section_runs = false;
        for line in text.lines() {
            if let Some(section) = line.trim().strip_prefix('[') {
                section_runs = SECTIONS.iter().any(|name| {
                    let rest = section.to_ascii_lowercase();
                    let rest = rest.strip_prefix(name).map(str::to_owned);
                    rest.is_some_and(|rest| rest.trim_start().starts_with(']'))
                });
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let key = key.trim().to_ascii_lowercase();
            let is_run = section_runs
                || value.contains('!')
                || value.contains("ext::")
                || KEYS.iter().any(|part| key.contains(part));
            if !is_run {
                continue;
            }
            for word in words(value) {
                let paths = [plain(&top.join(&word)), plain(&beside.join(&word))];
                if key.ends_with("path") {
                    found.included.extend(paths.clone());
                }
                if key.ends_with("hookspath") {
                    found.hooks.extend(paths.clone());
                }
                found.named.extend(paths);
            }
        }
        found
    }
}

/// Returns the words of a value that may be paths. These are quoted and unquoted words, and the
/// files of a module that Python runs (`-m tools.x`). After a variable or a command substitution,
/// as in `$(git rev-parse --show-toplevel)/tools/x.sh`, the rest of the word is taken as relative
/// to the root.
fn words(value: &str) -> Vec<String> {
    let is_border = |c: char| c.is_whitespace() || "\"'`\\;&|!(){}<>=,".contains(c);
    let mut found = Vec::new();
    let mut is_module = false;
    for word in value.split(is_border).filter(|word| !word.is_empty()) {
        found.push(word.to_owned());
        let behind = match word.rsplit_once('$') {
            Some((_, variable)) => variable.split_once('/').map(|(_, path)| path),
            None => word.strip_prefix('/'),
        };
        let behind = behind.map(|path| path.trim_start_matches('/'));
        found.extend(behind.filter(|path| !path.is_empty()).map(str::to_owned));
        if std::mem::replace(&mut is_module, word == "-m") {
            let path = word.replace('.', "/");
            found.extend([format!("{path}.py"), path]);
        }
    }
    found
}

/// Returns the path with `.` and `..` resolved lexically.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path, file: &str) -> bool {
        GitNames::default().names(root, Path::new(file)) == GitNaming::Yes
    }

    #[test]
    fn files_named_by_the_git_configuration_are_recognized() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let config = "[core]\n\thooksPath = tools/hk\n\tfsmonitor = \"tools/fsm.sh -v\"\n\
                      [include]\n\tpath = ../extra.cfg\n[filter \"x\"]\n\tclean = python3 ./tools/clean.py %f\n\
                      [remote \"origin\"]\n\turl = git@host:a/b.git\n\
                      [core]\n\tautocrlf = input\n[diff \"y\"]\n\ttextconv = sh \\\n  tools/text.sh\n\
                      [pager]\n\tlog = ./tools/page.sh\n";
        std::fs::write(root.join(".git/config"), config).unwrap();
        std::fs::write(root.join("extra.cfg"), "[alias]\n\tx = !scripts/x.sh\n").unwrap();
        let is_named = |file: &str| names(root, file);
        for file in [
            "tools/hk/pre-commit",
            "tools/fsm.sh",
            "extra.cfg",
            "tools/clean.py",
            "scripts/x.sh",
            "tools/text.sh",
            "tools/page.sh",
        ] {
            assert!(is_named(file), "{file}");
        }
        for file in [
            "tools/other.py",
            "scripts/y.sh",
            "a.py",
            "src/config",
            "input/a.py",
        ] {
            assert!(!is_named(file), "{file}");
        }
        // A project directory below the root of its repository.
        std::fs::create_dir_all(root.join("tools")).unwrap();
        assert!(names(&root.join("tools"), "fsm.sh"));
        assert!(!names(&root.join("tools"), "a.py"));
    }

    #[test]
    fn quoted_programs_and_programs_after_variables_are_recognized() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        for (config, file) in [
            ("[alias]\n\tv = \"!sh -c \\\"./d/t.sh\\\"\"\n", "d/t.sh"),
            (
                "[alias]\n\tv = \"!\\\"$(git rev-parse --show-toplevel)/d/t.sh\\\"\"\n",
                "d/t.sh",
            ),
            (
                "[alias]\n\tv = \"!f() { sh $GIT_PREFIX/d/t.sh; }; f\"\n",
                "d/t.sh",
            ),
            ("[alias]\n\tv = !sh ${TOP}/d/t.sh\n", "d/t.sh"),
            ("[alias]\n\tv = !python3 -m d.t\n", "d/t.py"),
            ("[alias]\n\tv = !python3 -m d.t\n", "d/t/__main__.py"),
            ("[alias]\n\tv = !tool --script=d/t.sh\n", "d/t.sh"),
            ("[init]\n\ttemplateDir = d\n", "d/hooks/pre-commit"),
            ("[sendemail]\n\tsmtpServer = d/t.sh\n", "d/t.sh"),
            ("[imap]\n\ttunnel = \"d/t.sh -q\"\n", "d/t.sh"),
            ("[instaweb]\n\thttpd = d/t.sh\n", "d/t.sh"),
            ("[remote \"x\"]\n\turl = ext::sh d/t.sh\n", "d/t.sh"),
        ] {
            std::fs::write(root.join(".git/config"), config).unwrap();
            assert!(names(root, file), "{config}");
            assert!(!names(root, "e/t.sh"), "{config}");
        }
    }

    #[test]
    fn targets_of_git_hook_links_are_recognized() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonical().unwrap();
        for folder in [".git/hooks", ".git/own", "scripts"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("scripts/real.sh"), "").unwrap();
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(to, root.join(from)).unwrap();
        };
        link("real.sh", "scripts/check.sh");
        link("../../scripts/check.sh", ".git/hooks/pre-commit");
        link("../../scripts/missing.sh", ".git/hooks/pre-push");
        let known = GitNames::default();
        let named = |file: &str| known.names(&root, Path::new(file)) == GitNaming::Yes;
        for file in ["check.sh", "real.sh", "missing.sh"] {
            assert!(named(&format!("scripts/{file}")), "{file}");
        }
        assert!(!named("scripts/other.sh"));
        link("../../scripts/later.sh", ".git/hooks/post-merge");
        assert!(named("scripts/later.sh"), "the hooks are looked at again");
        link("../../scripts/own.sh", ".git/own/pre-commit");
        let config = "[core]\n\thooksPath = .git/own\n";
        std::fs::write(root.join(".git/config"), config).unwrap();
        assert!(named("scripts/own.sh"));
    }

    #[test]
    fn linked_work_tree_uses_its_own_git_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let (main, linked) = (dir.path().join("main"), dir.path().join("linked"));
        let own = main.join(".git/worktrees/linked");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&linked).unwrap();
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        write(main.join(".git/config"), "[core]\n\tfsmonitor = f.sh\n");
        write(own.join("commondir"), "../..\n");
        let config = "[core]\n\thooksPath = scripts\n";
        write(own.join("config.worktree"), config);
        let data = format!("gitdir: {}\n", own.display());
        write(linked.join(".git"), &data);
        assert!(names(&linked, "scripts/pre.sh"));
        assert!(names(&linked, "f.sh"));
        assert!(!names(&linked, "other/pre.sh"));
        assert!(!names(&main, "scripts/pre.sh"));
        assert!(git_configurations(&linked).contains(&own.join("config.worktree")));
    }

    #[test]
    fn outside_a_repository_no_file_is_named_by_the_git_configuration() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!names(dir.path(), "a.py"));
    }

    #[test]
    fn changed_git_configuration_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let write = |file: &str, text: &str| {
            std::fs::write(root.join(file), text).unwrap();
        };
        write(".git/config", "[include]\n\tpath = ../extra.cfg\n");
        let known = GitNames::default();
        let named = |file: &str| known.names(root, Path::new(file));
        assert_eq!(named("x.sh"), GitNaming::No);
        write("extra.cfg", "[alias]\n\tx = !./x.sh\n");
        assert_eq!(named("x.sh"), GitNaming::Yes);
        write("extra.cfg", "[alias]\n\tx = !./y.sh\n");
        assert_eq!(
            (named("x.sh"), named("y.sh")),
            (GitNaming::No, GitNaming::Yes)
        );
        let long = " ".repeat(BYTES_MOST as usize + 1);
        write("extra.cfg", &long);
        assert_eq!(named("x.sh"), GitNaming::Unknown);
    }

    #[test]
    fn unchanged_git_configuration_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join(".git/config"), "[core]\n\tfsmonitor = f.sh\n").unwrap();
        let known = GitNames::default();
        let read_at = || known.last.lock().unwrap().as_ref().unwrap().read_at;
        assert_eq!(known.names(root, Path::new("f.sh")), GitNaming::Yes);
        // The time at which the configuration was read is set to a minute from now. So its files
        // count as unchanged for a while, and it is not read again.
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        known.last.lock().unwrap().as_mut().unwrap().read_at = later;
        for _ in 0..50 {
            assert_eq!(known.names(root, Path::new("f.sh")), GitNaming::Yes);
        }
        assert_eq!(read_at(), later);
    }
}

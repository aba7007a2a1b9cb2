//! The host files that are visible to a command: all files that the user may read, except home
//! directories, caches and files that only root may read. Toolchains in these hidden directories
//! stay visible.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::plan::Plan;
use crate::sandbox::secrets::SECRETS;

/// Directories that are replaced by empty ones for the command.
pub(super) const OWN: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
/// Directories that contain home directories, besides the user's own.
const HOMES: [&str; 2] = ["/root", "/home"];
/// Directories that are never hidden. Some service accounts have their home there, and programs
/// need these directories.
const SYSTEM: [&str; 11] = [
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "dev", "proc", "sys", "nix",
];
/// Directories inside the hidden directory `/run` in which some systems keep programs.
const PROGRAMS_IN_RUN: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
/// Directories that are searched for files that only root may read. The search is at most `DEPTH`
/// levels deep and reads at most `ENTRIES` entries.
const ADMINISTRATED: [&str; 4] = ["/etc", "/var", "/srv", "/opt"];
/// Directories of packages with thousands of files that everyone may read. They are not searched
/// for private files.
const OF_PACKAGES: [&str; 2] = ["/etc/ssl/certs", "/var/lib/dpkg"];
const DEPTH: usize = 4;
const ENTRIES: usize = 20_000;
/// Directories that are hidden completely from commands that run as root.
const CLOSED: [&str; 9] = [
    "/boot",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
    "/var/backups",
    "/var/log",
    "/var/spool",
];

/// A directory of the host that stays visible (`source`), and the path at which the command sees it
/// (`at`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VisibleDirectory {
    pub at: PathBuf,
    pub source: PathBuf,
}

/// Returns the files and directories that are hidden from the command. No path is below another one
/// in the list. All paths exist and contain no symbolic links.
pub(super) fn hidden(plan: &Plan) -> Vec<PathBuf> {
    let homes = homes(plan).filter(|path| !is_of_the_system(path));
    let private = plan.private.iter().filter_map(|path| resolved(path));
    // Starling's records inside the project tree are hidden later, after the tree is mounted.
    let root = plan.tree.root();
    let records = records(plan).filter(|path| !path.starts_with(root));
    let hidden = homes.chain(private).chain(cache(plan)).chain(records);
    let mut hidden: Vec<PathBuf> = hidden.collect();
    hidden.sort();
    hidden.dedup_by(|later, earlier| later.starts_with(earlier));
    hidden
}

/// Returns the directories that stay visible although they are inside hidden directories, parents
/// first. The target of a link decides whether its path stays visible. The home directory, the
/// cache, and all directories above them stay hidden.
pub(super) fn kept(plan: &Plan, hidden: &[PathBuf]) -> Vec<VisibleDirectory> {
    let own = OWN.iter().filter_map(|path| resolved(Path::new(path)));
    let places: Vec<PathBuf> = own.chain(hidden.iter().cloned()).collect();
    let is_below = |path: &Path| {
        places
            .iter()
            .any(|place| path.starts_with(place) && path != place)
    };
    let homes: Vec<PathBuf> = homes(plan).collect();
    // If a directory of Starling's records contains the tree, it could not be hidden after it
    // became visible.
    let around: Vec<PathBuf> = records(plan)
        .filter(|path| plan.tree.root().starts_with(path))
        .collect();
    let is_too_much = |path: &Path| {
        let holds = |place: &PathBuf| place.starts_with(path);
        plan.scratch.starts_with(path) || homes.iter().any(holds) || around.iter().any(holds)
    };
    let programs = PROGRAMS_IN_RUN.iter().map(PathBuf::from);
    let mut kept = Vec::new();
    for path in plan.keep.iter().cloned().chain(programs) {
        let Some(source) = resolved(&path).filter(|source| source.is_dir()) else {
            continue;
        };
        if is_too_much(&source) || source.starts_with(plan.tree.root()) {
            continue;
        }
        // If the path is a symbolic link, both the link and the directory stay visible.
        for at in [path, source.clone()] {
            if is_plain(&at) && is_below(&at) && !is_too_much(&at) {
                let source = source.clone();
                kept.push(VisibleDirectory { at, source });
            }
        }
    }
    kept.sort();
    kept.dedup();
    kept
}

/// Returns the resolved paths of Starling's own files and directories, such as trajectories and
/// results, if they exist.
fn records(plan: &Plan) -> impl Iterator<Item = PathBuf> {
    let found = plan.records.iter().filter_map(|path| resolved(path));
    found.filter(|path| path.parent().is_some())
}

/// Returns the resolved paths of the user's secrets and Starling's records that exist, except those
/// that contain the tree.
pub(super) fn secrets(plan: &Plan) -> Vec<PathBuf> {
    let home = plan.home.iter();
    let paths = home.flat_map(|home| SECRETS.iter().map(move |name| home.join(name)));
    paths
        .filter_map(|path| resolved(&path))
        .chain(records(plan))
        .filter(|path| !plan.tree.root().starts_with(path))
        .collect()
}

/// Returns the system's files that only root may read, or nothing if this process is not root. The
/// search runs once.
pub(crate) fn administrators_files() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        if !rustix::process::getuid().is_root() {
            return Vec::new();
        }
        let mut found: Vec<PathBuf> = CLOSED.iter().map(PathBuf::from).collect();
        let mut left = ENTRIES;
        for directory in ADMINISTRATED {
            private_below(Path::new(directory), DEPTH, &mut left, &mut found);
        }
        found
    })
}

/// Adds the entries below a directory that not all users may read.
fn private_below(directory: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Some(fewer) = left.checked_sub(1) else {
            return;
        };
        *left = fewer;
        let Ok(of) = entry.metadata() else {
            continue;
        };
        let open_to_all = if of.is_dir() { 0o005 } else { 0o004 };
        let is_private = of.permissions().mode() & open_to_all != open_to_all;
        if is_private && (of.is_dir() || of.is_file() && of.len() > 0) {
            found.push(entry.path());
        } else if of.is_dir() && depth > 1 {
            let path = entry.path();
            if !found.contains(&path) && !OF_PACKAGES.iter().any(|known| path == Path::new(known)) {
                private_below(&path, depth - 1, left, found);
            }
        }
    }
}

fn homes(plan: &Plan) -> impl Iterator<Item = PathBuf> {
    let all = HOMES.iter().map(PathBuf::from).chain(plan.home.clone());
    all.filter_map(|path| resolved(&path))
}

/// Returns the cache directory, which contains the scratch directories of all shadows.
fn cache(plan: &Plan) -> Option<PathBuf> {
    let all = plan
        .scratch
        .parent()
        .filter(|all| all.ends_with("shadows"))?;
    resolved(all.parent()?)
}

/// Resolves a path; returns `None` if it does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    // Most paths contain no symbolic link. One system call can check that, while resolving each
    // component takes many calls.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(_) if is_plain(path) => Some(path.components().collect()),
        Err(Errno::NOENT) => None,
        Ok(_) | Err(_) => path.canonicalize().ok(),
    }
}

fn is_of_the_system(path: &Path) -> bool {
    let mut components = path.components().skip(1);
    let Some(top) = components.next() else {
        return true;
    };
    let is_top = |name: &&str| top.as_os_str() == *name;
    SYSTEM.iter().any(&is_top) || is_top(&"var") && components.next().is_none()
}

/// Returns whether a path is absolute and has no `.` or `..` components.
fn is_plain(path: &Path) -> bool {
    path.has_root()
        && path
            .components()
            .skip(1)
            .all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::plan::{Bounds, Confinement, Tree};
    use super::*;

    fn plan(home: &Path, keep: &[PathBuf]) -> Plan {
        Plan {
            confinement: Confinement::Namespaces,
            tree: Tree::Copy {
                root: home.join("project"),
            },
            line: String::new(),
            bounds: Bounds::default(),
            scratch: home.join(".cache/starling/shadows/1-0"),
            home: Some(home.to_owned()),
            keep: keep.to_vec(),
            private: Vec::new(),
            records: Vec::new(),
            user: 1,
            group: 1,
        }
    }

    fn home() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("someone");
        for name in ["project", ".cache/starling/shadows", "tools/py", ".ssh"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        (dir, home)
    }

    #[test]
    fn home_directories_and_the_cache_are_hidden_but_system_directories_are_not() {
        let (_dir, home) = home();
        let found = hidden(&plan(&home, &[]));
        assert!(found.contains(&home), "{found:?}");
        assert!(
            !found
                .iter()
                .any(|path| path.starts_with(&home) && *path != home)
        );
        let outside = tempfile::tempdir().unwrap();
        let cache = outside.path().canonicalize().unwrap();
        let scratch = cache.join("shadows/1-0");
        fs::create_dir_all(&scratch).unwrap();
        let with_cache = Plan {
            scratch,
            ..plan(&home, &[])
        };
        assert!(hidden(&with_cache).contains(&cache));
        for system in ["/", "/usr/sbin", "/dev", "/var"] {
            let found = hidden(&plan(Path::new(system), &[]));
            assert!(!found.contains(&PathBuf::from(system)), "{found:?}");
        }
    }

    #[test]
    fn toolchain_links_are_resolved_before_they_are_kept_visible() {
        let (_dir, home) = home();
        let py = home.join("tools/py");
        symlink(&py, home.join("tools/current")).unwrap();
        symlink("/usr", home.join("tools/usr")).unwrap();
        symlink(&home, home.join("tools/all")).unwrap();
        let keep = [
            home.join("tools/current"),
            home.join("tools/usr"),
            home.join("tools/all"),
            home.join("tools/../.ssh/.."),
            home.join(".cache"),
            home.join("project/.venv"),
            home.clone(),
            "/".into(),
            "/run/../usr".into(),
        ];
        let plan = plan(&home, &keep);
        let found = kept(&plan, &hidden(&plan));
        let expected = [
            ("tools/current", &py),
            ("tools/py", &py),
            ("tools/usr", &PathBuf::from("/usr")),
        ];
        let expected = expected.map(|(at, source)| VisibleDirectory {
            at: home.join(at),
            source: source.canonicalize().unwrap(),
        });
        let found: Vec<VisibleDirectory> = found
            .into_iter()
            .filter(|kept| !kept.at.starts_with("/run"))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn paths_are_resolved_like_the_operating_system_does() {
        let (_dir, home) = home();
        symlink(home.join("tools"), home.join("link")).unwrap();
        symlink("nowhere", home.join("dangling")).unwrap();
        for name in [
            "",
            "tools/py",
            "tools/py/",
            "tools/./py",
            "tools/../.ssh",
            "link",
            "link/py",
            "link/..",
            "dangling",
            "missing",
            "missing/..",
        ] {
            let path = home.join(name);
            assert_eq!(resolved(&path), path.canonicalize().ok(), "{name}");
        }
        let relative = Path::new("src");
        assert_eq!(resolved(relative), relative.canonicalize().ok());
    }

    #[test]
    fn files_that_other_users_may_not_read_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        put("a/open", 0o644);
        let key = put("a/key", 0o640);
        put("closed/inside", 0o644);
        let closed = dir.path().join("closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o750)).unwrap();
        let mut found = Vec::new();
        private_below(dir.path(), 2, &mut 100, &mut found);
        found.sort();
        assert_eq!(found, [key, closed]);
    }
}

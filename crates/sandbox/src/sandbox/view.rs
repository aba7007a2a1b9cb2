//! What a command sees of the host's files: everything that the user may read, except homes, caches and
//! what only an administrator may read. Of these hidden places, toolchains stay in sight.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::plan::Plan;

/// Where the command has an empty directory of its own.
pub(super) const OWN: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
/// Where homes lie, besides the user's own.
const HOMES: [&str; 2] = ["/root", "/home"];
/// Some service accounts have a home here, which programs need.
const SYSTEM: [&str; 11] = [
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "dev", "proc", "sys", "nix",
];
/// Where some systems keep programs below a hidden place.
const PROGRAMS_IN_RUN: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
/// Where keys lie in a home directory. They are covered even where a directory around them stays in
/// sight, for instance because the workspace is the home itself.
const SECRETS: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/huggingface",
    ".cache/huggingface/token",
    ".local/share/keyrings",
];
/// Where an administrator's private files are looked for, and how many entries are looked at.
const ADMINISTRATED: [&str; 4] = ["/etc", "/var", "/srv", "/opt"];
/// What packages bring, thousands of files that everybody may read.
const OF_PACKAGES: [&str; 2] = ["/etc/ssl/certs", "/var/lib/dpkg"];
const DEPTH: usize = 4;
const ENTRIES: usize = 20_000;
/// Hidden from an administrator's commands as a whole.
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

/// A directory of the host that stays in sight, and a path at which it is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kept {
    pub at: PathBuf,
    pub source: PathBuf,
}

/// The files and directories that the command does not see, none below another. All exist, and none of
/// their components is a link.
pub(super) fn hidden(plan: &Plan) -> Vec<PathBuf> {
    let homes = homes(plan).filter(|path| !is_of_the_system(path));
    let private = plan.private.iter().filter_map(|path| resolved(path));
    // What lies in the tree is covered when the tree stands there.
    let root = plan.tree.root();
    let records = records(plan).filter(|path| !path.starts_with(root));
    let hidden = homes.chain(private).chain(cache(plan)).chain(records);
    let mut hidden: Vec<PathBuf> = hidden.collect();
    hidden.sort();
    hidden.dedup_by(|later, earlier| later.starts_with(earlier));
    hidden
}

/// The directories of hidden places that stay in sight, those above others first. A path is taken only
/// by what it really is; the home itself, the cache and all that is above them stay hidden.
pub(super) fn kept(plan: &Plan, hidden: &[PathBuf]) -> Vec<Kept> {
    let own = OWN.iter().filter_map(|path| resolved(Path::new(path)));
    let places: Vec<PathBuf> = own.chain(hidden.iter().cloned()).collect();
    let is_below = |path: &Path| {
        places
            .iter()
            .any(|place| path.starts_with(place) && path != place)
    };
    let homes: Vec<PathBuf> = homes(plan).collect();
    // A record around the tree cannot be covered once it is in sight.
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
        // A link to it may be named by the path.
        for at in [path, source.clone()] {
            if is_plain(&at) && is_below(&at) && !is_too_much(&at) {
                let source = source.clone();
                kept.push(Kept { at, source });
            }
        }
    }
    kept.sort();
    kept.dedup();
    kept
}

/// Starling's own records that there are, by their real paths.
fn records(plan: &Plan) -> impl Iterator<Item = PathBuf> {
    let found = plan.records.iter().filter_map(|path| resolved(path));
    found.filter(|path| path.parent().is_some())
}

/// The user's secrets and Starling's records that there are, by their real paths, except where the tree
/// is among them.
pub(super) fn secrets(plan: &Plan) -> Vec<PathBuf> {
    let home = plan.home.iter();
    let paths = home.flat_map(|home| SECRETS.iter().map(move |name| home.join(name)));
    paths
        .filter_map(|path| resolved(&path))
        .chain(records(plan))
        .filter(|path| !plan.tree.root().starts_with(path))
        .collect()
}

/// The system's files that only an administrator may read, where this process is one's. They are looked
/// for once.
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

/// Adds the entries below a directory that others than their owner and group may not read.
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

/// The cache directory, which holds the scratch directories of all shadows.
fn cache(plan: &Plan) -> Option<PathBuf> {
    let all = plan
        .scratch
        .parent()
        .filter(|all| all.ends_with("shadows"))?;
    resolved(all.parent()?)
}

/// What a path really is; none where nothing lies there.
fn resolved(path: &Path) -> Option<PathBuf> {
    // Most lead through no link, which the system says in one call; to follow each component takes many.
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

/// Whether a path is absolute and leads down from component to component.
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
    fn hides_homes_and_the_cache_but_not_the_system() {
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
    fn keeps_toolchains_by_what_they_really_are() {
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
        let expected = expected.map(|(at, source)| Kept {
            at: home.join(at),
            source: source.canonicalize().unwrap(),
        });
        let found: Vec<Kept> = found
            .into_iter()
            .filter(|kept| !kept.at.starts_with("/run"))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn paths_are_resolved_as_the_system_does_it() {
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
    fn finds_what_others_may_not_read() {
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

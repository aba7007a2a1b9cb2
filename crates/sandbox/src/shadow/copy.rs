//! Creates a shadow (a private copy of the project) by copying the tree, for systems that do not
//! allow overlays.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, FileTimes, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::process::{self, Captured};
use super::relocate::relocate;
use super::{ShadowCommand, ShadowError, Shadows, blocking, remove};
use crate::lay_over::lay_over;
use crate::sandbox::{Confinement, Tree};
use starling_platform::files::{PathExt, copy_file, symlink, taken_bytes};
use starling_workspace::FileContents;
use starling_workspace::is_environment;

/// Maximum space that a copied tree takes on its disk, in bytes.
const MAX_BYTES: u64 = 2 << 30;

impl Shadows {
    pub(super) async fn copied(
        &self,
        root: &Path,
        overlay: &FileContents,
        command: &ShadowCommand,
        confinement: Confinement,
    ) -> Result<Captured, ShadowError> {
        let scratch = self.scratch_outside(root)?;
        let tree = scratch.path().join("tree");
        let copying = {
            let (root, tree, overlay) = (root.to_owned(), tree.clone(), overlay.clone());
            let records = self.records();
            move || {
                let copied = copy_tree(&root, &tree, &records)?;
                lay_over(&tree, &overlay).map(|()| copied)
            }
        };
        let copied = blocking(copying).await.map_err(|source| self.io(source))?;
        self.warn_of_unreadable(&copied);
        let moved = ShadowCommand {
            line: relocate(&command.line, root, &tree),
            environment: copy_environment(command, root, &tree),
            keep: command.keep.iter().cloned().chain(copied.linked).collect(),
            ..command.clone()
        };
        let program = self.program(
            &scratch,
            confinement,
            Tree::Copy { root: tree.clone() },
            &moved,
        );
        let done = process::run(program).await;
        remove(scratch).await;
        let done = done.map_err(|error| self.not_run(error, root))?;
        Ok(Captured {
            output: relocate(&done.output, &tree, root),
            ..done
        })
    }

    /// Logs one warning for the files and directories that a copy lacks and for which none was logged
    /// yet.
    pub(super) fn warn_of_unreadable(&self, copied: &CopiedTree) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let new = copied.unreadable.iter();
        let new: Vec<&PathBuf> = new.filter(|path| told.insert((*path).clone())).collect();
        let Some(first) = new.first().map(|path| path.display()) else {
            return;
        };
        match new.len() - 1 {
            0 => tracing::warn!("tests run without {first}: you may not read it"),
            more => {
                tracing::warn!("tests run without {first} and {more} more: you may not read them")
            }
        }
    }
}

/// Returns the command's environment with paths into the workspace replaced by paths into the copy.
/// The copy comes first in `PYTHONPATH`, because an editable install refers to the workspace.
/// `GIT_CEILING_DIRECTORIES` prevents git from finding a repository above the copy.
fn copy_environment(
    command: &ShadowCommand,
    root: &Path,
    tree: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut environment = command.environment.clone();
    for value in environment.values_mut() {
        if let Some(text) = value.to_str() {
            *value = relocate(text, root, tree).into();
        }
    }
    let given = environment.remove(OsStr::new("PYTHONPATH"));
    let mut path = vec![tree.join("src"), tree.to_owned()];
    path.extend(given.iter().flat_map(std::env::split_paths));
    if let Ok(joined) = std::env::join_paths(path) {
        environment.insert("PYTHONPATH".into(), joined);
    }
    environment.insert("GIT_CEILING_DIRECTORIES".into(), tree.into());
    environment
}

/// Copies the tree `from` to the new directory `to`, including times and permissions. Shares disk
/// blocks if the file system supports it. Leaves out `.git` and the paths in `without`. Python
/// environments are linked and not copied, because their files are installed and not edited.
/// Absolute links into `from` are redirected to `to`. What this user may not read is left out.
pub(super) fn copy_tree(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<CopiedTree> {
    let without = without.iter().filter_map(|path| path.canonical().ok());
    let mut copy = Copy {
        from,
        to,
        left: MAX_BYTES,
        done: CopiedTree::default(),
        without: without.collect(),
    };
    copy.directory(from, to)?;
    Ok(copy.done)
}

/// How a copy of a directory tree differs from the tree.
#[derive(Debug, Default)]
pub(super) struct CopiedTree {
    /// Directories of the tree that are linked instead of copied.
    pub linked: Vec<PathBuf>,
    /// Files and directories of the tree that this user may not read. The copy does not have them.
    pub unreadable: Vec<PathBuf>,
}

/// A copy of a directory tree while it is being made.
struct Copy<'a> {
    from: &'a Path,
    to: &'a Path,
    left: u64,
    done: CopiedTree,
    /// Resolved paths that are left out.
    without: HashSet<PathBuf>,
}

impl Copy<'_> {
    fn directory(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let entries = fs::read_dir(from)?;
        fs::create_dir(to)?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if self.without.contains(&path) {
                continue;
            }
            match self.entry(&entry, &path, &to.join(entry.file_name())) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    self.done.unreadable.push(path);
                }
                done => done?,
            }
        }
        same_times(to, &fs::metadata(from)?)
    }

    fn entry(&mut self, entry: &DirEntry, path: &Path, target: &Path) -> io::Result<()> {
        let found = entry.metadata()?;
        if found.is_symlink() {
            self.link(path, target)
        } else if found.is_dir() {
            self.subdirectory(&entry.file_name(), path, target)
        } else if found.is_file() {
            self.file(path, target, &found)
        } else {
            Ok(())
        }
    }

    fn subdirectory(&mut self, name: &OsStr, from: &Path, to: &Path) -> io::Result<()> {
        if name == ".git" {
            Ok(())
        } else if is_environment(from) {
            self.done.linked.push(from.to_owned());
            symlink(from, to)
        } else {
            self.directory(from, to)
        }
    }

    fn file(&mut self, from: &Path, to: &Path, found: &Metadata) -> io::Result<()> {
        let left = self.left.checked_sub(taken_bytes(found));
        self.left = left.ok_or_else(|| {
            io::Error::other(
                "the workspace takes over 2 GiB on the disk: too large to copy for every command",
            )
        })?;
        copy_file(from, to)?;
        same_times(to, found)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let leads = fs::read_link(from)?;
        let leads = match leads.strip_prefix(self.from) {
            Ok(inside) => self.to.join(inside),
            Err(_) => leads,
        };
        symlink(&leads, to)
    }
}

fn same_times(path: &Path, found: &Metadata) -> io::Result<()> {
    let times = FileTimes::new()
        .set_modified(found.modified()?)
        .set_accessed(found.accessed()?);
    match fs::File::open(path).and_then(|file| file.set_times(times)) {
        // If even the owner may not open a file, its copy keeps the time at which it was made.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn copied_tree_keeps_its_times_modes_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for sub in ["pkg", ".git", "venv", "records"] {
            fs::create_dir_all(from.join(sub)).unwrap();
        }
        fs::write(from.join("pkg/a.py"), "a").unwrap();
        fs::write(from.join("run.sh"), "r").unwrap();
        fs::write(from.join("venv/pyvenv.cfg"), "").unwrap();
        fs::set_permissions(from.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = fs::File::options()
            .write(true)
            .open(from.join("pkg/a.py"))
            .unwrap();
        file.set_modified(then).unwrap();
        symlink(&from.join("pkg/a.py"), &from.join("absolute")).unwrap();
        symlink(Path::new("pkg/a.py"), &from.join("relative")).unwrap();
        symlink(Path::new("/dev/null"), &from.join("outside")).unwrap();

        fs::write(from.join("records/1"), "").unwrap();
        copy_tree(&from, &to, &[from.join("records")]).unwrap();

        assert!(!to.join("records").exists());
        let link = |name: &str| fs::read_link(to.join(name)).unwrap();
        assert_eq!(link("absolute"), to.join("pkg/a.py"));
        assert_eq!(link("relative"), Path::new("pkg/a.py"));
        assert_eq!(link("outside"), Path::new("/dev/null"));
        assert_eq!(link("venv"), from.join("venv"));
        assert!(!to.join(".git").exists());
        let copied = fs::metadata(to.join("pkg/a.py")).unwrap();
        assert_eq!(copied.modified().unwrap(), then);
        let mode = fs::metadata(to.join("run.sh"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn unreadable_files_are_left_out_and_holes_do_not_count_for_the_size() {
        let dir = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let (from, copies) = (dir.path().join("from"), dir.path().join("copies"));
        for sub in ["from/pkg", "from/closed", "from/listed", "copies"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        for name in ["pkg/a.py", "pkg/key", "closed/b.py", "listed/c.py"] {
            fs::write(from.join(name), "x").unwrap();
        }
        let sparse = fs::File::create(from.join("sparse")).unwrap();
        sparse.set_len(2 * MAX_BYTES).unwrap();
        set(dir.path(), 0o755);
        set(&copies, 0o777);
        for (name, mode) in [("pkg/key", 0), ("closed", 0), ("listed", 0o444)] {
            set(&from.join(name), mode);
        }
        let to = copies.join("to");
        let (source, target) = (from.clone(), to.clone());
        let copying = std::thread::spawn(move || {
            if rustix::process::getuid().is_root() {
                // Only this thread becomes a user who may not read everything.
                rustix::thread::set_thread_uid(rustix::fs::Uid::from_raw(65534)).unwrap();
            }
            copy_tree(&source, &target, &[])
        });
        let mut unreadable = copying.join().unwrap().unwrap().unreadable;
        set(&from.join("closed"), 0o755);
        set(&from.join("listed"), 0o755);
        unreadable.sort();
        let expected = ["closed", "listed/c.py", "pkg/key"].map(|name| from.join(name));
        assert_eq!(unreadable, expected);
        assert!(to.join("pkg/a.py").exists() && !to.join("pkg/key").exists());
        assert_eq!(
            fs::metadata(to.join("sparse")).unwrap().len(),
            2 * MAX_BYTES
        );
    }
}

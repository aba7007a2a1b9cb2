//! The root file system of a sandbox. It consists of the host's files, which are read-only, and the
//! command's own tree, temporary directory, devices and processes. It is assembled in a directory,
//! becomes the root, and the old root is unmounted.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use super::mounts::{bind_read_only, make_read_only};
use super::plan::{Confinement, Plan, Tree};
use super::view::{OWN, VisibleDirectory, hidden, kept, secrets};
use super::watch::FILE;
use super::{tried, version};
use crate::lay_over::lay_over;
use starling_workspace::FileContents;

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Parts of `/proc` through which root can change the whole machine.
pub(super) const OF_THE_MACHINE: [&str; 10] = [
    "sys",
    "sysrq-trigger",
    "irq",
    "bus",
    "fs",
    "acpi",
    "driver",
    "dynamic_debug",
    "mtrr",
    "scsi",
];
const NOTHING_ELSE: &str = "";
/// Minimum number of files that an in-memory file system can hold.
const LEAST_FILES: u64 = 1 << 10;
/// The directory in which processes share memory.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
/// Mode of writable directories that processes share.
const OPEN_TO_ALL: u32 = 0o1777;
/// Mode of the empty directories that replace hidden ones.
const NOT_TO_WRITE: u32 = 0o755;

/// Returns the directory for the command's temporary files.
pub(super) fn temporary(plan: &Plan) -> PathBuf {
    match plan.confinement {
        Confinement::Namespaces | Confinement::Bubblewrap => "/tmp".into(),
        Confinement::SandboxExec | Confinement::Nothing => plan.scratch.join("tmp"),
    }
}

/// Returns one path in each file system of the sandbox that stores its files in memory.
pub(super) fn in_memory(plan: &Plan) -> Vec<&'static str> {
    match plan.confinement {
        Confinement::Namespaces => vec!["/tmp"],
        Confinement::Bubblewrap => own_directories().chain([SHARED_MEMORY]).collect(),
        Confinement::SandboxExec | Confinement::Nothing => Vec::new(),
    }
}

/// Returns the host's directories that the command sees as empty, writable directories of its own.
pub(super) fn own_directories() -> impl Iterator<Item = &'static str> {
    let is_one = |path: &Path| path.is_dir() && !path.is_symlink();
    OWN.into_iter().filter(move |path| is_one(Path::new(path)))
}

/// Sets up the root file system of a sandbox as its plan describes it, and makes it the root. The
/// caller must be root in its own mount namespace.
pub(super) fn furnish(plan: &Plan) -> Result<(), String> {
    let at = plan.scratch.join("room");
    fs::create_dir(&at).map_err(tried("creating the directory of the sandbox"))?;
    let room = SandboxRoot { at: &at };
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(|error| format!("making the mounts private: {error}"))?;
    mount_bind_recursive("/", &at)
        .map_err(|error| format!("mounting the new root directory: {error}"))?;
    make_read_only(&at).map_err(tried("making mounts read-only"))?;
    room.processes(plan).map_err(tried("mounting /proc"))?;
    room.devices().map_err(tried("mounting /dev"))?;
    let memory = MemoryFileSystem::new(plan).map_err(tried("mounting a file system in memory"))?;
    room.temporary(&memory).map_err(tried("mounting /tmp"))?;
    // The mounts below `/dev`, such as `/dev/shm`, stay as they are.
    seal(&room.of(Path::new("/dev"))).map_err(tried("making /dev read-only"))?;
    let places = hidden(plan);
    let kept = kept(plan, &places);
    let inside: Vec<&Path> = kept
        .iter()
        .map(|kept| kept.at.as_path())
        .chain([plan.tree.root()])
        .collect();
    let hidden = room
        .hide(&places, &inside, &memory)
        .map_err(tried("hiding home directories"))?;
    for kept in &kept {
        room.keep(kept)
            .map_err(tried(&format!("keeping {}", kept.source.display())))?;
    }
    room.tree(plan).map_err(tried(&format!(
        "a shadow of {}",
        plan.tree.root().display()
    )))?;
    room.cover(plan, &memory)
        .map_err(tried("covering secrets"))?;
    for place in hidden {
        seal(&place).map_err(tried("sealing the hidden directories"))?;
    }
    let contents = staged(plan).map_err(tried("writing the changed files of the shadow"))?;
    enter(&at).map_err(tried("entering the sandbox"))?;
    lay_over(plan.tree.root(), &contents).map_err(tried("writing the changed files of the shadow"))
}

/// The root file system of a sandbox while it is being assembled, mounted at `at`.
struct SandboxRoot<'a> {
    at: &'a Path,
}

impl SandboxRoot<'_> {
    /// Returns the current location of a path that the command will use.
    fn of(&self, path: &Path) -> PathBuf {
        self.at.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn processes(&self, plan: &Plan) -> io::Result<()> {
        let proc = self.of(Path::new("/proc"));
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", &proc, "proc", flags, None)?;
        if version::kernel() >= version::LIMITS_BY_NAMESPACE {
            let most = plan.bounds.ceiling_of_processes().to_string();
            // On some machines the minimum of this setting is higher than `most`. Then the number of
            // processes is limited only by the init process of the sandbox, which counts them.
            let _ = fs::write(proc.join("sys/kernel/pid_max"), most);
        }
        for part in OF_THE_MACHINE.map(|part| proc.join(part)) {
            if part.exists() {
                mount_bind(&part, &part)?;
                let read_only = MountFlags::BIND | MountFlags::RDONLY | flags;
                mount_remount(&part, read_only, NOTHING_ELSE)?;
            }
        }
        Ok(())
    }

    fn devices(&self) -> io::Result<()> {
        let dev = self.of(Path::new("/dev"));
        memory(&dev, "755", 64 << 10)?;
        for device in DEVICES {
            let (from, to) = (Path::new("/dev").join(device), dev.join(device));
            if from.exists() {
                File::create(&to)?;
                mount_bind(&from, &to)?;
            }
        }
        for (link, to) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            symlink(to, dev.join(link))?;
        }
        fs::create_dir(dev.join("pts"))?;
        let options = c"newinstance,ptmxmode=0666,mode=620";
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        // Few tests need a terminal, and not every system allows this mount.
        let _ = mount("devpts", dev.join("pts"), "devpts", flags, Some(options));
        fs::create_dir(dev.join("shm"))
    }

    /// Mounts the command's own empty directories, whose files are in memory.
    fn temporary(&self, memory: &MemoryFileSystem) -> io::Result<()> {
        for (number, own) in own_directories().chain([SHARED_MEMORY]).enumerate() {
            let part = memory.part(&number.to_string(), OPEN_TO_ALL)?;
            mount_bind(&part, self.of(Path::new(own)))?;
        }
        Ok(())
    }

    /// Mounts empty files and directories over everything that is hidden from the command. A hidden
    /// directory that contains a path of `inside` is returned, and the caller must make it
    /// read-only later. All other hidden directories are read-only at once.
    fn hide(
        &self,
        places: &[PathBuf],
        inside: &[&Path],
        memory: &MemoryFileSystem,
    ) -> io::Result<Vec<PathBuf>> {
        let mut open = Vec::new();
        for path in places {
            let at = self.of(path);
            let Ok(of) = fs::metadata(&at) else {
                continue;
            };
            if !of.is_dir() {
                mount_bind("/dev/null", &at)?;
            } else if inside.iter().any(|more| more.starts_with(path)) {
                let part = memory.part(&format!("hidden{}", open.len()), NOT_TO_WRITE)?;
                mount_bind(&part, &at)?;
                open.push(at);
            } else {
                mount_bind(&memory.empty, &at)?;
            }
        }
        Ok(open)
    }

    fn keep(&self, kept: &VisibleDirectory) -> io::Result<()> {
        let to = self.of(&kept.at);
        fs::create_dir_all(&to)?;
        bind_read_only(&kept.source, &to)
    }

    fn cover(&self, plan: &Plan, memory: &MemoryFileSystem) -> io::Result<()> {
        for secret in secrets(plan) {
            let to = self.of(&secret);
            if !to.exists() {
                continue;
            }
            if secret.is_dir() {
                mount_bind(&memory.empty, &to)?;
            } else {
                mount_bind("/dev/null", &to)?;
            }
        }
        Ok(())
    }

    fn tree(&self, plan: &Plan) -> io::Result<()> {
        match &plan.tree {
            Tree::Overlay { root, .. } => {
                // The names are relative, because a mount option cannot contain special characters
                // such as commas and colons.
                chdir(&plan.scratch)?;
                mount_bind_recursive(root, "lower")?;
                let to = self.of(root);
                fs::create_dir_all(&to)?;
                let options = c"lowerdir=lower,upperdir=upper,workdir=work,userxattr";
                let flags = MountFlags::NOSUID | MountFlags::NODEV;
                mount("overlay", &to, "overlay", flags, Some(options))?;
            }
            Tree::Copy { root } => {
                let to = self.of(root);
                fs::create_dir_all(&to)?;
                mount_bind(root, &to)?;
            }
        }
        Ok(())
    }
}

/// One in-memory file system for all directories that are empty at the start, with one limit for
/// all of them. Bind mounts of its parts are faster than one file system for each directory.
struct MemoryFileSystem {
    at: PathBuf,
    /// A directory that is read-only wherever it is mounted.
    empty: PathBuf,
}

impl MemoryFileSystem {
    fn new(plan: &Plan) -> io::Result<MemoryFileSystem> {
        let at = plan.scratch.join("memory");
        fs::create_dir(&at)?;
        memory(&at, "755", plan.bounds.memory)?;
        let empty = at.join("empty");
        let memory = MemoryFileSystem { at, empty };
        let empty = memory.part("empty", NOT_TO_WRITE)?;
        // A bind mount of a read-only mount is also read-only.
        mount_bind(&empty, &empty)?;
        seal(&empty)?;
        Ok(memory)
    }

    /// Creates a directory in this file system.
    fn part(&self, name: &str, mode: u32) -> io::Result<PathBuf> {
        let part = self.at.join(name);
        fs::create_dir(&part)?;
        fs::set_permissions(&part, fs::Permissions::from_mode(mode))?;
        Ok(part)
    }
}

/// Mounts an empty in-memory file system.
fn memory(at: &Path, mode: &str, bytes: u64) -> io::Result<()> {
    let files = (bytes / FILE).max(LEAST_FILES);
    let options = format!("mode={mode},size={bytes},nr_inodes={files}");
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount(
        "tmpfs",
        at,
        "tmpfs",
        flags,
        Some(options.as_c_str()),
    )?)
}

/// Makes one mount read-only, without the mounts below it.
fn seal(at: &Path) -> io::Result<()> {
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount_remount(at, flags, NOTHING_ELSE)?)
}

/// Reads the files of the overlay. Must be called before the scratch directory is hidden.
fn staged(plan: &Plan) -> io::Result<FileContents> {
    let Tree::Overlay { staged, .. } = &plan.tree else {
        return Ok(FileContents::new());
    };
    let read = |path: &PathBuf| fs::read(path).map(Into::into);
    staged
        .iter()
        .map(|(file, staged)| Ok((file.clone(), staged.as_ref().map(read).transpose()?)))
        .collect()
}

/// Makes the directory `room` the root directory and unmounts the old root.
fn enter(room: &Path) -> io::Result<()> {
    chdir(room)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

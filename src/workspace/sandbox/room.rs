//! The room of a sandbox: the system as it is, read-only, with the command's own tree, temporary
//! directory, devices and processes in it. It is furnished beside the old root, which then goes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use super::plan::{Confinement, Plan, Tree};
use super::{tried, version};
use crate::workspace::Overlay;
use crate::workspace::shadow::lay_over;

/// Where the command has a directory of its own, and sockets of others are not seen.
pub(super) const OWN: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
/// What some systems keep programs under, in spite of the name.
const PROGRAMS_IN_RUN: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Through these parts of `/proc` the administrator changes the whole machine.
const OF_THE_MACHINE: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];
/// Where keys lie in a home directory.
const SECRETS: [&str; 18] = [
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
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/huggingface",
    ".cache/huggingface/token",
    ".local/share/keyrings",
];
const NOTHING_ELSE: &str = "";
/// The mode of directories that are for everybody's files. Not for devices: a shell's `> /dev/null`
/// would be refused there.
const OPEN: &str = "1777";

/// Where the command's temporary files go.
pub(super) fn temporary(plan: &Plan) -> PathBuf {
    match plan.confinement {
        Confinement::Namespaces | Confinement::Bubblewrap => "/tmp".into(),
        Confinement::Nothing => plan.scratch.join("tmp"),
    }
}

/// The file systems of the room whose files are memory.
pub(super) fn in_memory(plan: &Plan) -> &'static [&'static str] {
    match plan.confinement {
        Confinement::Namespaces => &["/tmp", "/dev/shm"],
        Confinement::Bubblewrap => &["/tmp"],
        Confinement::Nothing => &[],
    }
}

/// The secrets of the user that there are, by their real paths, except where the tree is among them.
pub(super) fn secrets(plan: &Plan) -> Vec<PathBuf> {
    let home = plan.home.iter();
    let paths = home.flat_map(|home| SECRETS.iter().map(move |name| home.join(name)));
    paths
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| !plan.tree.root().starts_with(path))
        .collect()
}

/// What lies where the room has its own, and stays: with the directories above first.
pub(super) fn kept(plan: &Plan) -> Vec<PathBuf> {
    let programs = PROGRAMS_IN_RUN.iter().map(PathBuf::from);
    let mut kept: Vec<PathBuf> = plan.keep.iter().cloned().chain(programs).collect();
    kept.retain(|path| {
        OWN.iter()
            .any(|own| path.starts_with(own) && path != Path::new(own))
            && !path.starts_with(plan.tree.root())
            && path.is_dir()
    });
    kept.sort();
    kept.dedup();
    kept
}

/// Makes the room of a plan and enters it. To be called with the powers of an administrator over a
/// mount namespace of one's own.
pub(super) fn furnish(plan: &Plan) -> Result<(), String> {
    let at = plan.scratch.join("room");
    fs::create_dir(&at).map_err(tried("a place for the sandbox"))?;
    let room = Room { at: &at };
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(|error| format!("private mounts: {error}"))?;
    mount_bind_recursive("/", &at).map_err(|error| format!("a second root: {error}"))?;
    read_only(&at).map_err(tried("read-only mounts"))?;
    room.processes(plan).map_err(tried("its own /proc"))?;
    room.devices(plan).map_err(tried("its own /dev"))?;
    room.temporary(plan).map_err(tried("its own /tmp"))?;
    room.cover(plan).map_err(tried("covering secrets"))?;
    room.tree(plan).map_err(tried(&format!(
        "a shadow of {}",
        plan.tree.root().display()
    )))?;
    let texts = texts(plan).map_err(tried("the texts of the shadow"))?;
    enter(&at).map_err(tried("entering the sandbox"))?;
    lay_over(plan.tree.root(), &texts).map_err(tried("the texts of the shadow"))
}

/// A root that is being furnished.
struct Room<'a> {
    at: &'a Path,
}

impl Room<'_> {
    /// Where a path of the command lies now.
    fn of(&self, path: &Path) -> PathBuf {
        self.at.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn processes(&self, plan: &Plan) -> io::Result<()> {
        let proc = self.of(Path::new("/proc"));
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("proc", &proc, "proc", flags, None)?;
        if version::kernel() >= version::LIMITS_BY_NAMESPACE {
            let most = plan.bounds.ceiling_of_processes().to_string();
            // It has a higher floor on some machines; then the watch alone is left.
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

    fn devices(&self, plan: &Plan) -> io::Result<()> {
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
        // Few tests want a terminal, and not every system lends one.
        let _ = mount("devpts", dev.join("pts"), "devpts", flags, Some(options));
        fs::create_dir(dev.join("shm"))?;
        memory(&dev.join("shm"), OPEN, plan.bounds.memory / 2)
    }

    /// Empty directories in memory, with what is kept of those that they hide.
    fn temporary(&self, plan: &Plan) -> io::Result<()> {
        for own in OWN {
            let path = self.of(Path::new(own));
            if path.is_dir() && !path.is_symlink() {
                memory(&path, OPEN, plan.bounds.memory / 2)?;
            }
        }
        for path in kept(plan) {
            let to = self.of(&path);
            fs::create_dir_all(&to)?;
            mount_bind_recursive(&path, &to)?;
            read_only(&to)?;
        }
        Ok(())
    }

    fn cover(&self, plan: &Plan) -> io::Result<()> {
        for secret in secrets(plan) {
            let to = self.of(&secret);
            if !to.exists() {
                continue;
            }
            if secret.is_dir() {
                memory(&to, "500", 4 << 10)?;
            } else {
                mount_bind("/dev/null", &to)?;
            }
        }
        Ok(())
    }

    fn tree(&self, plan: &Plan) -> io::Result<()> {
        match &plan.tree {
            Tree::Overlay { root, .. } => {
                // Relative names: an option cannot hold every path.
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

/// An empty directory in memory.
fn memory(at: &Path, mode: &str, bytes: u64) -> io::Result<()> {
    let options = std::ffi::CString::new(format!("mode={mode},size={bytes}"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount(
        "tmpfs",
        at,
        "tmpfs",
        flags,
        Some(options.as_c_str()),
    )?)
}

/// Makes all mounts at and below a path read-only, and bars devices there.
fn read_only(top: &Path) -> io::Result<()> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    for (path, flags) in table.lines().filter_map(mounted) {
        if !path.starts_with(top) {
            continue;
        }
        let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
        let done = mount_remount(&path, flags | MountFlags::NODEV | MountFlags::NOSUID, "");
        // One that lies hidden under another has no path.
        let is_read_only = || {
            rustix::fs::statvfs(&path).map_or(true, |found| {
                found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY)
            })
        };
        if let Err(error) = done
            && !is_read_only()
        {
            return Err(io::Error::other(format!("{}: {error}", path.display())));
        }
    }
    Ok(())
}

/// The place of a mount and the flags that it keeps, from a line of `mountinfo`.
fn mounted(line: &str) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(' ').skip(4);
    let (path, options) = (unescape(fields.next()?), fields.next()?);
    let mut flags = MountFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    if !flags.intersects(MountFlags::NOATIME | MountFlags::RELATIME) {
        flags |= MountFlags::STRICTATIME;
    }
    Some((path, flags))
}

/// Blanks and the like stand as three octal digits.
fn unescape(field: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

/// The texts that are to be laid over the tree, read while the scratch directory can be seen.
fn texts(plan: &Plan) -> io::Result<Overlay> {
    let Tree::Overlay { texts, .. } = &plan.tree else {
        return Ok(Overlay::new());
    };
    let read = |path: &PathBuf| fs::read_to_string(path).map(Into::into);
    texts
        .iter()
        .map(|(file, staged)| Ok((file.clone(), staged.as_ref().map(read).transpose()?)))
        .collect()
}

/// Makes `room` the root; nothing of the old one stays in reach.
fn enter(room: &Path) -> io::Result<()> {
    chdir(room)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_keeps_its_flags() {
        let read = |line| mounted(line).unwrap();
        let line = "36 35 98:0 /a /mnt/a\\040b\\134 ro,nosuid,noexec,relatime master:1 - ext3 /dev/root rw";
        let (path, flags) = read(line);
        assert_eq!(path, Path::new("/mnt/a b\\"));
        assert_eq!(flags, MountFlags::NOEXEC | MountFlags::RELATIME);
        assert_eq!(read("1 2 0:1 / /x rw - t s o").1, MountFlags::STRICTATIME);
        let quiet = MountFlags::NOATIME | MountFlags::NODIRATIME;
        assert_eq!(read("1 2 0:1 / /x rw,noatime,nodiratime - t").1, quiet);
        assert!(mounted("").is_none());
    }
}

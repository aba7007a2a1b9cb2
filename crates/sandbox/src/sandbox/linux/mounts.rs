//! Read-only mounts.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, mount_bind_recursive, mount_remount, move_mount,
    open_tree,
};

const ATTRIBUTES: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Mounts the directory `from`, with all mounts below it, at the directory `to`, read-only and
/// without devices. No process can reach the mounts before they are read-only.
pub(super) fn bind_read_only(from: &Path, to: &Path) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let done = open_tree(CWD, from, flags)
        .map_err(io::Error::from)
        .and_then(|tree| {
            set_read_only(&tree, c"")?;
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            Ok(move_mount(&tree, c"", CWD, to, flags)?)
        });
    match done {
        Err(error) if is_missing(&error) => {
            mount_bind_recursive(from, to)?;
            remount_read_only(&to.canonicalize()?)
        }
        done => done,
    }
}

/// Makes all mounts at and below a path read-only, and disables devices and set-user-ID programs
/// there.
pub(super) fn make_read_only(top: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(top.as_os_str().as_encoded_bytes())?;
    match set_read_only(CWD, &path) {
        Err(error) if is_missing(&error) => remount_read_only(&top.canonicalize()?),
        done => done,
    }
}

/// Returns whether the error means that the kernel lacks the system call. `mount_setattr` was added
/// in Linux 5.12.
fn is_missing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOSYS)
}

fn set_read_only(directory: impl AsFd, path: &std::ffi::CStr) -> io::Result<()> {
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
    attributes.attr_set = ATTRIBUTES;
    // SAFETY: the path and the attributes live until the call returns.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory.as_fd().as_raw_fd(),
            path.as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes mounts read-only one by one, for older kernels that cannot change a whole tree of mounts.
/// `top` must contain no symbolic links, because mounts are found by their paths.
fn remount_read_only(top: &Path) -> io::Result<()> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    for (path, flags) in table.lines().filter_map(mounted) {
        if !path.starts_with(top) {
            continue;
        }
        let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
        let done = mount_remount(&path, flags | MountFlags::NODEV | MountFlags::NOSUID, "");
        // A mount that is hidden by another mount cannot be reached by its path.
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

/// Parses the mount point and the flags to keep from a line of `mountinfo`.
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

/// Decodes the octal escapes that `mountinfo` uses for spaces and similar characters.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_flags_are_parsed_from_mountinfo() {
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

//! User namespaces with one user in them.

use std::fs;
use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Opens a user namespace, and others with it, in which the user `outer` of this one is `inner`; the
/// group alike.
pub(super) fn become_user(
    others: UnshareFlags,
    inner: (u32, u32),
    outer: (u32, u32),
) -> io::Result<()> {
    // SAFETY: the table of file descriptors is not among what is no longer shared.
    unsafe { unshare_unsafe(others | UnshareFlags::NEWUSER) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", inner.0, outer.0))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", inner.1, outer.1))
}

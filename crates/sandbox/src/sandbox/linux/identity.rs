//! User namespaces with a single user.

use std::fs;
use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Creates a user namespace and the namespaces in `others`. In the new user namespace, the user and
/// group `outer` of the parent namespace have the numbers `inner`.
pub(super) fn become_user(
    others: UnshareFlags,
    inner: (u32, u32),
    outer: (u32, u32),
) -> io::Result<()> {
    // SAFETY: the call does not unshare the table of file descriptors.
    unsafe { unshare_unsafe(others | UnshareFlags::NEWUSER) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", inner.0, outer.0))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", inner.1, outer.1))
}

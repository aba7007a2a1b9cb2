//! Making one file like another in everything but its text.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Gid, Uid, XattrFlags, fchown, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

/// The most that Linux lets a list of attributes, or the value of one, have.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Gives `new` the owner, the permissions, the access control list and the extended attributes of
/// `old`.
///
/// # Errors
/// One of them cannot be kept: a plain user may not give a file away, for example.
pub(super) fn make_alike(old: &File, found: &Metadata, new: &File) -> io::Result<()> {
    let now = new.metadata()?;
    if (now.uid(), now.gid()) != (found.uid(), found.gid()) {
        let owner = Some(Uid::from_raw(found.uid())).filter(|_| now.uid() != found.uid());
        let group = Some(Gid::from_raw(found.gid())).filter(|_| now.gid() != found.gid());
        fchown(new, owner, group)?;
    }
    // After the owner, whose change takes some permissions away.
    new.set_permissions(found.permissions())?;
    let wanted = names(old)?;
    for name in &wanted {
        let wanted = value(old, name)?;
        if value(new, name).ok().as_ref() != Some(&wanted) {
            fsetxattr(new, name, &wanted, XattrFlags::empty())?;
        }
    }
    // A directory may give its new files access control lists.
    for name in names(new)?.iter().filter(|name| !wanted.contains(name)) {
        fremovexattr(new, name)?;
    }
    Ok(())
}

fn names(file: &File) -> io::Result<Vec<CString>> {
    let mut list = vec![0; MAX_ATTRIBUTE_BYTES];
    let length = match flistxattr(file, &mut list) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        length => length?,
    };
    let names = list[..length].split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    Ok(names
        .map(|name| CString::new(name).unwrap_or_default())
        .collect())
}

fn value(file: &File, name: &CString) -> io::Result<Vec<u8>> {
    let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
    let length = fgetxattr(file, name, &mut value)?;
    value.truncate(length);
    Ok(value)
}

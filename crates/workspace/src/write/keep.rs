//! Copies all metadata of one file to another.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Gid, Uid, XattrFlags, fchown, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

/// Linux's maximum size in bytes of a list of attribute names and of an attribute's value.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Copies the owner, permissions, access control list and extended attributes from `old` to `new`.
///
/// # Errors
/// An attribute cannot be copied. For example, only root may change the owner of a file.
pub(super) fn make_alike(old: &File, found: &Metadata, new: &File) -> io::Result<()> {
    let now = new.metadata()?;
    if (now.uid(), now.gid()) != (found.uid(), found.gid()) {
        let owner = Some(Uid::from_raw(found.uid())).filter(|_| now.uid() != found.uid());
        let group = Some(Gid::from_raw(found.gid())).filter(|_| now.gid() != found.gid());
        fchown(new, owner, group)?;
    }
    // Set the permissions after the owner, because a change of owner clears some of them.
    new.set_permissions(found.permissions())?;
    let wanted = names(old)?;
    for name in &wanted {
        let wanted = value(old, name)?;
        if value(new, name).ok().as_ref() != Some(&wanted) {
            fsetxattr(new, name, &wanted, XattrFlags::empty())?;
        }
    }
    // A directory may give new files access control lists that the old file does not have.
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

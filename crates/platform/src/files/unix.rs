//! Files on Linux, macOS and other Unix systems.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, Gid, Mode, OFlags, Uid, XattrFlags, accessat, fchown, fgetxattr,
    flistxattr, fremovexattr, fsetxattr, fstatvfs,
};
use rustix::io::Errno;

use super::{ChangeMarks, Identity};

/// Separator of the paths in an environment variable such as `PATH`.
pub const LIST_SEPARATOR: u8 = b':';
/// The directory of programs in a Python virtual environment.
pub const PROGRAMS_OF_ENVIRONMENT: &str = "bin";
/// The path of the interpreter in a Python virtual environment.
pub const PYTHON_OF_ENVIRONMENT: &str = "bin/python";
/// The path of the interpreter in an installation of Python, such as those of Conda and pyenv.
pub const PYTHON_OF_INSTALLATION: &str = "bin/python";
/// The name of the system's Python 3.
pub const PYTHON: &str = "python3";
const PRIVATE_DIRECTORY: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
/// Linux's maximum size in bytes of a list of attribute names and of an attribute's value.
const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;

/// Returns the identity of the file at `path`, whose metadata is `found`. A link is not followed.
///
/// # Errors
/// On Windows, the file cannot be opened.
pub fn identity(_path: &Path, found: &Metadata) -> io::Result<Identity> {
    Ok(Identity {
        file: (found.dev(), found.ino()),
        links: found.nlink(),
    })
}

/// Returns the identity of an open file, whose metadata is `found`.
///
/// # Errors
/// On Windows, the metadata cannot be read.
pub fn identity_of_open(_file: &File, found: &Metadata) -> io::Result<Identity> {
    identity(Path::new(""), found)
}

/// Returns the metadata that changes with the file's text.
pub fn change_marks(found: &Metadata) -> ChangeMarks {
    let nanos =
        |seconds: i64, part: i64| seconds.saturating_mul(1_000_000_000).saturating_add(part);
    ChangeMarks {
        number: found.ino(),
        modified: nanos(found.mtime(), found.mtime_nsec()),
        changed: nanos(found.ctime(), found.ctime_nsec()),
    }
}

/// Returns the free bytes of the disk of a directory, or 0 if it can hold no more files, or `None`
/// if they are unknown.
pub fn free_space(directory: &Path) -> Option<u64> {
    free_space_of(File::open(directory).ok()?)
}

/// Returns the free bytes of the disk of an open directory, as [`free_space`] does.
pub fn free_space_of(directory: impl AsFd) -> Option<u64> {
    let found = fstatvfs(directory).ok()?;
    // A file system that reports no number of files at all has no limit on them.
    let no_more_files = found.f_files > 0 && found.f_favail == 0;
    let bytes = found.f_bavail.saturating_mul(found.f_frsize);
    Some(if no_more_files { 0 } else { bytes })
}

/// Opens a file for reading. Opening a pipe does not wait for a writer.
///
/// # Errors
/// The file cannot be opened.
pub fn open_without_blocking(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Opens a file for reading, as [`open_without_blocking`] does. A link at the end of the path is not
/// followed.
///
/// # Errors
/// The file cannot be opened, or is a link.
pub fn open_without_following(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let options = options.read(true);
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Opens an existing file for writing, as [`open_without_following`] does for reading.
///
/// # Errors
/// The file cannot be opened, or is a link.
pub fn open_to_overwrite(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let options = options.write(true);
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Whether this user has permission to write a file. The result is also false for an administrator
/// if the file is read-only for everybody.
///
/// # Errors
/// The permissions cannot be read.
pub fn may_write(path: &Path) -> io::Result<bool> {
    let mode = path.metadata()?.permissions().mode();
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(mode & 0o222 != 0),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the permission bits of a file.
pub fn permission_bits(found: &Metadata) -> Option<u32> {
    Some(found.permissions().mode() & 0o777)
}

/// Sets the permission bits of a file.
///
/// # Errors
/// The file belongs to another user.
pub fn set_permission_bits(file: &File, bits: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(bits & 0o777))
}

/// Whether an error says that the file system lacks an operation.
pub fn is_unsupported(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    let unsupported = [
        Errno::NOSYS,
        Errno::OPNOTSUPP,
        Errno::NOTSUP,
        Errno::NOLCK,
        Errno::INVAL,
    ];
    code.is_some_and(|code| unsupported.contains(&code))
        || error.kind() == io::ErrorKind::Unsupported
}

/// Whether one component of a path names a file literally. Only on Windows, several names can refer
/// to one file.
pub fn is_exact_name(_name: &str) -> bool {
    true
}

/// Whether a file is a program that can be started.
pub fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the names that the file of a program can have.
pub fn program_files(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

/// Returns the space in bytes that a file takes on its disk.
pub fn taken_bytes(found: &Metadata) -> u64 {
    found.blocks().saturating_mul(512)
}

/// Copies the owner, permissions, access control list and extended attributes from `old`, whose
/// metadata is `found`, to `new`.
///
/// # Errors
/// An attribute cannot be copied. For example, only root may change the owner of a file.
pub fn copy_metadata(old: &File, found: &Metadata, new: &File) -> io::Result<()> {
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

/// Flushes the entries of a directory to disk.
///
/// # Errors
/// The system reports an error.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Creates a directory and its missing parents, accessible only to this user. An existing directory
/// is closed to other users.
///
/// # Errors
/// The directory cannot be created, or belongs to another user.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_DIRECTORY)
        .create(path)?;
    fs::set_permissions(path, Permissions::from_mode(PRIVATE_DIRECTORY))
}

/// Opens an empty file for writing that only this user can access. An existing file is emptied and
/// closed to other users.
///
/// # Errors
/// The file cannot be created, or belongs to another user.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE_FILE)
        .open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
    }
    Ok(file)
}

/// Gives this user, and nobody else, every right to a file or directory.
///
/// # Errors
/// The file belongs to another user.
pub fn open_to_this_user(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(PRIVATE_DIRECTORY))
}

/// Creates a symbolic link at `link` to `target`.
///
/// # Errors
/// The link cannot be created.
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Whether standard input is the null device.
pub fn reads_null_device(stdin: &io::Stdin) -> bool {
    let id = |found: rustix::fs::Stat| (found.st_dev, found.st_ino);
    let stdin = rustix::fs::fstat(stdin).map(id);
    stdin.is_ok() && stdin == rustix::fs::stat("/dev/null").map(id)
}

/// Whether a file belongs to the user of this process.
pub fn belongs_to_this_user(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Whether two files belong to the same user.
pub fn same_owner(one: &Metadata, other: &Metadata) -> bool {
    one.uid() == other.uid()
}

/// Returns a directory for temporary files of a program that other users do not share. It may not
/// exist.
pub fn temporary_directory_of_user(program: &str) -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("{program}-{user}"))
}

//! Files on Windows.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt, symlink_dir, symlink_file};
use std::path::{Path, PathBuf};

use winapi_util::file::{information, typ};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, GetDiskFreeSpaceExW,
};

use super::names::is_exact_on_windows;
use super::{ChangeMarks, Identity};

/// Separator of the paths in an environment variable such as `PATH`.
pub const LIST_SEPARATOR: u8 = b';';
/// The directory of programs in a Python virtual environment.
pub const PROGRAMS_OF_ENVIRONMENT: &str = "Scripts";
/// The path of the interpreter in a Python virtual environment.
pub const PYTHON_OF_ENVIRONMENT: &str = "Scripts/python.exe";
/// The path of the interpreter in an installation of Python, such as those of Conda and pyenv.
pub const PYTHON_OF_INSTALLATION: &str = "python.exe";
/// The name of the system's Python 3.
pub const PYTHON: &str = "python";
/// Windows counts time from 1601, in units of 100 nanoseconds.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;
/// File extensions of programs if the variable `PATHEXT` is not set.
const PROGRAM_ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// Returns the identity of the file at `path`. A link is not followed.
///
/// # Errors
/// The file cannot be opened.
pub fn identity(path: &Path, _found: &Metadata) -> io::Result<Identity> {
    // A directory can be opened only with the flag for backups.
    let flags = FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS;
    let mut options = OpenOptions::new();
    let file = options.access_mode(0).custom_flags(flags).open(path)?;
    identity_of_open(&file, _found)
}

/// Returns the identity of an open file.
///
/// # Errors
/// The file cannot be asked.
pub fn identity_of_open(file: &File, _found: &Metadata) -> io::Result<Identity> {
    let found = information(file)?;
    Ok(Identity {
        file: (found.volume_serial_number(), found.file_index()),
        links: found.number_of_links(),
    })
}

/// Returns the metadata that changes with the file's text. Windows lists no file number and no
/// change time in a directory, so the creation time replaces the number. A program that resets the
/// creation and modification time can hide a change that keeps the size.
pub fn change_marks(found: &Metadata) -> ChangeMarks {
    let nanos = |time: u64| {
        let since = time.cast_signed().saturating_sub(UNIX_EPOCH);
        since.saturating_mul(100)
    };
    let modified = nanos(found.last_write_time());
    ChangeMarks {
        number: found.creation_time(),
        modified,
        changed: modified,
    }
}

/// Returns the free bytes of the disk of a directory for this user, or `None` if they are unknown.
pub fn free_space(directory: &Path) -> Option<u64> {
    let path: Vec<u16> = directory.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    let none = std::ptr::null_mut();
    // SAFETY: the path ends with a zero, `free` outlives the call, and the other results may be null.
    let done = unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &raw mut free, none, none) };
    (done != 0).then_some(free)
}

/// Opens a file for reading.
///
/// # Errors
/// The file cannot be opened.
pub fn open_without_blocking(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens a file for reading. If the path ends in a link, the link itself is opened; its metadata
/// shows that it is not a file.
///
/// # Errors
/// The file cannot be opened.
pub fn open_without_following(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true);
    options
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)
}

/// Opens an existing file for writing, as [`open_without_following`] does for reading.
///
/// # Errors
/// The file cannot be opened.
pub fn open_to_overwrite(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true);
    options
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)
}

/// Opens a file whose path contains no link. Windows cannot exclude links in the directories of a
/// path, so this always fails, and the caller has to check the path itself.
///
/// # Errors
/// Always.
pub fn open_without_links(_path: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this user may write a file: whether it lacks the read-only attribute.
///
/// # Errors
/// The file cannot be asked.
pub fn may_write(path: &Path) -> io::Result<bool> {
    Ok(!path.metadata()?.permissions().readonly())
}

/// Returns the permission bits of a file. There are none on Windows.
pub fn permission_bits(_found: &Metadata) -> Option<u32> {
    None
}

/// Sets the permission bits of a file. There are none on Windows.
///
/// # Errors
/// Never returns an error; on Unix, this can fail.
pub fn set_permission_bits(_file: &File, _bits: u32) -> io::Result<()> {
    Ok(())
}

/// Whether an error says that the file system lacks an operation.
pub fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// Whether one component of a path names a file literally. Windows drops dots and spaces at the end
/// of a name, and the text after a colon selects another stream of the file.
pub fn is_exact_name(name: &str) -> bool {
    is_exact_on_windows(name)
}

/// Whether a file is a program that can be started: its name ends in one of `PATHEXT`.
pub fn is_program(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let is_named = |known: &String| known[1..].eq_ignore_ascii_case(&ending);
    path.is_file() && endings().iter().any(is_named)
}

/// Returns the names that the file of a program can have: its name, and its name with each ending of
/// `PATHEXT`.
pub fn program_files(name: &str) -> Vec<String> {
    let with_endings = endings()
        .into_iter()
        .map(|ending| format!("{name}{ending}"));
    std::iter::once(name.to_owned())
        .chain(with_endings)
        .collect()
}

fn endings() -> Vec<String> {
    let endings = std::env::var("PATHEXT").unwrap_or_else(|_| PROGRAM_ENDINGS.to_owned());
    let endings = endings.split(';').filter(|ending| ending.starts_with('.'));
    endings.map(str::to_ascii_lowercase).collect()
}

/// Copies a file with its permissions.
///
/// # Errors
/// One of the files cannot be opened, read or written.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to).map(drop)
}

/// Returns the length of a file. The space that it takes on its disk is not known.
pub fn taken_bytes(found: &Metadata) -> u64 {
    found.len()
}

/// Copies everything but the text of `old` to `new`. This is not supported on Windows, so a caller
/// writes into the old file, which keeps its access control list, attributes and streams.
///
/// # Errors
/// Always.
pub fn copy_metadata(_old: &File, _found: &Metadata, _new: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Flushes the entries of a directory to disk. Windows has no such operation and does not need it,
/// because NTFS keeps a journal of directory entries.
///
/// # Errors
/// Never.
pub fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Creates a directory and its missing parents. It inherits the access control list of its parent.
/// In a user's profile, this list grants access only to that user.
///
/// # Errors
/// The directory cannot be created.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Opens an empty file for writing. It inherits the access control list of its directory. In a
/// user's profile, this list grants access only to that user.
///
/// # Errors
/// The file cannot be created.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Removes the read-only attribute of a file or directory.
///
/// # Errors
/// The attribute cannot be changed.
pub fn open_to_this_user(path: &Path) -> io::Result<()> {
    let mut permissions = path.metadata()?.permissions();
    // Clippy warns because on Unix this would let everybody write.
    #[allow(clippy::permissions_set_readonly_false)]
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions)
}

/// Creates a symbolic link at `link` to `target`. Windows allows it to administrators, and to all
/// users in its developer mode.
///
/// # Errors
/// The link cannot be created.
pub fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    let leads_to = link.parent().unwrap_or(Path::new("")).join(target);
    if leads_to.is_dir() {
        symlink_dir(target, link)
    } else {
        symlink_file(target, link)
    }
}

/// Whether standard input is the null device: a character device that is not a console.
pub fn reads_null_device(stdin: &io::Stdin) -> bool {
    let is_character_device = typ(stdin).is_ok_and(|found| found.is_char());
    is_character_device && !stdin.is_terminal()
}

/// Whether a file belongs to the user of this process. Always true on Windows: owners are not
/// checked, because the directories of a user's profile are closed to other users.
pub fn belongs_to_this_user(_found: &Metadata) -> bool {
    true
}

/// Whether two files belong to the same user. Always true on Windows, where owners are not checked.
pub fn same_owner(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

/// Returns a directory for temporary files of a program that other users do not share. It may not
/// exist.
pub fn temporary_directory_of_user(program: &str) -> PathBuf {
    // On Windows, each user has a directory for temporary files.
    std::env::temp_dir().join(program)
}

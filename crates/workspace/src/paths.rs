//! Resolves and classifies paths of the workspace. Only paths inside the root are accepted, never
//! secrets or version control data.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::compared::{compared_name, is_short_name};
use super::encoding::DecodeError;
use super::private_key::holds_private_key;
use super::secret_names::is_secret_path;
use starling_platform::files::{Identity, PathExt, identity, is_exact_name};
use starling_syntax::FilePath;
use starling_text::is_plain_name;

/// Maximum size of a file in bytes; larger files are neither listed nor read.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why the text of a file is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("{0}: no such file")]
    Missing(FilePath),
    #[error("{0}: outside the workspace; give a path below its root")]
    Outside(FilePath),
    #[error("{file}: write the path as {plain}")]
    NotPlain { file: FilePath, plain: String },
    /// The name of a device, or a name of which the system ignores or interprets a part.
    #[error("{0}: this system does not take this name literally; use another name")]
    NotLiteral(FilePath),
    #[error("{0}: files that hold secrets are never read")]
    Secret(FilePath),
    #[error("{0}: version control data, which may contain access tokens, is never read")]
    VersionControl(FilePath),
    #[error("{0}: the records and caches of Starling are never read")]
    Own(FilePath),
    #[error("{:?}: the name contains invisible characters; rename the file", .0.as_str())]
    Name(FilePath),
    /// The path, with replacement characters for invalid bytes.
    #[error("{:?}: the name is not UTF-8; rename the file", .0.as_str())]
    NotUtf8(FilePath),
    #[error("{file}: {bytes} bytes; files over 1 MiB are not read")]
    TooLarge { file: FilePath, bytes: u64 },
    #[error(
        "{0}: it takes too long to parse (thousands of line continuations or comment lines in a row?), so it has \
         no symbols and agents do not change it"
    )]
    Unparsed(FilePath),
    #[error("{file}: {reason}")]
    NotText { file: FilePath, reason: DecodeError },
    #[error("{file}: {message}")]
    Io { file: FilePath, message: String },
}

impl ReadError {
    pub(super) fn io(file: &FilePath, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ReadError::Missing(file.clone())
            }
            _ => ReadError::Io {
                file: file.clone(),
                message: error.to_string(),
            },
        }
    }
}

/// Checks whether the text of a file may be shown to a model. The text can come from the disk, an
/// editor buffer, or a proposal.
///
/// # Errors
/// The text contains a private key.
pub fn may_show(file: &FilePath, text: &str) -> Result<(), ReadError> {
    match holds_private_key(text) {
        true => Err(ReadError::NotText {
            file: file.clone(),
            reason: DecodeError::PrivateKey,
        }),
        false => Ok(()),
    }
}

/// Names of the files and directories in which version control stores its data.
pub const VERSION_CONTROL: [&str; 6] = [".git", ".hg", ".svn", ".jj", ".bzr", ".sl"];

/// Returns whether version control stores its data in a file or directory with this name. Some file
/// systems also accept other spellings of `.git`.
pub(super) fn is_version_control(name: &str) -> bool {
    let compared = compared_name(name);
    let name = compared.as_deref().unwrap_or(name);
    // The short name of `.git` on Windows is `GIT~1`.
    let is_short_of = |known: &str| {
        let start = name.get(..known.len() - 1);
        is_short_name(name)
            && start.is_some_and(|start| start.eq_ignore_ascii_case(&known[1..]))
            && name[known.len() - 1..].starts_with('~')
    };
    let is_known = |known: &&str| name.eq_ignore_ascii_case(known) || is_short_of(known);
    VERSION_CONTROL.iter().any(is_known)
}

/// Returns whether git accepts this directory as a repository, whatever the directory is called.
pub(super) fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).is_dir();
    // A directory with `HEAD` and `commondir` contains the data of a linked work tree.
    directory.join("HEAD").symlink_metadata().is_ok()
        && (has("objects") && has("refs") || directory.join("commondir").is_file())
}

/// The kind of version control data in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionControlKind {
    Git,
    Other,
}

/// Returns the kind of version control data in a directory, or around it if the directory is a part
/// of such data. A work tree inside its own bare repository does not count.
pub(super) fn data_around(directory: &Path) -> Option<VersionControlKind> {
    let mut is_work_tree = false;
    for folder in directory.ancestors() {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if is_version_control(&name) {
            let is_git = name.to_ascii_lowercase().contains("git");
            return Some(if is_git {
                VersionControlKind::Git
            } else {
                VersionControlKind::Other
            });
        }
        if !is_work_tree && is_repository(folder) {
            return Some(VersionControlKind::Git);
        }
        is_work_tree |= folder.join(".git").exists();
    }
    None
}

/// Returns the real path of a file that may be read: it is [`inside`] the root, and neither the
/// requested path nor the path after resolving links is a secret or version control data.
pub(super) fn resolve(root: &Path, file: &FilePath) -> Result<PathBuf, ReadError> {
    let real = match inside(root, file) {
        Err(error @ ReadError::NotPlain { .. }) => return Err(not_plain(root, file, error)),
        other => other?,
    };
    let relative = real.strip_prefix(root).unwrap_or(&real);
    for path in [Path::new(file.as_str()), relative] {
        let mut upward: Vec<&Path> = path.ancestors().collect();
        upward.reverse();
        for path in upward {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if is_secret_path(path) {
                return Err(ReadError::Secret(file.clone()));
            }
            if is_version_control(&name) {
                return Err(ReadError::VersionControl(file.clone()));
            }
        }
    }
    // The root's own name can make it a secret, as in `gh/hosts.yml`.
    if is_secret_path(&real) {
        return Err(ReadError::Secret(file.clone()));
    }
    let mut directories = real.ancestors().skip(1);
    if directories
        .by_ref()
        .take_while(|directory| *directory != root)
        .any(is_repository)
    {
        return Err(ReadError::VersionControl(file.clone()));
    }
    Ok(real)
}

/// Converts a path in another form (absolute, or with `.`, `..` or empty parts) to a plain path
/// below `root`. Returns `None` if it leads out of the root or to the root itself. Links are not
/// resolved.
fn plain_form(root: &Path, file: &FilePath) -> Option<String> {
    let mut plain = PathBuf::new();
    for part in root.join(file.as_str()).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    let plain = plain.strip_prefix(root).ok()?.to_str()?;
    (!plain.is_empty()).then(|| FilePath::new(plain).as_str().to_owned())
}

/// Returns why a path that is not in plain form is not read: the error of its plain form, or else
/// an instruction to use the plain form.
fn not_plain(root: &Path, file: &FilePath, error: ReadError) -> ReadError {
    let ReadError::NotPlain { plain, .. } = &error else {
        return error;
    };
    match resolve(root, &FilePath::new(plain)) {
        Err(ReadError::Secret(_)) => ReadError::Secret(file.clone()),
        Err(ReadError::VersionControl(_)) => ReadError::VersionControl(file.clone()),
        Err(ReadError::Outside(_)) => ReadError::Outside(file.clone()),
        Err(ReadError::NotLiteral(_)) => ReadError::NotLiteral(file.clone()),
        Ok(_) | Err(_) => error,
    }
}

/// Returns the real path of a file inside `root`. The file need not exist. The path must be in
/// plain form, so that no file has two names.
pub fn inside(root: &Path, file: &FilePath) -> Result<PathBuf, ReadError> {
    let outside = || ReadError::Outside(file.clone());
    if !is_plain_name(file.as_str()) {
        return Err(ReadError::Name(file.clone()));
    }
    let plain = |part: &str| !matches!(part, "" | "." | "..") && is_exact_name(part);
    if !file.as_str().split('/').all(plain) {
        return Err(match plain_form(root, file) {
            Some(plain) if plain == file.as_str() => ReadError::NotLiteral(file.clone()),
            Some(plain) => ReadError::NotPlain {
                file: file.clone(),
                plain,
            },
            None => outside(),
        });
    }
    let real = real_path(&root.join(file.as_str())).map_err(|error| ReadError::io(file, &error))?;
    match real.starts_with(root) {
        true => Ok(real),
        false => Err(outside()),
    }
}

/// Resolves links in the existing part of `path`. A dangling link is an error, because its target
/// may be created later.
pub(super) fn real_path(path: &Path) -> io::Result<PathBuf> {
    for ancestor in path.ancestors() {
        match ancestor.symlink_metadata() {
            Ok(_) => {
                let mut real = ancestor.canonical()?;
                let missing = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
                real.extend(missing);
                return Ok(real);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Returns whether a file is a hard link to a secret file in its own directory or in a directory
/// above. Other directories are not searched, because that would take a walk through the whole
/// tree.
pub(super) fn is_linked_secret(root: &Path, real: &Path, found: Identity) -> bool {
    let is_same = |entry: &DirEntry| {
        let of_other = |other: Metadata| identity(&entry.path(), &other);
        let other = entry.metadata().and_then(of_other);
        other.is_ok_and(|other| other.file == found.file)
    };
    let holds_it = |directory: &Path| {
        let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.any(|entry| is_secret_path(&entry.path()) && is_same(&entry))
    };
    let mut directories = real.ancestors().skip(1);
    found.links > 1
        && directories
            .by_ref()
            .take_while(|directory| directory.starts_with(root))
            .any(holds_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_root_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonical().unwrap();
        let root = base.join("root");
        std::fs::create_dir_all(root.join("pkg")).unwrap();
        std::fs::write(base.join("outside.py"), "").unwrap();
        std::os::unix::fs::symlink("../outside.py", root.join("leaves.py")).unwrap();
        std::os::unix::fs::symlink("..", root.join("up")).unwrap();
        std::os::unix::fs::symlink("pkg", root.join("inside")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
        let check = |path: &str| resolve(&root, &FilePath::new(path));

        assert_eq!(check("pkg/new.py").unwrap(), root.join("pkg/new.py"));
        assert_eq!(check("inside/new.py").unwrap(), root.join("pkg/new.py"));
        assert_eq!(check("a/b/c.py").unwrap(), root.join("a/b/c.py"));
        for path in [
            "",
            "..",
            "../outside.py",
            "pkg/../../outside.py",
            "/etc/passwd",
            "leaves.py",
            "up/outside.py",
            "./",
        ] {
            assert_eq!(
                check(path),
                Err(ReadError::Outside(FilePath::new(path))),
                "{path:?}"
            );
        }
        let absolute = root.join("pkg/new.py").display().to_string();
        for (path, plain) in [
            ("pkg//new.py", "pkg/new.py"),
            ("pkg/./new.py", "pkg/new.py"),
            ("a/../pkg/new.py", "pkg/new.py"),
            ("pkg/", "pkg"),
            (&absolute, "pkg/new.py"),
        ] {
            let (file, plain) = (FilePath::new(path), plain.to_owned());
            assert_eq!(check(path), Err(ReadError::NotPlain { file, plain }));
        }
        let secret = root.join("pkg/.env").display().to_string();
        for path in [secret.as_str(), "pkg/../.env"] {
            assert_eq!(check(path), Err(ReadError::Secret(FilePath::new(path))));
        }
        for path in [
            "a\0b",
            "a\nb.py",
            "\u{202e}yp.py",
            "setup.py\u{200b}",
            "a\u{ad}/b.py",
        ] {
            assert_eq!(check(path), Err(ReadError::Name(FilePath::new(path))));
        }
        for path in [
            ".env",
            "pkg/.env.local",
            ".env/bin/python",
            "certs/a.pem",
            ".config/gh/hosts.yml",
        ] {
            assert_eq!(check(path), Err(ReadError::Secret(FilePath::new(path))));
        }
        assert_eq!(
            check("dangling"),
            Err(ReadError::Missing(FilePath::new("dangling")))
        );
    }

    #[test]
    fn links_to_secrets_or_version_control_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonical().unwrap();
        for directory in [".git/hooks", "sub", "certs", "bare/objects", "bare/refs"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [".env", "sub/.git", "certs/a.pem", "bare/HEAD", "plain.txt"] {
            std::fs::write(root.join(file), "x").unwrap();
        }
        for (to, link) in [
            (".env", "notes.txt"),
            ("notes.txt", "twice.txt"),
            (".git", "data"),
            ("certs", "public"),
            ("bare", "store"),
            ("plain.txt", "other.txt"),
        ] {
            std::os::unix::fs::symlink(to, root.join(link)).unwrap();
        }
        let check = |path: &str| resolve(&root, &FilePath::new(path));
        for path in ["notes.txt", "twice.txt", "public/a.pem"] {
            let secret = ReadError::Secret(FilePath::new(path));
            assert_eq!(check(path), Err(secret), "{path}");
        }
        for path in [
            ".git",
            ".git/config",
            ".GIT/config",
            ".git./config",
            "git~1/config",
            "data/config",
            "data/hooks/pre-commit",
            "sub/.git",
            "sub/deep/.git/config",
            ".hg/hgrc",
            "bare/config",
            "bare/new",
            "store/config",
        ] {
            let data = ReadError::VersionControl(FilePath::new(path));
            assert_eq!(check(path), Err(data), "{path}");
        }
        for path in [
            "other.txt",
            ".gitignore",
            ".github/x.yml",
            "digit",
            "sub/HEAD",
        ] {
            assert!(check(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn missing_files_and_disk_errors_are_distinguished() {
        let file = || FilePath::new("a.py");
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let denied = ReadError::io(&file(), &denied);
        assert!(matches!(denied, ReadError::Io { .. }));
        assert!(denied.to_string().starts_with("a.py: "), "{denied}");
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory] {
            let error = ReadError::io(&file(), &io::Error::from(kind));
            assert_eq!(error, ReadError::Missing(file()));
        }
    }
}

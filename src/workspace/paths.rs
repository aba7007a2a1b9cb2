//! Which paths may be read and written: only inside the root, never secrets.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::syntax::FilePath;

/// Longer files are neither listed nor read.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why the text of a file cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("{0}: no such file")]
    Missing(FilePath),
    #[error("{0}: outside the workspace; give a path below its root")]
    Outside(FilePath),
    #[error("{0}: files of secrets are never read")]
    Secret(FilePath),
    #[error("{file}: {bytes} bytes; files over 1 MiB are not read")]
    TooLarge { file: FilePath, bytes: u64 },
    #[error("{0}: not UTF-8 text; convert it to UTF-8 to work on it")]
    NotUtf8(FilePath),
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

/// Whether a file or directory of this name holds secrets: environment files, private keys,
/// credentials of tools.
pub fn is_secret(name: &str) -> bool {
    const NAMES: [&str; 6] = [
        ".netrc",
        ".pypirc",
        ".pgpass",
        ".htpasswd",
        ".git-credentials",
        "credentials.json",
    ];
    const STEMS: [&str; 5] = [".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    const ENDINGS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str())
        || STEMS.iter().any(|stem| name.starts_with(stem))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The absolute path of a file that may be read and written: [`inside`], and not a secret.
pub(super) fn resolve(root: &Path, file: &FilePath) -> Result<PathBuf, ReadError> {
    let path = inside(root, file)?;
    if file.as_str().split('/').any(is_secret) {
        return Err(ReadError::Secret(file.clone()));
    }
    Ok(path)
}

/// The absolute path of a file of the workspace. Its nearest existing ancestor must lie inside
/// `root`, links resolved; the file itself need not exist.
pub(super) fn inside(root: &Path, file: &FilePath) -> Result<PathBuf, ReadError> {
    let relative = Path::new(file.as_str());
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain || file.as_str().is_empty() || file.as_str().contains('\0') {
        return Err(ReadError::Outside(file.clone()));
    }
    let path = root.join(relative);
    match nearest_existing(&path) {
        Ok(real) if real.starts_with(root) => Ok(path),
        Ok(_) => Err(ReadError::Outside(file.clone())),
        Err(error) => Err(ReadError::io(file, &error)),
    }
}

/// The real path of `path`, or of the nearest ancestor that exists. A dangling link is an error:
/// nobody can say where it would lead.
fn nearest_existing(path: &Path) -> io::Result<PathBuf> {
    for ancestor in path.ancestors() {
        match ancestor.symlink_metadata() {
            Ok(_) => return ancestor.canonicalize(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_secrets_by_name() {
        for name in [
            ".env",
            ".env.local",
            ".envrc",
            "server.pem",
            "A.KEY",
            "id_rsa",
            "id_rsa.pub",
            ".netrc",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["env.py", "environment", "keys.py", "pem.py", "key", "id.py"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn stays_inside_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir_all(root.join("pkg")).unwrap();
        std::fs::write(base.join("outside.py"), "").unwrap();
        std::os::unix::fs::symlink("../outside.py", root.join("leaves.py")).unwrap();
        std::os::unix::fs::symlink("..", root.join("up")).unwrap();
        std::os::unix::fs::symlink("pkg", root.join("inside")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
        let check = |path: &str| resolve(&root, &FilePath::new(path));

        assert_eq!(check("pkg/new.py").unwrap(), root.join("pkg/new.py"));
        assert_eq!(check("inside/new.py").unwrap(), root.join("inside/new.py"));
        assert_eq!(check("a/b/c.py").unwrap(), root.join("a/b/c.py"));
        for path in [
            "",
            "..",
            "../outside.py",
            "pkg/../../outside.py",
            "/etc/passwd",
            "leaves.py",
            "up/outside.py",
            "a\0b",
        ] {
            assert_eq!(
                check(path),
                Err(ReadError::Outside(FilePath::new(path))),
                "{path:?}"
            );
        }
        for path in [".env", "pkg/.env.local", ".env/bin/python", "certs/a.pem"] {
            assert_eq!(check(path), Err(ReadError::Secret(FilePath::new(path))));
        }
        assert_eq!(
            check("dangling"),
            Err(ReadError::Missing(FilePath::new("dangling")))
        );
    }

    #[test]
    fn disk_errors_are_told_apart() {
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

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
/// credentials of tools. Examples of such files and public keys do not; nor does source code, whatever
/// it is called.
pub fn is_secret(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        ".aws",
        ".azure",
        ".boto",
        ".docker",
        ".dockercfg",
        ".git-credentials",
        ".gnupg",
        ".htpasswd",
        ".kube",
        ".my.cnf",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".s3cfg",
        ".secrets",
        ".ssh",
        ".vault-token",
        "kubeconfig",
        "terraform.tfstate",
        "terraform.tfstate.backup",
    ];
    const ENDINGS: [&str; 11] = [
        ".pem",
        ".key",
        ".p8",
        ".p12",
        ".pfx",
        ".ppk",
        ".jks",
        ".keystore",
        ".kdbx",
        ".tfvars",
        ".ovpn",
    ];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str())
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || (!is_example(&name)
            && (is_environment(&name) || is_private_key(&name) || is_data(&name)))
}

/// `.env.example` and the like show what to fill in.
fn is_example(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        "example", "examples", "sample", "template", "tmpl", "dist", "defaults", "schema",
    ];
    name.split(['.', '-', '_'])
        .any(|part| WORDS.contains(&part))
}

/// `.env`, `.env.local`, `.env-production`, `.envrc`, `prod.env`.
fn is_environment(name: &str) -> bool {
    let hidden = [".envrc", ".env"]
        .iter()
        .find_map(|stem| name.strip_prefix(stem));
    let follows = |rest: &str| rest.is_empty() || rest.starts_with(['.', '-', '_']);
    hidden.is_some_and(|rest| follows(rest) && !is_code(name)) || name.ends_with(".env")
}

/// `id_rsa`, `id_ed25519_work`, `id_rsa.old`.
fn is_private_key(name: &str) -> bool {
    const STEMS: [&str; 5] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];
    let rest = STEMS.iter().find_map(|stem| name.strip_prefix(stem));
    let follows = |rest: &str| rest.is_empty() || rest.starts_with(['.', '-', '_']);
    rest.is_some_and(|rest| follows(rest) && !rest.ends_with(".pub") && !is_code(name))
}

/// `secrets.yml`, `credentials.json`, `service-account-prod.json`, `client_secret_123.json`.
fn is_data(name: &str) -> bool {
    const STEMS: [&str; 6] = [
        "secret",
        "credential",
        "service-account",
        "service_account",
        "client-secret",
        "client_secret",
    ];
    const KINDS: [&str; 9] = [
        "json",
        "yml",
        "yaml",
        "toml",
        "ini",
        "cfg",
        "conf",
        "txt",
        "properties",
    ];
    let Some((stem, kind)) = name.rsplit_once('.') else {
        return false;
    };
    // Behind the word, a plural and a name of its own may stand: not `secretary`.
    let follows = |rest: &str| {
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        rest.is_empty() || rest.starts_with(['.', '-', '_'])
    };
    let named = STEMS
        .iter()
        .any(|word| stem.strip_prefix(word).is_some_and(follows));
    named && KINDS.contains(&kind)
}

fn is_code(name: &str) -> bool {
    let kind = name.rsplit_once('.').map(|(_, kind)| kind);
    const KINDS: [&str; 12] = [
        "py", "pyi", "js", "ts", "rs", "go", "rb", "sh", "java", "c", "h", "md",
    ];
    kind.is_some_and(|kind| KINDS.contains(&kind))
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
            ".ENV.local",
            ".env.production.local",
            ".env-prod",
            ".env_prod",
            ".envrc",
            ".envrc.local",
            "prod.env",
            "server.pem",
            "A.KEY",
            "apple.p8",
            "id_rsa",
            "id_rsa.old",
            "id_ed25519_work",
            ".netrc",
            ".npmrc",
            ".ssh",
            ".aws",
            "credentials.json",
            "secrets.yml",
            "secret.toml",
            "Secrets.prod.yaml",
            "service-account.json",
            "service_account_prod.json",
            "client_secret_123.apps.json",
            "terraform.tfstate",
            "prod.tfvars",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "env.py",
            "env",
            "environment",
            "environment.py",
            ".environment",
            ".envoy.yaml",
            ".env.example",
            ".env.sample",
            ".envrc.example",
            ".env-template",
            ".env.py",
            "example.env",
            "keys.py",
            "pem.py",
            "key",
            "id.py",
            "id_rsa.pub",
            "id_rsa_utils.py",
            "id_rsa256",
            "secrets.py",
            "secrets",
            "secrets.example.yml",
            "secretary.json",
            "credentials.py",
            "credentials",
            "test_credentials.json",
            "service-account.md",
            "tsconfig.json",
        ] {
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

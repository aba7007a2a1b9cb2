//! Resolves and classifies paths of the workspace. Only paths inside the root are accepted, never
//! secrets or version control data.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::encoding::{DecodeError, is_private_key as is_key};
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
    #[error("{0}: files that hold secrets are never read")]
    Secret(FilePath),
    #[error("{0}: version control data, which may contain access tokens, is never read")]
    VersionControl(FilePath),
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

/// Whether the text of a file may be shown, wherever it is from: the disk, a buffer, or a proposal.
///
/// # Errors
/// It begins with a private key.
pub fn may_show(file: &FilePath, text: &str) -> Result<(), ReadError> {
    match is_key(text) {
        true => Err(ReadError::NotText {
            file: file.clone(),
            reason: DecodeError::PrivateKey,
        }),
        false => Ok(()),
    }
}

/// Whether a file or directory of this name holds secrets: environment files, private keys,
/// credentials of tools. Examples of such files and public keys do not; nor does source code, whatever
/// it is called.
pub fn is_secret(name: &str) -> bool {
    const NAMES: &[&str] = &[
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
        ".yarnrc",
        ".yarnrc.yml",
        ".gcloud",
        ".dockerconfigjson",
        "access_tokens.db",
        "accesstokens.json",
        "application_default_credentials.json",
        "credentials.db",
        "kubeconfig",
        "local.settings.json",
        "msal_token_cache.json",
        "pip.conf",
        "wp-config.php",
        ".ansible_vault_pass",
        ".clasprc.json",
        ".databrickscfg",
        ".dev.vars",
        ".dotenv",
        ".envs",
        ".flaskenv",
        ".mylogin.cnf",
        ".password",
        ".password-store",
        ".secret",
        ".sentryclirc",
        ".snowsql",
        ".terraformrc",
        ".token",
        ".vault-password",
        ".vault_pass",
        "api_key.txt",
        "apikey.txt",
        "auth.json",
        "cookies.txt",
        "deploy_key",
        "doppler.yaml",
        "dotenv",
        "env.local",
        "env.prod",
        "env.production",
        "oauth_token.json",
        "oauth_token.txt",
        "password.txt",
        "passwords.txt",
        "pip.ini",
        "rclone.conf",
        "rootkey.csv",
        "secring.gpg",
        "settings-security.xml",
        "token.json",
        "token.txt",
        "tokens.json",
        "vault.json",
        "vault.yaml",
        "vault.yml",
        "vault_pass.txt",
        "wallet.dat",
        ".authinfo",
        ".authinfo.gpg",
        ".credentials",
        ".aws_credentials",
        ".dbshell",
        ".passwd-s3fs",
        ".smbcredentials",
        "appsettings.production.json",
        "aws_credentials",
        "clouds.yaml",
        "fish_history",
        "htpasswd",
        "kaggle.json",
        "pgpass.conf",
        ".davfs2",
        ".fetchmailrc",
        ".ftpconfig",
        ".huggingface",
        ".msmtprc",
        ".renviron",
        ".tokens",
        "api_keys.json",
        "hf_token",
        "secret_key",
        "sftp-config.json",
    ];
    const ENDINGS: &[&str] = &[
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
        ".tfvars.json",
        ".tfstate",
        ".tfstate.backup",
        ".keytab",
        ".kubeconfig",
        ".ovpn",
        "-key.json",
        "_key.json",
        "accesskeys.csv",
        ".keyring",
        ".openssh",
        "_rsa_key",
        "_dsa_key",
        "_ecdsa_key",
        "_ed25519_key",
    ];
    let name = name.to_ascii_lowercase();
    let names = originals(&name);
    let is_example = names.iter().any(|name| is_example(name));
    let is_known = |name: &str| {
        NAMES.contains(&name)
            || ENDINGS.iter().any(|ending| name.ends_with(ending))
            || is_history(name)
            || (!is_example
                && (is_environment(name)
                    || is_private_key(name)
                    || is_armored_key(name)
                    || is_hidden_token(name)
                    || is_vault_password(name)
                    || is_data(name.trim_start_matches('.'))))
    };
    names.into_iter().any(is_known)
}

/// Returns a file name and the names of the files that it may be a backup of. Editors and people
/// name backups `name~`, `#name#`, `.#name`, `.name.swp`, `name.bak`, `name.orig`.
fn originals(name: &str) -> Vec<&str> {
    const COPIES: [&str; 13] = [
        "~", ".bak", ".backup", ".orig", ".old", ".save", ".saved", ".tmp", ".copy", ".swp",
        ".swo", ".swn", ".rej",
    ];
    let mut names = vec![name];
    let mut at = 0;
    while let Some(name) = names.get(at).copied() {
        at += 1;
        let autosaved = name
            .strip_prefix('#')
            .map(|rest| rest.strip_suffix('#').unwrap_or(rest));
        let locked = name.strip_prefix(".#");
        let copied = COPIES.iter().find_map(|ending| name.strip_suffix(ending));
        // Vim's swap files are hidden: `.server.key.swp` belongs to `server.key`.
        let is_swap = [".swp", ".swo", ".swn"]
            .iter()
            .any(|ending| name.ends_with(ending));
        let hidden = copied
            .filter(|_| is_swap)
            .and_then(|name| name.strip_prefix('.'));
        // Matches `.env.save.1`, `.env.~1~` and `server.key.bak2`.
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '~');
        let numbered = Some(bare).filter(|bare| {
            bare.len() < name.len() && COPIES[1..].iter().any(|ending| bare.ends_with(ending))
                || name.ends_with('~')
        });
        let found = [autosaved, locked, copied, hidden, numbered]
            .into_iter()
            .flatten();
        names.extend(found.filter(|one| !one.is_empty() && *one != name));
    }
    names
}

/// Whether a file or directory contains secrets, by its name ([`is_secret`]) or by the directory
/// above it.
pub fn is_secret_path(path: &Path) -> bool {
    const PLACES: [(&str, &str); 7] = [
        ("etc", "shadow"),
        ("etc", "gshadow"),
        ("gh", "hosts.yml"),
        (".m2", "settings.xml"),
        (".cargo", "credentials"),
        (".gem", "credentials"),
        (".config", "hub"),
    ];
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else {
        return false;
    };
    let directory = path.parent().and_then(Path::file_name);
    let is_place = |(directory_name, file): &(&str, &str)| {
        let directory = directory.is_some_and(|name| name.eq_ignore_ascii_case(directory_name));
        let name = name.to_ascii_lowercase();
        directory && originals(&name).contains(file)
    };
    is_secret(&name) || PLACES.iter().any(is_place)
}

/// Matches `.psql_history` and `.bash_history`, which contain what was typed at a prompt.
fn is_history(name: &str) -> bool {
    name.starts_with('.') && (name.ends_with("_history") || name.ends_with("-history"))
}

/// Matches `.env.example` and similar files, which only show what to fill in.
fn is_example(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        "example", "examples", "sample", "template", "tmpl", "dist", "defaults", "schema",
    ];
    name.split(['.', '-', '_'])
        .any(|part| WORDS.contains(&part))
}

/// Matches `.env`, `.env.local`, `.env-production`, `.envrc`, `prod.env`.
fn is_environment(name: &str) -> bool {
    let hidden = [".envrc", ".env", ".dev.vars"]
        .iter()
        .find_map(|stem| name.strip_prefix(stem));
    let follows = |rest: &str| rest.is_empty() || rest.starts_with(['.', '-', '_']);
    hidden.is_some_and(|rest| follows(rest) && !is_code(name)) || name.ends_with(".env")
}

/// Matches `.api_key`, `.openai_api_key`, `.github-token`.
fn is_hidden_token(name: &str) -> bool {
    const WORDS: [&str; 4] = ["api_key", "api-key", "apikey", "token"];
    let Some(name) = name.strip_prefix('.') else {
        return false;
    };
    let starts_word = |rest: &str| rest.is_empty() || rest.ends_with(['.', '-', '_']);
    let mut rests = WORDS.iter().filter_map(|word| name.strip_suffix(word));
    rests.any(starts_word)
}

/// Matches `.vaultpass`, `vault-password_file`.
fn is_vault_password(name: &str) -> bool {
    const WORDS: [&str; 3] = ["vaultpass", "vault_pass", "vault-pass"];
    let name = name.trim_start_matches('.');
    !is_code(name) && WORDS.iter().any(|word| name.starts_with(word))
}

/// Matches `id_rsa`, `id_ed25519_work`, `id_rsa.old`.
fn is_private_key(name: &str) -> bool {
    const STEMS: [&str; 5] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];
    let rest = STEMS.iter().find_map(|stem| name.strip_prefix(stem));
    let follows = |rest: &str| rest.is_empty() || rest.starts_with(['.', '-', '_']);
    rest.is_some_and(|rest| follows(rest) && !rest.ends_with(".pub") && !is_code(name))
}

/// Matches private keys in text form: `key.asc`, `private-key.asc`, `signing_key.asc`.
/// `release.tar.gz.asc` is a signature, and `public.asc` is a public key.
fn is_armored_key(name: &str) -> bool {
    let Some(stem) = name
        .strip_suffix(".asc")
        .or_else(|| name.strip_suffix(".gpg"))
    else {
        return false;
    };
    let parts: Vec<&str> = stem.split(['.', '-', '_', ' ']).collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    let is_open = has(&["public", "pub", "pubkey", "publickey"]);
    let is_private = stem.starts_with("private")
        || has(&["private", "priv", "secret", "sec", "secring", "seckey"])
        || parts
            .last()
            .is_some_and(|last| matches!(*last, "key" | "keys"));
    is_private && !is_open
}

/// Matches `secrets.yml`, `credentials.json`, `service-account-prod.json`,
/// `client_secret_123.json`, `google_credentials.json`.
fn is_data(name: &str) -> bool {
    const STEMS: [&str; 8] = [
        "firebase-adminsdk",
        "kubeconfig",
        "secret",
        "credential",
        "service-account",
        "service_account",
        "client-secret",
        "client_secret",
    ];
    const LATER: [&str; 5] = [
        "credential",
        "service-account",
        "service_account",
        "client-secret",
        "client_secret",
    ];
    const KINDS: [&str; 11] = [
        "csv",
        "xml",
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
    // A plural `s` and a further word may follow, but not other letters: `secretary` does not
    // match.
    let follows = |rest: &str| {
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        rest.is_empty() || rest.starts_with(['.', '-', '_'])
    };
    let starts_with = |words: &[&str], text: &str| {
        let mut rests = words.iter().filter_map(|word| text.strip_prefix(word));
        rests.any(follows)
    };
    // The word may follow another word (`google_credentials`), except in test data. `secret` may
    // not, because manifests such as `sealed-secret.yaml` contain no secret.
    let is_of_tests = stem.split(['.', '-', '_']).any(|part| {
        matches!(
            part,
            "test" | "tests" | "mock" | "fake" | "dummy" | "fixture" | "fixtures"
        )
    });
    let is_later = || {
        stem.match_indices(['.', '-', '_'])
            .any(|(at, _)| starts_with(&LATER, &stem[at + 1..]))
    };
    let named = starts_with(&STEMS, stem) || !is_of_tests && is_later();
    named && KINDS.contains(&kind)
}

fn is_code(name: &str) -> bool {
    let kind = name.rsplit_once('.').map(|(_, kind)| kind);
    const KINDS: [&str; 12] = [
        "py", "pyi", "js", "ts", "rs", "go", "rb", "sh", "java", "c", "h", "md",
    ];
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// Whether version control stores its data in a file or directory with this name. Some file systems
/// accept other spellings of `.git`.
pub(super) fn is_version_control(name: &str) -> bool {
    const NAMES: [&str; 7] = [".git", "git~1", ".hg", ".svn", ".jj", ".bzr", ".sl"];
    let name = name.trim_end_matches(['.', ' ']);
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether git accepts this directory as a repository, whatever its name.
pub(super) fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).is_dir();
    // The second form is the data of a linked work tree.
    directory.join("HEAD").symlink_metadata().is_ok()
        && (has("objects") && has("refs") || directory.join("commondir").is_file())
}

/// The kind of version control data in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionControlKind {
    Git,
    Other,
}

/// Returns the kind of version control data that a directory contains or is part of. A work tree
/// inside its own bare repository does not count.
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
fn real_path(path: &Path) -> io::Result<PathBuf> {
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

/// Whether a file is a secret under another name: a hard link to one in its directory or above. A
/// secret elsewhere is not looked for; that would take a walk through the whole tree.
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
    fn secret_files_are_recognized_by_name() {
        for name in [
            ".envs",
            ".dev.vars",
            ".DotEnv",
            "passwords.txt",
            "gcp-key.json",
            "firebase-adminsdk-abc.json",
            ".vault_pass",
            ".env",
            ".ENV.local",
            ".env.production.local",
            ".env-prod",
            ".env~",
            ".pgpass~",
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
            ".git-credentials",
            ".dockercfg",
            ".docker",
            ".my.cnf",
            ".pypirc",
            "_netrc",
            ".yarnrc",
            ".yarnrc.yml",
            "pip.conf",
            "kubeconfig",
            "kubeconfig.yaml",
            "prod.kubeconfig",
            ".kube",
            ".gcloud",
            ".azure",
            ".gnupg",
            "application_default_credentials.json",
            "accessTokens.json",
            "a.p12",
            "a.pfx",
            "a.jks",
            "a.keystore",
            "a.kdbx",
            "a.ppk",
            "a.ovpn",
            "a.keytab",
            "id_ecdsa",
            "id_dsa",
            "service-account-prod.json",
            "credentials.ini",
            "credentials.yml",
            "credentials.csv",
            "secrets.toml",
            "secrets.yaml",
            "secrets.json",
            "terraform.tfvars",
            "terraform.tfvars.json",
            "prod.tfstate",
            "prod.tfstate.backup",
            ".vault-token",
            ".htpasswd",
            "wp-config.php",
            "local.settings.json",
            ".env.test",
            ".env.development.local",
            "google_credentials.json",
            "my-service-account.json",
            ".psql_history",
            ".node_repl_history",
            ".zsh_history",
            "settings-security.xml",
            "vault.yml",
            "#.env#",
            ".#.env",
            ".env.swp",
            "..env.swp",
            ".server.key.swp",
            ".env.orig",
            ".env.save.1",
            ".env.~1~",
            "server.key.bak",
            "server.key.bak2",
            "Server.PEM.old",
            "id_rsa.bak",
            "credentials.json.bak",
            "#.netrc#",
            ".netrc.orig~",
            "secring.gpg",
            "key.asc",
            "private.asc",
            "private-key.asc",
            "signing_key.asc",
            "rootkey.csv",
            "accessKeys.csv",
            "me_accessKeys.csv",
            ".secrets.toml",
            ".credentials",
            "aws_credentials",
            "pgpass.conf",
            "kaggle.json",
            ".authinfo",
            ".authinfo.gpg",
            ".smbcredentials",
            ".api_key",
            ".openai_api_key",
            ".passwd-s3fs",
            ".vaultpass",
            "vault-password_file",
            "login.keyring",
            "x.openssh",
            "fish_history",
            ".dbshell",
            "clouds.yaml",
            "htpasswd",
            ".dev.vars.production",
            "appsettings.Production.json",
            "secrets.xml",
            ".Renviron",
            "api_keys.json",
            "secret_key",
            "ssh_host_ed25519_key",
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
            ".env.dist",
            ".env.template",
            "token.py",
            "tokens.py",
            "test_secrets.py",
            "test_credentials.py",
            "secrets_test.go",
            "secret_santa.py",
            "kubeconfig.py",
            "netrc.py",
            "pip.py",
            "pipeline.conf",
            "wp-config-sample.php",
            "settings.json",
            "terraform.tfvars.example",
            "keystore.java",
            "tfstate.py",
            "gcloud",
            "azure",
            "access_tokens.py",
            "sealed-secret.yaml",
            "fake_service_account.json",
            "purchase_history",
            "hosts.yml",
            "settings.xml",
            "notes.txt.bak",
            "#notes#",
            ".a.py.swp",
            "a.py~",
            ".env.example~",
            ".env.example.bak",
            "release.tar.gz.asc",
            "public.asc",
            "public-key.asc",
            "pubring.gpg",
            "key.csv",
            "monkey.asc",
            "keys.py.bak",
            "shadow",
            "vault_password.py",
            "vault-passwords.md",
            "tokenizer",
            ".tokenizer",
            "appsettings.json",
            ".secrets.example.toml",
            "strings.xml",
        ] {
            assert!(!is_secret(name), "{name}");
        }
        for (path, secret) in [
            (".config/gh/hosts.yml", true),
            (".m2/settings.xml", true),
            (".m2/settings.xml.bak", true),
            (".config/gh/#hosts.yml#", true),
            (".cargo/credentials", true),
            ("ansible/hosts.yml", false),
            ("app/settings.xml", false),
            (".cargo/config.toml", false),
            ("etc/shadow", true),
            ("src/shadow", false),
        ] {
            assert_eq!(is_secret_path(Path::new(path)), secret, "{path}");
        }
    }

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

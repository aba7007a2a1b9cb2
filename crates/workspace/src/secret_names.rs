//! Recognizes files that contain secrets by their names. No list of names is complete, so the texts
//! of files are checked as well, see [`may_show`](super::may_show).

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use super::compared::{compared_name, compared_path};

/// Names of files and directories that contain secrets, in lower case.
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
/// Endings of the names of files that contain secrets, in lower case.
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

/// Returns whether a file or directory with this name contains secrets, such as environment files,
/// private keys, and credentials of tools. Examples of environment files, public keys, and source
/// code do not count.
fn is_secret(name: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| NAMES.iter().copied().collect());
    // This function is called for most files of a project, and no rule below matches a Python file.
    if name.ends_with(".py") {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let names = originals(&name);
    let is_example = names.iter().any(|name| is_example(name));
    let is_known = |name: &str| {
        KNOWN.contains(name)
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

/// Returns a file name, and the names of the files of which the file may be a backup. Editors and
/// people name backups `name~`, `#name#`, `.#name`, `.name.swp`, `name.bak`, `name.orig`. The name
/// may also end in spaces or dots.
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
        // Spaces and dots at the end of a name are easily overlooked, and some file systems ignore
        // them.
        let trimmed = name.trim_end_matches(|c: char| c.is_whitespace() || c == '.');
        let found = [autosaved, locked, copied, hidden, numbered, Some(trimmed)]
            .into_iter()
            .flatten();
        names.extend(found.filter(|one| !one.is_empty() && *one != name));
    }
    names
}

/// Returns whether a file or directory contains secrets, by its own name ([`is_secret`]) or by its
/// name together with the directory that contains it.
pub fn is_secret_path(path: &Path) -> bool {
    let directory = path.parent().and_then(Path::file_name);
    let mut names = [directory, path.file_name()].into_iter().flatten();
    let is_other = names.any(|name| compared_name(&name.to_string_lossy()).is_some());
    is_secret_in(path) || is_other && compared_path(path).is_some_and(|path| is_secret_in(&path))
}

/// Returns whether a directory is, or lies in, a hidden directory that holds secrets, such as `.aws`.
pub(super) fn is_in_secret_directory(directory: &Path) -> bool {
    directory.ancestors().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('.') && is_secret_path(path)
    })
}

/// Like [`is_secret_path`], for a path with the names as they are.
fn is_secret_in(path: &Path) -> bool {
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
        directory.is_some_and(|name| name.eq_ignore_ascii_case(directory_name))
            && originals(&name.to_ascii_lowercase()).contains(file)
    };
    is_secret(&name) || PLACES.iter().any(is_place)
}

/// Matches `.psql_history` and `.bash_history`, which contain the commands that were typed at a
/// prompt.
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
    // Another word may precede, as in `google_credentials`, except in test data. No word may
    // precede `secret`, because manifests such as `sealed-secret.yaml` contain no secret.
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
            ".env ",
            ".env. .",
            ".env.bak\t",
            "id_rsa.",
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
    fn no_secret_name_or_ending_matches_a_python_file() {
        for known in NAMES.iter().chain(ENDINGS) {
            assert!(!known.ends_with(".py"), "{known}");
        }
    }
}

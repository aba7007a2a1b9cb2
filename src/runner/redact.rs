//! Replaces the values of the project's secrets in the output of tests, before a model, a log or a
//! person sees it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::workspace::is_secret;

/// Stands for a value.
const REPLACED: &str = "[secret]";
/// Shorter values would be found in ordinary words.
const SHORTEST: usize = 8;
/// Limits of what is read.
const FILES_MOST: usize = 64;
const FILE_BYTES: u64 = 64 << 10;
const VALUES_MOST: usize = 500;
/// From this length on, what looks like words is a secret under a telling name. A shorter one, such as
/// `postgres`, would be found in the names of tests.
const PHRASE: usize = 16;
/// Words of names whose values are secrets even where they look like words.
const TELLING: [&str; 9] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "pass",
    "pwd",
    "credential",
    "auth",
];

/// The values of secrets of one project. They are read again when one of their files was changed.
#[derive(Debug, Clone, Default)]
pub(super) struct SecretValues {
    read: Arc<Mutex<Read>>,
}

#[derive(Debug, Default)]
struct Read {
    files: Vec<SecretFile>,
    /// The longest first.
    values: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct SecretFile {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl SecretValues {
    /// `text` without the values that stand in the secret files of `root` and of its directories.
    pub(super) fn redact(&self, root: &Path, text: String) -> String {
        let files = secret_files(root);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.files != files {
            read.values = values_of(&files);
            read.files = files;
        }
        let found = read.values.iter().filter(|value| text.contains(*value));
        let found: Vec<&String> = found.collect();
        let replace = |text: String, value: &&String| text.replace(value.as_str(), REPLACED);
        found.iter().fold(text, replace)
    }
}

/// The files of secrets in a directory and in the directories right below it.
fn secret_files(root: &Path) -> Vec<SecretFile> {
    let mut files = Vec::new();
    add_secret_files(root, &mut files);
    let directories = fs::read_dir(root).into_iter().flatten().flatten();
    let directories = directories.filter(|entry| entry.file_type().is_ok_and(|of| of.is_dir()));
    for directory in directories {
        add_secret_files(&directory.path(), &mut files);
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn add_secret_files(directory: &Path, files: &mut Vec<SecretFile>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if files.len() >= FILES_MOST {
            return;
        }
        let path = entry.path();
        let is_named = is_secret(&entry.file_name().to_string_lossy());
        let Some(found) = is_named.then(|| fs::metadata(&path).ok()).flatten() else {
            continue;
        };
        if found.is_file() && found.len() <= FILE_BYTES {
            files.push(SecretFile {
                path,
                bytes: found.len(),
                modified: found.modified().ok(),
            });
        }
    }
}

fn values_of(files: &[SecretFile]) -> Vec<String> {
    let texts = files.iter().filter_map(|one| fs::read(&one.path).ok());
    let mut values: Vec<String> = texts
        .flat_map(|text| {
            let text = String::from_utf8_lossy(&text).into_owned();
            text.lines().flat_map(values_in).collect::<Vec<_>>()
        })
        .take(VALUES_MOST)
        .collect();
    values.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
    values.dedup();
    values
}

/// The secrets of a line such as `KEY=VALUE`, `key: value` or `"key": "value",`.
fn values_in(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let Some((name, value)) = line
        .split_once(['=', ':'])
        .filter(|_| !line.starts_with('#'))
    else {
        return Vec::new();
    };
    let quotes = ['"', '\'', '`'];
    let value = value.trim().trim_end_matches(',').trim();
    let value = match value.chars().next().filter(|first| quotes.contains(first)) {
        Some(quote) => value[1..].split(quote).next().unwrap_or_default(),
        None => value.split(" #").next().unwrap_or_default().trim(),
    };
    let name = name.to_ascii_lowercase();
    let is_telling = TELLING.iter().any(|word| name.contains(word));
    let is_phrase = is_telling && value.len() >= PHRASE;
    let mut values = Vec::new();
    if let Some(password) = password_of(value) {
        values.push(password.to_owned());
        values.push(value.to_owned());
    } else if !value.contains("://") && !is_path(value) && (is_phrase || !is_plain(value)) {
        values.push(value.to_owned());
    }
    values.retain(|value| value.len() >= SHORTEST && !is_number(value));
    values
}

/// `secret` of `scheme://user:secret@host`.
fn password_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

fn is_path(value: &str) -> bool {
    ["/", "./", "../", "~/"]
        .iter()
        .any(|start| value.starts_with(start))
        && !value.contains(' ')
}

fn is_number(value: &str) -> bool {
    value.parse::<f64>().is_ok()
}

/// Words, names of hosts and of modules, with a port perhaps: `production`, `my-app`, `db.local:5432`.
fn is_plain(value: &str) -> bool {
    let (name, port) = value.rsplit_once(':').unwrap_or((value, ""));
    let is_port = port.chars().all(|c| c.is_ascii_digit());
    let name = if is_port { name } else { value };
    let is_word = |c: char| c.is_alphabetic() || "-_., ".contains(c);
    let is_mixed = name.chars().any(char::is_uppercase) && name.chars().any(char::is_lowercase);
    let is_name = !is_mixed || name.contains([' ', '-', '_', '.']);
    name.chars().all(is_word) && is_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_settings() {
        for (line, secrets) in [
            ("TOKEN=abcd1234efgh", &["abcd1234efgh"][..]),
            (
                "export API_KEY='sk-live-9f8e7d'  # mine",
                &["sk-live-9f8e7d"],
            ),
            (
                "PASSPHRASE=correct-horse-battery",
                &["correct-horse-battery"],
            ),
            ("DB_PASSWORD=postgres", &[]),
            ("NAME=correct-horse-battery", &[]),
            ("  \"secret\": \"q9w8e7r6t5\",", &["q9w8e7r6t5"]),
            ("session: aZbYcXdWeV", &["aZbYcXdWeV"]),
            (
                "DB=postgres://me:s3cr3tpw@db/x",
                &["s3cr3tpw", "postgres://me:s3cr3tpw@db/x"],
            ),
            ("# TOKEN=abcd1234efgh", &[]),
            ("TOKEN=short", &[]),
            ("MODE=production", &[]),
            ("NAME=my-own-app", &[]),
            ("HOST=database.local:5432", &[]),
            ("DEBUG=true", &[]),
            ("PORT=12345678", &[]),
            ("RATE=0.12345678", &[]),
            ("HOME=/home/me/project", &[]),
            ("KEY_FILE=./keys/a1b2c3d4", &[]),
            ("URL=https://example.org/a1b2", &[]),
            ("no value", &[]),
            ("TOKEN=", &[]),
        ] {
            assert_eq!(values_in(line), secrets, "{line}");
        }
    }

    #[test]
    fn values_are_replaced_and_read_again_when_their_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".env", "TOKEN=abcd1234\nLONG_TOKEN=abcd1234efgh\n");
        write("api/secrets.yml", "password: zyxw9876\n");
        write(".env.example", "OTHER=example99\n");
        write("code.py", "SHOWN = 'visible11'\n");
        let values = SecretValues::default();
        let redact = |text: &str| values.redact(dir.path(), text.to_owned());
        let told = redact("abcd1234efgh abcd1234 zyxw9876 example99 visible11");
        assert_eq!(told, "[secret] [secret] [secret] example99 visible11");
        assert_eq!(redact("newer55555"), "newer55555");
        write(".env", "TOKEN=newer55555\n");
        assert_eq!(redact("newer55555 abcd1234"), "[secret] abcd1234");
    }
}

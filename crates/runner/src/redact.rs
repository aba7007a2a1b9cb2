//! Replaces the values of the project's secrets, and private keys, in the output of tests, before a
//! model, a log or a person sees it. All output of tests passes through `ProjectTests::capture`, which calls this module.

mod files;
mod keys;
mod values;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use files::{Directories, FILE_BYTES, SecretFile};
use keys::PrivateKeys;
use starling_workspace::read_regular;
pub(crate) use values::has_login;
use values::{GIT_CONFIG, SHORTEST, values_of};

/// Limits of the secret files that are read.
const ALL_BYTES: u64 = 4 << 20;
const VALUES_MOST: usize = 2000;
/// If the secrets were read within this time before the end of a test run, they are not read again for its
/// output. In so short a time, nobody saves a secret that a test of this run then reads and prints.
pub(super) const CURRENT: Duration = Duration::from_millis(50);

/// The secrets of one project. They are read again after one of their files has changed. Clones share
/// what was read.
#[derive(Debug, Clone, Default)]
pub struct SecretValues {
    read: Arc<Mutex<ReadSecrets>>,
}

/// The secrets that were read from the files of a project.
#[derive(Debug, Default)]
struct ReadSecrets {
    directories: Directories,
    files: Vec<SecretFile>,
    keys: PrivateKeys,
    /// When the last search ended.
    ended: Option<Instant>,
    /// The secrets in all forms in which programs may print them, longest first.
    values: Vec<String>,
    /// The number of each secret in its placeholder. Numbers never change, so that two tests whose ids
    /// contain different secrets keep different ids.
    numbers: HashMap<String, usize>,
}

impl ReadSecrets {
    fn set_values(&mut self, mut values: Vec<String>) {
        for value in &values {
            let next = self.numbers.len() + 1;
            self.numbers.entry(value.clone()).or_insert(next);
        }
        values.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        values.dedup();
        self.values = values;
    }

    /// The placeholder for a secret: `[secret]` for the first value, `[secret 2]` for the second.
    fn replacement(&self, value: &str) -> String {
        match self.numbers.get(value) {
            Some(1) | None => "[secret]".to_owned(),
            Some(number) => format!("[secret {number}]"),
        }
    }
}

impl SecretValues {
    /// Searches `root` for secret files on another thread. A caller that needs the secrets before the
    /// search has finished waits for its end.
    pub fn refresh_in_background(&self, root: &Path) {
        let (root, secrets) = (root.to_owned(), self.clone());
        drop(tokio::task::spawn_blocking(move || {
            drop(secrets.refreshed(&root, CURRENT));
        }));
    }

    /// Whether the secret files were searched at least once.
    #[cfg(test)]
    pub(super) fn were_looked_for(&self) -> bool {
        let read = self.read.try_lock();
        read.is_ok_and(|read| read.directories.are_known())
    }

    /// Replaces private keys, and the secrets from the secret files at and below `root`, in a text.
    /// Different secrets have different placeholders, and a secret always has the same placeholder.
    /// Secrets that were read less than `current` ago are not looked for again.
    pub(super) fn redact(&self, root: &Path, text: String, current: Duration) -> String {
        if text.is_empty() {
            return text;
        }
        let mut read = self.refreshed(root, current);
        let ReadSecrets {
            keys, directories, ..
        } = &mut *read;
        let text = keys.redact(text, directories);
        let found = read.values.iter().filter(|value| text.contains(*value));
        let found: Vec<&String> = found.collect();
        let replace =
            |text: String, value: &&String| text.replace(value.as_str(), &read.replacement(value));
        found.iter().fold(text, replace)
    }

    fn refreshed(&self, root: &Path, current: Duration) -> MutexGuard<'_, ReadSecrets> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.ended.is_some_and(|ended| ended.elapsed() < current) {
            return read;
        }
        let files = read.directories.secret_files(root);
        if read.files != files {
            read.set_values(all_values(&files));
            read.files = files;
        }
        read.ended = Some(Instant::now());
        read
    }
}

/// Returns the secrets in the files, in the order of the files: as written there, as escaped in JSON, and
/// as escaped by Python's `repr`.
fn all_values(files: &[SecretFile]) -> Vec<String> {
    let mut values = Vec::new();
    let mut bytes = 0;
    for file in files {
        bytes += file.bytes;
        if bytes > ALL_BYTES || values.len() >= VALUES_MOST {
            break;
        }
        let Ok(text) = read_regular(&file.path, FILE_BYTES) else {
            continue;
        };
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let name = match file.is_git_config {
            true => GIT_CONFIG,
            false => &name,
        };
        for text in decoded(&text) {
            values.extend(values_of(name, &text));
        }
    }
    values.truncate(VALUES_MOST);
    let read: Vec<String> = values.iter().filter_map(|value| unescaped(value)).collect();
    values.extend(read);
    let escaped: Vec<String> = values.iter().flat_map(|value| escaped(value)).collect();
    values.extend(escaped);
    values
}

/// Returns a text with `\u` escapes for all characters outside of ASCII, in the forms of JSON and of Python.
fn in_ascii(text: &str) -> Vec<String> {
    if text.is_ascii() {
        return Vec::new();
    }
    let units = |c: char| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter();
        units
            .map(|unit| format!("\\u{unit:04x}"))
            .collect::<String>()
    };
    let of_python = |c: char| match u32::from(c) {
        code @ 0..=0xff => format!("\\x{code:02x}"),
        code @ 0x100..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    };
    let with = |escape: &dyn Fn(char) -> String| -> String {
        let each = text.chars().map(|c| match c.is_ascii() {
            true => c.to_string(),
            false => escape(c),
        });
        each.collect()
    };
    vec![with(&units), with(&of_python)]
}

/// Decodes a file: as UTF-8, or as UTF-16 if it has a byte order mark. Other files are decoded as Latin-1.
fn decoded(bytes: &[u8]) -> Vec<String> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => return vec![text.to_owned()],
            Err(_) => {
                let in_latin1 = bytes.iter().copied().map(char::from).collect();
                return vec![in_latin1, String::from_utf8_lossy(bytes).into_owned()];
            }
        },
    };
    let units = bytes[2..]
        .chunks_exact(2)
        .map(|pair| unit([pair[0], pair[1]]));
    let units: Vec<u16> = units.collect();
    vec![String::from_utf16_lossy(&units)]
}

/// Returns a value after the escapes of shells, TOML and YAML are resolved, if that makes it different.
fn unescaped(value: &str) -> Option<String> {
    let mut read = String::new();
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        match escaped {
            None => read.push(c),
            Some('n') => read.push('\n'),
            Some('t') => read.push('\t'),
            Some(other) => read.push(other),
        }
    }
    let read = read.replace("''", "'");
    (read != value && read.len() >= SHORTEST).then_some(read)
}

/// Returns a value as it is printed inside quotation marks, if escaping makes it different.
fn escaped(value: &str) -> Vec<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.get(1..json.len().saturating_sub(1));
    let json = json.unwrap_or_default().to_owned();
    let by_python = value.replace('\\', "\\\\").replace('\n', "\\n");
    let ascii = [json.as_str(), by_python.as_str()].map(in_ascii);
    let bytes = value.bytes().map(|byte| match byte.is_ascii() {
        true => char::from(byte).to_string(),
        false => format!("\\x{byte:02x}"),
    });
    // PHP escapes slashes, too.
    let by_php = json.replace('/', "\\/");
    let mut forms = vec![by_python.replace('\'', "\\'"), by_python, by_php, json];
    forms.extend(ascii.into_iter().flatten());
    if !value.is_ascii() {
        forms.push(bytes.collect());
    }
    forms.retain(|form| form != value);
    forms
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns a text in which all placeholders are replaced by `[secret]`.
    fn unnumbered(text: &str) -> String {
        let (first, rest) = text.split_once("[secret ").unwrap_or((text, ""));
        match rest.split_once(']') {
            Some((_, rest)) => format!("{first}[secret]{}", unnumbered(rest)),
            None => text.to_owned(),
        }
    }

    #[test]
    fn each_secret_gets_its_own_placeholder_that_never_changes() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(dir.path().join(".env"), text).unwrap();
        write("A_TOKEN=sekret-alpha-11\nB_TOKEN=sekret-bravo-22\n");
        let values = SecretValues::default();
        let redact = |text: &str| values.redact(dir.path(), text.to_owned(), Duration::ZERO);
        // The placeholder does not depend on the order or on the other secrets.
        assert_eq!(
            redact("sekret-bravo-22 sekret-alpha-11"),
            "[secret 2] [secret]"
        );
        assert_eq!(redact("t[sekret-bravo-22]"), "t[[secret 2]]");
        // A secret keeps its number when other secrets are added or removed.
        write("C_TOKEN=sekret-charlie-33\nB_TOKEN=sekret-bravo-22\n");
        assert_eq!(
            redact("sekret-bravo-22 sekret-charlie-33"),
            "[secret 2] [secret 3]"
        );
    }

    #[test]
    fn secrets_are_replaced_and_reread_after_their_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".env", "TOKEN=abcd1234\nLONG_TOKEN=abcd1234efgh\n");
        write("api/secrets.yml", "password: zyxw9876\n");
        write("a/b/c/d/.netrc", "machine x login me password deep4567\n");
        write("a/.ssh/config_of_mine", "Token = inside789\n");
        write("a/venv/pyvenv.cfg", "");
        write("a/venv/.env", "TOKEN=installed1\n");
        write(".env.example", "OTHER=example99\n");
        write("code.py", "SHOWN = 'visible11'\n");
        let values = SecretValues::default();
        let redact =
            |text: &str| unnumbered(&values.redact(dir.path(), text.to_owned(), Duration::ZERO));
        let told = redact("abcd1234efgh abcd1234 zyxw9876 example99 visible11");
        assert_eq!(told, "[secret] [secret] [secret] example99 visible11");
        let told = redact("deep4567 inside789 installed1");
        assert_eq!(told, "[secret] [secret] installed1");
        assert_eq!(redact("newer55555"), "newer55555");
        write(".env", "TOKEN=newer55555\n");
        assert_eq!(redact("newer55555 abcd1234"), "[secret] abcd1234");
        fs::remove_file(dir.path().join(".env")).unwrap();
        write("plain.txt", "TOKEN=linked666\n");
        std::os::unix::fs::symlink("plain.txt", dir.path().join(".env")).unwrap();
        write(
            "b/secrets.yaml",
            "db: {user: u, pw: flow7777x}\nkeys: [item8888y, b]\n",
        );
        let utf16: Vec<u8> = "\u{feff}TOKEN=wide9999z\r\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        fs::write(dir.path().join("b/.env"), utf16).unwrap();
        write("c/.env", "A=1\rTOKEN=carriage1z\rB=2\r");
        assert_eq!(
            redact("linked666 flow7777x item8888y wide9999z carriage1z"),
            "[secret] [secret] [secret] [secret] [secret]"
        );
    }

    #[test]
    fn secrets_that_were_just_read_are_not_looked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(dir.path().join(".env"), text).unwrap();
        write("TOKEN=abcd1234\n");
        let values = SecretValues::default();
        let redact = |current| values.redact(dir.path(), "abcd1234 newer555".to_owned(), current);
        assert_eq!(redact(Duration::MAX), "[secret] newer555");
        write("TOKEN=newer555\n");
        assert_eq!(redact(Duration::MAX), "[secret] newer555");
        assert_eq!(redact(Duration::ZERO), "abcd1234 [secret 2]");
    }

    #[test]
    fn secret_is_redacted_in_all_forms_that_programs_print() {
        let dir = tempfile::tempdir().unwrap();
        let env =
            "A_PASSWORD=\"ab\\\"cd-Pw-991\"\nB_TOKEN=x\\ y-tok-77z\nUNI_PASSWORD=pässwörd-Ωmega\n";
        fs::write(dir.path().join(".env"), env).unwrap();
        let yaml = "a: 'it''s-Pw-4455'\nb: \"q\\\"x-Pw-6677\"\n";
        fs::write(dir.path().join("secrets.yml"), yaml).unwrap();
        let latin: Vec<u8> = "X_TOKEN=lätin9xK3value\nY_TOKEN=sl/ash-Pw-8899\n"
            .chars()
            .map(|char| char as u8)
            .collect();
        fs::write(dir.path().join(".env.latin"), latin).unwrap();
        let redact = |text: &str| {
            let values = SecretValues::default();
            unnumbered(&values.redact(dir.path(), text.to_owned(), Duration::ZERO))
        };
        for printed in [
            "ab\"cd-Pw-991",
            "x y-tok-77z",
            "it's-Pw-4455",
            "q\"x-Pw-6677",
            "pässwörd-Ωmega",
            "p\\u00e4ssw\\u00f6rd-\\u03a9mega",
            "p\\xe4ssw\\xf6rd-\\u03a9mega",
            "p\\xc3\\xa4ssw\\xc3\\xb6rd-\\xce\\xa9mega",
            "lätin9xK3value",
            "sl/ash-Pw-8899",
            "sl\\/ash-Pw-8899",
        ] {
            assert_eq!(redact(&format!("<{printed}>")), "<[secret]>", "{printed}");
        }
    }

    #[test]
    fn credentials_in_the_git_configuration_are_redacted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repository");
        let project = root.join("app");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(&project).unwrap();
        let config = "[remote \"origin\"]\n\turl = https://bob:ghp_abc123DEF@host/x/y.git\n\
                      \tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                      [http \"https://host/\"]\n\textraheader = AUTHORIZATION: basic eDp0b2tlbg==\n";
        fs::write(root.join(".git/config"), config).unwrap();
        let redact = |text: &str| {
            let values = SecretValues::default();
            unnumbered(&values.redact(&project, text.to_owned(), Duration::ZERO))
        };
        let printed = "ghp_abc123DEF basic eDp0b2tlbg== +refs/heads/*:refs/remotes/origin/*";
        assert_eq!(
            redact(printed),
            "[secret] basic [secret] +refs/heads/*:refs/remotes/origin/*"
        );
    }

    #[test]
    fn secret_is_redacted_even_with_escaped_quotation_marks() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"token": "ab\"cd\\ef'12", "lines": "first1111\nsecond222"}"#;
        fs::write(dir.path().join("credentials.json"), text).unwrap();
        let redact = |text: &str| {
            let values = SecretValues::default();
            unnumbered(&values.redact(dir.path(), text.to_owned(), Duration::ZERO))
        };
        for printed in [
            r#"ab"cd\ef'12"#,
            r#"ab\"cd\\ef'12"#,
            r#"ab"cd\\ef\'12"#,
            "first1111\nsecond222",
            "first1111\\nsecond222",
        ] {
            assert_eq!(redact(&format!("<{printed}>")), "<[secret]>", "{printed}");
        }
    }
}

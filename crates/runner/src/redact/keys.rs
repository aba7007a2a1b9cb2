//! Replaces the material of private keys in the output of tests. A key is recognized by the armour lines
//! around it, also if it is cut, and by its text if a file of the project holds it, whatever the name
//! of the file. The files are read only if the output contains words that can be parts of a key.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem::Finder;
use starling_workspace::{
    KeyBlock, MAX_FILE_BYTES, key_blocks, key_words, private_keys, read_regular,
};

use super::decoded;
use super::files::Directories;

/// Limits of the files that are read for one output. Files near the root are read first.
const ALL_BYTES: u64 = 256 << 20;
const READING: Duration = Duration::from_secs(2);
/// Maximum size of the keys that are looked for, in bytes.
const KEY_BYTES: usize = 256 << 10;
/// Length of the pieces by which a key is recognized, in characters. Each part of a key of
/// `PIECE + STEP` characters contains a whole piece.
const PIECE: usize = 16;
/// Distance between the beginnings of two pieces, in characters.
const STEP: usize = 8;
/// Minimum number of different characters in a piece. Keys contain long runs of the same character.
const DIFFERENT: usize = 6;
/// Maximum number of keys with a number of their own.
const NUMBERS: usize = 10_000;
/// Words of every file that contains a private key.
const MARKS: [&str; 3] = ["PRIVATE KEY", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1"];

/// The private keys in the files of a project.
#[derive(Debug, Default)]
pub(super) struct PrivateKeys {
    files: HashMap<PathBuf, ReadFile>,
    /// The key that each piece belongs to, by the hash of its material.
    pieces: HashMap<[u8; PIECE], u64>,
    /// The number of each key in its placeholder. Numbers never change.
    numbers: HashMap<u64, usize>,
}

/// A file as it was read last.
#[derive(Debug)]
struct ReadFile {
    bytes: u64,
    modified: Option<SystemTime>,
    keys: Vec<Key>,
}

/// A private key of a file.
#[derive(Debug, Clone)]
struct Key {
    material: String,
    /// Base64 of the key with its armour lines.
    encoded: Vec<String>,
}

/// A word of a text that is part of a key.
struct Found {
    word: Range<usize>,
    key: u64,
}

impl PrivateKeys {
    /// Replaces the material of private keys in a text. Different keys have different placeholders.
    pub(super) fn redact(&mut self, text: String, directories: &Directories) -> String {
        let blocks = key_blocks(&text);
        let of_blocks = blocks.into_iter().flat_map(|block| {
            let key = hash_of(&material(&text, &block));
            let words = block.words.into_iter();
            words.map(move |word| Found { word, key })
        });
        let mut found: Vec<Found> = of_blocks.collect();
        let starts: HashSet<usize> = found.iter().map(|found| found.word.start).collect();
        let words = key_words(&text, PIECE).filter(|word| !starts.contains(&word.start));
        let words: Vec<Range<usize>> = words.collect();
        if words.iter().any(|word| is_random(&text[word.clone()])) {
            self.read(directories);
        }
        let known = words.into_iter().filter_map(|word| {
            let key = self.key_of(&text[word.clone()])?;
            Some(Found { word, key })
        });
        found.extend(known);
        if found.is_empty() {
            return text;
        }
        found.sort_by_key(|found| found.word.start);
        let mut redacted = String::with_capacity(text.len());
        let mut end = 0;
        for Found { word, key } in found {
            if word.start >= end {
                redacted.push_str(&text[end..word.start]);
                redacted.push_str(&self.replacement(key));
            }
            end = end.max(word.end);
        }
        redacted.push_str(&text[end..]);
        redacted
    }

    /// Returns the key that a word contains a piece of.
    fn key_of(&self, word: &str) -> Option<u64> {
        if self.pieces.is_empty() {
            return None;
        }
        let mut pieces = word.as_bytes().windows(PIECE);
        pieces.find_map(|piece| self.pieces.get(piece).copied())
    }

    fn replacement(&mut self, key: u64) -> String {
        let next = self.numbers.len() + 1;
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None if next > NUMBERS => 1,
            None => *self.numbers.entry(key).or_insert(next),
        };
        match number {
            1 => "[private key]".to_owned(),
            number => format!("[private key {number}]"),
        }
    }

    /// Reads the files that are new or have changed since they were read.
    fn read(&mut self, directories: &Directories) {
        let start = Instant::now();
        let mut before = std::mem::take(&mut self.files);
        let marks = MARKS.map(Finder::new);
        let (mut bytes, mut has_changed) = (0, false);
        for path in directories.all_files() {
            let Some(metadata) = fs::metadata(&path).ok().filter(fs::Metadata::is_file) else {
                continue;
            };
            let (size, modified) = (metadata.len(), metadata.modified().ok());
            let is_same = |file: &ReadFile| file.bytes == size && file.modified == modified;
            let file = match before.remove(&path) {
                Some(file) if is_same(&file) => file,
                _ if size > MAX_FILE_BYTES => continue,
                earlier => {
                    if bytes > ALL_BYTES || start.elapsed() > READING {
                        tracing::warn!(
                            "the project is large: private keys in deep directories may be visible in \
                             the output of tests"
                        );
                        break;
                    }
                    bytes += size;
                    let keys = keys_of(&path, &marks);
                    let had_keys = earlier.is_some_and(|file| !file.keys.is_empty());
                    has_changed |= had_keys || !keys.is_empty();
                    ReadFile {
                        bytes: size,
                        modified,
                        keys,
                    }
                }
            };
            self.files.insert(path, file);
        }
        has_changed |= before.values().any(|file| !file.keys.is_empty());
        if has_changed {
            self.pieces = pieces_of(self.files.values().flat_map(|file| &file.keys));
        }
    }
}

/// Returns the private keys in a file.
fn keys_of(path: &Path, marks: &[Finder<'_>]) -> Vec<Key> {
    let Ok(bytes) = read_regular(path, MAX_FILE_BYTES) else {
        return Vec::new();
    };
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    if !is_utf16 && marks.iter().all(|mark| mark.find(&bytes).is_none()) {
        return Vec::new();
    }
    let texts = decoded(&bytes);
    let keys = texts.iter().flat_map(|text| {
        let blocks = private_keys(text).into_iter();
        blocks.map(|block| Key {
            material: material(text, &block),
            encoded: encoded(&text[block.whole]),
        })
    });
    keys.collect()
}

/// Returns the material of a key as one word.
fn material(text: &str, block: &KeyBlock) -> String {
    let words = block.words.iter().map(|word| &text[word.clone()]);
    words.collect()
}

/// Returns the base64 of a key, as it is written and with its escapes resolved, at each of the three
/// places where a group of base64 can begin. Characters that depend on what is around the key are left
/// out.
fn encoded(key: &str) -> Vec<String> {
    let mut forms = vec![key.to_owned()];
    if key.contains("\\n") {
        forms.push(key.replace("\\r", "").replace("\\n", "\n"));
    }
    let at = |form: &String, before: usize| {
        let shifted = [&b"   "[..before], form.as_bytes()].concat();
        let encoded = STANDARD.encode(shifted);
        let inside = encoded.get(4..encoded.len().saturating_sub(4));
        inside.unwrap_or_default().to_owned()
    };
    let all = forms
        .iter()
        .flat_map(|form| (0..3).map(|before| at(form, before)));
    all.collect()
}

fn pieces_of<'k>(keys: impl Iterator<Item = &'k Key>) -> HashMap<[u8; PIECE], u64> {
    let mut pieces = HashMap::new();
    let mut bytes = 0;
    for key in keys {
        bytes += key.material.len();
        if bytes > KEY_BYTES {
            tracing::warn!(
                "the project has many private keys: not all are replaced in the output of tests"
            );
            break;
        }
        let hash = hash_of(&key.material);
        for form in std::iter::once(&key.material).chain(&key.encoded) {
            let all = form.as_bytes().windows(PIECE).step_by(STEP);
            let different = |piece: &&[u8]| piece.iter().collect::<HashSet<_>>().len() >= DIFFERENT;
            let all = all
                .filter(different)
                .filter_map(|piece| piece.try_into().ok());
            pieces.extend(all.map(|piece: [u8; PIECE]| (piece, hash)));
        }
    }
    pieces
}

fn hash_of(material: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    material.hash(&mut hasher);
    hasher.finish()
}

/// Whether a word looks like random base64, and not like a name or a path.
fn is_random(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::super::SecretValues;
    use super::*;

    const BODY: [&str; 3] = [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7Vq3R9x1tYz0a",
        "p2LkQe8sD4nUuWf6GgJhB5Xy1cRmT7oKvZrAI3wNdEbSlHjPqFtCyMgOX9aVsQ0k",
        "qUeBzW5iD2LrNfYh8TgXcJ4mPvSoK6aHwR1bEyCtGpMuF7xZsQnVdIk3jAl9OeT0",
    ];

    /// Returns a key with these line ends, put together so that this file does not contain one.
    fn key(end: &str) -> String {
        let armour = |word: &str| format!("-----{word} RSA PRIVATE KEY-----");
        let lines = BODY.join(end);
        format!("{}{end}{lines}{end}{}{end}", armour("BEGIN"), armour("END"))
    }

    struct Project {
        dir: tempfile::TempDir,
        values: SecretValues,
    }

    impl Project {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let project = Project {
                dir,
                values: SecretValues::default(),
            };
            files
                .iter()
                .for_each(|(file, text)| project.write(file, text));
            project
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn redact(&self, text: &str) -> String {
            let root = self.dir.path();
            self.values.redact(root, text.to_owned(), Duration::ZERO)
        }
    }

    #[test]
    fn key_is_recognized_by_its_form_without_its_file() {
        let project = Project::new(&[]);
        let shown = project.redact(&format!("E   key:\n{}done\n", key("\n")));
        let armour = |word: &str| format!("-----{word} RSA PRIVATE KEY-----\n");
        let body = "[private key]\n".repeat(3);
        let wanted = format!("E   key:\n{}{body}{}done\n", armour("BEGIN"), armour("END"));
        assert_eq!(shown, wanted);
    }

    #[test]
    fn parts_of_a_key_are_recognized_by_the_file_that_holds_it() {
        let pem = key("\n");
        let json = format!("{{\"type\": \"x\", \"private_key\": \"{}\"}}\n", key("\\n"));
        for (file, text) in [
            ("certs.txt", &pem),
            ("a/fixture.json", &json),
            ("server.key", &pem),
        ] {
            let project = Project::new(&[(file, text)]);
            let [one, two, three] = BODY;
            let [start, middle] = [&one[..30], &two[17..45]];
            let wrapped = STANDARD.encode(&pem);
            let with_prefix = STANDARD.encode(format!("x{pem}"));
            for (printed, shown) in [
                (format!("E   {two}\n"), "E   [private key]\n".to_owned()),
                (
                    format!("'{start}...{middle}'"),
                    "'[private key]...[private key]'".into(),
                ),
                (format!("{one}{two}{three}\n"), "[private key]\n".into()),
                (
                    format!("\"{two}\\n{three}\\n\""),
                    "\"[private key]\\n[private key]\\n\"".into(),
                ),
                (wrapped.clone(), "[private key]".into()),
                (with_prefix, "[private key]".into()),
                (format!("{}\n", &wrapped[40..100]), "[private key]\n".into()),
            ] {
                let told = project.redact(&printed).replace(" 2]", "]");
                assert_eq!(told, shown, "{file}: {printed}");
            }
        }
    }

    #[test]
    fn keys_are_read_again_after_their_file_changes() {
        let project = Project::new(&[("notes/README.txt", "nothing\n")]);
        let printed = format!("E   {}\n", BODY[1]);
        assert_eq!(project.redact(&printed), printed);
        project.write("notes/README.txt", &key("\n"));
        assert_eq!(project.redact(&printed), "E   [private key]\n");
        project.write("notes/README.txt", "no key any more\n");
        assert_eq!(project.redact(&printed), printed);
    }

    #[test]
    fn each_key_has_its_own_placeholder_that_never_changes() {
        let other = key("\n").replace('p', "q");
        let project = Project::new(&[("a.txt", &key("\n")), ("b.txt", &other)]);
        let second = BODY[1].replace('p', "q");
        let printed = format!("t[{second}] t[{}]", BODY[1]);
        assert_eq!(
            project.redact(&printed),
            "t[[private key]] t[[private key 2]]"
        );
        assert_eq!(project.redact(BODY[1]), "[private key 2]");
        assert_eq!(project.redact(&second), "[private key]");
    }

    #[test]
    fn files_are_not_read_for_output_without_key_material() {
        let project = Project::new(&[("certs.txt", &key("\n"))]);
        project.redact("/home/u/project/tests/test_app.py::test_a PASSED [100%]\n");
        assert!(project.values.read.lock().unwrap().keys.files.is_empty());
    }

    #[test]
    fn certificates_and_examples_stay_visible() {
        let certificate = key("\n").replace("RSA PRIVATE KEY", "CERTIFICATE");
        let project = Project::new(&[("certs.txt", &certificate)]);
        assert_eq!(project.redact(&certificate), certificate);
    }
}

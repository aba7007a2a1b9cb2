//! The encodings of text files. A Python file may declare its encoding in one of its first two lines
//! (PEP 263); every other closed file is read as UTF-8. A byte order mark is no part of the text.
//! How an open text is stored on disk is decided in `stored`.

use std::borrow::Cow;
use std::path::Path;

use encoding_rs as tables;

use super::private_key::holds_private_key;

/// Extensions of Python files, which may declare an encoding.
const PYTHON: [&str; 3] = ["py", "pyi", "pyw"];
/// The byte order mark, which is three bytes in UTF-8.
pub(super) const UTF8_MARK: &str = "\u{feff}";

/// Why bytes cannot be decoded to text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("not UTF-8 text; convert it to UTF-8 to work on it")]
    NotUtf8,
    #[error("UTF-16 text; convert it to UTF-8 to work on it")]
    Utf16,
    #[error("a binary file")]
    Binary,
    #[error("it holds a private key; files that hold secrets are never read")]
    PrivateKey,
    #[error(
        "the encoding that it declares, `{0}`, is not supported; convert it to UTF-8 to work on it"
    )]
    Unknown(String),
    #[error(
        "it declares the encoding `{0}`, but its bytes are not valid in it; convert it to UTF-8 to work on it"
    )]
    Broken(String),
}

/// Why a text cannot be stored in its file. Line numbers are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error(
        "its declared encoding, {encoding}, does not have the character {character:?} in line {line}; \
         use an escape (\\u{:04x}) or declare utf-8",
        u32::from(*.character)
    )]
    Declared {
        encoding: String,
        character: char,
        line: usize,
    },
    #[error(
        "its encoding on disk, {encoding}, does not have the character {character:?} in line {line}; \
         convert the file to UTF-8 to use it"
    )]
    OnDisk {
        encoding: &'static str,
        character: char,
        line: usize,
    },
    #[error(
        "the file is not UTF-8, and it cannot be told in which encoding the editor will save this text; \
         save the file first, or convert it to UTF-8"
    )]
    Unclear,
}

/// An encoding of a text file, without a byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Ascii,
    Latin1,
    Utf16Le,
    Utf16Be,
    Table(&'static tables::Encoding),
}

/// The tables that a file may be stored in without declaring it.
const TABLES: [&tables::Encoding; 23] = [
    tables::WINDOWS_1252,
    tables::ISO_8859_15,
    tables::ISO_8859_2,
    tables::ISO_8859_4,
    tables::ISO_8859_5,
    tables::ISO_8859_7,
    tables::ISO_8859_16,
    tables::WINDOWS_1250,
    tables::WINDOWS_1251,
    tables::WINDOWS_1253,
    tables::WINDOWS_1254,
    tables::WINDOWS_1255,
    tables::WINDOWS_1256,
    tables::WINDOWS_1257,
    tables::KOI8_R,
    tables::KOI8_U,
    tables::MACINTOSH,
    tables::GBK,
    tables::GB18030,
    tables::BIG5,
    tables::EUC_JP,
    tables::SHIFT_JIS,
    tables::EUC_KR,
];

impl Encoding {
    /// Returns the encodings that a file may have without declaring them.
    pub(super) fn undeclared() -> impl Iterator<Item = Encoding> {
        let plain = [
            Encoding::Utf8,
            Encoding::Utf16Le,
            Encoding::Utf16Be,
            Encoding::Latin1,
        ];
        plain.into_iter().chain(TABLES.map(Encoding::Table))
    }

    /// Returns whether this encoding stores ASCII characters with NUL bytes.
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Encoding::Utf16Le | Encoding::Utf16Be)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Ascii => "ASCII",
            Encoding::Latin1 => "Latin-1",
            Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
            Encoding::Table(table) => table.name(),
        }
    }

    /// Decodes bytes. Returns `None` if they are invalid in this encoding, or if encoding the text
    /// again gives different bytes.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Encoding::Utf8 => str::from_utf8(bytes).ok().map(str::to_owned),
            Encoding::Ascii => str::from_utf8(bytes)
                .ok()
                .filter(|text| text.is_ascii())
                .map(str::to_owned),
            Encoding::Latin1 => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Encoding::Utf16Le => from_utf16(bytes, u16::from_le_bytes),
            Encoding::Utf16Be => from_utf16(bytes, u16::from_be_bytes),
            Encoding::Table(table) => from_table(table, bytes),
        }
    }

    /// Returns the first character of a text that this encoding lacks, with its line.
    pub(super) fn lacking(self, text: &str) -> Option<(char, usize)> {
        let lacks = |character: char| match self {
            Encoding::Utf8 | Encoding::Utf16Le | Encoding::Utf16Be => false,
            Encoding::Ascii => !character.is_ascii(),
            Encoding::Latin1 => u32::from(character) > 0xff,
            Encoding::Table(table) => {
                let mut buffer = [0; 4];
                !character.is_ascii() && table.encode(character.encode_utf8(&mut buffer)).2
            }
        };
        let (at, character) = text.char_indices().find(|(_, one)| lacks(*one))?;
        Some((character, text[..at].matches('\n').count() + 1))
    }

    /// Encodes a text that contains no character which this encoding lacks.
    pub(super) fn encode(self, text: &str) -> Cow<'_, [u8]> {
        let wide = |of: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(of).collect();
        match self {
            Encoding::Utf8 | Encoding::Ascii => Cow::Borrowed(text.as_bytes()),
            Encoding::Latin1 => text.chars().map(|one| one as u8).collect(),
            Encoding::Utf16Le => wide(u16::to_le_bytes),
            Encoding::Utf16Be => wide(u16::to_be_bytes),
            Encoding::Table(table) => table.encode(text).0,
        }
    }
}

fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let units = units.iter().map(|pair| unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok().filter(|_| rest.is_empty())
}

/// Decodes the contents of a closed file. A byte order mark is no part of the text.
///
/// # Errors
/// The bytes are not valid text in the file's encoding.
pub fn decode(path: &Path, bytes: Vec<u8>) -> Result<String, DecodeError> {
    without_private_key(decoded(path, bytes)?)
}

/// Returns a text unless it holds a private key.
pub(super) fn without_private_key(text: String) -> Result<String, DecodeError> {
    match holds_private_key(&text) {
        true => Err(DecodeError::PrivateKey),
        false => Ok(text),
    }
}

fn decoded(path: &Path, mut bytes: Vec<u8>) -> Result<String, DecodeError> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(DecodeError::Utf16);
    }
    if bytes.starts_with(UTF8_MARK.as_bytes()) {
        return utf8(bytes.split_off(UTF8_MARK.len()));
    }
    unmarked(path, bytes)
}

/// Decodes bytes in the encoding that a Python file declares, otherwise as UTF-8. A byte order mark
/// is decoded as a character.
pub(super) fn decode_declared(path: &Path, bytes: &[u8]) -> Option<String> {
    unmarked(path, bytes.to_vec()).ok()
}

fn unmarked(path: &Path, bytes: Vec<u8>) -> Result<String, DecodeError> {
    let Some(name) = declared(path, &bytes) else {
        return utf8(bytes);
    };
    let decoded = match encoding(&name) {
        None | Some(Encoding::Utf8 | Encoding::Ascii) => None,
        Some(other) => other.decode(&bytes),
    };
    match decoded {
        Some(text) => Ok(text),
        None => utf8(bytes).map_err(|error| match error {
            DecodeError::NotUtf8 if encoding(&name).is_none() => DecodeError::Unknown(name),
            DecodeError::NotUtf8 => DecodeError::Broken(name),
            other => other,
        }),
    }
}

/// Returns why Python would read other code than the text shows after a change, or `None` if it
/// would not. Reasons are an unknown encoding in the declaration of the old or new text, an
/// encoding that turns plain text into other text, and a changed declaration. Declaring UTF-8 is
/// the same as declaring nothing.
pub fn reads_otherwise(path: &Path, before: &str, after: &str) -> Option<String> {
    let kind = path.extension().and_then(|kind| kind.to_str());
    let is_python =
        kind.is_some_and(|kind| PYTHON.iter().any(|one| kind.eq_ignore_ascii_case(one)));
    let declared = |text: &str| {
        let is_script = || text.starts_with("#!") && first_line(text).contains("python");
        match is_python || is_script() {
            true => declared(Path::new("script.py"), text.as_bytes()),
            false => None,
        }
    };
    let (old, new) = (declared(before), declared(after));
    let mut names = [&new, &old].into_iter().flatten();
    if let Some(name) = names.find(|name| encoding(name).is_none()) {
        return Some(format!(
            "it declares the encoding `{name}`, in which Python may read other code than the text \
             shows; a person has to convert it to UTF-8"
        ));
    }
    let table = |name: &Option<String>| match name.as_deref().and_then(encoding) {
        None | Some(Encoding::Utf8 | Encoding::Ascii) => None,
        Some(other) => Some(other.name()),
    };
    (table(&old) != table(&new)).then(|| {
        "the change gives it another declared encoding (`coding:`), so that Python would read other \
         text; leave the declaration as it is"
            .to_owned()
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Encodes a text in the encoding that it declares.
///
/// # Errors
/// The text has a character that the declared encoding cannot represent.
pub fn encode<'t>(path: &Path, text: &'t str) -> Result<Cow<'t, [u8]>, EncodeError> {
    let name = declared(path, text.as_bytes());
    let Some((encoding, name)) = name.and_then(|name| Some((encoding(&name)?, name))) else {
        return Ok(Cow::Borrowed(text.as_bytes()));
    };
    match encoding.lacking(text) {
        None => Ok(encoding.encode(text)),
        Some((character, line)) => Err(EncodeError::Declared {
            encoding: name,
            character,
            line,
        }),
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, DecodeError> {
    String::from_utf8(bytes).map_err(|error| match error.as_bytes().contains(&0) {
        true => DecodeError::Binary,
        false => DecodeError::NotUtf8,
    })
}

/// Decodes bytes by a table. Returns `None` if encoding the text again gives different bytes.
fn from_table(table: &'static tables::Encoding, bytes: &[u8]) -> Option<String> {
    let text = table.decode_without_bom_handling_and_without_replacement(bytes)?;
    let (again, _, _) = table.encode(&text);
    (again == bytes).then(|| text.into_owned())
}

/// Returns the encoding that a Python file declares in a comment of its first two lines (PEP 263).
/// The second line counts only after a comment or an empty line.
fn declared(path: &Path, bytes: &[u8]) -> Option<String> {
    let extension = path.extension()?.to_str()?;
    if !PYTHON.contains(&extension) || bytes.starts_with(UTF8_MARK.as_bytes()) {
        return None;
    }
    let mut lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let first = lines.next()?;
    // Between `\r` and `\n` there is an empty piece, which is not a line.
    let is_crlf = bytes.get(first.len()..first.len() + 2) == Some(b"\r\n");
    let second = if is_crlf { lines.nth(1) } else { lines.next() };
    declared_in(first).or_else(|| {
        let start = first.trim_ascii_start();
        let may_follow = start.is_empty() || start.starts_with(b"#");
        second.filter(|_| may_follow).and_then(declared_in)
    })
}

/// Returns whether one of the first two lines declares an encoding other than UTF-8, as pip reads it
/// in requirement files.
pub(super) fn declares_other_than_utf8(text: &str) -> bool {
    let lines = text.trim_start_matches(UTF8_MARK).split('\n').take(2);
    let mut names = lines.filter_map(|line| declared_in(line.as_bytes()));
    names.any(|name| !matches!(encoding(&name), Some(Encoding::Utf8 | Encoding::Ascii)))
}

/// Returns the match of `^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`.
fn declared_in(line: &[u8]) -> Option<String> {
    const WORD: &[u8] = b"coding";
    let comment = line.trim_ascii_start().strip_prefix(b"#")?;
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let places = comment.windows(WORD.len() + 1).enumerate();
    let ends = places.filter(|(_, window)| {
        window.starts_with(WORD) && matches!(window[WORD.len()], b':' | b'=')
    });
    for (at, window) in ends {
        let rest = comment[at + window.len()..].trim_ascii_start();
        let name: Vec<u8> = rest.iter().take_while(is_part).copied().collect();
        if !name.is_empty() {
            return String::from_utf8(name).ok();
        }
    }
    None
}

/// Returns the encoding with the name of a Python codec. A name is not supported if Python's
/// character table for it differs from the table in the Encoding Standard of the web.
fn encoding(name: &str) -> Option<Encoding> {
    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
    let table = match name.as_str() {
        "utf-8" | "utf8" | "utf-8-sig" | "u8" | "utf" | "cp65001" => return Some(Encoding::Utf8),
        // Editors add a suffix, as in `utf-8-unix`.
        _ if name.starts_with("utf-8-") => return Some(Encoding::Utf8),
        "ascii" | "us-ascii" | "646" => return Some(Encoding::Ascii),
        "latin-1" | "latin1" | "l1" | "latin" | "iso-8859-1" | "iso8859-1" | "8859" | "cp819"
        | "latin-1-unix" | "iso-latin-1" | "iso-latin-1-unix" => return Some(Encoding::Latin1),
        "latin2" | "l2" | "iso-8859-2" | "iso8859-2" => tables::ISO_8859_2,
        "latin4" | "l4" | "iso-8859-4" | "iso8859-4" => tables::ISO_8859_4,
        "cyrillic" | "iso-8859-5" | "iso8859-5" => tables::ISO_8859_5,
        "greek" | "greek8" | "iso-8859-7" | "iso8859-7" => tables::ISO_8859_7,
        "latin9" | "l9" | "iso-8859-15" | "iso8859-15" => tables::ISO_8859_15,
        "latin10" | "l10" | "iso-8859-16" | "iso8859-16" => tables::ISO_8859_16,
        "cp1250" | "windows-1250" => tables::WINDOWS_1250,
        "cp1251" | "windows-1251" => tables::WINDOWS_1251,
        "cp1252" | "windows-1252" => tables::WINDOWS_1252,
        "cp1253" | "windows-1253" => tables::WINDOWS_1253,
        "cp1254" | "windows-1254" => tables::WINDOWS_1254,
        "cp1257" | "windows-1257" => tables::WINDOWS_1257,
        "koi8-r" | "koi8r" => tables::KOI8_R,
        "koi8-u" | "koi8u" => tables::KOI8_U,
        "gb18030" | "gb18030-2000" => tables::GB18030,
        "gbk" | "cp936" | "936" | "gb2312" | "euc-cn" => tables::GBK,
        "big5" | "big5-tw" => tables::BIG5,
        "euc-jp" | "eucjp" | "ujis" => tables::EUC_JP,
        "shift-jis" | "shiftjis" | "sjis" | "cp932" | "ms932" => tables::SHIFT_JIS,
        "euc-kr" | "euckr" | "cp949" | "uhc" => tables::EUC_KR,
        _ => return None,
    };
    Some(Encoding::Table(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, bytes: &[u8]) -> Result<String, DecodeError> {
        decode(Path::new(name), bytes.to_vec())
    }

    fn comes_back(name: &str, bytes: &[u8], expected: &str) {
        let text = read(name, bytes).unwrap();
        assert_eq!(text, expected);
        let again = encode(Path::new(name), &text).unwrap();
        assert_eq!(&*again, bytes, "{text}");
    }

    #[test]
    fn text_in_a_declared_encoding_survives_reading_and_writing() {
        let cases: [(&[u8], &str); 7] = [
            (
                b"# -*- coding: latin-1 -*-\ns = '\xe9'\n",
                "# -*- coding: latin-1 -*-\ns = 'é'\n",
            ),
            (
                b"#!/usr/bin/python\r\n# vim: set fileencoding=iso-8859-15 :\r\n\xa4",
                "#!/usr/bin/python\r\n# vim: set fileencoding=iso-8859-15 :\r\n€",
            ),
            (b"# coding=cp1251\n\xcf\xf0\xe8", "# coding=cp1251\nПри"),
            (b"\n# coding: koi8-r\n\xf0", "\n# coding: koi8-r\nП"),
            (
                b"# coding: shift_jis\n\x83e\x83X\x83g",
                "# coding: shift_jis\nテスト",
            ),
            (b"# coding: utf-8\n\xc3\xa9", "# coding: utf-8\né"),
            (
                b"# coding: latin-1\r\x80\r\n\t\x9f",
                "# coding: latin-1\r\u{80}\r\n\t\u{9f}",
            ),
        ];
        for (bytes, expected) in cases {
            comes_back("a.py", bytes, expected);
        }
    }

    #[test]
    fn private_key_is_rejected_under_any_file_name() {
        for start in [
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "\u{feff}\n-----BEGIN RSA PRIVATE KEY-----\r",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
            "PuTTY-User-Key-File-3: ssh-rsa",
        ] {
            let text = format!("{start}\nabc\n");
            for name in ["github_rsa", "notes.txt", "a.py"] {
                let found = read(name, text.as_bytes());
                assert_eq!(found, Err(DecodeError::PrivateKey), "{start}");
            }
        }
        for text in [
            "-----BEGIN PUBLIC KEY-----\nabc\n",
            "-----BEGIN CERTIFICATE-----\nabc\n",
            "KEY = '-----BEGIN PRIVATE KEY-----'\n",
        ] {
            assert_eq!(read("a.py", text.as_bytes()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn change_that_makes_python_decode_the_file_differently_is_detected() {
        const ODD: [&str; 14] = [
            "unicode_escape",
            "raw-unicode-escape",
            "utf-7",
            "idna",
            "punycode",
            "rot13",
            "rot_13",
            "hz",
            "iso2022_jp",
            "utf-16",
            "cp037",
            "undefined",
            "mbcs",
            "new_codec",
        ];
        let plain = "x = 1\n";
        let with = |name: &str| format!("# -*- coding: {name} -*-\nx = 1\n");
        let check = |path: &str, before: &str, after: &str| {
            reads_otherwise(Path::new(path), before, after).is_some()
        };
        for name in ODD {
            let odd = with(name);
            assert!(check("a.py", plain, &odd), "brings {name}");
            assert!(check("a.pyi", &odd, &odd.replace('1', "2")), "edits {name}");
            let second = format!("#!/usr/bin/python\n{odd}");
            assert!(check("tool", "", &second), "a script in {name}");
            assert!(!check("notes.md", plain, &odd), "{name}");
            let late = format!("import os\n{odd}");
            assert!(!check("a.py", plain, &late), "{name}");
        }
        for name in ["latin-1", "cp1252", "koi8-r", "iso-8859-15"] {
            let old = with(name);
            assert!(!check("a.py", &old, &old.replace("x =", "y =")), "{name}");
            assert!(check("a.py", plain, &old), "{name}");
            assert!(check("a.py", &old, plain), "{name}");
        }
        for name in ["utf-8", "UTF8", "ascii"] {
            assert!(!check("a.py", plain, &with(name)), "{name}");
            assert!(!check("a.py", &with(name), plain), "{name}");
        }
    }

    #[test]
    fn encoding_declaration_counts_only_in_the_first_lines_of_python_files() {
        let text = "s = 1\n# coding: latin-1\né";
        comes_back("a.py", text.as_bytes(), text);
        let text = "# a\n# b\n# coding: latin-1\né";
        comes_back("a.py", text.as_bytes(), text);
        let text = "# coding: latin-1\né";
        comes_back("notes.md", text.as_bytes(), text);
        let text = "# coding: no-such-codec\né";
        comes_back("a.py", text.as_bytes(), text);
    }

    #[test]
    fn decode_error_gives_the_reason() {
        let why = |name: &str, bytes: &[u8]| read(name, bytes).unwrap_err();
        assert_eq!(why("a.py", b"\xe9"), DecodeError::NotUtf8);
        assert_eq!(
            why("a.md", b"# coding: latin-1\n\xe9"),
            DecodeError::NotUtf8
        );
        assert_eq!(why("a.py", b"\xff\xfea\0"), DecodeError::Utf16);
        assert_eq!(why("a.py", b"\x89PNG\0"), DecodeError::Binary);
        let unknown = why("a.py", b"# coding: rot13\n\xe9");
        assert_eq!(unknown, DecodeError::Unknown("rot13".to_owned()));
        for codec in ["ascii", "utf-8", "euc-jp"] {
            let bytes = [b"# coding: ", codec.as_bytes(), b"\n\xe9"].concat();
            assert_eq!(why("a.py", &bytes), DecodeError::Broken(codec.to_owned()));
        }
    }

    #[test]
    fn character_that_the_declared_encoding_lacks_is_rejected() {
        let text = "# coding: latin-1\nx = 1\ns = '€'\n";
        let error = encode(Path::new("a.py"), text).unwrap_err();
        let expected = EncodeError::Declared {
            encoding: "latin-1".to_owned(),
            character: '€',
            line: 3,
        };
        assert_eq!(error, expected);
        assert!(error.to_string().contains("latin-1"), "{error}");
        assert!(error.to_string().contains("\\u20ac"), "{error}");
        for codec in ["ascii", "cp1251", "shift_jis"] {
            let text = format!("# coding: {codec}\nü😀");
            assert!(encode(Path::new("a.py"), &text).is_err(), "{codec}");
        }
        assert!(encode(Path::new("a.py"), "# coding: utf-8\n€").is_ok());
    }
}

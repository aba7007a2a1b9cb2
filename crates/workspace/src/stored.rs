//! How the text of a file is stored as bytes: its encoding, its byte order mark and its line ends.
//!
//! An editor shows a file without its byte order mark, in whatever encoding the user chose, and
//! perhaps with LF for CRLF. The LSP tells none of this, so it is found by comparing the bytes on
//! disk with a text that the editor showed for them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use super::encoding::{
    DecodeError, EncodeError, Encoding, UTF8_MARK, decode, decode_declared, encode,
    without_private_key,
};

/// The byte order marks.
const MARKS: [(&[u8], Encoding); 3] = [
    (UTF8_MARK.as_bytes(), Encoding::Utf8),
    (b"\xff\xfe", Encoding::Utf16Le),
    (b"\xfe\xff", Encoding::Utf16Be),
];

/// Returns the text of a file as it is shown by an editor that showed the similar text `shown` for it.
///
/// # Errors
/// The text holds a private key, or its encoding is not supported.
pub fn shown_text(path: &Path, on_disk: Vec<u8>, shown: &str) -> Result<String, DecodeError> {
    let Some(text) = StoredForm::of(path, &on_disk, shown).decode(path, &on_disk) else {
        return decode(path, on_disk);
    };
    without_private_key(match LineEnds::instead(&text, shown) {
        Some(LineEnds::Lf) => with_lf(&text).into_owned(),
        Some(LineEnds::Crlf) => with_crlf(&text),
        Some(LineEnds::Mixed) | None => text,
    })
}

/// Returns the bytes as which a text is saved by an editor that showed the similar text `shown` for
/// the bytes `on_disk`: in their encoding, and with their byte order mark and line ends. A text that
/// differs from its file only in this form gives the bytes on disk.
///
/// # Errors
/// The encoding lacks a character, or it cannot be told.
pub fn stored_bytes(
    path: &Path,
    on_disk: &[u8],
    shown: &str,
    text: &str,
) -> Result<Vec<u8>, EncodeError> {
    let form = StoredForm::of(path, on_disk, shown);
    let Some(before) = form.decode(path, on_disk) else {
        return form.encode(path, text);
    };
    let instead = LineEnds::instead(&before, shown);
    let is_as_on_disk = match instead {
        Some(_) => with_lf(&before) == with_lf(text),
        None => before == text,
    };
    if is_as_on_disk {
        return Ok(on_disk.to_vec());
    }
    let hides_crlf = instead == Some(LineEnds::Lf) && LineEnds::is_mostly_crlf(&before);
    match hides_crlf && !text.contains("\r\n") {
        true => form.encode(path, &with_crlf(text)),
        false => form.encode(path, text),
    }
}

/// How the text of a file is stored.
struct StoredForm<'b> {
    /// The byte order mark, which is no part of the text.
    mark: &'b [u8],
    charset: Charset,
}

/// The encoding of a file, as far as it can be told.
enum Charset {
    /// The encoding that a Python file declares, otherwise UTF-8.
    Declared,
    /// The encodings that explain equally well what the editor shows.
    OneOf(Vec<Encoding>),
    /// Nothing in these encodings explains what the editor shows.
    Unclear(Vec<Encoding>),
    /// The bytes are not valid in the encoding of the file, so the editor shows replacement characters.
    Lossy,
}

impl<'b> StoredForm<'b> {
    fn of(path: &Path, on_disk: &'b [u8], shown: &str) -> StoredForm<'b> {
        let marked = MARKS.into_iter().find(|(mark, encoding)| {
            on_disk.starts_with(mark) && encoding.decode(&on_disk[mark.len()..]).is_some()
        });
        let Some((mark, encoding)) = marked else {
            return StoredForm {
                mark: &[],
                charset: Charset::unmarked(path, on_disk, shown),
            };
        };
        // Some editors show the byte order mark as a character.
        let length = match shown.starts_with(UTF8_MARK) {
            true => 0,
            false => mark.len(),
        };
        StoredForm {
            mark: &on_disk[..length],
            charset: Charset::OneOf(vec![encoding]),
        }
    }

    fn decode(&self, path: &Path, on_disk: &[u8]) -> Option<String> {
        let bytes = &on_disk[self.mark.len()..];
        match &self.charset {
            Charset::Declared => decode_declared(path, bytes),
            Charset::OneOf(all) | Charset::Unclear(all) => all.first()?.decode(bytes),
            Charset::Lossy => Some(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    fn encode(&self, path: &Path, text: &str) -> Result<Vec<u8>, EncodeError> {
        let encoded = match &self.charset {
            Charset::Declared => encode(path, text)?,
            Charset::OneOf(all) => encode_as(all, text)?,
            Charset::Unclear(all) if all.iter().any(|one| one.lacking(text).is_some()) => {
                return Err(EncodeError::Unclear);
            }
            Charset::Unclear(all) => encode_as(all, text)?,
            Charset::Lossy => Cow::Borrowed(text.as_bytes()),
        };
        Ok([self.mark, &encoded].concat())
    }
}

impl Charset {
    /// Finds the encoding of a file without a byte order mark.
    fn unmarked(path: &Path, on_disk: &[u8], shown: &str) -> Charset {
        let is_wide = on_disk.contains(&0);
        let declared = decode_declared(path, on_disk);
        if let Some(text) = declared.as_ref().filter(|_| !is_wide)
            && (text.is_ascii() || shown.is_ascii() || likeness(text, shown) > Likeness::NONE)
        {
            return Charset::Declared;
        }
        let declared = declared.map(|text| likeness(&text, shown));
        let likely = |one: Encoding| Some((likeness(&one.decode(on_disk)?, shown), one));
        let others: Vec<(Likeness, Encoding)> = Encoding::undeclared()
            .filter(|one| is_wide || !one.is_wide())
            .filter_map(likely)
            .collect();
        let most = others.iter().map(|(likeness, _)| *likeness).max();
        if declared.is_some() && most <= declared {
            return Charset::Declared;
        }
        if most != Some(Likeness::SameText)
            && likeness(&String::from_utf8_lossy(on_disk), shown) == Likeness::SameText
        {
            return Charset::Lossy;
        }
        let others = others.into_iter();
        let best = others.filter(|(likeness, _)| Some(*likeness) == most);
        let best = best.map(|(_, encoding)| encoding).collect();
        match most > Some(Likeness::NONE) {
            true => Charset::OneOf(best),
            false => Charset::Unclear(best),
        }
    }
}

/// Encodes a text in those of these encodings that have all its characters, if they give the same
/// bytes.
fn encode_as<'t>(encodings: &[Encoding], text: &'t str) -> Result<Cow<'t, [u8]>, EncodeError> {
    let mut able = encodings.iter().filter(|one| one.lacking(text).is_none());
    let Some(first) = able.next() else {
        let lacking = |one: &Encoding| Some((one.name(), one.lacking(text)?));
        let lacking = encodings.first().and_then(lacking);
        let error = |(encoding, (character, line))| EncodeError::OnDisk {
            encoding,
            character,
            line,
        };
        return Err(lacking.map_or(EncodeError::Unclear, error));
    };
    let bytes = first.encode(text);
    match able.all(|other| other.encode(text) == bytes) {
        true => Ok(bytes),
        false => Err(EncodeError::Unclear),
    }
}

/// How well a decoded text explains what an editor shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// The number of lines that both texts contain and that depend on the encoding.
    Lines(usize),
    /// The texts differ at most in their line ends.
    SameText,
}

impl Likeness {
    const NONE: Likeness = Likeness::Lines(0);
}

fn likeness(decoded: &str, shown: &str) -> Likeness {
    if with_lf(decoded) == with_lf(shown) {
        return Likeness::SameText;
    }
    // In UTF-16 all characters depend on the encoding, so its other readings contain NUL.
    let tells = |line: &&str| !line.is_ascii() || decoded.contains('\0');
    let shown: HashSet<&str> = shown.lines().collect();
    let decoded: HashSet<&str> = decoded.lines().filter(tells).collect();
    Likeness::Lines(decoded.intersection(&shown).count())
}

/// The line ends of a text that has some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    Lf,
    Crlf,
    Mixed,
}

impl LineEnds {
    fn of(text: &str) -> Option<LineEnds> {
        let all = text.matches('\n').count();
        match text.matches("\r\n").count() {
            _ if all == 0 => None,
            0 => Some(LineEnds::Lf),
            crlf if crlf == all => Some(LineEnds::Crlf),
            _ => Some(LineEnds::Mixed),
        }
    }

    /// Returns the line ends that an editor shows instead of those in the file, or `None` if it
    /// shows those in the file.
    fn instead(on_disk: &str, shown: &str) -> Option<LineEnds> {
        match (LineEnds::of(on_disk)?, LineEnds::of(shown)?) {
            (LineEnds::Crlf | LineEnds::Mixed, LineEnds::Lf) => Some(LineEnds::Lf),
            (LineEnds::Mixed, LineEnds::Crlf) => Some(LineEnds::Crlf),
            _ => None,
        }
    }

    fn is_mostly_crlf(text: &str) -> bool {
        text.matches("\r\n").count() * 2 > text.matches('\n').count()
    }
}

fn with_lf(text: &str) -> Cow<'_, str> {
    match text.contains("\r\n") {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    }
}

fn with_crlf(text: &str) -> String {
    with_lf(text).replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "größe\nmaß\nlast\n";

    /// A file, and the text that an editor shows for it.
    struct Case {
        name: &'static str,
        on_disk: Vec<u8>,
        shown: String,
        /// Encodes a text as the editor does.
        save: fn(&str) -> Vec<u8>,
    }

    fn latin(text: &str) -> Vec<u8> {
        Encoding::Latin1.encode(text).into_owned()
    }

    fn wide(text: &str) -> Vec<u8> {
        Encoding::Utf16Le.encode(text).into_owned()
    }

    fn cases() -> Vec<Case> {
        type Save = fn(&str) -> Vec<u8>;
        let saved: [(&str, Save); 9] = [
            ("UTF-8", |text| text.into()),
            ("UTF-8 with a mark", |text| format!("\u{feff}{text}").into()),
            ("UTF-8 with CRLF", |text| with_crlf(text).into()),
            ("UTF-8 with a mark and CRLF", |text| {
                format!("\u{feff}{}", with_crlf(text)).into()
            }),
            ("Latin-1", latin),
            ("Latin-1 with CRLF", |text| latin(&with_crlf(text))),
            ("UTF-16 with a mark", |text| {
                wide(&format!("\u{feff}{text}"))
            }),
            ("UTF-16 with CRLF", |text| {
                wide(&format!("\u{feff}{}", with_crlf(text)))
            }),
            ("UTF-16 without a mark", wide),
        ];
        let case = |(name, save): (&'static str, fn(&str) -> Vec<u8>)| Case {
            name,
            on_disk: save(PLAIN),
            shown: PLAIN.to_owned(),
            save,
        };
        saved.map(case).into()
    }

    fn stored(on_disk: &[u8], shown: &str, text: &str) -> Result<Vec<u8>, EncodeError> {
        stored_bytes(Path::new("a.txt"), on_disk, shown, text)
    }

    #[test]
    fn changed_text_is_stored_in_the_form_of_its_file() {
        for case in cases() {
            let Case {
                name,
                on_disk,
                shown,
                save,
            } = case;
            let same = stored(&on_disk, &shown, &shown).unwrap();
            assert_eq!(same, on_disk, "{name}");
            for (from, to) in [("maß", "maße\nê"), ("größe\nmaß", "länge"), (PLAIN, "")] {
                let text = shown.replace(from, to);
                let bytes = stored(&on_disk, &shown, &text).unwrap();
                assert_eq!(bytes, save(&text), "{name}: {text}");
                // The editor saves its text, and what it showed before is known still.
                let read = shown_text(Path::new("a.txt"), bytes, &shown).unwrap();
                assert_eq!(read, text, "{name}: {text}");
            }
        }
    }

    #[test]
    fn form_of_a_file_is_told_from_a_text_with_unsaved_changes() {
        for case in cases() {
            let text = PLAIN.replace("maß", "maße\nê");
            let bytes = stored(&case.on_disk, &text, &text).unwrap();
            assert_eq!(bytes, (case.save)(&text), "{}", case.name);
        }
    }

    #[test]
    fn line_ends_and_mark_that_the_editor_shows_are_stored_as_shown() {
        let crlf = "a\r\nb\r\n";
        assert_eq!(stored(crlf.as_bytes(), crlf, "a\nb\n").unwrap(), b"a\nb\n");
        let mixed = b"a\r\nb\nc\r\n";
        // An editor that shows mixed line ends as one kind saves that kind, if it saves.
        for (shown, saved) in [
            ("a\nb\nc\n", "a\r\nB\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
        ] {
            assert_eq!(stored(mixed, shown, shown).unwrap(), mixed);
            let text = shown.replace('b', "B");
            assert_eq!(stored(mixed, shown, &text).unwrap(), saved.as_bytes());
        }
        let marked = "\u{feff}a\n";
        let bytes = stored(marked.as_bytes(), marked, "\u{feff}b\n").unwrap();
        assert_eq!(bytes, "\u{feff}b\n".as_bytes());
    }

    #[test]
    fn declared_encoding_of_a_python_file_counts() {
        let path = Path::new("a.py");
        let on_disk = b"# coding: latin-1\n# \xe9\n";
        let shown = "# coding: latin-1\n# é\n";
        let text = "# coding: latin-1\n# è\n";
        let bytes = stored_bytes(path, on_disk, shown, text).unwrap();
        assert_eq!(bytes, b"# coding: latin-1\n# \xe8\n");
    }

    #[test]
    fn text_is_not_stored_if_the_encoding_lacks_a_character_or_is_unclear() {
        let thai = "größe\n\u{e01}\n";
        let error = stored(&latin(PLAIN), PLAIN, thai).unwrap_err();
        assert!(matches!(
            error,
            EncodeError::OnDisk {
                character: '\u{e01}',
                line: 2,
                ..
            }
        ));
        // Windows-1252 and ISO 8859-15 have the euro sign at different places.
        let error = stored(&latin(PLAIN), PLAIN, "größe\n€\n").unwrap_err();
        assert_eq!(error, EncodeError::Unclear);
        let clear = Encoding::undeclared().find(|one| one.name() == "windows-1252");
        let on_disk = clear.unwrap().encode("größe\n€\n").into_owned();
        let bytes = stored(&on_disk, "größe\n€\n", "1 €\n").unwrap();
        assert_eq!(bytes, b"1 \x80\n");
        // Nothing that the editor shows is in the file.
        for text in ["länge\n", "größe \u{e01}\n"] {
            let error = stored(&latin(PLAIN), text, text).unwrap_err();
            assert_eq!(error, EncodeError::Unclear);
        }
        assert_eq!(stored(&latin(PLAIN), "a\n", "a\n").unwrap(), b"a\n");
    }

    #[test]
    fn invalid_bytes_stay_if_the_text_is_unchanged() {
        let on_disk = b"a\xff\xe9\0\n";
        let shown = String::from_utf8_lossy(on_disk);
        assert_eq!(stored(on_disk, &shown, &shown).unwrap(), on_disk);
    }

    #[test]
    fn file_with_a_private_key_is_not_shown_in_any_encoding() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n";
        let on_disk = wide(&format!("\u{feff}{key}"));
        let read = shown_text(Path::new("a.txt"), on_disk, key);
        assert_eq!(read, Err(DecodeError::PrivateKey));
    }
}

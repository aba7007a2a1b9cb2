//! Recognizes private keys in texts by their armour line, such as `-----BEGIN PRIVATE KEY-----`.
//!
//! An armour line counts in two cases: only blank lines, comments and attributes are before it and a
//! key can follow it, or key material does follow it, wherever the line is. A program that only
//! mentions the words is neither. [`blocks`] finds the material itself, in texts that may be cut.

mod blocks;

pub use blocks::{KeyBlock, key_blocks, key_words};

/// Minimum length of the first word of key material, in characters.
const MATERIAL_LEAST: usize = 16;
/// Maximum number of bytes after an armour line in which its key material begins. Headers can be
/// between them.
const MATERIAL_WITHIN: usize = 4 << 10;
/// Maximum length of the label of an armour line, in bytes.
const LABEL_MOST: usize = 100;
/// The first words of a key file of PuTTY.
const PUTTY: &str = "PuTTY-User-Key-File-";
/// The beginning of a key of age.
const AGE: &str = "AGE-SECRET-KEY-1";
/// Number of characters of a key of age after its beginning.
const AGE_LENGTH: usize = 58;

/// Returns the private keys in a text if the text holds one that may not be shown to a model.
pub fn private_keys(text: &str) -> Vec<KeyBlock> {
    match holds_private_key(text) {
        true => key_blocks(text),
        false => Vec::new(),
    }
}

/// Whether a text contains a private key.
pub(super) fn holds_private_key(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let armours = text.match_indices("PRIVATE KEY");
    let mut armours = armours.filter_map(|(at, _)| Armour::around(text, at));
    let is_first =
        |armour: Armour| is_prelude(armour.before) && armour.is_open() || armour.has_material();
    armours.next().is_some_and(is_first)
        || armours.any(|armour| armour.has_material())
        || holds_putty_key(text)
        || holds_age_key(text)
}

fn holds_age_key(text: &str) -> bool {
    let is_part = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit();
    let mut found = text.match_indices(AGE);
    found.any(|(at, _)| {
        let rest = text[at + AGE.len()..].chars();
        rest.take_while(is_part).take(AGE_LENGTH).count() == AGE_LENGTH
    })
}

fn holds_putty_key(text: &str) -> bool {
    let mut found = text
        .match_indices(PUTTY)
        .filter(|(at, _)| text[at + PUTTY.len()..].starts_with(|c: char| c.is_ascii_digit()));
    let has_next = |(at, _): (usize, &str)| {
        let next = lines(beginning(&text[at..])).nth(1);
        next.is_some_and(|next| bare(&next).starts_with("Encryption:"))
    };
    found
        .next()
        .is_some_and(|first| is_prelude(&text[..first.0]) || has_next(first))
        || found.any(has_next)
}

/// The first line of a private key, or its last line, and the text around it.
struct Armour<'t> {
    before: &'t str,
    /// The text after the line's last dash.
    after: &'t str,
}

impl<'t> Armour<'t> {
    /// Returns the first line of a key whose label ends with the words "PRIVATE KEY" at `at`.
    fn around(text: &'t str, at: usize) -> Option<Self> {
        Self::labelled("BEGIN ", text, at)
    }

    /// Returns the last line of a key whose label ends with the words "PRIVATE KEY" at `at`.
    fn at_end(text: &'t str, at: usize) -> Option<Self> {
        Self::labelled("END ", text, at)
    }

    fn labelled(start: &str, text: &'t str, at: usize) -> Option<Self> {
        let (before, after) = text.split_at(at);
        let is_label = |c: char| c.is_ascii_alphanumeric() || c == ' ';
        let near = last_bytes(before, LABEL_MOST);
        let label = &near[near.trim_end_matches(is_label).len()..];
        let dashed = &before[..before.len() - label.len()];
        let label = label.trim_start();
        let before = dashed.trim_end_matches('-');
        let after = after.strip_prefix("PRIVATE KEY")?;
        let after = after.strip_prefix(" BLOCK").unwrap_or(after);
        let after = after.trim_start_matches(' ');
        let rest = after.trim_start_matches('-');
        let dashes = [dashed.len() - before.len(), after.len() - rest.len()];
        let is_armour = label.starts_with(start) && dashes.iter().all(|count| *count >= 4);
        is_armour.then_some(Armour {
            before,
            after: rest,
        })
    }

    /// Returns the rest of the armour line.
    fn rest(&self) -> String {
        lines(beginning(self.after))
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// Whether the key can go on after the armour line: no string ends there and no sentence goes on.
    fn is_open(&self) -> bool {
        let rest = self.rest();
        let is_word = !rest.starts_with(is_quote) && !rest.contains(char::is_whitespace);
        is_word || rest.contains("-----END ")
    }

    /// Whether the first word after the armour line and its headers is key material. After a closed
    /// string, a name of code is none.
    fn has_material(&self) -> bool {
        let is_closed = self.rest().starts_with(is_quote);
        let is_material = |c: char| {
            c.is_ascii_alphanumeric() || "+/=".contains(c) || !is_closed && "-_".contains(c)
        };
        let lines = lines(beginning(self.after)).filter(|line| !bare(line).is_empty());
        let mut lines = lines.skip_while(|line| !is_closed && is_header(bare(line)));
        lines.next().is_some_and(|line| {
            let mut words = bare(&line).split(|c: char| c.is_whitespace() || is_quote(c));
            let word = words.next().unwrap_or_default();
            word.len() >= MATERIAL_LEAST && word.chars().all(is_material)
        })
    }
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(MATERIAL_WITHIN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn last_bytes(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Splits a text at all line ends, also those that are written as `\n` in strings.
fn lines(text: &str) -> impl Iterator<Item = String> {
    const ENDS: [char; 7] = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    text.split(ENDS).flat_map(|line| {
        let line = line.replace("\\r", "\\n");
        let pieces: Vec<String> = line.split("\\n").map(str::to_owned).collect();
        pieces
    })
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '“' | '”' | '‘' | '’' | '«' | '»')
}

/// Returns a line without the blanks, quotation marks, comment marks and operators around it.
fn bare(line: &str) -> &str {
    line.trim_matches(|c: char| {
        c.is_whitespace() || c.is_control() || is_quote(c) || "#/;*%!<>|+-,()[]{}\\".contains(c)
    })
}

/// Matches headers of a key, such as `Proc-Type: 4,ENCRYPTED` and `Version: 1`.
fn is_header(line: &str) -> bool {
    let name = line.split_once(':').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Whether the text before an armour line holds only blank lines, comments, attributes that
/// `openssl pkcs12` writes, and marks on the armour line itself.
fn is_prelude(before: &str) -> bool {
    const COMMENTS: [&str; 9] = ["#", "//", "/*", "*", ";", "--", "%", "<!--", "REM "];
    const ATTRIBUTES: [&str; 4] = ["Bag Attributes", "Key Attributes", "subject=", "issuer="];
    let mut above: Vec<String> = lines(before).collect();
    let own = above.pop().unwrap_or_default();
    // A string can have a prefix, as in `b"..."`, and a comment a word.
    let is_mark = ["", "b", "r", "u", "f", "rb", "br", "rem"]
        .iter()
        .any(|mark| bare(&own).eq_ignore_ascii_case(mark));
    let mut in_attributes = false;
    is_mark
        && above.iter().all(|line| {
            let text = line.trim_start();
            let starts = |marks: &[&str]| marks.iter().any(|mark| text.starts_with(mark));
            in_attributes |= starts(&ATTRIBUTES);
            let is_attribute = starts(&ATTRIBUTES) || in_attributes && is_indented_attribute(line);
            bare(text).is_empty() || starts(&COMMENTS) || is_attribute
        })
}

/// Matches an indented attribute, such as `    friendlyName: x`.
fn is_indented_attribute(line: &str) -> bool {
    line.starts_with([' ', '\t']) && line.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of an armour line, split so that this file does not hold one.
    fn armour(label: &str) -> String {
        format!("-----BEGIN {label}-----")
    }

    const BODY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";

    #[test]
    fn text_that_begins_with_a_private_key_holds_one() {
        let head = armour("PRIVATE KEY");
        for end in [
            "\n", "\r", "\r\n", "\u{2028}", "\u{2029}", "\u{85}", "\u{c}", "\\n", "\\r\\n",
            "\\\\n", " ",
        ] {
            for before in [
                "",
                "\u{feff}",
                "\r",
                "\n\n",
                "# ",
                "// ",
                "; ",
                "-- ",
                "\"",
                "'",
                "b'",
                "> ",
                "\"\"\"\\\n",
                "# the key of the server\r# keep it\r",
                "Bag Attributes\n    friendlyName: x\n    localKeyID: 01 02 \nKey Attributes: <No Attributes>\n",
            ] {
                for body in ["hunter2", BODY] {
                    let text = format!("{before}{head}{end}{body}{end}");
                    assert!(holds_private_key(&text), "{text:?}");
                }
            }
        }
        for text in [
            "PuTTY-User-Key-File-3: ssh-rsa\rEncryption: none\r",
            "# a key\nPuTTY-User-Key-File-2: ssh-rsa\n",
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nhunter2\n",
        ] {
            assert!(holds_private_key(text), "{text:?}");
        }
    }

    #[test]
    fn private_key_with_its_material_is_recognized_anywhere_in_a_text() {
        let cases = [
            "x = 1\nKEY = \"\"\"{}\n{BODY}\n",
            "KEY={}\\n{BODY}\\n",
            "export KEY=\"{}\r{BODY}\r\"",
            "{\"type\": \"x\", \"private_key\": \"{}\\n{BODY}\\n\"}",
            "keys:\n  - name: a\n    key: |\n      {}\n      {BODY}\n",
            "KEY = (\n    \"{}\"\n    \"{BODY}\"\n)\n",
            "const KEY = '{}\\n' +\n  '{BODY}\\n'\n",
            "@@ -0,0 +1 @@\n+{}\n+{BODY}\n",
            "x\n{}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n{BODY}\n",
            "x = \"\"\"{}\n\nabc-def_ghi-jkl_mno\n",
        ];
        for case in cases {
            for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
                let text = case.replace("{}", &armour(label)).replace("{BODY}", BODY);
                assert!(holds_private_key(&text), "{text:?}");
            }
        }
        let putty = "x = 1\nKEY = '''PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\n'''\n";
        assert!(holds_private_key(putty));
    }

    #[test]
    fn text_that_only_mentions_an_armour_line_holds_no_private_key() {
        let cases = [
            "KEY = '{}'\n",
            "# {} marks a key in this file\n",
            "if text.startswith('{}'):\n    return parse_private_key_of(text)\n",
            "HEADS = [\n    \"{}\",\n    \"x\",\n]\n",
            "HEAD = \"{}\"\nFOOTERS_OF_PRIVATE_KEYS = 1\n",
            "HEAD = \"{}\\n\"\n\n\ndef is_private_key_text(text):\n    pass\n",
            "Paste it:\n\n    {}\n    ...\n",
            "Paste it:\n\n    {}\n    MIIEpAIBAAKCAQEA...\n",
            "def test():\n    key = '{}\\nhunter2\\n'\n",
            "RE = re.compile(r'{}(.*?)-----END', re.DOTALL)\n",
            "head: '{}'\nname: x\n- MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
        ];
        for case in cases {
            let text = case.replace("{}", &armour("PRIVATE KEY"));
            assert!(!holds_private_key(&text), "{text:?}");
        }
        for label in ["PUBLIC KEY", "CERTIFICATE"] {
            let text = format!("{}\n{BODY}\n", armour(label));
            assert!(!holds_private_key(&text), "{text:?}");
        }
        assert!(!holds_private_key("MARK = 'PuTTY-User-Key-File-2: x'\n"));
    }
}

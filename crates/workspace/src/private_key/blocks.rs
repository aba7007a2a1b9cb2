//! Finds the material of private keys in the output of programs. There it can be cut, indented, quoted,
//! or have a prefix on each line, and line ends can be escaped.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{AGE, Armour, MATERIAL_LEAST, MATERIAL_WITHIN, is_quote, last_bytes};

/// Maximum number of bytes before the last line of a key in which its material is looked for, if its
/// first line is missing.
const BEFORE_END: usize = 64 << 10;
/// Maximum number of short words, such as the last line and the checksum, at the end of the material.
const SHORT_WORDS: usize = 2;
/// The line before the secret part of a key of PuTTY.
const PUTTY_SECRET: &str = "Private-Lines:";
/// Base64 of `-----BEGIN ` and of `---- BEGIN `, without the characters that depend on what follows.
const ENCODED_BEGIN: [&str; 2] = ["LS0tLS1CRUdJTi", "LS0tLSBCRUdJTi"];
/// Length of the longest encoded armour line that is looked at, in characters.
const ENCODED_ARMOUR: usize = 64;

/// One private key in a text, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBlock {
    /// The key with its armour lines.
    pub whole: Range<usize>,
    /// The words of the key's material, in the order of the text. Words contain no line end, no escape
    /// and no quotation mark.
    pub words: Vec<Range<usize>>,
}

/// Returns the private keys in a text, which may be cut at any place: all key material next to an armour
/// line, the secret lines of PuTTY keys, keys of age, and armoured keys in base64.
pub fn key_blocks(text: &str) -> Vec<KeyBlock> {
    let mut blocks = Vec::new();
    // No text is searched twice from markers of the same kind.
    let mut read_until = 0;
    for (at, _) in text.match_indices("PRIVATE KEY") {
        if let Some(armour) = Armour::around(text, at) {
            let block = material_after(text, armour.before.len(), text.len() - armour.after.len());
            read_until = block.whole.end;
            blocks.push(block);
        } else if let Some(armour) = Armour::at_end(text, at)
            && at >= read_until
        {
            let end = armour.before.len();
            let words = material_before(text, read_until.min(end), end);
            let start = words.first().map_or(at, |word| word.start);
            read_until = text.len() - armour.after.len();
            let whole = start..read_until;
            blocks.push(KeyBlock { whole, words });
        }
    }
    blocks.extend(from_markers(text, PUTTY_SECRET, |at| {
        let mut scanner = Scanner::new(text, at);
        scanner.skip_line();
        material_after(text, at, scanner.at)
    }));
    blocks.extend(from_markers(text, AGE, |at| {
        let whole = Scanner::new(text, at).word();
        let is_long = whole.len() > AGE.len() + MATERIAL_LEAST;
        let words = is_long.then(|| whole.clone()).into_iter().collect();
        KeyBlock { whole, words }
    }));
    for start in ENCODED_BEGIN {
        blocks.extend(from_markers(text, start, |at| {
            let word = Scanner::new(text, at).word();
            match is_encoded_armour(&text[word.clone()]) {
                true => material_after(text, at, at),
                false => KeyBlock {
                    whole: word,
                    words: Vec::new(),
                },
            }
        }));
    }
    blocks.retain(|block| !block.words.is_empty());
    blocks.sort_by_key(|block| block.whole.start);
    blocks
}

/// Returns the blocks at all markers that are not inside the block before.
fn from_markers(text: &str, marker: &str, block: impl Fn(usize) -> KeyBlock) -> Vec<KeyBlock> {
    let mut blocks: Vec<KeyBlock> = Vec::new();
    for (at, _) in text.match_indices(marker) {
        if blocks.last().is_none_or(|last| last.whole.end <= at) {
            blocks.push(block(at));
        }
    }
    blocks
}

/// Returns the words of a text that can be key material: runs of the characters of base64, in both of its
/// alphabets, of at least `least` characters.
pub fn key_words(text: &str, least: usize) -> impl Iterator<Item = Range<usize>> {
    let mut scanner = Scanner::new(text, 0);
    let tokens = std::iter::from_fn(move || scanner.next());
    tokens.filter_map(move |token| match token {
        Token::Word(word) if word.len() >= least => Some(word),
        Token::Word(_) | Token::Gap | Token::LineEnd | Token::Armour | Token::Other => None,
    })
}

/// Whether base64 decodes to an armour line of a private key.
fn is_encoded_armour(word: &str) -> bool {
    let whole_groups = word.len().min(ENCODED_ARMOUR) & !3;
    let decoded = STANDARD.decode(&word[..whole_groups]);
    decoded.is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("PRIVATE KEY"))
}

/// Reads the material that begins at `from`, of a key whose armour begins at `start`.
fn material_after(text: &str, start: usize, from: usize) -> KeyBlock {
    let mut scanner = Scanner::new(text, from);
    // After a closed string, a name of code is no material.
    let is_closed = text[from..].starts_with(is_quote);
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut short = Vec::new();
    let mut end = from;
    let mut is_line_start = true;
    while let Some(token) = scanner.next() {
        match token {
            Token::Word(word) => {
                let is_first = words.is_empty();
                let is_header = is_line_start && text[word.end..].starts_with(':');
                if is_line_start && is_mark(&text[word.clone()]) {
                    continue;
                } else if is_header && is_first && !is_closed {
                    scanner.skip_line();
                } else if is_material(text, &word, is_first && !is_closed) {
                    words.append(&mut short);
                    end = word.end;
                    words.push(word);
                } else if is_header || is_first || short.len() == SHORT_WORDS {
                    break;
                } else {
                    short.push(word);
                }
                is_line_start = false;
            }
            Token::LineEnd => is_line_start = true,
            Token::Armour => {
                words.append(&mut short);
                end = scanner.at;
                break;
            }
            Token::Gap => {}
            Token::Other => break,
        }
        if scanner.at > end.max(from) + MATERIAL_WITHIN {
            break;
        }
    }
    let whole = start..end;
    KeyBlock { whole, words }
}

/// Returns the words of the material between `start` and `end`, of a key that ends there and whose
/// beginning is missing.
fn material_before(text: &str, start: usize, end: usize) -> Vec<Range<usize>> {
    let from = end - last_bytes(&text[start..end], BEFORE_END).len();
    let mut scanner = Scanner::new(&text[..end], from);
    let tokens: Vec<Token> = std::iter::from_fn(|| scanner.next()).collect();
    let mut words = Vec::new();
    let mut short = Vec::new();
    for token in tokens.into_iter().rev() {
        match token {
            Token::Word(word) if is_material(text, &word, false) => {
                words.append(&mut short);
                words.push(word);
            }
            Token::Word(word) if is_mark(&text[word.clone()]) => {}
            Token::Word(word) if short.len() < SHORT_WORDS => short.push(word),
            Token::Word(_) | Token::Armour | Token::Other => break,
            Token::LineEnd | Token::Gap => {}
        }
    }
    words.reverse();
    words
}

/// Whether a word is key material and no name. A text that begins directly after an armour line can be
/// material without a digit.
fn is_material(text: &str, word: &Range<usize>, is_after_armour: bool) -> bool {
    let rest = &text[word.end..];
    let goes_on = rest.starts_with([':', '.', '@']) && !rest.starts_with("...");
    let is_encoded = |c: char| c.is_ascii_digit() || "+/".contains(c);
    word.len() >= MATERIAL_LEAST
        && !goes_on
        && (is_after_armour || text[word.clone()].contains(is_encoded))
}

/// Whether a short word at the start of a line is a mark of pytest or of a string, or a line number.
fn is_mark(word: &str) -> bool {
    let is_number = word.len() <= 5 && word.chars().all(|c| c.is_ascii_digit());
    is_number || ["E", "b", "r", "u", "f", "rb", "br"].contains(&word)
}

/// A part of a text that can contain a key.
enum Token {
    /// A run of the characters of base64.
    Word(Range<usize>),
    /// Blanks, marks and escapes that can be between two words of a key.
    Gap,
    /// A line end, also an escaped one.
    LineEnd,
    /// An armour line.
    Armour,
    /// A character that cannot be inside a key.
    Other,
}

/// Splits a text into tokens.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, at: usize) -> Self {
        Scanner { text, at }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<Token> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        if is_armour(rest) {
            self.at = self.after_armour();
            return Some(Token::Armour);
        }
        if is_of_word(first) {
            let word = self.word();
            self.at = word.end;
            let is_letter = |c: char| c.is_ascii_alphanumeric();
            return Some(match self.text[word.clone()].contains(is_letter) {
                true => Token::Word(word),
                false => Token::Gap,
            });
        }
        self.at += first.len_utf8();
        Some(match first {
            '\\' => self.escape(),
            '\u{1b}' => self.colour(),
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Token::LineEnd,
            '.' if rest.starts_with("...") => {
                self.at += 2;
                Token::Gap
            }
            '…' => Token::Gap,
            c if c.is_whitespace() || c.is_control() || is_quote(c) => Token::Gap,
            c if "#;*%!<>|,:()[]{}?^~".contains(c) => Token::Gap,
            _ => Token::Other,
        })
    }

    /// Returns the run of characters of base64 here. It ends before an armour line.
    fn word(&self) -> Range<usize> {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        let mut after = 0;
        while let Some(dashes) = rest[after..end].find("----") {
            let dashes = after + dashes;
            if is_armour(&rest[dashes..]) {
                return self.at..self.at + dashes;
            }
            after = rest.len() - rest[dashes..].trim_start_matches('-').len();
        }
        self.at..self.at + end
    }

    /// Reads an escape after its first backslash. Text that is escaped twice has several backslashes.
    fn escape(&mut self) -> Token {
        self.at += self.rest().len() - self.rest().trim_start_matches('\\').len();
        let rest = self.rest();
        let digits = |count: usize| {
            let digits = rest.get(1..=count)?;
            u32::from_str_radix(digits, 16).ok()
        };
        let (length, code) = match rest.chars().next() {
            Some('n' | 'r') => (1, Some(0xa)),
            Some('t') => (1, None),
            Some('x') if digits(2).is_some() => (3, digits(2)),
            Some('u') if digits(4).is_some() => (5, digits(4)),
            Some(_) | None => (0, None),
        };
        self.at += length;
        match code {
            Some(0xa | 0xd) => Token::LineEnd,
            Some(0x1b) => self.colour(),
            Some(_) | None => Token::Gap,
        }
    }

    /// Reads a colour sequence of a terminal after its escape character.
    fn colour(&mut self) -> Token {
        if let Some(parameters) = self.rest().strip_prefix('[') {
            let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';');
            let end = end.filter(|end| parameters[*end..].starts_with('m'));
            self.at += end.map_or(0, |end| end + 2);
        }
        Token::Gap
    }

    fn skip_line(&mut self) {
        while !is_armour(self.rest()) {
            if let Some(Token::LineEnd) | None = self.next() {
                return;
            }
        }
    }

    /// Returns the offset after the last dash of the armour line here.
    fn after_armour(&self) -> usize {
        let rest = self.rest();
        let label = rest.trim_start_matches('-');
        let is_label = |c: char| c.is_ascii_alphanumeric() || c == ' ';
        let end = label.trim_start_matches(is_label).trim_start_matches('-');
        self.at + (rest.len() - end.len())
    }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=-_".contains(c)
}

/// Whether a text begins with the dashes and the first word of an armour line.
fn is_armour(text: &str) -> bool {
    let label = text.trim_start_matches('-');
    let has_dashes = text.len() - label.len() >= 4;
    let label = label.trim_start();
    has_dashes && (label.starts_with("BEGIN ") || label.starts_with("END "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a key, as long as in most key files. The last one is shorter.
    const BODY: [&str; 4] = [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7Vq3R9x1tYz0a",
        "p2LkQe8sD4nUuWf6GgJhB5Xy1cRmT7oKvZrAI3wNdEbSlHjPqFtCyMgOX9aVsQ0k",
        "qUeBzW5iD2LrNfYh8TgXcJ4mPvSoK6aHwR1bEyCtGpMuF7xZsQnVdIk3jAl9OeT0",
        "zK9wQw==",
    ];

    /// Returns an armour line, put together so that this file does not contain one.
    fn armour(start: &str, label: &str) -> String {
        format!("-----{start} {label}-----")
    }

    /// Returns a text in which the words of all keys are replaced by `*`.
    fn masked(text: &str) -> String {
        let mut masked = text.to_owned();
        let words = key_blocks(text).into_iter().flat_map(|block| block.words);
        let mut words: Vec<Range<usize>> = words.collect();
        words.sort_by_key(|word| word.start);
        for word in words.into_iter().rev() {
            masked.replace_range(word, "*");
        }
        masked
    }

    #[test]
    fn material_is_found_in_every_form_in_which_a_test_prints_it() {
        let forms = [
            "{BEGIN}\n{0}\n{1}\n{2}\n{3}\n{END}\n",
            "{BEGIN}\r\n{0}\r\n{1}\r\n{2}\r\n{3}\r\n{END}\r\n",
            "{BEGIN}{0}{1}{2}{3}{END}",
            "{BEGIN} {0} {1} {2} {3} {END}",
            "E   {BEGIN}\nE   {0}\nE   {1}\nE   {2}\nE   {3}\nE   {END}\n",
            "E       + {BEGIN}\nE       + {0}\nE       + {1}\nE       - {2}\nE       ? {3}\n",
            "AssertionError: assert '{BEGIN}\\n{0}\\n{1}\\n{2}\\n{3}\\n{END}\\n' == ''",
            "\"longrepr\": \"E '{BEGIN}\\\\n{0}\\\\n{1}\\\\n{2}\\\\n{3}\\\\n{END}\\\\n'\\n\", \"a\": 1",
            "b'{BEGIN}\\r\\n{0}\\r\\n{1}\\r\\n{2}\\r\\n{3}\\r\\n{END}'",
            "['{BEGIN}', '{0}', '{1}', '{2}', '{3}', '{END}']",
            "1: {BEGIN}\n2: {0}\n3: {1}\n4: {2}\n5: {3}\n6: {END}\n",
            "\u{1b}[31mE {BEGIN}\u{1b}[0m\n\u{1b}[1m\u{1b}[31mE {0}\u{1b}[0m\n{1}\n{2}\n{3}\n{END}",
            "\"\\u001b[31mE {BEGIN}\\u001b[0m\\n\\u001b[31mE {0}\\u001b[0m\\n{1}\\n{2}\\n{3}\\n{END}\"",
            "{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n{0}\n{1}\n{2}\n{3}\n{END}\n",
            "x = '{BEGIN}\\n{0}...{2}\\n{3}\\n{END}\\n'",
        ];
        for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
            for form in forms {
                let mut text = form.replace("{BEGIN}", &armour("BEGIN", label));
                text = text.replace("{END}", &armour("END", label));
                for (number, line) in BODY.iter().enumerate() {
                    text = text.replace(&format!("{{{number}}}"), line);
                }
                let shown = masked(&text);
                let is_last = |line: &&str| line.len() < MATERIAL_LEAST;
                for line in BODY {
                    let without_end = is_last(&line) && !form.contains("{END}");
                    assert!(without_end || !shown.contains(line), "{shown:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_around_the_material_stays() {
        let (begin, end) = (armour("BEGIN", "PRIVATE KEY"), armour("END", "PRIVATE KEY"));
        let [one, two, ..] = BODY;
        let cases = [
            // The output is cut after a line of the key.
            (
                format!("{begin}\n{one}\n{two}\n\ntest_p.py:3: AssertionError\n"),
                format!("{begin}\n*\n*\n\ntest_p.py:3: AssertionError\n"),
            ),
            (
                format!("{begin}\n{one}\n/home/u/project/tests/test_p.py:3: AssertionError\n"),
                format!("{begin}\n*\n/home/u/project/tests/test_p.py:3: AssertionError\n"),
            ),
            (
                format!("{begin}\n{one}\nE   ModuleNotFoundError: No module\n"),
                format!("{begin}\n*\nE   ModuleNotFoundError: No module\n"),
            ),
            // The beginning is missing.
            (
                format!("assert 'x' == '{one}\\n{two}\\nzK9w==\\n{end}\\n'\n"),
                format!("assert 'x' == '*\\n*\\n*\\n{end}\\n'\n"),
            ),
            (
                format!("E   tail:\nE   {two}\nE   {end}\n"),
                format!("E   tail:\nE   *\nE   {end}\n"),
            ),
            (
                format!("{{\"private_key\": \"{begin}\\n{one}\", \"client\": \"x@y\"}}"),
                format!("{{\"private_key\": \"{begin}\\n*\", \"client\": \"x@y\"}}"),
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(masked(&text), wanted);
        }
    }

    #[test]
    fn text_about_keys_contains_no_material() {
        let (begin, end) = (armour("BEGIN", "PRIVATE KEY"), armour("END", "PRIVATE KEY"));
        for text in [
            format!(
                ">       assert text.startswith('{begin}')\nE       AssertionError: assert False\n"
            ),
            format!("    HEAD = '{begin}'\n    FOOTERS_OF_PRIVATE_KEYS = 1\n"),
            format!("    pem = '{begin}' + body_of_private_key + '{end}'\n"),
            format!("    re.compile(r'{begin}(.*?){end}')\n"),
            format!("{begin}\n...\n{end}\n"),
            format!("no key: {begin}\n=================== FAILURES ===================\n"),
            format!(
                "{}\n{}\n{}\n",
                armour("BEGIN", "PUBLIC KEY"),
                BODY[0],
                armour("END", "PUBLIC KEY")
            ),
            format!(
                "{}\n{}\n{}\n",
                armour("BEGIN", "CERTIFICATE"),
                BODY[0],
                armour("END", "CERTIFICATE")
            ),
        ] {
            assert_eq!(key_blocks(&text), [], "{text:?}");
        }
    }

    #[test]
    fn keys_of_putty_and_age_and_keys_in_base64_are_found() {
        let putty = format!(
            "Public-Lines: 1\n{}\nPrivate-Lines: 2\n{}\n{}\nPrivate-MAC: 0123456789abcdef0123\n",
            BODY[0], BODY[1], BODY[2]
        );
        let shown = putty.replace(BODY[1], "*").replace(BODY[2], "*");
        assert_eq!(masked(&putty), shown);
        let age = format!("AGE-SECRET-{}1{}", "KEY-", "QP".repeat(29));
        assert_eq!(masked(&format!("key: {age}\n")), "key: *\n");
        // Base64 of the beginning of a key, as in a secret of Kubernetes.
        let encoded = "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV2UUlCQURBTkJna3Foa2lH";
        assert_eq!(
            masked(&format!("  tls.key: {encoded}\n  a: b\n")),
            "  tls.key: *\n  a: b\n"
        );
        let public = "LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUlJQklqQU5CZ2txaGtpRzl3MEJB";
        assert_eq!(key_blocks(public), []);
    }

    #[test]
    fn hostile_output_is_read_in_linear_time() {
        // Takes longer than a test may take if any of these texts is read again from each marker.
        for part in [
            "PRIVATE KEY ",
            "-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----a:",
            "Private-Lines: ",
            AGE,
            ENCODED_BEGIN[0],
            "-",
            "---- ",
            "\\",
        ] {
            key_blocks(&part.repeat((1 << 19) / part.len()));
        }
    }
}

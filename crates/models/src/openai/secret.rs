//! Masks API keys in texts that are shown or stored, because a server may repeat the key in an
//! error message.

use std::ops::Range;

/// The text that replaces a key.
const MASK: &str = "[key]";
/// Minimum length of a key to be masked. A shorter key is a placeholder (`none`, `test`), and
/// masking it would garble other words.
const SHORTEST: usize = 6;
/// Minimum length of a key's prefix to be masked as well.
const PREFIX: usize = 12;
/// Maximum levels of escaping to undo: a server may quote a text that itself quotes the key.
const LAYERS: usize = 3;

/// The keys to mask.
#[derive(Clone, Default)]
pub(super) struct SecretMasker(Vec<Vec<char>>);

/// A character of a text after unescaping, and its byte range in the original text.
struct DecodedChar {
    char: char,
    bytes: Range<usize>,
}

impl SecretMasker {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let kept = secrets.into_iter().map(str::trim);
        let kept = kept.filter(|secret| secret.len() >= SHORTEST);
        SecretMasker(kept.map(|secret| secret.chars().collect()).collect())
    }

    /// Returns the text with all keys masked, even if they are percent-encoded or escaped as JSON
    /// or HTML.
    pub fn mask(&self, text: &str) -> String {
        let mut found = Vec::new();
        let mut decoded: Vec<DecodedChar> = text
            .char_indices()
            .map(|(at, char)| DecodedChar {
                char,
                bytes: at..at + char.len_utf8(),
            })
            .collect();
        for _ in 0..=LAYERS {
            for secret in &self.0 {
                occurrences(&decoded, secret, &mut found);
            }
            decoded = unescaped(decoded);
        }
        found.sort_by_key(|range| range.start);
        let mut masked = String::with_capacity(text.len());
        let mut end = 0;
        for range in found {
            if range.start >= end {
                masked.push_str(&text[end..range.start]);
                masked.push_str(MASK);
            }
            end = end.max(range.end);
        }
        masked.push_str(&text[end..]);
        masked
    }
}

/// Finds the ranges of a secret, or of a long prefix of it, in a text.
fn occurrences(text: &[DecodedChar], secret: &[char], found: &mut Vec<Range<usize>>) {
    let enough = secret.len().min(PREFIX);
    let mut at = 0;
    while at < text.len() {
        let same = |(one, other): &(&DecodedChar, &char)| one.char.eq_ignore_ascii_case(other);
        let matching = text[at..].iter().zip(secret).take_while(same).count();
        if matching >= enough {
            found.push(text[at].bytes.start..text[at + matching - 1].bytes.end);
            at += matching;
        } else {
            at += 1;
        }
    }
}

/// Undoes one level of escaping.
fn unescaped(text: Vec<DecodedChar>) -> Vec<DecodedChar> {
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let (char, length) = escape(&text[at..]).unwrap_or((text[at].char, 1));
        let bytes = text[at].bytes.start..text[at + length - 1].bytes.end;
        result.push(DecodedChar { char, bytes });
        at += length;
    }
    result
}

/// Decodes an escape at the start of a text. Returns the character and the escape's length.
fn escape(text: &[DecodedChar]) -> Option<(char, usize)> {
    /// Length of the longest escape: `&#x10FFFF;`.
    const MOST: usize = 10;
    const NAMED: [(&str, char); 9] = [
        ("&amp;", '&'),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&plus;", '+'),
        ("&sol;", '/'),
        ("&equals;", '='),
        ("&lowbar;", '_'),
    ];
    let start: String = text.iter().take(MOST).map(|one| one.char).collect();
    let fixed = |prefix: &str, digits: usize| {
        let digits = start.strip_prefix(prefix)?.get(..digits)?;
        let char = number(digits, 16)?;
        Some((char, prefix.len() + digits.len()))
    };
    let ended = |prefix: &str, end: char, radix: u32| {
        let (digits, _) = start.strip_prefix(prefix)?.split_once(end)?;
        let char = number(digits, radix)?;
        Some((char, prefix.len() + digits.len() + 1))
    };
    match start.chars().next()? {
        '%' => fixed("%", 2),
        '&' => ended("&#x", ';', 16)
            .or_else(|| ended("&#X", ';', 16))
            .or_else(|| ended("&#", ';', 10))
            .or_else(|| {
                let mut named = NAMED.iter().filter(|(name, _)| start.starts_with(name));
                named.next().map(|(name, char)| (*char, name.len()))
            }),
        '\\' => fixed("\\u", 4)
            .or_else(|| fixed("\\x", 2))
            .or_else(|| ended("\\u{", '}', 16))
            .or_else(|| match start.chars().nth(1)? {
                escaped @ ('\\' | '/' | '"') => Some((escaped, 2)),
                _ => None,
            }),
        _ => None,
    }
}

fn number(digits: &str, radix: u32) -> Option<char> {
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    char::from_u32(
        u32::from_str_radix(digits, radix)
            .ok()
            .filter(|_| is_number)?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-Ab/12+cd=EF&56";

    fn masked(text: &str) -> String {
        SecretMasker::new([KEY]).mask(text)
    }

    #[test]
    fn api_key_is_masked_in_every_escaped_form() {
        let every = |form: fn(char) -> String| KEY.chars().map(form).collect::<String>();
        let forms = [
            KEY.to_owned(),
            KEY.to_lowercase(),
            "sk-Ab%2F12%2Bcd%3DEF%2656".to_owned(),
            "sk-Ab%252F12%252Bcd%253DEF%252656".to_owned(),
            "sk-Ab\\/12\\u002bcd\\x3dEF&amp;56".to_owned(),
            "sk-Ab&sol;12&plus;cd&equals;EF&amp;56".to_owned(),
            every(|char| format!("%{:02X}", u32::from(char))),
            every(|char| format!("\\u{:04x}", u32::from(char))),
            every(|char| format!("\\\\u{:04x}", u32::from(char))),
            every(|char| format!("\\u{{{:x}}}", u32::from(char))),
            every(|char| format!("&#{};", u32::from(char))),
            every(|char| format!("&#x{:x};", u32::from(char))),
        ];
        for form in forms {
            let said = masked(&format!("wrong key {form}, try another"));
            assert_eq!(said, "wrong key [key], try another", "{form}");
        }
    }

    #[test]
    fn api_key_with_the_quotes_and_brackets_of_html_is_masked() {
        let masker = SecretMasker::new(["k<e>y\"a'bcd"]);
        let said = masker.mask("wrong: k&lt;e&gt;y&quot;a&apos;bcd.");
        assert_eq!(said, "wrong: [key].");
    }

    #[test]
    fn truncated_api_key_is_masked() {
        assert_eq!(masked("wrong: sk-Ab/12+cd=E"), "wrong: [key]");
        assert_eq!(masked("wrong: sk-Ab/12+cd=*** x"), "wrong: [key]*** x");
        assert_eq!(masked("keys begin with sk-"), "keys begin with sk-");
    }

    #[test]
    fn masking_keeps_texts_without_a_key() {
        for text in ["", "ä 100% \\u12 &#; &#x110000; \\", "%zz&amp;%4"] {
            assert_eq!(masked(text), text);
        }
        assert_eq!(
            SecretMasker::new(["none", ""]).mask("there is none"),
            "there is none"
        );
    }
}

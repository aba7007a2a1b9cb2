//! Reads JSON that holds the escape of a lone surrogate, such as `\\ud800`: half of a character,
//! which no text can hold. Models and servers that cut an answer between two halves write it.

use serde_json::Value;

/// Parses a JSON text. Each lone surrogate becomes U+FFFD, and a warning says so.
///
/// # Errors
/// The text is no JSON for another reason.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| {
        let replaced = without_lone_surrogates(text).ok_or(error)?;
        let value = serde_json::from_str(&replaced)?;
        tracing::warn!(
            "the model's answer holds half of a character (a lone surrogate); it is replaced by U+FFFD"
        );
        Ok(value)
    })
}

/// Replaces the escapes of lone surrogates. Returns `None` if the text has none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let mut replaced = String::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match (unit(&text[at..]), text.get(at + 6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                replaced.push_str(&text[copied..at]);
                replaced.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            (Some(_), _) => at += 6,
            // Another escape: the next character belongs to it.
            (None, _) => {
                let next = text[at + 1..].chars().next();
                at += 1 + next.map_or(0, char::len_utf8);
            }
        }
    }
    replaced.push_str(&text[copied..]);
    (copied > 0).then_some(replaced)
}

/// Returns the code unit of an escape such as `\\ud800` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogate_becomes_a_replacement_character() {
        for (text, expected) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""\uDC00\uD83D""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\\\ud800""#, "\\\u{fffd}"),
            (r#""\\ud800\ud800\u0041é""#, "\\ud800\u{fffd}Aé"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
        ] {
            assert_eq!(parse(text).unwrap(), Value::from(expected), "{text}");
        }
        for text in [r#""\ud8""#, r#""\ud800"#, r#""\"#, "{", r#""\u12é4""#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

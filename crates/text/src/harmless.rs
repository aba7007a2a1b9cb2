//! Escapes untrusted text for display: characters that control a terminal or disguise the text are
//! escaped.

use super::invisible::{invisible, visible};

/// Returns whether a character can disguise text: controls, line separators, and characters that
/// change the text direction.
pub fn is_deceptive(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a file name is displayed as it is: no character in it is invisible or disguises
/// the text.
pub fn is_plain_name(name: &str) -> bool {
    let is_odd = |char| is_deceptive(char) || char == '\u{feff}';
    !name.contains(is_odd) && invisible(name).next().is_none()
}

/// Returns one line of text with deceptive and invisible characters escaped. A tab becomes four
/// spaces; the line break at the end is removed.
pub fn harmless(text: &str) -> String {
    let line = text.trim_end_matches(['\r', '\n']).replace('\t', "    ");
    // `visible` escapes every character for which `is_deceptive` returns true, too.
    visible(&line).replace(['\n', '\r'], "")
}

/// Returns a JSON text with characters that disguise text on a screen as `\\u` escapes: controls, line
/// separators, and characters that change the text direction. The JSON has the same meaning.
pub fn harmless_json(json: &str) -> String {
    // Outside of strings, JSON has no such characters but line breaks, and in strings these are
    // escaped already.
    let is_odd = |c: char| {
        let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}');
        c != '\n' && (is_deceptive(c) || is_mark)
    };
    let mut shown = String::with_capacity(json.len());
    for char in json.chars() {
        match is_odd(char) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(char))),
            false => shown.push(char),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_an_invisible_character_is_not_plain() {
        let odd = [
            "a\nb",
            "a\u{202e}b",
            "setup.py\u{200b}",
            "\u{feff}a.py",
            "a\u{200d}.py",
            "\t",
        ];
        for name in odd {
            assert!(!is_plain_name(name), "{name:?}");
        }
        for name in ["a b.py", "ä🙂.py", "שלום.py", "👩\u{200d}💻.md"] {
            assert!(is_plain_name(name), "{name:?}");
        }
    }

    #[test]
    fn json_has_escapes_for_characters_that_disguise_text() {
        let value = "a\u{9b}2J\u{7f}\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}\u{85}ä🙂\u{200d}\n\t";
        let json = format!("{{\n  \"a\": {value:?}\n}}");
        // The form in which `serde_json` writes the text.
        let json = json.replace(
            &format!("{value:?}"),
            &format!("\"{}\"", value.replace('\n', "\\n").replace('\t', "\\t")),
        );
        let expected = "{\n  \"a\": \"a\\u009b2J\\u007f\\u202eb\\u2066\\u200f\\u061c\\u2028\\u0085ä🙂\u{200d}\\n\\t\"\n}";
        assert_eq!(harmless_json(&json), expected);
    }

    #[test]
    fn terminal_and_direction_controls_are_escaped() {
        let text = "a\x1b[31mb\u{9b}2J\u{202e}gpj.\u{2066}c\u{200b}\r\td\u{2028}e\r\n";
        let shown = "a\\u{1b}[31mb\\u{9b}2J\\u{202e}gpj.\\u{2066}c\\u{200b}\\u{d}    d\\u{2028}e";
        assert_eq!(harmless(text), shown);
        assert_eq!(harmless("ä 🙂 שלום"), "ä 🙂 שלום");
    }

    #[test]
    fn every_deceptive_character_is_escaped() {
        let all = (0..=0x10_ffff).filter_map(char::from_u32);
        for char in all.filter(|char| is_deceptive(*char)) {
            assert!(!harmless(&format!("a{char}b")).contains(char), "{char:?}");
        }
        for char in ['\x1b', '\n', '\u{9b}', '\u{2028}', '\u{202e}', '\u{2066}'] {
            assert!(is_deceptive(char), "{char:?}");
        }
        for char in ['a', ' ', '\u{e9}', '\u{2010}', '\u{1f642}'] {
            assert!(!is_deceptive(char), "{char:?}");
        }
    }
}

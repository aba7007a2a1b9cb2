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

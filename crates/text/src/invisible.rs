//! Detection of invisible characters.

/// Returns whether a character that follows `before` is invisible: controls other than line breaks
/// and tabs, characters that change the text direction, zero-width characters, tags, and variation
/// selectors and joiners that do not follow a character that accepts them. Emoji and several
/// scripts need joiners and variation selectors.
fn is_invisible(before: Option<char>, char: char) -> bool {
    match char {
        '\n' | '\t' | '\r' => false,
        '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            before.is_none_or(|before| before.is_ascii() || before.is_whitespace())
        }
        '\u{ad}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => char.is_control(),
    }
}

/// Returns the invisible characters of a text with their byte offsets. A carriage return counts
/// only if no line feed follows. A byte order mark at the start of the text and the variation
/// selector of a keycap emoji do not count.
pub fn invisible(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        while let Some((at, char)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            let is_mark = at == 0 && char == '\u{feff}';
            let is_keycap = char == '\u{fe0f}' && next == Some('\u{20e3}');
            // Python ends a line at a lone carriage return, but a diff does not show a new line.
            let is_lone_return = char == '\r' && next != Some('\n');
            let found = is_lone_return || (is_invisible(before, char) && !is_mark && !is_keycap);
            before = Some(char);
            if found {
                return Some((at, char));
            }
        }
        None
    })
}

/// Returns the text with invisible characters escaped, for example as `\u{202e}`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for (at, char) in invisible(text) {
        shown.push_str(&text[from..at]);
        shown.extend(char.escape_unicode());
        from = at + char.len_utf8();
    }
    shown.push_str(&text[from..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        let rows = [
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\x1b[31mb\0\u{9b}", "a\\u{1b}[31mb\\u{0}\\u{9b}"),
            (
                "x\u{200b}\u{2066}\u{feff}y",
                "x\\u{200b}\\u{2066}\\u{feff}y",
            ),
            ("is_admin\u{200d}", "is_admin\\u{200d}"),
            ("# x\ros.system(y)", "# x\\u{d}os.system(y)"),
            ("a\u{fe01}\u{e0041}", "a\\u{fe01}\\u{e0041}"),
            // Only a variation selector makes the combining keycap.
            ("1\u{200b}\u{20e3}", "1\\u{200b}\u{20e3}"),
        ];
        for (text, shown) in rows {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn visible_text_and_emoji_are_not_escaped() {
        for text in [
            "a\r\n\tb",
            "\u{feff}import os",
            "ä 🙂 שלום",
            "👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
        ] {
            assert_eq!(visible(text), text);
        }
    }
}

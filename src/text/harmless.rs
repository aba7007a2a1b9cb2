//! Texts of others, as they may be shown: without characters that steer a terminal, or that make a text
//! look like another.

/// Whether a character is not seen for what it is: controls, line separators, and what turns the
/// direction of the text around it.
pub fn is_deceptive(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A line without such characters; a tab is four spaces.
pub fn harmless(text: &str) -> String {
    let text = text.replace('\t', "    ");
    text.chars().filter(|char| !is_deceptive(*char)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_turns_a_text_is_left_out() {
        let text = "a\x1b[31mb\u{9b}2J\u{202e}gpj.\u{2066}c\n\td\u{2028}e";
        assert_eq!(harmless(text), "a[31mb2Jgpj.c    de");
        assert_eq!(harmless("ä 🙂 שלום"), "ä 🙂 שלום");
    }
}

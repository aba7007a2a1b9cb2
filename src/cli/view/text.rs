//! Lines of styled text with a known width.

use std::io::IsTerminal;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::terminal::is_dumb;
use starling_text::harmless;

/// The style of a span of text, named after its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warning,
    Accent,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Bold => "\x1b[1m",
            Style::Dim => "\x1b[2m",
            Style::Good => "\x1b[32m",
            Style::Bad => "\x1b[31m",
            Style::Warning => "\x1b[33m",
            Style::Accent => "\x1b[36m",
        }
    }
}

/// Whether styles are printed as colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Colour,
    Plain,
}

impl Paint {
    /// Returns colours for a terminal, unless it is dumb or `NO_COLOR` is set.
    pub fn of_stdout() -> Paint {
        Paint::of(&std::io::stdout())
    }

    /// Like [`Paint::of_stdout`], for stderr.
    pub fn of_stderr() -> Paint {
        Paint::of(&std::io::stderr())
    }

    fn of(stream: &impl IsTerminal) -> Paint {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        match wanted && stream.is_terminal() && !is_dumb() {
            true => Paint::Colour,
            false => Paint::Plain,
        }
    }
}

/// One line of text without control characters, because texts come from models and files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<(Style, String)>,
}

impl Line {
    pub fn new() -> Line {
        Line::default()
    }

    pub fn of(style: Style, text: &str) -> Line {
        Line::new().with(style, text)
    }

    pub fn plain(text: &str) -> Line {
        Line::of(Style::Plain, text)
    }

    pub fn with(mut self, style: Style, text: &str) -> Line {
        self.spans.push((style, harmless(text)));
        self
    }

    pub fn and(self, text: &str) -> Line {
        self.with(Style::Plain, text)
    }

    #[cfg(feature = "bench")]
    pub fn spans(&self) -> impl Iterator<Item = (Style, &str)> {
        self.spans
            .iter()
            .map(|(style, text)| (*style, text.as_str()))
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|(_, text)| text.width()).sum()
    }

    /// Cuts the line to a width, with an ellipsis if anything is cut.
    pub fn fit(self, width: usize) -> Line {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut spans = Vec::new();
        for (style, text) in self.spans {
            let cut: String = text
                .chars()
                .take_while(|char| {
                    let fits = char.width().unwrap_or(0) <= left;
                    left = match fits {
                        true => left - char.width().unwrap_or(0),
                        false => 0,
                    };
                    fits
                })
                .collect();
            spans.push((style, cut));
        }
        spans.push((Style::Dim, "…".repeat(width.min(1))));
        Line { spans }
    }

    /// Wraps the line at spaces. All lines but the first are indented slightly more than the first.
    /// A word longer than the width gets a line of its own.
    pub fn wrap(self, width: usize) -> Vec<Line> {
        if self.width() <= width {
            return vec![self];
        }
        let text: String = self.spans.iter().map(|(_, text)| text.as_str()).collect();
        let depth = text.len() - text.trim_start().len() + 2;
        let indent = " ".repeat(depth.min(width / 2));
        let mut lines = Vec::new();
        let mut line = Line::new();
        for (style, text) in &self.spans {
            for word in text.split_inclusive(' ') {
                if line.width() + word.trim_end().width() > width && !line.is_blank() {
                    lines.push(std::mem::replace(&mut line, Line::plain(&indent)).trimmed());
                }
                line = line.with(*style, word);
            }
        }
        lines.push(line);
        lines
    }

    /// Removes trailing spaces.
    fn trimmed(mut self) -> Line {
        if let Some((_, text)) = self.spans.last_mut() {
            text.truncate(text.trim_end().len());
        }
        self
    }

    /// Breaks the line wherever it reaches the width, so that all text is visible.
    pub fn broken(self, width: usize) -> Vec<Line> {
        let mut lines = vec![Line::new()];
        let mut used = 0;
        for (style, text) in self.spans {
            let mut piece = String::new();
            for char in text.chars() {
                piece.push(char);
                let (over, empty) = (
                    used + piece.width() > width,
                    used + piece.len() == char.len_utf8(),
                );
                if over && !empty {
                    piece.pop();
                    push(
                        &mut lines,
                        style,
                        std::mem::replace(&mut piece, char.to_string()),
                    );
                    lines.push(Line::new());
                    used = 0;
                }
            }
            used += piece.width();
            push(&mut lines, style, piece);
        }
        lines
    }

    fn is_blank(&self) -> bool {
        self.spans.iter().all(|(_, text)| text.trim().is_empty())
    }

    pub fn paint(&self, paint: Paint) -> String {
        let mut painted = String::new();
        for (style, text) in &self.spans {
            match paint {
                Paint::Colour if *style != Style::Plain => {
                    painted.push_str(style.code());
                    painted.push_str(text);
                    painted.push_str("\x1b[0m");
                }
                Paint::Colour | Paint::Plain => painted.push_str(text),
            }
        }
        painted.trim_end().to_owned()
    }
}

fn push(lines: &mut [Line], style: Style, text: String) {
    if let Some(line) = lines.last_mut()
        && !text.is_empty()
    {
        line.spans.push((style, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_wrap_at_spaces() {
        let line = Line::plain("  one two ").with(Style::Good, "three 🙂🙂 four");
        let wrapped: Vec<String> = line
            .clone()
            .wrap(12)
            .iter()
            .map(|line| line.paint(Paint::Plain))
            .collect();
        assert_eq!(wrapped, ["  one two", "    three", "    🙂🙂", "    four"]);
        let lines = line.wrap(9);
        assert!(lines.iter().all(|line| line.width() <= 9), "{lines:?}");
        assert_eq!(Line::plain("short").wrap(12), [Line::plain("short")]);
        let long = Line::plain("a unbreakable_long_word").wrap(6);
        assert_eq!(long.len(), 2);
    }

    #[test]
    fn unwrapped_lines_break_exactly_at_the_width() {
        let line = || Line::plain("ab🙂").with(Style::Good, "cdé🙂🙂f");
        let broken = |width| -> Vec<String> {
            let lines = line().broken(width);
            lines.iter().map(|line| line.paint(Paint::Plain)).collect()
        };
        assert_eq!(broken(80), ["ab🙂cdé🙂🙂f"]);
        assert_eq!(broken(5), ["ab🙂c", "dé🙂", "🙂f"]);
        assert_eq!(broken(2), ["ab", "🙂", "cd", "é", "🙂", "🙂", "f"]);
        for width in 2..20 {
            assert_eq!(broken(width).concat(), "ab🙂cdé🙂🙂f");
            assert!(
                line()
                    .broken(width)
                    .iter()
                    .all(|line| line.width() <= width)
            );
        }
        assert_eq!(Line::new().broken(0), [Line::new()]);
        assert_eq!(broken(0).concat(), broken(1).concat());
    }

    #[test]
    fn lines_are_truncated_with_an_ellipsis() {
        let line = || Line::of(Style::Good, "grün").and(" und 🙂🙂 mehr");
        let fit = |width| line().fit(width).paint(Paint::Plain);
        assert_eq!(fit(80), "grün und 🙂🙂 mehr");
        assert_eq!(fit(12), "grün und 🙂…");
        assert_eq!(fit(11), "grün und …");
        assert_eq!(fit(3), "gr…");
        assert_eq!(fit(1), "…");
        assert_eq!(fit(0), "");
        for width in 0..30 {
            assert!(line().fit(width).width() <= width);
        }
    }

    #[test]
    fn colours_are_reset_after_each_span_and_can_be_disabled() {
        let line = Line::of(Style::Bad, "no").and(" way");
        assert_eq!(line.paint(Paint::Colour), "\x1b[31mno\x1b[0m way");
        assert_eq!(line.paint(Paint::Plain), "no way");
    }

    #[test]
    fn control_characters_are_escaped() {
        let line = Line::plain("a\x1b[2Jb\x07\r\nc\td\u{9b}e");
        let shown = "a\\u{1b}[2Jb\\u{7}c    d\\u{9b}e";
        assert_eq!(line.paint(Paint::Colour), shown);
    }

    /// Generates lines with words from several scripts.
    fn lines() -> impl proptest::strategy::Strategy<Value = Line> {
        use proptest::prelude::*;
        let word = prop::sample::select(vec![
            "a",
            "of",
            "fee",
            "größe",
            "漢字",
            "🙂",
            "e\u{301}",
            "a-long_name.py::f",
            "  ",
            "\t",
            "",
        ]);
        let span = prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "));
        let style = prop::sample::select(vec![Style::Plain, Style::Bold, Style::Good]);
        prop::collection::vec((style, span), 0..4).prop_map(|spans| {
            let with = |line: Line, (style, text): (Style, String)| line.with(style, &text);
            spans.into_iter().fold(Line::new(), with)
        })
    }

    #[test]
    fn breaking_and_wrapping_keep_all_characters() {
        use proptest::test_runner::{Config, RngSeed, TestRunner};
        let squeezed = |lines: &[Line]| -> String {
            let text: String = lines.iter().map(|line| line.paint(Paint::Plain)).collect();
            text.replace(' ', "")
        };
        let mut runner = TestRunner::new(Config {
            cases: 500,
            rng_seed: RngSeed::Fixed(31),
            failure_persistence: None,
            ..Config::default()
        });
        let law = runner.run(&(lines(), 2usize..40), |(line, width)| {
            let whole = squeezed(std::slice::from_ref(&line));
            let broken = line.clone().broken(width);
            assert_eq!(squeezed(&broken), whole);
            assert!(
                broken.iter().all(|line| line.width() <= width),
                "{broken:?}"
            );
            let wrapped = line.clone().wrap(width);
            assert_eq!(squeezed(&wrapped), whole);
            // Only a word that is longer than the width may exceed it.
            let longest = "a-long_name.py::f".width();
            assert!(
                width <= longest * 2 || wrapped.iter().all(|line| line.width() <= width),
                "{wrapped:?}"
            );
            assert!(line.fit(width).width() <= width);
            Ok(())
        });
        law.unwrap();
    }
}

//! Puts together the lines of a terminal from what is typed.

use super::Input;

/// The line that is being typed.
#[derive(Debug, Default)]
pub(super) struct TypedLines {
    /// The bytes of the line so far.
    line: Vec<u8>,
    /// Whether a part of the line was typed before the user can have read the question.
    is_early: bool,
}

impl TypedLines {
    /// Adds bytes, and returns the lines that they complete. `are_early` is whether they were typed
    /// before the user can have read the question.
    pub(super) fn add(&mut self, bytes: &[u8], are_early: bool) -> Vec<Input> {
        let mut inputs = Vec::new();
        for byte in bytes {
            self.is_early |= are_early;
            match byte {
                b'\n' => inputs.push(self.complete()),
                byte => self.line.push(*byte),
            }
        }
        inputs
    }

    /// Returns a last line that has no end.
    pub(super) fn end(&mut self) -> Option<Input> {
        (!self.line.is_empty()).then(|| self.complete())
    }

    fn complete(&mut self) -> Input {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let line = String::from_utf8_lossy(line).into_owned();
        match std::mem::take(&mut self.is_early) {
            true => Input::EarlyLine(line),
            false => Input::Line(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Input {
        Input::Line(text.to_owned())
    }

    fn early(text: &str) -> Input {
        Input::EarlyLine(text.to_owned())
    }

    #[test]
    fn line_begun_too_early_is_early_as_a_whole_and_the_next_one_is_not() {
        let mut lines = TypedLines::default();
        assert_eq!(lines.add(b"r not li", true), []);
        assert_eq!(
            lines.add("ke th\u{e4}t\r\na\n".as_bytes(), false),
            [early("r not like th\u{e4}t"), line("a"),]
        );
        assert_eq!(lines.add(b"a\ny", true), [early("a")]);
        assert_eq!(lines.add(b"\n", false), [early("y")]);
        assert_eq!(lines.add(b"", true), []);
        assert_eq!(lines.add(b"last", false), []);
        assert_eq!((lines.end(), lines.end()), (Some(line("last")), None));
    }
}

//! Builds the text of an answer from tokens: only complete characters are streamed, and the answer
//! ends before any stop text.

/// An answer that is being generated.
pub struct AnswerText {
    stops: Vec<String>,
    /// The bytes of an incomplete character.
    partial: Vec<u8>,
    text: String,
    /// Length of the part of `text` that was streamed. The rest may be the start of a stop text.
    given: usize,
}

/// Whether the answer continues or has reached a stop text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerState {
    Open,
    Stopped,
}

impl AnswerText {
    /// Creates an answer that begins with a given text. Stop texts within this beginning are
    /// ignored.
    pub fn new(stops: Vec<String>, beginning: &str) -> Self {
        Self {
            stops,
            partial: Vec::new(),
            text: beginning.to_owned(),
            given: beginning.len(),
        }
    }

    /// Adds the bytes of a token. Returns the text that can be streamed now.
    pub fn push(&mut self, bytes: &[u8]) -> (&str, AnswerState) {
        self.partial.extend_from_slice(bytes);
        self.decode();
        let fresh = &self.text[self.given..];
        let stops = self.stops.iter().filter(|stop| !stop.is_empty());
        let stopped = stops
            .clone()
            .filter_map(|stop| fresh.find(stop.as_str()))
            .min();
        let (certain, flow) = match stopped {
            Some(at) => {
                self.text.truncate(self.given + at);
                (self.text.len(), AnswerState::Stopped)
            }
            None => {
                let held = stops.map(|stop| overlap(fresh, stop)).max().unwrap_or(0);
                (self.text.len() - held, AnswerState::Open)
            }
        };
        let from = std::mem::replace(&mut self.given, certain);
        (&self.text[from..certain], flow)
    }

    /// Ends the answer. Returns the complete text and the part that was not streamed yet.
    pub fn finish(mut self, flow: AnswerState) -> (String, String) {
        if flow == AnswerState::Open && !self.partial.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        let rest = self.text[self.given..].to_owned();
        (self.text, rest)
    }

    fn decode(&mut self) {
        loop {
            match std::str::from_utf8(&self.partial) {
                Ok(text) => {
                    self.text.push_str(text);
                    self.partial.clear();
                    return;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    self.text
                        .push_str(&String::from_utf8_lossy(&self.partial[..valid]));
                    let broken = error.error_len();
                    self.partial.drain(..valid + broken.unwrap_or(0));
                    match broken {
                        Some(_) => self.text.push(char::REPLACEMENT_CHARACTER),
                        None => return,
                    }
                }
            }
        }
    }
}

/// Returns the length of the longest suffix of `text` that is a prefix of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = stop.len().min(text.len() + 1).saturating_sub(1);
    (1..=longest)
        .rev()
        .find(|len| stop.is_char_boundary(*len) && text.ends_with(&stop[..*len]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the text in pieces of `width` bytes. Returns the streamed text, the complete text, and
    /// the state.
    fn feed(text: &[u8], width: usize, stops: &[&str]) -> (String, String, AnswerState) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut answer = AnswerText::new(stops, "");
        let mut streamed = String::new();
        let mut flow = AnswerState::Open;
        for piece in text.chunks(width) {
            let (certain, next) = answer.push(piece);
            streamed.push_str(certain);
            flow = next;
            if flow == AnswerState::Stopped {
                break;
            }
        }
        let (whole, rest) = answer.finish(flow);
        streamed.push_str(&rest);
        (streamed, whole, flow)
    }

    #[test]
    fn streamed_text_never_splits_a_character() {
        let text = "naïve 🦜 ok — 終";
        for width in 1..8 {
            let (streamed, whole, flow) = feed(text.as_bytes(), width, &[]);
            assert_eq!(
                (streamed.as_str(), whole.as_str(), flow),
                (text, text, AnswerState::Open)
            );
        }
    }

    #[test]
    fn streamed_answer_ends_before_the_earliest_stop_text() {
        for width in 1..12 {
            let (streamed, whole, flow) = feed(b"one two END three", width, &["three", "END"]);
            assert_eq!(
                (streamed.as_str(), whole.as_str()),
                ("one two ", "one two ")
            );
            assert_eq!(flow, AnswerState::Stopped);
        }
    }

    #[test]
    fn stop_text_within_the_given_beginning_is_ignored() {
        let stops = vec!["\ndef ".to_owned()];
        let mut answer = AnswerText::new(stops, "import f\ndef test_");
        assert_eq!(
            answer.push(b"f():\n    pass\n"),
            ("f():\n    pass", AnswerState::Open)
        );
        assert_eq!(answer.push(b"def "), ("", AnswerState::Stopped));
        let (text, _) = answer.finish(AnswerState::Stopped);
        assert_eq!(text, "import f\ndef test_f():\n    pass");
    }

    #[test]
    fn possible_start_of_a_stop_text_is_held_back() {
        let stops = vec!["```\n".to_owned()];
        let mut answer = AnswerText::new(stops, "");
        assert_eq!(answer.push(b"a``"), ("a", AnswerState::Open));
        assert_eq!(answer.push(b"`"), ("", AnswerState::Open));
        assert_eq!(answer.push(b"x"), ("```x", AnswerState::Open));
        assert_eq!(answer.push(b"``"), ("", AnswerState::Open));
        assert_eq!(
            answer.finish(AnswerState::Open),
            ("a```x``".to_owned(), "``".to_owned())
        );
    }

    #[test]
    fn invalid_utf8_becomes_replacement_characters() {
        let (streamed, ..) = feed(b"a\xff\xe2\x82b\xf0\x9f", 1, &[]);
        assert_eq!(streamed, "a\u{fffd}\u{fffd}b\u{fffd}");
    }
}

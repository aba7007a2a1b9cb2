//! Reads keys from the bytes of a terminal in raw mode. A terminal also sends text that nobody typed:
//! replies to queries of other programs, mouse reports, and pasted text. Therefore a key counts as pressed
//! alone only if no other byte arrives shortly before or after it, and control sequences are discarded,
//! even if they are incomplete.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::input::Input;

/// Bytes with a shorter pause between them belong to one burst.
const QUIET: Duration = Duration::from_millis(50);
/// Maximum duration of a burst. A longer burst is split, so that text appears while it is typed.
const LONG: Duration = Duration::from_millis(100);
/// Time after a control sequence in which no key counts as pressed alone.
const CALM: Duration = Duration::from_millis(500);
/// Pause that ends a control sequence or a paste without an end marker.
const LOST: Duration = Duration::from_secs(2);
/// Maximum number of bytes of one burst that are buffered.
const MAX_BURST: usize = 1 << 16;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const DEL: u8 = 0x7f;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const END_OF_PASTE: &[u8] = b"\x1b[201~";

/// The state of the decoder: outside of a control sequence, or the position in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum DecoderState {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After `ESC [`, with the bytes that followed.
    Control(Vec<u8>),
    /// In a sequence of fixed length, with the number of bytes that are still missing.
    Bytes(u8),
    /// In a control string, which the string terminator (ST) ends, and for some strings also BEL.
    Text { by_bell: bool },
    /// After ESC in a control string.
    TextEscape,
    /// In pasted text.
    Paste(Vec<u8>),
    /// In an unknown sequence, which only a pause ends.
    Lost,
}

/// Converts bytes, with their arrival times, to inputs.
#[derive(Debug, Default)]
pub struct Decoder {
    state: DecoderState,
    burst: Vec<u8>,
    /// The time of the first byte of the burst.
    began: Option<Instant>,
    /// The time of the last byte.
    last: Option<Instant>,
    /// Whether a pause precedes the burst.
    is_apart: bool,
    /// The time of the last byte that was not part of a key.
    strange: Option<Instant>,
}

impl Decoder {
    /// Adds bytes that arrived at time `now`.
    pub fn take(&mut self, bytes: &[u8], now: Instant) -> Vec<Input> {
        let inputs = self.tick(now);
        if self.burst.is_empty() {
            self.began = Some(now);
            self.is_apart = passed(self.last, now, QUIET);
        }
        self.burst.extend_from_slice(bytes);
        self.last = Some(now);
        inputs
    }

    /// Returns the inputs that are complete at a time. Must be called at least every [`QUIET`].
    pub fn tick(&mut self, now: Instant) -> Vec<Input> {
        let mut inputs = Vec::new();
        if self.burst.is_empty() {
            inputs.extend(self.settle(now));
            return inputs;
        }
        let is_over = passed(self.last, now, QUIET);
        if is_over || passed(self.began, now, LONG) || self.burst.len() >= MAX_BURST {
            self.read(is_over, &mut inputs);
        }
        inputs
    }

    /// Ends a control sequence whose end is missing.
    fn settle(&mut self, now: Instant) -> Option<Input> {
        let limit = match self.state {
            DecoderState::Ground => return None,
            DecoderState::Escape => CALM,
            _ => LOST,
        };
        if !passed(self.last, now, limit) {
            return None;
        }
        match std::mem::take(&mut self.state) {
            DecoderState::Paste(text) => Some(pasted(&text)),
            _ => None,
        }
    }

    fn read(&mut self, is_over: bool, inputs: &mut Vec<Input>) {
        let burst = std::mem::take(&mut self.burst);
        let was_calm = passed(self.strange, self.began.unwrap_or_else(Instant::now), CALM);
        let is_alone = self.is_apart && is_over;
        if is_alone && burst == [0x03] {
            // Ctrl-C is recognized even inside an unfinished sequence.
            self.state = DecoderState::Ground;
        }
        if burst == [ESC] && is_alone && self.state == DecoderState::Ground {
            self.state = DecoderState::Escape;
            self.strange = self.last;
            inputs.push(Input::Key(plain(KeyCode::Esc)));
            return;
        }
        if self.state == DecoderState::Escape && !burst.first().is_some_and(|byte| opens(*byte)) {
            self.state = DecoderState::Ground;
        }
        let mut keys = Vec::new();
        let mut is_strange = self.state != DecoderState::Ground;
        let mut rest = burst.as_slice();
        while let Some(first) = rest.first() {
            let length = match self.state {
                DecoderState::Ground => match read_key(rest) {
                    Some((key, length)) => {
                        keys.push(key);
                        length
                    }
                    None => {
                        is_strange = true;
                        self.begin(rest)
                    }
                },
                _ => {
                    inputs.extend(self.follow(*first));
                    1
                }
            };
            rest = &rest[length..];
        }
        if is_strange {
            self.strange = self.last;
        }
        match keys.as_slice() {
            [] => {}
            [key] if is_alone && was_calm && !is_strange => inputs.push(Input::Key(*key)),
            [key] if is_alone && is_stop(*key) => inputs.push(Input::Key(*key)),
            _ => inputs.push(Input::Keys(keys)),
        }
    }

    /// Handles bytes that do not start a key. Returns their number.
    fn begin(&mut self, rest: &[u8]) -> usize {
        let first = rest[0];
        if first == ESC {
            self.state = DecoderState::Escape;
            return 1;
        }
        if (0x80..0xa0).contains(&first) {
            self.state = after_escape(first - 0x40);
            return 1;
        }
        match first_char(rest) {
            Some(char) => {
                if let Ok(code @ 0x80..0xa0) = u8::try_from(u32::from(char)) {
                    self.state = after_escape(code - 0x40);
                }
                char.len_utf8()
            }
            None => 1,
        }
    }

    /// Handles a byte of a control sequence.
    fn follow(&mut self, byte: u8) -> Option<Input> {
        let (next, input) = match std::mem::take(&mut self.state) {
            // The caller handles it.
            DecoderState::Ground => (DecoderState::Ground, None),
            DecoderState::Escape => (after_escape(byte), None),
            DecoderState::Control(parameters) => (after_control(parameters, byte), None),
            DecoderState::Bytes(left @ 2..) => (DecoderState::Bytes(left - 1), None),
            DecoderState::Bytes(_) => (DecoderState::Ground, None),
            DecoderState::Text { by_bell } => (in_text(by_bell, byte), None),
            DecoderState::TextEscape if byte == b'\\' => (DecoderState::Ground, None),
            DecoderState::TextEscape | DecoderState::Lost => (DecoderState::Lost, None),
            DecoderState::Paste(mut text) => {
                text.push(byte);
                match text.strip_suffix(END_OF_PASTE) {
                    Some(text) => (DecoderState::Ground, Some(pasted(text))),
                    None => (DecoderState::Paste(text), None),
                }
            }
        };
        self.state = next;
        input
    }
}

fn passed(since: Option<Instant>, now: Instant, time: Duration) -> bool {
    since.is_none_or(|since| now.saturating_duration_since(since) >= time)
}

fn plain(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn pasted(text: &[u8]) -> Input {
    Input::Pasted(String::from_utf8_lossy(text).into_owned())
}

/// Whether a key requests to stop (Ctrl-C). Such a key is never ignored.
fn is_stop(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Reads a plain key and its length. Returns `None` for anything else.
fn read_key(bytes: &[u8]) -> Option<(KeyEvent, usize)> {
    let key = match bytes[0] {
        b'\r' => plain(KeyCode::Enter),
        DEL | 0x08 => plain(KeyCode::Backspace),
        0x03 => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        0x04 => KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL),
        0..0x20 => return None,
        _ => {
            let char = first_char(bytes).filter(|char| !char.is_control())?;
            return Some((plain(KeyCode::Char(char)), char.len_utf8()));
        }
    };
    Some((key, 1))
}

fn first_char(bytes: &[u8]) -> Option<char> {
    let start = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).ok()?,
    };
    valid.chars().next()
}

/// Whether a byte after ESC starts a longer control sequence.
fn opens(byte: u8) -> bool {
    after_escape(byte) != DecoderState::Ground
}

fn after_escape(byte: u8) -> DecoderState {
    match byte {
        b'[' => DecoderState::Control(Vec::new()),
        b']' => DecoderState::Text { by_bell: true },
        b'P' | b'X' | b'^' | b'_' => DecoderState::Text { by_bell: false },
        b'N' | b'O' => DecoderState::Bytes(1),
        ESC => DecoderState::Escape,
        0x20..0x30 => DecoderState::Bytes(1),
        CAN | SUB => DecoderState::Lost,
        // A key with Alt, or a sequence of two bytes.
        _ => DecoderState::Ground,
    }
}

fn after_control(mut parameters: Vec<u8>, byte: u8) -> DecoderState {
    match byte {
        // A function key of the Linux console.
        b'[' if parameters.is_empty() => DecoderState::Bytes(1),
        // A mouse report: a button and two coordinates.
        b'M' if parameters.is_empty() => DecoderState::Bytes(3),
        b'~' if parameters == b"200" => DecoderState::Paste(Vec::new()),
        0x40..DEL => DecoderState::Ground,
        0x20..0x40 if parameters.len() < 256 => {
            parameters.push(byte);
            DecoderState::Control(parameters)
        }
        ESC => DecoderState::Escape,
        _ => DecoderState::Lost,
    }
}

fn in_text(by_bell: bool, byte: u8) -> DecoderState {
    match byte {
        BEL if by_bell => DecoderState::Ground,
        ESC => DecoderState::TextEscape,
        // The C1 byte that ends the string can also be part of a UTF-8 character.
        CAN | SUB | 0x9c => DecoderState::Lost,
        _ => DecoderState::Text { by_bell },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn char(char: char) -> KeyEvent {
        plain(KeyCode::Char(char))
    }

    /// Sends byte strings to a decoder, each after a pause in milliseconds, and then a long pause.
    fn inputs(parts: &[(u64, &[u8])]) -> Vec<Input> {
        let mut decoder = Decoder::default();
        let mut now = Instant::now();
        let mut inputs = Vec::new();
        let wait = |decoder: &mut Decoder, now: &mut Instant, ms: u64| {
            let mut inputs = Vec::new();
            let end = *now + Duration::from_millis(ms);
            while *now < end {
                *now = end.min(*now + Duration::from_millis(25));
                inputs.extend(decoder.tick(*now));
            }
            inputs
        };
        for (pause, bytes) in parts {
            inputs.extend(wait(&mut decoder, &mut now, *pause));
            inputs.extend(decoder.take(bytes, now));
        }
        inputs.extend(wait(&mut decoder, &mut now, 5000));
        inputs
    }

    fn is_alone(input: &Input) -> bool {
        matches!(input, Input::Key(key) if key.code != KeyCode::Esc)
    }

    #[test]
    fn key_with_pauses_around_it_is_a_single_key() {
        let typed = inputs(&[(0, b"a"), (60, b"r"), (60, b"\r")]);
        let keys = [char('a'), char('r'), plain(KeyCode::Enter)];
        assert_eq!(typed, keys.map(Input::Key));
        assert_eq!(
            inputs(&[(0, "ä".as_bytes())]),
            [Input::Key(char('ä'))],
            "a letter of two bytes"
        );
        let stop = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(inputs(&[(0, &[3])]), [Input::Key(stop)]);
        let stopped = inputs(&[(0, b"\x1b]11;"), (60, &[3])]);
        assert_eq!(stopped, [Input::Key(stop)], "in an unfinished sequence");
    }

    #[test]
    fn keys_in_quick_succession_are_reported_as_one_burst() {
        let both = Input::Keys(vec![char('a'), plain(KeyCode::Enter)]);
        assert_eq!(inputs(&[(0, b"a\r")]), std::slice::from_ref(&both));
        assert_eq!(inputs(&[(0, b"a"), (30, b"\r")]), [both]);
        // A long burst is split into parts. None of them counts as a key that was pressed alone.
        let held: Vec<(u64, &[u8])> = (0..20).map(|_| (33, &b"a"[..])).collect();
        let held = inputs(&held);
        assert!(held.len() > 3 && !held.iter().any(is_alone), "{held:?}");
    }

    #[test]
    fn key_soon_after_escape_is_part_of_a_burst() {
        let esc = Input::Key(plain(KeyCode::Esc));
        assert_eq!(
            inputs(&[(0, b"\x1b"), (600, b"a")]),
            [esc.clone(), Input::Key(char('a'))]
        );
        assert_eq!(
            inputs(&[(0, b"\x1b"), (300, b"a")]),
            [esc, Input::Keys(vec![char('a')])]
        );
    }

    #[test]
    fn terminal_replies_are_not_read_as_keys() {
        let strings = [
            "]52;c;", "_G", "^", "X", "P1$r", "]11;rgb:", "[?1;2", "[>1", "[",
        ];
        let ends: [&[u8]; 7] = [
            b"\x1b\\",
            b"\x07",
            b"\x9c",
            b"",
            b"\x18a",
            b"\x1aa",
            b"\x1bXa\x1b\\",
        ];
        for string in strings {
            for end in ends {
                for pause in [0, 60, 300, 1200] {
                    let start = [b"\x1b", string.as_bytes()].concat();
                    let said = inputs(&[(0, &start), (pause, b"a"), (pause, end)]);
                    assert!(!said.iter().any(is_alone), "{string} {end:?} {pause}");
                    let said =
                        inputs(&[(0, b"\x1b"), (pause.min(400), &start[1..]), (pause, b"a")]);
                    assert!(!said.iter().any(is_alone), "{string} {end:?} {pause}");
                    let bytes = [&start, &b"a"[..], end].concat();
                    let bytes: Vec<(u64, &[u8])> =
                        bytes.chunks(1).map(|byte| (pause.min(300), byte)).collect();
                    let said = inputs(&bytes);
                    let is_closed_control = string.starts_with('[') && end != b"";
                    assert!(
                        is_closed_control || !said.iter().any(is_alone),
                        "{string} {end:?} {pause} {said:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn unknown_escape_sequences_are_not_read_as_keys() {
        let long = [b"\x1b]52;c;", &[b'Y'; 200_000][..], b"a\x07"].concat();
        let sequences: [&[u8]; 18] = [
            &long,
            b"\x9fGa\x9c",
            "\u{9f}Ga\u{9c}".as_bytes(),
            b"\x9d11;a\x9c",
            "\u{90}1$ra\u{9c}".as_bytes(),
            b"\x9b>1a",
            b"\x1b[>0;276;0;a",
            b"\x1ba",
            b"\x1b[M aa",
            b"\x1bOa",
            b"\x1b[[a",
            b"\x1b[I\x1b[Oa",
            b"\x1b[200~a\x1b[201~",
            b"\x1b[200~x\x1b[201~a\x1b[201~",
            b"\x1b(a",
            b"\x1b\x1ba",
            b"\xffa",
            b"\x00a",
        ];
        for sequence in sequences {
            let said = inputs(&[(0, sequence)]);
            assert!(!said.iter().any(is_alone), "{sequence:?}");
            // A key that follows shortly does not count as pressed alone either.
            let said = inputs(&[(0, sequence), (200, b"a")]);
            assert!(!said.iter().any(is_alone), "{sequence:?}");
        }
    }

    #[test]
    fn pasted_text_is_one_input_even_without_its_end_marker() {
        let paste = |text: &str| Input::Pasted(text.to_owned());
        let whole = inputs(&[(0, b"\x1b[200~a\nb\x1b[201~")]);
        assert_eq!(whole, [paste("a\nb")]);
        let split = inputs(&[(0, b"\x1b[200~a\x1b[20"), (800, b"1~")]);
        assert_eq!(split, [paste("a")]);
        let lost = inputs(&[(0, b"\x1b[200~a\r"), (1500, b"b"), (3000, b"a")]);
        assert_eq!(lost, [paste("a\rb"), Input::Key(char('a'))]);
    }
}

//! Decoding of LSP base protocol messages from a byte stream: headers, a blank line, a JSON body. A
//! malformed message is reported once and decoding continues at the next headers, so a malformed
//! message does not close the connection.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io;
use std::string::FromUtf8Error;

use memchr::{memchr_iter, memrchr};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The maximum length of a message body, in bytes. Longer messages are skipped.
pub const MAX_BYTES: usize = 64 << 20;
/// The maximum length of the headers of a message, in bytes.
const MAX_HEADERS: usize = 8 << 10;
/// The number of bytes to read from the input at a time.
const CHUNK: usize = 64 << 10;
const LENGTH: &[u8] = b"content-length:";
/// U+FFFD as a JSON escape and in UTF-8. Both are as long as the surrogate that they replace.
const REPLACEMENT_ESCAPE: &str = "\\ufffd";
const REPLACEMENT: [u8; 3] = [0xef, 0xbf, 0xbd];

/// The reason why bytes could not be decoded as a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("bytes outside of a message were skipped")]
    Noise,
    #[error("a message without a usable Content-Length header was skipped")]
    Headers,
    #[error("a message of {0} bytes is over the limit of {MAX_BYTES} and was skipped")]
    TooLong(u64),
    #[error("a message is shorter than its Content-Length header says")]
    Cut,
    #[error("a message is not UTF-8 text")]
    NotUtf8 {
        /// The message with U+FFFD in place of what is not UTF-8; `None` if that is not JSON.
        body: Option<Value>,
    },
    #[error("a message is not JSON: {0}")]
    NotJson(String),
    #[error("not a JSON-RPC message: {message}")]
    NotAMessage {
        id: Option<Value>,
        message: String,
        /// The message as it is.
        body: Box<Value>,
        /// Whether the message is a response. A response must not be answered.
        is_response: bool,
    },
}

/// Reads messages from a byte stream.
#[derive(Debug)]
pub struct MessageReader<I> {
    input: I,
    decoder: MessageDecoder,
}

impl<I: AsyncRead + Unpin> MessageReader<I> {
    pub fn new(input: I) -> Self {
        MessageReader {
            input,
            decoder: MessageDecoder::default(),
        }
    }

    /// Returns the next message, or the reason why the next bytes are malformed. Returns `None` at
    /// the end of the stream.
    ///
    /// # Errors
    /// Reading from the input failed.
    pub async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<Result<T, Malformed>>> {
        loop {
            if let Some(message) = self.decoder.next() {
                return Ok(Some(message));
            }
            self.decoder.buffer.reserve(CHUNK);
            if self.input.read_buf(&mut self.decoder.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Finds messages in a growing buffer. The buffer holds at most one message of [`MAX_BYTES`].
#[derive(Debug, Default)]
struct MessageDecoder {
    buffer: Vec<u8>,
    state: DecoderState,
    /// The kind of bytes that were skipped and reported since the last headers. Consecutive bytes
    /// of one kind are reported once.
    reported: Option<SkippedBytes>,
}

/// Whether the decoder expects headers or a body.
#[derive(Debug, Default, PartialEq, Eq)]
enum DecoderState {
    #[default]
    Headers,
    /// At the start of a body. No other message begins in its first `searched` bytes.
    Body { length: usize, searched: usize },
}

/// The kind of bytes that were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SkippedBytes {
    Noise,
    /// A malformed message, or any bytes after a message that was already reported.
    Message,
}

impl MessageDecoder {
    /// Returns the next message, or the reason why the next bytes are malformed. Returns `None` if
    /// more bytes are needed.
    fn next<T: DeserializeOwned>(&mut self) -> Option<Result<T, Malformed>> {
        loop {
            let step = match self.state {
                DecoderState::Headers => self.headers()?,
                DecoderState::Body { length, searched } => self.body(length, searched)?,
            };
            match step {
                DecodeStep::Again => {}
                DecodeStep::Malformed(malformed) => return Some(Err(malformed)),
                DecodeStep::Whole(length) => {
                    let decoded = decode(&self.buffer[..length]);
                    match &decoded {
                        // If the length in the headers is wrong, the next message may begin inside
                        // this body, so the body is not dropped.
                        Err(_) => self.reported = Some(SkippedBytes::Message),
                        Ok(_) => self.drop_front(length),
                    }
                    self.state = DecoderState::Headers;
                    return Some(decoded);
                }
            }
        }
    }

    fn headers(&mut self) -> Option<DecodeStep> {
        let Some(found) = find_headers(&self.buffer, 0) else {
            let over = self.buffer.len().saturating_sub(MAX_HEADERS);
            return self.skip(over).map(DecodeStep::Malformed);
        };
        if let Some(malformed) = self.skip(found.start) {
            return Some(DecodeStep::Malformed(malformed));
        }
        self.drop_front(found.end - found.start);
        self.reported = None;
        match usize::try_from(found.length) {
            Ok(0) => {}
            Ok(length @ 1..=MAX_BYTES) => {
                self.state = DecoderState::Body {
                    length,
                    searched: 0,
                };
            }
            Ok(_) | Err(_) => {
                self.reported = Some(SkippedBytes::Message);
                return Some(DecodeStep::Malformed(Malformed::TooLong(found.length)));
            }
        }
        Some(DecodeStep::Again)
    }

    fn body(&mut self, length: usize, searched: usize) -> Option<DecodeStep> {
        let end = self.buffer.len().min(length + MAX_HEADERS);
        // A JSON string contains no raw line breaks, so headers in a body belong to another
        // message.
        let other = find_headers(&self.buffer[..end], searched);
        if other.is_some_and(|other| other.start < length) {
            self.state = DecoderState::Headers;
            self.reported = Some(SkippedBytes::Message);
            return Some(DecodeStep::Malformed(Malformed::Cut));
        }
        if self.buffer.len() >= length {
            return Some(DecodeStep::Whole(length));
        }
        // The blank line may be split between two reads.
        let searched = end.saturating_sub(2);
        self.state = DecoderState::Body { length, searched };
        None
    }

    /// Drops `count` bytes that belong to no readable message. Returns an error unless bytes of
    /// this kind were already reported.
    fn skip(&mut self, count: usize) -> Option<Malformed> {
        let bytes = &self.buffer[..count];
        let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
        let (kind, malformed) = match bytes.contains(&b'{') {
            false => (SkippedBytes::Noise, Malformed::Noise),
            true => (SkippedBytes::Message, Malformed::Headers),
        };
        self.drop_front(count);
        if is_blank || self.reported >= Some(kind) {
            return None;
        }
        self.reported = Some(kind);
        Some(malformed)
    }

    fn drop_front(&mut self, count: usize) {
        self.buffer.drain(..count);
        if self.buffer.len() < CHUNK {
            // Free the memory of a long message.
            self.buffer.shrink_to(2 * CHUNK);
        }
    }
}

/// The result of one step of the decoder.
enum DecodeStep {
    Again,
    Malformed(Malformed),
    /// The buffer holds a complete body of this length.
    Whole(usize),
}

/// The position of the headers of a message, and their `Content-Length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MessageHeaders {
    start: usize,
    end: usize,
    length: u64,
}

/// Returns the first valid headers whose blank line begins at or after `from`.
fn find_headers(bytes: &[u8], from: usize) -> Option<MessageHeaders> {
    memchr_iter(b'\n', &bytes[from..]).find_map(|at| {
        let at = from + at;
        let rest = &bytes[at + 1..];
        let blank = match rest {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return None,
        };
        let (start, length) = headers_before(bytes, at)?;
        let end = at + 1 + blank;
        Some(MessageHeaders { start, end, length })
    })
}

/// Reads header lines backwards from the line break at `end`. Returns the offset of the first
/// header and the content length.
fn headers_before(bytes: &[u8], end: usize) -> Option<(usize, u64)> {
    let lowest = end.saturating_sub(MAX_HEADERS);
    let mut end = end;
    let mut found = None;
    loop {
        let start = memrchr(b'\n', &bytes[lowest..end]).map_or(lowest, |at| lowest + at + 1);
        let line = &bytes[start..end];
        match last_length(line) {
            // A second `Content-Length` belongs to the message before.
            Some(_) if found.is_some() => return found,
            Some(at) => {
                found = Some((start + at, number(&line[at + LENGTH.len()..])?));
                // Text before the header on its line is noise.
                if at > 0 {
                    return found;
                }
            }
            None if !is_header(line) => return found,
            None => found = found.map(|(_, length)| (start, length)),
        }
        if start == lowest {
            return found;
        }
        end = start - 1;
    }
}

/// Returns the offset of the last `Content-Length:` in a line.
fn last_length(line: &[u8]) -> Option<usize> {
    line.windows(LENGTH.len())
        .rposition(|window| window.eq_ignore_ascii_case(LENGTH))
}

fn number(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    // A number that is too large for `u64` is treated as the length of a message that is too long.
    is_number.then(|| {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        digits.parse().unwrap_or(u64::MAX)
    })
}

fn is_header(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let colon = line.iter().position(|byte| *byte == b':');
    colon.is_some_and(|colon| {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        colon > 0
            && line[..colon].iter().all(is_name)
            && line[colon..]
                .iter()
                .all(|byte| *byte == b' ' || byte.is_ascii_graphic())
    })
}

/// Decodes a message body. Editors send lone surrogates from texts that are not valid UTF-16. They
/// are read as U+FFFD, which has the length of a lone surrogate in every encoding, so positions
/// stay correct.
fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Malformed> {
    let text = match std::str::from_utf8(body) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            Cow::Owned(String::from_utf8(without_encoded_surrogates(body)).map_err(not_utf8)?)
        }
    };
    let error = match serde_json::from_str(&text) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    let error = match without_escaped_surrogates(&text) {
        Cow::Borrowed(_) => error,
        Cow::Owned(text) => match serde_json::from_str(&text) {
            Ok(message) => return Ok(message),
            Err(error) => error,
        },
    };
    if !error.is_data() {
        return Err(Malformed::NotJson(error.to_string()));
    }
    let body = serde_json::from_str::<Value>(&text).unwrap_or_default();
    let has = |field: &str| body.get(field).is_some();
    let id = body.get("id").cloned();
    Err(Malformed::NotAMessage {
        id: id.filter(|id| id.is_string() || id.is_i64()),
        message: error.to_string(),
        is_response: !has("method") && (has("result") || has("error")),
        body: Box::new(body),
    })
}

/// Reads what can be read of a message that is not UTF-8.
fn not_utf8(bytes: FromUtf8Error) -> Malformed {
    let text = String::from_utf8_lossy(bytes.as_bytes());
    Malformed::NotUtf8 {
        body: serde_json::from_str(&without_escaped_surrogates(&text)).ok(),
    }
}

/// Replaces surrogates that are encoded in UTF-8 like characters.
fn without_encoded_surrogates(body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    let mut at = 0;
    while let Some(window) = body.get_mut(at..at + 3) {
        if let [0xed, 0xa0..=0xbf, 0x80..=0xbf] = window {
            window.copy_from_slice(&REPLACEMENT);
        }
        at += 1;
    }
    body
}

/// Replaces escaped surrogates that are not part of a pair.
fn without_escaped_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut whole = String::new();
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let (length, is_lone) = match (escaped_unit(bytes, at), escaped_unit(bytes, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (12, false),
            (Some(0xd800..0xe000), _) => (6, true),
            (Some(_), _) => (6, false),
            (None, _) => (2, false),
        };
        if is_lone {
            whole.push_str(&text[copied..at]);
            whole.push_str(REPLACEMENT_ESCAPE);
            copied = at + length;
        }
        at += length;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    whole.push_str(&text[copied..]);
    Cow::Owned(whole)
}

/// Returns the UTF-16 code unit of the escape `\uXXXX` at an offset.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

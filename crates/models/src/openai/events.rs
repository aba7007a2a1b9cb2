//! Reads server-sent events line by line, with size limits.

use reqwest::Response;

use super::transport::HttpFailure;

/// Maximum length of a line of the stream in bytes. A typical event has a few hundred bytes.
const MOST_LINE_BYTES: usize = 4 << 20;
/// Maximum length of the stream of one answer in bytes.
pub(super) const MOST_BYTES: usize = 32 << 20;
/// The data of the last event, which some servers send.
const DONE: &str = "[DONE]";

/// The event stream of one answer.
#[derive(Debug)]
pub(super) struct EventStream {
    /// The HTTP response; `None` when everything was read.
    response: Option<Response>,
    lines: LineSplitter,
    /// The data of the current event so far, with a line break after each line.
    data: String,
    received: usize,
}

impl EventStream {
    pub fn of(response: Response) -> Self {
        EventStream {
            response: Some(response),
            lines: LineSplitter::default(),
            data: String::new(),
            received: 0,
        }
    }

    /// Creates a stream from a complete body.
    pub fn whole(body: &str) -> Self {
        let mut lines = LineSplitter::default();
        lines.push(body.as_bytes());
        EventStream {
            response: None,
            lines,
            data: String::new(),
            received: body.len(),
        }
    }

    /// Returns the number of bytes of an event that is still incomplete.
    pub fn waiting(&self) -> usize {
        self.lines.waiting() + self.data.len()
    }

    /// Returns the data of the next event, or `None` at the end of the answer.
    ///
    /// # Errors
    /// The connection broke, or the stream exceeds the size limit.
    pub async fn next(&mut self) -> Result<Option<String>, HttpFailure> {
        loop {
            while let Some(line) = self.lines.next() {
                if let Some(data) = self.take(&line) {
                    return Ok((data != DONE).then_some(data));
                }
            }
            if self.lines.waiting() > MOST_LINE_BYTES || self.data.len() > MOST_LINE_BYTES {
                return Err(too_large("a line", MOST_LINE_BYTES));
            }
            let Some(response) = &mut self.response else {
                // A server may omit the last empty line.
                let last = self.take("");
                return Ok(last.filter(|data| data != DONE));
            };
            match response.chunk().await? {
                Some(chunk) => {
                    self.received = self.received.saturating_add(chunk.len());
                    if self.received > MOST_BYTES {
                        return Err(too_large("an answer", MOST_BYTES));
                    }
                    self.lines.push(&chunk);
                }
                None => self.response = None,
            }
        }
    }

    /// Processes one line. Returns the data of an event if this line ends it.
    fn take(&mut self, line: &str) -> Option<String> {
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        if let Some(data) = line.strip_prefix("data:") {
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            self.data.push('\n');
            return None;
        }
        if !line.is_empty() || self.data.is_empty() {
            return None;
        }
        self.data.pop();
        Some(std::mem::take(&mut self.data))
    }
}

pub(super) fn too_large(what: &str, most: usize) -> HttpFailure {
    HttpFailure::TooLarge(format!("{what} of over {} MiB", most >> 20))
}

/// Splits a byte stream into lines. A line ends with LF, CR or CRLF.
#[derive(Debug, Default)]
struct LineSplitter {
    bytes: Vec<u8>,
    /// Offset of the next line.
    start: usize,
    /// Offset up to which no line end was found.
    searched: usize,
    /// Whether the last line ended with CR, so that a following LF belongs to the same line end.
    after_return: bool,
}

impl LineSplitter {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the number of bytes of an incomplete line.
    fn waiting(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn next(&mut self) -> Option<String> {
        if self.after_return && self.start < self.bytes.len() {
            self.after_return = false;
            if self.bytes[self.start] == b'\n' {
                self.start += 1;
                self.searched = self.start;
            }
        }
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let Some(found) = self.bytes[self.searched..].iter().position(is_end) else {
            self.searched = self.bytes.len();
            return None;
        };
        let end = self.searched + found;
        let line = String::from_utf8_lossy(&self.bytes[self.start..end]).into_owned();
        self.after_return = self.bytes[end] == b'\r';
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn event_lines_can_end_with_lf_crlf_or_cr() {
        for end in ["\n", "\r\n", "\r"] {
            let lines = [
                ": comment",
                "event: x",
                "data: one",
                "data:two",
                "",
                "id: 1",
                "data: 3",
            ];
            let mut events = EventStream::whole(&format!("{}{end}", lines.join(end)));
            assert_eq!(events.next().await.unwrap().as_deref(), Some("one\ntwo"));
            assert_eq!(events.next().await.unwrap().as_deref(), Some("3"));
            assert_eq!(events.next().await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn done_event_ends_the_stream() {
        let mut events = EventStream::whole("data: 1\n\ndata: [DONE]\n\ndata: 2\n\n");
        assert_eq!(events.next().await.unwrap().as_deref(), Some("1"));
        assert_eq!(events.next().await.unwrap(), None);
    }

    #[test]
    fn lines_split_across_network_chunks_are_joined() {
        let mut lines = LineSplitter::default();
        let mut found = Vec::new();
        for piece in ["da", "ta: ä\r", "\nx", "\n\r", "\n"] {
            lines.push(piece.as_bytes());
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        assert_eq!(found, ["data: ä", "x", ""]);
        assert_eq!(lines.waiting(), 0);
    }
}

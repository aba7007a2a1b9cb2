use serde::{Deserialize, Serialize};

/// A half-open range of byte offsets into a UTF-8 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ByteRange {
    pub start: usize,
    pub end: usize,
}

impl ByteRange {
    /// `start` must not be after `end`.
    pub fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end, "range {start}..{end} runs backwards");
        ByteRange { start, end }
    }

    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub fn contains(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }

    pub fn covers(self, other: ByteRange) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The text of the range.
    pub fn of(self, text: &str) -> &str {
        &text[self.start..self.end]
    }
}

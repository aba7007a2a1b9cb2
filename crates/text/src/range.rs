use serde::{Deserialize, Serialize};

/// A half-open range of byte offsets into a UTF-8 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ByteRange {
    pub start: usize,
    pub end: usize,
}

impl ByteRange {
    /// Creates a range. `start` must not be greater than `end`.
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

    /// Returns the part of `text` that the range covers.
    pub fn of(self, text: &str) -> &str {
        &text[self.start..self.end]
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange;

    #[test]
    fn range_includes_its_start_and_excludes_its_end() {
        let range = ByteRange::new(1, 3);
        assert_eq!((range.len(), range.of("abcd")), (2, "bc"));
        assert!(range.contains(1) && !range.contains(3) && !range.contains(0));
        assert!(range.covers(ByteRange::new(3, 3)) && !range.covers(ByteRange::new(2, 4)));
        assert!(ByteRange::new(2, 2).is_empty() && !range.is_empty());
    }
}

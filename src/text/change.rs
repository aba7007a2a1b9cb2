//! Change sets: what to replace in a text, as a value that can be applied, inverted, composed and
//! rebased.

use serde::{Deserialize, Serialize};

use super::ByteRange;

/// Replaces a range of the base text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub range: ByteRange,
    pub insert: String,
}

/// Edits against one base text: in order, not overlapping, with ranges of the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSet {
    base_len: usize,
    edits: Vec<Edit>,
}

/// The text is not the one that the change set was made for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the change is for a text of {expected} bytes, this one has {actual}")]
pub struct ApplyMismatch {
    pub expected: usize,
    pub actual: usize,
}

/// Two change sets touch the same text. The ranges are those of the common base.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("both sides changed bytes {}..{}", .ours.start, .ours.end)]
pub struct Conflict {
    pub ours: ByteRange,
    pub theirs: ByteRange,
}

impl ChangeSet {
    /// A change set from edits in any order. Empty edits are dropped, adjacent ones joined.
    ///
    /// # Errors
    /// `None` when two edits overlap or one reaches past `base_len`.
    pub fn new(base_len: usize, edits: Vec<Edit>) -> Option<Self> {
        todo!()
    }
    pub fn unchanged(base_len: usize) -> Self {
        todo!()
    }
    /// One replacement.
    pub fn replace(base_len: usize, range: ByteRange, insert: impl Into<String>) -> Option<Self> {
        todo!()
    }
    /// The smallest line-wise change sets that turns `old` into `new`, narrowed inside changed lines
    /// to the differing bytes at character borders.
    pub fn between(old: &str, new: &str) -> Self {
        todo!()
    }
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }
    pub fn base_len(&self) -> usize {
        self.base_len
    }
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }
    pub fn apply(&self, base: &str) -> Result<String, ApplyMismatch> {
        todo!()
    }
    /// The change set that takes the changed text back to `base`.
    pub fn invert(&self, base: &str) -> Result<ChangeSet, ApplyMismatch> {
        todo!()
    }
    /// First `self`, then `next` (whose base is the text after `self`), as one change set.
    pub fn compose(&self, next: &ChangeSet) -> Result<ChangeSet, ApplyMismatch> {
        todo!()
    }
    /// `self` as it must be applied after `theirs`; both have the same base. Insertions at the same
    /// place and overlapping replacements conflict, unless both sides are the same edit.
    pub fn rebase(&self, theirs: &ChangeSet) -> Result<ChangeSet, Conflict> {
        todo!()
    }
    /// Where a byte offset of the base lies after the change (the start of the insert, when it was replaced).
    pub fn map_offset(&self, offset: usize) -> usize {
        todo!()
    }
}

//! File metadata that detects changes without reading the file's text.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use starling_platform::files::change_marks;

/// Time after which a change of a file is certain to be visible in the stamp. Two changes within
/// this time may result in the same stamp, because the clocks of file systems are coarse.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The size, inode and times of a file. If two stamps are equal and the first one is settled (old
/// enough, see [`Stamp::is_settled`]), the text is the same, because every write or replacement of
/// a file updates its change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Size in bytes.
    pub size: u64,
    inode: u64,
    /// Modification time of the text, in nanoseconds since 1970.
    modified: i64,
    /// Change time of text, name or permissions, in nanoseconds since 1970; users cannot set it.
    changed: i64,
}

impl Stamp {
    pub(super) fn of(found: &Metadata) -> Self {
        let marks = change_marks(found);
        Stamp {
            size: found.len(),
            inode: marks.number,
            modified: marks.modified,
            changed: marks.changed,
        }
    }

    /// Returns whether the file was changed after `time`.
    pub fn is_after(&self, time: SystemTime) -> bool {
        let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        i128::from(self.changed.max(self.modified)) > time.as_nanos().cast_signed()
    }

    /// Returns whether the last change of the file was long enough before the time `looked` that a
    /// later change would result in another stamp.
    pub fn is_settled(&self, looked: SystemTime) -> bool {
        let looked = looked.duration_since(UNIX_EPOCH).unwrap_or_default();
        let before = looked.saturating_sub(SETTLED_AFTER).as_nanos();
        i128::from(self.changed.max(self.modified)) < before.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_changes_although_size_and_modification_time_are_restored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.py");
        std::fs::write(&path, "one").unwrap();
        let stamp = || Stamp::of(&std::fs::metadata(&path).unwrap());
        let before = stamp();
        assert_eq!(before, stamp());
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(dir.path().join("holds the inode"), "").unwrap();
        std::fs::write(&path, "two").unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
        assert_eq!(stamp().size, before.size);
        assert_eq!(stamp().modified, before.modified);
        assert_ne!(stamp(), before);
    }

    #[test]
    fn stamp_of_a_recently_changed_file_does_not_prove_that_the_text_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.py");
        std::fs::write(&path, "one").unwrap();
        let stamp = Stamp::of(&std::fs::metadata(&path).unwrap());
        let now = SystemTime::now();
        assert!(!stamp.is_settled(now));
        assert!(stamp.is_settled(now + Duration::from_secs(10)));
        assert!(!stamp.is_settled(UNIX_EPOCH));
    }
}

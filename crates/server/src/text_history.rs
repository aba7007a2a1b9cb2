//! The earlier texts of a file, with which an edit that the client is applying is compared.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of texts that are remembered; older ones are dropped.
const MAX_TEXTS: usize = 16;

/// The texts that a file has had since an edit was sent.
#[derive(Debug, Clone, Default)]
pub struct TextHistory(Arc<Mutex<Vec<Arc<str>>>>);

impl TextHistory {
    /// Adds the current text. Returns whether it differs from the last one.
    pub fn push(&self, text: Arc<str>) -> bool {
        add(&mut self.lock(), text)
    }

    /// Returns the last text.
    pub fn last(&self) -> Option<Arc<str>> {
        self.lock().last().cloned()
    }

    /// Adds a text that was read after the text `last`, unless the document has had another text
    /// since: which of the two is older is then not known. Returns whether it was added.
    pub fn push_after(&self, last: Option<&Arc<str>>, text: Arc<str>) -> bool {
        let mut texts = self.lock();
        let is_same = match (texts.last(), last) {
            (Some(now), Some(last)) => Arc::ptr_eq(now, last),
            (now, last) => now.is_none() && last.is_none(),
        };
        is_same && add(&mut texts, text)
    }

    /// Removes all texts except the current one.
    pub fn restart(&self, text: Arc<str>) {
        *self.lock() = vec![text];
    }

    /// Replaces all texts.
    pub fn replace(&self, texts: impl IntoIterator<Item = Arc<str>>) {
        self.lock().clear();
        for text in texts {
            self.push(text);
        }
    }

    /// Returns whether this is a handle of the same history.
    pub fn is(&self, other: &TextHistory) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether another handle of this history exists.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub fn all(&self) -> Vec<Arc<str>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(texts: &mut Vec<Arc<str>>, text: Arc<str>) -> bool {
    if texts.last() == Some(&text) {
        return false;
    }
    if texts.len() == MAX_TEXTS {
        texts.remove(0);
    }
    texts.push(text);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_was_read_before_a_newer_one_is_not_added_after_it() {
        let texts = TextHistory::default();
        texts.push("a".into());
        let last = texts.last();
        texts.push("b".into());
        texts.push("a".into());
        assert!(!texts.push_after(last.as_ref(), "c".into()));
        assert!(texts.push_after(texts.last().as_ref(), "c".into()));
        assert_eq!(texts.all(), ["a", "b", "a", "c"].map(Arc::from));
    }
}

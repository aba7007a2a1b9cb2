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
        let mut texts = self.lock();
        if texts.last() == Some(&text) {
            return false;
        }
        if texts.len() == MAX_TEXTS {
            texts.remove(0);
        }
        texts.push(text);
        true
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

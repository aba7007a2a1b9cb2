//! The signal that data shown by the front end has changed.

use std::sync::Arc;

use tokio::sync::Notify;

/// Notifies the task that refreshes the front end. Several notifications may lead to one refresh.
#[derive(Debug, Clone, Default)]
pub struct RefreshNotifier {
    changed: Arc<Notify>,
}

impl RefreshNotifier {
    /// Requests a refresh. Never waits.
    pub fn notify(&self) {
        self.changed.notify_one();
    }

    /// Waits for the next notification.
    pub async fn notified(&self) {
        self.changed.notified().await;
    }
}

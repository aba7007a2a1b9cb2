//! Notifies tasks that wait for a condition when the condition may have changed.

use std::pin::pin;

use tokio::sync::Notify;

/// Wakes waiting tasks in the order in which they started to wait. (A `watch` channel wakes its
/// receivers in random order.)
#[derive(Debug, Default)]
pub(crate) struct Signal(Notify);

impl Signal {
    /// Wakes all waiting tasks, which then check their conditions again.
    pub fn raise(&self) {
        self.0.notify_waiters();
    }

    /// Waits until the condition holds. The condition is checked now and each time the signal is
    /// raised.
    pub async fn wait_for(&self, mut holds: impl FnMut() -> bool) {
        loop {
            let mut raised = pin!(self.0.notified());
            // Enabled before the check, so that a signal raised during the check is not lost.
            raised.as_mut().enable();
            if holds() {
                return;
            }
            raised.await;
        }
    }
}

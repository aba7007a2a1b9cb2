//! A signal that something has changed, for tasks that wait for a condition.

use std::pin::pin;

use tokio::sync::Notify;

/// Wakes the waiting tasks in the order in which they began to wait. (A `watch` channel wakes its
/// receivers in a random order.)
#[derive(Debug, Default)]
pub(super) struct Signal(Notify);

impl Signal {
    /// Lets all that wait look at their conditions again.
    pub fn raise(&self) {
        self.0.notify_waiters();
    }

    /// Returns when the condition holds. It is looked at now, and after each time that the signal is
    /// raised.
    pub async fn wait_for(&self, mut holds: impl FnMut() -> bool) {
        loop {
            let mut raised = pin!(self.0.notified());
            // Before the look: a signal that is raised meanwhile counts.
            raised.as_mut().enable();
            if holds() {
                return;
            }
            raised.await;
        }
    }
}

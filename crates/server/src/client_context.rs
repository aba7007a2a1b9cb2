//! What runs and questions need of the client.

use std::sync::Arc;

use super::outgoing::ClientPlugin;
use super::session::RefreshNotifier;
use super::window::ClientWindow;

/// The handles by which runs and questions send messages to the client.
#[derive(Debug, Clone)]
pub struct ClientContext {
    pub refresh: RefreshNotifier,
    pub window: Arc<ClientWindow>,
    pub plugin: ClientPlugin,
}

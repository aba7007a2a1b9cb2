//! The notifications of `starling/`: only a client that announced `experimental.starling` hears them.
//! Others would log each as unknown, or warn their user of it.

use std::sync::{Arc, OnceLock};

use tower_lsp::Client;
use tower_lsp::lsp_types::notification::Notification;

/// The plugin at the client, if there is one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Plugin {
    client: Client,
    is_there: Arc<OnceLock<bool>>,
}

impl Plugin {
    pub fn new(client: Client) -> Plugin {
        Plugin {
            client,
            is_there: Arc::default(),
        }
    }

    /// What the client said of itself.
    pub fn agree(&self, is_there: bool) {
        self.is_there.get_or_init(|| is_there);
    }

    pub fn is_there(&self) -> bool {
        self.is_there.get().copied().unwrap_or_default()
    }

    /// Tells the plugin; does nothing where there is none.
    pub async fn tell<N: Notification>(&self, params: N::Params) {
        if self.is_there() {
            self.client.send_notification::<N>(params).await;
        }
    }
}

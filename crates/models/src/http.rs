//! The HTTP client of all requests.

use reqwest::{ClientBuilder, redirect};
use rustls::crypto::ring;

/// Starts a client with TLS by `ring` that never follows redirects: the configured address alone may see a prompt.
pub(crate) fn client() -> ClientBuilder {
    // Fails if a provider is installed already, which is then used.
    let _ = ring::default_provider().install_default();
    ClientBuilder::new().redirect(redirect::Policy::none())
}

#[cfg(test)]
mod tests {
    #[test]
    fn client_supports_tls() {
        assert!(super::client().https_only(true).build().is_ok());
    }
}

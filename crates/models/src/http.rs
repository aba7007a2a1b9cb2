//! Creates the HTTP clients for all requests to models.

use reqwest::{ClientBuilder, redirect};
use rustls::crypto::ring;

/// Returns the builder of a client that uses `ring` for TLS and follows no redirects, because only the
/// configured address may receive a prompt.
pub(crate) fn client() -> ClientBuilder {
    // This fails if the process has a provider already, for example from an earlier call.
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

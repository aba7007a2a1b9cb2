//! Checks each request before it is answered: its host, so that a web page cannot reach the server
//! under a domain name that resolves to this machine (DNS rebinding), and its API key.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::error::ApiError;

/// Checks that the `Host` header names this machine.
///
/// # Errors
/// The `Host` header is missing or names another host.
pub fn check_host(headers: &HeaderMap) -> Result<(), ApiError> {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    if host.is_some_and(is_loopback) {
        return Ok(());
    }
    let message = format!(
        "the host {:?} is not this machine: use 127.0.0.1, [::1] or localhost",
        host.unwrap_or_default()
    );
    Err(ApiError::new(StatusCode::FORBIDDEN, message))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if port.is_empty() || port.starts_with(':') => name,
            _ => return false,
        },
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Checks the API key in the `Authorization` header. The comparison takes the same time however
/// much of the key is right.
///
/// # Errors
/// The key is missing or wrong.
pub fn check_key(headers: &HeaderMap, key: &str) -> Result<(), ApiError> {
    let given = headers
        .get(header::AUTHORIZATION)
        .map(|value| value.as_bytes())
        .and_then(|value| value.strip_prefix(b"Bearer "));
    let message = match given {
        Some(given) if is_equal(given, key.as_bytes()) => return Ok(()),
        Some(_) => "the API key is wrong",
        None => "the API key is missing: send it as `Authorization: Bearer KEY`",
    };
    Err(ApiError {
        code: Some("invalid_api_key"),
        ..ApiError::new(StatusCode::UNAUTHORIZED, message)
    })
}

/// Compares the hashes of two texts in constant time.
fn is_equal(given: &[u8], wanted: &[u8]) -> bool {
    let (given, wanted) = (Sha256::digest(given), Sha256::digest(wanted));
    let difference = given
        .iter()
        .zip(wanted.iter())
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_accepted_as_host() {
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:8765",
            "127.1.2.3",
            "[::1]:8765",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:8765",
            "127.0.0.1.evil.example",
            "[::1",
            "[::1]evil",
            "192.168.0.1",
            "0.0.0.0",
            "evil.example:127.0.0.1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn part_of_the_key_is_rejected() {
        assert!(is_equal(b"secret", b"secret"));
        for wrong in [&b""[..], b"secre", b"secret ", b"Secret"] {
            assert!(!is_equal(wrong, b"secret"));
        }
    }
}

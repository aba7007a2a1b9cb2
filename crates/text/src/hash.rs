use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The SHA-256 of a text, in lower-case hexadecimal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    pub fn of(text: &str) -> Self {
        use fmt::Write;
        let digest = Sha256::digest(text.as_bytes());
        let mut hex = String::with_capacity(64);
        for byte in digest.iter() {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        }
        ContentHash(hex)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", &self.0[..12])
    }
}

#[cfg(test)]
mod tests {
    use super::ContentHash;

    #[test]
    fn content_hash_is_the_sha_256_of_the_text() {
        let hash = ContentHash::of("abc");
        assert_eq!(
            hash.as_str(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(format!("{hash:?}"), "ba7816bf8f01");
        assert_ne!(hash, ContentHash::of("abd"));
    }
}

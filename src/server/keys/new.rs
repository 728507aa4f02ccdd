//! A key as it is made: shown once, kept as a hash.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::file::{MAX_NAME, good_name};
use super::scope::Scopes;

/// What every key starts with, so that people and secret scanners know one when they see it.
const PREFIX: &str = "postroom_";

/// Why no key was made.
#[derive(Debug, thiserror::Error)]
pub enum NewKeyError {
    /// The name cannot stand in a key file.
    #[error("`{0}` is no name for a key: use 1 to {MAX_NAME} letters, digits, dots, hyphens and underscores")]
    Name(String),
    /// The system gave no random numbers.
    #[error("the system gave no random numbers ({0})")]
    Random(getrandom::Error),
}

/// A new key. The key itself is wiped from memory when this is dropped.
pub struct NewKey {
    /// The key, for its owner.
    pub key: Zeroizing<String>,
    /// The line for the key file.
    pub line: String,
}

impl NewKey {
    /// Makes a key of 256 bits from the system's random numbers.
    ///
    /// # Errors
    /// [`NewKeyError`].
    pub fn make(name: &str, scopes: Scopes) -> Result<Self, NewKeyError> {
        if !good_name(name) {
            return Err(NewKeyError::Name(name.to_owned()));
        }
        let mut secret = Zeroizing::new([0u8; 32]);
        getrandom::fill(secret.as_mut()).map_err(NewKeyError::Random)?;
        let mut key = Zeroizing::new(String::with_capacity(PREFIX.len() + 64));
        key.push_str(PREFIX);
        push_hex(&mut key, secret.as_ref());
        let mut line = format!("{name}  {scopes}  sha256:");
        push_hex(&mut line, &digest(key.as_bytes()));
        Ok(Self { key, line })
    }
}

/// What the file holds of a key.
pub(super) fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

//! API keys: who may ask for what.
//!
//! A key is 256 random bits, so its SHA-256 is as good a secret-keeper as any slow hash: there is nothing to guess from. The
//! file holds hashes only; it is read again on SIGHUP and whenever it changes. Without a file the service asks nobody.
//!
//! ```text
//! # name    scopes         hash of the key (postroom keys new NAME --scope route,explain)
//! helpdesk  route,explain  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! ```

mod file;
mod guard;
mod new;
mod scope;

pub use file::{KeyFileError, KeyRing};
pub use new::{NewKey, NewKeyError};
pub use scope::{Scope, Scopes};

pub(super) use guard::{KeyName, guard};

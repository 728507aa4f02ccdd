//! The key file, and the keys in force.

use std::path::{Path, PathBuf};

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::new::digest;
use super::scope::Scopes;

/// Longest name of a key.
pub(super) const MAX_NAME: usize = 64;

/// Why a key file is refused. No message quotes a hash.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It is missing or unreadable.
    #[error("cannot read the keys in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A line is no key.
    #[error("{} line {line}: {reason}; a line is NAME SCOPES sha256:HASH, as `postroom keys new` prints it", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// It holds no key, which would lock everybody out.
    #[error("{} holds no key; make one with `postroom keys new NAME`, or leave server.keys_file unset", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// One key in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiKey {
    pub name: String,
    pub scopes: Scopes,
    digest: [u8; 32],
}

/// The keys in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRing {
    keys: Vec<ApiKey>,
}

impl KeyRing {
    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyFileError`].
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| KeyFileError::Read { path: path.to_owned(), source })?;
        let mut keys: Vec<ApiKey> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = parse(line).and_then(|key| match keys.iter().any(|known| known.name == key.name) {
                true => Err(format!("the name `{}` stands twice", key.name)),
                false => Ok(key),
            });
            keys.push(key.map_err(|reason| KeyFileError::Line { path: path.to_owned(), line: index + 1, reason })?);
        }
        if keys.is_empty() { Err(KeyFileError::Empty { path: path.to_owned() }) } else { Ok(Self { keys }) }
    }

    /// Names and scopes, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = (&str, Scopes)> {
        self.keys.iter().map(|key| (key.name.as_str(), key.scopes))
    }

    /// The key that was presented. Takes the same time whichever it is, and where it is none.
    pub(super) fn find(&self, presented: &[u8]) -> Option<&ApiKey> {
        let digest = digest(presented);
        let mut found = u32::MAX;
        for (index, key) in (0u32..).zip(&self.keys) {
            let same: Choice = key.digest.ct_eq(&digest);
            found.conditional_assign(&index, same);
        }
        self.keys.get(found as usize)
    }
}

pub(super) fn good_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

fn parse(line: &str) -> Result<ApiKey, String> {
    let mut parts = line.split_whitespace();
    let (Some(name), Some(scopes), Some(hash), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(format!("{} words instead of 3", line.split_whitespace().count()));
    };
    if !good_name(name) {
        return Err(format!("the name has characters other than letters, digits and .-_, or more than {MAX_NAME}"));
    }
    let digest = hash.strip_prefix("sha256:").and_then(unhex).ok_or("the hash is not sha256: and 64 hex digits")?;
    Ok(ApiKey { name: name.to_owned(), scopes: scopes.parse()?, digest })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::{NewKey, Scope};
    use super::*;

    fn read(text: &str) -> Result<KeyRing, KeyFileError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        KeyRing::read(file.path())
    }

    #[test]
    fn a_made_key_opens_what_its_line_says_and_nothing_else_does() {
        let (intake, metrics) = (
            NewKey::make("intake", "route,explain".parse().unwrap()).unwrap(),
            NewKey::make("metrics", "admin".parse().unwrap()).unwrap(),
        );
        let ring = read(&format!("# ours\n\n{}\n  {}\n", intake.line, metrics.line)).unwrap();
        let found = ring.find(intake.key.as_bytes()).unwrap();
        assert_eq!(found.name, "intake");
        assert!(found.scopes.has(Scope::Explain) && !found.scopes.has(Scope::Admin));
        assert_eq!(ring.find(metrics.key.as_bytes()).unwrap().name, "metrics");
        assert!(ring.find(b"").is_none() && ring.find(intake.line.as_bytes()).is_none());
        assert_ne!(*intake.key, *metrics.key);
        assert!(intake.key.len() > 64 && !intake.line.contains(intake.key.as_str()));
    }

    /// Coarse, since other work runs beside the test: with an early way out the first of many keys would be found in a small
    /// part of the time of the last one.
    #[test]
    fn a_wrong_key_takes_as_long_as_a_right_one() {
        let make = |number| NewKey::make(&format!("key-{number}"), "route".parse().unwrap()).unwrap();
        let keys: Vec<NewKey> = (0..500).map(make).collect();
        let lines: Vec<&str> = keys.iter().map(|key| key.line.as_str()).collect();
        let ring = read(&lines.join("\n")).unwrap();
        let (first, last) = (keys[0].key.to_string(), keys[499].key.to_string());
        let almost = format!("{}x", &last[..last.len() - 1]);
        let shown = [first, last, almost, make(500).key.to_string()];
        let mut times: [Vec<Duration>; 4] = Default::default();
        for _ in 0..61 {
            for (key, times) in shown.iter().zip(&mut times) {
                let started = Instant::now();
                for _ in 0..16 {
                    std::hint::black_box(ring.find(std::hint::black_box(key.as_bytes())));
                }
                times.push(started.elapsed());
            }
        }
        let medians = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64()
        });
        let (least, most) =
            medians.iter().fold((f64::MAX, 0.0f64), |(least, most), &one| (least.min(one), most.max(one)));
        assert!(most < 2.0 * least, "{medians:?}");
    }

    #[test]
    fn a_line_that_is_no_key_is_told_by_number_and_without_its_hash() {
        let hash = "ab".repeat(32);
        for (line, reason) in [
            (format!("intake sha256:{hash}"), "2 words"),
            (format!("in/take route sha256:{hash}"), "name"),
            (format!("intake root sha256:{hash}"), "`root` is none of"),
            (format!("intake route {hash}"), "sha256:"),
            (format!("intake route sha256:{hash}ab"), "64 hex"),
        ] {
            let error = read(&format!("# keys\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(reason) && !error.contains(&hash), "{error}");
        }
        let twice = format!("a route sha256:{hash}\na admin sha256:{hash}\n");
        assert!(read(&twice).unwrap_err().to_string().contains("twice"));
        assert!(matches!(read("# nothing\n"), Err(KeyFileError::Empty { .. })));
        assert!(NewKey::make("a b", "route".parse().unwrap()).is_err());
    }
}

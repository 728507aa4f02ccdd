//! SHA-256 of files, as `sha256sum` prints it.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::ArtifactError;

/// Lower-case hexadecimal SHA-256 of bytes.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lower-case hexadecimal SHA-256 of a file.
///
/// # Errors
/// [`ArtifactError::Read`].
pub fn sha256_file(path: &Path) -> Result<String, ArtifactError> {
    let mut file = std::fs::File::open(path).map_err(ArtifactError::read(path))?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block).map_err(ArtifactError::read(path))? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            read => hasher.update(&block[..read]),
        }
    }
}

/// Compares a file's bytes with the checksum that the router expects.
pub(super) fn verify(path: &Path, bytes: &[u8], expected: &str) -> Result<(), ArtifactError> {
    compare(path, sha256(bytes), expected)
}

/// As [`verify`], of a file that is not needed otherwise.
pub(super) fn verify_file(path: &Path, expected: &str) -> Result<(), ArtifactError> {
    compare(path, sha256_file(path)?, expected)
}

fn compare(path: &Path, found: String, expected: &str) -> Result<(), ArtifactError> {
    if found == expected {
        return Ok(());
    }
    Err(ArtifactError::Checksum { path: path.to_owned(), expected: expected.to_owned(), found })
}

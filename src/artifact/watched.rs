//! Whether a router's directory has changed since somebody looked: by polling, which works on every file system.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::encoder_dir::ENCODER_FILES;
use super::save::MANIFEST;
use super::versions::resolve_router;
use super::{ArtifactError, checksum};

/// What a directory looked like. Equal looks: nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The directory that holds the router: of the version in force, where there are versions.
    pub place: PathBuf,
    /// SHA-256 of `router.json`; `None` for a foreign classifier, which has none.
    manifest: Option<String>,
    /// Name, length and time of each file: they change when a damaged router is repaired though its manifest does not.
    files: Vec<(String, u64, Option<SystemTime>)>,
}

impl Look {
    /// Whether both are the same router, wherever it lies and whenever it was written: `router.json` names every other file by
    /// its checksum.
    #[must_use]
    pub fn same_router(&self, other: &Self) -> bool {
        match (&self.manifest, &other.manifest) {
            (Some(one), Some(other)) => one == other,
            _ => self == other,
        }
    }
}

/// Looks at the router in `path`, which costs the reading of one small file.
///
/// # Errors
/// [`ArtifactError`] where there is no router to be looked at, perhaps only while it is being exchanged.
pub fn look(path: &Path) -> Result<Look, ArtifactError> {
    let place = resolve_router(path)?;
    let file = place.join(MANIFEST);
    let manifest = match std::fs::read(&file) {
        Ok(bytes) => Some(checksum::sha256(&bytes)),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(ArtifactError::read(&file)(error)),
        Err(_) if place.join(ENCODER_FILES[0]).is_file() => None,
        Err(_) => return Err(ArtifactError::NoRouter { path: place }),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&place).map_err(ArtifactError::read(&place))? {
        let entry = entry.map_err(ArtifactError::read(&place))?;
        // A file that goes while it is looked at makes another look than the next one.
        let (length, modified) = entry.metadata().map_or((0, None), |meta| (meta.len(), meta.modified().ok()));
        files.push((entry.file_name().to_string_lossy().into_owned(), length, modified));
    }
    files.sort();
    Ok(Look { place, manifest, files })
}

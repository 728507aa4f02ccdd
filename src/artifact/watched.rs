//! Whether a router's directory has changed since somebody looked: by polling, which works on every file system.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use super::encoder_dir::ENCODER_FILES;
use super::router_dir::find_encoder;
use super::save::MANIFEST;
use super::versions::resolve_router;
use super::{ArtifactError, EncoderReference, checksum};

/// What a directory looked like. Equal looks: nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The directory that holds the router: of the version in force, where there are versions.
    pub place: PathBuf,
    /// SHA-256 of `router.json`; `None` for a foreign classifier, which has none.
    manifest: Option<String>,
    /// Path, length and time of each file, the encoder's included: they change when a file is damaged or repaired though
    /// `router.json` does not.
    files: Vec<(PathBuf, u64, Option<SystemTime>)>,
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

/// The one thing of `router.json` that a look needs.
#[derive(Deserialize)]
struct Named {
    encoder: EncoderReference,
}

/// Looks at the router in `path`, which costs the reading of one small file.
///
/// # Errors
/// [`ArtifactError`] where there is no router to be looked at, perhaps only while it is being exchanged.
pub fn look(path: &Path) -> Result<Look, ArtifactError> {
    let place = resolve_router(path)?;
    let file = place.join(MANIFEST);
    let mut encoder = None;
    let manifest = match std::fs::read(&file) {
        Ok(bytes) => {
            // What is no manifest is refused when it is loaded; here it is only another look.
            let named = serde_json::from_slice::<Named>(&bytes).ok();
            encoder = named.and_then(|named| find_encoder(&place, &named.encoder.name).ok());
            Some(checksum::sha256(&bytes))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(ArtifactError::read(&file)(error)),
        Err(_) if place.join(ENCODER_FILES[0]).is_file() => None,
        Err(_) => return Err(ArtifactError::no_router(&place)),
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&place).map_err(ArtifactError::read(&place))? {
        paths.push(entry.map_err(ArtifactError::read(&place))?.path());
    }
    paths.extend(ENCODER_FILES.iter().filter_map(|name| Some(encoder.as_ref()?.join(name))));
    paths.sort();
    let seen = |path: PathBuf| {
        // A file that goes while it is looked at makes another look than the next one.
        let (length, modified) = std::fs::metadata(&path).map_or((0, None), |meta| (meta.len(), meta.modified().ok()));
        (path, length, modified)
    };
    let files = paths.into_iter().map(seen).collect();
    Ok(Look { place, manifest, files })
}

//! Whether the files of a router are still those that it was made of, found without loading it.

use std::path::Path;

use super::encoder_change::{ADAPTER, ADAPTER_CONFIG, ENCODER};
use super::router_dir::{find_encoder, has_manifest, read_manifest};
use super::save::{HEAD, MANIFEST};
use super::versions::resolve_router;
use super::{ArtifactError, checksum, lexical_file, probes};

/// Compares every file that the router in `path` would be loaded from with its checksum in `router.json`, and reads what is under
/// none. A classifier of Hugging Face's layout has no checksums, so nothing is found out of it.
///
/// # Errors
/// [`ArtifactError`], naming the first file that is missing, unreadable or another.
pub fn verify_router(path: &Path) -> Result<(), ArtifactError> {
    let place = resolve_router(path)?;
    if !has_manifest(&place)? {
        return Ok(());
    }
    let manifest = read_manifest(&place.join(MANIFEST))?;
    let files = &manifest.files;
    for (name, expected) in [
        (HEAD, Some(&files.head)),
        (lexical_file::NAME, files.lexical.as_ref()),
        (ADAPTER, files.adapter.as_ref()),
        (ADAPTER_CONFIG, files.adapter_config.as_ref()),
        (ENCODER, files.encoder.as_ref()),
    ] {
        if let Some(expected) = expected {
            checksum::verify_file(&place.join(name), expected)?;
        }
    }
    let encoder = find_encoder(&place, &manifest.encoder.name)?;
    for (name, expected) in &manifest.encoder.sha256 {
        checksum::verify_file(&encoder.join(name), expected)?;
    }
    probes::check(&place)
}

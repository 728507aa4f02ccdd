//! Writing a router: whole or not at all.

use std::path::Path;

use super::{ArtifactError, EncoderChange, HeadTensors, Manifest, checksum, lexical_file};
use crate::lexical::Lexical;

pub(super) const MANIFEST: &str = "router.json";
pub(super) const HEAD: &str = "head.safetensors";
const CARD: &str = "README.md";

/// The tensors of a router.
#[derive(Debug, Clone, Copy)]
pub struct RouterTensors<'a> {
    /// The head on the encoder.
    pub head: &'a HeadTensors,
    /// The word counts, where there are some.
    pub lexical: Option<&'a Lexical>,
    /// What changed in the encoder, where it is not the original.
    pub change: Option<&'a EncoderChange>,
}

/// Writes a router's directory whole: aside, flushed to disk, then renamed over the old one. A crash or a full disk on
/// the way leaves the old router as it was. `manifest.files` and `manifest.version` are filled in here.
///
/// # Errors
/// [`ArtifactError::Write`].
pub fn save_router(
    path: &Path,
    mut manifest: Manifest,
    tensors: RouterTensors<'_>,
    card: &str,
) -> Result<(), ArtifactError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(ArtifactError::write(parent))?;
    let aside = tempfile::Builder::new().prefix(".router-").tempdir_in(parent).map_err(ArtifactError::write(parent))?;

    let head = tensors.head.to_safetensors().map_err(|source| ArtifactError::damaged(&path.join(HEAD), source))?;
    manifest.files.head = checksum::sha256(&head);
    if let Some(lexical) = tensors.lexical {
        let file = aside.path().join(lexical_file::NAME);
        let bytes = lexical_file::bytes(lexical).map_err(|source| ArtifactError::damaged(&file, source))?;
        manifest.files.lexical = Some(checksum::sha256(&bytes));
        write_flushed(&file, &bytes)?;
    }
    if let Some(change) = tensors.change {
        let files = change.files(&manifest.encoder.name).map_err(|reason| ArtifactError::damaged(path, reason))?;
        for (name, bytes) in files {
            manifest.files.set_change(name, checksum::sha256(&bytes));
            write_flushed(&aside.path().join(name), &bytes)?;
        }
    }
    manifest.version = version(&manifest)?;
    let json = serde_json::to_string_pretty(&manifest)
        .map_err(|source| ArtifactError::damaged(&path.join(MANIFEST), source))?;
    write_flushed(&aside.path().join(HEAD), &head)?;
    write_flushed(&aside.path().join(MANIFEST), format!("{json}\n").as_bytes())?;
    write_flushed(&aside.path().join(CARD), card.as_bytes())?;

    let fresh = aside.keep();
    if path.exists() {
        let old = fresh.with_extension("old");
        std::fs::rename(path, &old).map_err(ArtifactError::write(path))?;
        if let Err(source) = std::fs::rename(&fresh, path) {
            // Best effort: the old router back in its place before the error is told.
            let _ = std::fs::rename(&old, path);
            return Err(ArtifactError::write(path)(source));
        }
        std::fs::remove_dir_all(&old).map_err(ArtifactError::write(&old))?;
    } else {
        std::fs::rename(&fresh, path).map_err(ArtifactError::write(path))?;
    }
    readable_by_all(path)
}

/// The version is made of what the router decides by, so the same training gives the same version.
fn version(manifest: &Manifest) -> Result<String, ArtifactError> {
    let json = serde_json::to_vec(manifest).map_err(|source| ArtifactError::damaged(Path::new(MANIFEST), source))?;
    Ok(checksum::sha256(&json)[..12].to_owned())
}

/// Replaces the model card of a router.
///
/// # Errors
/// [`ArtifactError::Write`].
pub fn write_card(path: &Path, card: &str) -> Result<(), ArtifactError> {
    let (fresh, old) = (path.join(".README.md"), path.join(CARD));
    write_flushed(&fresh, card.as_bytes())?;
    std::fs::rename(&fresh, &old).map_err(ArtifactError::write(&old))
}

fn write_flushed(path: &Path, bytes: &[u8]) -> Result<(), ArtifactError> {
    use std::io::Write;
    let mut file = std::fs::File::create(path).map_err(ArtifactError::write(path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(ArtifactError::write(path))
}

/// A temporary directory is for its owner only; a router is for whoever serves it.
fn readable_by_all(path: &Path) -> Result<(), ArtifactError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(ArtifactError::write(path))?;
    }
    Ok(())
}

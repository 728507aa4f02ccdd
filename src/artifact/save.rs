//! Writing a router: whole or not at all.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::encoder_change::{ADAPTER, ADAPTER_CONFIG, ENCODER};
use super::manifest::RouterFiles;
use super::place::check_place;
use super::router_dir::read_manifest;
use super::{ArtifactError, EncoderChange, HeadTensors, Manifest, Memory, checksum, lexical_file, memory_file, probes};
use crate::lexical::Lexical;

pub(super) const MANIFEST: &str = "router.json";
pub(super) const HEAD: &str = "head.safetensors";
pub(super) const CARD: &str = "README.md";

/// The tensors of a router.
#[derive(Debug, Clone, Copy)]
pub struct RouterTensors<'a> {
    /// The head on the encoder.
    pub head: &'a HeadTensors,
    /// The word counts, where there are some.
    pub lexical: Option<&'a Lexical>,
    /// What changed in the encoder, where it is not the original.
    pub change: Option<&'a EncoderChange>,
    /// What it remembers of its mail.
    pub memory: Option<&'a Memory>,
}

/// Writes a router's directory whole: aside, flushed to disk, then exchanged with the old one. A crash or a full disk on
/// the way leaves the old router as it was. `manifest.files` and `manifest.version` are filled in here.
///
/// # Errors
/// [`ArtifactError::Write`]; those of [`check_place`] where something else than a router lies there.
pub fn save_router(
    path: &Path,
    manifest: Manifest,
    tensors: RouterTensors<'_>,
    card: &str,
) -> Result<(), ArtifactError> {
    save_router_and(path, manifest, tensors, card, |_| Ok(()))
}

/// As [`save_router`]; `finish` adds to the new router, where it lies before it takes the place of the old one. Where it fails, the
/// old router stays.
///
/// # Errors
/// Those of [`save_router`] and of `finish`.
pub fn save_router_and<T, E: From<ArtifactError>>(
    path: &Path,
    manifest: Manifest,
    tensors: RouterTensors<'_>,
    card: &str,
    finish: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    let written = write_aside(path, manifest, tensors, card)?;
    let finished = finish(written.path())?;
    put_in_place(written, path)?;
    Ok(finished)
}

/// Writes a router beside the place where it is to lie.
pub(super) fn write_aside(
    path: &Path,
    mut manifest: Manifest,
    tensors: RouterTensors<'_>,
    card: &str,
) -> Result<TempDir, ArtifactError> {
    check_place(path)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(ArtifactError::write(parent))?;
    let aside = tempfile::Builder::new().prefix(".router-").tempdir_in(parent).map_err(ArtifactError::write(parent))?;

    let head = tensors.head.to_safetensors().map_err(|source| ArtifactError::damaged(&path.join(HEAD), source))?;
    manifest.files = RouterFiles { head: checksum::sha256(&head), ..RouterFiles::default() };
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
    if let Some(memory) = tensors.memory {
        let file = aside.path().join(memory_file::NAME);
        let bytes = memory_file::bytes(memory).map_err(|source| ArtifactError::damaged(&file, source))?;
        manifest.files.memory = Some(checksum::sha256(&bytes));
        write_flushed(&file, &bytes)?;
    }
    manifest.version = version(&manifest)?;
    write_flushed(&aside.path().join(HEAD), &head)?;
    write_flushed(&aside.path().join(MANIFEST), &manifest_bytes(&manifest)?)?;
    write_flushed(&aside.path().join(CARD), card.as_bytes())?;
    Ok(aside)
}

/// Puts a router that was written aside in its place; an old one that lies there goes.
pub(super) fn put_in_place(written: TempDir, path: &Path) -> Result<(), ArtifactError> {
    readable_by_all(written.path())?;
    if path.exists() {
        exchange(written.path(), path).map_err(ArtifactError::write(path))?;
        let old = written.path().to_owned();
        return written.close().map_err(ArtifactError::write(&old));
    }
    std::fs::rename(written.path(), path).map_err(ArtifactError::write(path))?;
    // It is no longer there to be taken away.
    let _ = written.keep();
    Ok(())
}

/// Puts each directory in the place of the other.
fn exchange(fresh: &Path, path: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        // In one step: whoever is killed leaves the old router or the new one.
        match renameat_with(CWD, fresh, CWD, path, RenameFlags::EXCHANGE) {
            // Not every file system can.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            done => return Ok(done?),
        }
    }
    let old = fresh.with_extension("old");
    std::fs::rename(path, &old)?;
    if let Err(error) = std::fs::rename(fresh, path) {
        // Best effort: the old router back in its place before the error is told.
        let _ = std::fs::rename(&old, path);
        return Err(error);
    }
    std::fs::rename(&old, fresh)
}

fn manifest_bytes(manifest: &Manifest) -> Result<Vec<u8>, ArtifactError> {
    let json =
        serde_json::to_string_pretty(manifest).map_err(|source| ArtifactError::damaged(Path::new(MANIFEST), source))?;
    Ok(format!("{json}\n").into_bytes())
}

/// The version is made of what the router decides by, so the same training gives the same version. The memory decides nothing.
fn version(manifest: &Manifest) -> Result<String, ArtifactError> {
    let mut manifest = Manifest { version: String::new(), ..manifest.clone() };
    manifest.files.memory = None;
    let json = serde_json::to_vec(&manifest).map_err(|source| ArtifactError::damaged(Path::new(MANIFEST), source))?;
    Ok(checksum::sha256(&json)[..12].to_owned())
}

/// Gives a router its memory, which only the finished router can make. Its version stays.
///
/// # Errors
/// [`ArtifactError`].
pub fn save_memory(path: &Path, memory: &Memory) -> Result<(), ArtifactError> {
    let file = path.join(memory_file::NAME);
    let bytes = memory_file::bytes(memory).map_err(|source| ArtifactError::damaged(&file, source))?;
    let mut manifest = read_manifest(&path.join(MANIFEST))?;
    manifest.files.memory = Some(checksum::sha256(&bytes));
    // The memory first: a memory that no manifest names is nothing, a manifest without its memory an error.
    replace(path, memory_file::NAME, &bytes)?;
    replace(path, MANIFEST, &manifest_bytes(&manifest)?)
}

/// Replaces the model card of a router.
///
/// # Errors
/// [`ArtifactError::Write`].
pub fn write_card(path: &Path, card: &str) -> Result<(), ArtifactError> {
    replace(path, CARD, card.as_bytes())
}

/// Replaces one file of a router.
pub(super) fn replace(path: &Path, name: &str, bytes: &[u8]) -> Result<(), ArtifactError> {
    Replacement::write(path, name, bytes)?.put()
}

/// A file that is written beside the one that it shall replace. Dropped before, it is taken away again.
pub(super) struct Replacement {
    fresh: PathBuf,
    old: PathBuf,
}

impl Replacement {
    /// Writes and flushes it.
    pub(super) fn write(path: &Path, name: &str, bytes: &[u8]) -> Result<Self, ArtifactError> {
        let replacement = Self { fresh: path.join(format!(".{name}")), old: path.join(name) };
        write_flushed(&replacement.fresh, bytes)?;
        Ok(replacement)
    }

    /// Puts it in its place, which needs no room.
    pub(super) fn put(self) -> Result<(), ArtifactError> {
        std::fs::rename(&self.fresh, &self.old).map_err(ArtifactError::write(&self.old))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Gone already where it was put in its place.
        let _ = std::fs::remove_file(&self.fresh);
    }
}

/// Copies what is no file of a router.
pub(super) fn copy_companions(from: &Path, to: &Path) -> Result<(), ArtifactError> {
    const OWN: [&str; 9] =
        [MANIFEST, HEAD, lexical_file::NAME, ADAPTER, ADAPTER_CONFIG, ENCODER, memory_file::NAME, probes::NAME, CARD];
    for entry in std::fs::read_dir(from).map_err(ArtifactError::read(from))? {
        let entry = entry.map_err(ArtifactError::read(from))?;
        if !OWN.iter().any(|own| entry.file_name() == *own) {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Copies a file or a folder; what a link points to is copied, so that the copy stands by itself.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), ArtifactError> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop).map_err(ArtifactError::write(to));
    }
    std::fs::create_dir(to).map_err(ArtifactError::write(to))?;
    for entry in std::fs::read_dir(from).map_err(ArtifactError::read(from))? {
        let entry = entry.map_err(ArtifactError::read(from))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn write_flushed(path: &Path, bytes: &[u8]) -> Result<(), ArtifactError> {
    use std::io::Write;
    let mut file = std::fs::File::create(path).map_err(ArtifactError::write(path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(ArtifactError::write(path))
}

/// A temporary directory is for its owner only; a router is for whoever serves it.
pub(super) fn readable_by_all(path: &Path) -> Result<(), ArtifactError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(ArtifactError::write(path))?;
    }
    Ok(())
}

//! Versions of a router side by side, one of them in force:
//!
//! ```text
//! models/shop/versions/78d5285b0c74/router.json ...
//! models/shop/versions/91c1f7d9a7e2/router.json ...
//! models/shop/current          the version in force, one line
//! models/shop/changes.jsonl    who changed it, when (see the history)
//! ```
//!
//! `current` is replaced by a rename, so that a reader sees the old version or the new one. Versions are never changed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::router_dir::read_manifest;
use super::save::{MANIFEST, Replacement, copy, readable_by_all};
use super::{ArtifactError, Manifest, history};

const VERSIONS: &str = "versions";
const CURRENT: &str = "current";

/// A directory with versions of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedRouter {
    root: PathBuf,
}

/// A version of a router.
#[derive(Debug)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// What it is, or why that cannot be read.
    pub manifest: Result<Manifest, ArtifactError>,
}

impl VersionedRouter {
    /// The directory at `root`, where it is one.
    ///
    /// # Errors
    /// [`ArtifactError::NoVersions`], [`ArtifactError::NotThere`].
    pub fn open(root: &Path) -> Result<Self, ArtifactError> {
        if root.join(VERSIONS).is_dir() && !root.join(MANIFEST).exists() {
            return Ok(Self { root: root.to_owned() });
        }
        if !root.exists() {
            return Err(ArtifactError::not_there(root));
        }
        Err(ArtifactError::NoVersions { path: root.to_owned() })
    }

    /// As [`VersionedRouter::open`]; a directory that is not there yet is made.
    ///
    /// # Errors
    /// [`ArtifactError::NoVersions`] where something else is there, [`ArtifactError::Write`].
    pub fn open_or_create(root: &Path) -> Result<Self, ArtifactError> {
        let empty = match std::fs::read_dir(root) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if empty {
            let versions = root.join(VERSIONS);
            std::fs::create_dir_all(&versions).map_err(ArtifactError::write(&versions))?;
        }
        Self::open(root)
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a version lies.
    #[must_use]
    pub fn path_of(&self, version: &str) -> PathBuf {
        self.root.join(VERSIONS).join(version)
    }

    /// The version in force; `None` before the first.
    ///
    /// # Errors
    /// [`ArtifactError::Read`], [`ArtifactError::Damaged`].
    pub fn current(&self) -> Result<Option<String>, ArtifactError> {
        let file = self.root.join(CURRENT);
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(ArtifactError::read(&file))?,
        };
        let version = text.trim();
        if !plain(version) {
            return Err(ArtifactError::damaged(&file, "it must hold the name of one version"));
        }
        Ok(Some(version.to_owned()))
    }

    /// Every version that is there, in order of the names.
    ///
    /// # Errors
    /// [`ArtifactError::Read`] where the directory cannot be read.
    pub fn versions(&self) -> Result<Vec<Version>, ArtifactError> {
        let folder = self.root.join(VERSIONS);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(ArtifactError::read(&folder))? {
            let entry = entry.map_err(ArtifactError::read(&folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if plain(&name) {
                found.push(Version { manifest: read_manifest(&entry.path().join(MANIFEST)), name });
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Copies a router into the versions, whole or not at all, and gives the name of its version and whether it is new. One
    /// that is there already stays as it is.
    ///
    /// # Errors
    /// [`ArtifactError`] where `router` is none or cannot be copied.
    pub fn add(&self, router: &Path) -> Result<(String, bool), ArtifactError> {
        let version = read_manifest(&router.join(MANIFEST))?.version;
        if !plain(&version) {
            return Err(ArtifactError::damaged(&router.join(MANIFEST), "its version cannot be the name of a folder"));
        }
        let place = self.path_of(&version);
        if place.exists() {
            return Ok((version, false));
        }
        let folder = self.root.join(VERSIONS);
        let aside =
            tempfile::Builder::new().prefix(".adding-").tempdir_in(&folder).map_err(ArtifactError::write(&folder))?;
        let copied = aside.path().join(&version);
        copy(router, &copied)?;
        flush(&copied)?;
        readable_by_all(&copied)?;
        std::fs::rename(&copied, &place).map_err(ArtifactError::write(&place))?;
        Ok((version, true))
    }

    /// Takes a version away again.
    ///
    /// # Errors
    /// [`ArtifactError::Write`].
    pub fn remove(&self, version: &str) -> Result<(), ArtifactError> {
        let place = self.path_of(version);
        std::fs::remove_dir_all(&place).map_err(ArtifactError::write(&place))
    }

    /// Takes the whole directory away where no version is in it, for whoever made it and then had nothing to put in. As
    /// far as that can be done.
    pub fn remove_unused(&self) {
        // Only an empty folder goes: a version that somebody else has put in meanwhile stays, and all else with it.
        if std::fs::remove_dir(self.root.join(VERSIONS)).is_err() {
            return;
        }
        for name in [history::NAME, history::LOCK] {
            // What is left is empty, and the next promotion takes it as it is.
            let _ = std::fs::remove_file(self.root.join(name));
        }
        let _ = std::fs::remove_dir(&self.root);
    }

    /// Puts a version in force, at once for every reader.
    ///
    /// # Errors
    /// [`ArtifactError::NoVersion`] where it is not there, [`ArtifactError::Write`].
    pub fn set_current(&self, version: &str) -> Result<(), ArtifactError> {
        self.prepare_current(version)?.put()
    }

    /// Does all of [`VersionedRouter::set_current`] that needs room on the disk.
    pub(super) fn prepare_current(&self, version: &str) -> Result<Replacement, ArtifactError> {
        self.check(version)?;
        Replacement::write(&self.root, CURRENT, format!("{version}\n").as_bytes())
    }

    /// Refuses a version that is not there.
    ///
    /// # Errors
    /// [`ArtifactError::NoVersion`].
    pub fn check(&self, version: &str) -> Result<(), ArtifactError> {
        if plain(version) && self.path_of(version).is_dir() {
            return Ok(());
        }
        let versions = self.versions()?.into_iter().map(|version| version.name).collect();
        Err(ArtifactError::NoVersion { path: self.root.clone(), version: version.to_owned(), versions })
    }
}

/// The directory of the router that `path` means: itself, or the version in force where it holds versions.
///
/// # Errors
/// [`ArtifactError`] where it holds versions and none of them is in force.
pub fn resolve_router(path: &Path) -> Result<PathBuf, ArtifactError> {
    let Ok(versioned) = VersionedRouter::open(path) else { return Ok(path.to_owned()) };
    let current = versioned.current()?.ok_or_else(|| ArtifactError::NoCurrent { path: path.to_owned() })?;
    versioned.check(&current)?;
    Ok(versioned.path_of(&current))
}

/// Refuses to write a router where versions are, all of which it would replace.
///
/// # Errors
/// [`ArtifactError::HoldsVersions`].
pub fn refuse_versions(path: &Path) -> Result<(), ArtifactError> {
    match VersionedRouter::open(path) {
        Ok(_) => Err(ArtifactError::HoldsVersions { path: path.to_owned() }),
        Err(_) => Ok(()),
    }
}

/// Where a router's encoder may lie if the router is a version: beside the directory that holds the versions.
pub(super) fn beside_versions(router: &Path) -> Option<&Path> {
    let versions = router.parent().filter(|parent| parent.ends_with(VERSIONS))?;
    versions.parent()?.parent()
}

/// Waits until what was copied is on the disk.
fn flush(folder: &Path) -> Result<(), ArtifactError> {
    for entry in std::fs::read_dir(folder).map_err(ArtifactError::read(folder))? {
        let path = entry.map_err(ArtifactError::read(folder))?.path();
        if path.is_dir() {
            flush(&path)?;
        } else {
            std::fs::File::open(&path).and_then(|file| file.sync_all()).map_err(ArtifactError::write(&path))?;
        }
    }
    Ok(())
}

/// A name that is one component of a path and not hidden.
fn plain(name: &str) -> bool {
    !name.starts_with('.')
        && (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

//! A router as it lies on disk, every part of it, to be changed and written again.

use std::path::Path;

use super::encoder_dir::ENCODER_FILES;
use super::router_dir::{has_manifest, queues_of, read_manifest};
use super::save::{CARD, HEAD, MANIFEST, copy_companions, put_in_place, write_aside};
use super::{
    ArtifactError, EncoderChange, HeadTensors, LogitGroups, Manifest, Memory, RouterTensors, lexical_file, memory_file,
};
use crate::lexical::Lexical;

/// All parts of a router, checked against each other but without a network.
#[derive(Debug, Clone)]
pub struct StoredRouter {
    /// `router.json`.
    pub manifest: Manifest,
    /// Which logits make up each queue; written as the manifest's `members`.
    pub groups: LogitGroups,
    /// The head on the encoder.
    pub head: HeadTensors,
    /// The word counts, where there are some.
    pub lexical: Option<Lexical>,
    /// What changed in the encoder.
    pub change: Option<EncoderChange>,
    /// What it remembers of its mail; `None` where it was trained without.
    pub memory: Option<Memory>,
    /// The model card.
    pub card: String,
}

impl StoredRouter {
    /// Reads the router in `path`.
    ///
    /// # Errors
    /// [`ArtifactError`], naming the file and what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        let manifest_path = path.join(MANIFEST);
        if !has_manifest(path)? {
            let foreign = path.join(ENCODER_FILES[0]).is_file();
            return Err(if foreign {
                ArtifactError::Unchangeable { path: path.to_owned() }
            } else {
                ArtifactError::no_router(path)
            });
        }
        let manifest = read_manifest(&manifest_path)?;
        let (queues, groups) = queues_of(&manifest, &manifest_path)?;
        let (files, n_logits) = (&manifest.files, groups.n_logits());
        let head = HeadTensors::read(&path.join(HEAD), &files.head, None, n_logits)?;
        let lexical = match &files.lexical {
            Some(sha256) => Some(lexical_file::read(&path.join(lexical_file::NAME), sha256, n_logits)?),
            None => None,
        };
        let memory = match &files.memory {
            Some(sha256) => {
                let file = path.join(memory_file::NAME);
                Some(memory_file::read(&file, sha256, head.d_model, n_logits, queues.len())?)
            }
            None => None,
        };
        let change = EncoderChange::read(path, &files.change())?;
        let card = std::fs::read_to_string(path.join(CARD)).unwrap_or_default();
        Ok(Self { manifest, groups, head, lexical, change, memory, card })
    }

    /// Writes the router whole, with a new version; what lies beside the router's own files in `from` goes along.
    ///
    /// # Errors
    /// [`ArtifactError::Write`]; a router that was there is then as it was.
    pub fn save(&self, path: &Path, from: &Path) -> Result<(), ArtifactError> {
        self.save_and(path, from, |_| Ok(()))
    }

    /// As [`StoredRouter::save`]; `finish` adds to the new router before it takes the place of the old one.
    ///
    /// # Errors
    /// Those of [`StoredRouter::save`] and of `finish`; a router that was there is then as it was.
    pub fn save_and<T, E: From<ArtifactError>>(
        &self,
        path: &Path,
        from: &Path,
        finish: impl FnOnce(&Path) -> Result<T, E>,
    ) -> Result<T, E> {
        let manifest = Manifest { members: self.groups.clone().into_members(), ..self.manifest.clone() };
        queues_of(&manifest, &path.join(MANIFEST))?;
        let tensors = RouterTensors {
            head: &self.head,
            lexical: self.lexical.as_ref(),
            change: self.change.as_ref(),
            memory: self.memory.as_ref(),
        };
        let written = write_aside(path, manifest, tensors, &self.card)?;
        copy_companions(from, written.path())?;
        let finished = finish(written.path())?;
        put_in_place(written, path)?;
        Ok(finished)
    }

    /// The place of a queue in the router's order.
    #[must_use]
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.manifest.queues.iter().position(|queue| queue.id == id)
    }
}

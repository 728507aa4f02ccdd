//! A router that a command changes: opened where it really lies, and written whole or not at all.

use std::path::{Path, PathBuf};

use anyhow::Context;
use candle_core::{DType, Device};

use crate::artifact::{
    Router, StoredRouter, check_place, find_encoder, find_model, load_router, record_probes, refuse_versions,
    resolve_router,
};

/// See the module.
pub(super) struct Changing {
    /// What is changed.
    pub(super) router: StoredRouter,
    /// Where it was read.
    pub(super) place: PathBuf,
    /// The directory that was asked for.
    found: PathBuf,
    /// That one holds several versions, of which this is the one in force.
    versioned: bool,
}

impl Changing {
    pub(super) fn open(asked: &Path) -> anyhow::Result<Self> {
        let found = find_model(asked);
        let in_force = resolve_router(&found)?;
        let versioned = in_force != found;
        // The real place of a router behind a link: the link must not be replaced by a directory.
        let place = in_force.canonicalize().unwrap_or(in_force);
        Ok(Self { router: StoredRouter::open(&place)?, place, found, versioned })
    }

    /// Before the work: refuses to change one of several versions in its place, and an `out` where something else than a router
    /// lies or from where the encoder is not found.
    pub(super) fn check(&self, out: Option<&Path>) -> anyhow::Result<()> {
        let encoder = &self.router.manifest.encoder.name;
        match out {
            None if self.versioned => {
                refuse_versions(&self.found).context("--out DIR writes the changed router elsewhere")?;
            }
            None => {}
            Some(out) => {
                check_place(out)?;
                if !self.place.join(encoder).is_dir() {
                    find_encoder(out, encoder)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the router to `out` or in its own place, once it has been loaded and has answered. Returns it as it runs, and where.
    pub(super) fn save<'a>(&'a self, out: Option<&'a Path>) -> anyhow::Result<(Router, &'a Path)> {
        let to = out.unwrap_or(&self.place);
        let tested = |written: &Path| -> anyhow::Result<Router> {
            let router = load_router(written, DType::F32, &Device::Cpu).context("the router that was just written")?;
            record_probes(written, &router)?;
            Ok(router)
        };
        let saved = self.router.save_and(to, &self.place, tested);
        let written = if out.is_none() {
            saved.context("the router is as it was; --out DIR writes the changed one elsewhere")?
        } else {
            saved?
        };
        Ok((written, to))
    }
}

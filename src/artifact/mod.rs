//! Model directories: encoders in Hugging Face's layout, and routers, which turn an encoder into decisions.
//!
//! Everything is checked before it is used: checksums, names, shapes, settings. A damaged, foreign or cut-off
//! directory gives one error that names the file.

mod calibration;
mod checksum;
mod encoder_change;
mod encoder_dir;
mod head_file;
mod history;
mod hugging_face;
mod lexical_file;
mod logit_groups;
mod manifest;
mod memory_file;
mod place;
mod probes;
mod quantized;
mod router_dir;
mod save;
mod search;
mod shared_encoders;
mod stored;
mod verify;
mod versions;
mod watched;
mod weights;

pub use calibration::{Calibration, Judgement};
pub use checksum::sha256_file;
pub use encoder_change::{EncoderChange, StoredTensor};
pub use encoder_dir::EncoderDir;
pub use head_file::HeadTensors;
pub use history::{Action, Change, History, changes, previous};
pub use logit_groups::LogitGroups;
pub use manifest::{EncoderReference, Figures, HeldOutRecall, Manifest, Provenance, ROUTER_SCHEMA, RouterFiles};
pub use memory_file::{Memory, Remembered};
pub use place::check_place;
pub use probes::{SelfTest, record_probes, self_test};
pub use quantized::{QuantizationLoss, Quantized, QuantizedType};
pub use router_dir::{
    Router, RouterInfo, find_encoder, gate, load_readable_encoder, load_router, load_router_in, load_router_sharing,
    word_logits,
};
pub use save::{RouterTensors, save_memory, save_router, save_router_and, write_card};
pub use search::find_model;
pub use shared_encoders::SharedEncoders;
pub use stored::StoredRouter;
pub use verify::verify_router;
pub use versions::{Version, VersionedRouter, refuse_versions, resolve_router};
pub use watched::{Look, look};
pub use weights::Weights;

use std::path::{Path, PathBuf};

use crate::model::ModelError;
use crate::queues::QueueError;
use crate::tokenizer::{TokenizerError, WindowError};

/// Why a model directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// A file is missing or unreadable.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Another router has been written over one that still runs.
    #[error("{} holds another router than version {running}, which still runs; restart the service to use it", path.display())]
    Replaced {
        /// The directory.
        path: PathBuf,
        /// The version that runs.
        running: String,
    },
    /// A file is not what it should be.
    #[error("{} is damaged or of another kind: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A router is to run on bytes and loses too much by it.
    #[error("{} runs on bytes and must not: {reason}; `postroom model quantize DIR --off` makes it run in f32 again", path.display())]
    TooLossy {
        /// The router's `router.json`.
        path: PathBuf,
        /// What it loses.
        reason: String,
    },
    /// A file has changed since the router was made.
    #[error("{} has sha256 {found}, the router was made with {expected}; restore that file or train the router again", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// What `router.json` says.
        expected: String,
        /// What the file has.
        found: String,
    },
    /// Neither a router nor a classifier of Hugging Face's layout.
    #[error("{} holds no router: neither router.json nor the config.json of a BertForSequenceClassification", path.display())]
    NoRouter {
        /// The directory.
        path: PathBuf,
    },
    /// Nothing is where a router should be.
    #[error("there is no router at {}: name the directory of one, as with --router DIR", all(searched))]
    NotThere {
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// A classifier of Hugging Face's layout, which has no file that says what its queues are.
    #[error("{} is a classifier of Hugging Face's layout, whose queues cannot be changed: train a router on labelled mail with `postroom train` and change that one", path.display())]
    Unchangeable {
        /// The directory.
        path: PathBuf,
    },
    /// The encoder that a router names is not there.
    #[error("the router's encoder `{name}` is in none of {}", all(searched))]
    NoEncoder {
        /// Its name.
        name: String,
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// The router answers other than it did when it was made.
    #[error("the router in {} fails its self-test: {reason}", path.display())]
    SelfTest {
        /// The directory.
        path: PathBuf,
        /// Which answer, and how it differs.
        reason: String,
    },
    /// A directory without versions where one with versions is needed.
    #[error("{} holds no versions of a router; name a directory that does, or one that is not there yet", path.display())]
    NoVersions {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with versions where a router would be written.
    #[error("{} holds versions of a router, which are never changed: write this one elsewhere, then `postroom model promote {} DIR`", path.display(), path.display())]
    HoldsVersions {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with something else where a router would be written.
    #[error("{} holds something that is no router: name another directory, or one that is not there yet", path.display())]
    HoldsOther {
        /// The directory, or a file in its place.
        path: PathBuf,
    },
    /// A version that is not there.
    #[error("{} holds no version `{version}`, {}", path.display(), if versions.is_empty() { "and none yet".to_owned() } else { format!("only {}", versions.join(", ")) })]
    NoVersion {
        /// The directory with the versions.
        path: PathBuf,
        /// The version asked for.
        version: String,
        /// Those that are there.
        versions: Vec<String>,
    },
    /// Versions, but none in force.
    #[error("{} holds versions of a router and none is in force; `postroom model promote` puts one in force", path.display())]
    NoCurrent {
        /// The directory with the versions.
        path: PathBuf,
    },
    /// The network refuses its configuration or weights.
    #[error("the network in {} cannot be built", path.display())]
    Model {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: ModelError,
    },
    /// The tokenizer cannot be used.
    #[error("the tokenizer in {} cannot be used", path.display())]
    Tokenizer {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: TokenizerError,
    },
    /// The queues are refused.
    #[error("the queues of {} cannot be used", path.display())]
    Queues {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: QueueError,
    },
    /// The window settings are refused.
    #[error("the window settings of {} cannot be used", path.display())]
    Windows {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: WindowError,
    },
}

impl ArtifactError {
    fn damaged(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }

    /// No router in `path`, or not even a directory.
    fn no_router(path: &Path) -> Self {
        if path.exists() { Self::NoRouter { path: path.to_owned() } } else { Self::not_there(path) }
    }

    fn not_there(path: &Path) -> Self {
        Self::NotThere { searched: search::places(path) }
    }

    fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        |source| Self::Read { path: path.to_owned(), source }
    }

    fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        |source| Self::Write { path: path.to_owned(), source }
    }

    fn model(path: &Path) -> impl FnOnce(ModelError) -> Self {
        |source| Self::Model { path: path.to_owned(), source }
    }
}

fn all(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

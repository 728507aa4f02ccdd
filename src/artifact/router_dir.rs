//! A router's directory, read into a running network.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};

use super::calibration::Calibration;
use super::encoder_dir::{ENCODER_FILES, EncoderDir};
use super::manifest::{Manifest, ROUTER_SCHEMA};
use super::quantized::Quantized;
use super::save::{HEAD, MANIFEST};
use super::{
    ArtifactError, EncoderChange, HeadTensors, LogitGroups, SharedEncoders, hugging_face, lexical_file, search,
    versions,
};
use crate::collate::Pooling;
use crate::lexical::{Gate, Lexical};
use crate::model::cpu::Precision;
use crate::model::{Classifier, Encoder, EncoderConfig, Head};
use crate::queues::{QueueSet, slug};
use crate::tokenizer::{EmailTokenizer, EncodedEmail, Token, WindowConfig};

/// What a router is, without its tensors.
#[derive(Debug, Clone)]
pub struct RouterInfo {
    /// Name of the router.
    pub name: String,
    /// Its version; part of every answer.
    pub version: String,
    /// Name of its encoder.
    pub encoder: String,
    /// In the order of the logits that [`RouterInfo::queue_logits`] gives.
    pub queues: QueueSet,
    /// Which logits of the network make up each queue.
    pub groups: LogitGroups,
    /// Ids of queues that were merged away, and the queue that their mail now counts as.
    pub aliases: BTreeMap<String, String>,
    /// Languages it was trained on (ISO 639-1); empty: any.
    pub languages: Vec<String>,
    /// How mail is cut into windows.
    pub windows: WindowConfig,
    /// How hidden states become one vector.
    pub pooling: Pooling,
    /// Each queue weighs the tokens by itself; `pooling` then gives the shares that it starts from.
    pub attention_pooling: bool,
    /// Its linear layers run on bytes where the machine can.
    pub quantized: bool,
    /// How logits become a decision.
    pub calibration: Calibration,
    /// Sizes of the encoder.
    pub encoder_config: EncoderConfig,
    /// Worth a line in the log: tensors that nobody reads.
    pub unknown_tensors: Vec<String>,
}

impl RouterInfo {
    /// How the tokens of a mail are pooled, as answers call it: `mean`, `cls` or `attention`.
    #[must_use]
    pub fn pooling_name(&self) -> &'static str {
        match self.pooling {
            _ if self.attention_pooling => "attention",
            Pooling::Mean => "mean",
            Pooling::Cls => "cls",
        }
    }

    /// The logits of the network, the words' added, as one logit for each queue.
    #[must_use]
    pub fn queue_logits(&self, logits: &[f32]) -> Vec<f32> {
        self.groups.join(logits, self.calibration.temperature)
    }

    /// The queue that a label means: an id, or the old id of a queue that was merged.
    #[must_use]
    pub fn index_of_label(&self, label: &str) -> Option<usize> {
        let id = slug(label);
        self.queues.index_of(self.aliases.get(&id).unwrap_or(&id))
    }
}

/// A router ready to run.
pub struct Router {
    /// What it is.
    pub info: RouterInfo,
    /// The directory that it was read from.
    pub path: PathBuf,
    /// Its tokenizer.
    pub tokenizer: EmailTokenizer,
    /// Its network, on the device it was loaded for.
    pub classifier: Classifier,
    /// Its word counts, which count beside the network.
    pub lexical: Option<Lexical>,
}

impl Router {
    /// What the words of a mail say, one number per logit of the network; [`Router::join`] adds it.
    #[must_use]
    pub fn word_logits(&self, mail: &EncodedEmail) -> Vec<f32> {
        word_logits(self.lexical.as_ref(), mail.tokens.iter(), self.info.groups.n_logits())
    }

    /// The network's logits and what the words say of the same mail, as the router decides by them.
    #[must_use]
    pub fn join(&self, network: &[f32], words: &[f32]) -> Vec<f32> {
        gate(self.lexical.as_ref()).join(network, words)
    }
}

/// What the words of a mail say; nothing where the router does not count words.
#[must_use]
pub fn word_logits<'t>(
    lexical: Option<&'t Lexical>,
    tokens: impl Iterator<Item = &'t Token> + 't,
    n_logits: usize,
) -> Vec<f32> {
    lexical.map_or_else(|| vec![0.0; n_logits], |lexical| lexical.logits_of(tokens))
}

/// The gate between the words and the network's logits; an open one where the router does not count words.
#[must_use]
pub fn gate(lexical: Option<&Lexical>) -> Gate {
    lexical.map_or_else(Gate::default, |lexical| lexical.gate)
}

/// Loads the router in `path`: one of ours (`router.json`), the version in force where there are several, or a
/// `BertForSequenceClassification` of Hugging Face's layout.
///
/// # Errors
/// [`ArtifactError`], naming the file and what is wrong with it.
pub fn load_router(path: &Path, dtype: DType, device: &Device) -> Result<Router, ArtifactError> {
    load_router_sharing(path, dtype, device, &SharedEncoders::default())
}

/// As [`load_router`]; an encoder that a router of this process already uses stands in memory once.
///
/// # Errors
/// As [`load_router`].
pub fn load_router_sharing(
    path: &Path,
    dtype: DType,
    device: &Device,
    shared: &SharedEncoders,
) -> Result<Router, ArtifactError> {
    let path = &versions::resolve_router(path)?;
    if has_manifest(path)? {
        return load_own(path, &path.join(MANIFEST), &Placement { dtype, device, precision: None, shared });
    }
    if path.join(ENCODER_FILES[0]).is_file() {
        return hugging_face::load(path, dtype, device);
    }
    Err(ArtifactError::no_router(path))
}

/// One of our routers on the CPU in this precision, whatever its `router.json` says: to compare the two.
///
/// # Errors
/// As [`load_router`]; [`ArtifactError::Unchangeable`] for a router of Hugging Face's layout.
pub fn load_router_in(path: &Path, precision: Precision) -> Result<Router, ArtifactError> {
    let path = &versions::resolve_router(path)?;
    if !has_manifest(path)? {
        return Err(ArtifactError::Unchangeable { path: path.to_owned() });
    }
    let (dtype, device, shared) = (DType::F32, &Device::Cpu, &SharedEncoders::default());
    load_own(path, &path.join(MANIFEST), &Placement { dtype, device, precision: Some(precision), shared })
}

/// Where a router's network shall run, and how.
struct Placement<'a> {
    /// Of the tensors, where it runs on tensors.
    dtype: DType,
    device: &'a Device,
    /// Of the linear layers on a CPU, where the router's own choice does not count.
    precision: Option<Precision>,
    shared: &'a SharedEncoders,
}

fn load_own(path: &Path, manifest_path: &Path, placement: &Placement<'_>) -> Result<Router, ArtifactError> {
    let &Placement { dtype, device, precision, shared } = placement;
    let manifest = read_manifest(manifest_path)?;
    let (queues, groups) = queues_of(&manifest, manifest_path)?;
    let encoder_dir = EncoderDir::open(&find_encoder(path, &manifest.encoder.name)?, &manifest.encoder.sha256)?;
    manifest
        .windows
        .check(encoder_dir.config.max_positions)
        .map_err(|source| ArtifactError::Windows { path: manifest_path.to_owned(), source })?;

    let d_model = encoder_dir.config.d_model;
    let head_path = path.join(HEAD);
    let head = HeadTensors::read(&head_path, &manifest.files.head, Some(d_model), groups.n_logits())?;
    let attention_pooling = !head.query.is_empty();
    let head = Head::of_router(&head.query, head.weight, head.bias, device).map_err(ArtifactError::model(path))?;
    let change = EncoderChange::read(path, &manifest.files.change())?;
    if let Some(change) = &change {
        change.check(&encoder_dir.config).map_err(|reason| ArtifactError::damaged(path, reason))?;
    }
    let lexical = match &manifest.files.lexical {
        Some(sha256) => Some(lexical_file::read(&path.join(lexical_file::NAME), sha256, groups.n_logits())?),
        None => None,
    };
    let quantized = manifest.quantize.is_some();
    let encoder = if device.is_cpu() {
        let own = || -> Result<Precision, ArtifactError> {
            let too_much = |reason| ArtifactError::TooLossy { path: manifest_path.to_owned(), reason };
            manifest.quantize.as_ref().map_or(Ok(()), Quantized::check).map_err(too_much)?;
            Ok(if quantized { Precision::Int8 } else { Precision::F32 })
        };
        let precision = precision.map_or_else(own, Ok)?;
        let build = || encoder_dir.cpu_encoder(precision, change.as_ref());
        match &change {
            None => shared.get_or_build(&manifest.encoder.sha256, precision, build)?,
            Some(_) => build()?,
        }
    } else {
        encoder_dir.batch_encoder(dtype, device, change.as_ref())?
    };
    Ok(Router {
        path: path.to_owned(),
        info: RouterInfo {
            name: manifest.name,
            version: manifest.version,
            encoder: manifest.encoder.name,
            queues,
            groups,
            aliases: manifest.aliases,
            languages: manifest.languages,
            windows: manifest.windows,
            pooling: manifest.pooling,
            attention_pooling,
            quantized,
            calibration: manifest.calibration,
            encoder_config: encoder_dir.config.clone(),
            unknown_tensors: encoder_dir.unknown_tensors()?,
        },
        tokenizer: encoder_dir.tokenizer,
        classifier: Classifier::new(encoder, head),
        lexical,
    })
}

/// Reads the encoder of a router that runs already once more, as the readable network that has gradients: for explanations.
///
/// # Errors
/// [`ArtifactError::Replaced`] where another router lies in its directory meanwhile, otherwise as [`load_router`].
pub fn load_readable_encoder(path: &Path, info: &RouterInfo) -> Result<Encoder, ArtifactError> {
    let manifest_path = path.join(MANIFEST);
    if !manifest_path.is_file() {
        let dir = EncoderDir::open(path, &BTreeMap::new())?;
        return dir.encoder(DType::F32, &Device::Cpu);
    }
    let manifest = read_manifest(&manifest_path)?;
    if manifest.version != info.version {
        return Err(ArtifactError::Replaced { path: path.to_owned(), running: info.version.clone() });
    }
    let dir = EncoderDir::open(&find_encoder(path, &manifest.encoder.name)?, &manifest.encoder.sha256)?;
    let change = EncoderChange::read(path, &manifest.files.change())?;
    if let Some(change) = &change {
        change.check(&dir.config).map_err(|reason| ArtifactError::damaged(path, reason))?;
    }
    dir.changed_encoder(DType::F32, &Device::Cpu, change.as_ref())
}

/// The queues with their logits, everything that speaks of them checked.
pub(super) fn queues_of(manifest: &Manifest, path: &Path) -> Result<(QueueSet, LogitGroups), ArtifactError> {
    let damaged = |reason| ArtifactError::damaged(path, reason);
    let queues = QueueSet::new(manifest.queues.clone())
        .map_err(|source| ArtifactError::Queues { path: path.to_owned(), source })?;
    let groups = LogitGroups::new(manifest.members.clone(), queues.len()).map_err(damaged)?;
    let ids: Vec<&str> = queues.iter().map(|queue| queue.id.as_str()).collect();
    manifest.calibration.check(&ids).map_err(damaged)?;
    let wrong = |(old, id): &(&String, &String)| ids.contains(&old.as_str()) || !ids.contains(&id.as_str());
    if let Some((old, id)) = manifest.aliases.iter().find(wrong) {
        return Err(damaged(format!(
            "aliases says `{old}` is `{id}`, where the first is a queue or the second is none"
        )));
    }
    Ok((queues, groups))
}

/// Whether there is a `router.json`. One that cannot be looked at is an error that names it, not a router that is missing.
pub(super) fn has_manifest(path: &Path) -> Result<bool, ArtifactError> {
    let file = path.join(MANIFEST);
    match file.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(ArtifactError::read(&file)(error)),
    }
}

pub(super) fn read_manifest(path: &Path) -> Result<Manifest, ArtifactError> {
    let text = std::fs::read_to_string(path).map_err(ArtifactError::read(path))?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|source| ArtifactError::damaged(path, source))?;
    if manifest.schema != ROUTER_SCHEMA {
        return Err(ArtifactError::damaged(
            path,
            format_args!("schema is `{}`, this version reads `{ROUTER_SCHEMA}`", manifest.schema),
        ));
    }
    Ok(manifest)
}

/// The encoder's directory: inside the router's, beside it, or where models are looked for otherwise.
///
/// # Errors
/// [`ArtifactError::NoEncoder`] naming where it was looked for.
pub fn find_encoder(router: &Path, encoder: &str) -> Result<PathBuf, ArtifactError> {
    // A name is one plain path component: `..` or an absolute path would reach outside the model directories.
    let plain = Path::new(encoder).components().count() == 1 && slug(encoder) == encoder;
    // The real place of a router behind a link; a router that is still to be written has none.
    let router = router.canonicalize().unwrap_or_else(|_| router.to_owned());
    let folders = [Some(router.as_path()), router.parent(), versions::beside_versions(&router)]
        .into_iter()
        .flatten()
        .map(Path::to_owned);
    let searched: Vec<PathBuf> = folders.chain(search::model_folders()).map(|folder| folder.join(encoder)).collect();
    match searched.iter().find(|path| plain && path.is_dir()) {
        Some(found) => Ok(found.clone()),
        None => Err(ArtifactError::NoEncoder { name: encoder.to_owned(), searched }),
    }
}

//! A router's directory: read into a running network, written whole or not at all.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use serde::Deserialize;

use super::encoder_dir::{ENCODER_FILES, EncoderDir};
use super::manifest::{Calibration, Manifest, ROUTER_SCHEMA};
use super::weights::Weights;
use super::{ArtifactError, checksum, lexical_file, search};
use crate::collate::Pooling;
use crate::lexical::Lexical;
use crate::model::{Classifier, EncoderConfig, Head};
use crate::queues::{Queue, QueueSet, slug};
use crate::tokenizer::{EmailTokenizer, EncodedEmail, WindowConfig};

const MANIFEST: &str = "router.json";
const HEAD: &str = "head.safetensors";
const CARD: &str = "README.md";

/// What a router is, without its tensors.
#[derive(Debug, Clone)]
pub struct RouterInfo {
    /// Name of the router.
    pub name: String,
    /// Its version; part of every answer.
    pub version: String,
    /// Name of its encoder.
    pub encoder: String,
    /// In the order of the logits.
    pub queues: QueueSet,
    /// Languages it was trained on (ISO 639-1); empty: any.
    pub languages: Vec<String>,
    /// How mail is cut into windows.
    pub windows: WindowConfig,
    /// How hidden states become one vector.
    pub pooling: Pooling,
    /// How logits become a decision.
    pub calibration: Calibration,
    /// Sizes of the encoder.
    pub encoder_config: EncoderConfig,
    /// Worth a line in the log: tensors that nobody reads.
    pub unknown_tensors: Vec<String>,
}

/// A router ready to run.
pub struct Router {
    /// What it is.
    pub info: RouterInfo,
    /// Its tokenizer.
    pub tokenizer: EmailTokenizer,
    /// Its network, on the device it was loaded for.
    pub classifier: Classifier,
    /// Its word counts, whose logits are added to the network's.
    pub lexical: Option<Lexical>,
}

impl Router {
    /// What the words of a mail add to the network's logits, one number per queue.
    #[must_use]
    pub fn word_logits(&self, mail: &EncodedEmail) -> Vec<f32> {
        word_logits(self.lexical.as_ref(), mail, self.info.queues.len())
    }
}

/// What the words of a mail add to the network's logits; nothing where the router does not count words.
#[must_use]
pub fn word_logits(lexical: Option<&Lexical>, mail: &EncodedEmail, n_queues: usize) -> Vec<f32> {
    lexical.map_or_else(|| vec![0.0; n_queues], |lexical| lexical.logits(mail))
}

/// Loads the router in `path`: one of ours (`router.json`), or a `BertForSequenceClassification` of Hugging Face's layout.
///
/// # Errors
/// [`ArtifactError`], naming the file and what is wrong with it.
pub fn load_router(path: &Path, dtype: DType, device: &Device) -> Result<Router, ArtifactError> {
    let manifest = path.join(MANIFEST);
    if manifest.is_file() {
        return load_own(path, &manifest, dtype, device);
    }
    if path.join(ENCODER_FILES[0]).is_file() {
        return load_hugging_face(path, dtype, device);
    }
    Err(ArtifactError::NoRouter { path: path.to_owned() })
}

fn load_own(path: &Path, manifest_path: &Path, dtype: DType, device: &Device) -> Result<Router, ArtifactError> {
    let manifest = read_manifest(manifest_path)?;
    let queues = QueueSet::new(manifest.queues)
        .map_err(|source| ArtifactError::Queues { path: manifest_path.to_owned(), source })?;
    let encoder_dir = EncoderDir::open(&find_encoder(path, &manifest.encoder.name)?, &manifest.encoder.sha256)?;
    manifest
        .windows
        .check(encoder_dir.config.max_positions)
        .map_err(|source| ArtifactError::Windows { path: manifest_path.to_owned(), source })?;
    check_calibration(manifest_path, &manifest.calibration)?;

    let d_model = encoder_dir.config.d_model;
    let head_path = path.join(HEAD);
    let head_weights = Weights::open(&head_path, Some(&manifest.files.head))?.read(
        "",
        &HeadTensors::expected(d_model, queues.len()),
        DType::F32,
        device,
    )?;
    let head = Head::load_normalized(d_model, queues.len(), &head_weights).map_err(ArtifactError::model(path))?;
    let lexical = match &manifest.files.lexical {
        Some(sha256) => Some(lexical_file::read(&path.join(lexical_file::NAME), sha256, queues.len())?),
        None => None,
    };
    let encoder = encoder_dir.batch_encoder(dtype, device)?;
    Ok(Router {
        info: RouterInfo {
            name: manifest.name,
            version: manifest.version,
            encoder: manifest.encoder.name,
            queues,
            languages: manifest.languages,
            windows: manifest.windows,
            pooling: manifest.pooling,
            calibration: manifest.calibration,
            encoder_config: encoder_dir.config.clone(),
            unknown_tensors: encoder_dir.unknown_tensors()?,
        },
        tokenizer: encoder_dir.tokenizer,
        classifier: Classifier::new(encoder, head),
        lexical,
    })
}

fn read_manifest(path: &Path) -> Result<Manifest, ArtifactError> {
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

fn check_calibration(path: &Path, calibration: &Calibration) -> Result<(), ArtifactError> {
    let Calibration { temperature, threshold } = *calibration;
    if !(temperature.is_finite() && temperature > 0.0) {
        return Err(ArtifactError::damaged(path, format_args!("temperature is {temperature}, not above 0")));
    }
    if !(0.0..=1.0).contains(&threshold) {
        return Err(ArtifactError::damaged(path, format_args!("threshold is {threshold}, outside 0..=1")));
    }
    Ok(())
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
    let folders = [Some(router.as_path()), router.parent()].into_iter().flatten().map(Path::to_owned);
    let searched: Vec<PathBuf> = folders.chain(search::model_folders()).map(|folder| folder.join(encoder)).collect();
    match searched.iter().find(|path| plain && path.is_dir()) {
        Some(found) => Ok(found.clone()),
        None => Err(ArtifactError::NoEncoder { name: encoder.to_owned(), searched }),
    }
}

/// What `config.json` says of a classifier.
#[derive(Deserialize)]
struct ClassifierConfig {
    #[serde(default)]
    architectures: Vec<String>,
    #[serde(default)]
    id2label: HashMap<String, String>,
}

fn load_hugging_face(path: &Path, dtype: DType, device: &Device) -> Result<Router, ArtifactError> {
    let dir = EncoderDir::open(path, &BTreeMap::new())?;
    let config_path = dir.path().join(ENCODER_FILES[0]);
    let config: ClassifierConfig =
        serde_json::from_str(dir.config_json()).map_err(|source| ArtifactError::damaged(&config_path, source))?;
    if !config.architectures.iter().any(|name| name == "BertForSequenceClassification") {
        return Err(ArtifactError::NoRouter { path: path.to_owned() });
    }
    let queues = queues_of_labels(&config.id2label)
        .ok_or_else(|| ArtifactError::damaged(&config_path, "id2label does not number its labels 0, 1, 2 ..."))
        .and_then(|queues| {
            QueueSet::new(queues).map_err(|source| ArtifactError::Queues { path: config_path.clone(), source })
        })?;

    let d_model = dir.config.d_model;
    let pooler = format!("{}pooler.dense", dir.prefix());
    let expected = vec![
        (format!("{pooler}.weight"), vec![d_model, d_model]),
        (format!("{pooler}.bias"), vec![d_model]),
        ("classifier.weight".to_owned(), vec![queues.len(), d_model]),
        ("classifier.bias".to_owned(), vec![queues.len()]),
    ];
    let tensors = dir.tensors(&expected, device)?;
    let head = Head::load_with_pooler(d_model, queues.len(), &tensors.pp(&pooler), &tensors)
        .map_err(ArtifactError::model(path))?;
    let encoder = dir.batch_encoder(dtype, device)?;
    let name = path.file_name().map_or_else(|| "router".into(), |name| name.to_string_lossy());
    let defaults = WindowConfig::default();
    let windows = WindowConfig { max_length: defaults.max_length.min(dir.config.max_positions), ..defaults };
    let windows = WindowConfig { stride: windows.stride.min(windows.capacity()), ..windows };
    Ok(Router {
        info: RouterInfo {
            name: name.to_string(),
            version: checksum::sha256(dir.config_json().as_bytes())[..12].to_owned(),
            encoder: name.to_string(),
            queues,
            languages: Vec::new(),
            windows,
            pooling: Pooling::Cls,
            // Nobody measured this model here: its confidence is as it comes, and no threshold holds mail back.
            calibration: Calibration { temperature: 1.0, threshold: 0.0 },
            encoder_config: dir.config.clone(),
            unknown_tensors: dir.unknown_tensors()?,
        },
        tokenizer: dir.tokenizer,
        classifier: Classifier::new(encoder, head),
        lexical: None,
    })
}

fn queues_of_labels(id2label: &HashMap<String, String>) -> Option<Vec<Queue>> {
    (0..id2label.len())
        .map(|index| id2label.get(&index.to_string()).map(|label| Queue::new(&slug(label), label)))
        .collect()
}

/// The tensors of `head.safetensors`.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadTensors {
    /// Width of the pooled vector.
    pub d_model: usize,
    /// `[queues, d_model]`, row-major.
    pub weight: Vec<f32>,
    /// `[queues]`.
    pub bias: Vec<f32>,
}

impl HeadTensors {
    fn expected(d_model: usize, n_queues: usize) -> Vec<(String, Vec<usize>)> {
        vec![("classifier.weight".to_owned(), vec![n_queues, d_model]), ("classifier.bias".to_owned(), vec![n_queues])]
    }

    fn to_safetensors(&self) -> Result<Vec<u8>, safetensors::SafeTensorError> {
        use safetensors::tensor::{Dtype, TensorView, serialize};
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let (weight, bias) = (bytes(&self.weight), bytes(&self.bias));
        let n_queues = self.bias.len();
        let views = [
            ("classifier.weight", TensorView::new(Dtype::F32, vec![n_queues, self.d_model], &weight)?),
            ("classifier.bias", TensorView::new(Dtype::F32, vec![n_queues], &bias)?),
        ];
        serialize(views, None)
    }
}

/// The tensors of a router.
#[derive(Debug, Clone, Copy)]
pub struct RouterTensors<'a> {
    /// The head on the encoder.
    pub head: &'a HeadTensors,
    /// The word counts, where there are some.
    pub lexical: Option<&'a Lexical>,
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

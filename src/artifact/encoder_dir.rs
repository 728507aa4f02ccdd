//! An encoder's directory in Hugging Face's layout: `config.json`, `tokenizer.json`, `model.safetensors`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;

use super::weights::Weights;
use super::{ArtifactError, EncoderChange, checksum};
use crate::model::cpu::Precision;
use crate::model::{BatchEncoder, Encoder, EncoderConfig};
use crate::tokenizer::EmailTokenizer;

/// A directory whose files were read and checked; the tensors are read by [`EncoderDir::encoder`].
pub struct EncoderDir {
    path: PathBuf,
    /// Text of `config.json`.
    config_json: String,
    /// The encoder's sizes.
    pub config: EncoderConfig,
    /// The tokenizer, which fits the embedding table.
    pub tokenizer: EmailTokenizer,
    weights: Weights,
    /// `bert.` or nothing.
    prefix: &'static str,
}

/// The files that an encoder is made of, all under checksum.
pub(super) const ENCODER_FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

impl EncoderDir {
    /// Opens a directory. `sha256` holds the expected checksum of any of its files, by name.
    ///
    /// # Errors
    /// [`ArtifactError`] naming the file that is missing, damaged, foreign or changed.
    pub fn open(path: &Path, sha256: &BTreeMap<String, String>) -> Result<Self, ArtifactError> {
        let read = |name: &str| -> Result<Vec<u8>, ArtifactError> {
            let file = path.join(name);
            let bytes = std::fs::read(&file).map_err(ArtifactError::read(&file))?;
            if let Some(expected) = sha256.get(name) {
                checksum::verify(&file, &bytes, expected)?;
            }
            Ok(bytes)
        };
        let config_json = String::from_utf8(read(ENCODER_FILES[0])?)
            .map_err(|source| ArtifactError::damaged(&path.join(ENCODER_FILES[0]), source))?;
        let config = EncoderConfig::from_json(&config_json).map_err(ArtifactError::model(path))?;
        let bad_tokenizer = |source| ArtifactError::Tokenizer { path: path.to_owned(), source };
        let tokenizer = EmailTokenizer::from_bytes(&read(ENCODER_FILES[1])?).map_err(bad_tokenizer)?;
        tokenizer.check_vocabulary(config.vocab_size).map_err(bad_tokenizer)?;
        let file = path.join(ENCODER_FILES[2]);
        let weights = Weights::open(&file, sha256.get(ENCODER_FILES[2]).map(String::as_str))?;
        let prefixed = weights.names()?.iter().any(|name| name.starts_with("bert."));
        Ok(Self {
            path: path.to_owned(),
            config_json,
            config,
            tokenizer,
            weights,
            prefix: if prefixed { "bert." } else { "" },
        })
    }

    /// Reads the encoder's tensors onto a device.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] naming the tensor that is missing or has another shape.
    pub fn encoder(&self, dtype: DType, device: &Device) -> Result<Encoder, ArtifactError> {
        let weights = self.weights.read(self.prefix, &self.config.tensors(), dtype, device)?;
        Encoder::load(&self.config, &weights).map_err(ArtifactError::model(&self.path))
    }

    /// Reads the encoder for packed batches, with what a router changes in it: the engine for the CPU, in f32 whatever `dtype`, or
    /// tensors on a GPU.
    ///
    /// # Errors
    /// As [`EncoderDir::encoder`].
    pub fn batch_encoder(
        &self,
        dtype: DType,
        device: &Device,
        change: Option<&EncoderChange>,
    ) -> Result<BatchEncoder, ArtifactError> {
        if device.is_cpu() {
            return self.cpu_encoder(Precision::F32, change);
        }
        Ok(BatchEncoder::on_tensors(self.changed_encoder(dtype, device, change)?))
    }

    /// Reads the encoder as the engine for the CPU, with what a router changes in it.
    ///
    /// # Errors
    /// As [`EncoderDir::encoder`].
    pub fn cpu_encoder(
        &self,
        precision: Precision,
        change: Option<&EncoderChange>,
    ) -> Result<BatchEncoder, ArtifactError> {
        let shapes: HashMap<String, Vec<usize>> = self.config.tensors().into_iter().collect();
        BatchEncoder::on_cpu(&self.config, precision, |name| {
            let shape = shapes.get(name).map(Vec::as_slice).unwrap_or_default();
            let values = self.weights.values(&format!("{}{name}", self.prefix), shape)?;
            Ok(match change {
                Some(change) => change.apply(name, values),
                None => values,
            })
        })
    }

    /// Reads the readable encoder with what a router changes in it.
    ///
    /// # Errors
    /// As [`EncoderDir::encoder`].
    pub(super) fn changed_encoder(
        &self,
        dtype: DType,
        device: &Device,
        change: Option<&EncoderChange>,
    ) -> Result<Encoder, ArtifactError> {
        let Some(change) = change else { return self.encoder(dtype, device) };
        let shapes = self.config.tensors();
        let mut tensors = HashMap::with_capacity(shapes.len());
        for (name, shape) in shapes {
            let values = change.apply(&name, self.weights.values(&format!("{}{name}", self.prefix), &shape)?);
            let tensor = Tensor::from_vec(values, shape.as_slice(), &Device::Cpu)
                .and_then(|tensor| tensor.to_dtype(dtype)?.to_device(device))
                .map_err(|source| ArtifactError::damaged(&self.path, source))?;
            tensors.insert(name, tensor);
        }
        let weights = VarBuilder::from_tensors(tensors, dtype, device);
        Encoder::load(&self.config, &weights).map_err(ArtifactError::model(&self.path))
    }

    /// The encoder's tensors, to be trained.
    ///
    /// # Errors
    /// As [`EncoderDir::encoder`].
    pub fn weights(&self, dtype: DType, device: &Device) -> Result<VarBuilder<'static>, ArtifactError> {
        self.weights.read(self.prefix, &self.config.tensors(), dtype, device)
    }

    /// Reads further tensors, by their full names in the file.
    ///
    /// # Errors
    /// As [`EncoderDir::encoder`].
    pub(super) fn tensors(
        &self,
        expected: &[(String, Vec<usize>)],
        device: &Device,
    ) -> Result<VarBuilder<'static>, ArtifactError> {
        self.weights.read("", expected, DType::F32, device)
    }

    pub(super) fn prefix(&self) -> &'static str {
        self.prefix
    }

    pub(super) fn config_json(&self) -> &str {
        &self.config_json
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Tensors in the file that neither the encoder nor its known companions (pooler, classifier, the heads and
    /// buffers of pre-training) explain: worth a line in the log, since weights that nobody reads are a classic mistake.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`].
    pub fn unknown_tensors(&self) -> Result<Vec<String>, ArtifactError> {
        let known: BTreeSet<String> =
            self.config.tensors().into_iter().map(|(name, _)| format!("{}{name}", self.prefix)).collect();
        let companion = |name: &str| {
            let bare = name.strip_prefix("bert.").unwrap_or(name);
            ["pooler.dense.", "classifier.", "cls.", "embeddings.position_ids"]
                .iter()
                .any(|start| bare.starts_with(start))
        };
        let names = self.weights.names()?;
        Ok(names.into_iter().filter(|name| !known.contains(name) && !companion(name)).collect())
    }
}

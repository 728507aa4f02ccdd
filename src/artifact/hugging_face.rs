//! A `BertForSequenceClassification` checkpoint as a router: its own head, its labels as queues.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{DType, Device};
use serde::Deserialize;

use super::calibration::Calibration;
use super::encoder_dir::{ENCODER_FILES, EncoderDir};
use super::{ArtifactError, LogitGroups, Router, RouterInfo, checksum};
use crate::collate::Pooling;
use crate::model::{Classifier, Head};
use crate::queues::{Queue, QueueSet, slug};
use crate::tokenizer::WindowConfig;

/// What `config.json` says of a classifier.
#[derive(Deserialize)]
struct ClassifierConfig {
    #[serde(default)]
    architectures: Vec<String>,
    #[serde(default)]
    id2label: HashMap<String, String>,
}

pub(super) fn load(path: &Path, dtype: DType, device: &Device) -> Result<Router, ArtifactError> {
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
    let encoder = dir.batch_encoder(dtype, device, None)?;
    let name = path.file_name().map_or_else(|| "router".into(), |name| name.to_string_lossy());
    let defaults = WindowConfig::default();
    let windows = WindowConfig { max_length: defaults.max_length.min(dir.config.max_positions), ..defaults };
    let windows = WindowConfig { stride: windows.stride.min(windows.capacity()), ..windows };
    Ok(Router {
        path: path.to_owned(),
        info: RouterInfo {
            name: name.to_string(),
            version: checksum::sha256(dir.config_json().as_bytes())[..12].to_owned(),
            encoder: name.to_string(),
            groups: LogitGroups::one_each(queues.len()),
            queues,
            aliases: BTreeMap::new(),
            languages: Vec::new(),
            windows,
            pooling: Pooling::Cls,
            attention_pooling: false,
            quantized: false,
            // Nobody measured this model here: its confidence is as it comes, and no threshold holds mail back.
            calibration: Calibration::new(1.0, 0.0),
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

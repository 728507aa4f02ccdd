//! What a router changes in its encoder: low-rank adapters in PEFT's layout, or whole tensors.

use std::collections::BTreeMap;
use std::path::Path;

use half::f16;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::{Deserialize, Serialize};

use super::weights::Weights;
use super::{ArtifactError, checksum};
use crate::model::EncoderConfig;
use crate::model::trainable::LoraConfig;

pub(super) const ADAPTER: &str = "adapter_model.safetensors";
pub(super) const ADAPTER_CONFIG: &str = "adapter_config.json";
pub(super) const ENCODER: &str = "encoder.safetensors";
/// What PEFT puts before the name of a tensor.
const PEFT_PREFIX: &str = "base_model.model.";

/// One tensor on the way to or from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTensor {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values, row-major.
    pub values: Vec<f32>,
}

/// What fine-tuning changed in the encoder, by the names of its tensors.
#[derive(Debug, Clone, PartialEq)]
pub enum EncoderChange {
    /// `lora_A` and `lora_B` of linear layers.
    Lora(LoraConfig, BTreeMap<String, StoredTensor>),
    /// Tensors that replace the encoder's.
    Full(BTreeMap<String, StoredTensor>),
}

/// `adapter_config.json`, as far as PEFT and we need it.
#[derive(Debug, Serialize, Deserialize)]
struct AdapterConfig {
    peft_type: String,
    r: usize,
    lora_alpha: f64,
    #[serde(default)]
    base_model_name_or_path: String,
    #[serde(default)]
    target_modules: serde_json::Value,
    #[serde(default)]
    bias: String,
    #[serde(default)]
    use_rslora: bool,
    #[serde(default)]
    use_dora: bool,
}

impl EncoderChange {
    /// The files that hold it: name and content. Values are stored in half precision.
    pub(super) fn files(&self, encoder: &str) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
        match self {
            Self::Lora(config, tensors) => {
                let json = serde_json::to_string_pretty(&AdapterConfig {
                    peft_type: "LORA".to_owned(),
                    r: config.rank,
                    lora_alpha: config.alpha,
                    base_model_name_or_path: encoder.to_owned(),
                    target_modules: r"encoder\.layer\.\d+\..*(query|key|value|dense)".into(),
                    bias: "none".to_owned(),
                    use_rslora: false,
                    use_dora: false,
                });
                let json = json.map_err(|source| source.to_string())?;
                Ok(vec![(ADAPTER, to_file(tensors, PEFT_PREFIX)?), (ADAPTER_CONFIG, format!("{json}\n").into_bytes())])
            }
            Self::Full(tensors) => Ok(vec![(ENCODER, to_file(tensors, "")?)]),
        }
    }

    /// Reads the change whose files and checksums the router names; `None` where it names none.
    pub(super) fn read(router: &Path, sha256: &BTreeMap<&str, &str>) -> Result<Option<Self>, ArtifactError> {
        if let Some(expected) = sha256.get(ENCODER) {
            return Ok(Some(Self::Full(tensors_of(&router.join(ENCODER), expected, "")?)));
        }
        let (Some(adapter), Some(config)) = (sha256.get(ADAPTER), sha256.get(ADAPTER_CONFIG)) else {
            return Ok(None);
        };
        let path = router.join(ADAPTER_CONFIG);
        let json = std::fs::read(&path).map_err(ArtifactError::read(&path))?;
        checksum::verify(&path, &json, config)?;
        let config: AdapterConfig =
            serde_json::from_slice(&json).map_err(|source| ArtifactError::damaged(&path, source))?;
        if config.peft_type != "LORA" || config.use_rslora || config.use_dora || config.r == 0 {
            return Err(ArtifactError::damaged(&path, "only plain LoRA adapters of a rank of at least 1 are read"));
        }
        let lora = LoraConfig { rank: config.r, alpha: config.lora_alpha };
        Ok(Some(Self::Lora(lora, tensors_of(&router.join(ADAPTER), adapter, PEFT_PREFIX)?)))
    }

    /// Checks that every tensor belongs to the encoder and has its shape.
    pub(super) fn check(&self, encoder: &EncoderConfig) -> Result<(), String> {
        let shapes: BTreeMap<String, Vec<usize>> = encoder.tensors().into_iter().collect();
        let (Self::Lora(_, tensors) | Self::Full(tensors)) = self;
        for (name, tensor) in tensors {
            let wanted = match self {
                Self::Full(_) => shapes.get(name).cloned(),
                Self::Lora(config, _) => {
                    let (layer, down) = match (name.strip_suffix(".lora_A.weight"), name.strip_suffix(".lora_B.weight"))
                    {
                        (Some(layer), _) => (layer, true),
                        (_, Some(layer)) => (layer, false),
                        _ => return Err(format!("tensor `{name}` is no adapter")),
                    };
                    let other = if down { format!("{layer}.lora_B.weight") } else { format!("{layer}.lora_A.weight") };
                    if !tensors.contains_key(&other) {
                        return Err(format!("tensor `{name}` stands without `{other}`"));
                    }
                    match shapes.get(&format!("{layer}.weight")).map(Vec::as_slice) {
                        Some(&[_, inputs]) if down => Some(vec![config.rank, inputs]),
                        Some(&[outputs, _]) => Some(vec![outputs, config.rank]),
                        _ => None,
                    }
                }
            };
            match wanted {
                None => return Err(format!("tensor `{name}` belongs to no layer of the encoder")),
                Some(shape) if shape != tensor.shape => {
                    return Err(format!("tensor `{name}` has shape {:?}, not {shape:?}", tensor.shape));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The tensor `name` of the encoder, changed. Shapes were checked by [`EncoderChange::check`].
    pub(super) fn apply(&self, name: &str, mut values: Vec<f32>) -> Vec<f32> {
        match self {
            Self::Full(tensors) => tensors.get(name).map_or(values, |tensor| tensor.values.clone()),
            Self::Lora(config, tensors) => {
                let layer = name.strip_suffix(".weight").unwrap_or(name);
                let part = |part: &str| tensors.get(&format!("{layer}.{part}.weight"));
                if let (Some(down), Some(up)) = (part("lora_A"), part("lora_B")) {
                    add_product(&mut values, &up.values, &down.values, config);
                }
                values
            }
        }
    }
}

/// `weight += alpha / rank * up * down`, all row-major.
fn add_product(weight: &mut [f32], up: &[f32], down: &[f32], config: &LoraConfig) {
    let inputs = down.len() / config.rank;
    let scale = config.scale() as f32;
    for (row, factors) in weight.chunks_exact_mut(inputs).zip(up.chunks_exact(config.rank)) {
        for (factor, down) in factors.iter().zip(down.chunks_exact(inputs)) {
            let factor = factor * scale;
            row.iter_mut().zip(down).for_each(|(weight, down)| *weight += factor * down);
        }
    }
}

fn to_file(tensors: &BTreeMap<String, StoredTensor>, prefix: &str) -> Result<Vec<u8>, String> {
    let halves: Vec<(String, &[usize], Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| {
            let bytes = tensor.values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
            (format!("{prefix}{name}"), tensor.shape.as_slice(), bytes)
        })
        .collect();
    let views: Result<Vec<_>, _> = halves
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F16, shape.to_vec(), bytes)?)))
        .collect::<Result<_, safetensors::SafeTensorError>>();
    views.and_then(|views| serialize(views, None)).map_err(|source| source.to_string())
}

fn tensors_of(path: &Path, sha256: &str, prefix: &str) -> Result<BTreeMap<String, StoredTensor>, ArtifactError> {
    let weights = Weights::open(path, Some(sha256))?;
    let mut tensors = BTreeMap::new();
    for stored in weights.names()? {
        let name = stored.strip_prefix(prefix).unwrap_or(&stored);
        let shape = weights.shape(&stored)?;
        let values = weights.values(&stored, &shape)?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(ArtifactError::damaged(path, format_args!("tensor `{stored}` holds infinity or NaN")));
        }
        tensors.insert(name.to_owned(), StoredTensor { shape, values });
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], values: &[f32]) -> StoredTensor {
        StoredTensor { shape: shape.to_vec(), values: values.to_vec() }
    }

    #[test]
    fn an_adapter_adds_its_scaled_product() {
        let tensors = BTreeMap::from([
            ("layer.lora_A.weight".to_owned(), tensor(&[1, 2], &[3.0, 4.0])),
            ("layer.lora_B.weight".to_owned(), tensor(&[2, 1], &[1.0, -1.0])),
        ]);
        let change = EncoderChange::Lora(LoraConfig { rank: 1, alpha: 2.0 }, tensors);
        assert_eq!(change.apply("layer.weight", vec![1.0; 4]), [7.0, 9.0, -5.0, -7.0]);
        assert_eq!(change.apply("layer.bias", vec![1.0; 2]), [1.0; 2]);
    }

    /// The values as they are after storing.
    fn rounded(mut change: EncoderChange) -> EncoderChange {
        let (EncoderChange::Lora(_, tensors) | EncoderChange::Full(tensors)) = &mut change;
        for value in tensors.values_mut().flat_map(|tensor| &mut tensor.values) {
            *value = f16::from_f32(*value).to_f32();
        }
        change
    }

    #[test]
    fn a_change_comes_back_from_its_files_as_rounded() {
        let folder = tempfile::tempdir().unwrap();
        let tensors = BTreeMap::from([("a.lora_A.weight".to_owned(), tensor(&[1, 2], &[0.1, 4.0]))]);
        for change in
            [EncoderChange::Lora(LoraConfig { rank: 1, alpha: 2.0 }, tensors.clone()), EncoderChange::Full(tensors)]
        {
            let mut sums = BTreeMap::new();
            for (name, bytes) in change.files("minilm").unwrap() {
                std::fs::write(folder.path().join(name), &bytes).unwrap();
                sums.insert(name, checksum::sha256(&bytes));
            }
            let sums = sums.iter().map(|(name, sum)| (*name, sum.as_str())).collect();
            let read = EncoderChange::read(folder.path(), &sums).unwrap();
            assert_ne!(read.as_ref(), Some(&change));
            assert_eq!(read, Some(rounded(change)));
        }
    }
}

//! `router.json`: all that a router is, beside its tensors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::encoder_change::{ADAPTER, ADAPTER_CONFIG, ENCODER};
use super::quantized::Quantized;
use crate::collate::Pooling;
use crate::queues::Queue;
use crate::tokenizer::WindowConfig;

/// The layout that this version writes and reads.
pub const ROUTER_SCHEMA: &str = "postroom-router/1";

/// Contents of `router.json`. Unknown keys are refused: a router of a later version must not be half understood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`ROUTER_SCHEMA`].
    pub schema: String,
    /// Name of the router.
    pub name: String,
    /// Twelve digits made of all that the router decides by; part of every answer.
    pub version: String,
    /// The encoder it was trained on.
    pub encoder: EncoderReference,
    /// Its tensors.
    pub files: RouterFiles,
    /// In the order of the logits.
    pub queues: Vec<Queue>,
    /// The logits that make up each queue, where queues were merged; empty: one each, in the order of the queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Vec<usize>>,
    /// Ids of queues that were merged away, and the queue that their mail now counts as.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// Languages it was trained on (ISO 639-1); mail in another one goes to a person. Empty: any.
    pub languages: Vec<String>,
    /// How mail is cut into windows.
    pub windows: WindowConfig,
    /// How hidden states become one vector.
    pub pooling: Pooling,
    /// What its encoder is reduced to, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantize: Option<Quantized>,
    /// How logits become confidence, and when to hand over to a person.
    pub calibration: Calibration,
    /// Where it comes from.
    pub provenance: Provenance,
    /// What was measured on it.
    pub figures: Figures,
}

/// An encoder directory by name and by what must be in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderReference {
    /// Name of its directory.
    pub name: String,
    /// SHA-256 of its files, by file name.
    pub sha256: BTreeMap<String, String>,
}

/// The router's own tensor files and their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterFiles {
    /// SHA-256 of `head.safetensors`.
    #[serde(rename = "head.safetensors")]
    pub head: String,
    /// SHA-256 of `lexical.safetensors`, where the router counts words too.
    #[serde(rename = "lexical.safetensors", default, skip_serializing_if = "Option::is_none")]
    pub lexical: Option<String>,
    /// SHA-256 of `adapter_model.safetensors`, where the encoder is fine-tuned by adapters.
    #[serde(rename = "adapter_model.safetensors", default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// SHA-256 of `adapter_config.json`.
    #[serde(rename = "adapter_config.json", default, skip_serializing_if = "Option::is_none")]
    pub adapter_config: Option<String>,
    /// SHA-256 of `encoder.safetensors`, where whole tensors of the encoder are replaced.
    #[serde(rename = "encoder.safetensors", default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// SHA-256 of `memory.safetensors`, where the router remembers some of its mail as vectors.
    #[serde(rename = "memory.safetensors", default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}

impl RouterFiles {
    /// The files that change the encoder, with their checksums.
    pub(super) fn change(&self) -> BTreeMap<&str, &str> {
        let files = [(ADAPTER, &self.adapter), (ADAPTER_CONFIG, &self.adapter_config), (ENCODER, &self.encoder)];
        files.into_iter().filter_map(|(name, sum)| Some((name, sum.as_deref()?))).collect()
    }

    pub(super) fn set_change(&mut self, name: &str, sha256: String) {
        match name {
            ADAPTER => self.adapter = Some(sha256),
            ADAPTER_CONFIG => self.adapter_config = Some(sha256),
            _ => self.encoder = Some(sha256),
        }
    }
}

/// How a router came to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Data that it was trained on, by file name.
    pub data: String,
    /// SHA-256 of that file.
    pub data_sha256: String,
    /// Mails that were used, those only trained on included.
    pub mails: usize,
    /// So many of them were only trained on: no figure speaks of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mails_only_trained_on: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Version of the program.
    pub program: String,
}

// The signature is serde's.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Figures measured while training, on mails that the judged head had not seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Share of held-out mails sent to the right queue when every mail is routed.
    pub accuracy: f64,
    /// The same for the encoder's head without the words.
    pub accuracy_encoder_alone: f64,
    /// The same for word counts without the encoder: the baseline.
    pub accuracy_words_alone: f64,
    /// The same for the frozen encoder with word counts; 0 in routers of earlier versions.
    #[serde(default)]
    pub accuracy_frozen: f64,
    /// Share of held-out mails routed without a person.
    pub coverage: f64,
    /// Share of those that went to the right queue; 0, and no figure, where `coverage` is 0.
    pub accuracy_when_routed: f64,
    /// Expected calibration error, 15 bins.
    pub ece: f64,
    /// Held-out mail of each queue by id, as it was when the router was trained; empty in routers of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<String, HeldOutRecall>,
}

/// Held-out mail of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOutRecall {
    /// How many.
    pub mails: usize,
    /// Those that would go to it when every mail is routed.
    pub right: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// Read and written, a router decides as before: no digit of a number moves.
    #[test]
    fn a_manifest_that_is_read_and_written_is_the_same_to_the_last_digit() {
        let crumb = concat!(env!("CARGO_MANIFEST_DIR"), "/models/crumb/router.json");
        let mut manifest: Manifest = serde_json::from_str(&std::fs::read_to_string(crumb).unwrap()).unwrap();
        let mut numbers = SplitMix64::seeded(17);
        for _ in 0..2000 {
            // Between 0 and 1 with all 53 bits, which take up to 17 digits.
            let mut number = || numbers.uniform();
            manifest.calibration.threshold = number();
            manifest.figures.accuracy = number();
            manifest.figures.ece = number() / 1000.0;
            let written = serde_json::to_string(&manifest).unwrap();
            let read: Manifest = serde_json::from_str(&written).unwrap();
            assert_eq!(read, manifest);
            assert_eq!(serde_json::to_string(&read).unwrap(), written);
        }
    }
}

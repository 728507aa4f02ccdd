//! `probes.json`: what a router said of a few fixed texts when it was made, to be asked again before it takes traffic.
//!
//! Checksums say that the files are the same; this says that what is made of them here, by this program on this machine, still
//! answers the same. The texts are built in and nobody's mail. A router without the file only has to answer them at all.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::save::replace;
use super::{ArtifactError, Router};
use crate::collate::{WindowedEmail, pack};
use crate::email::{CleanOptions, Fields, Posted, clean};
use crate::model::{KeepMaps, ModelError};

pub(super) const NAME: &str = "probes.json";

/// Most that a logit may differ from the recorded one. Devices and instruction sets differ by less than 0.001; 0.01 moves a
/// confidence by a quarter of a percent at most (where the temperature is 1).
const TOLERANCE: f32 = 0.01;

/// The same for a router that runs on bytes where the machine can, and in floats where it cannot.
const QUANTIZED_TOLERANCE: f32 = 0.25;

/// Plain sentences without anything that cleaning would take out, so that only the network and the words speak.
const TEXTS: [&str; 4] = [
    "Where is my order? It should have been here on Friday.",
    "You charged me twice for the same thing. I would like the second payment back, please.",
    "Before I buy: does it contain nuts, and can it be delivered to an office on a Monday morning?",
    "Thank you for the quick help last week.",
];

/// How often the first text stands in the fifth, which is longer than one window.
const TIMES: usize = 30;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Probes {
    /// Version of the router that was asked.
    version: String,
    /// The program that asked.
    program: String,
    /// Most that a logit may differ.
    tolerance: f32,
    probes: Vec<Probe>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Probe {
    text: String,
    /// One logit a queue, in the router's order.
    logits: Vec<f32>,
}

/// What a self-test has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfTest {
    /// Texts that were asked.
    pub probes: usize,
    /// The largest difference of a logit from the recorded one; `None` where none were recorded.
    pub largest_difference: Option<f32>,
}

/// Asks the router in `path` what it was asked when it was made, and compares.
///
/// # Errors
/// [`ArtifactError::SelfTest`] where an answer differs, is missing or is no number; [`ArtifactError::Damaged`] where the file
/// cannot be understood.
pub fn self_test(path: &Path, router: &Router) -> Result<SelfTest, ArtifactError> {
    let failed = |reason: String| ArtifactError::SelfTest { path: path.to_owned(), reason };
    let Some(recorded) = read(path)? else {
        let texts = texts();
        logits(router, texts.iter().map(String::as_str)).map_err(ArtifactError::model(path))?;
        return Ok(SelfTest { probes: texts.len(), largest_difference: None });
    };
    if recorded.version != router.info.version {
        return Err(failed(format!(
            "{NAME} was recorded of version {}, the router is {}; `postroom model verify --record` records it again",
            recorded.version, router.info.version
        )));
    }
    let answers =
        logits(router, recorded.probes.iter().map(|probe| probe.text.as_str())).map_err(ArtifactError::model(path))?;
    let mut largest = 0.0_f32;
    for (number, (probe, logits)) in recorded.probes.iter().zip(&answers).enumerate() {
        if probe.logits.len() != logits.len() {
            return Err(failed(format!("{NAME} has {} logits a text, not {}", probe.logits.len(), logits.len())));
        }
        for (queue, (recorded_logit, logit)) in router.info.queues.iter().zip(probe.logits.iter().zip(logits)) {
            let difference = (recorded_logit - logit).abs();
            if difference.is_nan() || difference > recorded.tolerance {
                return Err(failed(format!(
                    "text {number} of {NAME} gives `{}` the logit {logit:.4}, recorded was {recorded_logit:.4} (tolerance {})",
                    queue.id, recorded.tolerance
                )));
            }
            largest = largest.max(difference);
        }
    }
    Ok(SelfTest { probes: answers.len(), largest_difference: Some(largest) })
}

/// Writes down what the router says now. Its version stays.
///
/// # Errors
/// [`ArtifactError::Model`] where it cannot answer, [`ArtifactError::Write`].
pub fn record_probes(path: &Path, router: &Router) -> Result<(), ArtifactError> {
    let texts = texts();
    let answers = logits(router, texts.iter().map(String::as_str)).map_err(ArtifactError::model(path))?;
    let recorded = Probes {
        version: router.info.version.clone(),
        program: concat!("postroom ", env!("CARGO_PKG_VERSION")).to_owned(),
        tolerance: if router.info.quantized { QUANTIZED_TOLERANCE } else { TOLERANCE },
        probes: texts.into_iter().zip(answers).map(|(text, logits)| Probe { text, logits }).collect(),
    };
    let json =
        serde_json::to_string_pretty(&recorded).map_err(|source| ArtifactError::damaged(&path.join(NAME), source))?;
    replace(path, NAME, format!("{json}\n").as_bytes())
}

/// Refuses a file that cannot be understood; none at all is fine.
pub(super) fn check(path: &Path) -> Result<(), ArtifactError> {
    read(path).map(drop)
}

fn read(path: &Path) -> Result<Option<Probes>, ArtifactError> {
    let file = path.join(NAME);
    let text = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(ArtifactError::read(&file))?,
    };
    let probes: Probes = serde_json::from_str(&text).map_err(|source| ArtifactError::damaged(&file, source))?;
    if probes.probes.is_empty() {
        return Err(ArtifactError::damaged(&file, "it holds no probes"));
    }
    Ok(Some(probes))
}

fn texts() -> Vec<String> {
    let long = vec![TEXTS[0]; TIMES].join(" ");
    TEXTS.into_iter().map(str::to_owned).chain([long]).collect()
}

/// One logit a queue for each text, as a decision would see them.
fn logits<'t>(router: &Router, texts: impl Iterator<Item = &'t str>) -> Result<Vec<Vec<f32>>, ModelError> {
    let info = &router.info;
    let encoded: Vec<_> = texts
        .map(|text| {
            let posted = Posted::Fields(Fields { text: Some(text), ..Fields::default() });
            router.tokenizer.encode(&clean(&posted, &CleanOptions::default()), info.windows.max_tokens)
        })
        .collect();
    let windowed: Vec<_> = encoded
        .iter()
        .map(|encoded| WindowedEmail::new(encoded, &router.tokenizer, &info.windows, info.pooling))
        .collect();
    let output = router.classifier.forward(&pack(&windowed), &KeepMaps::None)?;
    let with_words = output.logits.into_iter().zip(&encoded).map(|(logits, encoded)| {
        let logits = info.queue_logits(&router.join(&logits, &router.word_logits(encoded)));
        // The network's own numbers are checked where they are made; the words' come on top.
        if logits.iter().all(|logit| logit.is_finite()) { Ok(logits) } else { Err(ModelError::NotFinite) }
    });
    with_words.collect()
}

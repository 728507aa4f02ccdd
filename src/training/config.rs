//! Settings of a training.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FineTuningConfig, KnowingConfig, TrainingError};
use crate::collate::Pooling;
use crate::email::CleanOptions;
use crate::tokenizer::WindowConfig;

/// How the encoder is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Fine-tune, and keep the result only where held-out mail says that it is better than the frozen encoder.
    #[default]
    Auto,
    /// The encoder as it is, with a head: seconds.
    Frozen,
    /// Fine-tune, whatever held-out mail says.
    FineTuned,
}

/// Settings of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Whether the encoder is fine-tuned.
    pub method: Method,
    /// Inverse strengths of the head's L2 penalty to try; the one with the best likelihood on held-out mail is taken.
    pub c: Vec<f64>,
    /// Parts that the mail is split into: each is judged by a head trained on the others.
    pub folds: usize,
    /// Share of wrong answers that is acceptable among mail routed without a person.
    pub max_error_rate: f64,
    /// The same for single queues, by id; they get thresholds of their own.
    pub queue_max_error_rate: BTreeMap<String, f64>,
    /// Least share of a queue's mail that must reach the queue or a person, by id.
    pub recall_floor: BTreeMap<String, f64>,
    /// Share of known mail that may be taken for out of scope; 0 leaves the check out.
    pub out_of_scope_quantile: f64,
    /// Share of the mail handed to a person whose right queue may be missing from the set shown; 0 leaves the set out.
    pub conformal_alpha: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// How mail is cut into windows.
    pub windows: WindowConfig,
    /// How hidden states become one vector.
    pub pooling: Pooling,
    /// Languages of the mail (ISO 639-1); empty: any.
    pub languages: Vec<String>,
    /// How mail is read.
    pub email: CleanOptions,
    /// How the encoder is fine-tuned.
    pub fine_tuning: FineTuningConfig,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            method: Method::default(),
            c: vec![1.0, 3.0, 10.0, 30.0, 100.0],
            folds: 6,
            max_error_rate: 0.03,
            queue_max_error_rate: BTreeMap::new(),
            recall_floor: BTreeMap::new(),
            out_of_scope_quantile: 0.02,
            conformal_alpha: 0.05,
            seed: 0,
            windows: WindowConfig::default(),
            pooling: Pooling::default(),
            languages: vec!["en".to_owned()],
            email: CleanOptions::default(),
            fine_tuning: FineTuningConfig::default(),
        }
    }
}

impl TrainingConfig {
    /// The part that says what the router may do alone.
    #[must_use]
    pub fn knowing(&self) -> KnowingConfig {
        KnowingConfig {
            max_error_rate: self.max_error_rate,
            queue_max_error_rate: self.queue_max_error_rate.clone(),
            recall_floor: self.recall_floor.clone(),
            out_of_scope_quantile: self.out_of_scope_quantile,
            conformal_alpha: self.conformal_alpha,
        }
    }

    /// Refuses settings that make no sense.
    pub(super) fn check(&self) -> Result<(), TrainingError> {
        if self.folds < 2 {
            return Err(TrainingError::Folds(self.folds));
        }
        if self.c.is_empty() || self.c.iter().any(|&c| !(c.is_finite() && c > 0.0)) {
            return Err(TrainingError::Strength(self.c.clone()));
        }
        self.fine_tuning.check().map_err(TrainingError::FineTuning)
    }
}

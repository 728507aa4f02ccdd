//! How far a confidence can be trusted.

use serde::Serialize;

use super::Answer;
use crate::metrics::{
    ReliabilityBin, adaptive_calibration_error, brier_score, expected_calibration_error, reliability_bins,
};

/// Calibration of the likeliest queue's probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trust {
    /// Expected calibration error, 15 bins of equal width.
    pub ece: f64,
    /// The same over 15 bins of equally many mails.
    pub adaptive_ece: f64,
    /// Brier score over all queues, 0 (perfect) to 2.
    pub brier: f64,
    /// What the reliability diagram shows.
    pub bins: Vec<ReliabilityBin>,
}

/// Bins of each figure.
const BINS: usize = 15;

impl Trust {
    pub(super) fn of(answers: &[Answer<'_>]) -> Self {
        let confidences: Vec<f64> = answers.iter().map(|answer| answer.judgement.confidence).collect();
        let correct: Vec<bool> = answers.iter().map(Answer::right).collect();
        let probabilities: Vec<Vec<f64>> =
            answers.iter().map(|answer| answer.judgement.probabilities.clone()).collect();
        let targets: Vec<usize> = answers.iter().map(|answer| answer.mail.target).collect();
        Self {
            ece: expected_calibration_error(&confidences, &correct, BINS),
            adaptive_ece: adaptive_calibration_error(&confidences, &correct, BINS),
            brier: brier_score(&probabilities, &targets),
            bins: reliability_bins(&confidences, &correct, BINS),
        }
    }
}

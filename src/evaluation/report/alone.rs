//! What is routed without a person, what is not and why, and what other thresholds would do.

use serde::Serialize;

use super::{Answer, Rate, ReportInput};
use crate::metrics::{RiskCoverage, aurc, excess_aurc, risk_coverage};

/// The router's own choice beside all that one threshold could choose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alone {
    /// The common threshold, or the one of the settings that takes the place of all.
    pub threshold: f64,
    /// Whether it is that of the settings.
    pub threshold_of_settings: bool,
    /// Mail routed without a person, of all.
    pub routed: Rate,
    /// Wrong mail among it.
    pub wrong: Rate,
    /// Mail for a person.
    pub to_a_person: usize,
    /// Of these, below the threshold of the likeliest queue. A mail may count under several reasons.
    pub below_threshold: usize,
    /// Of these, like nothing the router knows.
    pub out_of_scope: usize,
    /// Of these, stopped by a queue that must not be missed.
    pub safety_queue: usize,
    /// Error by coverage, the strictest threshold first; thinned out, the ends kept.
    pub curve: Vec<RiskCoverage>,
    /// Mean error over all coverages.
    pub aurc: f64,
    /// The same above the best possible order of these answers.
    pub excess_aurc: f64,
}

/// Points that a curve keeps.
const POINTS: usize = 200;

impl Alone {
    pub(super) fn of(answers: &[Answer<'_>], input: &ReportInput<'_>) -> Self {
        let routed = answers.iter().filter(|answer| answer.judgement.routed_alone()).count();
        let wrong = answers.iter().filter(|answer| answer.judgement.routed_alone() && !answer.right()).count();
        let confidences: Vec<f64> = answers.iter().map(|answer| answer.judgement.confidence).collect();
        let correct: Vec<bool> = answers.iter().map(Answer::right).collect();
        Self {
            threshold: input.threshold.unwrap_or(input.calibration.threshold),
            threshold_of_settings: input.threshold.is_some(),
            routed: Rate::new(routed, answers.len()),
            wrong: Rate::new(wrong, routed),
            to_a_person: answers.len() - routed,
            below_threshold: answers.iter().filter(|answer| answer.judgement.below_threshold).count(),
            out_of_scope: answers.iter().filter(|answer| answer.judgement.out_of_scope).count(),
            safety_queue: answers.iter().filter(|answer| answer.judgement.guarded_by.is_some()).count(),
            curve: thinned(&risk_coverage(&confidences, &correct)),
            aurc: aurc(&confidences, &correct),
            excess_aurc: excess_aurc(&confidences, &correct),
        }
    }
}

fn thinned(points: &[RiskCoverage]) -> Vec<RiskCoverage> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    (0..POINTS).map(|index| points[index * (points.len() - 1) / (POINTS - 1)]).collect()
}

//! What can be said of predictions: calibration, error budgets, recall floors, sets, scope. Plain functions of numbers.

mod binomial;
mod budget;
mod calibration;
mod conformal;
mod guard;
mod ranking;
mod reliability;
mod scope;
mod selective;

pub use binomial::{clopper_pearson_interval, clopper_pearson_lower, clopper_pearson_upper};
pub use budget::{BudgetThreshold, fewest_to_prove, reaches, solve_queue_threshold, solve_threshold};
pub use calibration::{
    calibrated_loss, expected_calibration_error, fit_temperature, likeliest_temperature, negative_log_likelihood,
    softmax,
};
pub use conformal::{
    Penalty, aps_scores, conformal_quantile, conformal_rank, fewest_to_cover, lac_score, lac_set, mondrian_quantiles,
    raps_scores,
};
pub use guard::{LEAST_GUARD, MOST_GUARD, RecallGuard, solve_recall_guard};
pub use ranking::{auroc, average_precision};
pub use reliability::{
    ReliabilityBin, adaptive_calibration_error, brier_score, class_wise_calibration_error, reliability_bins,
};
pub use scope::{energy, mahalanobis, max_logit};
pub use selective::{RiskCoverage, aurc, excess_aurc, risk_coverage};

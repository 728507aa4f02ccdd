//! What can be said of predictions: calibration, error budget, counts. Plain functions of numbers.

mod budget;
mod calibration;

pub use budget::{BudgetThreshold, clopper_pearson_upper, solve_threshold};
pub use calibration::{expected_calibration_error, fit_temperature, negative_log_likelihood, softmax};

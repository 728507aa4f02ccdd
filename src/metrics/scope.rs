//! How much a mail looks like anything the router was trained on. Higher: more likely in scope.
//!
//! A softmax always sums to 1, so a mail about nothing known can still look sure. The size of the logits tells the two
//! apart better (Liu et al. 2020, energy-based out-of-distribution detection).

/// `T * ln sum exp(z / T)`, the largest logit taken out first; negative infinity for no logits.
#[must_use]
pub fn energy(logits: &[f32], temperature: f64) -> f64 {
    let largest = max_logit(logits);
    if !largest.is_finite() {
        return largest;
    }
    let sum: f64 = logits.iter().map(|&logit| ((f64::from(logit) - largest) / temperature).exp()).sum();
    largest + temperature * sum.ln()
}

/// The largest logit; negative infinity for none, not a number where one of them is.
#[must_use]
pub fn max_logit(logits: &[f32]) -> f64 {
    logits
        .iter()
        .map(|&logit| f64::from(logit))
        .fold(f64::NEG_INFINITY, |largest, logit| if logit.is_nan() || logit > largest { logit } else { largest })
}

/// Squared Mahalanobis distance of `x` to `mean` under a covariance (row-major, symmetric, positive definite).
///
/// With `S = L L^T` it is the squared length of `L^-1 (x - mean)`. `None` where sizes differ or `S` has no such root.
#[must_use]
pub fn mahalanobis(x: &[f64], mean: &[f64], covariance: &[f64]) -> Option<f64> {
    let n = x.len();
    if mean.len() != n || covariance.len() != n * n {
        return None;
    }
    let mut root = vec![0.0; n * n];
    let mut solved = vec![0.0; n];
    for row in 0..n {
        for column in 0..=row {
            let inner: f64 = (0..column).map(|k| root[row * n + k] * root[column * n + k]).sum();
            let rest = covariance[row * n + column] - inner;
            root[row * n + column] = if row == column {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                rest.sqrt()
            } else {
                rest / root[column * n + column]
            };
        }
        let known: f64 = (0..row).map(|k| root[row * n + k] * solved[k]).sum();
        solved[row] = (x[row] - mean[row] - known) / root[row * n + row];
    }
    Some(solved.iter().map(|value| value * value).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_of_the_worked_example() {
        let logits = [[2.0, 1.0, 0.1], [0.5, 2.5, 1.0], [3.0, 0.0, 0.0], [1.0, 2.0, 0.0]];
        for (row, expected) in logits.iter().zip([2.417_030, 2.806_356, 3.094_923, 2.407_606]) {
            assert!((energy(row, 1.0) - expected).abs() < 1e-6, "{row:?}");
        }
        assert!((max_logit(&logits[1]) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn energy_lies_between_the_largest_logit_and_that_plus_t_ln_n() {
        let logits = [300.0, 299.0, -1000.0];
        for temperature in [0.05, 0.7, 1.0, 20.0] {
            let energy = energy(&logits, temperature);
            assert!(energy >= 300.0 && energy <= 300.0 + temperature * 3f64.ln(), "{temperature}: {energy}");
        }
    }

    #[test]
    fn broken_logits_give_no_scope_and_no_panic() {
        assert_eq!(energy(&[], 1.0), f64::NEG_INFINITY);
        assert!(energy(&[1.0, f32::NAN], 1.0).is_nan());
        assert!(energy(&[f32::NAN, 1.0], 1.0).is_nan());
    }

    #[test]
    fn mahalanobis_distances_of_the_worked_example() {
        let covariance = [1.0, 0.5, 0.5, 2.0];
        for (mean, expected) in [([0.0, 0.0], 1.142_857_1), ([4.0, 0.0], 12.571_428_6)] {
            let distance = mahalanobis(&[1.0, 1.0], &mean, &covariance).unwrap();
            assert!((distance - expected).abs() < 1e-6, "{distance}");
        }
    }

    #[test]
    fn a_covariance_without_a_root_has_no_distance() {
        assert_eq!(mahalanobis(&[1.0, 1.0], &[0.0, 0.0], &[1.0, 2.0, 2.0, 1.0]), None);
        assert_eq!(mahalanobis(&[1.0], &[0.0, 0.0], &[1.0]), None);
    }
}

//! Temperature scaling and calibration error (Guo et al. 2017).

/// `softmax(logits / temperature)` in f64, the largest logit subtracted first.
#[must_use]
pub fn softmax(logits: &[f32], temperature: f64) -> Vec<f64> {
    let scaled: Vec<f64> = logits.iter().map(|&logit| f64::from(logit) / temperature).collect();
    let largest = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scaled.iter().map(|value| (value - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// Mean of `-log p(right queue)`; rows and targets have the same length.
#[must_use]
pub fn negative_log_likelihood(logits: &[Vec<f32>], targets: &[usize], temperature: f64) -> f64 {
    let total: f64 = logits
        .iter()
        .zip(targets)
        .map(|(row, &target)| -softmax(row, temperature)[target].max(f64::MIN_POSITIVE).ln())
        .sum();
    total / logits.len().max(1) as f64
}

/// Bounds of `1 / temperature`: where every held-out mail is right the likelihood has no maximum.
const INVERSE_TEMPERATURE: (f64, f64) = (0.05, 20.0);

/// The temperature that minimises [`negative_log_likelihood`] on held-out mail.
///
/// With `b = 1 / temperature` the loss is convex and its derivative, the mean of `E_p[z] - z_target`, grows with `b`,
/// so bisection finds its zero. The order of the queues never changes.
#[must_use]
pub fn fit_temperature(logits: &[Vec<f32>], targets: &[usize]) -> f64 {
    let slope = |inverse: f64| -> f64 {
        logits
            .iter()
            .zip(targets)
            .map(|(row, &target)| {
                let expected: f64 =
                    softmax(row, 1.0 / inverse).iter().zip(row).map(|(p, &logit)| p * f64::from(logit)).sum();
                expected - f64::from(row[target])
            })
            .sum()
    };
    let (mut low, mut high) = INVERSE_TEMPERATURE;
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        if slope(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    1.0 / (low * high).sqrt()
}

/// Expected calibration error over equal-width bins closed on the right.
#[must_use]
pub fn expected_calibration_error(confidences: &[f64], correct: &[bool], bins: usize) -> f64 {
    let mut counts = vec![(0usize, 0.0f64, 0usize); bins];
    for (&confidence, &correct) in confidences.iter().zip(correct) {
        let bin = ((confidence * bins as f64).ceil() as usize).clamp(1, bins) - 1;
        counts[bin].0 += 1;
        counts[bin].1 += confidence;
        counts[bin].2 += usize::from(correct);
    }
    let gaps: f64 = counts.iter().map(|&(_, confidence, correct)| (correct as f64 - confidence).abs()).sum();
    gaps / confidences.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (Vec<Vec<f32>>, Vec<usize>) {
        let logits = vec![vec![2.0, 1.0, 0.1], vec![0.5, 2.5, 1.0], vec![3.0, 0.0, 0.0], vec![1.0, 2.0, 0.0]];
        (logits, vec![0, 1, 0, 0])
    }

    #[test]
    fn temperature_of_the_worked_example() {
        let (logits, targets) = example();
        let temperature = fit_temperature(&logits, &targets);
        assert!((temperature - 0.749_821_6).abs() < 1e-6, "{temperature}");
        assert!((negative_log_likelihood(&logits, &targets, 1.0) - 0.556_478_7).abs() < 1e-6);
        assert!((negative_log_likelihood(&logits, &targets, temperature) - 0.534_507_6).abs() < 1e-6);
        assert!((negative_log_likelihood(&logits, &targets, 2.0) - 0.712_231_9).abs() < 1e-6);
    }

    #[test]
    fn a_perfect_held_out_set_stops_at_the_bound() {
        let temperature = fit_temperature(&[vec![1.0, 0.0], vec![0.0, 2.0]], &[0, 1]);
        assert!((temperature - 0.05).abs() < 1e-6, "{temperature}");
    }

    #[test]
    fn calibration_error_of_the_worked_example() {
        let confidences = [0.95, 0.9, 0.62, 0.61, 0.4, 0.2];
        let correct = [true, true, false, true, false, true];
        let error = expected_calibration_error(&confidences, &correct, 15);
        assert!((error - 0.263_333_3).abs() < 1e-6, "{error}");
    }
}

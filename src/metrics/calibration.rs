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

/// The temperature that minimises [`negative_log_likelihood`] on held-out mail: what models are compared at. Where every
/// mail is right it is the lowest there is, at which nearly every confidence is 1; what is served is [`fit_temperature`].
#[must_use]
pub fn likeliest_temperature(logits: &[Vec<f32>], targets: &[usize]) -> f64 {
    least_loss(logits, targets, 1.0)
}

/// [`negative_log_likelihood`] at [`likeliest_temperature`]: how likely the answers are, however sure the model is of itself.
#[must_use]
pub fn calibrated_loss(logits: &[Vec<f32>], targets: &[usize]) -> f64 {
    negative_log_likelihood(logits, targets, likeliest_temperature(logits, targets))
}

/// The temperature to serve: [`likeliest_temperature`] - or, where every one of `n` mails is right, the one that is
/// likeliest for Platt's targets (Platt 1999): `(n + 1) / (n + 2)` for the right queue, the rest spread evenly over the
/// others. `n` right answers do not show that the next one is right for certain, and with these targets the loss has a
/// minimum.
#[must_use]
pub fn fit_temperature(logits: &[Vec<f32>], targets: &[usize]) -> f64 {
    let right = |(row, &target): (&Vec<f32>, &usize)| row.iter().all(|&logit| logit <= row[target]);
    let mails = logits.len() as f64;
    let share = if logits.iter().zip(targets).all(right) { (mails + 1.0) / (mails + 2.0) } else { 1.0 };
    least_loss(logits, targets, share)
}

/// The temperature with the least cross-entropy against targets that give the right queue `share` and the others the rest.
///
/// With `b = 1 / temperature` the loss is convex and its derivative, the mean of `E_p[z] - E_target[z]`, grows with `b`,
/// so bisection finds its zero. The order of the queues never changes.
fn least_loss(logits: &[Vec<f32>], targets: &[usize], share: f64) -> f64 {
    let slope = |inverse: f64| -> f64 {
        logits
            .iter()
            .zip(targets)
            .map(|(row, &target)| {
                let expected: f64 =
                    softmax(row, 1.0 / inverse).iter().zip(row).map(|(p, &logit)| p * f64::from(logit)).sum();
                let right = f64::from(row[target]);
                let others = row.iter().map(|&logit| f64::from(logit)).sum::<f64>() - right;
                expected - share * right - (1.0 - share) * others / (row.len().max(2) - 1) as f64
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
    fn a_perfect_held_out_set_is_compared_at_the_bound_and_served_with_doubt() {
        let (logits, targets) = (vec![vec![1.0, 0.0], vec![0.0, 2.0]], [0, 1]);
        let likeliest = likeliest_temperature(&logits, &targets);
        assert!((likeliest - 0.05).abs() < 1e-6, "{likeliest}");
        // Of two right mails Platt makes 3/4: 3/4 - s(b) + 2 (3/4 - s(2 b)) = 0, with s the logistic function.
        let temperature = fit_temperature(&logits, &targets);
        assert!((temperature - 1.483_687_5).abs() < 1e-6, "{temperature}");
        // A hundred make a surer router, and still not a certain one.
        let hundred: Vec<Vec<f32>> = (0..100).map(|_| vec![3.0, 0.0, 0.0]).collect();
        let confidence = softmax(&hundred[0], fit_temperature(&hundred, &[0; 100]))[0];
        assert!((confidence - 101.0 / 102.0).abs() < 1e-9, "{confidence}");
    }

    #[test]
    fn where_a_mail_is_wrong_the_likeliest_temperature_is_served() {
        let (logits, targets) = example();
        let (served, likeliest) = (fit_temperature(&logits, &targets), likeliest_temperature(&logits, &targets));
        assert!((served - likeliest).abs() < 1e-15, "{served} {likeliest}");
        assert!((calibrated_loss(&logits, &targets) - 0.534_507_6).abs() < 1e-6);
    }

    #[test]
    fn calibration_error_of_the_worked_example() {
        let confidences = [0.95, 0.9, 0.62, 0.61, 0.4, 0.2];
        let correct = [true, true, false, true, false, true];
        let error = expected_calibration_error(&confidences, &correct, 15);
        assert!((error - 0.263_333_3).abs() < 1e-6, "{error}");
    }
}

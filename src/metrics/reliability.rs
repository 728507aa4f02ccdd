//! Whether a confidence of 80% is right 80% of the time: bins, their errors, and the Brier score.
//!
//! Rows are probabilities of all queues, one row a mail; targets are the right queues.

/// Mails of similar confidence.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ReliabilityBin {
    /// Confidences above this belong to the bin.
    pub above: f64,
    /// Confidences up to this belong to the bin.
    pub up_to: f64,
    /// Its mails.
    pub mails: usize,
    /// Their mean confidence; 0 where there are none.
    pub confidence: f64,
    /// Their share of right answers; 0 where there are none.
    pub accuracy: f64,
}

/// Equal-width bins over 0..=1, each closed on the right; empty ones are listed too.
#[must_use]
pub fn reliability_bins(confidences: &[f64], correct: &[bool], bins: usize) -> Vec<ReliabilityBin> {
    let bins = bins.max(1);
    let mut sums = vec![(0usize, 0.0f64, 0usize); bins];
    for (&confidence, &correct) in confidences.iter().zip(correct) {
        let (mails, sum, right) = &mut sums[((confidence * bins as f64).ceil() as usize).clamp(1, bins) - 1];
        *mails += 1;
        *sum += confidence;
        *right += usize::from(correct);
    }
    let bin = |(index, (mails, sum, right)): (usize, (usize, f64, usize))| ReliabilityBin {
        above: index as f64 / bins as f64,
        up_to: (index + 1) as f64 / bins as f64,
        mails,
        confidence: sum / mails.max(1) as f64,
        accuracy: right as f64 / mails.max(1) as f64,
    };
    sums.into_iter().enumerate().map(bin).collect()
}

/// Calibration error over bins of equal numbers of mails: crowded confidences are looked at more closely.
#[must_use]
pub fn adaptive_calibration_error(confidences: &[f64], correct: &[bool], bins: usize) -> f64 {
    let n = confidences.len().min(correct.len());
    let bins = bins.clamp(1, n.max(1));
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| confidences[a].total_cmp(&confidences[b]));
    let gap = |mails: &[usize]| {
        let sum: f64 = mails.iter().map(|&mail| confidences[mail]).sum();
        let right = mails.iter().filter(|&&mail| correct[mail]).count();
        (right as f64 - sum).abs()
    };
    (0..bins).map(|bin| gap(&order[bin * n / bins..(bin + 1) * n / bins])).sum::<f64>() / n.max(1) as f64
}

/// Calibration error of the probability of each queue, whichever wins; `None` for queues with fewer than `least` mails.
#[must_use]
pub fn class_wise_calibration_error(
    probabilities: &[Vec<f64>],
    targets: &[usize],
    bins: usize,
    least: usize,
) -> Vec<Option<f64>> {
    let n_queues = probabilities.first().map_or(0, Vec::len);
    let error_of = |queue: usize| {
        let of_queue: Vec<f64> = probabilities.iter().map(|row| row.get(queue).copied().unwrap_or(0.0)).collect();
        let is_queue: Vec<bool> = targets.iter().map(|&target| target == queue).collect();
        let mails = is_queue.iter().filter(|&&is_queue| is_queue).count();
        (mails >= least).then(|| super::expected_calibration_error(&of_queue, &is_queue, bins))
    };
    (0..n_queues).map(error_of).collect()
}

/// Mean squared distance between the probabilities and the truth, summed over queues: 0 is perfect, 2 the worst.
#[must_use]
pub fn brier_score(probabilities: &[Vec<f64>], targets: &[usize]) -> f64 {
    let of_mail = |(row, &target): (&Vec<f64>, &usize)| -> f64 {
        row.iter().enumerate().map(|(queue, p)| (p - f64::from(u8::from(queue == target))).powi(2)).sum()
    };
    probabilities.iter().zip(targets).map(of_mail).sum::<f64>() / probabilities.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::{expected_calibration_error, softmax};
    use super::*;

    const CONFIDENCES: [f64; 6] = [0.95, 0.9, 0.62, 0.61, 0.4, 0.2];
    const CORRECT: [bool; 6] = [true, true, false, true, false, true];

    fn example() -> (Vec<Vec<f64>>, [usize; 4]) {
        let logits = [[2.0, 1.0, 0.1], [0.5, 2.5, 1.0], [3.0, 0.0, 0.0], [1.0, 2.0, 0.0]];
        (logits.iter().map(|row| softmax(row, 1.0)).collect(), [0, 1, 0, 0])
    }

    #[test]
    fn brier_score_and_calibration_error_of_the_worked_example() {
        let (rows, targets) = example();
        assert!((brier_score(&rows, &targets) - 0.331_172_5).abs() < 1e-6);
        let confidences: Vec<f64> = rows.iter().map(|row| row.iter().copied().fold(0.0, f64::max)).collect();
        let error = expected_calibration_error(&confidences, &[true, true, true, false], 15);
        assert!((error - 0.169_668_6).abs() < 1e-6, "{error}");
    }

    #[test]
    fn the_bins_add_up_to_the_calibration_error() {
        let bins = reliability_bins(&CONFIDENCES, &CORRECT, 15);
        assert_eq!(bins.iter().map(|bin| bin.mails).sum::<usize>(), 6);
        let error: f64 =
            bins.iter().map(|bin| bin.mails as f64 * (bin.accuracy - bin.confidence).abs()).sum::<f64>() / 6.0;
        assert!((error - 0.263_333_3).abs() < 1e-6, "{error}");
    }

    #[test]
    fn a_bin_is_closed_on_the_right() {
        let bins = reliability_bins(&[0.5, 0.0, 1.0], &[true; 3], 2);
        assert_eq!((bins[0].mails, bins[1].mails), (2, 1));
    }

    #[test]
    fn adaptive_bins_hold_equally_many_mails() {
        // Pairs (0.2, 0.4), (0.61, 0.62), (0.9, 0.95) with one, one and two right.
        let expected = ((1.0 - 0.6f64).abs() + (1.0 - 1.23f64).abs() + (2.0 - 1.85f64).abs()) / 6.0;
        let error = adaptive_calibration_error(&CONFIDENCES, &CORRECT, 3);
        assert!((error - expected).abs() < 1e-12, "{error}");
        assert!(adaptive_calibration_error(&[], &[], 15).abs() < 1e-12);
    }

    #[test]
    fn queues_with_few_mails_have_no_error_of_their_own() {
        let (rows, targets) = example();
        let errors = class_wise_calibration_error(&rows, &targets, 15, 2);
        assert!(errors[0].is_some() && errors[1].is_none() && errors[2].is_none(), "{errors:?}");
    }
}

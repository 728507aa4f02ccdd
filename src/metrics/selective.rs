//! What is gained by answering only where the router is sure: error against coverage.
//!
//! Mails come by falling confidence; the risk at `k` mails is their share of wrong answers. Equal confidences cannot be
//! told apart by any threshold, so they stand or fall together: a block has the risk at its end.

/// One threshold and what it does.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct RiskCoverage {
    /// Mail at or above this confidence is answered.
    pub threshold: f64,
    /// Share of all mail that is answered.
    pub coverage: f64,
    /// Share of wrong answers among these.
    pub risk: f64,
}

/// Every threshold that changes something, the strictest first.
#[must_use]
pub fn risk_coverage(confidences: &[f64], correct: &[bool]) -> Vec<RiskCoverage> {
    let n = confidences.len().min(correct.len());
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| confidences[b].total_cmp(&confidences[a]));
    let (mut answered, mut wrong) = (0, 0);
    order
        .chunk_by(|&a, &b| confidences[a] == confidences[b])
        .map(|block| {
            answered += block.len();
            wrong += block.iter().filter(|&&mail| !correct[mail]).count();
            RiskCoverage {
                threshold: confidences[block[0]],
                coverage: answered as f64 / n as f64,
                risk: wrong as f64 / answered as f64,
            }
        })
        .collect()
}

/// Area under the risk-coverage curve: the mean of `risk(k)` over all `k`. 0 for no mail.
#[must_use]
pub fn aurc(confidences: &[f64], correct: &[bool]) -> f64 {
    let mut before = 0.0;
    let steps = risk_coverage(confidences, correct).into_iter().map(|point| {
        let width = point.coverage - before;
        before = point.coverage;
        width * point.risk
    });
    steps.sum()
}

/// [`aurc`] above that of the perfect order, in which every right answer comes before every wrong one.
#[must_use]
pub fn excess_aurc(confidences: &[f64], correct: &[bool]) -> f64 {
    let n = confidences.len().min(correct.len());
    let right = correct.iter().take(n).filter(|&&correct| correct).count();
    let best: f64 = (right + 1..=n).map(|k| (k - right) as f64 / k as f64).sum::<f64>() / n.max(1) as f64;
    aurc(confidences, correct) - best
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIDENCES: [f64; 4] = [0.9, 0.8, 0.7, 0.6];
    const CORRECT: [bool; 4] = [true, true, false, true];

    #[test]
    fn areas_of_the_worked_example() {
        let risks: Vec<f64> = risk_coverage(&CONFIDENCES, &CORRECT).iter().map(|point| point.risk).collect();
        for (risk, expected) in risks.iter().zip([0.0, 0.0, 0.333_333_3, 0.25]) {
            assert!((risk - expected).abs() < 1e-6, "{risks:?}");
        }
        assert!((aurc(&CONFIDENCES, &CORRECT) - 0.145_833_3).abs() < 1e-6);
        assert!((excess_aurc(&CONFIDENCES, &CORRECT) - 0.083_333_3).abs() < 1e-6);
        assert!((aurc(&CONFIDENCES, &CORRECT) - excess_aurc(&CONFIDENCES, &CORRECT) - 0.0625).abs() < 1e-6);
    }

    #[test]
    fn equal_confidences_are_one_point_in_any_order() {
        let points = risk_coverage(&[0.9, 0.5, 0.5], &[true, false, true]);
        assert_eq!(points.len(), 2);
        assert!((points[1].risk - 1.0 / 3.0).abs() < 1e-12 && (points[1].coverage - 1.0).abs() < 1e-12);
        let one = aurc(&[0.9, 0.5, 0.5], &[true, false, true]);
        assert!((one - aurc(&[0.9, 0.5, 0.5], &[true, true, false])).abs() < 1e-12);
        // One mail at risk 0, two at 1/3.
        assert!((one - 2.0 / 9.0).abs() < 1e-12, "{one}");
    }

    #[test]
    fn no_mail_has_no_area() {
        assert!(aurc(&[], &[]).abs() < 1e-12 && excess_aurc(&[], &[]).abs() < 1e-12);
        assert!(risk_coverage(&[], &[]).is_empty());
    }
}

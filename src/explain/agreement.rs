//! How far two explanations of one mail agree, and how far two predictions are apart.

use std::cmp::Ordering;

/// Kendall's tau-b over all pairs: 1 for the same order, -1 for the reverse, ties counted out on both sides. `None` where one
/// side does not order anything. Both lists have one length.
///
/// ```
/// use postroom::explain::kendall_tau_b;
///
/// let tau = kendall_tau_b(&[1., 2., 3., 4.], &[1., 3., 2., 4.]).unwrap();
/// assert!((tau - 2.0 / 3.0).abs() < 1e-12);
/// ```
#[must_use]
pub fn kendall_tau_b(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mut agree, mut differ, mut only_a, mut only_b) = (0u64, 0u64, 0u64, 0u64);
    for (place, (first_a, first_b)) in a.iter().zip(b).enumerate() {
        for (other_a, other_b) in a.iter().zip(b).skip(place + 1) {
            // Not `total_cmp`, for which 0 and -0 differ; scores are finite.
            let order = |x: &f64, y: &f64| x.partial_cmp(y).unwrap_or(Ordering::Equal);
            let (in_a, in_b) = (order(first_a, other_a), order(first_b, other_b));
            match (in_a.is_eq(), in_b.is_eq()) {
                (true, true) => {}
                (true, false) => only_b += 1,
                (false, true) => only_a += 1,
                _ if in_a == in_b => agree += 1,
                _ => differ += 1,
            }
        }
    }
    let pairs = ((agree + differ + only_a) as f64 * (agree + differ + only_b) as f64).sqrt();
    (pairs > 0.0).then(|| (agree as f64 - differ as f64) / pairs)
}

/// The share that the ten highest of both lists have in common; of all where there are fewer. 0 for empty lists.
#[must_use]
pub fn top10_overlap(a: &[f64], b: &[f64]) -> f64 {
    let top = |scores: &[f64]| {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&x, &y| scores[y].total_cmp(&scores[x]));
        order.truncate(10);
        order
    };
    let (top_a, top_b) = (top(a), top(b));
    let common = top_a.iter().filter(|place| top_b.contains(place)).count();
    common as f64 / top_a.len().max(1) as f64
}

/// Half the sum of the absolute differences of two distributions: 0 for the same, 1 for disjoint ones.
#[must_use]
pub fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_on_one_side_count_as_the_definition_says() {
        let tau = kendall_tau_b(&[1., 2., 2., 3.], &[1., 2., 3., 4.]).unwrap();
        assert!((tau - 0.912_870_929_175_276_9).abs() < 1e-12, "{tau}");
    }

    #[test]
    fn reversed_orders_give_minus_one_and_constants_nothing() {
        assert_eq!(kendall_tau_b(&[1., 2., 3.], &[3., 2., 1.]), Some(-1.0));
        assert_eq!(kendall_tau_b(&[1., 1., 1.], &[3., 2., 1.]), None);
        assert_eq!(kendall_tau_b(&[], &[]), None);
    }

    #[test]
    fn the_overlap_is_of_the_ten_highest() {
        let a: Vec<f64> = (0..20).map(f64::from).collect();
        let b: Vec<f64> = (0..20).map(|place| if place < 5 { 100.0 } else { f64::from(place) }).collect();
        assert!((top10_overlap(&a, &b) - 0.5).abs() < 1e-12);
        assert_eq!(top10_overlap(&[], &[]), 0.0);
    }

    #[test]
    fn total_variation_is_half_the_l1_distance() {
        assert!((total_variation(&[0.5, 0.5, 0.0], &[0.25, 0.25, 0.5]) - 0.5).abs() < 1e-12);
    }
}

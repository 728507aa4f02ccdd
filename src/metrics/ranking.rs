//! How well a score separates two kinds of mail, without a threshold.

/// Area under the ROC curve: the chance that a positive scores above a negative, a tie counting half (Mann and Whitney).
/// `None` where one kind is missing.
#[must_use]
pub fn auroc(scores: &[f64], positive: &[bool]) -> Option<f64> {
    let positives = positive.iter().filter(|&&positive| positive).count();
    let negatives = positive.len() - positives;
    if positives == 0 || negatives == 0 {
        return None;
    }
    // Pairs won by positives; blocks come from the lowest score up.
    let (mut below, mut won) = (0usize, 0.0);
    for Block { positives, negatives } in blocks(scores, positive).into_iter().rev() {
        won += positives as f64 * (below as f64 + negatives as f64 / 2.0);
        below += negatives;
    }
    Some(won / (positives as f64 * negatives as f64))
}

/// Area under the precision-recall curve as average precision: each threshold's precision weighted by the recall it
/// adds, equal scores being one threshold. `None` where there is no positive.
#[must_use]
pub fn average_precision(scores: &[f64], positive: &[bool]) -> Option<f64> {
    let all = positive.iter().filter(|&&positive| positive).count();
    if all == 0 {
        return None;
    }
    let (mut taken, mut hits, mut area) = (0, 0, 0.0);
    for Block { positives, negatives } in blocks(scores, positive) {
        taken += positives + negatives;
        hits += positives;
        area += positives as f64 / all as f64 * (hits as f64 / taken as f64);
    }
    Some(area)
}

/// Mails of one score.
struct Block {
    positives: usize,
    negatives: usize,
}

/// Blocks of equal scores, the highest first.
fn blocks(scores: &[f64], positive: &[bool]) -> Vec<Block> {
    let mut order: Vec<usize> = (0..scores.len().min(positive.len())).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order
        .chunk_by(|&a, &b| scores[a] == scores[b])
        .map(|block| {
            let positives = block.iter().filter(|&&mail| positive[mail]).count();
            Block { positives, negatives: block.len() - positives }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_of_an_example_worked_by_hand() {
        let scores = [0.1, 0.4, 0.35, 0.8];
        let positive = [false, false, true, true];
        assert!((auroc(&scores, &positive).unwrap() - 0.75).abs() < 1e-12);
        // Precision 1 at recall 1/2, then 2/3 at recall 1.
        assert!((average_precision(&scores, &positive).unwrap() - (0.5 + 0.5 * 2.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn a_score_that_says_nothing_is_worth_a_half_and_the_share_of_positives() {
        let scores = [0.5; 8];
        let positive = [true, false, false, false, true, false, false, false];
        assert!((auroc(&scores, &positive).unwrap() - 0.5).abs() < 1e-12);
        assert!((average_precision(&scores, &positive).unwrap() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn ties_do_not_depend_on_the_order_of_the_mails() {
        let forward = auroc(&[0.9, 0.5, 0.5, 0.1], &[true, true, false, false]).unwrap();
        let backward = auroc(&[0.1, 0.5, 0.5, 0.9], &[false, false, true, true]).unwrap();
        assert!((forward - 0.875).abs() < 1e-12 && (backward - forward).abs() < 1e-12);
    }

    #[test]
    fn one_kind_alone_cannot_be_separated() {
        assert_eq!(auroc(&[0.1, 0.2], &[true, true]), None);
        assert_eq!(average_precision(&[0.1], &[false]), None);
        assert_eq!(auroc(&[], &[]), None);
    }
}

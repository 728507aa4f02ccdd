//! Bounds of a rate from counts (Clopper and Pearson 1934): exact, whatever the number of mails.

/// Upper bound of an error rate at confidence `1 - delta` after `errors` in `n`.
///
/// It is the rate at which so few errors would have probability `delta`: the root of the binomial distribution function,
/// which is the `1 - delta` quantile of `Beta(errors + 1, n - errors)`. 1 where nothing was seen.
#[must_use]
pub fn clopper_pearson_upper(errors: usize, n: usize, delta: f64) -> f64 {
    if n == 0 || errors >= n {
        return 1.0;
    }
    let (mut low, mut high) = (errors as f64 / n as f64, 1.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if binomial_at_most(errors, n, middle) > delta {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Lower bound of a rate at confidence `1 - delta` after `hits` in `n`: the upper bound of the misses, mirrored.
#[must_use]
pub fn clopper_pearson_lower(hits: usize, n: usize, delta: f64) -> f64 {
    1.0 - clopper_pearson_upper(n.saturating_sub(hits), n, delta)
}

/// Two-sided interval of a rate at confidence `1 - delta`: half of `delta` on each side.
#[must_use]
pub fn clopper_pearson_interval(hits: usize, n: usize, delta: f64) -> (f64, f64) {
    (clopper_pearson_lower(hits, n, delta / 2.0), clopper_pearson_upper(hits, n, delta / 2.0))
}

/// `P(X <= k)` for `X ~ Binomial(n, p)`, summed in logarithms.
fn binomial_at_most(k: usize, n: usize, p: f64) -> f64 {
    let (log_p, log_q) = (p.ln(), (-p).ln_1p());
    let mut log_choose = 0.0;
    let mut sum = 0.0;
    for i in 0..=k {
        sum += (log_choose + i as f64 * log_p + (n - i) as f64 * log_q).exp();
        log_choose += ((n - i) as f64).ln() - ((i + 1) as f64).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_the_worked_examples() {
        for (errors, n, expected) in [
            (0, 59, 0.049_507_6),
            (0, 149, 0.019_904_8),
            (1, 93, 0.049_994_0),
            (2, 200, 0.031_142_6),
            (5, 500, 0.020_910_3),
        ] {
            let bound = clopper_pearson_upper(errors, n, 0.05);
            assert!((bound - expected).abs() < 1e-6, "{errors}/{n}: {bound}");
        }
        assert!((clopper_pearson_upper(3, 3, 0.05) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_lower_bound_mirrors_the_upper_one() {
        assert!((clopper_pearson_lower(59, 59, 0.05) - (1.0 - 0.049_507_6)).abs() < 1e-6);
        assert!(clopper_pearson_lower(0, 10, 0.05).abs() < 1e-12);
        // Of one mail that was right: p with 1 - p = 0.95 unseen, so p = 0.05.
        assert!((clopper_pearson_lower(1, 1, 0.05) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn an_interval_holds_the_rate_and_nothing_seen_says_nothing() {
        let (low, high) = clopper_pearson_interval(8, 10, 0.05);
        assert!((low - 0.443_904_5).abs() < 1e-6 && (high - 0.974_789_3).abs() < 1e-6, "{low} {high}");
        assert_eq!(clopper_pearson_interval(0, 0, 0.05), (0.0, 1.0));
        // More hits than mails are a caller's mistake, not a panic.
        assert!((clopper_pearson_interval(5, 3, 0.05).1 - 1.0).abs() < 1e-12);
    }
}

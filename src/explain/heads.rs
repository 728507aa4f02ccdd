//! What one attention head does in a mail: how spread its rows are, and where their weight goes.

use serde::Serialize;

/// Figures of one head, means over its rows. Masses are shares of 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct HeadFigures {
    /// Entropy of the rows in nats, `-sum a ln a`; `ln T` for a row that spreads evenly.
    pub entropy: f64,
    /// Entropy of the `[CLS]` row.
    pub cls_entropy: f64,
    /// Weight on `[CLS]`.
    pub cls: f64,
    /// Weight on `[SEP]`.
    pub sep: f64,
    /// Weight of a token on itself.
    pub itself: f64,
    /// Weight on the token before.
    pub previous: f64,
    /// Weight on the token behind.
    pub next: f64,
    /// Weight on punctuation.
    pub punctuation: f64,
}

impl HeadFigures {
    /// Weight on `[CLS]` and `[SEP]`: what a head with nothing to do looks at.
    #[must_use]
    pub fn sink(&self) -> f64 {
        self.cls + self.sep
    }
}

/// `-sum a ln a` in nats.
///
/// ```
/// use postroom::explain::entropy;
///
/// assert!((entropy(&[0.25; 4]) - 4f64.ln()).abs() < 1e-9);
/// assert_eq!(entropy(&[0.0, 1.0]), 0.0);
/// ```
#[must_use]
pub fn entropy(row: &[f32]) -> f64 {
    let term = |&weight: &f32| if weight > 0.0 { f64::from(weight) * f64::from(weight).ln() } else { 0.0 };
    // Adding 0 makes a negative zero a plain one.
    -row.iter().map(term).sum::<f64>() + 0.0
}

/// The figures of one head in one window: its map `[T, T]`, `[CLS]` first and `[SEP]` last, and for each token whether it is
/// punctuation.
#[must_use]
pub fn head_figures(map: &[f32], punctuation: &[bool]) -> HeadFigures {
    let tokens = punctuation.len();
    let mut sum = HeadFigures::default();
    for (query, row) in map.chunks_exact(tokens.max(1)).enumerate() {
        let at = |key: Option<usize>| key.and_then(|key| row.get(key)).map_or(0.0, |&weight| f64::from(weight));
        let spread = entropy(row);
        sum.entropy += spread;
        if query == 0 {
            sum.cls_entropy = spread;
        }
        sum.cls += at(Some(0));
        sum.sep += at(tokens.checked_sub(1));
        sum.itself += at(Some(query));
        sum.previous += at(query.checked_sub(1));
        sum.next += at(Some(query + 1));
        let marks = row.iter().zip(punctuation).filter(|(_, is)| **is);
        sum.punctuation += marks.map(|(&weight, _)| f64::from(weight)).sum::<f64>();
    }
    let rows = tokens.max(1) as f64;
    sum.scaled(1.0 / rows, 1.0)
}

impl HeadFigures {
    fn scaled(self, by: f64, cls_entropy_by: f64) -> Self {
        Self {
            entropy: self.entropy * by,
            cls_entropy: self.cls_entropy * cls_entropy_by,
            cls: self.cls * by,
            sep: self.sep * by,
            itself: self.itself * by,
            previous: self.previous * by,
            next: self.next * by,
            punctuation: self.punctuation * by,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            entropy: self.entropy + other.entropy,
            cls_entropy: self.cls_entropy + other.cls_entropy,
            cls: self.cls + other.cls,
            sep: self.sep + other.sep,
            itself: self.itself + other.itself,
            previous: self.previous + other.previous,
            next: self.next + other.next,
            punctuation: self.punctuation + other.punctuation,
        }
    }

    /// One head's figures over all windows of a mail, from its figures in each and the tokens of each: means over all rows.
    #[must_use]
    pub fn over_windows(windows: &[(usize, Self)]) -> Self {
        let rows: usize = windows.iter().map(|(tokens, _)| tokens).sum();
        let share = |tokens: usize| tokens as f64 / rows.max(1) as f64;
        let each = 1.0 / windows.len().max(1) as f64;
        windows.iter().fold(Self::default(), |sum, (tokens, figures)| sum.plus(figures.scaled(share(*tokens), each)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masses_are_means_over_the_rows_of_all_windows() {
        let first: [f32; 9] = [0.5, 0.25, 0.25, 0.0, 1.0, 0.0, 0.2, 0.3, 0.5];
        let second: [f32; 4] = [0.0, 1.0, 1.0, 0.0];
        let windows = [(3, head_figures(&first, &[false, true, false])), (2, head_figures(&second, &[false, false]))];
        let figures = HeadFigures::over_windows(&windows);
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        close(figures.cls, (0.5 + 0.0 + 0.2 + 0.0 + 1.0) / 5.0);
        close(figures.sep, (0.25 + 0.0 + 0.5 + 1.0 + 0.0) / 5.0);
        close(figures.itself, (0.5 + 1.0 + 0.5) / 5.0);
        close(figures.previous, (0.0 + 0.3 + 1.0) / 5.0);
        close(figures.next, (0.25 + 0.0 + 1.0) / 5.0);
        close(figures.punctuation, (0.25 + 1.0 + 0.3) / 5.0);
        close(figures.cls_entropy, entropy(&first[..3]) / 2.0);
        close(figures.sink(), figures.cls + figures.sep);
    }
}

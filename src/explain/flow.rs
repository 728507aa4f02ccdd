//! What reaches the answer through all layers: attention rollout, and relevance for one queue.
//!
//! Matrices are `[T, T]`, row-major, rows are queries; one per layer, the lowest first. A row form walks from a start vector down
//! and costs `O(L T^2)` instead of `O(L T^3)`; both give the same (tests).

/// The identity.
fn identity(tokens: usize) -> Vec<f64> {
    (0..tokens * tokens).map(|cell| f64::from(u8::from(cell % (tokens + 1) == 0))).collect()
}

/// `a b`.
fn product(a: &[f64], b: &[f64], tokens: usize) -> Vec<f64> {
    let mut out = vec![0.0; tokens * tokens];
    for (row, out) in a.chunks_exact(tokens.max(1)).zip(out.chunks_exact_mut(tokens.max(1))) {
        for (&weight, other) in row.iter().zip(b.chunks_exact(tokens)) {
            if weight != 0.0 {
                out.iter_mut().zip(other).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }
    out
}

/// `r a`, with `r` a row.
fn carry(row: &[f64], matrix: &[f32]) -> Vec<f64> {
    let mut out = vec![0.0; row.len()];
    for (&weight, line) in row.iter().zip(matrix.chunks_exact(row.len().max(1))) {
        if weight != 0.0 {
            out.iter_mut().zip(line).for_each(|(sum, &value)| *sum += weight * f64::from(value));
        }
    }
    out
}

/// Attention rollout (Abnar and Zuidema 2020): the product of `1/2 A + 1/2 I` over the layers, the top one leftmost. `maps` are the
/// means over the heads. Rows sum to 1; it knows no queue.
///
/// ```
/// use postroom::explain::rollout;
///
/// let maps = [vec![0.5, 0.5, 0.2, 0.8], vec![0.9, 0.1, 0.4, 0.6]];
/// let reached = rollout(&maps, 2);
/// assert!((reached[0] - 0.7175).abs() < 1e-6 && (reached[2] - 0.23).abs() < 1e-6);
/// ```
#[must_use]
pub fn rollout(maps: &[Vec<f32>], tokens: usize) -> Vec<f64> {
    maps.iter().fold(identity(tokens), |below, map| {
        let mut half: Vec<f64> = map.iter().map(|&weight| f64::from(weight) / 2.0).collect();
        (0..tokens).for_each(|token| half[token * (tokens + 1)] += 0.5);
        product(&half, &below, tokens)
    })
}

/// What of each token reaches a mixture `start` of the top layer's tokens, by rollout.
#[must_use]
pub fn rollout_row(maps: &[Vec<f32>], start: &[f64]) -> Vec<f64> {
    maps.iter().rev().fold(start.to_vec(), |row, map| {
        carry(&row, map).iter().zip(&row).map(|(carried, kept)| (carried + kept) / 2.0).collect()
    })
}

/// What of each token reaches a mixture `start` through one map.
#[must_use]
pub fn through(map: &[f32], start: &[f64]) -> Vec<f64> {
    carry(start, map)
}

/// The mean over the heads of the positive part of weights times gradients, `E_h[(G * A)^+]`: one layer of relevance. Both are
/// `[H, T, T]`.
#[must_use]
pub fn positive_part(weights: &[f32], gradients: &[f32], heads: usize) -> Vec<f32> {
    let cells = weights.len() / heads.max(1);
    let mut mean = vec![0.0; cells];
    for (weights, gradients) in weights.chunks_exact(cells.max(1)).zip(gradients.chunks_exact(cells.max(1))) {
        for ((sum, weight), gradient) in mean.iter_mut().zip(weights).zip(gradients) {
            *sum += (weight * gradient).max(0.0) / heads as f32;
        }
    }
    mean
}

/// Relevance (Chefer, Gur and Wolf 2021, for encoders): `R = I`, then `R += layer R` from the lowest layer up, with the layers of
/// [`positive_part`]. It has no sign: it shows what speaks for the queue whose gradients were taken.
///
/// ```
/// use postroom::explain::{positive_part, relevance};
///
/// let layers = [
///     positive_part(&[0.5, 0.5, 0.2, 0.8], &[1., 2., -1., 1.], 1),
///     positive_part(&[0.9, 0.1, 0.4, 0.6], &[1., 3., 5., -2.], 1),
/// ];
/// let relevance = relevance(&layers, 2);
/// for (found, by_hand) in relevance.iter().zip([2.85, 2.44, 3.0, 3.8]) {
///     assert!((found - by_hand).abs() < 1e-6);
/// }
/// ```
#[must_use]
pub fn relevance(layers: &[Vec<f32>], tokens: usize) -> Vec<f64> {
    layers.iter().fold(identity(tokens), |below, layer| {
        let layer: Vec<f64> = layer.iter().map(|&value| f64::from(value)).collect();
        let added = product(&layer, &below, tokens);
        below.iter().zip(added).map(|(kept, added)| kept + added).collect()
    })
}

/// The relevance of each token for a mixture `start` of the top layer's tokens.
#[must_use]
pub fn relevance_row(layers: &[Vec<f32>], start: &[f64]) -> Vec<f64> {
    layers.iter().rev().fold(start.to_vec(), |row, layer| {
        carry(&row, layer).iter().zip(&row).map(|(carried, kept)| carried + kept).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn close(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
    }

    #[test]
    fn identity_maps_change_nothing() {
        let maps = vec![vec![1.0, 0.0, 0.0, 1.0]; 3];
        close(&rollout(&maps, 2), &[1.0, 0.0, 0.0, 1.0]);
        close(&rollout_row(&maps, &[0.3, 0.7]), &[0.3, 0.7]);
    }

    #[test]
    fn uniform_maps_spread_all_but_what_the_residuals_keep() {
        // 2^-L I + (1 - 2^-L) / T
        let maps = vec![vec![0.25f32; 16]; 3];
        let reached = rollout(&maps, 4);
        assert!((reached[0] - (0.125 + 0.875 / 4.0)).abs() < 1e-9 && (reached[1] - 0.875 / 4.0).abs() < 1e-9);
    }

    #[test]
    fn gradients_of_zero_or_below_leave_the_identity() {
        let weights = vec![0.5f32; 8];
        for gradient in [0.0f32, -2.0] {
            let layers = vec![positive_part(&weights, &[gradient; 8], 2); 2];
            close(&relevance(&layers, 2), &[1.0, 0.0, 0.0, 1.0]);
        }
    }

    #[test]
    fn the_row_form_is_the_row_of_the_full_form() {
        let mut random = SplitMix64::seeded(1);
        let tokens = 7;
        let mut maps = Vec::new();
        for _ in 0..4 {
            let mut map: Vec<f32> = (0..tokens * tokens).map(|_| random.uniform() as f32).collect();
            map.chunks_exact_mut(tokens).for_each(|row| {
                let sum: f32 = row.iter().sum();
                row.iter_mut().for_each(|weight| *weight /= sum);
            });
            maps.push(map);
        }
        for (row_form, full) in [
            (rollout_row as fn(&[Vec<f32>], &[f64]) -> Vec<f64>, rollout(&maps, tokens)),
            (relevance_row, relevance(&maps, tokens)),
        ] {
            for row in 0..tokens {
                let start: Vec<f64> = (0..tokens).map(|token| f64::from(u8::from(token == row))).collect();
                close(&row_form(&maps, &start), &full[row * tokens..(row + 1) * tokens]);
            }
        }
        let rows = rollout(&maps, tokens);
        assert!(rows.chunks(tokens).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-6));
        let relevance = relevance(&maps, tokens);
        assert!(relevance.iter().all(|value| *value >= 0.0) && (0..tokens).all(|t| relevance[t * (tokens + 1)] >= 1.0));
    }
}

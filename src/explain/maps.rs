//! One window's attention as a block of four axes, and what can be done to it: choose, reduce, merge words, drop specials.
//!
//! Always four axes `[layer, head, query, key]`, size 1 where reduced, so that readers never branch.

use serde::{Deserialize, Serialize};

use super::units::Unit;
use crate::model::WindowMaps;

/// What is done over the chosen heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reduce {
    /// Each head by itself.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// For each cell the largest; rows no longer sum to 1.
    Max,
    /// Attention rollout over all layers and heads.
    Rollout,
    /// Relevance for a queue over all layers and heads; it has no sign, and rows do not sum to 1.
    Relevance,
}

impl Reduce {
    /// Whether layers are put together as well as heads.
    #[must_use]
    pub fn over_layers(self) -> bool {
        matches!(self, Self::Rollout | Self::Relevance)
    }
}

/// What happens to the columns of `[CLS]` and `[SEP]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Special {
    /// Shown.
    #[default]
    Keep,
    /// Taken out; what remains of a row is scaled to sum to 1, and the removed mass is told.
    Drop,
}

/// Why a map cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The network did not return what was asked of it.
    #[error("the network returned no map of layer {layer}")]
    Missing {
        /// The layer.
        layer: usize,
    },
}

/// Attention weights of one window, `[layer, head, query, key]`, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionMap {
    /// Sizes of the four axes.
    pub shape: [usize; 4],
    /// The weights.
    pub data: Vec<f32>,
}

impl AttentionMap {
    /// The chosen layers and heads of a window, piece by piece: `[layers, heads, T, T]`. Millions of weights, so nothing is copied
    /// where all that was kept is chosen.
    ///
    /// # Errors
    /// [`MapError`] where a layer was not kept.
    pub fn of_window(maps: WindowMaps, layers: &[usize], heads: &[usize]) -> Result<Self, MapError> {
        let cells = maps.tokens * maps.tokens;
        let shape = [layers.len(), heads.len(), maps.tokens, maps.tokens];
        let kept_heads = maps.weights.len() / (maps.layers.len() * cells).max(1);
        if maps.layers == layers && heads.iter().copied().eq(0..kept_heads) {
            return Ok(Self { shape, data: maps.weights });
        }
        let mut data = Vec::with_capacity(layers.len() * heads.len() * cells);
        for &layer in layers {
            let map = maps.layer(layer).ok_or(MapError::Missing { layer })?;
            for &head in heads {
                data.extend_from_slice(&map[head * cells..(head + 1) * cells]);
            }
        }
        Ok(Self { shape, data })
    }

    /// Puts the heads of each layer together.
    #[must_use]
    pub fn reduce_heads(self, reduce: Reduce) -> Self {
        let [layers, heads, queries, keys] = self.shape;
        let cells = queries * keys;
        if reduce == Reduce::None || heads == 0 {
            return self;
        }
        let mut data = Vec::with_capacity(layers * cells);
        for layer in self.data.chunks_exact(heads * cells) {
            data.extend((0..cells).map(|cell| {
                let of_heads = layer.iter().skip(cell).step_by(cells);
                match reduce {
                    Reduce::Max => of_heads.fold(0.0, |largest: f32, &weight| largest.max(weight)),
                    _ => of_heads.sum::<f32>() / heads as f32,
                }
            }));
        }
        Self { shape: [layers, 1, queries, keys], data }
    }

    /// Merges pieces into units (Clark et al. 2019): the sum over the pieces of a key, the mean over those of a query.
    /// Rows keep their sum. Only the rows of `rows` (numbers of units) are kept.
    #[must_use]
    pub fn merge(self, units: &[Unit], rows: &[usize]) -> Self {
        let [layers, heads, queries, keys] = self.shape;
        let unmerged = units.iter().map(|unit| unit.pieces.clone()).eq((0..keys).map(|key| key..key + 1));
        if unmerged && rows.iter().copied().eq(0..queries) {
            return self;
        }
        let mut data = Vec::with_capacity(layers * heads * rows.len() * units.len());
        let mut mean = vec![0.0; keys];
        for map in self.data.chunks_exact((queries * keys).max(1)) {
            let weights = |query: usize| &map[query * keys..(query + 1) * keys];
            for &row in rows {
                let pieces = units[row].pieces.clone();
                mean.copy_from_slice(weights(pieces.start));
                for query in pieces.clone().skip(1) {
                    mean.iter_mut().zip(weights(query)).for_each(|(sum, weight)| *sum += weight);
                }
                if pieces.len() > 1 {
                    mean.iter_mut().for_each(|sum| *sum /= pieces.len() as f32);
                }
                if unmerged {
                    data.extend_from_slice(&mean);
                } else {
                    data.extend(units.iter().map(|unit| mean[unit.pieces.clone()].iter().sum::<f32>()));
                }
            }
        }
        Self { shape: [layers, heads, rows.len(), units.len()], data }
    }

    /// Sum of each row, `[layer, head, query]`.
    #[must_use]
    pub fn row_sums(&self) -> Vec<f32> {
        self.rows().map(sum).collect()
    }

    /// What each row puts on the columns where `special` is true, `[layer, head, query]`.
    #[must_use]
    pub fn mass_on(&self, special: &[bool]) -> Vec<f32> {
        let keys: Vec<usize> = (0..special.len()).filter(|&key| special[key]).collect();
        self.rows().map(|row| keys.iter().map(|&key| row[key]).sum()).collect()
    }

    /// Takes out the columns where `special` is true and scales each row to sum to 1 again. A row that has (almost)
    /// nothing else, more than 0.99 on them, is a sink: it becomes zero instead of being stretched.
    #[must_use]
    pub fn without(&self, special: &[bool]) -> Self {
        let [layers, heads, queries, keys] = self.shape;
        let kept = (0..keys).filter(|&key| !special[key]).count();
        let mut data = Vec::with_capacity(layers * heads * queries * kept);
        for row in self.rows() {
            let ordinary = || row.iter().zip(special).filter(|(_, special)| !**special).map(|(&weight, _)| weight);
            let rest: f32 = ordinary().sum();
            let scale = if rest < 0.01 { 0.0 } else { 1.0 / rest };
            data.extend(ordinary().map(|weight| weight * scale));
        }
        Self { shape: [layers, heads, queries, kept], data }
    }

    /// Takes out the columns where `special` is true and leaves the others as they are: for maps whose rows sum to nothing in
    /// particular.
    #[must_use]
    pub fn cut(&self, special: &[bool]) -> Self {
        let [layers, heads, queries, keys] = self.shape;
        let kept = (0..keys).filter(|&key| !special[key]).count();
        let ordinary = |row: &[f32]| -> Vec<f32> {
            row.iter().zip(special).filter(|(_, special)| !**special).map(|(&weight, _)| weight).collect()
        };
        Self { shape: [layers, heads, queries, kept], data: self.rows().flat_map(ordinary).collect() }
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.data.chunks_exact(self.shape[3].max(1))
    }
}

/// The sum of a row, in eight sums side by side: one after the other, each addition would wait for the last.
fn sum(row: &[f32]) -> f32 {
    let (eights, rest) = row.as_chunks::<8>();
    let mut sums = [0.0f32; 8];
    for eight in eights {
        sums.iter_mut().zip(eight).for_each(|(sum, weight)| *sum += weight);
    }
    sums.iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(pieces: std::ops::Range<usize>) -> Unit {
        Unit { pieces, place: None, unknown: false }
    }

    /// Two heads of one layer over three pieces.
    fn map() -> AttentionMap {
        AttentionMap {
            shape: [1, 2, 3, 3],
            data: vec![
                0.5, 0.25, 0.25, 0.0, 1.0, 0.0, 0.2, 0.3, 0.5, //
                0.1, 0.1, 0.8, 0.6, 0.2, 0.2, 0.4, 0.4, 0.2,
            ],
        }
    }

    fn close(a: &[f32], b: &[f32]) {
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
    }

    #[test]
    fn the_mean_over_heads_keeps_rows_stochastic() {
        let mean = map().reduce_heads(Reduce::Mean);
        assert_eq!(mean.shape, [1, 1, 3, 3]);
        close(&mean.data[..3], &[0.3, 0.175, 0.525]);
        close(&mean.row_sums(), &[1.0; 3]);
    }

    #[test]
    fn the_maximum_over_heads_is_cell_by_cell() {
        close(&map().reduce_heads(Reduce::Max).data[..3], &[0.5, 0.25, 0.8]);
    }

    #[test]
    fn what_is_chosen_of_a_window_is_what_was_kept() {
        let weights: Vec<f32> = (0..16).map(|number| number as f32).collect();
        // Two layers of two heads over two pieces; the later layer was kept first.
        let kept = || WindowMaps { tokens: 2, layers: vec![4, 1], weights: weights.clone() };
        let chosen = |layers: &[usize], heads: &[usize]| AttentionMap::of_window(kept(), layers, heads);
        assert_eq!(chosen(&[4, 1], &[0, 1]).unwrap().data, weights);
        assert_eq!(chosen(&[1, 4], &[0, 1]).unwrap().data, [&weights[8..], &weights[..8]].concat());
        assert_eq!(chosen(&[4, 1], &[1]).unwrap().data, [&weights[4..8], &weights[12..]].concat());
        assert_eq!(chosen(&[4, 1], &[1]).unwrap().shape, [2, 1, 2, 2]);
        assert!(matches!(chosen(&[0], &[0]), Err(MapError::Missing { layer: 0 })));
    }

    #[test]
    fn words_sum_their_keys_and_average_their_queries() {
        let merged = map().merge(&[unit(0..1), unit(1..3)], &[0, 1]);
        assert_eq!(merged.shape, [1, 2, 2, 2]);
        close(&merged.data[..4], &[0.5, 0.5, 0.1, 0.9]);
        close(&merged.row_sums(), &[1.0; 4]);
    }

    #[test]
    fn single_pieces_are_not_merged_and_chosen_rows_stay() {
        let merged = map().merge(&[unit(0..1), unit(1..2), unit(2..3)], &[2]);
        assert_eq!((merged.shape, merged.data), ([1, 2, 1, 3], vec![0.2, 0.3, 0.5, 0.4, 0.4, 0.2]));
    }

    #[test]
    fn long_rows_are_summed_whole() {
        let row: Vec<f32> = (1..=19).map(|number| number as f32).collect();
        assert_eq!((sum(&row), sum(&row[..8]), sum(&row[..3]), sum(&[])), (190.0, 36.0, 6.0, 0.0));
    }

    #[test]
    fn dropping_specials_scales_rows_and_leaves_sinks_alone() {
        let special = [false, true, false];
        close(&map().mass_on(&special)[..3], &[0.25, 1.0, 0.3]);
        let dropped = map().without(&special);
        assert_eq!(dropped.shape, [1, 2, 3, 2]);
        close(&dropped.data[..4], &[2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
    }
}

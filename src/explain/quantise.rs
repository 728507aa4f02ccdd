//! Weights in one or two bytes.
//!
//! One byte on a fixed scale of 1/255 would erase rows that spread widely: at 512 tokens every weight of an even row rounds to 0.
//! So each row has its own scale, its maximum, and square roots are stored, which leaves room for the small weights.

use half::f16;

/// How the weights of a binary file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dtype {
    /// Four bytes.
    F32,
    /// Two bytes.
    #[default]
    F16,
    /// One byte, `round(255 sqrt(a / m))` with `m` the maximum of the row.
    U8,
}

/// A row as bytes and its maximum. Weights are not negative.
///
/// ```
/// use postroom::explain::{quantised, restored};
///
/// let row = vec![1.0 / 512.0; 512];
/// let (bytes, scale) = quantised(&row);
/// let sum: f32 = restored(&bytes, scale).iter().sum();
/// assert!((sum - 1.0).abs() < 0.005);
/// ```
#[must_use]
pub fn quantised(row: &[f32]) -> (Vec<u8>, f32) {
    let scale = row.iter().fold(0.0, |largest: f32, &weight| largest.max(weight));
    let byte = |&weight: &f32| if scale > 0.0 { (255.0 * (weight / scale).max(0.0).sqrt()).round() as u8 } else { 0 };
    (row.iter().map(byte).collect(), scale)
}

/// The weights of a quantised row, each within 0.004 of the row's maximum.
#[must_use]
pub fn restored(bytes: &[u8], scale: f32) -> Vec<f32> {
    bytes.iter().map(|&byte| scale * (f32::from(byte) / 255.0).powi(2)).collect()
}

/// Little-endian bytes of weights; `U8` has none without its scales and is written as `F16`.
#[must_use]
pub fn float_bytes(weights: &[f32], dtype: Dtype) -> Vec<u8> {
    match dtype {
        Dtype::F32 => weights.iter().flat_map(|weight| weight.to_le_bytes()).collect(),
        Dtype::F16 | Dtype::U8 => weights.iter().flat_map(|&weight| f16::from_f32(weight).to_le_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_row_and_a_row_of_zeros_stay_so() {
        assert_eq!(quantised(&[]), (vec![], 0.0));
        assert_eq!(quantised(&[0.0, 0.0]), (vec![0, 0], 0.0));
    }

    proptest! {
        #[test]
        fn every_weight_comes_back_within_four_thousandths_of_the_maximum(row in prop::collection::vec(0f32..1.0, 1..200)) {
            let (bytes, scale) = quantised(&row);
            for (weight, back) in row.iter().zip(restored(&bytes, scale)) {
                prop_assert!((weight - back).abs() <= 0.0040 * scale + 1e-7, "{} {}", weight, back);
            }
        }
    }
}

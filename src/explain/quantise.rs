//! Weights in one or two bytes.
//!
//! One byte on a fixed scale of 1/255 would erase rows that spread widely: at 512 tokens every weight of an even row rounds to 0.
//! So each row has its own scale, its maximum, and square roots are stored, which leaves room for the small weights.

use half::f16;
use half::slice::HalfFloatSliceExt;

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

/// Appends little-endian bytes of weights; `U8` has none without its scales and is written as `F16`. There are millions of them,
/// and many are converted at once (the processor takes eight at a time), but no more than its first cache holds.
pub fn append_floats(file: &mut Vec<u8>, weights: &[f32], dtype: Dtype) {
    const AT_ONCE: usize = 2048;
    match dtype {
        Dtype::F32 => {
            let mut bytes = [[0; 4]; AT_ONCE];
            for weights in weights.chunks(AT_ONCE) {
                bytes.iter_mut().zip(weights).for_each(|(slot, weight)| *slot = weight.to_le_bytes());
                file.extend_from_slice(bytes[..weights.len()].as_flattened());
            }
        }
        Dtype::F16 | Dtype::U8 => {
            let (mut halves, mut bytes) = ([f16::ZERO; AT_ONCE], [[0; 2]; AT_ONCE]);
            for weights in weights.chunks(AT_ONCE) {
                halves[..weights.len()].convert_from_f32_slice(weights);
                bytes.iter_mut().zip(halves).for_each(|(slot, half)| *slot = half.to_le_bytes());
                file.extend_from_slice(bytes[..weights.len()].as_flattened());
            }
        }
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

    #[test]
    fn floats_are_little_endian() {
        let mut file = vec![7];
        append_floats(&mut file, &[1.0, -2.5], Dtype::F32);
        append_floats(&mut file, &[1.0, -2.5], Dtype::F16);
        append_floats(&mut file, &[], Dtype::F16);
        assert_eq!(file, [7, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0, 0x3c, 0, 0xc1]);
        // More than are converted at once.
        let many: Vec<f32> = (0..5000).map(|number| number as f32 / 8.0).collect();
        let mut file = Vec::new();
        append_floats(&mut file, &many, Dtype::F16);
        let back: Vec<f32> = file.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect();
        assert!(back.iter().zip(&many).all(|(back, number)| (back - number).abs() <= number / 2048.0));
        assert_eq!(back.len(), many.len());
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

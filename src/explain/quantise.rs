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

/// Appends little-endian bytes of weights; `U8` has none without its scales and is written as `F16`. Millions of weights, so in
/// place: a copy costs more than the conversion.
pub fn append_floats(file: &mut Vec<u8>, weights: &[f32], dtype: Dtype) {
    match dtype {
        Dtype::F32 => append(file, weights.iter().map(|weight| weight.to_le_bytes())),
        Dtype::F16 | Dtype::U8 => {
            // Many at once, for the processor converts eight at a time, but no more than its first cache holds.
            let mut halves = [f16::ZERO; 2048];
            for weights in weights.chunks(halves.len()) {
                let halves = &mut halves[..weights.len()];
                halves.convert_from_f32_slice(weights);
                append(file, halves.iter().map(|half| half.to_le_bytes()));
            }
        }
    }
}

fn append<const N: usize>(file: &mut Vec<u8>, numbers: impl ExactSizeIterator<Item = [u8; N]>) {
    let start = file.len();
    file.resize(start + N * numbers.len(), 0);
    file[start..].as_chunks_mut::<N>().0.iter_mut().zip(numbers).for_each(|(slot, number)| *slot = number);
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

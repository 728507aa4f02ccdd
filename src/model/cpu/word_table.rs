//! The word embeddings: half of a small encoder's weights, and each token reads only one row.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// `[vocab_size, d_model]`, in half precision where that loses nothing.
pub(super) enum WordTable {
    /// Every value of the checkpoint is one of half precision.
    Half(Vec<f16>),
    /// At least one is not.
    Single(Vec<f32>),
}

impl WordTable {
    /// Keeps the values exactly.
    pub(super) fn new(values: Vec<f32>) -> Self {
        // Bits, so that the sign of a zero counts.
        if values.iter().all(|value| f16::from_f32(*value).to_f32().to_bits() == value.to_bits()) {
            Self::Half(values.into_iter().map(f16::from_f32).collect())
        } else {
            Self::Single(values)
        }
    }

    /// Writes the row of a token, as wide as `row`.
    #[inline]
    pub(super) fn read(&self, id: u32, row: &mut [f32]) {
        let values = id as usize * row.len()..(id as usize + 1) * row.len();
        match self {
            Self::Half(table) => table[values].convert_to_f32_slice(row),
            Self::Single(table) => row.copy_from_slice(&table[values]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &WordTable, id: u32) -> [u32; 3] {
        let mut row = [f32::NAN; 3];
        table.read(id, &mut row);
        row.map(f32::to_bits)
    }

    #[test]
    fn values_of_half_precision_come_back_to_the_bit_from_half_the_memory() {
        // The largest, the smallest and a subnormal number of half precision among them.
        let values = vec![1.5, -0.0, 65504.0, 0.25, 5.960_464_5e-8, -6.097_555e-5];
        let table = WordTable::new(values.clone());
        assert!(matches!(table, WordTable::Half(_)));
        assert_eq!(row(&table, 0), [values[0], values[1], values[2]].map(f32::to_bits));
        assert_eq!(row(&table, 1), [values[3], values[4], values[5]].map(f32::to_bits));
    }

    #[test]
    fn one_finer_value_keeps_the_table_in_single_precision() {
        for fine in [0.1f32, 1e-9, 70_000.0] {
            let table = WordTable::new(vec![1.0, 2.0, 3.0, 4.0, fine, 6.0]);
            assert!(matches!(table, WordTable::Single(_)));
            assert_eq!(row(&table, 1), [4.0, fine, 6.0].map(f32::to_bits));
        }
    }
}

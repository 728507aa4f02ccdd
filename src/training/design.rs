//! Features of all mails as one matrix: the two products that fitting a linear model takes.

use candle_core::{Device, Tensor};

use crate::lexical::SparseRow;

/// One mail's features.
pub trait Row: Clone + Send + Sync {
    /// All mails' features, laid out for the products.
    type Design: Design;
    /// Lays them out.
    fn design(rows: &[Self], width: usize) -> Self::Design;
    /// The product with a weight vector.
    fn dot(&self, weight: &[f64]) -> f64;
}

/// The features of `n` mails, `[n, width]`.
pub trait Design {
    /// The product with the transpose of `weight` (`[queues, width]`): `[n, queues]`.
    fn products(&self, weight: &[f64], n_queues: usize) -> Vec<f64>;
    /// The transpose of `errors` (`[n, queues]`) with the features: `[queues, width]`.
    fn sums(&self, errors: &[f64], n_queues: usize) -> Vec<f64>;
}

/// All features, for instance of the encoder.
impl Row for Vec<f32> {
    type Design = Dense;

    fn design(rows: &[Self], width: usize) -> Dense {
        let values: Vec<f64> = rows.iter().flatten().map(|&x| f64::from(x)).collect();
        Dense { features: matrix(values, rows.len(), width) }
    }

    fn dot(&self, weight: &[f64]) -> f64 {
        weight.iter().zip(self).map(|(weight, &x)| weight * f64::from(x)).sum()
    }
}

/// The nonzero ones, for instance of words.
impl Row for SparseRow {
    type Design = Sparse;

    fn design(rows: &[Self], width: usize) -> Sparse {
        Sparse { rows: rows.to_vec(), width }
    }

    fn dot(&self, weight: &[f64]) -> f64 {
        self.iter().map(|&(column, x)| weight[column] * f64::from(x)).sum()
    }
}

/// A full matrix.
pub struct Dense {
    features: Tensor,
}

fn matrix(values: Vec<f64>, rows: usize, columns: usize) -> Tensor {
    Tensor::from_vec(values, (rows, columns), &Device::Cpu).expect("as many values as rows times columns")
}

fn values(product: candle_core::Result<Tensor>) -> Vec<f64> {
    product.and_then(|product| product.flatten_all()?.to_vec1()).expect("shapes fit: all are made here")
}

impl Design for Dense {
    fn products(&self, weight: &[f64], n_queues: usize) -> Vec<f64> {
        let weight = matrix(weight.to_vec(), n_queues, weight.len() / n_queues.max(1));
        values(weight.t().and_then(|weight| self.features.matmul(&weight)))
    }

    fn sums(&self, errors: &[f64], n_queues: usize) -> Vec<f64> {
        let errors = matrix(errors.to_vec(), errors.len() / n_queues.max(1), n_queues);
        values(errors.t().and_then(|errors| errors.matmul(&self.features)))
    }
}

/// The nonzero values of each row.
pub struct Sparse {
    rows: Vec<SparseRow>,
    width: usize,
}

impl Design for Sparse {
    fn products(&self, weight: &[f64], n_queues: usize) -> Vec<f64> {
        // All queues of a column side by side: a row touches few columns, but every queue of each.
        let by_column = transposed(weight, n_queues, self.width);
        let mut out = vec![0.0; self.rows.len() * n_queues];
        for (row, out) in self.rows.iter().zip(out.chunks_exact_mut(n_queues.max(1))) {
            for &(column, x) in row {
                let weights = &by_column[column * n_queues..][..n_queues];
                out.iter_mut().zip(weights).for_each(|(out, weight)| *out += weight * f64::from(x));
            }
        }
        out
    }

    fn sums(&self, errors: &[f64], n_queues: usize) -> Vec<f64> {
        let mut by_column = vec![0.0; self.width * n_queues];
        for (row, errors) in self.rows.iter().zip(errors.chunks_exact(n_queues.max(1))) {
            for &(column, x) in row {
                let sums = &mut by_column[column * n_queues..][..n_queues];
                sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error * f64::from(x));
            }
        }
        transposed(&by_column, self.width, n_queues)
    }
}

/// `[rows, columns]` to `[columns, rows]`.
fn transposed(values: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    for (row, values) in values.chunks_exact(columns.max(1)).enumerate() {
        values.iter().enumerate().for_each(|(column, &value)| out[column * rows + row] = value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_products_are_those_by_hand_dense_or_sparse() {
        let dense = vec![vec![1.0f32, 2.0], vec![0.0, 3.0], vec![4.0, 0.0]];
        let sparse: Vec<SparseRow> = vec![vec![(0, 1.0), (1, 2.0)], vec![(1, 3.0)], vec![(0, 4.0)]];
        let weight = [1.0, 10.0, -1.0, 0.5];
        let errors = [1.0, 0.0, 2.0, 1.0, 0.0, -1.0];
        let (products, sums) = ([21.0, 0.0, 30.0, 1.5, 4.0, -4.0], [1.0, 8.0, -4.0, 3.0]);
        let (a, b) = (<Vec<f32>>::design(&dense, 2), SparseRow::design(&sparse, 2));
        assert_eq!(a.products(&weight, 2), products);
        assert_eq!(b.products(&weight, 2), products);
        assert_eq!(a.sums(&errors, 2), sums);
        assert_eq!(b.sums(&errors, 2), sums);
    }
}

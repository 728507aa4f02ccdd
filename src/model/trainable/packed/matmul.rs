//! Matrix products on strided slices: the `gemm` crate behind checked bounds.
#![expect(
    unsafe_code,
    reason = "the gemm crate takes pointers; every call checks that the matrices lie inside their slices"
)]

/// A read-only matrix inside a slice.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) values: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix whose rows stand next to each other.
    pub(super) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        Self { values, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// A row-major matrix that is `columns` wide inside rows of `row_stride` values.
    pub(super) fn strided(values: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        Self { values, rows, columns, row_stride, column_stride: 1 }
    }

    /// The same values with rows and columns exchanged.
    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    fn reach(&self) -> usize {
        reach(self.rows, self.columns, self.row_stride, self.column_stride)
    }
}

/// Values from the first to the last one of a matrix.
fn reach(rows: usize, columns: usize, row_stride: usize, column_stride: usize) -> usize {
    match (rows, columns) {
        (0, _) | (_, 0) => 0,
        _ => (rows - 1) * row_stride + (columns - 1) * column_stride + 1,
    }
}

/// Where a product goes, and what happens to what stands there.
pub(super) struct Target<'a> {
    pub(super) values: &'a mut [f32],
    /// Values from one row to the next.
    pub(super) row_stride: usize,
    /// Add to what is there instead of replacing it.
    pub(super) add: bool,
}

/// `target = scale * left * right` (or `+=`), on `threads` threads of the current pool.
///
/// # Panics
/// Where the matrices do not fit together or into their slices: callers check shapes first.
pub(super) fn matmul(target: Target<'_>, left: Matrix<'_>, right: Matrix<'_>, scale: f32, threads: usize) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    let Target { values, row_stride, add } = target;
    assert_eq!(k, right.rows, "inner dimensions");
    assert!(left.reach() <= left.values.len() && right.reach() <= right.values.len(), "operands inside their slices");
    assert!(reach(m, n, row_stride, 1) <= values.len(), "target inside its slice");
    assert!(row_stride >= n, "rows of the target do not overlap");
    let parallelism = if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    let previous = if add { 1.0 } else { 0.0 };
    // SAFETY: the assertions above hold every row and column of the three matrices inside their slices; the target is
    // borrowed mutably, so it overlaps neither operand, and its rows do not overlap each other.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            values.as_mut_ptr(),
            1,
            row_stride as isize,
            add,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            previous,
            scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_strided_product_is_the_one_by_hand() {
        // Columns 1 and 2 of rows of four; the transposed left is [[2, 6], [3, 7]].
        let left = [9.0, 2.0, 3.0, 9.0, 9.0, 6.0, 7.0, 9.0];
        let left = Matrix::strided(&left[1..], 2, 2, 4).transposed();
        let right = Matrix::new(&[1.0, 10.0], 2, 1);
        let mut out = [1.0, 0.0, 1.0];
        matmul(Target { values: &mut out, row_stride: 2, add: true }, left, right, 2.0, 1);
        assert_eq!(out, [1.0 + 2.0 * 62.0, 0.0, 1.0 + 2.0 * 73.0]);
    }

    #[test]
    #[should_panic(expected = "operands inside their slices")]
    fn a_matrix_outside_its_slice_is_refused() {
        let mut out = [0.0; 4];
        let small = [0.0; 3];
        let target = Target { values: &mut out, row_stride: 2, add: false };
        matmul(target, Matrix::new(&small, 2, 2), Matrix::new(&[0.0; 4], 2, 2), 1.0, 1);
    }
}

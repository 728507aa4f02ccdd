use super::super::simd::{Kernel, Simd};
use super::super::testing::{Numbers, largest_difference};
use super::*;

/// Every instruction set of this machine that has instructions for bytes beside it.
fn machines() -> impl Iterator<Item = (Isa, ByteMachine)> {
    Isa::available().into_iter().filter_map(|isa| Some((isa, ByteMachine::detect(isa)?)))
}

struct Quantize<'a>(&'a mut ByteRows, &'a [f32], usize);
impl Kernel for Quantize<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.0.quantize(simd, self.1, self.2);
    }
}

/// `input` times the matrix, all panels, `[rows, outputs rounded up to panels]`.
fn multiply(isa: Isa, matrix: &ByteMatrix, input: &[f32], inputs: usize) -> Vec<f32> {
    let mut rows = ByteRows::default();
    isa.run(Quantize(&mut rows, input, inputs));
    let (n_rows, width) = (input.len() / inputs, isa.panel_width());
    let mut out = vec![f32::NAN; n_rows * width * matrix.n_panels()];
    for panel in 0..matrix.n_panels() {
        let mut strip = vec![f32::NAN; n_rows * width];
        matrix.multiply_panel(&rows, panel, &mut strip);
        for (row, sums) in out.chunks_exact_mut(width * matrix.n_panels()).zip(strip.chunks_exact(width)) {
            row[panel * width..][..width].copy_from_slice(sums);
        }
    }
    out
}

/// The same in plain loops: each group of each row and column rounded to its own steps, then multiplied exactly.
fn in_plain_loops(weight: &[f32], scale: f32, input: &[f32], inputs: usize) -> Vec<f64> {
    let rounded_weights: Vec<f64> = weight
        .chunks_exact(inputs)
        .flat_map(|row| row.chunks(GROUP))
        .flat_map(|group| {
            let step = group.iter().fold(0f32, |largest, value| largest.max(value.abs())) / 127.0;
            group.iter().map(move |value| {
                f64::from(scale) * f64::from(step) * if step > 0.0 { f64::from((value / step).round()) } else { 0.0 }
            })
        })
        .collect();
    let rounded_rows: Vec<f64> = input
        .chunks_exact(inputs)
        .flat_map(|row| row.chunks(GROUP))
        .flat_map(|group| {
            let largest = group.iter().fold(0f32, |largest, &value| largest.max(value));
            let smallest = group.iter().fold(0f32, |smallest, &value| smallest.min(value));
            let step = (largest - smallest) / 255.0;
            let zero = if step > 0.0 { (-smallest / step).round() } else { 0.0 };
            group.iter().map(move |value| {
                let byte = if step > 0.0 { (value / step + zero).round_ties_even().clamp(0.0, 255.0) } else { zero };
                f64::from(step) * f64::from(byte - zero)
            })
        })
        .collect();
    let dot = |row: &[f64], column: &[f64]| row.iter().zip(column).map(|(x, w)| x * w).sum::<f64>();
    rounded_rows
        .chunks_exact(inputs)
        .flat_map(|row| rounded_weights.chunks_exact(inputs).map(move |column| dot(row, column)))
        .collect()
}

/// Rows of every height of a tile, inner dimensions that are no whole groups, fours or vectors, columns that are no whole panels.
const SIZES: [(usize, usize, usize); 7] =
    [(1, 1, 1), (2, 3, 5), (5, 24, 16), (7, 131, 17), (13, 400, 40), (26, 128, 32), (31, 1000, 8)];

#[test]
fn every_size_multiplies_as_plain_loops_do() {
    let mut numbers = Numbers::seeded(4);
    for (rows, inputs, outputs) in SIZES {
        for size in [1e-3, 1.0, 1e4] {
            let input = numbers.take(rows * inputs, size);
            let (weight, bias) = (numbers.take(inputs * outputs, 1.0), numbers.take(outputs, 1.0));
            let want = in_plain_loops(&weight, 2.0, &input, inputs);
            for (isa, machine) in machines() {
                let mut matrix = ByteMatrix::new(isa, machine, inputs, outputs);
                matrix.set_columns(0, &weight, &bias, 2.0);
                let got = multiply(isa, &matrix, &input, inputs);
                let padded = got.len() / rows;
                for (got, want) in got.chunks_exact(padded).zip(want.chunks_exact(outputs)) {
                    // A value that lies between two bytes may be rounded to either.
                    let step = f64::from(size) * 2.0 / 255.0 * 2.0 * 3.0;
                    let error = largest_difference(&got[..outputs], want);
                    assert!(error < step, "{rows}x{inputs}x{outputs} of {size} on {machine:?}: {error}");
                    assert!(got[outputs..].iter().all(|&value| value == 0.0), "padding on {machine:?}");
                }
            }
        }
    }
}

#[test]
fn bytes_come_close_to_floats() {
    let mut numbers = Numbers::seeded(5);
    let (rows, inputs, outputs) = (9, 384, 64);
    let (input, weight) = (numbers.take(rows * inputs, 3.0), numbers.take(inputs * outputs, 0.1));
    let dots: Vec<f64> = input
        .chunks_exact(inputs)
        .flat_map(|row| weight.chunks_exact(inputs).map(move |column| (row, column)))
        .map(|(row, column)| row.iter().zip(column).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum())
        .collect();
    for (isa, machine) in machines() {
        let mut matrix = ByteMatrix::new(isa, machine, inputs, outputs);
        matrix.set_columns(0, &weight, &[0.0; 64], 1.0);
        let got = multiply(isa, &matrix, &input, inputs);
        let power = dots.iter().map(|x| x * x).sum::<f64>();
        let wrong: f64 = got.iter().zip(&dots).map(|(&got, want)| (f64::from(got) - want).powi(2)).sum();
        let relative = (wrong / power).sqrt();
        assert!(relative < 0.01, "{relative} on {machine:?}");
    }
}

#[test]
fn a_row_does_not_depend_on_the_rows_around_it() {
    let mut numbers = Numbers::seeded(6);
    let (inputs, rows) = (261, 29);
    let input = numbers.take(rows * inputs, 1.0);
    for (isa, machine) in machines() {
        let mut matrix = ByteMatrix::new(isa, machine, inputs, 4);
        matrix.set_columns(0, &numbers.take(4 * inputs, 1.0), &[0.0; 4], 1.0);
        let together = multiply(isa, &matrix, &input, inputs);
        for (row, together) in input.chunks_exact(inputs).zip(together.chunks_exact(isa.panel_width())) {
            assert_eq!(multiply(isa, &matrix, row, inputs), together, "{machine:?}");
        }
    }
}

/// A network that has gone wrong must be seen to: nonsense must not be rounded to numbers.
#[test]
fn what_is_no_number_stays_none() {
    let inputs = 140;
    for nonsense in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for place in [0, 127, 128, 139] {
            for (isa, machine) in machines() {
                let mut matrix = ByteMatrix::new(isa, machine, inputs, 2);
                matrix.set_columns(0, &vec![0.5; 2 * inputs], &[0.0; 2], 1.0);
                let mut input = vec![1.0; inputs];
                input[place] = nonsense;
                let got = multiply(isa, &matrix, &input, inputs);
                assert!(got[..2].iter().all(|value| value.is_nan()), "{nonsense} at {place} on {machine:?}: {got:?}");

                let mut weight = vec![0.5; 2 * inputs];
                weight[place] = nonsense;
                matrix.set_columns(0, &weight, &[0.0; 2], 1.0);
                let got = multiply(isa, &matrix, &vec![1.0; inputs], inputs);
                assert!(got[0].is_nan() && got[1].is_finite(), "weight {nonsense} at {place} on {machine:?}: {got:?}");
            }
        }
    }
}

#[test]
fn all_equal_and_all_zero_rows_multiply() {
    let inputs = 256;
    for (isa, machine) in machines() {
        let mut matrix = ByteMatrix::new(isa, machine, inputs, 1);
        matrix.set_columns(0, &vec![1.0; inputs], &[0.0], 1.0);
        for value in [0.0, 1e4, -1e4] {
            let got = multiply(isa, &matrix, &vec![value; inputs], inputs)[0];
            assert!(
                (got - value * inputs as f32).abs() <= 1e-4 * value.abs() * inputs as f32,
                "{got} of {value} on {machine:?}"
            );
        }
    }
}

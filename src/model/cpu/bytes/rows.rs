//! Activations as bytes: `value = scale * (byte - zero)`, scale and zero for each group of each row.

use super::super::aligned::AlignedBuffer;
use super::super::simd::Simd;
use super::{GROUP, QUAD};

/// The largest quantized activation.
const LARGEST: f32 = 255.0;

/// Rows of quantized activations; memory that is used again.
#[derive(Default)]
pub(in super::super) struct ByteRows {
    /// `[rows, stride]` bytes
    bytes: AlignedBuffer,
    /// `[groups, rows]`: scale, and scale times zero.
    scales: Vec<[f32; 2]>,
    rows: usize,
    stride: usize,
}

/// One group of all rows.
#[derive(Clone, Copy)]
pub(super) struct RowGroup<'a> {
    /// From the first row's first byte of the group; rows `stride` apart.
    pub(super) bytes: &'a [u8],
    pub(super) stride: usize,
    /// `[rows]`: scale, and scale times zero.
    pub(super) scales: &'a [[f32; 2]],
}

impl ByteRows {
    /// Quantizes `input`, `[rows, inputs]`.
    #[inline(always)]
    pub(in super::super) fn quantize<S: Simd>(&mut self, simd: S, input: &[f32], inputs: usize) {
        self.rows = input.len() / inputs;
        self.stride = inputs.next_multiple_of(QUAD);
        let groups = inputs.div_ceil(GROUP);
        self.scales.resize(self.rows * groups, [0.0; 2]);
        self.bytes.at_least((self.rows * self.stride).div_ceil(size_of::<f32>()));
        let bytes = &mut self.bytes.as_bytes_mut()[..self.rows * self.stride];
        for (r, (row, bytes)) in input.chunks_exact(inputs).zip(bytes.chunks_exact_mut(self.stride)).enumerate() {
            for (group, (values, bytes)) in row.chunks(GROUP).zip(bytes.chunks_mut(GROUP)).enumerate() {
                self.scales[group * self.rows + r] = quantize_group(simd, values, bytes);
            }
        }
    }

    pub(super) fn group(&self, group: usize) -> RowGroup<'_> {
        RowGroup {
            bytes: &self.bytes.as_bytes()[group * GROUP..self.rows * self.stride],
            stride: self.stride,
            scales: &self.scales[group * self.rows..][..self.rows],
        }
    }
}

/// Writes the bytes of one group, and zeros behind it, and returns its scale and its scale times zero. Where a value is infinite
/// or none the scale is NaN: what goes in as nonsense must not come out as a number.
#[inline(always)]
fn quantize_group<S: Simd>(simd: S, values: &[f32], bytes: &mut [u8]) -> [f32; 2] {
    let none = simd.splat(0.0);
    let (mut largest, mut smallest, mut nonsense) = (none, none, none);
    let vectors = values.chunks_exact(S::LANES);
    let rest = vectors.remainder();
    for x in vectors {
        let x = simd.read(x);
        largest = simd.max(largest, x);
        // The largest of the negated values, for there is no smallest.
        smallest = simd.max(smallest, simd.sub(none, x));
        nonsense = simd.mul_add(x, none, nonsense);
    }
    let (mut largest, mut smallest, mut nonsense) = (simd.largest(largest), simd.largest(smallest), simd.sum(nonsense));
    for &x in rest {
        largest = largest.max(x);
        smallest = smallest.max(-x);
        nonsense += x * 0.0;
    }
    let scale = (largest + smallest) / LARGEST + nonsense;
    let (inverse, zero) = if scale > 0.0 { (1.0 / scale, (smallest / scale).round()) } else { (0.0, 0.0) };

    let (inverses, zeros) = (simd.splat(inverse), simd.splat(zero));
    for (x, bytes) in values.chunks_exact(S::LANES).zip(bytes.chunks_exact_mut(S::LANES)) {
        let byte = simd.max(simd.mul_add(simd.read(x), inverses, zeros), none);
        simd.write_bytes(bytes, byte);
    }
    let whole = values.len() - rest.len();
    let padded = rest.iter().copied().chain(std::iter::repeat(0.0));
    for (byte, x) in bytes[whole..].iter_mut().zip(padded) {
        *byte = x.mul_add(inverse, zero).clamp(0.0, LARGEST).round_ties_even() as u8;
    }
    [scale, scale * zero]
}

//! The forward pass: what a block of tokens goes through between two attentions, and the attentions between.
//!
//! Everything but attention treats each token alone. So a layer has two parallel steps: attention, one task for each head of each
//! window; and everything else, one task for each block of rows, which stays in the cache from the attention's output to the next
//! layer's queries, keys and values.

use std::ops::Range;

use super::attention::{ContextColumns, HeadAttention};
use super::bytes::ByteMachine;
use super::disjoint::DisjointSlice;
use super::linear::{AddTo, Gelu, HeadRows, Rows, linear, linear_to_heads};
use super::scratch::{Scratch, WorkerScratch};
use super::simd::{Isa, Kernel, Simd};
use super::tasks::for_each_task;
use super::weights::{EncoderShape, LayerWeights, Weights, head_width};

/// Rows of a block. Its feed-forward activations (`[96, 1536]` f32, 0.6 MB) stay near the second-level cache, and its weights are
/// read from memory once for 96 rows of arithmetic.
const BLOCK_ROWS: usize = 96;

/// What the linear layers compute in. Everything else is f32 either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// Weights and activations of 8 bits, on machines with instructions for it; 32-bit floats on others, where bytes would be no
    /// faster.
    Int8,
}

/// A BERT encoder on the CPU, its weights packed for this machine's vectors.
pub struct CpuEncoder {
    isa: Isa,
    bytes: Option<ByteMachine>,
    shape: EncoderShape,
    weights: Weights,
}

/// Attention weights to keep from a forward pass.
pub struct WindowMap<'a> {
    /// Index of the window.
    pub window: usize,
    /// Index of the layer.
    pub layer: usize,
    /// `[n_heads, T, T]`, rows = queries, columns = keys; every value is written.
    pub weights: &'a mut [f32],
}

impl CpuEncoder {
    /// Packs the weights; `tensor` gives the values of a checkpoint tensor by its Hugging Face name without any `bert.` prefix,
    /// such as `encoder.layer.0.attention.self.query.weight`, `[out, in]` row-major.
    ///
    /// # Errors
    /// Those of `tensor`.
    ///
    /// # Panics
    /// If a tensor's size is not what `shape` says.
    pub fn new<E>(
        shape: &EncoderShape,
        precision: Precision,
        tensor: impl FnMut(&str) -> Result<Vec<f32>, E>,
    ) -> Result<Self, E> {
        let isa = Isa::detect();
        let bytes = if precision == Precision::Int8 { ByteMachine::detect(isa) } else { None };
        Self::with_isa(isa, bytes, shape, tensor)
    }

    pub(super) fn with_isa<E>(
        isa: Isa,
        bytes: Option<ByteMachine>,
        shape: &EncoderShape,
        tensor: impl FnMut(&str) -> Result<Vec<f32>, E>,
    ) -> Result<Self, E> {
        Ok(Self { isa, bytes, shape: shape.clone(), weights: Weights::load(isa, bytes, shape, tensor)? })
    }

    /// What the linear layers compute in: what was asked for, where the machine has it.
    pub fn precision(&self) -> Precision {
        if self.bytes.is_some() { Precision::Int8 } else { Precision::F32 }
    }

    /// The instruction set in use, for logs.
    pub fn instruction_set(&self) -> &'static str {
        self.isa.name()
    }

    /// The last hidden states of all tokens, `[tokens, d_model]` row-major.
    ///
    /// `input_ids` holds the windows one after another and `window_offsets` where each starts, then the number of tokens; there
    /// is no padding, and positions restart at 0 in each window. A window's result is the same whatever else is in the batch and
    /// however many threads work.
    ///
    /// # Panics
    /// If the offsets do not tile the ids, an id is outside the vocabulary or a window is longer than `max_positions`.
    pub fn forward<'s>(&self, input_ids: &[u32], window_offsets: &[usize], scratch: &'s mut Scratch) -> &'s [f32] {
        self.forward_with_maps(input_ids, window_offsets, scratch, &mut [])
    }

    /// [`Self::forward`], which also writes the attention weights of the windows and layers in `maps`, each listed at most once.
    ///
    /// # Panics
    /// As [`Self::forward`], and if a map's size is not that of its window.
    pub fn forward_with_maps<'s>(
        &self,
        input_ids: &[u32],
        window_offsets: &[usize],
        scratch: &'s mut Scratch,
        maps: &mut [WindowMap<'_>],
    ) -> &'s [f32] {
        let Scratch { positions, hidden_states, queries_keys_values, context, workers } = scratch;
        let (d_model, n_tokens) = (self.shape.d_model, input_ids.len());
        let head_columns = self.shape.n_heads * head_width(self.isa, &self.shape);
        self.set_positions(window_offsets, n_tokens, positions);

        let batch = Batch { input_ids, positions, window_offsets };
        let mut activations = Activations {
            hidden_states: hidden_states.at_least(n_tokens * d_model),
            queries_keys_values: queries_keys_values.at_least(3 * n_tokens * head_columns),
            context: context.at_least(n_tokens * d_model),
        };
        for layer in 0..self.weights.layers.len() {
            self.pass_blocks(layer, &batch, &mut activations, workers);
            self.attend(&batch, &mut activations, workers, maps.iter_mut().filter(|map| map.layer == layer));
        }
        self.pass_blocks(self.weights.layers.len(), &batch, &mut activations, workers);
        activations.hidden_states
    }

    /// Everything before the attention of layer `layer`, or after the last one: one task for each block of rows.
    fn pass_blocks(
        &self,
        layer: usize,
        batch: &Batch<'_>,
        activations: &mut Activations<'_>,
        workers: &mut [WorkerScratch],
    ) {
        let (d_model, n_tokens) = (self.shape.d_model, batch.input_ids.len());
        let block_rows = self.block_rows(n_tokens, workers.len());
        let rows = DisjointSlice::new(activations.hidden_states);
        let heads = DisjointSlice::new(activations.queries_keys_values);
        let context = &*activations.context;
        for_each_task(workers, n_tokens.div_ceil(block_rows), |index, worker| {
            let block = index * block_rows..n_tokens.min((index + 1) * block_rows);
            // SAFETY: blocks do not overlap.
            let hidden_states = unsafe { rows.range(block.start * d_model, block.len() * d_model) };
            let width = head_width(self.isa, &self.shape);
            self.isa.run(Block {
                encoder: self,
                layer,
                input_ids: &batch.input_ids[block.clone()],
                positions: &batch.positions[block.clone()],
                context: &context[block.start * d_model..block.end * d_model],
                hidden_states,
                heads: HeadRows { heads, width, tokens: n_tokens, first: block.start },
                worker,
            });
        });
    }

    /// The attention of one layer, whose `maps` are wanted: one task for each head of each window.
    fn attend<'a, 'm: 'a>(
        &self,
        batch: &Batch<'_>,
        activations: &mut Activations<'_>,
        workers: &mut [WorkerScratch],
        maps: impl Iterator<Item = &'a mut WindowMap<'m>>,
    ) {
        let EncoderShape { d_model, n_heads, .. } = self.shape;
        let (d_k, width, panel_width) = (self.shape.d_k(), head_width(self.isa, &self.shape), self.isa.panel_width());
        let n_tokens = batch.input_ids.len();
        let maps: Vec<_> = maps.map(|map| (map.window, DisjointSlice::new(map.weights))).collect();
        for (window, weights) in &maps {
            let n_tokens = batch.window_offsets[window + 1] - batch.window_offsets[*window];
            assert_eq!(weights.len(), n_heads * n_tokens * n_tokens, "the size of a map of window {window}");
        }
        let context = DisjointSlice::new(activations.context);
        let queries_keys_values = &*activations.queries_keys_values;
        for_each_task(workers, (batch.window_offsets.len() - 1) * n_heads, |index, worker| {
            let (window, head) = (index / n_heads, index % n_heads);
            let tokens = batch.window_offsets[window]..batch.window_offsets[window + 1];
            // Each part is a matrix of all tokens; see `HeadRows`.
            let [queries, keys, values] = [0, 1, 2].map(|part| (part * n_heads + head) * n_tokens * width);
            let rows_at = |start: usize| &queries_keys_values[start + tokens.start * width..start + tokens.end * width];
            let map_len = tokens.len() * tokens.len();
            let weights = maps.iter().find(|(wanted, _)| *wanted == window).map(|(_, weights)| {
                // SAFETY: each head of a window is one task and has a part of its own.
                unsafe { weights.range(head * map_len, map_len) }
            });
            self.isa.run(HeadAttention {
                queries: rows_at(queries),
                keys: rows_at(keys),
                values: &queries_keys_values[values + tokens.start * panel_width..],
                values_stride: n_tokens * panel_width,
                width,
                d_k,
                context: ContextColumns { rows: context, start: tokens.start * d_model + head * d_k, stride: d_model },
                weights,
                scratch: &mut worker.attention,
            });
        });
    }

    /// Each token's position in its window.
    fn set_positions(&self, window_offsets: &[usize], n_tokens: usize, positions: &mut Vec<u32>) {
        assert_eq!(window_offsets.first(), Some(&0), "the first window starts at 0");
        positions.clear();
        for window in window_offsets.windows(2) {
            let window: Range<usize> = window[0]..window[1];
            assert!(window.start <= window.end && window.len() <= self.shape.max_positions, "window {window:?}");
            positions.extend(0..window.len() as u32);
        }
        assert_eq!(positions.len(), n_tokens, "the windows cover all tokens");
    }

    /// Rows of a block: as large as the cache allows, but enough blocks for all threads, and whole register tiles.
    fn block_rows(&self, n_tokens: usize, n_threads: usize) -> usize {
        let rounds = n_tokens.div_ceil(BLOCK_ROWS * n_threads).max(1);
        n_tokens.div_ceil(rounds * n_threads).next_multiple_of(self.isa.tile_rows()).clamp(1, BLOCK_ROWS)
    }
}

/// What the caller asks for, with what follows from it.
struct Batch<'a> {
    /// `[tokens]`
    input_ids: &'a [u32],
    /// `[tokens]`: of each token in its window.
    positions: &'a [u32],
    /// `[windows + 1]`
    window_offsets: &'a [usize],
}

/// The matrices of the whole batch.
struct Activations<'a> {
    /// `[tokens, d_model]`
    hidden_states: &'a mut [f32],
    /// As [`HeadRows`] describes.
    queries_keys_values: &'a mut [f32],
    /// `[tokens, d_model]`
    context: &'a mut [f32],
}

/// What a block of rows goes through before the attention of layer `layer`.
struct Block<'a> {
    encoder: &'a CpuEncoder,
    layer: usize,
    /// `[rows]`
    input_ids: &'a [u32],
    /// `[rows]`
    positions: &'a [u32],
    /// `[rows, d_model]`: what the attention of the layer before gave.
    context: &'a [f32],
    /// `[rows, d_model]`
    hidden_states: &'a mut [f32],
    heads: HeadRows<'a>,
    worker: &'a mut WorkerScratch,
}

impl Kernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let weights = &self.encoder.weights;
        match self.layer.checked_sub(1) {
            None => self.embed(simd),
            Some(before) => self.finish_layer(simd, &weights.layers[before]),
        }
        if let Some(layer) = weights.layers.get(self.layer) {
            let input = Rows { values: self.hidden_states, rows: self.input_ids.len() };
            linear_to_heads(simd, &layer.queries_keys_values, input, &mut self.worker.linear, self.heads);
        }
    }
}

impl Block<'_> {
    /// Word, position and type embeddings, normalised.
    #[inline(always)]
    fn embed<S: Simd>(&mut self, simd: S) {
        let weights = &self.encoder.weights;
        let d_model = self.encoder.shape.d_model;
        let rows = self.hidden_states.chunks_exact_mut(d_model);
        for (row, (&id, &position)) in rows.zip(self.input_ids.iter().zip(self.positions)) {
            weights.words.read(id, row);
            let position = &weights.positions[position as usize * d_model..][..d_model];
            row.iter_mut().zip(position).for_each(|(value, position)| *value += position);
        }
        weights.embedding_norm.normalise_rows(simd, self.hidden_states);
    }

    /// From the heads' context to the layer's output.
    #[inline(always)]
    fn finish_layer<S: Simd>(&mut self, simd: S, layer: &LayerWeights) {
        let rows = self.input_ids.len();
        let WorkerScratch { linear: scratch, intermediate, .. } = self.worker;
        let context = Rows { values: self.context, rows };
        linear(simd, &layer.attention_output, context, scratch, self.hidden_states, AddTo);
        layer.attention_norm.normalise_rows(simd, self.hidden_states);

        let intermediate = intermediate.at_least(rows * self.encoder.shape.d_ff);
        let hidden_states = Rows { values: self.hidden_states, rows };
        linear(simd, &layer.intermediate, hidden_states, scratch, intermediate, Gelu);
        linear(simd, &layer.output, Rows { values: intermediate, rows }, scratch, self.hidden_states, AddTo);
        layer.output_norm.normalise_rows(simd, self.hidden_states);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Numbers, RandomCheckpoint, largest_difference};
    use super::*;

    /// Heads of 8 columns, which no panel is as narrow as, and widths that are no multiples of a panel.
    fn narrow_shape() -> EncoderShape {
        EncoderShape {
            d_model: 24,
            n_heads: 3,
            n_layers: 2,
            d_ff: 56,
            max_positions: 512,
            vocab_size: 50,
            layer_norm_eps: 1e-12,
        }
    }

    /// Heads of 32 columns, as in MiniLM.
    fn wide_shape() -> EncoderShape {
        EncoderShape { d_model: 64, n_heads: 2, d_ff: 128, n_layers: 1, ..narrow_shape() }
    }

    fn encoders(checkpoint: &RandomCheckpoint) -> impl Iterator<Item = CpuEncoder> {
        let load = |isa| {
            CpuEncoder::with_isa(isa, None, &checkpoint.shape, |name| checkpoint.tensor(name)).expect("all tensors")
        };
        Isa::available().into_iter().map(load)
    }

    fn encoders_on_bytes(checkpoint: &RandomCheckpoint) -> impl Iterator<Item = CpuEncoder> {
        let machines = Isa::available().into_iter().filter_map(|isa| Some((isa, Some(ByteMachine::detect(isa)?))));
        machines.map(|(isa, bytes)| {
            CpuEncoder::with_isa(isa, bytes, &checkpoint.shape, |name| checkpoint.tensor(name)).expect("all tensors")
        })
    }

    fn offsets_of(lengths: &[usize]) -> Vec<usize> {
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }

    #[test]
    fn every_instruction_set_computes_the_plain_forward_pass() {
        for (shape, size, tolerance) in
            [(narrow_shape(), 0.3, 2e-5), (wide_shape(), 0.1, 2e-5), (wide_shape(), 20.0, 2e-3)]
        {
            let checkpoint = RandomCheckpoint::new(shape, size);
            for n_tokens in [1, 2, 17, 50, 257, 512] {
                let ids = Numbers::seeded(n_tokens as u64).ids(n_tokens, 50);
                let (want, want_maps) = checkpoint.forward(&ids);
                for encoder in encoders(&checkpoint) {
                    let name = encoder.instruction_set();
                    let mut layers = vec![vec![f32::NAN; want_maps[0].len()]; want_maps.len()];
                    let request = |(layer, weights)| WindowMap { window: 0, layer, weights };
                    let mut maps: Vec<_> = layers.iter_mut().map(Vec::as_mut_slice).enumerate().map(request).collect();
                    let mut scratch = Scratch::new(1);
                    let got = encoder.forward_with_maps(&ids, &[0, n_tokens], &mut scratch, &mut maps);
                    let error = largest_difference(got, &want);
                    assert!(error < tolerance, "{n_tokens} tokens, weights of {size} on {name}: {error}");
                    for (got, want) in layers.iter().zip(&want_maps) {
                        let error = largest_difference(got, want);
                        assert!(error < tolerance, "map of {n_tokens} tokens, weights of {size} on {name}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn on_bytes_it_computes_nearly_the_plain_forward_pass() {
        let checkpoint = RandomCheckpoint::new(wide_shape(), 0.1);
        for n_tokens in [1, 17, 50] {
            let ids = Numbers::seeded(n_tokens as u64).ids(n_tokens, 50);
            let (want, _) = checkpoint.forward(&ids);
            for encoder in encoders_on_bytes(&checkpoint) {
                let mut scratch = Scratch::new(1);
                let error = largest_difference(encoder.forward(&ids, &[0, n_tokens], &mut scratch), &want);
                assert!(error < 0.05, "{n_tokens} tokens on {}: {error}", encoder.instruction_set());
                // And it is not the plain one under another name.
                assert!(error > 1e-4, "{n_tokens} tokens on {}: {error}", encoder.instruction_set());
            }
        }
    }

    #[test]
    fn scores_that_are_no_numbers_give_no_numbers() {
        for nonsense in [f32::NAN, f32::INFINITY] {
            let mut checkpoint = RandomCheckpoint::new(wide_shape(), 0.1);
            checkpoint.spoil("encoder.layer.0.attention.self.query.weight", nonsense);
            for encoder in encoders(&checkpoint).chain(encoders_on_bytes(&checkpoint)) {
                // Padding keys stand in the row of any number of tokens but whole panels.
                for n_tokens in [3, 64] {
                    let ids = Numbers::seeded(1).ids(n_tokens, 50);
                    let mut weights = vec![0.0; 2 * n_tokens * n_tokens];
                    let mut maps = [WindowMap { window: 0, layer: 0, weights: &mut weights }];
                    let mut scratch = Scratch::new(1);
                    let got = encoder.forward_with_maps(&ids, &[0, n_tokens], &mut scratch, &mut maps);
                    assert!(got.iter().any(|x| !x.is_finite()), "{nonsense} on {}", encoder.instruction_set());
                    assert!(weights.iter().any(|x| !x.is_finite()), "{nonsense} on {}", encoder.instruction_set());
                }
            }
        }
    }

    #[test]
    fn equal_tokens_without_positions_attend_equally() {
        let mut shape = wide_shape();
        shape.max_positions = 3;
        let mut checkpoint = RandomCheckpoint::new(shape, 0.1);
        checkpoint.forget_positions();
        for encoder in encoders(&checkpoint) {
            let mut weights = [f32::NAN; 2 * 9];
            let mut maps = [WindowMap { window: 0, layer: 0, weights: &mut weights }];
            encoder.forward_with_maps(&[4; 3], &[0, 3], &mut Scratch::new(1), &mut maps);
            assert!(
                weights.iter().all(|w| (w - 1.0 / 3.0).abs() < 1e-6),
                "{weights:?} on {}",
                encoder.instruction_set()
            );
        }
    }

    #[test]
    fn neither_batch_mates_nor_threads_change_a_bit() {
        let checkpoint = RandomCheckpoint::new(wide_shape(), 0.1);
        let lengths: Vec<usize> = [512, 1, 100, 257].into_iter().chain((0..296).map(|i| 1 + i % 7)).collect();
        let offsets = offsets_of(&lengths);
        let ids = Numbers::seeded(5).ids(offsets[lengths.len()], 50);
        for encoder in encoders(&checkpoint).chain(encoders_on_bytes(&checkpoint)) {
            let name = encoder.instruction_set();
            let mut scratch = Scratch::new(1);
            let together = encoder.forward(&ids, &offsets, &mut scratch).to_vec();
            for n_threads in [2, 3] {
                assert_eq!(
                    encoder.forward(&ids, &offsets, &mut Scratch::new(n_threads)),
                    together,
                    "{n_threads} threads, {name}"
                );
            }
            for window in offsets.windows(2).take(8) {
                let alone = encoder.forward(&ids[window[0]..window[1]], &[0, window[1] - window[0]], &mut scratch);
                assert_eq!(alone, &together[window[0] * 64..window[1] * 64], "window {window:?}, {name}");
            }
        }
    }

    #[test]
    fn nothing_in_gives_nothing_out() {
        let checkpoint = RandomCheckpoint::new(narrow_shape(), 0.1);
        for encoder in encoders(&checkpoint) {
            assert!(encoder.forward(&[], &[0], &mut Scratch::new(2)).is_empty());
            let with_empty_window = encoder.forward(&[3, 4], &[0, 1, 1, 2], &mut Scratch::new(1)).to_vec();
            assert_eq!(encoder.forward(&[3, 4], &[0, 1, 2], &mut Scratch::new(1)), with_empty_window);
        }
    }

    #[test]
    #[should_panic(expected = "window 0..513")]
    fn a_window_beyond_the_positions_is_refused() {
        let checkpoint = RandomCheckpoint::new(narrow_shape(), 0.1);
        let encoder = encoders(&checkpoint).next().expect("one instruction set");
        encoder.forward(&[1; 513], &[0, 513], &mut Scratch::new(1));
    }

    #[test]
    fn a_missing_tensor_is_reported_by_name() {
        let result = CpuEncoder::new(&narrow_shape(), Precision::F32, |name| Err::<Vec<f32>, _>(name.to_owned()));
        assert_eq!(result.err().as_deref(), Some("embeddings.word_embeddings.weight"));
    }
}

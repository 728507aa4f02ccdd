//! What the tests of this module share: seeded numbers, and the encoder as plain f64 loops.

use std::collections::HashMap;

use super::simd::{Isa, Kernel, Simd};
use super::weights::EncoderShape;

/// A linear congruential generator: the same numbers in every run.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform in -1..1.
    pub(super) fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// `n` values, uniform in `-size..size`.
    pub(super) fn take(&mut self, n: usize, size: f32) -> Vec<f32> {
        (0..n).map(|_| self.next() * size).collect()
    }

    /// `n` token ids below `vocab_size`.
    pub(super) fn ids(&mut self, n: usize, vocab_size: usize) -> Vec<u32> {
        (0..n).map(|_| ((self.next() + 1.0) / 2.0 * vocab_size as f32) as u32 % vocab_size as u32).collect()
    }
}

/// A vector function applied to a slice whose length is a multiple of every vector's.
pub(super) trait VectorFunction: Copy {
    fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V;
}

/// Applies `function` to each of `values` on `isa`.
pub(super) fn map_vectors<F: VectorFunction>(isa: Isa, values: &mut [f32], function: F) {
    struct Map<'a, F>(&'a mut [f32], F);
    impl<F: VectorFunction> Kernel for Map<'_, F> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            for chunk in self.0.chunks_exact_mut(S::LANES) {
                let result = self.1.apply(simd, simd.read(chunk));
                simd.write(chunk, result);
            }
        }
    }
    isa.run(Map(values, function));
}

/// The largest difference of two slices.
pub(super) fn largest_difference(got: &[f32], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).map(|(&got, want)| (f64::from(got) - want).abs()).fold(0.0, f64::max)
}

/// `0.5 * (1 + erf(x / sqrt 2))`, from the series of positive terms `erf(z) = 2 / sqrt(pi) e^(-z^2) sum 2^n z^(2n+1) / (2n+1)!!`.
pub(super) fn normal_distribution(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    let (mut term, mut sum) = (z, z);
    for n in 1..400 {
        term *= 2.0 * z * z / f64::from(2 * n + 1);
        sum += term;
    }
    0.5 + sum * (-z * z).exp() / std::f64::consts::PI.sqrt()
}

/// A checkpoint of random values.
pub(super) struct RandomCheckpoint {
    pub(super) shape: EncoderShape,
    tensors: HashMap<String, Vec<f32>>,
}

impl RandomCheckpoint {
    /// `size` scales the weights of the linear layers.
    pub(super) fn new(shape: EncoderShape, size: f32) -> Self {
        let EncoderShape { d_model, d_ff, .. } = shape;
        let mut numbers = Numbers::seeded(7);
        let mut tensors = HashMap::new();
        let mut add = |name: String, n: usize, size: f32| tensors.insert(name, numbers.take(n, size));
        add("embeddings.word_embeddings.weight".into(), shape.vocab_size * d_model, 1.0);
        add("embeddings.position_embeddings.weight".into(), shape.max_positions * d_model, 1.0);
        add("embeddings.token_type_embeddings.weight".into(), 2 * d_model, 1.0);
        let norms = |layer: usize| ["attention.output", "output"].map(|name| format!("encoder.layer.{layer}.{name}"));
        for path in (0..shape.n_layers).flat_map(norms).chain(["embeddings".into()]) {
            add(format!("{path}.LayerNorm.weight"), d_model, 1.0);
            add(format!("{path}.LayerNorm.bias"), d_model, 0.5);
        }
        for layer in 0..shape.n_layers {
            for (name, outputs, inputs) in [
                ("attention.self.query", d_model, d_model),
                ("attention.self.key", d_model, d_model),
                ("attention.self.value", d_model, d_model),
                ("attention.output.dense", d_model, d_model),
                ("intermediate.dense", d_ff, d_model),
                ("output.dense", d_model, d_ff),
            ] {
                add(format!("encoder.layer.{layer}.{name}.weight"), outputs * inputs, size);
                add(format!("encoder.layer.{layer}.{name}.bias"), outputs, size);
            }
        }
        Self { shape, tensors }
    }

    /// Makes all positions alike.
    pub(super) fn forget_positions(&mut self) {
        if let Some(positions) = self.tensors.get_mut("embeddings.position_embeddings.weight") {
            positions.fill(0.0);
        }
    }

    /// Puts a value that is no number into a tensor.
    pub(super) fn spoil(&mut self, name: &str, value: f32) {
        if let Some(first) = self.tensors.get_mut(name).and_then(|tensor| tensor.first_mut()) {
            *first = value;
        }
    }

    pub(super) fn tensor(&self, name: &str) -> Result<Vec<f32>, String> {
        self.tensors.get(name).cloned().ok_or_else(|| name.to_owned())
    }

    /// The last hidden states of one window and each layer's weights `[n_heads, T, T]`.
    pub(super) fn forward(&self, input_ids: &[u32]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let EncoderShape { d_model, n_heads, .. } = self.shape;
        let (d_k, n_tokens) = (self.shape.d_k(), input_ids.len());
        let value = |name: &str, i: usize| f64::from(self.tensors[name][i]);
        let mut x = Vec::new();
        for (position, &id) in input_ids.iter().enumerate() {
            x.extend((0..d_model).map(|i| {
                value("embeddings.word_embeddings.weight", id as usize * d_model + i)
                    + value("embeddings.position_embeddings.weight", position * d_model + i)
                    + value("embeddings.token_type_embeddings.weight", i)
            }));
        }
        self.layer_norm(&mut x, "embeddings");
        let mut attentions = Vec::new();
        for layer in 0..self.shape.n_layers {
            let path = format!("encoder.layer.{layer}");
            let [queries, keys, values] =
                ["query", "key", "value"].map(|name| self.linear(&x, &format!("{path}.attention.self.{name}")));
            let mut context = vec![0.0; x.len()];
            let mut weights = Vec::new();
            for head in 0..n_heads {
                let at = |row: usize, i: usize| row * d_model + head * d_k + i;
                for q in 0..n_tokens {
                    let score = |k: usize| (0..d_k).map(|i| queries[at(q, i)] * keys[at(k, i)]).sum::<f64>();
                    let scores: Vec<f64> = (0..n_tokens).map(|k| score(k) / (d_k as f64).sqrt()).collect();
                    let largest = scores.iter().copied().fold(f64::MIN, f64::max);
                    let sum: f64 = scores.iter().map(|s| (s - largest).exp()).sum();
                    for (k, score) in scores.iter().enumerate() {
                        let weight = (score - largest).exp() / sum;
                        weights.push(weight);
                        for i in 0..d_k {
                            context[at(q, i)] += weight * values[at(k, i)];
                        }
                    }
                }
            }
            attentions.push(weights);
            add_to(&mut x, &self.linear(&context, &format!("{path}.attention.output.dense")));
            self.layer_norm(&mut x, &format!("{path}.attention.output"));
            let mut intermediate = self.linear(&x, &format!("{path}.intermediate.dense"));
            intermediate.iter_mut().for_each(|x| *x *= normal_distribution(*x));
            add_to(&mut x, &self.linear(&intermediate, &format!("{path}.output.dense")));
            self.layer_norm(&mut x, &format!("{path}.output"));
        }
        (x, attentions)
    }

    fn linear(&self, x: &[f64], path: &str) -> Vec<f64> {
        let (weight, bias) = (&self.tensors[&format!("{path}.weight")], &self.tensors[&format!("{path}.bias")]);
        let inputs = weight.len() / bias.len();
        let dot = |row: &[f64], w: &[f32]| row.iter().zip(w).map(|(x, &w)| x * f64::from(w)).sum::<f64>();
        let outputs = |row| weight.chunks_exact(inputs).zip(bias).map(move |(w, &b)| dot(row, w) + f64::from(b));
        x.chunks_exact(inputs).flat_map(outputs).collect()
    }

    fn layer_norm(&self, x: &mut [f64], path: &str) {
        let weight = &self.tensors[&format!("{path}.LayerNorm.weight")];
        let bias = &self.tensors[&format!("{path}.LayerNorm.bias")];
        x.chunks_exact_mut(weight.len()).for_each(|row| layer_norm(row, weight, bias, self.shape.layer_norm_eps));
    }
}

/// Layer normalisation of one row.
pub(super) fn layer_norm(row: &mut [f64], weight: &[f32], bias: &[f32], eps: f64) {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    for (x, (&weight, &bias)) in row.iter_mut().zip(weight.iter().zip(bias)) {
        *x = (*x - mean) / (variance + eps).sqrt() * f64::from(weight) + f64::from(bias);
    }
}

fn add_to(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

//! The checkpoint's tensors, laid out once for the kernels.

use super::bytes::ByteMachine;
use super::layer_norm::LayerNorm;
use super::linear::LinearWeights;
use super::simd::Isa;
use super::word_table::WordTable;

/// The dimensions of a BERT encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderShape {
    /// Width of a hidden state.
    pub d_model: usize,
    /// Attention heads; divides `d_model`.
    pub n_heads: usize,
    /// Transformer layers.
    pub n_layers: usize,
    /// Width between the two linear layers of a feed-forward block.
    pub d_ff: usize,
    /// Tokens of the longest window.
    pub max_positions: usize,
    /// Rows of the word embeddings.
    pub vocab_size: usize,
    /// Epsilon of every layer norm.
    pub layer_norm_eps: f64,
}

impl EncoderShape {
    /// Columns of one head.
    pub fn d_k(&self) -> usize {
        self.d_model / self.n_heads
    }
}

/// All weights of the encoder.
pub(super) struct Weights {
    pub(super) words: WordTable,
    /// `[max_positions, d_model]`: position and the first token type, which every token has.
    pub(super) positions: Vec<f32>,
    pub(super) embedding_norm: LayerNorm,
    pub(super) layers: Vec<LayerWeights>,
}

/// The weights of one layer.
pub(super) struct LayerWeights {
    /// Every head's queries, then keys, then values, each padded to [`head_width`] columns; the queries come out multiplied by
    /// `log2(e) / sqrt(d_k)`.
    pub(super) queries_keys_values: LinearWeights,
    pub(super) attention_output: LinearWeights,
    pub(super) attention_norm: LayerNorm,
    pub(super) intermediate: LinearWeights,
    pub(super) output: LinearWeights,
    pub(super) output_norm: LayerNorm,
}

/// Columns that a head's queries, keys and values take: `d_k` rounded up to whole panels.
pub(super) fn head_width(isa: Isa, shape: &EncoderShape) -> usize {
    shape.d_k().next_multiple_of(isa.panel_width())
}

impl Weights {
    pub(super) fn load<E>(
        isa: Isa,
        bytes: Option<ByteMachine>,
        shape: &EncoderShape,
        tensor: impl FnMut(&str) -> Result<Vec<f32>, E>,
    ) -> Result<Self, E> {
        let mut source = Source { isa, bytes, shape, tensor };
        let d_model = shape.d_model;
        let words = WordTable::new(source.values("embeddings.word_embeddings.weight", shape.vocab_size * d_model)?);
        let mut positions = source.values("embeddings.position_embeddings.weight", shape.max_positions * d_model)?;
        let types = (source.tensor)("embeddings.token_type_embeddings.weight")?;
        for row in positions.chunks_exact_mut(d_model) {
            for (value, first_type) in row.iter_mut().zip(&types[..d_model]) {
                *value += first_type;
            }
        }
        Ok(Self {
            words,
            positions,
            embedding_norm: source.layer_norm("embeddings.LayerNorm")?,
            layers: (0..shape.n_layers).map(|i| source.layer(i)).collect::<Result<_, _>>()?,
        })
    }
}

/// Reads named tensors and packs them.
struct Source<'a, T> {
    isa: Isa,
    /// Linear layers on bytes, where there is a machine for them.
    bytes: Option<ByteMachine>,
    shape: &'a EncoderShape,
    tensor: T,
}

impl<E, T: FnMut(&str) -> Result<Vec<f32>, E>> Source<'_, T> {
    fn layer(&mut self, index: usize) -> Result<LayerWeights, E> {
        let &EncoderShape { d_model, d_ff, .. } = self.shape;
        let path = format!("encoder.layer.{index}");
        Ok(LayerWeights {
            queries_keys_values: self.queries_keys_values(&format!("{path}.attention.self"))?,
            attention_output: self.linear(&format!("{path}.attention.output.dense"), d_model, d_model)?,
            attention_norm: self.layer_norm(&format!("{path}.attention.output.LayerNorm"))?,
            intermediate: self.linear(&format!("{path}.intermediate.dense"), d_model, d_ff)?,
            output: self.linear(&format!("{path}.output.dense"), d_ff, d_model)?,
            output_norm: self.layer_norm(&format!("{path}.output.LayerNorm"))?,
        })
    }

    fn queries_keys_values(&mut self, path: &str) -> Result<LinearWeights, E> {
        let &EncoderShape { d_model, n_heads, .. } = self.shape;
        let (d_k, width) = (self.shape.d_k(), head_width(self.isa, self.shape));
        let query_scale = std::f32::consts::LOG2_E / (d_k as f32).sqrt();
        let mut matrix = LinearWeights::new(self.isa, self.bytes, d_model, 3 * n_heads * width);
        for (part, (name, scale)) in [("query", query_scale), ("key", 1.0), ("value", 1.0)].into_iter().enumerate() {
            let weight = self.values(&format!("{path}.{name}.weight"), d_model * d_model)?;
            let bias = self.values(&format!("{path}.{name}.bias"), d_model)?;
            let heads = weight.chunks_exact(d_k * d_model).zip(bias.chunks_exact(d_k));
            for (head, (weight, bias)) in heads.enumerate() {
                matrix.set_columns((part * n_heads + head) * width, weight, bias, scale);
            }
        }
        Ok(matrix)
    }

    fn linear(&mut self, path: &str, inputs: usize, outputs: usize) -> Result<LinearWeights, E> {
        let weight = self.values(&format!("{path}.weight"), inputs * outputs)?;
        let bias = self.values(&format!("{path}.bias"), outputs)?;
        let mut matrix = LinearWeights::new(self.isa, self.bytes, inputs, outputs);
        matrix.set_columns(0, &weight, &bias, 1.0);
        Ok(matrix)
    }

    fn layer_norm(&mut self, path: &str) -> Result<LayerNorm, E> {
        Ok(LayerNorm {
            weight: self.values(&format!("{path}.weight"), self.shape.d_model)?,
            bias: self.values(&format!("{path}.bias"), self.shape.d_model)?,
            eps: self.shape.layer_norm_eps as f32,
        })
    }

    fn values(&mut self, name: &str, len: usize) -> Result<Vec<f32>, E> {
        let values = (self.tensor)(name)?;
        assert_eq!(values.len(), len, "tensor {name} has the shape that the configuration gives it");
        Ok(values)
    }
}

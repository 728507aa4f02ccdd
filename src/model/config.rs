//! The shape of a BERT-type encoder, read from Hugging Face's `config.json`.

use serde::Deserialize;

use super::ModelError;

/// Sizes and constants of an encoder, in our names (the checkpoint's names stand in [`EncoderConfig::from_json`]).
///
/// ```
/// use postroom::model::EncoderConfig;
///
/// let config = EncoderConfig::from_json(
///     r#"{"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16,
///         "max_position_embeddings": 32, "vocab_size": 100}"#,
/// )?;
/// assert_eq!(config.d_k(), 4);
/// # Ok::<(), postroom::model::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderConfig {
    /// Width of a hidden state (`hidden_size`).
    pub d_model: usize,
    /// Attention heads per layer (`num_attention_heads`).
    pub n_heads: usize,
    /// Encoder layers (`num_hidden_layers`).
    pub n_layers: usize,
    /// Width of the feed-forward layer (`intermediate_size`).
    pub d_ff: usize,
    /// Longest window in tokens (`max_position_embeddings`).
    pub max_positions: usize,
    /// Rows of the word embedding table (`vocab_size`).
    pub vocab_size: usize,
    /// Rows of the token type table (`type_vocab_size`); we always use row 0.
    pub type_vocab_size: usize,
    /// Added to the variance in LayerNorm (`layer_norm_eps`).
    pub layer_norm_eps: f64,
}

/// `config.json` as Hugging Face writes it. Unknown keys are expected there: it holds training settings too.
#[derive(Deserialize)]
struct HuggingFaceConfig {
    hidden_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    #[serde(default = "default_type_vocab_size")]
    type_vocab_size: usize,
    #[serde(default = "default_layer_norm_eps")]
    layer_norm_eps: f64,
    #[serde(default)]
    hidden_act: Option<String>,
    #[serde(default)]
    position_embedding_type: Option<String>,
    #[serde(default)]
    model_type: Option<String>,
}

fn default_type_vocab_size() -> usize {
    2
}

fn default_layer_norm_eps() -> f64 {
    1e-12
}

impl EncoderConfig {
    /// Reads Hugging Face's `config.json`.
    ///
    /// # Errors
    /// [`ModelError::BadConfig`] where the text is no such configuration, [`ModelError::Unsupported`] where it
    /// describes an encoder of another kind (activation, positions, model type).
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        let read: HuggingFaceConfig =
            serde_json::from_str(text).map_err(|source| ModelError::BadConfig { reason: source.to_string() })?;
        only("model_type", read.model_type.as_deref(), &["bert"])?;
        only("hidden_act", read.hidden_act.as_deref(), &["gelu"])?;
        only("position_embedding_type", read.position_embedding_type.as_deref(), &["absolute"])?;
        let config = Self {
            d_model: read.hidden_size,
            n_heads: read.num_attention_heads,
            n_layers: read.num_hidden_layers,
            d_ff: read.intermediate_size,
            max_positions: read.max_position_embeddings,
            vocab_size: read.vocab_size,
            type_vocab_size: read.type_vocab_size,
            layer_norm_eps: read.layer_norm_eps,
        };
        config.check()?;
        Ok(config)
    }

    /// Width of one head: `d_model / n_heads`.
    #[must_use]
    pub fn d_k(&self) -> usize {
        self.d_model / self.n_heads
    }

    /// Multiplications and additions of a forward pass over one window of `tokens`: linear layers, scores and their sums over
    /// the values, each counted as if no two were fused.
    ///
    /// ```
    /// # use postroom::model::EncoderConfig;
    /// # let config = EncoderConfig::from_json(
    /// #     r#"{"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16,
    /// #         "max_position_embeddings": 32, "vocab_size": 100}"#,
    /// # )?;
    /// assert_eq!(config.forward_operations(3), f64::from(3 * 2 * (4 * 8 * 8 + 2 * 8 * 16) + 2 * 2 * 3 * 3 * 8));
    /// # Ok::<(), postroom::model::ModelError>(())
    /// ```
    #[must_use]
    pub fn forward_operations(&self, tokens: usize) -> f64 {
        let [d, f, tokens] = [self.d_model, self.d_ff, tokens].map(|size| size as f64);
        let linear = 2.0 * tokens * (4.0 * d * d + 2.0 * d * f);
        let attention = 4.0 * tokens * tokens * d;
        self.n_layers as f64 * (linear + attention)
    }

    fn check(&self) -> Result<(), ModelError> {
        let sizes = [
            ("hidden_size", self.d_model),
            ("num_attention_heads", self.n_heads),
            ("num_hidden_layers", self.n_layers),
            ("intermediate_size", self.d_ff),
            ("max_position_embeddings", self.max_positions),
            ("vocab_size", self.vocab_size),
            ("type_vocab_size", self.type_vocab_size),
        ];
        // Above any real encoder; keeps products of two sizes far from overflow.
        const LIMIT: usize = 1 << 24;
        for (name, size) in sizes {
            if size == 0 || size > LIMIT {
                return Err(ModelError::BadConfig { reason: format!("{name} is {size}, outside 1..={LIMIT}") });
            }
        }
        if !self.d_model.is_multiple_of(self.n_heads) {
            return Err(ModelError::BadConfig {
                reason: format!(
                    "hidden_size {} is not a multiple of num_attention_heads {}",
                    self.d_model, self.n_heads
                ),
            });
        }
        if !(self.layer_norm_eps > 0.0 && self.layer_norm_eps < 1.0) {
            return Err(ModelError::BadConfig {
                reason: format!("layer_norm_eps is {}, outside (0, 1)", self.layer_norm_eps),
            });
        }
        Ok(())
    }

    /// Every tensor of the encoder with its shape, by its Hugging Face name without a `bert.` prefix.
    #[must_use]
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (d, f) = (self.d_model, self.d_ff);
        let mut tensors = vec![
            ("embeddings.word_embeddings.weight".to_owned(), vec![self.vocab_size, d]),
            ("embeddings.position_embeddings.weight".to_owned(), vec![self.max_positions, d]),
            ("embeddings.token_type_embeddings.weight".to_owned(), vec![self.type_vocab_size, d]),
        ];
        push_layer_norm(&mut tensors, "embeddings.LayerNorm", d);
        for layer in 0..self.n_layers {
            let prefix = format!("encoder.layer.{layer}");
            for projection in ["query", "key", "value"] {
                push_linear(&mut tensors, &format!("{prefix}.attention.self.{projection}"), d, d);
            }
            push_linear(&mut tensors, &format!("{prefix}.attention.output.dense"), d, d);
            push_layer_norm(&mut tensors, &format!("{prefix}.attention.output.LayerNorm"), d);
            push_linear(&mut tensors, &format!("{prefix}.intermediate.dense"), d, f);
            push_linear(&mut tensors, &format!("{prefix}.output.dense"), f, d);
            push_layer_norm(&mut tensors, &format!("{prefix}.output.LayerNorm"), d);
        }
        tensors
    }
}

fn push_linear(tensors: &mut Vec<(String, Vec<usize>)>, name: &str, inputs: usize, outputs: usize) {
    tensors.push((format!("{name}.weight"), vec![outputs, inputs]));
    tensors.push((format!("{name}.bias"), vec![outputs]));
}

fn push_layer_norm(tensors: &mut Vec<(String, Vec<usize>)>, name: &str, width: usize) {
    tensors.push((format!("{name}.weight"), vec![width]));
    tensors.push((format!("{name}.bias"), vec![width]));
}

/// Refuses a value that this forward pass does not compute; an absent one means the first of `allowed`.
fn only(field: &'static str, value: Option<&str>, allowed: &[&str]) -> Result<(), ModelError> {
    match value {
        Some(value) if !allowed.contains(&value) => {
            Err(ModelError::Unsupported { field, value: value.to_owned(), allowed: allowed.join(", ") })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(extra: &str) -> String {
        format!(
            r#"{{"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16,
                "max_position_embeddings": 32, "vocab_size": 100{extra}}}"#
        )
    }

    #[test]
    fn another_activation_is_refused_by_name() {
        let error = EncoderConfig::from_json(&json(r#", "hidden_act": "relu""#)).unwrap_err();
        assert_eq!(error.to_string(), "hidden_act `relu` is not supported (supported: gelu)");
    }

    #[test]
    fn heads_must_divide_the_width() {
        let text = json("").replace("\"num_attention_heads\": 2", "\"num_attention_heads\": 3");
        let error = EncoderConfig::from_json(&text).unwrap_err();
        assert!(error.to_string().contains("not a multiple"), "{error}");
    }

    #[test]
    fn zero_and_absurd_sizes_are_refused() {
        for size in ["0", "4294967296"] {
            let text = json("").replace("\"hidden_size\": 8", &format!("\"hidden_size\": {size}"));
            assert!(EncoderConfig::from_json(&text).is_err(), "{size}");
        }
    }

    #[test]
    fn each_layer_has_sixteen_tensors() {
        let config = EncoderConfig::from_json(&json("")).unwrap();
        assert_eq!(config.tensors().len(), 5 + 2 * 16);
    }
}

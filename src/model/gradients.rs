//! Gradients of one score: by the weights of every layer's attention, and by the words.
//!
//! The score is a function of all windows of a mail, but only through their last hidden states. So it is differentiated in two
//! steps that together are exact: [`pool_score`] gives the score and its gradient by the hidden states of all windows at once,
//! [`WindowPass::backward`] carries that gradient down through one window, so that memory is that of one window however long the
//! mail. Axis letters: H heads, T tokens, D d_model, C logits.

use candle_core::{D, DType, Tensor, Var};

use super::ModelError;
use super::encoder::{Encoder, Traced};
use super::head::Head;

/// A queue's logit, or its lead over another's, as a function of the network's logits.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The logits that make up the queue: `T ln sum exp(z / T)` of them, the logit itself where it stands alone.
    pub plus: Vec<usize>,
    /// Those of the other queue; empty where there is none.
    pub minus: Vec<usize>,
    /// Added to the network's logits and held fixed: what the words have added.
    pub offsets: Vec<f32>,
    /// `T`.
    pub temperature: f64,
}

impl Score {
    fn of(&self, logits: &Tensor) -> Result<Tensor, ModelError> {
        let offsets = Tensor::new(self.offsets.as_slice(), logits.device())?.to_dtype(logits.dtype())?;
        let logits = (logits + offsets)?;
        let plus = self.joined(&logits, &self.plus)?;
        if self.minus.is_empty() { Ok(plus) } else { Ok((plus - self.joined(&logits, &self.minus)?)?) }
    }

    fn joined(&self, logits: &Tensor, members: &[usize]) -> Result<Tensor, ModelError> {
        let own = select(logits, members)?;
        if members.len() == 1 {
            return Ok(own.sum_all()?);
        }
        // With a small temperature `exp(z / T)` leaves the range of f32, so the largest logit is taken out first. It is held
        // fixed: what it adds to the slope outside the sum it would take away inside.
        let largest = own.detach().max(0)?;
        let sum = (own.broadcast_sub(&largest)? / self.temperature)?.exp()?.sum_all()?;
        Ok(((sum.log()? * self.temperature)? + largest)?)
    }

    /// How much each logit moves the score, `[C]`.
    fn shares(&self, logits: &Tensor) -> Result<Vec<f64>, ModelError> {
        let logits = Var::from_tensor(&logits.to_dtype(DType::F64)?.detach())?;
        let store = self.of(logits.as_tensor())?.backward()?;
        let gradient = store.get(logits.as_tensor()).ok_or(ModelError::BadBatch)?;
        Ok(gradient.to_vec1::<f64>()?)
    }
}

fn select(logits: &Tensor, members: &[usize]) -> Result<Tensor, ModelError> {
    let members: Vec<u32> = members.iter().map(|&member| member as u32).collect();
    Ok(logits.index_select(&Tensor::new(members, logits.device())?, 0)?)
}

/// A score, and what it owes to each token's last hidden state.
#[derive(Debug, Clone)]
pub struct PooledScore {
    /// Its value.
    pub score: f64,
    /// Its gradient by the hidden states of all windows, `[T, D]`.
    pub gradient: Tensor,
    /// How much each token counts, `[T]`; they sum to 1 for a single queue.
    pub weights: Vec<f64>,
    /// What each token adds, `[T]`, those of a compared queue subtracted.
    pub contributions: Vec<f64>,
}

/// The value alone of what [`pool_score`] gives.
///
/// # Errors
/// [`ModelError::NotFinite`]; where the shapes do not fit.
pub fn score_value(head: &Head, score: &Score, hidden_states: &Tensor, shares: &[f32]) -> Result<f64, ModelError> {
    scalar(&score.of(&head.of_tokens(hidden_states, shares)?.logits)?)
}

/// The score from the hidden states `[T, D]` of all windows of a mail, one after another, and the tokens' shares.
///
/// # Errors
/// [`ModelError::NotFinite`]; where the shapes do not fit.
pub fn pool_score(
    head: &Head,
    score: &Score,
    hidden_states: &Tensor,
    shares: &[f32],
) -> Result<PooledScore, ModelError> {
    let states = Var::from_tensor(&hidden_states.detach())?;
    let pooled = head.of_tokens(states.as_tensor(), shares)?;
    let value = score.of(&pooled.logits)?;
    let store = value.backward()?;
    let gradient = store.get(states.as_tensor()).ok_or(ModelError::BadBatch)?.clone();
    let by_logit = score.shares(&pooled.logits)?;
    let sum = |matrix: &Tensor, shares: &dyn Fn(f64) -> f64| -> Result<Vec<f64>, ModelError> {
        let rows = matrix.to_dtype(DType::F64)?.to_vec2::<f64>()?;
        Ok(rows.iter().map(|row| row.iter().zip(&by_logit).map(|(a, &b)| a * shares(b)).sum()).collect())
    };
    Ok(PooledScore {
        score: scalar(&value)?,
        gradient,
        weights: sum(&pooled.weights, &|share| share.max(0.0))?,
        contributions: sum(&pooled.contributions, &|share| share)?,
    })
}

/// One window on its way forward, ready to go back.
pub struct WindowPass {
    words: Var,
    probes: Vec<Var>,
    traced: Traced,
}

/// Gradients in one window.
pub struct WindowGradients {
    /// By the word vectors, `[T, D]`.
    pub words: Tensor,
    /// For each layer by its weights, `[H, T, T]`; none where they were not asked for.
    pub attentions: Vec<Tensor>,
}

impl WindowPass {
    /// Runs a window from its word vectors, `[T, D]`. `maps` prepares gradients by the weights of the attention.
    ///
    /// # Errors
    /// Where the shapes do not fit.
    pub fn forward(encoder: &Encoder, words: &Tensor, maps: bool) -> Result<Self, ModelError> {
        let words = Var::from_tensor(&words.detach())?;
        let (tokens, config) = (words.dim(0)?, encoder.config());
        let zeros = || Var::zeros((1, config.n_heads, tokens, tokens), words.dtype(), words.device());
        let probes = (0..if maps { config.n_layers } else { 0 }).map(|_| zeros()).collect::<Result<Vec<_>, _>>()?;
        let plain: Vec<Tensor> = probes.iter().map(|probe| probe.as_tensor().clone()).collect();
        let traced = encoder.trace(words.as_tensor(), &plain)?;
        Ok(Self { words, probes, traced })
    }

    /// Last hidden states, `[T, D]`, without their history.
    #[must_use]
    pub fn hidden_states(&self) -> Tensor {
        self.traced.hidden_states.detach()
    }

    /// The map of a layer, `[H, T, T]`.
    ///
    /// # Errors
    /// Where there is no such layer.
    pub fn attention(&self, layer: usize) -> Result<Tensor, ModelError> {
        let map = self.traced.attentions.get(layer).ok_or(ModelError::BadBatch)?;
        Ok(map.detach().squeeze(0)?)
    }

    /// The map of a layer, each weight times the length of what it lets through, `[H, T, T]` (Kobayashi et al. 2020). Its rows do
    /// not sum to 1.
    ///
    /// # Errors
    /// Where there is no such layer.
    pub fn norm_attention(&self, encoder: &Encoder, layer: usize) -> Result<Tensor, ModelError> {
        let input = self.traced.inputs.get(layer).ok_or(ModelError::BadBatch)?.detach();
        let norms = encoder.value_norms(layer, &input)?.unsqueeze(1)?; //        [H, 1, T]
        Ok(self.attention(layer)?.broadcast_mul(&norms)?)
    }

    /// What goes into a layer, `[1, T, D]`, without its history.
    ///
    /// # Errors
    /// Where there is no such layer.
    pub fn input(&self, layer: usize) -> Result<Tensor, ModelError> {
        Ok(self.traced.inputs.get(layer).ok_or(ModelError::BadBatch)?.detach())
    }

    /// The word vectors that it was run from, `[T, D]`.
    #[must_use]
    pub fn words(&self) -> Tensor {
        self.words.as_detached_tensor()
    }

    /// Carries the gradient by the window's last hidden states, `[T, D]`, down to its words and maps.
    ///
    /// # Errors
    /// [`ModelError::BadBatch`] where a gradient is lost, candle's own.
    pub fn backward(&self, by_hidden_states: &Tensor) -> Result<WindowGradients, ModelError> {
        let score = (&self.traced.hidden_states * by_hidden_states)?.sum_all()?;
        let store = score.backward()?;
        let get = |var: &Var| store.get(var.as_tensor()).cloned().ok_or(ModelError::BadBatch);
        let attentions =
            self.probes.iter().map(|probe| Ok(get(probe)?.squeeze(0)?)).collect::<Result<_, ModelError>>()?;
        Ok(WindowGradients { words: get(&self.words)?, attentions })
    }
}

/// `sum_d x_td g_td` for each token.
///
/// # Errors
/// Where the shapes differ.
pub fn times_gradient(words: &Tensor, gradient: &Tensor) -> Result<Vec<f64>, ModelError> {
    let products = (words * gradient)?.sum(D::Minus1)?;
    Ok(products.to_dtype(DType::F64)?.to_vec1::<f64>()?)
}

fn scalar(value: &Tensor) -> Result<f64, ModelError> {
    let value = value.to_dtype(DType::F64)?.to_scalar::<f64>()?;
    if value.is_finite() { Ok(value) } else { Err(ModelError::NotFinite) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use candle_core::Device;
    use candle_nn::VarBuilder;

    use super::*;
    use crate::metrics::energy;
    use crate::model::{AttentionPooling, EncoderConfig};
    use crate::random::SplitMix64;

    const LOGITS: usize = 4;
    const STEP: f64 = 1e-5;

    fn config() -> EncoderConfig {
        EncoderConfig::from_json(
            r#"{"model_type": "bert", "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 3,
                "intermediate_size": 20, "max_position_embeddings": 9, "vocab_size": 11, "type_vocab_size": 2,
                "hidden_act": "gelu", "layer_norm_eps": 1e-12}"#,
        )
        .unwrap()
    }

    fn tensors() -> HashMap<String, Tensor> {
        let mut random = SplitMix64::seeded(11);
        let mut tensors = HashMap::new();
        for (name, shape) in config().tensors() {
            let near = if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 };
            let n = shape.iter().product::<usize>();
            let values: Vec<f64> = (0..n).map(|_| near + 1.2 * (random.uniform() - 0.5)).collect();
            tensors.insert(name, Tensor::from_vec(values, shape, &Device::Cpu).unwrap());
        }
        tensors
    }

    fn encoder() -> Encoder {
        Encoder::load(&config(), &VarBuilder::from_tensors(tensors(), DType::F64, &Device::Cpu)).unwrap()
    }

    fn head() -> Head {
        let mut random = SplitMix64::seeded(5);
        let mut take = |n: usize| (0..n).map(|_| (random.uniform() - 0.5) as f32).collect::<Vec<f32>>();
        Head::Attention(AttentionPooling::new(&take(LOGITS * 12), &take(LOGITS * 12), take(LOGITS)))
    }

    /// A queue of two logits against one of one.
    fn score() -> Score {
        Score { plus: vec![1, 3], minus: vec![0], offsets: vec![0.1, -0.2, 0.0, 0.3], temperature: 1.3 }
    }

    /// Two windows; the second counts only some of its tokens.
    const WINDOWS: [(&[u32], &[f32]); 2] =
        [(&[1, 7, 8, 9, 2], &[0.1, 0.2, 0.2, 0.1, 0.05]), (&[1, 9, 3, 10, 2], &[0.05, 0.0, 0.1, 0.1, 0.1])];

    fn shares() -> Vec<f32> {
        WINDOWS.iter().flat_map(|(_, shares)| shares.iter().copied()).collect()
    }

    /// The score with something added to the weights of one layer, or to the words, of one window.
    fn value(encoder: &Encoder, window: usize, layer: Option<usize>, moved: &Tensor) -> f64 {
        let mut states = Vec::new();
        for (index, (ids, _)) in WINDOWS.iter().enumerate() {
            let mut words = encoder.word_vectors(ids).unwrap();
            let mut probes = vec![Tensor::zeros((1, 3, 5, 5), DType::F64, &Device::Cpu).unwrap(); 3];
            match layer {
                _ if index != window => {}
                Some(layer) => probes[layer] = moved.clone(),
                None => words = (words + moved).unwrap(),
            }
            states.push(encoder.trace(&words, &probes).unwrap().hidden_states);
        }
        let states = Tensor::cat(&states, 0).unwrap();
        pool_score(&head(), &score(), &states, &shares()).unwrap().score
    }

    fn gradients(encoder: &Encoder) -> Vec<WindowGradients> {
        let pass = |ids: &[u32]| WindowPass::forward(encoder, &encoder.word_vectors(ids).unwrap(), true).unwrap();
        let passes: Vec<WindowPass> = WINDOWS.iter().map(|(ids, _)| pass(ids)).collect();
        let states: Vec<Tensor> = passes.iter().map(WindowPass::hidden_states).collect();
        let pooled = pool_score(&head(), &score(), &Tensor::cat(&states, 0).unwrap(), &shares()).unwrap();
        let part = |window: usize| pooled.gradient.narrow(0, 5 * window, 5).unwrap();
        passes.iter().enumerate().map(|(window, pass)| pass.backward(&part(window)).unwrap()).collect()
    }

    fn slope(encoder: &Encoder, window: usize, layer: Option<usize>, shape: &[usize], place: usize) -> f64 {
        let n: usize = shape.iter().product();
        let at = |step: f64| {
            let mut moved = vec![0f64; n];
            moved[place] = step;
            value(encoder, window, layer, &Tensor::from_vec(moved, shape, &Device::Cpu).unwrap())
        };
        (at(STEP) - at(-STEP)) / (2.0 * STEP)
    }

    #[test]
    fn the_gradient_of_every_layers_weights_is_the_slope_of_the_score() {
        let encoder = encoder();
        let gradients = gradients(&encoder);
        let mut random = SplitMix64::seeded(3);
        let mut largest = 0f64;
        for (window, gradients) in gradients.iter().enumerate() {
            for (layer, gradient) in gradients.attentions.iter().enumerate() {
                let gradient = gradient.flatten_all().unwrap().to_vec1::<f64>().unwrap();
                for _ in 0..8 {
                    let place = random.below(gradient.len());
                    let slope = slope(&encoder, window, Some(layer), &[1, 3, 5, 5], place);
                    let error = (slope - gradient[place]).abs();
                    assert!(error < 1e-7 + 1e-5 * slope.abs(), "layer {layer}: {slope} {}", gradient[place]);
                    largest = largest.max(slope.abs());
                }
            }
        }
        assert!(largest > 1e-3, "gradients of nothing prove nothing");
    }

    #[test]
    fn the_gradient_of_the_words_is_the_slope_of_the_score() {
        let encoder = encoder();
        for (window, gradients) in gradients(&encoder).iter().enumerate() {
            let gradient = gradients.words.flatten_all().unwrap().to_vec1::<f64>().unwrap();
            for place in (0..gradient.len()).step_by(7) {
                let slope = slope(&encoder, window, None, &[5, 12], place);
                assert!((slope - gradient[place]).abs() < 1e-7 + 1e-5 * slope.abs(), "{slope} {}", gradient[place]);
            }
        }
    }

    #[test]
    fn first_order_importance_of_a_head_is_the_slope_by_its_gate() {
        // <A, G> is what the score loses per unit that the head's gate is closed (Michel et al. 2019).
        let encoder = encoder();
        let words = encoder.word_vectors(WINDOWS[0].0).unwrap();
        let pass = WindowPass::forward(&encoder, &words, true).unwrap();
        let shares: Vec<f32> = vec![0.2; 5];
        let pooled = pool_score(&head(), &score(), &pass.hidden_states(), &shares).unwrap();
        let gradients = pass.backward(&pooled.gradient).unwrap();
        let traced = encoder.trace(&words, &[]).unwrap();
        let map = pass.attention(1).unwrap();
        for head_index in 0..3 {
            let inner = (map.get(head_index).unwrap() * gradients.attentions[1].get(head_index).unwrap()).unwrap();
            let inner = inner.sum_all().unwrap().to_scalar::<f64>().unwrap();
            let probe = |scale: f64| {
                let mut rows = vec![Tensor::zeros((5, 5), DType::F64, &Device::Cpu).unwrap(); 3];
                rows[head_index] = (map.get(head_index).unwrap() * scale).unwrap();
                let zero = Tensor::zeros((1, 3, 5, 5), DType::F64, &Device::Cpu).unwrap();
                let probes = [zero.clone(), Tensor::stack(&rows, 0).unwrap().unsqueeze(0).unwrap(), zero];
                let states = encoder.trace(&words, &probes).unwrap().hidden_states;
                pool_score(&head(), &score(), &states, &shares).unwrap().score
            };
            let slope = (probe(1e-5) - probe(-1e-5)) / 2e-5;
            assert!((slope - inner).abs() < 1e-6, "{slope} {inner}");
            // Silencing the head is the probe that takes its whole map away.
            let silent = encoder.without_heads(1, &[head_index], &traced.inputs[1]).unwrap();
            let silent = pool_score(&head(), &score(), &silent.get(0).unwrap(), &shares).unwrap().score;
            assert!((silent - probe(-1.0)).abs() < 1e-9, "{silent}");
        }
    }

    #[test]
    fn a_merged_queue_has_a_score_and_a_slope_at_a_small_temperature() {
        let score = Score { plus: vec![0, 1], minus: vec![2, 3], offsets: vec![0.0; LOGITS], temperature: 0.05 };
        for side in [6f32, -6.0] {
            // exp(6 / 0.05) is more than f32 holds, exp(-6 / 0.05) is zero in it.
            let values = [side, side - 0.05, -side, -side - 0.1];
            let logits = Var::from_tensor(&Tensor::new(&values, &Device::Cpu).unwrap()).unwrap();
            let value = score.of(logits.as_tensor()).unwrap();
            let expected = energy(&values[..2], 0.05) - energy(&values[2..], 0.05);
            assert!((scalar(&value).unwrap() - expected).abs() < 1e-5, "{side}");
            let store = value.backward().unwrap();
            let slope = store.get(logits.as_tensor()).unwrap().to_vec1::<f32>().unwrap();
            for (members, sign) in [(&slope[..2], 1f32), (&slope[2..], -1.0)] {
                assert!((members.iter().sum::<f32>() - sign).abs() < 1e-5, "{side}: {slope:?}");
            }
        }
    }

    #[test]
    fn a_score_that_is_no_number_is_refused() {
        let states = Tensor::full(f64::NAN, (5, 12), &Device::Cpu).unwrap();
        assert!(matches!(score_value(&head(), &score(), &states, &[0.2; 5]), Err(ModelError::NotFinite)));
        assert!(matches!(pool_score(&head(), &score(), &states, &[0.2; 5]), Err(ModelError::NotFinite)));
    }

    #[test]
    fn weights_sum_to_one_and_contributions_to_the_score() {
        let encoder = encoder();
        let states = encoder.trace(&encoder.word_vectors(WINDOWS[0].0).unwrap(), &[]).unwrap().hidden_states;
        let plain = Score { plus: vec![2], minus: vec![], offsets: vec![0.0; LOGITS], temperature: 1.0 };
        let pooled = pool_score(&head(), &plain, &states, &[0.2; 5]).unwrap();
        assert!((pooled.weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let Head::Attention(pooling) = head() else { unreachable!() };
        let sum = pooled.contributions.iter().sum::<f64>() + f64::from(pooling.bias()[2]);
        assert!((sum - pooled.score).abs() < 1e-6);
    }

    #[test]
    fn norms_are_the_lengths_of_what_a_head_hands_over() {
        let (encoder, tensors) = (encoder(), tensors());
        let get = |name: &str| tensors[&format!("encoder.layer.0.attention.{name}")].clone();
        let input = encoder.trace(&encoder.word_vectors(WINDOWS[0].0).unwrap(), &[]).unwrap().inputs[0].clone();
        let norms = encoder.value_norms(0, &input).unwrap().to_vec2::<f64>().unwrap();
        let x = input.squeeze(0).unwrap().to_vec2::<f64>().unwrap();
        let (value, bias) = (get("self.value.weight").to_vec2::<f64>().unwrap(), get("self.value.bias"));
        let (bias, output) = (bias.to_vec1::<f64>().unwrap(), get("output.dense.weight").to_vec2::<f64>().unwrap());
        for (head, norms) in norms.iter().enumerate() {
            for (token, norm) in norms.iter().enumerate() {
                let v: Vec<f64> = (4 * head..4 * head + 4)
                    .map(|row| bias[row] + value[row].iter().zip(&x[token]).map(|(w, x)| w * x).sum::<f64>())
                    .collect();
                let handed = |row: &Vec<f64>| (0..4).map(|k| row[4 * head + k] * v[k]).sum::<f64>();
                let expected = output.iter().map(|row| handed(row).powi(2)).sum::<f64>().sqrt();
                assert!((norm - expected).abs() < 1e-9, "{norm} {expected}");
            }
        }
    }
}

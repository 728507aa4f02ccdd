//! The network in training on the CPU: forward and backward pass on plain slices, over packed windows, in memory that is kept.
//!
//! It computes what [`super::TrainableEncoder`] and [`super::TrainableHead`] compute through candle's gradients, and tests hold
//! the two together. Doing it by hand is worth it: no gradient is zeroed, added and thrown away for each step of the network, and
//! nearly all time goes into matrix products. Axis letters: T packed tokens, D d_model, F d_ff, C queues.

mod attention;
mod head;
mod linear;
mod matmul;

use std::collections::HashMap;

use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;
use rayon::prelude::*;

use super::adapter::LoraConfig;
use super::{Adaptation, Dropout};
use crate::model::cpu::MovingWeights;
use crate::model::cpu::training::{gelu_backward, gelu_forward, layer_norm_backward, layer_norm_forward};
use crate::model::{EncoderConfig, ModelError, PackedBatch};
use attention::{Inputs, Windows};
use head::{Head, cross_entropy, wanted};
use linear::{Adapter, Linear};

/// Where a tensor's values are.
#[derive(Debug, Clone, Copy)]
enum Slot {
    /// With the caller, who moves them.
    Trained(usize),
    /// Here, for good.
    Fixed(usize),
}

/// All tensors while a pass runs.
struct Tensors<'a> {
    fixed: &'a [Vec<f32>],
    trained: &'a [Vec<f32>],
}

impl Tensors<'_> {
    fn get(&self, slot: Slot) -> &[f32] {
        match slot {
            Slot::Trained(index) => &self.trained[index],
            Slot::Fixed(index) => &self.fixed[index],
        }
    }
}

/// One sum of gradients for each trained tensor.
#[derive(Debug, Clone)]
pub struct Gradients {
    sums: Vec<Vec<f32>>,
}

impl Gradients {
    /// Zeros for trained tensors of these sizes.
    #[must_use]
    pub fn zeros(sizes: impl IntoIterator<Item = usize>) -> Self {
        Self { sums: sizes.into_iter().map(|size| vec![0.0; size]).collect() }
    }

    /// Back to zero.
    pub fn clear(&mut self) {
        self.sums.iter_mut().for_each(|sum| sum.fill(0.0));
    }

    /// In the order of the trained tensors.
    #[must_use]
    pub fn sums(&self) -> &[Vec<f32>] {
        &self.sums
    }

    /// To add to, in the order of the trained tensors.
    pub fn sums_mut(&mut self) -> &mut [Vec<f32>] {
        &mut self.sums
    }

    fn of(&mut self, slot: Slot) -> Option<&mut [f32]> {
        match slot {
            Slot::Trained(index) => Some(&mut self.sums[index]),
            Slot::Fixed(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Norm {
    weight: Slot,
    bias: Slot,
}

#[derive(Debug, Clone)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    intermediate: Linear,
    output: Linear,
    output_norm: Norm,
}

/// The linear layers of a [`Layer`], as the kernels read them.
struct PackedLayer {
    query: MovingWeights,
    key: MovingWeights,
    value: MovingWeights,
    attention_output: MovingWeights,
    intermediate: MovingWeights,
    output: MovingWeights,
}

impl Layer {
    fn packed(&self, tensors: &Tensors<'_>) -> PackedLayer {
        PackedLayer {
            query: self.query.packed(tensors),
            key: self.key.packed(tensors),
            value: self.value.packed(tensors),
            attention_output: self.attention_output.packed(tensors),
            intermediate: self.intermediate.packed(tensors),
            output: self.output.packed(tensors),
        }
    }
}

/// What the backward pass needs of a layer's forward pass. `[T, D]` where nothing is said.
#[derive(Default)]
struct Saved {
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    context: Vec<f32>,
    attention_mask: Vec<f32>,
    attention_sum: Vec<f32>,
    middle: Vec<f32>,
    /// `[T, F]`, before the GELU.
    wide: Vec<f32>,
    /// `[T, F]`, behind it.
    activated: Vec<f32>,
    output_mask: Vec<f32>,
    output_sum: Vec<f32>,
}

/// See the module.
pub struct PackedNetwork {
    config: EncoderConfig,
    fixed: Vec<Vec<f32>>,
    words: Slot,
    /// With the token type added, which is the same for all tokens.
    positions: Slot,
    embedding_norm: Norm,
    layers: Vec<Layer>,
    head: Head,
    packed: Vec<PackedLayer>,
    /// The trained values that `packed` was made of.
    packed_from: Vec<Vec<f32>>,
    saved: Vec<Saved>,
    /// The states before each layer and behind the last.
    states: Vec<Vec<f32>>,
}

/// Finds tensors by name: among those that are trained, or else among the encoder's.
struct Builder<'a> {
    weights: &'a VarBuilder<'a>,
    trained: HashMap<&'a str, usize>,
    fixed: Vec<Vec<f32>>,
    lora: Option<LoraConfig>,
}

impl Builder<'_> {
    fn slot(&mut self, name: &str, shape: &[usize]) -> Result<Slot, ModelError> {
        if let Some(&index) = self.trained.get(name) {
            return Ok(Slot::Trained(index));
        }
        let values = self.weights.get(shape, name)?.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
        self.fixed.push(values);
        Ok(Slot::Fixed(self.fixed.len() - 1))
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<Norm, ModelError> {
        let weight = self.slot(&format!("{name}.weight"), &[width])?;
        Ok(Norm { weight, bias: self.slot(&format!("{name}.bias"), &[width])? })
    }

    fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Linear, ModelError> {
        let adapter = match self.lora {
            None => None,
            Some(LoraConfig { rank, .. }) => Some(Adapter {
                down: self.slot(&format!("{name}.lora_A.weight"), &[rank, inputs])?,
                up: self.slot(&format!("{name}.lora_B.weight"), &[outputs, rank])?,
                rank,
                scale: self.lora.map_or(0.0, |lora| lora.scale() as f32),
            }),
        };
        let weight = self.slot(&format!("{name}.weight"), &[outputs, inputs])?;
        let bias = self.slot(&format!("{name}.bias"), &[outputs])?;
        Ok(Linear { weight, bias, adapter, inputs, outputs })
    }
}

impl PackedNetwork {
    /// A network whose trained tensors have these names, in the order in which their values will be given: those of
    /// [`super::TrainableEncoder::parameters`] and [`super::TrainableHead::parameters`]. Its other tensors are read here.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn new(
        config: &EncoderConfig,
        weights: &VarBuilder<'_>,
        adaptation: Adaptation,
        trained: &[String],
        n_queues: usize,
    ) -> Result<Self, ModelError> {
        let (d, f) = (config.d_model, config.d_ff);
        let lora = match adaptation {
            Adaptation::Lora(lora) => Some(lora),
            Adaptation::Full => None,
        };
        let trained = trained.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        let mut builder = Builder { weights, trained, fixed: Vec::new(), lora };
        let words = builder.slot("embeddings.word_embeddings.weight", &[config.vocab_size, d])?;
        let positions = weights.get((config.max_positions, d), "embeddings.position_embeddings.weight")?;
        let types = weights.get((config.type_vocab_size, d), "embeddings.token_type_embeddings.weight")?;
        let positions = positions.broadcast_add(&types.narrow(0, 0, 1)?)?.to_dtype(DType::F32)?;
        builder.fixed.push(positions.flatten_all()?.to_vec1()?);
        let positions = Slot::Fixed(builder.fixed.len() - 1);
        let embedding_norm = builder.norm("embeddings.LayerNorm", d)?;
        let mut layers = Vec::with_capacity(config.n_layers);
        for layer in 0..config.n_layers {
            let at = |part: &str| format!("encoder.layer.{layer}.{part}");
            layers.push(Layer {
                query: builder.linear(&at("attention.self.query"), d, d)?,
                key: builder.linear(&at("attention.self.key"), d, d)?,
                value: builder.linear(&at("attention.self.value"), d, d)?,
                attention_output: builder.linear(&at("attention.output.dense"), d, d)?,
                attention_norm: builder.norm(&at("attention.output.LayerNorm"), d)?,
                intermediate: builder.linear(&at("intermediate.dense"), d, f)?,
                output: builder.linear(&at("output.dense"), f, d)?,
                output_norm: builder.norm(&at("output.LayerNorm"), d)?,
            });
        }
        let head = Head {
            query: builder.slot("pooling.query", &[n_queues, d])?,
            weight: builder.slot("classifier.weight", &[n_queues, d])?,
            bias: builder.slot("classifier.bias", &[n_queues])?,
            n_queues,
            width: d,
        };
        Ok(Self {
            config: config.clone(),
            words,
            positions,
            embedding_norm,
            head,
            packed: Vec::new(),
            packed_from: Vec::new(),
            saved: layers.iter().map(|_| Saved::default()).collect(),
            states: vec![Vec::new(); layers.len() + 1],
            layers,
            fixed: builder.fixed,
        })
    }

    /// Logits `[mails, C]` of a batch, row by row.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s.
    pub fn logits(&mut self, trained: &[Vec<f32>], batch: &PackedBatch) -> Result<Vec<f32>, ModelError> {
        batch.check(self.config.max_positions, self.config.vocab_size)?;
        self.forward(trained, batch, None);
        let tensors = Tensors { fixed: &self.fixed, trained };
        Ok(self.head.forward(&tensors, self.states.last().map_or(&[], Vec::as_slice), batch).logits)
    }

    /// The loss of [`Objective`] summed over the mails, times `scale`; its gradients are added to `gradients`.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s.
    pub fn loss(
        &mut self,
        trained: &[Vec<f32>],
        batch: &PackedBatch,
        objective: &Objective<'_>,
        dropout: Option<&mut Dropout>,
        gradients: &mut Gradients,
    ) -> Result<f32, ModelError> {
        batch.check(self.config.max_positions, self.config.vocab_size)?;
        self.forward(trained, batch, dropout);
        let tensors = Tensors { fixed: &self.fixed, trained };
        let hidden_states = self.states.last().map_or(&[][..], Vec::as_slice);
        let pooled = self.head.forward(&tensors, hidden_states, batch);
        let (loss, mut slopes) =
            cross_entropy(&pooled.logits, objective.targets, self.head.n_queues, objective.label_smoothing);
        slopes.iter_mut().for_each(|slope| *slope *= objective.scale);
        let (by_evidence, score_slopes) = self.head.evidence_loss(&pooled, batch, objective);
        let loss = loss + by_evidence;
        let upstream = self.head.backward(&tensors, hidden_states, batch, pooled, (&slopes, score_slopes), gradients);
        self.backward(trained, batch, upstream, gradients);
        Ok(loss * objective.scale)
    }

    /// Packs the linear layers anew where the trained values have moved: once a step, which costs little beside it.
    fn follow(&mut self, trained: &[Vec<f32>]) {
        if self.packed_from != trained {
            let tensors = Tensors { fixed: &self.fixed, trained };
            self.packed = self.layers.par_iter().map(|layer| layer.packed(&tensors)).collect();
            self.packed_from = trained.to_vec();
        }
    }

    fn windows<'a>(&self, batch: &'a PackedBatch) -> Windows<'a> {
        Windows { offsets: &batch.window_offsets, n_heads: self.config.n_heads, width: self.config.d_model }
    }

    fn forward(&mut self, trained: &[Vec<f32>], batch: &PackedBatch, mut dropout: Option<&mut Dropout>) {
        let tokens = batch.input_ids.len();
        let (narrow, wide) = (tokens * self.config.d_model, tokens * self.config.d_ff);
        self.states.iter_mut().for_each(|state| state.resize(narrow, 0.0));
        self.follow(trained);
        self.embed(trained, batch);
        let windows = self.windows(batch);
        let eps = self.config.layer_norm_eps as f32;
        let tensors = Tensors { fixed: &self.fixed, trained };
        let layers = self.layers.iter().zip(&self.packed).zip(&mut self.saved);
        for (index, ((layer, packed), saved)) in layers.enumerate() {
            let (before, after) = self.states.split_at_mut(index + 1);
            let (x, out) = (&before[index], &mut after[0]);
            saved.resize(narrow, wide);
            packed.query.forward(x, &mut saved.queries);
            packed.key.forward(x, &mut saved.keys);
            packed.value.forward(x, &mut saved.values);
            let inputs = Inputs { queries: &saved.queries, keys: &saved.keys, values: &saved.values };
            attention::forward(inputs, windows, &mut saved.context);
            packed.attention_output.forward(&saved.context, &mut saved.attention_sum);
            drop_some(&mut saved.attention_sum, &mut saved.attention_mask, dropout.as_deref_mut());
            add(&mut saved.attention_sum, x);
            layer.attention_norm.forward(&tensors, &saved.attention_sum, eps, &mut saved.middle);
            packed.intermediate.forward(&saved.middle, &mut saved.wide);
            gelu_forward(&saved.wide, &mut saved.activated);
            packed.output.forward(&saved.activated, &mut saved.output_sum);
            drop_some(&mut saved.output_sum, &mut saved.output_mask, dropout.as_deref_mut());
            add(&mut saved.output_sum, &saved.middle);
            layer.output_norm.forward(&tensors, &saved.output_sum, eps, out);
        }
    }

    /// From the gradient of the last hidden states down; embeddings are not trained, so the lowest states need none.
    fn backward(
        &mut self,
        trained: &[Vec<f32>],
        batch: &PackedBatch,
        mut upstream: Vec<f32>,
        gradients: &mut Gradients,
    ) {
        let windows = self.windows(batch);
        let eps = self.config.layer_norm_eps as f32;
        let tensors = Tensors { fixed: &self.fixed, trained };
        let narrow = upstream.len();
        let wide = batch.input_ids.len() * self.config.d_ff;
        let (mut sum, mut grad_wide, mut slope_wide) = (vec![0.0; narrow], vec![0.0; wide], vec![0.0; wide]);
        let mut grad_context = vec![0.0; narrow];
        let (mut dq, mut dk, mut dv) = (vec![0.0; narrow], vec![0.0; narrow], vec![0.0; narrow]);
        let layers = self.layers.iter().zip(&self.packed).zip(&self.saved);
        for (index, ((layer, packed), saved)) in layers.enumerate().rev() {
            let x = &self.states[index];
            layer.output_norm.backward(&tensors, &saved.output_sum, eps, &upstream, &mut sum, gradients);
            let through = masked(&sum, &saved.output_mask);
            grad_wide.fill(0.0);
            layer.output.backward(&tensors, &saved.activated, &through, gradients);
            packed.output.backward(&through, &mut grad_wide);
            gelu_backward(&saved.wide, &grad_wide, &mut slope_wide);
            layer.intermediate.backward(&tensors, &saved.middle, &slope_wide, gradients);
            // What went around the feed-forward block is in `sum` already.
            packed.intermediate.backward(&slope_wide, &mut sum);

            layer.attention_norm.backward(&tensors, &saved.attention_sum, eps, &sum, &mut upstream, gradients);
            let through = masked(&upstream, &saved.attention_mask);
            grad_context.fill(0.0);
            layer.attention_output.backward(&tensors, &saved.context, &through, gradients);
            packed.attention_output.backward(&through, &mut grad_context);
            let into = attention::Gradients { queries: &mut dq, keys: &mut dk, values: &mut dv };
            attention::backward(saved.inputs(), windows, &grad_context, into);
            let inputs = [
                (&layer.query, &packed.query, &dq),
                (&layer.key, &packed.key, &dk),
                (&layer.value, &packed.value, &dv),
            ];
            for (linear, packed, slope) in inputs {
                linear.backward(&tensors, x, slope, gradients);
                if index > 0 {
                    packed.backward(slope, &mut upstream);
                }
            }
        }
    }

    fn embed(&mut self, trained: &[Vec<f32>], batch: &PackedBatch) {
        let tensors = Tensors { fixed: &self.fixed, trained };
        let d = self.config.d_model;
        let (words, positions) = (tensors.get(self.words), tensors.get(self.positions));
        let mut sums = Vec::with_capacity(batch.input_ids.len() * d);
        for window in 0..batch.n_windows() {
            for (position, &id) in batch.input_ids[batch.window(window)].iter().enumerate() {
                let word = &words[id as usize * d..][..d];
                sums.extend(word.iter().zip(&positions[position * d..]).map(|(word, position)| word + position));
            }
        }
        self.embedding_norm.forward(&tensors, &sums, self.config.layer_norm_eps as f32, &mut self.states[0]);
    }
}

/// What a network is trained towards.
#[derive(Debug, Clone, Copy)]
pub struct Objective<'a> {
    /// Queue of each mail of the batch; `None` for a mail that is for nobody, which every queue should find equally unlikely.
    pub targets: &'a [Option<usize>],
    /// Share of each mail's target that is spread over all queues.
    pub label_smoothing: &'a [f32],
    /// Which tokens of the batch decide their mails, one entry a token; empty where nobody marked any.
    pub decisive: &'a [bool],
    /// Weight of the loss by evidence: for each mail with a queue and deciding tokens, `-ln` of the share of that queue's pooling
    /// that lies on them (attention supervised by rationales).
    pub evidence: f32,
    /// The loss is multiplied by this: one over the mails of the step.
    pub scale: f32,
}

/// A share of the pooling below this is taken for none: its logarithm would drown all else.
const LEAST_EVIDENCE: f32 = 1e-30;

impl Objective<'_> {
    /// The share of each mail that each queue should get, `[mails, C]`.
    #[must_use]
    pub fn wanted(&self, n_queues: usize) -> Vec<f32> {
        let of_mail =
            |(&target, &smoothing)| (0..n_queues).map(move |queue| wanted(target, queue, n_queues, smoothing));
        self.targets.iter().zip(self.label_smoothing).flat_map(of_mail).collect()
    }

    /// The loss by tensors, from logits `[mails, C]` and the pooling's weights `[T, C]`: what the packed network is tested
    /// against, and what devices without one use.
    ///
    /// # Errors
    /// Where the shapes are not those of the batch.
    pub fn loss(&self, logits: &Tensor, weights: &Tensor, batch: &PackedBatch) -> candle_core::Result<Tensor> {
        let (mails, queues) = logits.dims2()?;
        let wanted =
            Tensor::from_vec(self.wanted(queues), (mails, queues), logits.device())?.to_dtype(logits.dtype())?;
        let mut loss = (candle_nn::ops::log_softmax(logits, 1)? * wanted)?.sum_all()?.neg()?;
        for (mail, target) in self.targets.iter().enumerate() {
            let tokens = batch.mail_tokens(mail);
            let Some((queue, decisive)) = target.zip(self.decisive.get(tokens.clone())) else { continue };
            // Tokens without a share are never pooled.
            let counts = decisive
                .iter()
                .zip(&batch.token_weights[tokens.clone()])
                .map(|(&decides, &share)| decides && share > 0.0);
            let mask: Vec<f32> = counts.map(|counts| f32::from(u8::from(counts))).collect();
            if !mask.contains(&1.0) {
                continue;
            }
            let mask = Tensor::from_vec(mask, tokens.len(), logits.device())?.to_dtype(logits.dtype())?;
            let weights = weights.narrow(0, tokens.start, tokens.len())?.narrow(1, queue, 1)?.squeeze(1)?;
            loss = (loss
                - (((weights * mask)?.sum_all()? + f64::from(LEAST_EVIDENCE))?.log()? * f64::from(self.evidence))?)?;
        }
        loss * f64::from(self.scale)
    }
}

impl Saved {
    fn resize(&mut self, narrow: usize, wide: usize) {
        let lists = [&mut self.queries, &mut self.keys, &mut self.values, &mut self.context, &mut self.attention_sum];
        lists.into_iter().chain([&mut self.middle, &mut self.output_sum]).for_each(|list| list.resize(narrow, 0.0));
        self.wide.resize(wide, 0.0);
        self.activated.resize(wide, 0.0);
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs { queries: &self.queries, keys: &self.keys, values: &self.values }
    }
}

impl Norm {
    fn forward(&self, tensors: &Tensors<'_>, x: &[f32], eps: f32, y: &mut [f32]) {
        layer_norm_forward(x, tensors.get(self.weight), tensors.get(self.bias), eps, y);
    }

    fn backward(
        &self,
        tensors: &Tensors<'_>,
        x: &[f32],
        eps: f32,
        upstream: &[f32],
        grad_x: &mut [f32],
        gradients: &mut Gradients,
    ) {
        let (weight, bias) = layer_norm_backward(x, tensors.get(self.weight), eps, upstream, grad_x);
        for (slot, part) in [(self.weight, weight), (self.bias, bias)] {
            if let Some(sum) = gradients.of(slot) {
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
        }
    }
}

/// Values that one task takes of an elementwise step.
const BLOCK: usize = 1 << 14;

fn add(sum: &mut [f32], other: &[f32]) {
    sum.par_chunks_mut(BLOCK)
        .zip(other.par_chunks(BLOCK))
        .for_each(|(sum, other)| sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other));
}

/// Multiplies `x` with a fresh mask and keeps the mask; an empty one stands for no dropout.
fn drop_some(x: &mut [f32], mask: &mut Vec<f32>, dropout: Option<&mut Dropout>) {
    mask.clear();
    let Some(dropout) = dropout.filter(|dropout| dropout.active()) else { return };
    mask.resize(x.len(), 0.0);
    dropout.fill(mask);
    x.par_chunks_mut(BLOCK)
        .zip(mask.par_chunks(BLOCK))
        .for_each(|(x, mask)| x.iter_mut().zip(mask).for_each(|(x, mask)| *x *= mask));
}

fn masked<'a>(gradient: &'a [f32], mask: &[f32]) -> std::borrow::Cow<'a, [f32]> {
    if mask.is_empty() {
        return gradient.into();
    }
    gradient.iter().zip(mask).map(|(gradient, mask)| gradient * mask).collect::<Vec<f32>>().into()
}

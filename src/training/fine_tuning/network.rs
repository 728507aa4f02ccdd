//! The network that is trained: the fast one on the CPU, the one of tensors on other devices.

use std::collections::BTreeMap;

use candle_core::{DType, Tensor};

use super::{Depth, FineTuningConfig, Material};
use crate::artifact::{EncoderChange, StoredTensor};
use crate::model::trainable::{
    Dropout, Gradients, LoraConfig, Objective, PackedNetwork, Parameter, TrainableEncoder, TrainableHead,
};
use crate::model::{ModelError, PackedBatch};

/// A linear head, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// `[C, D]`; empty where the head pools by the mean.
    pub query: Vec<f32>,
    /// `[C, D]`.
    pub weight: Vec<f32>,
    /// `[C]`.
    pub bias: Vec<f32>,
}

/// What a parameter is, for the optimizer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// A matrix, not a bias or a norm.
    pub matrix: bool,
    /// Of the head, not of the encoder.
    pub of_head: bool,
    /// What a queue looks for in a token.
    pub query: bool,
}

/// Order, names and shapes of all trained tensors. Their values stay with the caller.
pub(super) struct Layout {
    parameters: Vec<(String, Vec<usize>)>,
    /// So many of them belong to the encoder; the head's follow.
    of_encoder: usize,
}

/// What computes. It holds the frozen weights too, hundreds of megabytes with all that is kept between steps, so it goes as soon as
/// it has trained: [`Network::into_layout`] is what is left.
pub(super) struct Network {
    layout: Layout,
    engine: Engine,
}

enum Engine {
    Packed(Box<PackedNetwork>),
    Tensors(Box<Tensors>),
}

struct Tensors {
    encoder: TrainableEncoder,
    head: TrainableHead,
    parameters: Vec<Parameter>,
}

impl Layout {
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        let of_encoder = self.of_encoder;
        let kind = move |(index, (_, shape)): (usize, &(String, Vec<usize>))| Kind {
            matrix: shape.len() > 1,
            of_head: index >= of_encoder,
            query: index == of_encoder,
        };
        self.parameters.iter().enumerate().map(kind)
    }

    /// What changed in the encoder, and the head.
    pub(super) fn taken_apart(self, config: &FineTuningConfig, values: Vec<Vec<f32>>) -> (EncoderChange, Head) {
        let mut values = values.into_iter();
        let tensors: BTreeMap<String, StoredTensor> = self.parameters[..self.of_encoder]
            .iter()
            .zip(values.by_ref())
            .map(|((name, shape), values)| (name.clone(), StoredTensor { shape: shape.clone(), values }))
            .collect();
        let change = match config.depth {
            Depth::Lora => EncoderChange::Lora(LoraConfig { rank: config.rank, alpha: config.alpha }, tensors),
            Depth::Full => EncoderChange::Full(tensors),
        };
        let mut next = || values.next().unwrap_or_default();
        (change, Head { query: next(), weight: next(), bias: next() })
    }
}

impl Network {
    /// The network, and the values to start from.
    pub(super) fn new(
        material: &Material<'_>,
        config: &FineTuningConfig,
        head: &Head,
    ) -> Result<(Self, Vec<Vec<f32>>), ModelError> {
        let adaptation = config.adaptation();
        let encoder = TrainableEncoder::new(material.encoder_config, material.weights, adaptation, material.seed)?;
        let head = TrainableHead::new(&head.weight, &head.bias, DType::F32, encoder.device())?;
        let of_encoder = encoder.parameters().len();
        let parameters: Vec<Parameter> = encoder.parameters().iter().cloned().chain(head.parameters()).collect();
        let start = parameters.iter().map(|parameter| flat(&parameter.var)).collect::<Result<_, _>>()?;
        let shapes: Vec<(String, Vec<usize>)> =
            parameters.iter().map(|Parameter { name, var }| (name.clone(), var.dims().to_vec())).collect();
        let engine = if encoder.device().is_cpu() {
            let names: Vec<String> = shapes.iter().map(|(name, _)| name.clone()).collect();
            let (sizes, weights) = (material.encoder_config, material.weights);
            Engine::Packed(Box::new(PackedNetwork::new(sizes, weights, adaptation, &names, material.n_queues)?))
        } else {
            Engine::Tensors(Box::new(Tensors { encoder, head, parameters }))
        };
        Ok((Self { layout: Layout { parameters: shapes, of_encoder }, engine }, start))
    }

    /// In the order of the values.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.layout.kinds()
    }

    /// Lets go of all but the layout.
    pub(super) fn into_layout(self) -> Layout {
        self.layout
    }

    /// Adds the gradients of the objective.
    pub(super) fn loss(
        &mut self,
        values: &[Vec<f32>],
        batch: &PackedBatch,
        objective: &Objective<'_>,
        dropout: &mut Dropout,
        gradients: &mut Gradients,
    ) -> Result<(), ModelError> {
        match &mut self.engine {
            Engine::Packed(network) => network.loss(values, batch, objective, Some(dropout), gradients).map(|_| ()),
            Engine::Tensors(network) => network.loss(values, batch, objective, dropout, gradients),
        }
    }

    /// Logits `[mails, C]`, row by row.
    pub(super) fn logits(&mut self, values: &[Vec<f32>], batch: &PackedBatch) -> Result<Vec<f32>, ModelError> {
        match &mut self.engine {
            Engine::Packed(network) => network.logits(values, batch),
            Engine::Tensors(network) => {
                network.set(values)?;
                flat(&network.head.forward(&network.encoder.forward(batch, None)?, batch)?)
            }
        }
    }
}

impl Tensors {
    fn set(&self, values: &[Vec<f32>]) -> Result<(), ModelError> {
        for (Parameter { var, .. }, values) in self.parameters.iter().zip(values) {
            var.set(&Tensor::from_slice(values, var.shape(), var.device())?)?;
        }
        Ok(())
    }

    fn loss(
        &self,
        values: &[Vec<f32>],
        batch: &PackedBatch,
        objective: &Objective<'_>,
        dropout: &mut Dropout,
        gradients: &mut Gradients,
    ) -> Result<(), ModelError> {
        self.set(values)?;
        let hidden_states = self.encoder.forward(batch, Some(dropout))?;
        let (logits, weights) = self.head.forward_with_weights(&hidden_states, batch)?;
        let loss = objective.loss(&logits, &weights, batch)?;
        let store = loss.backward()?;
        for (sum, parameter) in gradients.sums_mut().iter_mut().zip(&self.parameters) {
            if let Some(gradient) = store.get(&parameter.var) {
                sum.iter_mut().zip(flat(gradient)?).for_each(|(sum, gradient)| *sum += gradient);
            }
        }
        Ok(())
    }
}

fn flat(tensor: &Tensor) -> Result<Vec<f32>, ModelError> {
    Ok(tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?)
}

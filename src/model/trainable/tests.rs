//! Gradients against finite differences in f64, the fused operations against the composed ones, and both against the
//! readable encoder.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;

use super::*;
use crate::model::{Encoder, EncoderConfig, KeepMaps, PackedBatch};
use crate::random::SplitMix64;

const LORA: Adaptation = Adaptation::Lora(LoraConfig { rank: 2, alpha: 3.0 });
const QUEUES: usize = 3;

fn config() -> EncoderConfig {
    EncoderConfig::from_json(
        r#"{"model_type": "bert", "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2,
            "intermediate_size": 20, "max_position_embeddings": 9, "vocab_size": 11, "type_vocab_size": 2,
            "hidden_act": "gelu", "layer_norm_eps": 1e-12}"#,
    )
    .unwrap()
}

fn weights(dtype: DType) -> VarBuilder<'static> {
    let mut random = SplitMix64::seeded(11);
    let mut tensors = HashMap::new();
    for (name, shape) in config().tensors() {
        let near = if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 };
        let n = shape.iter().product::<usize>();
        let values: Vec<f64> = (0..n).map(|_| near + 1.2 * (random.uniform() - 0.5)).collect();
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        tensors.insert(name, tensor.to_dtype(dtype).unwrap());
    }
    VarBuilder::from_tensors(tensors, dtype, &Device::Cpu)
}

/// Three mails; the second has two windows of which the second counts only its last tokens.
fn batch() -> PackedBatch {
    PackedBatch {
        input_ids: vec![1, 5, 2, 1, 7, 8, 9, 3, 2, 1, 9, 3, 10, 2, 1, 2],
        window_offsets: vec![0, 3, 9, 14, 16],
        mail_offsets: vec![0, 1, 3, 4],
        token_weights: vec![0.3, 0.3, 0.4, 0.1, 0.2, 0.2, 0.2, 0.0, 0.05, 0.05, 0.0, 0.0, 0.1, 0.1, 0.5, 0.5],
    }
}

struct Net {
    encoder: TrainableEncoder,
    head: TrainableHead,
}

impl Net {
    fn new(adaptation: Adaptation, dtype: DType) -> Self {
        let mut random = SplitMix64::seeded(5);
        let mut take = |n: usize| (0..n).map(|_| (random.uniform() - 0.5) as f32).collect::<Vec<f32>>();
        let encoder = TrainableEncoder::new(&config(), &weights(dtype), adaptation, 3).unwrap();
        let head = TrainableHead::new(&take(QUEUES * 12), &take(QUEUES), dtype, &Device::Cpu).unwrap();
        let net = Self { encoder, head };
        // Adapters and pooling start at zero, where their partners get no gradient: move everything off that point.
        for Parameter { name, var } in net.parameters() {
            if name.contains("lora_B") || name.contains("query") && !name.contains("attention") {
                let values: Vec<f32> = take(var.elem_count());
                var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu).unwrap().to_dtype(dtype).unwrap())
                    .unwrap();
            }
        }
        net
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.encoder.parameters().iter().cloned().chain(self.head.parameters()).collect()
    }

    /// Any smooth number made of all logits.
    fn loss(&self) -> Tensor {
        let hidden_states = self.encoder.forward(&batch(), None).unwrap();
        let logits = self.head.forward(&hidden_states, &batch()).unwrap();
        let factors = Tensor::arange(1f64, 10.0, &Device::Cpu).unwrap().reshape((3, QUEUES)).unwrap();
        let factors = (factors.to_dtype(logits.dtype()).unwrap() * 0.3).unwrap();
        (logits.tanh().unwrap() * factors).unwrap().sum_all().unwrap()
    }

    fn gradients(&self) -> Vec<(String, Vec<f64>)> {
        let store = self.loss().backward().unwrap();
        let values = |tensor: &Tensor| tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        self.parameters()
            .into_iter()
            .map(|Parameter { name, var }| {
                let gradient = store.get(&var).unwrap_or_else(|| panic!("{name} gets no gradient"));
                (name, values(gradient))
            })
            .collect()
    }
}

#[test]
fn every_gradient_is_the_slope_of_the_loss() {
    for adaptation in [Adaptation::Full, LORA] {
        let net = Net::new(adaptation, DType::F64);
        let mut random = SplitMix64::seeded(1);
        for ((name, gradient), Parameter { var, .. }) in net.gradients().into_iter().zip(net.parameters()) {
            let start = var.as_detached_tensor().flatten_all().unwrap().to_vec1::<f64>().unwrap();
            for _ in 0..3 {
                let place = random.below(start.len());
                const STEP: f64 = 1e-5;
                let at = |step: f64| {
                    let mut moved = start.clone();
                    moved[place] += step;
                    var.set(&Tensor::from_vec(moved, var.shape(), &Device::Cpu).unwrap()).unwrap();
                    net.loss().to_scalar::<f64>().unwrap()
                };
                let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                at(0.0);
                let error = (slope - gradient[place]).abs();
                assert!(
                    error < 1e-7 + 1e-5 * slope.abs(),
                    "{name}[{place}]: slope {slope}, gradient {}",
                    gradient[place]
                );
            }
        }
    }
}

/// The packed network with the values of `net`.
fn packed(net: &Net, adaptation: Adaptation) -> (PackedNetwork, Vec<Vec<f32>>) {
    let names: Vec<String> = net.parameters().into_iter().map(|parameter| parameter.name).collect();
    let values = |parameter: Parameter| {
        parameter.var.as_detached_tensor().to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    };
    let values = net.parameters().into_iter().map(values).collect();
    (PackedNetwork::new(&config(), &weights(DType::F32), adaptation, &names, QUEUES).unwrap(), values)
}

#[test]
fn the_packed_network_has_the_loss_and_the_gradients_of_the_readable_one() {
    let targets = [Some(0), None, Some(1)];
    // Of the first mail one token decides; of the second some, but it is for nobody; of the third none is marked.
    let decisive = [1, 4, 5, 12].iter().fold([false; 16], |mut marks, &token| {
        marks[token] = true;
        marks
    });
    for adaptation in [Adaptation::Full, LORA] {
        for rate in [0.0, 0.3] {
            let net = Net::new(adaptation, DType::F64);
            let mut dropout = Dropout::new(rate, 9);
            let hidden_states = net.encoder.forward(&batch(), Some(&mut dropout)).unwrap();
            let (logits, weights) = net.head.forward_with_weights(&hidden_states, &batch()).unwrap();
            let objective = Objective {
                targets: &targets,
                label_smoothing: &[0.1, 0.1, 0.6],
                decisive: &decisive,
                evidence: if rate > 0.0 { 0.7 } else { 0.0 },
                scale: 0.5,
            };
            let wanted = objective.wanted(QUEUES);
            assert!((wanted[0] - (0.9 + 0.1 / 3.0)).abs() < 1e-6 && (wanted[3] - 1.0 / 3.0).abs() < 1e-6);
            let loss = objective.loss(&logits, &weights, &batch()).unwrap();
            let store = loss.backward().unwrap();

            let (mut network, values) = packed(&net, adaptation);
            let mut gradients = Gradients::zeros(values.iter().map(Vec::len));
            let mut dropout = Dropout::new(rate, 9);
            let got = network.loss(&values, &batch(), &objective, Some(&mut dropout), &mut gradients).unwrap();
            assert!((f64::from(got) - loss.to_scalar::<f64>().unwrap()).abs() < 1e-5);
            for (Parameter { name, var }, got) in net.parameters().iter().zip(gradients.sums()) {
                let want = store.get(var).unwrap().flatten_all().unwrap().to_vec1::<f64>().unwrap();
                for (&got, want) in got.iter().zip(want) {
                    assert!((f64::from(got) - want).abs() < 2e-5 + 1e-4 * want.abs(), "{name}: {got} {want}");
                }
            }
        }
    }
}

#[test]
fn memory_that_was_used_before_changes_nothing() {
    let net = Net::new(LORA, DType::F64);
    let (mut network, values) = packed(&net, LORA);
    let first = network.logits(&values, &batch()).unwrap();
    let small = PackedBatch {
        input_ids: vec![1, 2],
        window_offsets: vec![0, 2],
        mail_offsets: vec![0, 1],
        token_weights: vec![0.5, 0.5],
    };
    network.logits(&values, &small).unwrap();
    assert_eq!(network.logits(&values, &batch()).unwrap(), first);
}

#[test]
fn a_network_follows_its_values() {
    let net = Net::new(LORA, DType::F64);
    let (mut network, values) = packed(&net, LORA);
    let first = network.logits(&values, &batch()).unwrap();
    // Each tensor alone: none may be packed once and forgotten.
    for index in 0..values.len() {
        let mut moved = values.clone();
        moved[index].iter_mut().for_each(|value| *value += 0.1);
        let got = network.logits(&moved, &batch()).unwrap();
        let (mut fresh, _) = packed(&net, LORA);
        assert_eq!(got, fresh.logits(&moved, &batch()).unwrap(), "tensor {index}");
        assert_ne!(got, first, "tensor {index}");
    }
    assert_eq!(network.logits(&values, &batch()).unwrap(), first);
}

#[test]
fn hidden_states_are_those_of_the_readable_encoder() {
    let batch = batch();
    let encoder = Encoder::load(&config(), &weights(DType::F32)).unwrap();
    let trainable = TrainableEncoder::new(&config(), &weights(DType::F32), LORA, 3).unwrap();
    let hidden_states = trainable.forward(&batch, None).unwrap().to_vec2::<f32>().unwrap();
    for window in 0..batch.n_windows() {
        let ids = &batch.input_ids[batch.window(window)];
        let ids = Tensor::new(ids, &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        let want = encoder.forward(&ids, None, &KeepMaps::None).unwrap().hidden_states;
        let want = want.squeeze(0).unwrap().to_vec2::<f32>().unwrap();
        for (got, want) in hidden_states[batch.window(window)].iter().zip(&want) {
            assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?} {want:?}");
        }
    }
}

#[test]
fn a_frozen_encoder_offers_only_its_adapters() {
    let lora = TrainableEncoder::new(&config(), &weights(DType::F32), LORA, 3).unwrap();
    assert_eq!(lora.parameters().len(), 2 * 6 * 2);
    assert!(lora.parameters().iter().all(|parameter| parameter.name.contains(".lora_")));
    let full = TrainableEncoder::new(&config(), &weights(DType::F32), Adaptation::Full, 3).unwrap();
    assert_eq!(full.parameters().len(), 2 * (6 * 2 + 2 * 2));
}

#[test]
fn logits_are_those_of_the_pooling_that_serves() {
    let net = Net::new(LORA, DType::F32);
    let batch = batch();
    let hidden_states = net.encoder.forward(&batch, None).unwrap();
    let want = net.head.forward(&hidden_states, &batch).unwrap().to_vec2::<f32>().unwrap();
    let values = |name: &str| {
        let parameter = net.head.parameters().into_iter().find(|parameter| parameter.name == name).unwrap();
        parameter.var.flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    let (query, weight) = (values("pooling.query"), values("classifier.weight"));
    let projection = [query.clone(), weight.clone()].concat();
    let rows = hidden_states.to_vec2::<f32>().unwrap();
    let projected: Vec<f32> = rows
        .iter()
        .flat_map(|row| projection.chunks(12).map(move |p| p.iter().zip(row).map(|(a, b)| a * b).sum::<f32>()))
        .collect();
    let pooling = crate::model::AttentionPooling::new(&query, &weight, values("classifier.bias"));
    for (got, want) in pooling.logits(&batch, &projected).iter().zip(&want) {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?} {want:?}");
    }
}

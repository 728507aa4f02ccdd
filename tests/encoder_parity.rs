//! The encoder against a float64 reference on the shipped weights, written by `tests/reference/encoder_numbers.py`.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

mod common;

use candle_core::{DType, Device, Tensor};
use postroom::model::{KeepMaps, PackedBatch};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    texts: Vec<Text>,
    tokenized: Tokenized,
}

#[derive(Deserialize)]
struct Text {
    tokens: usize,
    input_ids: Vec<u32>,
    rows: Vec<u32>,
}

#[derive(Deserialize)]
struct Tokenized {
    text: String,
    ids: Vec<u32>,
}

fn reference() -> Reference {
    serde_json::from_str(&common::fixture("reference/encoder.json")).unwrap()
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
    assert_eq!(a.dims(), b.dims());
    let difference = (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
    difference.to_scalar::<f32>().unwrap()
}

#[test]
fn hidden_states_and_maps_are_those_of_the_reference() {
    let encoder = common::encoder();
    let path = common::root().join("tests/fixtures/reference/encoder.safetensors");
    let numbers = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    let reference = reference();
    assert!(reference.texts.len() >= 12);
    let layers: Vec<usize> = (0..encoder.config().n_layers).collect();
    for text in reference.texts {
        let input_ids = Tensor::new(text.input_ids.as_slice(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        let rows = Tensor::new(text.rows.as_slice(), &Device::Cpu).unwrap();
        let output = encoder.forward(&input_ids, None, &KeepMaps::Layers(layers.clone())).unwrap();

        let hidden = output.hidden_states.squeeze(0).unwrap().index_select(&rows, 0).unwrap();
        let difference = largest_difference(&hidden, &numbers[&format!("{}.hidden", text.tokens)]);
        assert!(difference < 1e-4, "{} tokens: hidden states differ by {difference}", text.tokens);

        let maps: Vec<Tensor> = output.attentions.iter().map(|map| map.as_ref().unwrap().squeeze(0).unwrap()).collect();
        let maps = Tensor::stack(&maps, 0).unwrap(); // [L, H, T, T]
        let difference =
            largest_difference(&maps.index_select(&rows, 2).unwrap(), &numbers[&format!("{}.maps", text.tokens)]);
        assert!(difference < 1e-5, "{} tokens: maps differ by {difference}", text.tokens);

        let sums = maps.sum(3).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{} tokens: a row does not sum to 1", text.tokens);
    }
}

/// The engine that serves has kernels of its own, for windows of any length.
#[test]
fn the_engine_that_serves_gives_the_hidden_states_and_maps_of_the_reference() {
    let encoder = common::encoder_dir().batch_encoder(DType::F32, &Device::Cpu, None).unwrap();
    let d_model = encoder.config().d_model;
    let mut identity = vec![0f32; d_model * d_model];
    (0..d_model).for_each(|column| identity[column * (d_model + 1)] = 1.0);
    let path = common::root().join("tests/fixtures/reference/encoder.safetensors");
    let numbers = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
    let keep = KeepMaps::Layers((0..encoder.config().n_layers).collect());
    for Text { tokens, input_ids, rows } in reference().texts {
        let rows = Tensor::new(rows.as_slice(), &Device::Cpu).unwrap();
        let batch = PackedBatch {
            token_weights: vec![1.0 / tokens as f32; tokens],
            input_ids,
            window_offsets: vec![0, tokens],
            mail_offsets: vec![0, 1],
        };
        let output = encoder.project(&batch, &keep, &identity).unwrap();
        let hidden = Tensor::from_vec(output.values, (tokens, d_model), &Device::Cpu).unwrap();
        let difference =
            largest_difference(&hidden.index_select(&rows, 0).unwrap(), &numbers[&format!("{tokens}.hidden")]);
        assert!(difference < 1e-4, "{tokens} tokens: hidden states differ by {difference}");
        let shape = (encoder.config().n_layers, encoder.config().n_heads, tokens, tokens);
        let maps = Tensor::from_slice(&output.maps[0].weights, shape, &Device::Cpu).unwrap();
        let difference = largest_difference(&maps.index_select(&rows, 2).unwrap(), &numbers[&format!("{tokens}.maps")]);
        assert!(difference < 1e-5, "{tokens} tokens: maps differ by {difference}");
        // Nothing is different where no map is kept.
        let fast = encoder.project(&batch, &KeepMaps::None, &identity).unwrap();
        let fast = Tensor::from_vec(fast.values, (tokens, d_model), &Device::Cpu).unwrap();
        assert!(largest_difference(&fast, &hidden) < 1e-5, "{tokens} tokens");
    }
}

#[test]
fn the_fast_path_gives_the_same_hidden_states_as_the_one_with_maps() {
    let encoder = common::encoder();
    for text in reference().texts.iter().filter(|text| [1, 64, 129].contains(&text.tokens)) {
        let input_ids = Tensor::new(text.input_ids.as_slice(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
        let fast = encoder.forward(&input_ids, None, &KeepMaps::None).unwrap();
        assert!(fast.attentions.iter().all(Option::is_none));
        let with_maps = encoder.forward(&input_ids, None, &KeepMaps::Layers(vec![0, 5])).unwrap();
        let difference = largest_difference(&fast.hidden_states, &with_maps.hidden_states);
        assert!(difference < 1e-4, "{} tokens: {difference}", text.tokens);
    }
}

#[test]
fn padding_changes_nothing_and_gets_no_attention() {
    let encoder = common::encoder();
    let reference = reference();
    let text = reference.texts.iter().find(|text| text.tokens == 31).unwrap();
    let alone = Tensor::new(text.input_ids.as_slice(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let alone = encoder.forward(&alone, None, &KeepMaps::None).unwrap().hidden_states;
    let mut ids = text.input_ids.clone();
    // Padding with an ordinary word: only the mask may hide it.
    ids.resize(50, 2256);
    let mask: Vec<u32> = (0..50).map(|position| u32::from(position < 31)).collect();
    let ids = Tensor::new(ids.as_slice(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let mask = Tensor::new(mask.as_slice(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let padded = encoder.forward(&ids, Some(&mask), &KeepMaps::Layers(vec![0, 5])).unwrap();
    let difference = largest_difference(&alone, &padded.hidden_states.narrow(1, 0, 31).unwrap());
    assert!(difference < 1e-4, "{difference}");
    for map in padded.attentions.into_iter().flatten() {
        let on_padding = map.narrow(3, 31, 19).unwrap().max_all().unwrap().to_dtype(DType::F32).unwrap();
        assert_eq!(on_padding.to_scalar::<f32>().unwrap(), 0.0);
    }
}

#[test]
fn the_tokenizer_gives_the_reference_ids() {
    let Tokenized { text, ids } = reference().tokenized;
    let encoded = common::encode(&text);
    let content: Vec<u32> = encoded.tokens.iter().map(|token| token.id).collect();
    assert_eq!(content, ids[1..ids.len() - 1]);
}

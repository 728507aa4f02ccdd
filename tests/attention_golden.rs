//! Merging words and dropping special tokens against `tests/reference/attention-golden.json` (`attention_reference.py`).

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use postroom::explain::{AttentionMap, Unit};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    #[serde(rename = "A")]
    weights: Vec<Vec<Vec<Vec<f32>>>>,
    words: Words,
    renorm: Renorm,
}

#[derive(Deserialize)]
struct Words {
    groups: Vec<Vec<usize>>,
    #[serde(rename = "L0H0")]
    merged: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct Renorm {
    special: Vec<usize>,
    #[serde(rename = "L0H0")]
    kept: Vec<Vec<f32>>,
    removed: Vec<f32>,
}

fn golden() -> Golden {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/attention-golden.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Head 0 of layer 0.
fn first_head(golden: &Golden) -> AttentionMap {
    let map = &golden.weights[0][0];
    AttentionMap { shape: [1, 1, map.len(), map.len()], data: map.concat() }
}

fn assert_close(values: &[f32], expected: &[f32]) {
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }
}

#[test]
fn words_are_merged_as_the_reference_merges_them() {
    let golden = golden();
    let units: Vec<Unit> = golden
        .words
        .groups
        .iter()
        .map(|pieces| Unit { pieces: pieces[0]..pieces[pieces.len() - 1] + 1, place: None, unknown: false })
        .collect();
    let rows: Vec<usize> = (0..units.len()).collect();
    assert_close(&first_head(&golden).merge(&units, &rows).data, &golden.words.merged.concat());
}

#[test]
fn special_tokens_are_dropped_as_the_reference_drops_them() {
    let golden = golden();
    let map = first_head(&golden);
    let special: Vec<bool> = (0..map.shape[3]).map(|key| golden.renorm.special.contains(&key)).collect();
    assert_close(&map.mass_on(&special), &golden.renorm.removed);
    let kept = map.without(&special).data;
    let width = map.shape[3] - golden.renorm.special.len();
    for ((row, expected), removed) in kept.chunks(width).zip(&golden.renorm.kept).zip(&golden.renorm.removed) {
        // A row with more than 0.99 on the special tokens is a sink: zero here, stretched by the reference.
        if *removed > 0.99 {
            assert_close(row, &vec![0.0; width]);
        } else {
            assert_close(row, expected);
        }
    }
}

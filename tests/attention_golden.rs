//! Maps, rollout, relevance, heads and measures against `tests/reference/attention-golden.json` (`attention_reference.py`).

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use postroom::explain::{
    AttentionMap, Reduce, Unit, entropy, kendall_tau_b, positive_part, relevance, relevance_row, rollout, rollout_row,
    top_share, total_variation,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    #[serde(rename = "A")]
    weights: Vec<Vec<Vec<Vec<f32>>>>,
    /// Gradients of a logit by the weights, by central differences.
    #[serde(rename = "G")]
    gradients: Vec<Vec<Vec<Vec<f32>>>>,
    rollout: Vec<Vec<f64>>,
    relevance: Vec<Vec<f64>>,
    relevance_cls: Vec<f64>,
    head_importance: Vec<Vec<f64>>,
    #[serde(rename = "entropy_L0H0")]
    entropy: Vec<f64>,
    metrics: Metrics,
    words: Words,
    renorm: Renorm,
}

#[derive(Deserialize)]
struct Metrics {
    top_k_10pct_of_11: Vec<usize>,
    top_k_20pct_of_11: Vec<usize>,
    kendall: f64,
    kendall_ties: f64,
    tvd: f64,
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

/// A layer's maps, head after head.
fn flat(layer: &[Vec<Vec<f32>>]) -> Vec<f32> {
    layer.iter().flatten().flatten().copied().collect()
}

fn assert_near(values: &[f64], expected: &[f64]) {
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }
}

#[test]
fn rollout_is_that_of_the_reference() {
    let golden = golden();
    let (heads, tokens) = (golden.weights[0].len(), golden.weights[0][0].len());
    let mean = |layer: &Vec<Vec<Vec<f32>>>| {
        let map = AttentionMap { shape: [1, heads, tokens, tokens], data: flat(layer) };
        map.reduce_heads(Reduce::Mean).data
    };
    let maps: Vec<Vec<f32>> = golden.weights.iter().map(mean).collect();
    assert_near(&rollout(&maps, tokens), &golden.rollout.concat());
    let mut cls = vec![0.0; tokens];
    cls[0] = 1.0;
    assert_near(&rollout_row(&maps, &cls), &golden.rollout[0]);
}

#[test]
fn relevance_is_that_of_the_reference() {
    let golden = golden();
    let (heads, tokens) = (golden.weights[0].len(), golden.weights[0][0].len());
    let layers: Vec<Vec<f32>> = golden
        .weights
        .iter()
        .zip(&golden.gradients)
        .map(|(weights, gradients)| positive_part(&flat(weights), &flat(gradients), heads))
        .collect();
    assert_near(&relevance(&layers, tokens), &golden.relevance.concat());
    let mut cls = vec![0.0; tokens];
    cls[0] = 1.0;
    let mut row = relevance_row(&layers, &cls);
    row[0] = 0.0;
    assert_near(&row, &golden.relevance_cls);
}

#[test]
fn importance_and_entropy_of_heads_are_those_of_the_reference() {
    let golden = golden();
    for (layer, expected) in golden.head_importance.iter().enumerate() {
        for (head, expected) in expected.iter().enumerate() {
            let (weights, gradients) = (&golden.weights[layer][head], &golden.gradients[layer][head]);
            let inner: f64 = weights
                .iter()
                .flatten()
                .zip(gradients.iter().flatten())
                .map(|(&a, &g)| f64::from(a) * f64::from(g))
                .sum();
            assert_near(&[inner.abs()], &[*expected]);
        }
    }
    let rows: Vec<f64> = golden.weights[0][0].iter().map(|row| entropy(row)).collect();
    assert_near(&rows, &golden.entropy);
}

#[test]
fn measures_are_those_of_the_reference() {
    let metrics = golden().metrics;
    let scores = [0.1, 0.9, 0.3, 0.2, 0.0, 0.8, 0.05, 0.4, 0.6, 0.7, 0.15];
    assert_eq!(top_share(&scores, 0.1), metrics.top_k_10pct_of_11);
    assert_eq!(top_share(&scores, 0.2), metrics.top_k_20pct_of_11);
    let tau = |a: &[f64], b: &[f64]| kendall_tau_b(a, b).unwrap();
    assert_near(&[tau(&[1., 2., 3., 4.], &[1., 3., 2., 4.])], &[metrics.kendall]);
    assert_near(&[tau(&[1., 2., 2., 3.], &[1., 2., 3., 4.])], &[metrics.kendall_ties]);
    assert_near(&[total_variation(&[0.5, 0.5, 0.0], &[0.25, 0.25, 0.5])], &[metrics.tvd]);
}

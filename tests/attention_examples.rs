//! The worked examples of `tests/reference/worked-examples.json`: every number as a test of the public attention functions.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use candle_core::{DType, Device, Tensor};
use postroom::model::{causal_bias, merge_heads, padding_bias, scaled_dot_product_attention, split_heads};

/// Against figures of eight decimals.
const TOLERANCE: f64 = 1e-6;

fn matrix<const R: usize, const C: usize>(rows: [[f64; C]; R]) -> Tensor {
    Tensor::new(&rows, &Device::Cpu).unwrap()
}

fn assert_close<const C: usize>(tensor: &Tensor, expected: &[[f64; C]]) {
    let rows = tensor.to_vec2::<f64>().unwrap();
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(row.len(), C);
        for (value, expected) in row.iter().zip(expected) {
            assert!((value - expected).abs() < TOLERANCE, "{value} is not {expected}");
        }
    }
}

/// Example A: X through three projections.
fn example_a() -> (Tensor, Tensor, Tensor) {
    let x = matrix([[1., 0.], [0., 1.], [1., 1.]]);
    let queries = x.matmul(&matrix([[1., 0.], [1., 1.]])).unwrap();
    let keys = x.matmul(&matrix([[1., 1.], [0., 1.]])).unwrap();
    let values = x.matmul(&matrix([[2., 0.], [0., 1.]])).unwrap();
    (queries, keys, values)
}

#[test]
fn a_learned_projections() {
    let (queries, keys, values) = example_a();
    assert_close(&queries, &[[1., 0.], [1., 1.], [2., 1.]]);
    assert_close(&keys, &[[1., 1.], [0., 1.], [1., 2.]]);
    assert_close(&values, &[[2., 0.], [0., 1.], [2., 1.]]);
    assert_close(&queries.matmul(&keys.t().unwrap()).unwrap(), &[[1., 0., 1.], [2., 1., 3.], [3., 1., 4.]]);
    let output = scaled_dot_product_attention(&queries, &keys, &values, None).unwrap();
    assert_close(
        &output.weights,
        &[
            [0.40111209, 0.19777581, 0.40111209],
            [0.28399541, 0.14002925, 0.57597535],
            [0.30569525, 0.07431963, 0.61998512],
        ],
    );
    assert_close(&output.context, &[[1.60444837, 0.59888791], [1.71994151, 0.71600459], [1.85136074, 0.69430475]]);
}

#[test]
fn a_causal_mask_shows_each_token_only_what_came_before() {
    let (queries, keys, values) = example_a();
    let bias = causal_bias(3, DType::F64, &Device::Cpu).unwrap();
    let output = scaled_dot_product_attention(&queries, &keys, &values, Some(&bias)).unwrap();
    assert_close(&output.weights, &[[1., 0., 0.], [0.66976155, 0.33023845, 0.], [0.30569525, 0.07431963, 0.61998512]]);
}

#[test]
fn a_padding_mask_blanks_whole_columns_and_rows_still_sum_to_one() {
    let (queries, keys, values) = example_a();
    let mask = Tensor::new(&[[1u32, 1, 0]], &Device::Cpu).unwrap();
    let bias = padding_bias(&mask, DType::F64).unwrap();
    assert_eq!(bias.dims(), [1, 1, 1, 3]);
    let head = |x: &Tensor| x.unsqueeze(0).unwrap().unsqueeze(0).unwrap();
    let output = scaled_dot_product_attention(&head(&queries), &head(&keys), &head(&values), Some(&bias)).unwrap();
    for row in output.weights.squeeze(0).unwrap().squeeze(0).unwrap().to_vec2::<f64>().unwrap() {
        assert!(row[2] == 0.0, "{row:?}");
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{row:?}");
    }
}

#[test]
fn b_eggless_chocolate_cake() {
    let queries = matrix([[1., 0.], [0., 1.], [1., 1.]]);
    let keys = matrix([[2., 0.], [0., 1.], [1., 1.]]);
    let values = matrix([[10., 0.], [0., 10.], [5., 5.]]);
    let output = scaled_dot_product_attention(&queries, &keys, &values, None).unwrap();
    assert_close(
        &output.weights,
        &[
            [0.57597535, 0.14002925, 0.28399541],
            [0.19777581, 0.40111209, 0.40111209],
            [0.40111209, 0.19777581, 0.40111209],
        ],
    );
    assert_close(&output.context, &[[7.1797305, 2.8202695], [3.98331861, 6.01668139], [6.01668139, 3.98331861]]);
}

#[test]
fn b_a_key_that_points_away_gets_little_and_never_nothing() {
    let queries = matrix([[1., 1.]]);
    let keys = matrix([[2., 0.], [0., -3.], [1., 1.]]);
    let values = matrix([[10., 0.], [0., 10.], [5., 5.]]);
    let output = scaled_dot_product_attention(&queries, &keys, &values, None).unwrap();
    assert_close(&output.weights, &[[0.49281884, 0.01436231, 0.49281884]]);
    assert_close(&output.context, &[[7.39228264, 2.60771736]]);
}

#[test]
fn b_an_equal_average_blurs_all_tokens_into_one() {
    let embeddings = matrix([[1., 0.], [0., 1.], [1., 1.]]);
    let zeros = matrix([[0., 0.], [0., 0.], [0., 0.]]);
    let output = scaled_dot_product_attention(&zeros, &zeros, &embeddings, None).unwrap();
    let blur = 2.0 / 3.0;
    assert_close(&output.context, &[[blur, blur]; 3]);
}

#[test]
fn c_without_projections_a_token_looks_at_its_like() {
    let x = matrix([[1., 0.], [0., 1.], [1., 1.]]);
    let output = scaled_dot_product_attention(&x, &x, &x, None).unwrap();
    assert_close(
        &output.weights,
        &[
            [0.40111209, 0.19777581, 0.40111209],
            [0.19777581, 0.40111209, 0.40111209],
            [0.24825508, 0.24825508, 0.50348984],
        ],
    );
    assert_close(&output.context, &[[0.80222419, 0.59888791], [0.59888791, 0.80222419], [0.75174492, 0.75174492]]);
}

#[test]
fn c_scores_are_symmetric_only_where_queries_and_keys_share_their_projection() {
    let x = matrix([[1., 0.], [0., 1.], [1., 1.]]);
    let symmetric = x.matmul(&x.t().unwrap()).unwrap().to_vec2::<f64>().unwrap();
    let (queries, keys, _) = example_a();
    let separate = queries.matmul(&keys.t().unwrap()).unwrap().to_vec2::<f64>().unwrap();
    assert!((0..3).all(|i| (0..3).all(|j| symmetric[i][j] == symmetric[j][i])));
    assert!((0..3).any(|i| (0..3).any(|j| separate[i][j] != separate[j][i])));
}

#[test]
fn d_soft_dictionary_lookup() {
    // No scaling in this example: the query is multiplied by sqrt(d_k), which the function divides out again.
    let query = (matrix([[1., 0.05]]) * 2f64.sqrt()).unwrap();
    let keys = matrix([[1., 0.], [0.9, 0.1], [0., 1.]]);
    let values = matrix([[10., 0.], [9., 1.], [0., 10.]]);
    let output = scaled_dot_product_attention(&query, &keys, &values, None).unwrap();
    assert_close(&output.weights, &[[0.43551845, 0.39604869, 0.16843285]]);
    assert_close(&output.context, &[[7.91962278, 2.08037722]]);
}

/// Weights for given scores: one query of width 1 against keys that are the scores.
fn weights_of_scores<const N: usize>(scores: [f64; N]) -> Tensor {
    let keys = Tensor::new(&scores, &Device::Cpu).unwrap().reshape((N, 1)).unwrap();
    let values = Tensor::zeros((N, 1), DType::F64, &Device::Cpu).unwrap();
    scaled_dot_product_attention(&matrix([[1.]]), &keys, &values, None).unwrap().weights
}

#[test]
fn e_large_scores_saturate_and_scaled_ones_do_not() {
    assert_close(&weights_of_scores([8., 0., -8.]), &[[0.99966454, 0.00033535, 1.12497e-7]]);
    assert_close(&weights_of_scores([1., 0., -1.]), &[[0.66524096, 0.24472847, 0.09003057]]);
    assert_close(&weights_of_scores([8., 0., 0.]), &[[0.99932953, 0.00033524, 0.00033524]]);
    assert_close(&weights_of_scores([1., 0., 0.]), &[[0.57611688, 0.21194156, 0.21194156]]);
}

#[test]
fn e_dividing_by_the_root_of_the_width_keeps_scores_near_one() {
    // SplitMix64 and Box-Muller: seeded normals.
    let mut state = 7u64;
    let mut uniform = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    for (d_k, expected) in [(4usize, 2.0f64), (64, 8.0), (512, 22.6)] {
        const DRAWS: usize = 10_000;
        let dots: Vec<f64> = (0..DRAWS).map(|_| (0..d_k).map(|_| normal() * normal()).sum()).collect();
        let deviation = (dots.iter().map(|dot| dot * dot).sum::<f64>() / DRAWS as f64).sqrt();
        assert!((deviation / expected - 1.0).abs() < 0.05, "{d_k}: {deviation}");
        assert!((deviation / (d_k as f64).sqrt() - 1.0).abs() < 0.05, "{d_k}: {deviation}");
    }
}

#[test]
fn f_heads_are_split_and_merged_without_scrambling_tokens() {
    let (batch, tokens, n_heads, d_k) = (2, 5, 8, 64);
    let width = n_heads * d_k;
    let x = Tensor::arange(0f32, (batch * tokens * width) as f32, &Device::Cpu)
        .unwrap()
        .reshape((batch, tokens, width))
        .unwrap();
    let heads = split_heads(&x, n_heads).unwrap();
    assert_eq!(heads.dims(), [batch, n_heads, tokens, d_k]);
    // Head h of token t is the slice h * d_k .. of that token, not of another one.
    let token = x.get(1).unwrap().get(3).unwrap().narrow(0, 2 * d_k, d_k).unwrap().to_vec1::<f32>().unwrap();
    let head = heads.get(1).unwrap().get(2).unwrap().get(3).unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(token, head);
    // The wrong way, reshaping straight to [B, H, T, K], gives another token's numbers.
    let wrong = x.reshape((batch, n_heads, tokens, d_k)).unwrap();
    assert_ne!(wrong.get(1).unwrap().get(2).unwrap().get(3).unwrap().to_vec1::<f32>().unwrap(), head);
    let merged = merge_heads(&heads).unwrap();
    assert_eq!(merged.to_vec3::<f32>().unwrap(), x.to_vec3::<f32>().unwrap());
}

#[test]
fn f_the_softmax_runs_over_keys() {
    let (queries, keys, values) = example_a();
    let weights = scaled_dot_product_attention(&queries, &keys, &values, None).unwrap().weights;
    let rows = weights.sum(1).unwrap().to_vec1::<f64>().unwrap();
    let columns = weights.sum(0).unwrap().to_vec1::<f64>().unwrap();
    assert!(rows.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{rows:?}");
    assert!(columns.iter().any(|sum| (sum - 1.0).abs() > 0.01), "{columns:?}");
}

#[test]
fn f_cross_attention_scores_queries_against_other_keys() {
    let queries = Tensor::ones((2, 3, 4, 8), DType::F32, &Device::Cpu).unwrap();
    let keys = Tensor::ones((2, 3, 7, 8), DType::F32, &Device::Cpu).unwrap();
    let values = Tensor::ones((2, 3, 7, 5), DType::F32, &Device::Cpu).unwrap();
    let output = scaled_dot_product_attention(&queries, &keys, &values, None).unwrap();
    assert_eq!(output.weights.dims(), [2, 3, 4, 7]);
    assert_eq!(output.context.dims(), [2, 3, 4, 5]);
}

#[test]
fn g_without_positions_order_does_not_matter() {
    let x = matrix([[1., 0.], [0., 1.], [1., 1.]]);
    let permuted = matrix([[1., 1.], [1., 0.], [0., 1.]]);
    let output = scaled_dot_product_attention(&x, &x, &x, None).unwrap().context.to_vec2::<f64>().unwrap();
    let moved =
        scaled_dot_product_attention(&permuted, &permuted, &permuted, None).unwrap().context.to_vec2::<f64>().unwrap();
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        for (a, b) in output[from].iter().zip(&moved[to]) {
            assert!((a - b).abs() < 1e-12);
        }
    }
}

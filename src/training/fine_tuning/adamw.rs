//! AdamW (Loshchilov and Hutter 2019) with bias correction, on plain slices: one state, whatever device the network is on.

use rayon::prelude::*;

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// What is remembered of the gradients of one parameter tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
}

/// Size of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// Counted from 1.
    pub step: usize,
    pub learning_rate: f32,
    pub weight_decay: f32,
}

impl Moments {
    pub(super) fn zeros(size: usize) -> Self {
        Self { first: vec![0.0; size], second: vec![0.0; size] }
    }

    /// Moves `values` one step against `gradient`, which is scaled by `scale` first.
    pub(super) fn step(&mut self, values: &mut [f32], gradient: &[f32], scale: f32, rate: Rate) {
        let Rate { step, learning_rate, weight_decay } = rate;
        // The correction of both moments for their start at zero, in one factor and one divisor.
        let steps = step.min(i32::MAX as usize) as i32;
        let first_bias = (1.0 - f64::from(BETA_1).powi(steps)) as f32;
        let second_bias = ((1.0 - f64::from(BETA_2).powi(steps)) as f32).sqrt();
        const BLOCK: usize = 1 << 14;
        let moments = self.first.par_chunks_mut(BLOCK).zip(self.second.par_chunks_mut(BLOCK));
        let values = values.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK));
        values.zip(moments).for_each(|((values, gradient), (first, second))| {
            for i in 0..values.len() {
                let g = gradient[i] * scale;
                first[i] = BETA_1 * first[i] + (1.0 - BETA_1) * g;
                second[i] = BETA_2 * second[i] + (1.0 - BETA_2) * g * g;
                let direction = (first[i] / first_bias) / (second[i].sqrt() / second_bias + EPSILON);
                values[i] -= learning_rate * (direction + weight_decay * values[i]);
            }
        });
    }
}

/// The factor that brings all gradients together to at most `limit` in Euclidean length.
pub(super) fn clip_factor<'a>(gradients: impl IntoIterator<Item = &'a [f32]>, limit: f64) -> f32 {
    let square: f64 =
        gradients.into_iter().map(|values| values.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>()).sum();
    let length = square.sqrt();
    if length > limit { (limit / length) as f32 } else { 1.0 }
}

/// The share of the full learning rate at a step: up over the first `warm_up` share of all steps, then down to nothing.
pub(super) fn schedule(step: usize, steps: usize, warm_up: f64) -> f64 {
    let rising = (steps as f64 * warm_up).max(1.0);
    let position = step as f64;
    if position < rising {
        (position + 1.0) / rising
    } else {
        ((steps as f64 - position) / (steps as f64 - rising).max(1.0)).clamp(0.0, 1.0)
    }
    .min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_the_learning_rate_whatever_the_size_of_the_gradient() {
        for size in [1e-4, 1.0, 1e4] {
            let mut values = [1.0, 1.0];
            let rate = Rate { step: 1, learning_rate: 0.1, weight_decay: 0.0 };
            Moments::zeros(2).step(&mut values, &[size, -size], 1.0, rate);
            assert!((values[0] - 0.9).abs() < 1e-4 && (values[1] - 1.1).abs() < 1e-4, "{size}");
        }
    }

    #[test]
    fn two_steps_are_those_by_hand() {
        // Gradients 1 then 3 at rate 0.1: m = 0.39 / 0.19, v = 0.009999 / 0.001999; decay of 0.01 counts on the value.
        let (mut moments, mut values) = (Moments::zeros(1), [2.0]);
        let rate = |step| Rate { step, learning_rate: 0.1, weight_decay: 0.01 };
        moments.step(&mut values, &[1.0], 1.0, rate(1));
        let after_one = 2.0 - 0.1 * (1.0 + 0.02);
        assert!((values[0] - after_one).abs() < 1e-6);
        moments.step(&mut values, &[3.0], 1.0, rate(2));
        let direction = (0.39f32 / 0.19) / (0.009_999f32 / 0.001_999).sqrt();
        assert!((values[0] - (after_one - 0.1 * (direction + 0.01 * after_one))).abs() < 1e-5);
    }

    #[test]
    fn long_gradients_are_cut_to_the_limit_and_short_ones_stay() {
        let (a, b) = ([3.0f32], [4.0f32]);
        assert!((clip_factor([&a[..], &b[..]], 1.0) - 0.2).abs() < 1e-6);
        assert_eq!(clip_factor([&a[..]], 5.0), 1.0);
    }

    #[test]
    fn the_rate_rises_then_falls_to_nothing() {
        let rates: Vec<f64> = (0..10).map(|step| schedule(step, 10, 0.2)).collect();
        assert_eq!(&rates[..3], [0.5, 1.0, 1.0]);
        assert!(rates[2..].is_sorted_by(|a, b| a > b));
        assert!((rates[9] - 0.125).abs() < 1e-9);
        assert_eq!(schedule(10, 10, 0.2), 0.0);
    }
}

//! Multinomial logistic regression on fixed features, by L-BFGS in f64: seconds for thousands of mails.

use super::design::{Design, Row};

/// Features of the mails, row by row, and their queues.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a, R> {
    /// One row a mail.
    pub features: &'a [R],
    /// Columns of a row.
    pub width: usize,
    /// Index of the queue of each mail.
    pub targets: &'a [usize],
    /// How many queues.
    pub n_queues: usize,
}

/// Settings of the fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogisticConfig {
    /// Inverse strength of the L2 penalty, as scikit-learn's `C`: the loss is `C * sum(cross entropy) + |W|^2 / 2`.
    pub c: f64,
    /// Iterations at most.
    pub max_iterations: usize,
    /// Stops when no entry of the gradient, per mail, is larger.
    pub tolerance: f64,
}

impl Default for LogisticConfig {
    fn default() -> Self {
        Self { c: 30.0, max_iterations: 500, tolerance: 1e-6 }
    }
}

/// A fitted model: `logits = W x + b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Logistic {
    /// `[n_queues, width]`, row-major.
    pub weight: Vec<f64>,
    /// `[n_queues]`.
    pub bias: Vec<f64>,
}

impl Logistic {
    /// Fits the model; the loss is convex, so the start does not matter.
    #[must_use]
    pub fn fit<R: Row>(problem: &Problem<'_, R>, config: &LogisticConfig) -> Self {
        let width = problem.width;
        let mut parameters = vec![0.0; problem.n_queues * (width + 1)];
        let design = R::design(problem.features, width);
        let task = Task { targets: problem.targets, n_queues: problem.n_queues, c: config.c };
        minimize(&mut parameters, config, |parameters, gradient| loss(&design, task, parameters, gradient));
        let bias = parameters.split_off(problem.n_queues * width);
        Self { weight: parameters, bias }
    }

    /// Logits of one row.
    #[must_use]
    pub fn logits<R: Row>(&self, row: &R) -> Vec<f32> {
        let width = self.weight.len() / self.bias.len().max(1);
        let of_queue = |(queue, bias): (usize, &f64)| row.dot(&self.weight[queue * width..(queue + 1) * width]) + bias;
        self.bias.iter().enumerate().map(of_queue).map(|logit| logit as f32).collect()
    }
}

/// Mean loss per mail and its gradient. Parameters: `W` row by row, then `b`; the bias is not penalised.
fn loss(design: &impl Design, task: Task<'_>, parameters: &[f64], gradient: &mut [f64]) -> f64 {
    let Task { targets, n_queues, c } = task;
    let n = targets.len() as f64;
    let (weight, bias) = parameters.split_at(parameters.len() - n_queues);
    let (grad_weight, grad_bias) = gradient.split_at_mut(weight.len());
    grad_bias.fill(0.0);
    let mut rows = design.products(weight, n_queues); // [mails, queues]: logits, then errors
    let mut total = 0.0;
    for (row, &target) in rows.chunks_exact_mut(n_queues).zip(targets) {
        row.iter_mut().zip(bias).for_each(|(logit, bias)| *logit += bias);
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|logit| (logit - largest).exp()).sum();
        total += largest + sum.ln() - row[target];
        for (queue, logit) in row.iter_mut().enumerate() {
            *logit = ((*logit - largest).exp() / sum - f64::from(u8::from(queue == target))) / n;
            grad_bias[queue] += *logit;
        }
    }
    grad_weight.copy_from_slice(&design.sums(&rows, n_queues));
    let penalty = 1.0 / (c * n);
    for (gradient, weight) in grad_weight.iter_mut().zip(weight) {
        *gradient += penalty * weight;
    }
    total / n + penalty * weight.iter().map(|weight| weight * weight).sum::<f64>() / 2.0
}

/// What the loss knows beside the features.
#[derive(Clone, Copy)]
struct Task<'a> {
    targets: &'a [usize],
    n_queues: usize,
    c: f64,
}

/// Pairs of steps and gradient changes that L-BFGS remembers.
const MEMORY: usize = 10;

/// L-BFGS with a backtracking line search (Nocedal and Wright, algorithms 7.4 and 3.1).
pub(super) fn minimize(x: &mut [f64], config: &LogisticConfig, objective: impl Fn(&[f64], &mut [f64]) -> f64) {
    let mut gradient = vec![0.0; x.len()];
    let mut value = objective(x, &mut gradient);
    let mut history: std::collections::VecDeque<(Vec<f64>, Vec<f64>, f64)> = std::collections::VecDeque::new();
    for _ in 0..config.max_iterations {
        if gradient.iter().all(|entry| entry.abs() <= config.tolerance) {
            return;
        }
        let direction = direction(&gradient, &history);
        let slope = inner(&direction, &gradient);
        let mut step = 1.0;
        let mut next_gradient = vec![0.0; x.len()];
        let (next, next_value) = loop {
            let next: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            let next_value = objective(&next, &mut next_gradient);
            // Armijo's condition; below 1e-12 the step is rounding noise and the minimum is reached.
            if next_value <= value + 1e-4 * step * slope || step < 1e-12 {
                break (next, next_value);
            }
            step /= 2.0;
        };
        if step < 1e-12 {
            return;
        }
        let moved: Vec<f64> = next.iter().zip(x.iter()).map(|(next, x)| next - x).collect();
        let changed: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(next, g)| next - g).collect();
        let curvature = inner(&moved, &changed);
        if curvature > 1e-12 {
            history.push_back((moved, changed, 1.0 / curvature));
            if history.len() > MEMORY {
                history.pop_front();
            }
        }
        x.copy_from_slice(&next);
        gradient = next_gradient;
        value = next_value;
    }
}

/// The two-loop recursion: minus the inverse Hessian, as far as it is known, times the gradient.
fn direction(gradient: &[f64], history: &std::collections::VecDeque<(Vec<f64>, Vec<f64>, f64)>) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|entry| -entry).collect();
    let mut alphas = Vec::with_capacity(history.len());
    for (moved, changed, rho) in history.iter().rev() {
        let alpha = rho * inner(moved, &q);
        q.iter_mut().zip(changed).for_each(|(q, changed)| *q -= alpha * changed);
        alphas.push(alpha);
    }
    if let Some((moved, changed, _)) = history.back() {
        let scale = inner(moved, changed) / inner(changed, changed);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((moved, changed, rho), alpha) in history.iter().zip(alphas.into_iter().rev()) {
        let beta = rho * inner(changed, &q);
        q.iter_mut().zip(moved).for_each(|(q, moved)| *q += (alpha - beta) * moved);
    }
    q
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::SparseRow;

    fn data() -> (Vec<Vec<f32>>, Vec<usize>) {
        let features =
            vec![vec![1.0, 0.2], vec![0.9, -0.1], vec![-1.0, 0.3], vec![-0.8, 0.0], vec![0.1, 1.0], vec![0.0, 0.9]];
        (features, vec![0, 0, 1, 1, 2, 2])
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let (features, targets) = data();
        let design = <Vec<f32>>::design(&features, 2);
        let task = Task { targets: &targets, n_queues: 3, c: 2.0 };
        let parameters: Vec<f64> = (0..9).map(|i| f64::from(i) * 0.1 - 0.3).collect();
        let mut gradient = vec![0.0; 9];
        loss(&design, task, &parameters, &mut gradient);
        for index in 0..9 {
            let at = |shift: f64| {
                let mut moved = parameters.clone();
                moved[index] += shift;
                loss(&design, task, &moved, &mut [0.0; 9])
            };
            let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((difference - gradient[index]).abs() < 1e-8, "{index}: {difference} {}", gradient[index]);
        }
    }

    #[test]
    fn sparse_rows_give_the_same_model_as_dense_ones() {
        let (features, targets) = data();
        let sparse: Vec<SparseRow> = features.iter().map(|row| row.iter().copied().enumerate().collect()).collect();
        let config = LogisticConfig::default();
        let dense = Problem { features: &features, targets: &targets, n_queues: 3, width: 2 };
        let sparse = Problem { features: &sparse, targets: &targets, n_queues: 3, width: 2 };
        let (a, b) = (Logistic::fit(&dense, &config), Logistic::fit(&sparse, &config));
        assert!(a.weight.iter().zip(&b.weight).all(|(a, b)| (a - b).abs() < 1e-4));
    }

    #[test]
    fn separable_mail_is_separated_and_the_gradient_vanishes() {
        let (features, targets) = data();
        let problem = Problem { features: &features, targets: &targets, n_queues: 3, width: 2 };
        let config = LogisticConfig { c: 10.0, ..LogisticConfig::default() };
        let model = Logistic::fit(&problem, &config);
        for (row, &target) in features.iter().zip(&targets) {
            let logits = model.logits(row);
            let best = (0..3).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
            assert_eq!(best, Some(target));
        }
        let parameters: Vec<f64> = model.weight.iter().chain(&model.bias).copied().collect();
        let mut gradient = vec![0.0; 9];
        let task = Task { targets: &targets, n_queues: 3, c: 10.0 };
        loss(&<Vec<f32>>::design(&features, 2), task, &parameters, &mut gradient);
        assert!(gradient.iter().all(|entry| entry.abs() <= 1e-6), "{gradient:?}");
    }
}

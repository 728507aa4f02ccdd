//! Choices made on mail that the judged models had not seen: the strength of each leg's penalty, the weight of the words and their gate.

use rayon::prelude::*;

use super::design::Row;
use super::folds::Folds;
use super::logistic::{Logistic, LogisticConfig, Problem};
use crate::lexical::Gate;
use crate::metrics::{calibrated_loss, fit_temperature, likeliest_temperature, negative_log_likelihood, softmax};

/// What models of one leg said of mail that they had not seen.
pub(super) struct HeldOut {
    pub logistic: LogisticConfig,
    /// One row a judged mail.
    pub logits: Vec<Vec<f32>>,
}

/// Tries each strength of the penalty and keeps the one with the best likelihood, calibrated, on held-out mail.
pub(super) fn best_held_out<R: Row>(problem: &Problem<'_, R>, folds: &Folds, strengths: &[f64]) -> HeldOut {
    let targets: Vec<usize> = folds.judged().map(|(mail, _)| problem.targets[mail]).collect();
    let tried = strengths.iter().map(|&c| {
        let logistic = LogisticConfig { c, ..LogisticConfig::default() };
        let logits = out_of_fold(problem, folds, &logistic);
        (calibrated_loss(&logits, &targets), HeldOut { logistic, logits })
    });
    tried.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, best)| best).expect("train() checks that there is one to try")
}

/// Logits of each judged mail from a model that was trained on all but its fold.
fn out_of_fold<R: Row>(problem: &Problem<'_, R>, folds: &Folds, config: &LogisticConfig) -> Vec<Vec<f32>> {
    let Problem { features, targets, n_queues, width } = *problem;
    let models: Vec<Logistic> = (0..folds.count())
        .into_par_iter()
        .map(|fold| {
            let others = || (0..features.len()).filter(|&mail| folds.of(mail) != Some(fold));
            let rows: Vec<R> = others().map(|mail| features[mail].clone()).collect();
            let labels: Vec<usize> = others().map(|mail| targets[mail]).collect();
            Logistic::fit(&Problem { features: &rows, targets: &labels, n_queues, width }, config)
        })
        .collect();
    folds.judged().map(|(mail, fold)| models[fold].logits(&features[mail])).collect()
}

/// The encoder's logits and `weight` times those of the words, behind a gate.
pub(super) struct Sum {
    pub weight: f64,
    pub gate: Gate,
    pub logits: Vec<Vec<f32>>,
    /// The likeliest, at which sums are compared; what is served is [`fit_temperature`] of the chosen one.
    pub temperature: f64,
}

impl Sum {
    /// What each mail loses: minus the logarithm of its queue's calibrated probability.
    fn losses(&self, targets: &[usize]) -> Vec<f64> {
        let loss = |(row, &target): (&Vec<f32>, &usize)| {
            let probability = softmax(row, self.temperature).get(target).copied().unwrap_or(0.0);
            -probability.max(f64::MIN_POSITIVE).ln()
        };
        self.logits.iter().zip(targets).map(loss).collect()
    }

    /// Whether this is better on held-out mail than another: likelier, and no less often right for the average queue, so that
    /// rare queues are not given up for common ones.
    pub(super) fn beats(&self, other: &Self, targets: &[usize]) -> bool {
        let loss = |sum: &Self| negative_log_likelihood(&sum.logits, targets, sum.temperature);
        loss(self) < loss(other) && macro_recall(&self.logits, targets) >= macro_recall(&other.logits, targets)
    }
}

/// The share of a queue's mails that go there, averaged over the queues.
fn macro_recall(logits: &[Vec<f32>], targets: &[usize]) -> f64 {
    let n_queues = logits.first().map_or(0, Vec::len);
    let (_, correct) = judged(logits, targets, 1.0);
    let of_queue = |queue: usize| {
        let own = || targets.iter().zip(&correct).filter(move |(target, _)| **target == queue);
        own().filter(|(_, correct)| **correct).count() as f64 / own().count().max(1) as f64
    };
    (0..n_queues).map(of_queue).sum::<f64>() / n_queues.max(1) as f64
}

/// Weights of the words beside the encoder. 0 leaves them out: they must earn their place.
const WEIGHTS: [f64; 10] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0];

/// Powers of the gate, the narrowest first; 0 is none.
const POWERS: [f32; 4] = [1.0, 0.5, 0.25, 0.0];

/// The sum of both legs with the best likelihood, calibrated, on held-out mail - or one behind a narrower gate that is not surely
/// worse: its mean loss is within a standard error of the best one's (Breiman's rule for the simplest model), and it is right no less
/// often than that one and than the words alone, below which a router is refused. An inbox holds few mails that turn on the order of
/// words, so their likelihood alone hardly speaks for a gate, and such mails need it.
pub(super) fn best_sum(encoder: &[Vec<f32>], words: &[Vec<f32>], targets: &[usize]) -> Sum {
    let of_encoder = fit_temperature(encoder, targets) as f32;
    let logits = encoder.first().map_or(0, Vec::len);
    let sum = |weight: f64, power: f32| {
        let gate = Gate { power, temperature: of_encoder, logits };
        let join = |(encoder, words): (&Vec<f32>, &Vec<f32>)| gate.join(encoder, &scaled(words, weight));
        let logits: Vec<Vec<f32>> = encoder.iter().zip(words).map(join).collect();
        let temperature = likeliest_temperature(&logits, targets);
        Sum { weight, gate, logits, temperature }
    };
    let best_of_power = |power: f32| {
        let tried = WEIGHTS.into_iter().map(|weight| sum(weight, power)).map(|sum| (mean(&sum.losses(targets)), sum));
        tried.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, sum)| sum).expect("there is a weight to try")
    };
    let by_power = POWERS.map(best_of_power);
    let losses: Vec<Vec<f64>> = by_power.iter().map(|sum| sum.losses(targets)).collect();
    // Of equals the last: no gate.
    let best =
        (0..POWERS.len()).rev().min_by(|&a, &b| mean(&losses[a]).total_cmp(&mean(&losses[b]))).unwrap_or_default();
    let right: Vec<usize> = by_power.iter().map(|sum| count_right(&sum.logits, targets)).collect();
    let chosen = narrowest(&losses, &right, best, count_right(words, targets));
    by_power.into_iter().nth(chosen).expect("one of them was chosen")
}

/// The first of the sums that is not surely worse than the best and right no less often than that one and than the words alone; the
/// best where there is none.
fn narrowest(losses: &[Vec<f64>], right: &[usize], best: usize, right_by_words: usize) -> usize {
    let least = right[best].max(right_by_words);
    let holds = |&sum: &usize| right[sum] >= least && !surely_worse(&losses[sum], &losses[best]);
    (0..losses.len()).find(holds).unwrap_or(best)
}

fn count_right(logits: &[Vec<f32>], targets: &[usize]) -> usize {
    judged(logits, targets, 1.0).1.into_iter().filter(|&correct| correct).count()
}

/// Whether the mean of `losses` is more than a standard error above that of `best`, mail by mail.
fn surely_worse(losses: &[f64], best: &[f64]) -> bool {
    let more: Vec<f64> = losses.iter().zip(best).map(|(loss, best)| loss - best).collect();
    let by = mean(&more);
    let variance = more.iter().map(|more| (more - by).powi(2)).sum::<f64>() / (more.len().max(2) - 1) as f64;
    by > (variance / more.len().max(1) as f64).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn scaled(values: &[f32], weight: f64) -> Vec<f32> {
    values.iter().map(|value| weight as f32 * value).collect()
}

/// Confidence of the likeliest queue of each mail, and whether it is the right one.
pub(super) fn judged(logits: &[Vec<f32>], targets: &[usize], temperature: f64) -> (Vec<f64>, Vec<bool>) {
    logits
        .iter()
        .zip(targets)
        .map(|(row, &target)| {
            let probabilities = softmax(row, temperature);
            let best = (0..row.len()).max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b])).unwrap_or(0);
            (probabilities[best], best == target)
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_say_nothing_are_left_out() {
        let encoder = vec![vec![2.0, 0.0], vec![0.0, 2.0], vec![1.5, 0.5]];
        let noise = vec![vec![0.0, 1.0], vec![1.0, 0.0], vec![0.0, 1.0]];
        assert!(best_sum(&encoder, &noise, &[0, 1, 0]).weight == 0.0);
    }

    #[test]
    fn words_that_err_where_the_encoder_is_sure_count_where_it_is_not() {
        // The encoder is sure of the first four and right, and the words are sure and wrong. It is not of the others, where they are right:
        // a weight that is enough there is too much here.
        let sure = [(vec![3.0, 0.0], vec![0.0, 6.0], 0), (vec![0.0, 3.0], vec![6.0, 0.0], 1)];
        let unsure = [(vec![0.5, 0.0], vec![0.0, 0.8], 1), (vec![0.0, 0.5], vec![0.8, 0.0], 0)];
        let mails = [sure.clone(), sure, unsure.clone(), unsure].concat();
        let encoder: Vec<Vec<f32>> = mails.iter().map(|mail| mail.0.clone()).collect();
        let words: Vec<Vec<f32>> = mails.iter().map(|mail| mail.1.clone()).collect();
        let targets: Vec<usize> = mails.iter().map(|mail| mail.2).collect();
        let sum = best_sum(&encoder, &words, &targets);
        assert!(sum.weight > 0.0 && sum.gate.power > 0.0, "{} {:?}", sum.weight, sum.gate);
        assert!(judged(&sum.logits, &targets, sum.temperature).1.iter().all(|&correct| correct));
    }

    #[test]
    fn a_gate_that_is_surely_worse_is_not_taken() {
        // The encoder is sure and often wrong; the words are always right.
        let mails: Vec<(Vec<f32>, Vec<f32>, usize)> = (0..60)
            .map(|mail| {
                let (target, wrong) = (mail % 2, mail % 3 == 0);
                let of = |queue: usize, size: f32| if queue == 0 { vec![size, 0.0] } else { vec![0.0, size] };
                (of(if wrong { 1 - target } else { target }, 5.0), of(target, 4.0), target)
            })
            .collect();
        let encoder: Vec<Vec<f32>> = mails.iter().map(|mail| mail.0.clone()).collect();
        let words: Vec<Vec<f32>> = mails.iter().map(|mail| mail.1.clone()).collect();
        let targets: Vec<usize> = mails.iter().map(|mail| mail.2).collect();
        let sum = best_sum(&encoder, &words, &targets);
        assert_eq!(judged(&sum.logits, &targets, sum.temperature).1.iter().filter(|&&correct| correct).count(), 60);
        assert!(surely_worse(&[1.0, 1.1, 0.9], &[0.5, 0.5, 0.6]) && !surely_worse(&[1.0, 0.1], &[0.5, 0.5]));
        assert!(!surely_worse(&[0.5], &[0.5]));
    }

    #[test]
    fn a_narrower_gate_that_is_less_often_right_is_not_taken() {
        // Of the encoder's two sure mistakes the words know one: behind the narrowest gate they cannot mend it, and its likelihood
        // is within a standard error all the same.
        let both = |target: usize, encoder: f32, words: f32| {
            let of =
                |size: f32| if (target == 0) == (size > 0.0) { vec![size.abs(), 0.0] } else { vec![0.0, size.abs()] };
            (of(encoder), of(words), target)
        };
        let mut mails: Vec<(Vec<f32>, Vec<f32>, usize)> = (0..20).map(|mail| both(mail % 2, 3.0, 1.0)).collect();
        mails.extend((0..4).map(|mail| both(mail % 2, -0.3, 2.0)));
        mails.extend([both(0, -2.0, 3.0), both(0, 3.0, -1.5), both(1, 3.0, -1.5), both(1, -2.0, -1.0)]);
        let encoder: Vec<Vec<f32>> = mails.iter().map(|mail| mail.0.clone()).collect();
        let words: Vec<Vec<f32>> = mails.iter().map(|mail| mail.1.clone()).collect();
        let targets: Vec<usize> = mails.iter().map(|mail| mail.2).collect();
        let sum = best_sum(&encoder, &words, &targets);
        // At power 1 it is right for 26.
        assert_eq!((sum.gate.power, count_right(&sum.logits, &targets)), (0.5, 27));
    }

    #[test]
    fn a_gate_below_the_words_alone_is_passed_over_for_one_that_is_not() {
        let losses = vec![vec![0.5, 0.1]; 4];
        assert_eq!(narrowest(&losses, &[90, 90, 91, 91], 3, 80), 2);
        assert_eq!(narrowest(&losses, &[90, 91, 91, 91], 0, 91), 1);
        assert_eq!(narrowest(&losses, &[91, 91, 91, 91], 3, 91), 0);
        // Where none is as often right as the words, the likeliest: the training will be refused.
        assert_eq!(narrowest(&losses, &[89, 89, 89, 89], 2, 91), 2);
    }

    #[test]
    fn words_that_know_better_are_taken_in() {
        let encoder = vec![vec![0.1, 0.0], vec![0.1, 0.0], vec![0.0, 0.2]];
        let words = vec![vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0, 0.0]];
        let sum = best_sum(&encoder, &words, &[0, 1, 0]);
        assert!(sum.weight > 0.0);
        assert!(judged(&sum.logits, &[0, 1, 0], sum.temperature).1.iter().all(|&correct| correct));
    }
}

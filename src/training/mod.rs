//! From labelled mail to a router: features of the frozen encoder, a head on top, calibration on mail that the judged
//! head had not seen.

mod folds;
mod logistic;

pub use logistic::{Logistic, LogisticConfig, Problem};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::artifact::{Calibration, Figures, HeadTensors};
use crate::collate::{Pooling, WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::email::CleanOptions;
use crate::metrics::{expected_calibration_error, fit_temperature, negative_log_likelihood, softmax, solve_threshold};
use crate::model::{BatchEncoder, KeepMaps, ModelError, l2_normalize};
use crate::queues::{Queue, QueueError, QueueSet, slug};
use crate::tokenizer::{EmailTokenizer, WindowConfig};

/// Settings of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Inverse strengths of the head's L2 penalty to try; the one with the best likelihood on held-out mail is taken.
    pub c: Vec<f64>,
    /// Parts that the mail is split into: each is judged by a head trained on the others.
    pub folds: usize,
    /// Share of wrong answers that is acceptable among mail routed without a person.
    pub max_error_rate: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// How mail is cut into windows.
    pub windows: WindowConfig,
    /// How hidden states become one vector.
    pub pooling: Pooling,
    /// Languages of the mail (ISO 639-1); empty: any.
    pub languages: Vec<String>,
    /// How mail is read.
    pub email: CleanOptions,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            c: vec![1.0, 3.0, 10.0, 30.0, 100.0],
            folds: 6,
            max_error_rate: 0.05,
            seed: 0,
            windows: WindowConfig::default(),
            pooling: Pooling::default(),
            languages: vec!["en".to_owned()],
            email: CleanOptions::default(),
        }
    }
}

/// Why a training is refused.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// The labels make no set of queues.
    #[error(transparent)]
    Queues(#[from] QueueError),
    /// Too few mails of a queue to judge by.
    #[error(
        "queue `{queue}` has {mails} mails, at least {least} are needed: add some, or merge the queue into another"
    )]
    TooFew {
        /// Its id.
        queue: String,
        /// Its mails.
        mails: usize,
        /// The least number.
        least: usize,
    },
    /// Fewer than two folds leave nothing to judge by.
    #[error("folds must be at least 2, not {0}")]
    Folds(usize),
    /// No strength of the penalty to try, or one that is no strength.
    #[error("c must list at least one number above 0, not {0:?}")]
    Strength(Vec<f64>),
    /// The network failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// A trained head with all that a router needs beside it.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The queues, sorted by id.
    pub queues: Vec<Queue>,
    /// The head's tensors.
    pub head: HeadTensors,
    /// How logits become a decision.
    pub calibration: Calibration,
    /// Whether the error budget is proven on the held-out mail.
    pub budget_guaranteed: bool,
    /// Measured on held-out mail.
    pub figures: Figures,
}

/// The encoder and what belongs to it.
#[derive(Clone, Copy)]
pub struct Backbone<'a> {
    /// The frozen encoder.
    pub encoder: &'a BatchEncoder,
    /// Its tokenizer.
    pub tokenizer: &'a EmailTokenizer,
}

/// Tokens of one batch while features are made.
const BATCH_TOKENS: usize = 2048;

/// Trains a router's head. `progress` is told mails done and mails in all.
///
/// # Errors
/// [`TrainingError`], with the remedy.
pub fn train(
    backbone: Backbone<'_>,
    examples: &[Example],
    config: &TrainingConfig,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Trained, TrainingError> {
    if config.folds < 2 {
        return Err(TrainingError::Folds(config.folds));
    }
    if config.c.is_empty() || config.c.iter().any(|&c| !(c.is_finite() && c > 0.0)) {
        return Err(TrainingError::Strength(config.c.clone()));
    }
    let (queues, targets) = queues_of(examples)?;
    let features = features(backbone, examples, config, progress)?;
    let all = Problem { features: &features, targets: &targets, n_queues: queues.len() };
    let folds = folds::split(examples, &targets, config.folds, config.seed);
    let HeldOut { logistic, logits: held_out, temperature } = best_held_out(&all, &folds, &config.c);
    let (confidences, correct) = judged(&held_out, &targets, temperature);
    let solved = solve_threshold(&confidences, &correct, config.max_error_rate);

    let model = Logistic::fit(&all, &logistic);
    let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
    Ok(Trained {
        queues,
        head: HeadTensors {
            d_model: backbone.encoder.config().d_model,
            weight: narrow(&model.weight),
            bias: narrow(&model.bias),
        },
        calibration: Calibration { temperature, threshold: solved.threshold },
        budget_guaranteed: solved.guaranteed,
        figures: Figures {
            accuracy: share(correct.iter().filter(|&&correct| correct).count(), correct.len()),
            coverage: share(solved.routed, correct.len()),
            accuracy_when_routed: share(solved.routed - solved.errors, solved.routed),
            ece: expected_calibration_error(&confidences, &correct, 15),
        },
    })
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The queues that the labels name, sorted by id, and the queue of each mail.
fn queues_of(examples: &[Example]) -> Result<(Vec<Queue>, Vec<usize>), TrainingError> {
    let mut queues: Vec<Queue> = Vec::new();
    for example in examples {
        let id = slug(&example.queue);
        if !queues.iter().any(|queue| queue.id == id) {
            queues.push(Queue::new(&id, &name_of(&example.queue)));
        }
    }
    queues.sort_by(|a, b| a.id.cmp(&b.id));
    let set = QueueSet::new(queues.clone())?;
    let targets: Vec<usize> =
        examples.iter().map(|example| set.index_of(&slug(&example.queue)).unwrap_or_default()).collect();
    const LEAST: usize = 2;
    for (index, queue) in queues.iter().enumerate() {
        let mails = targets.iter().filter(|&&target| target == index).count();
        if mails < LEAST {
            return Err(TrainingError::TooFew { queue: queue.id.clone(), mails, least: LEAST });
        }
    }
    Ok((queues, targets))
}

/// A name for people: a slug gets blanks and a capital, anything else stays as written.
fn name_of(label: &str) -> String {
    if slug(label) != label {
        return label.to_owned();
    }
    let words = label.replace(['-', '_'], " ");
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// The pooled vector of each mail, scaled to length 1, in the order of the examples.
fn features(
    backbone: Backbone<'_>,
    examples: &[Example],
    config: &TrainingConfig,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Vec<f32>>, ModelError> {
    let mails: Vec<WindowedEmail> = examples
        .iter()
        .map(|example| {
            let encoded = backbone.tokenizer.encode(&example.clean(&config.email), config.windows.max_tokens);
            WindowedEmail::new(&encoded, backbone.tokenizer, &config.windows, config.pooling)
        })
        .collect();
    let mut features = vec![Vec::new(); mails.len()];
    let mut done = 0;
    for batch in batches(&mails, BATCH_TOKENS) {
        let packed = pack(batch.iter().map(|&mail| &mails[mail]));
        let pooled = l2_normalize(&backbone.encoder.pool(&packed, &KeepMaps::None)?.vectors)?.to_vec2::<f32>()?;
        done += batch.len();
        for (mail, vector) in batch.into_iter().zip(pooled) {
            features[mail] = vector;
        }
        progress(done, mails.len());
    }
    Ok(features)
}

/// What heads said of mail that they had not seen.
struct HeldOut {
    logistic: LogisticConfig,
    logits: Vec<Vec<f32>>,
    temperature: f64,
}

/// Tries each strength of the penalty and keeps the one with the best likelihood, calibrated, on held-out mail.
fn best_held_out(problem: &Problem<'_>, folds: &[usize], strengths: &[f64]) -> HeldOut {
    let tried = strengths.iter().map(|&c| {
        let logistic = LogisticConfig { c, ..LogisticConfig::default() };
        let logits = out_of_fold(problem, folds, &logistic);
        let temperature = fit_temperature(&logits, problem.targets);
        let loss = negative_log_likelihood(&logits, problem.targets, temperature);
        (loss, HeldOut { logistic, logits, temperature })
    });
    tried.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, best)| best).expect("train() checks that there is one to try")
}

/// Logits of each mail from a head that was trained on the other folds.
fn out_of_fold(problem: &Problem<'_>, folds: &[usize], config: &LogisticConfig) -> Vec<Vec<f32>> {
    let Problem { features, targets, n_queues } = *problem;
    let n_folds = folds.iter().max().map_or(0, |last| last + 1);
    let heads: Vec<Logistic> = (0..n_folds)
        .into_par_iter()
        .map(|fold| {
            let others = || (0..features.len()).filter(|&mail| folds[mail] != fold);
            let rows: Vec<Vec<f32>> = others().map(|mail| features[mail].clone()).collect();
            let labels: Vec<usize> = others().map(|mail| targets[mail]).collect();
            Logistic::fit(&Problem { features: &rows, targets: &labels, n_queues }, config)
        })
        .collect();
    folds.iter().zip(features).map(|(&fold, row)| heads[fold].logits(row)).collect()
}

/// Confidence of the likeliest queue of each mail, and whether it is the right one.
fn judged(logits: &[Vec<f32>], targets: &[usize], temperature: f64) -> (Vec<f64>, Vec<bool>) {
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

    fn example(queue: &str) -> Example {
        Example { id: "1".into(), group: None, subject: "s".into(), text: "t".into(), html: None, queue: queue.into() }
    }

    #[test]
    fn labels_that_differ_only_in_case_are_one_queue() {
        let examples = [example("Refunds"), example("refunds"), example("late-deliveries"), example("late-deliveries")];
        let (queues, targets) = queues_of(&examples).unwrap();
        assert_eq!(queues.len(), 2);
        assert_eq!(targets, [1, 1, 0, 0]);
        assert_eq!(queues[0].name, "Late deliveries");
    }

    #[test]
    fn a_queue_with_one_mail_is_refused_with_a_remedy() {
        let error = queues_of(&[example("a"), example("a"), example("b")]).unwrap_err();
        assert!(error.to_string().contains("merge the queue"), "{error}");
    }

    #[test]
    fn one_queue_is_refused() {
        assert!(matches!(queues_of(&[example("a")]), Err(TrainingError::Queues(QueueError::TooFew(1)))));
    }
}

//! From labelled mail to a router: features of the frozen encoder with a head on top, word counts beside it, calibration on
//! mail that the judged legs had not seen.

mod folds;
mod held_out;
mod logistic;

pub use logistic::{Logistic, LogisticConfig, Problem, Row};

use serde::{Deserialize, Serialize};

use crate::artifact::{Calibration, Figures, HeadTensors};
use crate::collate::{Pooling, WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::email::CleanOptions;
use crate::lexical::{Lexical, SparseRow, Vocabulary};
use crate::metrics::{expected_calibration_error, solve_threshold};
use crate::model::{BatchEncoder, KeepMaps, ModelError, l2_normalize};
use crate::queues::{Queue, QueueError, QueueSet, slug};
use crate::tokenizer::{EmailTokenizer, EncodedEmail, WindowConfig};
use held_out::{Sum, best_held_out, best_sum, judged};

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
            max_error_rate: 0.03,
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
    /// The leg of word counts, where it helps on held-out mail.
    pub lexical: Option<Lexical>,
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
    let mails: Vec<EncodedEmail> = examples
        .iter()
        .map(|example| backbone.tokenizer.encode(&example.clean(&config.email), config.windows.max_tokens))
        .collect();
    let features = features(backbone, &mails, config, progress)?;
    let vocabulary = Vocabulary::fit(&mails);
    let words: Vec<SparseRow> = mails.iter().map(|mail| vocabulary.features(mail)).collect();

    let d_model = backbone.encoder.config().d_model;
    let encoder = Problem { features: &features, targets: &targets, n_queues: queues.len(), width: d_model };
    let words = Problem { features: &words, targets: &targets, n_queues: queues.len(), width: vocabulary.len() };
    let folds = folds::split(examples, &targets, config.folds, config.seed);
    let encoder_leg = best_held_out(&encoder, &folds, &config.c);
    let words_leg = best_held_out(&words, &folds, &config.c);
    let Sum { weight, logits, temperature } = best_sum(&encoder_leg.logits, &words_leg.logits, &targets);
    let (confidences, correct) = judged(&logits, &targets, temperature);
    let solved = solve_threshold(&confidences, &correct, config.max_error_rate);

    let head = Logistic::fit(&encoder, &encoder_leg.logistic);
    let lexical = (weight > 0.0).then(|| {
        let model = Logistic::fit(&words, &words_leg.logistic);
        Lexical { vocabulary, weight: narrow(&model.weight, weight), bias: narrow(&model.bias, weight) }
    });
    Ok(Trained {
        queues,
        head: HeadTensors { d_model, weight: narrow(&head.weight, 1.0), bias: narrow(&head.bias, 1.0) },
        lexical,
        calibration: Calibration { temperature, threshold: solved.threshold },
        budget_guaranteed: solved.guaranteed,
        figures: Figures {
            accuracy: accuracy(&logits, &targets),
            accuracy_encoder_alone: accuracy(&encoder_leg.logits, &targets),
            accuracy_words_alone: accuracy(&words_leg.logits, &targets),
            coverage: share(solved.routed, correct.len()),
            accuracy_when_routed: share(solved.routed - solved.errors, solved.routed),
            ece: expected_calibration_error(&confidences, &correct, 15),
        },
    })
}

fn narrow(values: &[f64], scale: f64) -> Vec<f32> {
    values.iter().map(|&value| (value * scale) as f32).collect()
}

fn accuracy(logits: &[Vec<f32>], targets: &[usize]) -> f64 {
    let (_, correct) = judged(logits, targets, 1.0);
    share(correct.iter().filter(|&&correct| correct).count(), correct.len())
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

/// The pooled vector of each mail, scaled to length 1, in the order of the mails.
fn features(
    backbone: Backbone<'_>,
    mails: &[EncodedEmail],
    config: &TrainingConfig,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Vec<f32>>, ModelError> {
    let mails: Vec<WindowedEmail> = mails
        .iter()
        .map(|mail| WindowedEmail::new(mail, backbone.tokenizer, &config.windows, config.pooling))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn example(queue: &str) -> Example {
        Example { text: "t".into(), queue: queue.into(), ..Example::default() }
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

//! From labelled mail to a router: an encoder, frozen or fine-tuned, with a head on top, word counts beside it, calibration
//! on mail that the judged legs had not seen.

mod design;
mod fine_tuning;
mod folds;
mod held_out;
mod knowing;
mod labelled;
mod logistic;
mod promise;
pub mod queue_changes;
mod trials;

pub use design::{Design, Row};
pub use fine_tuning::{Background, CheckpointError, Depth, FineTuningConfig, Head, TokenPooling, sentence_starts};
pub use knowing::{KnowingConfig, KnowingError, Solved, solve};
pub use labelled::Labelled;
pub use logistic::{Logistic, LogisticConfig, Problem};
pub use promise::Promise;
pub use trials::{BudgetTrials, budget_trials};

use std::collections::BTreeMap;
use std::path::Path;

use candle_nn::VarBuilder;
use half::f16;
use serde::{Deserialize, Serialize};

use crate::artifact::{Calibration, EncoderChange, Figures, HeadTensors, HeldOutRecall};
use crate::collate::{Pooling, WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::email::CleanOptions;
use crate::evaluation::{JudgedMail, place_decisive};
use crate::lexical::{Lexical, Negation, SparseRow, Vocabulary};
use crate::metrics::expected_calibration_error;
use crate::model::{BatchEncoder, KeepMaps, ModelError};
use crate::queues::{Queue, QueueError};
use crate::tokenizer::{EmailTokenizer, EncodedEmail, WindowConfig};
use fine_tuning::{Material, decisive_tokens};
use folds::Folds;
use held_out::{Sum, best_held_out, best_sum, judged};

/// How the encoder is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Fine-tune, and keep the result only where held-out mail says that it is better than the frozen encoder.
    #[default]
    Auto,
    /// The encoder as it is, with a head: seconds.
    Frozen,
    /// Fine-tune, whatever held-out mail says.
    FineTuned,
}

/// Settings of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Whether the encoder is fine-tuned.
    pub method: Method,
    /// Inverse strengths of the head's L2 penalty to try; the one with the best likelihood on held-out mail is taken.
    pub c: Vec<f64>,
    /// Parts that the mail is split into: each is judged by a head trained on the others.
    pub folds: usize,
    /// Share of wrong answers that is acceptable among mail routed without a person.
    pub max_error_rate: f64,
    /// The same for single queues, by id; they get thresholds of their own.
    pub queue_max_error_rate: BTreeMap<String, f64>,
    /// Least share of a queue's mail that must reach the queue or a person, by id.
    pub recall_floor: BTreeMap<String, f64>,
    /// Share of known mail that may be taken for out of scope; 0 leaves the check out.
    pub out_of_scope_quantile: f64,
    /// Share of the mail handed to a person whose right queue may be missing from the set shown; 0 leaves the set out.
    pub conformal_alpha: f64,
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
    /// How the encoder is fine-tuned.
    pub fine_tuning: FineTuningConfig,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            method: Method::default(),
            c: vec![1.0, 3.0, 10.0, 30.0, 100.0],
            folds: 6,
            max_error_rate: 0.03,
            queue_max_error_rate: BTreeMap::new(),
            recall_floor: BTreeMap::new(),
            out_of_scope_quantile: 0.02,
            conformal_alpha: 0.05,
            seed: 0,
            windows: WindowConfig::default(),
            pooling: Pooling::default(),
            languages: vec!["en".to_owned()],
            email: CleanOptions::default(),
            fine_tuning: FineTuningConfig::default(),
        }
    }
}

impl TrainingConfig {
    /// The part that says what the router may do alone.
    #[must_use]
    pub fn knowing(&self) -> KnowingConfig {
        KnowingConfig {
            max_error_rate: self.max_error_rate,
            queue_max_error_rate: self.queue_max_error_rate.clone(),
            recall_floor: self.recall_floor.clone(),
            out_of_scope_quantile: self.out_of_scope_quantile,
            conformal_alpha: self.conformal_alpha,
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
    /// A description of a queue that has no mail.
    #[error("queue `{0}` is described, but no mail is labelled so: correct its id or leave it out")]
    NoMail(String),
    /// Fewer than two folds leave nothing to judge by.
    #[error("folds must be at least 2, not {0}")]
    Folds(usize),
    /// No strength of the penalty to try, or one that is no strength.
    #[error("c must list at least one number above 0, not {0:?}")]
    Strength(Vec<f64>),
    /// A setting of fine-tuning that makes no sense.
    #[error("fine_tuning: {0}")]
    FineTuning(String),
    /// The loss went to infinity.
    #[error("the training diverged at step {step}: lower learning_rate and head_learning_rate")]
    Diverged {
        /// Counted from 1.
        step: usize,
    },
    /// A checkpoint cannot be kept or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Word counts alone do better.
    #[error(
        "on held-out mail the router is right for {:.1}%, word counts alone for {:.1}%: it is not written. Give it more mail, or \
         look for wrong labels with --report", 100.0 * ours, 100.0 * baseline
    )]
    BelowBaseline {
        /// Share of right answers with the encoder.
        ours: f64,
        /// Share of right answers by word counts.
        baseline: f64,
    },
    /// Budgets or floors that cannot be.
    #[error(transparent)]
    Knowing(#[from] KnowingError),
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
    /// What fine-tuning changed in the encoder; `None` where it stayed frozen.
    pub change: Option<EncoderChange>,
    /// The leg of word counts, where it helps on held-out mail.
    pub lexical: Option<Lexical>,
    /// How logits become a decision.
    pub calibration: Calibration,
    /// Calibrated loss on held-out mail after each epoch of fine-tuning; empty where there was none.
    pub losses_by_epoch: Vec<f64>,
    /// Whether the error budget is proven on the held-out mail.
    pub budget_guaranteed: bool,
    /// What is proven on the held-out mail and what is not, the common error budget first.
    pub promises: Vec<Promise>,
    /// Measured on held-out mail.
    pub figures: Figures,
    /// What both legs said of each mail, trained on the other folds.
    pub held_out: Vec<JudgedMail>,
}

/// The encoder and what belongs to it.
#[derive(Clone, Copy)]
pub struct Backbone<'a> {
    /// The encoder.
    pub encoder: &'a BatchEncoder,
    /// Its tensors in f32, for fine-tuning.
    pub weights: &'a VarBuilder<'a>,
    /// Its tokenizer.
    pub tokenizer: &'a EmailTokenizer,
}

/// Mails a queue, on average, below which fine-tuning is not tried: a frozen encoder learns more from a handful.
const FEWEST_TO_TUNE: usize = 20;

/// Tokens of one batch while features are made.
const BATCH_TOKENS: usize = 2048;

/// What training tells while it runs.
pub trait Progress {
    /// A new stage begins.
    fn stage(&mut self, name: &str);
    /// Work done and work in all, of this stage.
    fn tell(&mut self, done: usize, all: usize);
    /// Something worth a line.
    fn note(&mut self, line: &str);
}

/// The mails, as every leg needs them.
struct Inbox {
    mails: Vec<EncodedEmail>,
    /// Where background may be put into each.
    seams: Vec<Vec<usize>>,
    /// Which tokens of each decide, where that is marked.
    decisive: Vec<Vec<bool>>,
}

impl Inbox {
    fn new(tokenizer: &EmailTokenizer, examples: &[Example], config: &TrainingConfig) -> Self {
        let read = |example: &Example| {
            let clean = example.clean(&config.email);
            let encoded = tokenizer.encode(&clean, config.windows.max_tokens);
            let seams = sentence_starts(&clean, &encoded);
            let decisive = example.decisive.as_deref().map(|words| decisive_tokens(&clean, &encoded, words));
            (encoded, (seams, decisive.unwrap_or_default()))
        };
        let (mails, (seams, decisive)) = examples.iter().map(read).unzip();
        Self { mails, seams, decisive }
    }
}

/// Trains a router. `checkpoints` is where a killed fine-tuning can be taken up again.
///
/// # Errors
/// [`TrainingError`], with the remedy.
pub fn train(
    backbone: Backbone<'_>,
    labelled: Labelled<'_>,
    config: &TrainingConfig,
    checkpoints: Option<&Path>,
    progress: &mut dyn Progress,
) -> Result<Trained, TrainingError> {
    check(config)?;
    let few = labelled.mails_per_queue() < FEWEST_TO_TUNE as f64;
    // Where mails are few, what a queue is called and described by is worth one more.
    let mut examples = labelled.examples.to_vec();
    let mut targets = labelled.targets.clone();
    if few {
        examples.extend(labelled.descriptions());
        targets.extend(0..labelled.queues.len());
    }
    let (examples, queues) = (examples.as_slice(), labelled.queues);
    let queue_ids: Vec<String> = queues.iter().map(|queue| queue.id.clone()).collect();
    config.knowing().check(&queue_ids)?;
    let inbox = Inbox::new(backbone.tokenizer, examples, config);
    progress.stage("reading mail");
    let pooled = features(backbone, &inbox.mails, config, progress)?;
    let features: Vec<Vec<f32>> = pooled.iter().map(|vector| scaled_to_one(vector)).collect();
    let vocabulary = Vocabulary::fit(&inbox.mails, negation(backbone.tokenizer, &config.languages));
    let words: Vec<SparseRow> = inbox.mails.iter().map(|mail| vocabulary.features(mail)).collect();

    let d_model = backbone.encoder.config().d_model;
    let encoder = Problem { features: &features, targets: &targets, n_queues: queues.len(), width: d_model };
    let words = Problem { features: &words, targets: &targets, n_queues: queues.len(), width: vocabulary.len() };
    let tunes = match config.method {
        Method::Frozen => false,
        Method::Auto if few => {
            progress.note(&format!(
                "fewer than {FEWEST_TO_TUNE} mails a queue on average: the encoder stays frozen (--method fine-tuned tunes it)"
            ));
            false
        }
        Method::Auto | Method::FineTuned => true,
    };
    let folds = Folds::new(examples, &targets, config.folds, config.seed);
    // All legs on the same split: one that was trained on more of the mail would get more weight than it earns.
    let folds = if tunes { fine_tuning::joined(&folds, &config.fine_tuning) } else { folds };
    let encoder_leg = best_held_out(&encoder, &folds, &config.c);
    let words_leg = best_held_out(&words, &folds, &config.c);

    let head_of = |mails: &[usize]| start_of_tuning(&encoder, mails, &encoder_leg.logistic, &pooled);
    let (background, background_sentences) =
        fine_tuning::built_in_background(backbone.tokenizer, &inbox.mails, &config.fine_tuning);
    let material = Material {
        encoder_config: backbone.encoder.config(),
        weights: backbone.weights,
        tokenizer: backbone.tokenizer,
        windows: &config.windows,
        mails: &inbox.mails,
        seams: &inbox.seams,
        decisive: &inbox.decisive,
        targets: &targets,
        n_queues: queues.len(),
        background: &background,
        background_sentences,
        head: &head_of,
        seed: config.seed,
        checkpoints,
    };
    let tuning =
        if tunes { Some(fine_tuning::held_out(&material, &config.fine_tuning, &folds, progress)?) } else { None };
    let all_judged: Vec<usize> = folds.judged().map(|(mail, _)| mail).collect();
    let judged_mails = tuning.as_ref().map_or(all_judged.as_slice(), |tuning| tuning.mails.as_slice());
    // Rows of the frozen legs are those of all judged mails; fine-tuning may have judged only some of them.
    let rows: Vec<usize> = judged_mails.iter().filter_map(|mail| all_judged.binary_search(mail).ok()).collect();
    let legs = Legs {
        tuned: tuning.as_ref().map(|tuning| tuning.logits.as_slice()),
        frozen: &chosen(&encoder_leg.logits, &rows),
        words: &chosen(&words_leg.logits, &rows),
        targets: &chosen(&targets, judged_mails),
    };
    let Verdict { tuned: keep, accuracy_frozen, accuracy_encoder_alone, sum } = legs.judge(config.method);
    let Sum { weight, gate, logits, temperature } = sum;
    let (confidences, correct) = judged(&logits, legs.targets, temperature);
    let (ours, baseline) = (accuracy(&logits, legs.targets), accuracy(legs.words, legs.targets));
    refuse_below_baseline(ours, baseline)?;
    let solved = solve(&logits, legs.targets, temperature, &queue_ids, &config.knowing());

    let (head, change) = match &tuning {
        Some(tuning) if keep => {
            let tuned = fine_tuning::on_all(&material, &config.fine_tuning, tuning.epochs, progress)?;
            let head =
                HeadTensors { d_model, query: tuned.head.query, weight: tuned.head.weight, bias: tuned.head.bias };
            (head, Some(tuned.change))
        }
        _ => {
            let head = Logistic::fit(&encoder, &encoder_leg.logistic);
            let (weight, bias) = (narrow(&head.weight, 1.0), narrow(&head.bias, 1.0));
            (HeadTensors { d_model, query: Vec::new(), weight, bias }, None)
        }
    };
    let lexical = (weight > 0.0).then(|| {
        let model = Logistic::fit(&words, &words_leg.logistic);
        // In half precision, as it is stored: a thousandth of a logit, and half of the file.
        let rounded = narrow(&model.weight, weight).into_iter().map(|value| f16::from_f32(value).to_f32()).collect();
        Lexical { vocabulary, weight: rounded, bias: narrow(&model.bias, weight), gate }
    });
    Ok(Trained {
        queues,
        head,
        change,
        lexical,
        budget_guaranteed: solved.budget_guaranteed(),
        calibration: solved.calibration,
        promises: solved.promises,
        losses_by_epoch: tuning.as_ref().map_or_else(Vec::new, |tuning| tuning.losses.clone()),
        figures: Figures {
            accuracy: ours,
            accuracy_encoder_alone,
            accuracy_words_alone: baseline,
            accuracy_frozen,
            coverage: share(solved.routed, correct.len()),
            accuracy_when_routed: share(solved.routed - solved.errors, solved.routed),
            ece: expected_calibration_error(&confidences, &correct, 15),
            queues: recall_by_queue(&queue_ids, legs.targets, &correct),
        },
        held_out: held_out_mails(examples, &inbox.mails, judged_mails, &legs, &logits),
    })
}

fn check(config: &TrainingConfig) -> Result<(), TrainingError> {
    if config.folds < 2 {
        return Err(TrainingError::Folds(config.folds));
    }
    if config.c.is_empty() || config.c.iter().any(|&c| !(c.is_finite() && c > 0.0)) {
        return Err(TrainingError::Strength(config.c.clone()));
    }
    config.fine_tuning.check().map_err(TrainingError::FineTuning)
}

/// A router that word counts alone would beat helps nobody, however it was made.
fn refuse_below_baseline(ours: f64, baseline: f64) -> Result<(), TrainingError> {
    if ours < baseline { Err(TrainingError::BelowBaseline { ours, baseline }) } else { Ok(()) }
}

/// What turns words, where the mail is English.
fn negation(tokenizer: &EmailTokenizer, languages: &[String]) -> Negation {
    let english = languages.is_empty() || languages.iter().any(|language| language == "en");
    if english { Negation::english(|token| tokenizer.token_id(token)) } else { Negation::default() }
}

fn scaled_to_one(vector: &[f32]) -> Vec<f32> {
    let length = length(vector).max(1e-12);
    vector.iter().map(|x| x / length).collect()
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|x| x * x).sum::<f32>().sqrt()
}

/// The head on the frozen encoder, fitted on some of the mails, for vectors that are not scaled to length 1: those of this
/// encoder are of much the same length, so dividing by the mean length is close.
fn start_of_tuning(
    problem: &Problem<'_, Vec<f32>>,
    mails: &[usize],
    logistic: &LogisticConfig,
    pooled: &[Vec<f32>],
) -> Head {
    let features: Vec<Vec<f32>> = mails.iter().map(|&mail| problem.features[mail].clone()).collect();
    let targets: Vec<usize> = mails.iter().map(|&mail| problem.targets[mail]).collect();
    let fitted = Logistic::fit(&Problem { features: &features, targets: &targets, ..*problem }, logistic);
    let mean = mails.iter().map(|&mail| f64::from(length(&pooled[mail]))).sum::<f64>() / mails.len().max(1) as f64;
    let weight = narrow(&fitted.weight, 1.0 / mean.max(1e-12));
    Head { query: Vec::new(), weight, bias: narrow(&fitted.bias, 1.0) }
}

/// What the report is made of.
fn held_out_mails(
    examples: &[Example],
    mails: &[EncodedEmail],
    judged: &[usize],
    legs: &Legs<'_>,
    logits: &[Vec<f32>],
) -> Vec<JudgedMail> {
    let of_mail = |(place, &mail): (usize, &usize)| JudgedMail {
        id: examples[mail].id.clone(),
        target: legs.targets[place],
        logits: logits[place].clone(),
        baseline: Some(legs.words[place].clone()),
        tokens: mails[mail].tokens_total,
        decisive_position: None,
        subject: examples[mail].subject.clone(),
    };
    let mut held_out: Vec<JudgedMail> = judged.iter().enumerate().map(of_mail).collect();
    let examples: Vec<Example> = judged.iter().map(|&mail| examples[mail].clone()).collect();
    place_decisive(&examples, &mut held_out);
    held_out
}

fn chosen<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| all[place].clone()).collect()
}

/// What each leg says of the judged mails, row by row, and their queues.
struct Legs<'a> {
    tuned: Option<&'a [Vec<f32>]>,
    frozen: &'a [Vec<f32>],
    words: &'a [Vec<f32>],
    targets: &'a [usize],
}

/// Which encoder to use, with the words beside it.
struct Verdict {
    tuned: bool,
    accuracy_frozen: f64,
    accuracy_encoder_alone: f64,
    sum: Sum,
}

impl Legs<'_> {
    fn judge(&self, method: Method) -> Verdict {
        let frozen = best_sum(self.frozen, self.words, self.targets);
        let accuracy_frozen = accuracy(&frozen.logits, self.targets);
        if let Some(logits) = self.tuned {
            let tuned = best_sum(logits, self.words, self.targets);
            if method == Method::FineTuned || tuned.beats(&frozen, self.targets) {
                let accuracy_encoder_alone = accuracy(logits, self.targets);
                return Verdict { tuned: true, accuracy_frozen, accuracy_encoder_alone, sum: tuned };
            }
        }
        let accuracy_encoder_alone = accuracy(self.frozen, self.targets);
        Verdict { tuned: false, accuracy_frozen, accuracy_encoder_alone, sum: frozen }
    }
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

/// Held-out mail of each queue, and how much of it would go there.
fn recall_by_queue(ids: &[String], targets: &[usize], correct: &[bool]) -> BTreeMap<String, HeldOutRecall> {
    let recall = |(queue, id): (usize, &String)| {
        let own = || targets.iter().zip(correct).filter(move |(target, _)| **target == queue);
        (id.clone(), HeldOutRecall { mails: own().count(), right: own().filter(|(_, correct)| **correct).count() })
    };
    ids.iter().enumerate().map(recall).collect()
}

/// The pooled vector of each mail, in the order of the mails.
fn features(
    backbone: Backbone<'_>,
    mails: &[EncodedEmail],
    config: &TrainingConfig,
    progress: &mut dyn Progress,
) -> Result<Vec<Vec<f32>>, ModelError> {
    let mails: Vec<WindowedEmail> = mails
        .iter()
        .map(|mail| WindowedEmail::new(mail, backbone.tokenizer, &config.windows, config.pooling))
        .collect();
    let mut features = vec![Vec::new(); mails.len()];
    let mut done = 0;
    for batch in batches(&mails, BATCH_TOKENS) {
        let packed = pack(batch.iter().map(|&mail| &mails[mail]));
        let pooled = backbone.encoder.pool(&packed, &KeepMaps::None)?.vectors.to_vec2::<f32>()?;
        done += batch.len();
        for (mail, vector) in batch.into_iter().zip(pooled) {
            features[mail] = vector;
        }
        progress.tell(done, mails.len());
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_below_the_word_counts_is_refused_with_both_figures() {
        assert!(refuse_below_baseline(0.91, 0.91).is_ok());
        let error = refuse_below_baseline(0.90, 0.912).unwrap_err().to_string();
        assert!(error.contains("right for 90.0%, word counts alone for 91.2%: it is not written"), "{error}");
    }

    #[test]
    fn fine_tuning_is_kept_only_where_held_out_mail_says_that_it_is_better() {
        let sure = [vec![3.0f32, 0.0], vec![0.0, 3.0], vec![2.0, 0.5], vec![0.5, 2.0]];
        let unsure = [vec![0.2f32, 0.0], vec![0.1, 0.0], vec![0.1, 0.2], vec![0.0, 0.1]];
        let words = vec![vec![0.0f32, 0.0]; 4];
        let targets = [0, 1, 0, 1];
        let legs = |tuned, frozen| Legs { tuned: Some(tuned), frozen, words: &words, targets: &targets };
        assert!(legs(&sure, &unsure).judge(Method::Auto).tuned);
        let verdict = legs(&unsure, &sure).judge(Method::Auto);
        assert!(!verdict.tuned && verdict.accuracy_encoder_alone == 1.0);
        assert!(legs(&unsure, &sure).judge(Method::FineTuned).tuned);
    }
}

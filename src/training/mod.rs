//! From labelled mail to a router: an encoder, frozen or fine-tuned, with a head on top, word counts beside it, calibration
//! on mail that the judged legs had not seen.

mod config;
mod design;
mod error;
mod fine_tuning;
mod folds;
mod held_out;
mod inbox;
mod knowing;
mod labelled;
mod legs;
mod logistic;
mod promise;
pub mod queue_changes;
mod trials;

pub use config::{Method, TrainingConfig};
pub use design::{Design, Row};
pub use error::{Refused, TrainingError};
pub use fine_tuning::{Background, CheckpointError, Depth, FineTuningConfig, Head, TokenPooling, sentence_starts};
pub use knowing::{KnowingConfig, KnowingError, Solved, solve};
pub use labelled::Labelled;
pub use logistic::{Logistic, LogisticConfig, Problem};
pub use promise::Promise;
pub use trials::{BudgetTrials, budget_trials};

use std::borrow::Cow;
use std::path::Path;

use candle_nn::VarBuilder;
use half::f16;

use crate::artifact::{Calibration, EncoderChange, Figures, HeadTensors};
use crate::dataset::Example;
use crate::evaluation::{JudgedMail, place_decisive};
use crate::lexical::{Lexical, Negation, SparseRow, Vocabulary};
use crate::metrics::{expected_calibration_error, fit_temperature};
use crate::model::BatchEncoder;
use crate::queues::Queue;
use crate::tokenizer::{EmailTokenizer, EncodedEmail};
use fine_tuning::{Material, Tuning};
use folds::Folds;
use held_out::{Sum, best_held_out, judged};
use inbox::{Inbox, features};
use legs::{Legs, Verdict, accuracy, recall_by_queue, refuse_below_baseline, share};

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
    /// Whether the common error budget is proven on the held-out mail.
    pub budget_guaranteed: bool,
    /// Held-out mails that it was judged on; 0 where none was predicted as a queue without a budget of its own.
    pub budget_solved_on: usize,
    /// What is proven on the held-out mail and what is not, the common error budget first, where there is one.
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

/// Mails a queue, on average, below which fine-tuning is not tried, a frozen encoder learning more from a handful, and descriptions
/// count as mail.
const FEWEST_TO_TUNE: usize = 20;

/// What training tells while it runs.
pub trait Progress {
    /// A new stage begins.
    fn stage(&mut self, name: &str);
    /// Work done and work in all, of this stage.
    fn tell(&mut self, done: usize, all: usize);
    /// Something worth a line.
    fn note(&mut self, line: &str);
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
    config.check()?;
    // First of all: a note before any stage is shown to nobody.
    progress.stage("reading mail");
    let few = labelled.mails_per_queue() < FEWEST_TO_TUNE as f64;
    // Where mails are few, what a queue is called and described by is worth one more.
    let mut examples = Cow::Borrowed(labelled.examples);
    let mut targets = labelled.targets.clone();
    if few {
        progress.note(&format!(
            "fewer than {FEWEST_TO_TUNE} mails a queue on average: what each queue is called and described by counts as one more"
        ));
        examples.to_mut().extend(labelled.descriptions());
        targets.extend(0..labelled.queues.len());
    }
    let (examples, queues) = (&*examples, labelled.queues);
    let queue_ids: Vec<String> = queues.iter().map(|queue| queue.id.clone()).collect();
    config.knowing().check(&queue_ids)?;
    let inbox = Inbox::new(backbone.tokenizer, examples, config);
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
            progress.note("with so few the encoder stays frozen (--method fine-tuned tunes it)");
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
    let encoder_config = backbone.encoder.config();
    let encoder_identity = match checkpoints {
        Some(_) if tunes => fine_tuning::encoder_identity(encoder_config, backbone.weights)?,
        _ => String::new(),
    };
    let material = Material {
        encoder_config,
        weights: backbone.weights,
        encoder_identity: &encoder_identity,
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
    let tuning = if tunes { Some(fine_tuning::tune(&material, &config.fine_tuning, &folds, progress)?) } else { None };
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
    let Sum { weight, gate, logits, .. } = sum;
    let temperature = fit_temperature(&logits, legs.targets);
    let (confidences, correct) = judged(&logits, legs.targets, temperature);
    let (ours, baseline) = (accuracy(&logits, legs.targets), accuracy(legs.words, legs.targets));
    let solved = solve(&logits, legs.targets, temperature, &queue_ids, &config.knowing());
    let held_out = held_out_mails(examples, &inbox.mails, judged_mails, &legs, &logits);
    refuse_below_baseline(ours, baseline, || Refused {
        queues: queues.clone(),
        calibration: solved.calibration.clone(),
        mails: held_out.clone(),
    })?;

    let figures = Figures {
        accuracy: ours,
        accuracy_encoder_alone,
        accuracy_words_alone: baseline,
        accuracy_frozen,
        coverage: share(solved.routed, correct.len()),
        accuracy_when_routed: share(solved.routed - solved.errors, solved.routed),
        ece: expected_calibration_error(&confidences, &correct, 15),
        queues: recall_by_queue(&queue_ids, legs.targets, &correct),
    };
    let losses_by_epoch = tuning.as_ref().map_or_else(Vec::new, |tuning| tuning.losses.clone());
    let (head, change) = match tuning {
        Some(Tuning { head: Head { query, weight, bias }, change, .. }) if keep => {
            (HeadTensors { d_model, query, weight, bias }, Some(change))
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
        budget_solved_on: solved.solved_on,
        calibration: solved.calibration,
        promises: solved.promises,
        losses_by_epoch,
        figures,
        held_out,
    })
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

fn narrow(values: &[f64], scale: f64) -> Vec<f32> {
    values.iter().map(|&value| (value * scale) as f32).collect()
}

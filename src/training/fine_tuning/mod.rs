//! Fine-tuning: the encoder moves with the head, from the frozen encoder's head on (Kumar et al. 2022, "linear probing, then
//! fine-tuning").
//!
//! Held-out mail decides after how many epochs the network is taken and whether it is used at all: each fold is judged by a
//! network that never saw it, and one is trained on all mail.

mod adamw;
mod background;
mod checkpoint;
mod evidence;
mod identity;
mod network;
mod run;
mod sampler;
mod side_by_side;
mod undecided;

pub use background::{Background, sentence_starts};
pub use checkpoint::CheckpointError;
pub(super) use evidence::decisive_tokens;
pub(super) use identity::encoder_identity;
pub use network::Head;

use std::path::Path;

use candle_nn::VarBuilder;
use serde::{Deserialize, Serialize};

use super::folds::Folds;
use super::{Progress, TrainingError};
use crate::artifact::EncoderChange;
use crate::email::{CleanOptions, Fields, Posted, clean};
use crate::metrics::calibrated_loss;
use crate::model::EncoderConfig;
use crate::model::trainable::{Adaptation, LoraConfig};
use crate::tokenizer::{EmailTokenizer, EncodedEmail, WindowConfig};
use run::Run;
use side_by_side::side_by_side;

/// What of the encoder is fine-tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Low-rank adapters: a router of one or two megabytes.
    #[default]
    Lora,
    /// Every layer above the embeddings: a router of twenty megabytes.
    Full,
}

/// How the tokens of a mail become one vector for each queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPooling {
    /// Each queue weighs them by a query of its own.
    #[default]
    Attention,
    /// All weigh the same.
    Mean,
}

/// Settings of fine-tuning. The defaults are those that did best on held-out mail; docs/accuracy.md has the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FineTuningConfig {
    /// Adapters, or all layers.
    pub depth: Depth,
    /// How the tokens of a mail are pooled.
    pub pooling: TokenPooling,
    /// Rank of the adapters.
    pub rank: usize,
    /// The adapters' change is scaled by `alpha / rank`.
    pub alpha: f64,
    /// Highest learning rate of the encoder.
    pub learning_rate: f64,
    /// Highest learning rate of the head.
    pub head_learning_rate: f64,
    /// Passes over the mail at most; held-out mail chooses the best number up to here.
    pub epochs: usize,
    /// Mails of one step.
    pub batch: usize,
    /// Share of all steps in which the learning rate rises.
    pub warm_up: f64,
    /// Decay of weights (never of biases and layer norms) per step, as a share of the learning rate.
    pub weight_decay: f64,
    /// Share of hidden values that are dropped while training.
    pub dropout: f64,
    /// Share of the target that is spread over all queues.
    pub label_smoothing: f64,
    /// Longest gradient, as a Euclidean length over all parameters.
    pub clip: f64,
    /// Share of the mails that get sentences about nothing put in between, anew in each epoch.
    pub background: f64,
    /// Sentences put into such a mail at most; fewer where even the longest mail is shorter than these.
    pub background_sentences: usize,
    /// Mails made of such sentences alone, as a share of all mails; they are for nobody, and no queue should be sure of them.
    pub background_mails: f64,
    /// Mails without the words that decide (the column `decisive`, where the data has one), as a share of all mails.
    pub undecided_mails: f64,
    /// Share of such a mail's target that is spread over all queues: what is left of it points to its queue, but proves nothing.
    pub undecided_smoothing: f64,
    /// Weight of the loss that asks a queue to look at the words which the labeller marked as deciding (the column `decisive`), so
    /// that its reasons are ours; 0 leaves the marks unused.
    pub evidence: f64,
    /// Parts for held-out figures; each part costs a whole training.
    pub folds: usize,
    /// With more mails than this only one part is judged: enough for the figures, and two trainings instead of many.
    pub one_fold_from: usize,
}

impl Default for FineTuningConfig {
    fn default() -> Self {
        Self {
            depth: Depth::Lora,
            pooling: TokenPooling::Attention,
            rank: 16,
            alpha: 32.0,
            learning_rate: 5e-4,
            head_learning_rate: 1e-3,
            epochs: 6,
            batch: 16,
            warm_up: 0.1,
            weight_decay: 0.01,
            dropout: 0.1,
            label_smoothing: 0.05,
            clip: 1.0,
            background: 0.3,
            background_sentences: 20,
            background_mails: 0.05,
            undecided_mails: 0.1,
            undecided_smoothing: 0.6,
            evidence: 0.3,
            folds: 3,
            one_fold_from: 4000,
        }
    }
}

impl FineTuningConfig {
    fn adaptation(&self) -> Adaptation {
        match self.depth {
            Depth::Lora => Adaptation::Lora(LoraConfig { rank: self.rank, alpha: self.alpha }),
            Depth::Full => Adaptation::Full,
        }
    }

    /// After the last so many epochs a network is judged; in those before, when the learning rate is high, it is never at its best.
    fn judgements(&self) -> usize {
        self.epochs.div_ceil(2)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence naming the setting and what it may be.
    pub fn check(&self) -> Result<(), String> {
        let positive = |name: &str, value: f64| {
            (value.is_finite() && value > 0.0).then_some(()).ok_or(format!("{name} must be above 0, not {value}"))
        };
        let share = |name: &str, value: f64| {
            (0.0..1.0).contains(&value).then_some(()).ok_or(format!("{name} must be from 0 to below 1, not {value}"))
        };
        let count = |name: &str, value: usize, least: usize| {
            (value >= least).then_some(()).ok_or(format!("{name} must be at least {least}, not {value}"))
        };
        positive("learning_rate", self.learning_rate)?;
        positive("head_learning_rate", self.head_learning_rate)?;
        positive("alpha", self.alpha)?;
        positive("clip", self.clip)?;
        share("warm_up", self.warm_up)?;
        share("dropout", self.dropout)?;
        share("label_smoothing", self.label_smoothing)?;
        let up_to_one = [
            ("background", self.background),
            ("background_mails", self.background_mails),
            ("undecided_mails", self.undecided_mails),
            ("undecided_smoothing", self.undecided_smoothing),
        ];
        for (name, value) in up_to_one {
            if !(0.0..=1.0).contains(&value) {
                return Err(format!("{name} must be from 0 to 1, not {value}"));
            }
        }
        if !(self.evidence.is_finite() && self.evidence >= 0.0) {
            return Err(format!("evidence must be at least 0, not {}", self.evidence));
        }
        count("rank", self.rank, 1)?;
        count("epochs", self.epochs, 1)?;
        count("batch", self.batch, 1)?;
        count("folds", self.folds, 2)
    }
}

/// The mail and all that fine-tuning reads of it.
pub(super) struct Material<'a> {
    pub encoder_config: &'a EncoderConfig,
    /// The encoder's tensors, f32, on the device to train on.
    pub weights: &'a VarBuilder<'a>,
    /// Which encoder that is ([`encoder_identity`]); empty where no checkpoints are kept.
    pub encoder_identity: &'a str,
    pub tokenizer: &'a EmailTokenizer,
    pub windows: &'a WindowConfig,
    pub mails: &'a [EncodedEmail],
    /// Where a sentence may be put into each mail, as token positions.
    pub seams: &'a [Vec<usize>],
    /// Which tokens of each mail decide; empty for a mail without marks.
    pub decisive: &'a [Vec<bool>],
    pub targets: &'a [usize],
    pub n_queues: usize,
    pub background: &'a Background,
    /// How many of them are put into a mail at most.
    pub background_sentences: usize,
    /// The frozen encoder's head, fitted on the mails of these places, without the scaling to length 1: where training
    /// starts. It is fitted anew for each run, so that no run has seen what it is judged on.
    pub head: &'a (dyn Fn(&[usize]) -> Head + Sync),
    pub seed: u64,
    /// Where a killed training is taken up again; `None` keeps nothing.
    pub checkpoints: Option<&'a Path>,
}

/// A fine-tuned network, and what held-out mail says of it.
pub(super) struct Tuning {
    /// The mails that were judged, ascending: all, or one part of very many.
    pub mails: Vec<usize>,
    /// Logits of each of them by a network that had not seen it, after the best number of epochs.
    pub logits: Vec<Vec<f32>>,
    /// Calibrated loss after each number of epochs from the second half on.
    pub losses: Vec<f64>,
    /// What changed in the encoder, trained on all mail for the best number of epochs.
    pub change: EncoderChange,
    /// The head that was trained with it.
    pub head: Head,
}

/// The sentences that come with the program, and how many of them suit these mails.
pub(super) fn built_in_background(
    tokenizer: &EmailTokenizer,
    mails: &[EncodedEmail],
    config: &FineTuningConfig,
) -> (Background, usize) {
    let sentence = |line: &str| {
        let fields = Fields { text: Some(line), ..Fields::default() };
        tokenizer.encode(&clean(&Posted::Fields(fields), &CleanOptions::default()), usize::MAX)
    };
    let background = Background::new(include_str!("background.txt").lines().map(sentence));
    let most = background.that_fit(mails, config.background_sentences);
    (background, most)
}

/// Each fold costs a training, so the folds of the heads are joined into fewer. Of very much mail only the first is judged,
/// and the others stay as they are.
pub(super) fn joined(folds: &Folds, config: &FineTuningConfig) -> Folds {
    if folds.mails() > config.one_fold_from { folds.clone() } else { folds.joined(config.folds) }
}

/// Trains once for each of the [`joined`] folds, judges the mail that it held out, and trains on all mail, side by side. Of
/// very much mail one fold is enough to judge by.
pub(super) fn tune(
    material: &Material<'_>,
    config: &FineTuningConfig,
    folds: &Folds,
    progress: &mut dyn Progress,
) -> Result<Tuning, TrainingError> {
    let judged_folds = if folds.mails() > config.one_fold_from { 1 } else { folds.count() };
    let everything: Vec<usize> = (0..folds.mails()).collect();
    let mut runs: Vec<Run<'_>> = (0..judged_folds)
        .map(|fold| {
            // What is only trained on and repeats a judged mail is held out with it, and not judged.
            let mails = everything.iter().copied().filter(|&mail| folds.of(mail) != Some(fold)).collect();
            let judged = folds.judged().filter(|&(_, of)| of == fold).map(|(mail, _)| mail).collect();
            Run { name: format!("fold-{fold}"), material, config, mails, judged }
        })
        .collect();
    runs.push(Run { name: "all".to_owned(), material, config, mails: everything, judged: Vec::new() });
    let mut finished = side_by_side(&runs, progress)?;
    let of_all = finished.swap_remove(judged_folds);

    let mails: Vec<usize> = folds.judged().filter(|&(_, fold)| fold < judged_folds).map(|(mail, _)| mail).collect();
    let targets: Vec<usize> = mails.iter().map(|&mail| material.targets[mail]).collect();
    let after = |judgement: usize| {
        let mut rows = vec![Vec::new(); folds.mails()];
        for (run, finished) in runs.iter().zip(&finished) {
            let judged = finished.judged.get(judgement).into_iter().flatten();
            run.judged.iter().zip(judged).for_each(|(&mail, row)| rows[mail].clone_from(row));
        }
        mails.iter().map(|&mail| std::mem::take(&mut rows[mail])).collect::<Vec<_>>()
    };
    let mut by_epoch: Vec<Vec<Vec<f32>>> = (0..config.judgements()).map(after).collect();
    let losses: Vec<f64> = by_epoch.iter().map(|logits| calibrated_loss(logits, &targets)).collect();
    let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
    let (change, head) = of_all.taken(config, best);
    Ok(Tuning { mails, logits: by_epoch.swap_remove(best), losses, change, head })
}

//! How good a router is on labelled mail.

use serde::Serialize;

use crate::artifact::Router;
use crate::collate::{WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::email::CleanOptions;
use crate::metrics::{expected_calibration_error, softmax};
use crate::model::{KeepMaps, ModelError};
use crate::queues::slug;

/// One mail that went to another queue than its label says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Misroute {
    /// Id of the mail.
    pub id: String,
    /// Its label.
    pub expected: String,
    /// Where it went.
    pub routed_to: String,
    /// How sure the router was, 0 to 1.
    pub confidence: f64,
}

/// Figures of one queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueFigures {
    /// Id of the queue.
    pub queue: String,
    /// Mails labelled so.
    pub mails: usize,
    /// Of these, sent there.
    pub right: usize,
    /// Mails of other queues that were sent there.
    pub false_alarms: usize,
}

/// How a router did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Mails judged.
    pub mails: usize,
    /// Mails sent to a wrong queue when every mail is routed, surest first.
    pub misrouted: Vec<Misroute>,
    /// Mails at or above the threshold.
    pub routed_alone: usize,
    /// Wrong ones among them.
    pub routed_alone_wrong: usize,
    /// Expected calibration error, 15 bins.
    pub ece: f64,
    /// By queue, in the router's order.
    pub queues: Vec<QueueFigures>,
    /// Mails longer than the token ceiling.
    pub truncated: usize,
}

/// Why a router cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// A label that is none of the router's queues.
    #[error("mail {id} is labelled `{label}`, which is none of the router's queues: {queues}")]
    UnknownQueue {
        /// Id of the mail.
        id: String,
        /// Its label.
        label: String,
        /// The router's queues.
        queues: String,
    },
    /// The network failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Tokens of one batch.
const BATCH_TOKENS: usize = 2048;

/// Routes every mail and compares with its label. `progress` is told mails done and mails in all.
///
/// # Errors
/// [`EvaluationError`].
pub fn evaluate(
    router: &Router,
    examples: &[Example],
    email: &CleanOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Evaluation, EvaluationError> {
    let info = &router.info;
    let targets = examples.iter().map(|example| target(router, example)).collect::<Result<Vec<_>, _>>()?;
    let mut truncated = 0;
    let mut words = Vec::with_capacity(examples.len());
    let mails: Vec<WindowedEmail> = examples
        .iter()
        .map(|example| {
            let encoded = router.tokenizer.encode(&example.clean(email), info.windows.max_tokens);
            truncated += usize::from(encoded.truncated());
            words.push(router.word_logits(&encoded));
            WindowedEmail::new(&encoded, &router.tokenizer, &info.windows, info.pooling)
        })
        .collect();

    let mut answers = vec![(0, 0.0); mails.len()];
    let mut done = 0;
    for batch in batches(&mails, BATCH_TOKENS) {
        let output = router.classifier.forward(&pack(batch.iter().map(|&mail| &mails[mail])), &KeepMaps::None)?;
        done += batch.len();
        for (mail, mut logits) in batch.into_iter().zip(output.logits) {
            logits.iter_mut().zip(&words[mail]).for_each(|(logit, word)| *logit += word);
            answers[mail] = likeliest(&softmax(&logits, info.calibration.temperature));
        }
        progress(done, mails.len());
    }
    Ok(summary(router, examples, &targets, &answers, truncated))
}

fn target(router: &Router, example: &Example) -> Result<usize, EvaluationError> {
    let queues = &router.info.queues;
    queues.index_of(&slug(&example.queue)).ok_or_else(|| EvaluationError::UnknownQueue {
        id: example.id.clone(),
        label: example.queue.clone(),
        queues: queues.iter().map(|queue| queue.id.as_str()).collect::<Vec<_>>().join(", "),
    })
}

fn likeliest(probabilities: &[f64]) -> (usize, f64) {
    probabilities.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

fn summary(
    router: &Router,
    examples: &[Example],
    targets: &[usize],
    answers: &[(usize, f64)],
    truncated: usize,
) -> Evaluation {
    let info = &router.info;
    let id = |index: usize| info.queues.get(index).map_or_else(String::new, |queue| queue.id.clone());
    let correct: Vec<bool> = answers.iter().zip(targets).map(|(answer, target)| answer.0 == *target).collect();
    let confidences: Vec<f64> = answers.iter().map(|answer| answer.1).collect();
    let alone: Vec<usize> =
        (0..answers.len()).filter(|&mail| confidences[mail] >= info.calibration.threshold).collect();
    let mut misrouted: Vec<Misroute> = (0..answers.len())
        .filter(|&mail| !correct[mail])
        .map(|mail| Misroute {
            id: examples[mail].id.clone(),
            expected: id(targets[mail]),
            routed_to: id(answers[mail].0),
            confidence: confidences[mail],
        })
        .collect();
    misrouted.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let queues = (0..info.queues.len())
        .map(|index| QueueFigures {
            queue: id(index),
            mails: targets.iter().filter(|&&target| target == index).count(),
            right: (0..answers.len()).filter(|&mail| targets[mail] == index && correct[mail]).count(),
            false_alarms: (0..answers.len()).filter(|&mail| answers[mail].0 == index && !correct[mail]).count(),
        })
        .collect();
    Evaluation {
        mails: answers.len(),
        misrouted,
        routed_alone_wrong: alone.iter().filter(|&&mail| !correct[mail]).count(),
        routed_alone: alone.len(),
        ece: expected_calibration_error(&confidences, &correct, 15),
        queues,
        truncated,
    }
}

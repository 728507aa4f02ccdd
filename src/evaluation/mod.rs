//! How good a router is on labelled mail: what it said of every mail, the figures, the report.

mod decisive;
mod judged;
mod nobody;
mod precision;
pub mod report;
mod summary;

pub use decisive::place_decisive;
pub use judged::JudgedMail;
pub use nobody::Nobody;
pub use precision::compare_precisions;
pub use summary::{Evaluation, Misroute, QueueFigures};

use crate::artifact::Router;
use crate::collate::{WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::email::CleanOptions;
use crate::model::{KeepMaps, ModelError};

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

/// What a router said of labelled mail.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// Every mail, in the order of the data.
    pub mails: Vec<JudgedMail>,
    /// The figures.
    pub summary: Evaluation,
}

/// Routes every mail and compares with its label. `threshold` is that of the settings (`routing.policy.threshold`), which
/// takes the place of all thresholds of the router; `None` leaves them in force. `progress` is told mails done and mails in
/// all.
///
/// # Errors
/// [`EvaluationError`].
pub fn evaluate(
    router: &Router,
    examples: &[Example],
    email: &CleanOptions,
    threshold: Option<f64>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Evaluated, EvaluationError> {
    let info = &router.info;
    let mut mails = Vec::with_capacity(examples.len());
    let mut windowed: Vec<WindowedEmail> = Vec::with_capacity(examples.len());
    for example in examples {
        let target = target(router, example)?;
        let encoded = router.tokenizer.encode(&example.clean(email), info.windows.max_tokens);
        windowed.push(WindowedEmail::new(&encoded, &router.tokenizer, &info.windows, info.pooling));
        let words = router.word_logits(&encoded);
        mails.push(JudgedMail {
            id: example.id.clone(),
            target,
            baseline: router.lexical.is_some().then(|| info.queue_logits(&words)),
            logits: words,
            tokens: encoded.tokens_total,
            decisive_position: None,
            subject: example.subject.clone(),
        });
    }

    let mut done = 0;
    for batch in batches(&windowed, BATCH_TOKENS) {
        let output = router.classifier.forward(&pack(batch.iter().map(|&mail| &windowed[mail])), &KeepMaps::None)?;
        done += batch.len();
        for (mail, logits) in batch.into_iter().zip(output.logits) {
            mails[mail].logits = info.queue_logits(&router.join(&logits, &mails[mail].logits));
        }
        progress(done, windowed.len());
    }
    let summary = Evaluation::of(info, &mails, threshold);
    Ok(Evaluated { mails, summary })
}

fn target(router: &Router, example: &Example) -> Result<usize, EvaluationError> {
    let queues = &router.info.queues;
    router.info.index_of_label(&example.queue).ok_or_else(|| EvaluationError::UnknownQueue {
        id: example.id.clone(),
        label: example.queue.clone(),
        queues: queues.iter().map(|queue| queue.id.as_str()).collect::<Vec<_>>().join(", "),
    })
}

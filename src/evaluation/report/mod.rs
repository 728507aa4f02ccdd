//! The report: everything that a support lead needs to judge a router, made of what it said of every mail.
//!
//! [`Report`] holds numbers only; [`html`] draws them on one page. The single predictions stand in it too, so that anybody
//! can count again.

mod alone;
mod files;
pub mod html;
mod mistakes;
mod queues;
mod rate;
mod slices;
mod trust;
mod warnings;

pub use alone::Alone;
pub use files::{ReportError, write_report};
pub use mistakes::Mistake;
pub use queues::{Merge, QueueReport};
pub use rate::Rate;
pub use slices::Slice;
pub use trust::Trust;

use serde::Serialize;

use super::JudgedMail;
use crate::artifact::{Calibration, Judgement};
use crate::queues::Queue;

/// Where the judged mail comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Training mail, each judged by models that were trained on the other folds. Thresholds were chosen on it.
    HeldOut,
    /// Other mail, judged by the router as it is.
    Labelled,
}

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// Name of the router, with its version where it has one.
    pub router: &'a str,
    /// What the mail is called: its file's name.
    pub data: &'a str,
    /// Where it comes from.
    pub origin: Origin,
    /// In the order of the logits.
    pub queues: &'a [Queue],
    /// How logits become decisions.
    pub calibration: &'a Calibration,
    /// The threshold of the settings, in place of all of the calibration's; `None`: those stand.
    pub threshold: Option<f64>,
    /// The mail.
    pub mails: &'a [JudgedMail],
}

/// All figures of a router on labelled mail. No subject and no text of a mail is written as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: &'static str,
    /// The router.
    pub router: String,
    /// What the mail is called.
    pub data: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Mails judged.
    pub mails: usize,
    /// What to keep in mind when reading the figures.
    pub warnings: Vec<String>,
    /// Right when every mail is routed.
    pub accuracy: Rate,
    /// The same for word counts alone; `None` where there are none.
    pub baseline: Option<Rate>,
    /// Mean F1 of the queues that have mail or got some.
    pub macro_f1: f64,
    /// What would happen without a person and with one.
    pub alone: Alone,
    /// How far confidences can be trusted.
    pub trust: Trust,
    /// By queue, in the router's order.
    pub queues: Vec<QueueReport>,
    /// Mails by right queue (row) and likeliest queue (column), both in the order of `queues`.
    pub confusion: Vec<Vec<usize>>,
    /// Pairs of queues that are mistaken for each other, the most often first.
    pub merges: Vec<Merge>,
    /// By tokens of the mail.
    pub by_length: Vec<Slice>,
    /// By the place of the deciding sentence, in tenths of the mail; empty where the data names none.
    pub by_position: Vec<Slice>,
    /// The surest wrong answers.
    pub worst: Vec<Mistake>,
    /// Mails whose label the router believes least, by queue: some of these labels are wrong.
    pub suspects: Vec<Mistake>,
    /// Every mail.
    pub predictions: Vec<Prediction>,
}

/// The layout of `report.json`.
pub const REPORT_SCHEMA: &str = "postroom-report/1";

/// What the router said of one mail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Id of the mail.
    pub id: String,
    /// Id of its right queue.
    pub target: String,
    /// Id of the likeliest queue.
    pub predicted: String,
    /// Probability of that queue.
    pub confidence: f64,
    /// Whether it would be routed without a person.
    pub routed_alone: bool,
}

/// A mail with the router's judgement.
struct Answer<'a> {
    mail: &'a JudgedMail,
    judgement: Judgement,
}

impl Answer<'_> {
    fn right(&self) -> bool {
        self.judgement.best == self.mail.target
    }
}

impl Report {
    /// Counts everything. Mail that does not fit the queues is left out, and a warning says so.
    #[must_use]
    pub fn new(input: &ReportInput<'_>) -> Self {
        let n_queues = input.queues.len();
        let queue = |index: usize| input.queues.get(index);
        let answers: Vec<Answer<'_>> = input
            .mails
            .iter()
            .filter(|mail| mail.target < n_queues && mail.logits.len() == n_queues)
            .map(|mail| Answer { mail, judgement: mail.judge(input.calibration, input.threshold, queue) })
            .collect();
        let ids: Vec<&str> = input.queues.iter().map(|queue| queue.id.as_str()).collect();
        let confusion = queues::confusion(&answers, n_queues);
        let queues = queues::by_queue(&answers, &ids, &confusion);
        Self {
            schema: REPORT_SCHEMA,
            router: input.router.to_owned(),
            data: input.data.to_owned(),
            origin: input.origin,
            mails: answers.len(),
            warnings: warnings::of(&queues, input.mails.len() - answers.len()),
            accuracy: Rate::new(answers.iter().filter(|answer| answer.right()).count(), answers.len()),
            baseline: baseline(&answers),
            macro_f1: queues::macro_f1(&queues),
            alone: Alone::of(&answers, input),
            trust: Trust::of(&answers),
            merges: queues::merges(&ids, &confusion, answers.len()),
            by_length: slices::by_length(&answers),
            by_position: slices::by_position(&answers),
            worst: mistakes::worst(&answers, &ids),
            suspects: mistakes::suspects(&answers, &ids),
            predictions: answers
                .iter()
                .map(|answer| Prediction {
                    id: answer.mail.id.clone(),
                    target: ids[answer.mail.target].to_owned(),
                    predicted: ids[answer.judgement.best].to_owned(),
                    confidence: answer.judgement.confidence,
                    routed_alone: answer.judgement.routed_alone(),
                })
                .collect(),
            queues,
            confusion,
        }
    }

    /// The report as JSON, with a line break at its end.
    ///
    /// # Errors
    /// Never for a report that [`Report::new`] made; the serializer's signature allows for it.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

/// How word counts alone would have done, where every mail has them.
fn baseline(answers: &[Answer<'_>]) -> Option<Rate> {
    let mut right = 0;
    for answer in answers {
        let logits = answer.mail.baseline.as_ref()?;
        let best = (0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a });
        right += usize::from(best == Some(answer.mail.target));
    }
    (!answers.is_empty()).then(|| Rate::new(right, answers.len()))
}

#[cfg(test)]
mod tests;

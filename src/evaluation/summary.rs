//! The figures that the command prints: counts by queue, mistakes, routed alone.

use serde::Serialize;

use super::JudgedMail;
use crate::artifact::{Judgement, RouterInfo};
use crate::metrics::expected_calibration_error;

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
    /// Mails that the router's thresholds, scope and guards let go without a person.
    pub routed_alone: usize,
    /// Wrong ones among them.
    pub routed_alone_wrong: usize,
    /// Expected calibration error, 15 bins.
    pub ece: f64,
    /// By queue, in the router's order.
    pub queues: Vec<QueueFigures>,
    /// Mails longer than the token ceiling.
    pub truncated: usize,
    /// The threshold of the settings that `routed_alone` was counted at; `None`: the router's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

impl Evaluation {
    /// Counts what a router said of judged mail. `threshold` is that of the settings, in place of all of the router's.
    #[must_use]
    pub fn of(info: &RouterInfo, mails: &[JudgedMail], threshold: Option<f64>) -> Self {
        let id = |index: usize| info.queues.get(index).map_or_else(String::new, |queue| queue.id.clone());
        let queue = |index: usize| info.queues.get(index);
        let answers: Vec<(&JudgedMail, Judgement)> =
            mails.iter().map(|mail| (mail, mail.judge(&info.calibration, threshold, queue))).collect();
        let right = |(mail, answer): &(&JudgedMail, Judgement)| mail.target == answer.best;
        let alone = || answers.iter().filter(|(_, answer)| answer.routed_alone());
        let mut misrouted: Vec<Misroute> = answers
            .iter()
            .filter(|answer| !right(answer))
            .map(|(mail, answer)| Misroute {
                id: mail.id.clone(),
                expected: id(mail.target),
                routed_to: id(answer.best),
                confidence: answer.confidence,
            })
            .collect();
        misrouted.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        let queues = (0..info.queues.len())
            .map(|index| QueueFigures {
                queue: id(index),
                mails: mails.iter().filter(|mail| mail.target == index).count(),
                right: answers.iter().filter(|answer| answer.0.target == index && right(answer)).count(),
                false_alarms: answers.iter().filter(|answer| answer.1.best == index && !right(answer)).count(),
            })
            .collect();
        let confidences: Vec<f64> = answers.iter().map(|(_, answer)| answer.confidence).collect();
        let correct: Vec<bool> = answers.iter().map(right).collect();
        Self {
            mails: mails.len(),
            misrouted,
            routed_alone: alone().count(),
            routed_alone_wrong: alone().filter(|answer| !right(answer)).count(),
            ece: expected_calibration_error(&confidences, &correct, 15),
            queues,
            truncated: mails.iter().filter(|mail| mail.tokens > info.windows.max_tokens).count(),
            threshold,
        }
    }
}

//! How each queue did, and which two are mistaken for each other.

use serde::Serialize;

use super::{Answer, Rate};
use crate::metrics::class_wise_calibration_error;

/// Figures of one queue when every mail is routed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueReport {
    /// Id of the queue.
    pub queue: String,
    /// Mails that belong to it.
    pub mails: usize,
    /// Of the mail sent there, what belongs there.
    pub precision: Rate,
    /// Of the mail that belongs there, what was sent there.
    pub recall: Rate,
    /// Harmonic mean of both; `None` where no mail belongs there or was sent there.
    pub f1: Option<f64>,
    /// Of its mail, what would be routed without a person and right.
    pub routed_alone_right: usize,
    /// Mail of others that would be routed there without a person.
    pub routed_alone_wrong: usize,
    /// Calibration error of this queue's probability, 15 bins; `None` with fewer than 30 mails.
    pub ece: Option<f64>,
}

/// Two queues that are mistaken for each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Merge {
    /// Ids of the two.
    pub queues: [String; 2],
    /// Mails of the first sent to the second, and the other way round.
    pub mistaken: [usize; 2],
    /// What the accuracy would gain if they were one queue and nothing else changed.
    pub gain: f64,
}

/// Queues with fewer mails have no calibration error of their own.
const LEAST_FOR_ECE: usize = 30;
/// Pairs that are listed.
const MERGES: usize = 5;

/// Mails by right queue (row) and likeliest queue (column).
pub(super) fn confusion(answers: &[Answer<'_>], n_queues: usize) -> Vec<Vec<usize>> {
    let mut counts = vec![vec![0; n_queues]; n_queues];
    for answer in answers {
        counts[answer.mail.target][answer.judgement.best] += 1;
    }
    counts
}

pub(super) fn by_queue(answers: &[Answer<'_>], ids: &[&str], confusion: &[Vec<usize>]) -> Vec<QueueReport> {
    let probabilities: Vec<Vec<f64>> = answers.iter().map(|answer| answer.judgement.probabilities.clone()).collect();
    let targets: Vec<usize> = answers.iter().map(|answer| answer.mail.target).collect();
    let errors = class_wise_calibration_error(&probabilities, &targets, 15, LEAST_FOR_ECE);
    let of_queue = |(queue, id): (usize, &&str)| {
        let right = confusion[queue][queue];
        let mails: usize = confusion[queue].iter().sum();
        let sent: usize = confusion.iter().map(|row| row[queue]).sum();
        let alone = |right| {
            let sent_alone = |answer: &&Answer<'_>| answer.judgement.best == queue && answer.judgement.routed_alone();
            answers.iter().filter(sent_alone).filter(|answer| answer.right() == right).count()
        };
        QueueReport {
            queue: (*id).to_owned(),
            mails,
            precision: Rate::new(right, sent),
            recall: Rate::new(right, mails),
            f1: (mails + sent > 0).then(|| 2.0 * right as f64 / (mails + sent) as f64),
            routed_alone_right: alone(true),
            routed_alone_wrong: alone(false),
            ece: errors.get(queue).copied().flatten(),
        }
    };
    ids.iter().enumerate().map(of_queue).collect()
}

pub(super) fn macro_f1(queues: &[QueueReport]) -> f64 {
    let known: Vec<f64> = queues.iter().filter_map(|queue| queue.f1).collect();
    known.iter().sum::<f64>() / known.len().max(1) as f64
}

pub(super) fn merges(ids: &[&str], confusion: &[Vec<usize>], mails: usize) -> Vec<Merge> {
    let pairs = (0..ids.len()).flat_map(|a| (a + 1..ids.len()).map(move |b| (a, b)));
    let mut merges: Vec<Merge> = pairs
        .map(|(a, b)| (a, b, [confusion[a][b], confusion[b][a]]))
        .filter(|(_, _, mistaken)| mistaken.iter().sum::<usize>() > 0)
        .map(|(a, b, mistaken)| Merge {
            queues: [ids[a].to_owned(), ids[b].to_owned()],
            mistaken,
            gain: mistaken.iter().sum::<usize>() as f64 / mails.max(1) as f64,
        })
        .collect();
    merges.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    merges.truncate(MERGES);
    merges
}

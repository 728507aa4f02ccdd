//! How a new row stands against the other queues: fitted, judged on examples left out, checked for doubtful examples.

use super::row::{NewRow, RowMail};
use crate::artifact::RouterInfo;
use crate::dataset::Example;

/// What rows fitted without an example said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// Examples that went to the new queue all the same.
    pub found: usize,
    /// All examples.
    pub examples: usize,
}

/// An example that looks like mail of another queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// Id of the example.
    pub mail: String,
    /// The other queue.
    pub queue: String,
    /// How sure the router is of it without that example; `None` where the same text stands among that queue's mail.
    pub confidence: Option<f64>,
}

/// How likely mail of the other queues may move to a queue that is only described.
const MAY_MOVE: f64 = 0.01;
/// What a cosine is worth as a logit: similarities are read at a temperature of 0.05.
const COSINE: f64 = 20.0;

/// The mail at hand: its features, and what the router says of it without the new queue.
pub(super) struct Standing<'a> {
    pub network: &'a RouterInfo,
    pub temperature: f64,
    /// Features and logits; the queue's words about itself come first.
    pub own: Vec<(Vec<f32>, Vec<f32>)>,
    /// Features, logits and queue.
    pub others: Vec<(Vec<f32>, Vec<f32>, usize)>,
}

/// What a row fitted without an example said of it: the other queue that is likeliest, if one beats the new queue, and
/// whether the mail would go there alone.
pub(super) struct Verdict {
    elsewhere: Option<(usize, f64)>,
    alone: bool,
}

impl Standing<'_> {
    fn width(&self) -> usize {
        self.own.first().map_or(0, |(features, _)| features.len())
    }

    /// Logits of the queues, the new one last, all divided by the temperature.
    fn scaled(&self, row: &NewRow, features: &[f32], logits: &[f32]) -> Vec<f64> {
        let joined = self.network.queue_logits(logits);
        let scaled = joined.iter().map(|&logit| f64::from(logit) / self.temperature);
        scaled.chain([row.logit(features)]).collect()
    }

    /// Log of the sum of exponentials of the router's own logits.
    fn rest(&self, logits: &[f32]) -> f64 {
        crate::metrics::energy(logits, self.temperature) / self.temperature
    }

    /// Fits the row, without one of the examples where it says which. The description counts as an example.
    pub(super) fn fit(&self, c: f64, described: bool, without: Option<usize>) -> NewRow {
        let first = usize::from(!described);
        let own =
            self.own.iter().enumerate().skip(first).filter(|(mail, _)| without.is_none_or(|out| *mail != out + 1));
        let own = own.map(|(_, (features, logits))| (features, logits, true));
        let others = self.others.iter().map(|(features, logits, _)| (features, logits, false));
        let mails: Vec<RowMail> = own
            .chain(others)
            .map(|(features, logits, own)| RowMail {
                features: features.clone(),
                others: self.rest(logits),
                own,
                share: 1.0,
            })
            .collect();
        NewRow::fit(&mails.iter().collect::<Vec<_>>(), self.width(), c)
    }

    /// The row of a queue that has only words about itself: their direction, as strong as leaves nearly all mail of the other
    /// queues where it is.
    pub(super) fn direction(&self) -> NewRow {
        let Some((words, _)) = self.own.first() else { return NewRow { weight: Vec::new(), bias: 0.0 } };
        let length = words.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt().max(1e-12);
        let weight: Vec<f64> = words.iter().map(|&x| COSINE * f64::from(x) / length).collect();
        let row = NewRow { weight, bias: 0.0 };
        let lead = |features: &[f32], logits: &[f32]| {
            let scaled = self.scaled(&row, features, logits);
            let best = scaled[..scaled.len() - 1].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            best - row.logit(features)
        };
        let mut leads: Vec<f64> = self.others.iter().map(|(features, logits, _)| lead(features, logits)).collect();
        leads.sort_by(f64::total_cmp);
        let bias = leads.get((leads.len() as f64 * MAY_MOVE) as usize).copied().unwrap_or_default();
        NewRow { bias: bias - 1e-6, ..row }
    }

    /// Mails of the other queues that went to the right one before, and how many of them go to the new queue now.
    pub(super) fn moved(&self, row: &NewRow) -> (usize, usize) {
        let (mut right, mut moved) = (0, 0);
        for (features, logits, queue) in &self.others {
            let mut scaled = self.scaled(row, features, logits);
            let new = scaled.pop().unwrap_or(f64::NEG_INFINITY);
            let best = best(&scaled);
            if best == *queue {
                right += 1;
                moved += usize::from(new > scaled[best]);
            }
        }
        (right, moved)
    }

    /// Judges every example by a row fitted without it.
    pub(super) fn leave_one_out(&self, c: f64, described: bool) -> (LeftOut, Vec<Verdict>) {
        let judged: Vec<Verdict> = (0..self.own.len().saturating_sub(1))
            .map(|example| {
                let row = self.fit(c, described, Some(example));
                let (features, logits) = &self.own[example + 1];
                self.verdict(&row, features, logits)
            })
            .collect();
        let found = judged.iter().filter(|verdict| verdict.elsewhere.is_none()).count();
        (LeftOut { found, examples: judged.len() }, judged)
    }

    fn verdict(&self, row: &NewRow, features: &[f32], logits: &[f32]) -> Verdict {
        let logits: Vec<f32> =
            self.scaled(row, features, logits).iter().map(|logit| (logit * self.temperature) as f32).collect();
        let id_of = |queue: usize| self.network.queues.get(queue).map(|queue| queue.id.as_str());
        let judgement = self.network.calibration.judge(&logits, None, id_of);
        let elsewhere = judgement.best + 1 != logits.len();
        Verdict {
            elsewhere: elsewhere.then_some((judgement.best, judgement.confidence)),
            alone: judgement.routed_alone(),
        }
    }

    /// Examples whose text stands among another queue's mail, and those that without them would go to another queue alone.
    pub(super) fn conflicts(&self, judged: &[Verdict], examples: &[Example], ids: &[String]) -> Vec<Conflict> {
        let id = |queue: usize| ids.get(queue).cloned().unwrap_or_default();
        let mut conflicts = Vec::new();
        for (index, example) in examples.iter().enumerate() {
            let (features, _) = &self.own[index + 1];
            let same = self.others.iter().find(|(other, ..)| cosine(features, other) > 0.9999);
            let sure = judged.get(index).filter(|verdict| verdict.alone).and_then(|verdict| verdict.elsewhere);
            let found = match (same, sure) {
                (Some((.., queue)), _) => Some((id(*queue), None)),
                (None, Some((queue, confidence))) => Some((id(queue), Some(confidence))),
                (None, None) => None,
            };
            let conflict = |(queue, confidence)| Conflict { mail: example.id.clone(), queue, confidence };
            conflicts.extend(found.map(conflict));
        }
        conflicts
    }
}

fn best(logits: &[f64]) -> usize {
    (0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a }).unwrap_or(0)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f32::MIN_POSITIVE)
}

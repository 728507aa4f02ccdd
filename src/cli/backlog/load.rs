//! What the queues get.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::row::{Row, name_of};
use crate::metrics::clopper_pearson_interval;
use crate::routing::Outcome;

/// Counts of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Load {
    pub(super) mails: usize,
    /// Routed without a person.
    alone: usize,
    /// Handed to a person.
    to_a_person: usize,
    /// Bounces and automatic replies.
    not_for_a_queue: usize,
    /// Neither read nor answered.
    errors: usize,
    /// Routed without a person, by queue.
    queues: BTreeMap<String, usize>,
    /// For a person, by the likeliest queue.
    likeliest: BTreeMap<String, usize>,
    /// Reasons of what was not routed alone; a mail may have several.
    reasons: BTreeMap<String, usize>,
}

impl Load {
    pub(super) fn count(&mut self, row: &Row) {
        self.mails += 1;
        match row.decision {
            None => self.errors += 1,
            Some(Outcome::Route) => {
                self.alone += 1;
                *self.queues.entry(row.queue.clone().unwrap_or_default()).or_default() += 1;
            }
            Some(Outcome::NeedsHuman) => {
                self.to_a_person += 1;
                if let Some(candidate) = row.candidates.first() {
                    *self.likeliest.entry(candidate.queue.clone()).or_default() += 1;
                }
            }
            Some(Outcome::NotForAQueue) => self.not_for_a_queue += 1,
        }
        if row.decision.is_some_and(|decision| decision != Outcome::Route) {
            for reason in &row.reasons {
                *self.reasons.entry(name_of(*reason)).or_default() += 1;
            }
        }
    }

    /// The counts for people; of a sample projected onto `all` mails, with the interval that holds 95 times in 100.
    pub(super) fn table(&self, all: Option<usize>) -> String {
        let mut out = String::new();
        let mut line = |name: &str, count: usize| {
            let share = 100.0 * count as f64 / self.mails.max(1) as f64;
            let _ = match all {
                None => writeln!(out, "{name:<28} {count:>8} {share:>5.1}%"),
                Some(all) => {
                    let (low, high) = clopper_pearson_interval(count, self.mails, 0.05);
                    let of = |share: f64| (share * all as f64).round() as usize;
                    let about = of(count as f64 / self.mails.max(1) as f64);
                    writeln!(out, "{name:<28} {about:>8} {share:>5.1}%  ({} to {})", of(low), of(high))
                }
            };
        };
        line("routed alone", self.alone);
        self.queues.iter().for_each(|(queue, &count)| line(&format!("  {queue}"), count));
        line("to a person", self.to_a_person);
        self.likeliest.iter().for_each(|(queue, &count)| line(&format!("  likeliest {queue}"), count));
        line("not for a queue", self.not_for_a_queue);
        line("errors", self.errors);
        self.reasons.iter().for_each(|(reason, &count)| line(&format!("because {}", reason.replace('_', " ")), count));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{Candidate, Reason};

    fn row(decision: Option<Outcome>) -> Row {
        let failed = Row::failed("a".to_owned(), None, &std::io::Error::other("why"));
        let candidates = vec![Candidate { queue: "refunds".to_owned(), confidence: 0.9 }];
        let queue = (decision == Some(Outcome::Route)).then(|| "refunds".to_owned());
        Row { decision, queue, candidates, reasons: vec![Reason::BelowThreshold], ..failed }
    }

    #[test]
    fn every_mail_is_counted_once_and_a_sample_is_projected() {
        let mut load = Load::default();
        let outcomes = [Some(Outcome::Route), Some(Outcome::Route), Some(Outcome::NeedsHuman), None];
        outcomes.map(row).iter().for_each(|row| load.count(row));
        assert_eq!((load.mails, load.alone, load.to_a_person, load.errors), (4, 2, 1, 1));
        assert_eq!((load.queues["refunds"], load.likeliest["refunds"], load.reasons["below_threshold"]), (2, 1, 1));
        assert!(load.table(None).contains("routed alone                        2  50.0%"), "{}", load.table(None));
        let projected = load.table(Some(1000));
        assert!(projected.contains("     500  50.0%  (68 to 932)"), "{projected}");
    }
}

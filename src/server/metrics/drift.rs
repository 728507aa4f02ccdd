//! What the last mails were like: a change here is the first sign that the mail has moved away from what the router knows.

use std::collections::{BTreeMap, VecDeque};

use crate::routing::{Decision, Outcome, Reason};

/// Decisions that are looked back on: enough that a share of 5% is known to within about 1.5 points.
const WINDOW: usize = 1000;

/// The last decisions.
#[derive(Debug, Default)]
pub(super) struct Window {
    last: VecDeque<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// The likeliest queue that is on, routed there or not; `None` where the network was not asked.
    queue: Option<String>,
    confidence: Option<f64>,
    needs_human: bool,
    out_of_scope: bool,
}

/// Shares of the window, 0 to 1; 0 where it is empty.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Mix {
    pub decisions: usize,
    /// Of the mails with a likeliest queue.
    pub queues: BTreeMap<String, f64>,
    pub needs_human: f64,
    pub out_of_scope: f64,
    pub confidence: f64,
}

impl Window {
    pub(super) fn add(&mut self, decision: &Decision) {
        self.push(Seen {
            queue: decision.candidates.first().map(|candidate| candidate.queue.clone()),
            confidence: decision.confidence,
            needs_human: decision.decision == Outcome::NeedsHuman,
            out_of_scope: decision.reasons.contains(&Reason::OutOfScope),
        });
    }

    fn push(&mut self, seen: Seen) {
        if self.last.len() == WINDOW {
            self.last.pop_front();
        }
        self.last.push_back(seen);
    }

    pub(super) fn mix(&self) -> Mix {
        let share = |count: usize, of: usize| if of == 0 { 0.0 } else { count as f64 / of as f64 };
        let (decisions, mut counts) = (self.last.len(), BTreeMap::<&String, usize>::new());
        for queue in self.last.iter().filter_map(|seen| seen.queue.as_ref()) {
            *counts.entry(queue).or_default() += 1;
        }
        let judged: usize = counts.values().sum();
        let confidences: Vec<f64> = self.last.iter().filter_map(|seen| seen.confidence).collect();
        Mix {
            decisions,
            queues: counts.into_iter().map(|(queue, count)| (queue.clone(), share(count, judged))).collect(),
            needs_human: share(self.last.iter().filter(|seen| seen.needs_human).count(), decisions),
            out_of_scope: share(self.last.iter().filter(|seen| seen.out_of_scope).count(), decisions),
            confidence: if confidences.is_empty() {
                0.0
            } else {
                confidences.iter().sum::<f64>() / confidences.len() as f64
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(queue: Option<&str>, confidence: f64, needs_human: bool) -> Seen {
        let confidence = queue.map(|_| confidence);
        Seen { queue: queue.map(str::to_owned), confidence, needs_human, out_of_scope: false }
    }

    #[test]
    fn shares_are_of_the_window_and_empty_mail_counts_for_no_queue() {
        let mut window = Window::default();
        assert_eq!(window.mix(), Mix::default());
        for (queue, confidence, needs_human) in
            [(Some("a"), 0.9, false), (Some("a"), 0.7, false), (Some("b"), 0.5, true), (None, 0.0, true)]
        {
            window.push(seen(queue, confidence, needs_human));
        }
        let mix = window.mix();
        assert_eq!((mix.decisions, mix.needs_human), (4, 0.5));
        assert!((mix.queues["a"] - 2.0 / 3.0).abs() < 1e-12 && (mix.confidence - 0.7).abs() < 1e-12, "{mix:?}");
    }

    #[test]
    fn old_mail_leaves_the_window() {
        let mut window = Window::default();
        (0..WINDOW).for_each(|_| window.push(seen(Some("old"), 0.9, false)));
        (0..WINDOW).for_each(|_| window.push(seen(Some("new"), 0.5, true)));
        let mix = window.mix();
        assert_eq!((mix.decisions, mix.needs_human), (WINDOW, 1.0));
        assert_eq!(mix.queues.into_iter().collect::<Vec<_>>(), [("new".to_owned(), 1.0)]);
    }
}

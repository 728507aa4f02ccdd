//! From logits to what may be done alone: confidence, thresholds, scope, guards, and the set shown to a person.
//!
//! These are the numbers that training solves on held-out mail. The policy, the figures and the report all judge a mail
//! here, so that what is measured is what is served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::{energy, lac_set, reaches, softmax};

/// How the logits of a router become a decision. Whatever is absent does not apply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Confidence is `softmax(logits / temperature)`.
    pub temperature: f64,
    /// Least confidence with which a mail is routed without a person; 1 is closed: no mail is, however sure.
    pub threshold: f64,
    /// The same for queues with an error budget of their own, by id; it takes the place of `threshold`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queue_thresholds: BTreeMap<String, f64>,
    /// Least energy, `T * ln sum exp(logits / T)` with `T` the temperature above, below which a mail is out of scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_scope: Option<f64>,
    /// Largest `1 - p` of a queue in the set that a person is shown, solved on held-out mail that goes to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformal: Option<f64>,
    /// By id of a queue whose mail must not be missed: a mail whose likeliest queue is another one goes to a person
    /// where the probability of this one is at least the number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guards: BTreeMap<String, f64>,
}

/// What the calibration says of one mail.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Calibrated probability of each queue, in the router's order.
    pub probabilities: Vec<f64>,
    /// The likeliest queue; the first of equals.
    pub best: usize,
    /// Its probability.
    pub confidence: f64,
    /// The confidence does not reach the threshold that applies to that queue.
    pub below_threshold: bool,
    /// The mail looks like nothing the router knows.
    pub out_of_scope: bool,
    /// The queue whose guard stops the mail: the likeliest such queue.
    pub guarded_by: Option<usize>,
}

impl Judgement {
    /// Whether these numbers let the mail go without a person.
    #[must_use]
    pub fn routed_alone(&self) -> bool {
        !self.below_threshold && !self.out_of_scope && self.guarded_by.is_none()
    }
}

impl Calibration {
    /// A temperature and a threshold, and nothing else.
    #[must_use]
    pub fn new(temperature: f64, threshold: f64) -> Self {
        Self {
            temperature,
            threshold,
            queue_thresholds: BTreeMap::new(),
            out_of_scope: None,
            conformal: None,
            guards: BTreeMap::new(),
        }
    }

    /// Judges a mail. `threshold`, where given, takes the place of all thresholds, those of single queues included;
    /// scope and guards hold all the same. `id_of` names the queue of a logit.
    #[must_use]
    pub fn judge<'q>(
        &self,
        logits: &[f32],
        threshold: Option<f64>,
        id_of: impl Fn(usize) -> Option<&'q str>,
    ) -> Judgement {
        let probabilities = softmax(logits, self.temperature);
        let likeliest = |queues: &mut dyn Iterator<Item = usize>| {
            queues.reduce(|a, b| if probabilities[b].total_cmp(&probabilities[a]).is_gt() { b } else { a })
        };
        let best = likeliest(&mut (0..probabilities.len())).unwrap_or(0);
        let confidence = probabilities.get(best).copied().unwrap_or(0.0);
        // A confidence that is no number reaches no threshold, and none reaches a threshold of 1.
        let sure = reaches(confidence, threshold.unwrap_or_else(|| self.threshold_of(id_of(best))));
        let in_scope = self.out_of_scope.is_none_or(|least| energy(logits, self.temperature) >= least);
        let stops = |&queue: &usize| {
            let guard = id_of(queue).and_then(|id| self.guards.get(id));
            queue != best && guard.is_some_and(|&guard| probabilities[queue] >= guard)
        };
        let guarded_by = likeliest(&mut (0..probabilities.len()).filter(stops));
        Judgement { best, confidence, below_threshold: !sure, out_of_scope: !in_scope, guarded_by, probabilities }
    }

    /// The threshold that applies to mail whose likeliest queue has this id: its own, or the common one.
    #[must_use]
    pub fn threshold_of(&self, id: Option<&str>) -> f64 {
        id.and_then(|id| self.queue_thresholds.get(id)).copied().unwrap_or(self.threshold)
    }

    /// The queues that remain possible for a mail that goes to a person, likeliest first: never empty, and `None` where
    /// the router was trained on too few mails to say.
    #[must_use]
    pub fn candidate_set(&self, judgement: &Judgement) -> Option<Vec<usize>> {
        let set = lac_set(&judgement.probabilities, self.conformal?);
        Some(if set.is_empty() { vec![judgement.best] } else { set })
    }

    /// Checks ranges, and that only queues of the router are named; the error says what is wrong.
    pub(super) fn check(&self, ids: &[&str]) -> Result<(), String> {
        let Self { temperature, threshold, queue_thresholds, out_of_scope, conformal, guards } = self;
        if !(temperature.is_finite() && *temperature > 0.0) {
            return Err(format!("temperature is {temperature}, not above 0"));
        }
        let of_queues = |key: &'static str, numbers: &'_ BTreeMap<String, f64>| -> Vec<(String, f64)> {
            numbers.iter().map(|(id, &number)| (format!("{key}.{id}"), number)).collect()
        };
        let mut shares = vec![("threshold".to_owned(), *threshold)];
        shares.extend(conformal.map(|number| ("conformal".to_owned(), number)));
        shares.extend(of_queues("queue_thresholds", queue_thresholds));
        shares.extend(of_queues("guards", guards));
        if let Some((key, number)) = shares.iter().find(|(_, number)| !(0.0..=1.0).contains(number)) {
            return Err(format!("{key} is {number}, outside 0..=1"));
        }
        if let Some(least) = out_of_scope.filter(|least| !least.is_finite()) {
            return Err(format!("out_of_scope is {least}, not a finite number"));
        }
        match queue_thresholds.keys().chain(guards.keys()).find(|id| !ids.contains(&id.as_str())) {
            Some(id) => Err(format!("the calibration names `{id}`, which is none of the queues")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 3] = ["allergy", "late", "refunds"];

    fn judge(calibration: &Calibration, logits: [f32; 3]) -> Judgement {
        calibration.judge(&logits, None, |queue| IDS.get(queue).copied())
    }

    fn plain() -> Calibration {
        Calibration::new(1.0, 0.8)
    }

    #[test]
    fn a_sure_mail_goes_alone_and_an_unsure_one_does_not() {
        assert!(judge(&plain(), [0.0, 5.0, 0.0]).routed_alone());
        let judgement = judge(&plain(), [0.0, 1.0, 0.0]);
        assert!(judgement.below_threshold && judgement.best == 1);
    }

    #[test]
    fn a_queue_may_have_a_threshold_of_its_own_unless_one_is_given_for_all() {
        let calibration = Calibration { queue_thresholds: [("late".to_owned(), 0.999)].into(), ..plain() };
        assert!(judge(&calibration, [0.0, 5.0, 0.0]).below_threshold);
        assert!(judge(&calibration, [0.0, 0.0, 5.0]).routed_alone());
        assert!(calibration.judge(&[0.0, 5.0, 0.0], Some(0.5), |queue| IDS.get(queue).copied()).routed_alone());
    }

    #[test]
    fn a_threshold_of_one_is_closed_even_to_a_confidence_that_is_rounded_to_one() {
        let certain = [0.0, 500.0, 0.0];
        assert_eq!(judge(&plain(), certain).confidence, 1.0);
        assert!(judge(&plain(), certain).routed_alone());
        assert!(judge(&Calibration::new(1.0, 1.0), certain).below_threshold);
        let closed = Calibration { queue_thresholds: [("late".to_owned(), 1.0)].into(), ..plain() };
        assert!(judge(&closed, certain).below_threshold);
        assert!(plain().judge(&certain, Some(1.0), |queue| IDS.get(queue).copied()).below_threshold);
    }

    #[test]
    fn small_logits_are_out_of_scope_however_sure() {
        let calibration = Calibration { out_of_scope: Some(4.0), ..plain() };
        assert!(judge(&calibration, [0.0, 5.0, 0.0]).routed_alone());
        // The same differences, so the same confidence.
        assert!(judge(&calibration, [-3.0, 2.0, -3.0]).out_of_scope);
    }

    #[test]
    fn a_guard_stops_mail_of_other_queues_only() {
        let calibration = Calibration { guards: [("allergy".to_owned(), 0.05)].into(), ..plain() };
        let logits = [2.0, 4.5, 0.0];
        let judgement = judge(&calibration, logits);
        assert_eq!((judgement.best, judgement.guarded_by), (1, Some(0)));
        assert!(!judgement.below_threshold && !judgement.routed_alone());
        assert!(judge(&calibration, [4.5, 2.0, 0.0]).routed_alone());
        assert!(judge(&calibration, [0.0, 4.5, 2.0]).routed_alone());
    }

    #[test]
    fn the_set_is_never_empty() {
        let set = |quantile, logits| {
            let calibration = Calibration { conformal: Some(quantile), ..plain() };
            calibration.candidate_set(&judge(&calibration, logits)).unwrap()
        };
        assert_eq!(set(0.9, [1.0, 2.0, 0.0]), [1, 0]);
        assert_eq!(set(0.1, [1.0, 2.0, 0.0]), [1]);
        assert_eq!(plain().candidate_set(&judge(&plain(), [1.0, 2.0, 0.0])), None);
    }

    #[test]
    fn logits_that_are_no_numbers_are_never_routed() {
        assert!(!judge(&plain(), [f32::NAN, 1.0, 2.0]).routed_alone());
        assert!(!plain().judge(&[], None, |_| None).routed_alone());
    }

    #[test]
    fn an_old_calibration_reads_and_writes_unchanged() {
        let text = r#"{"temperature":0.9,"threshold":0.8}"#;
        let calibration: Calibration = serde_json::from_str(text).unwrap();
        assert_eq!(calibration, Calibration::new(0.9, 0.8));
        assert_eq!(serde_json::to_string(&calibration).unwrap(), text);
    }

    #[test]
    fn numbers_out_of_range_and_unknown_queues_are_refused() {
        let refused = |calibration: Calibration| calibration.check(&IDS).unwrap_err();
        let one = |id: &str, number| BTreeMap::from([(id.to_owned(), number)]);
        assert!(plain().check(&IDS).is_ok());
        assert!(refused(Calibration::new(0.0, 0.5)).contains("temperature"));
        assert!(refused(Calibration::new(1.0, f64::NAN)).contains("threshold"));
        assert!(refused(Calibration { guards: one("late", 1.5), ..plain() }).contains("guards.late"));
        assert!(refused(Calibration { queue_thresholds: one("late", -0.1), ..plain() }).contains("queue_thresholds"));
        assert!(refused(Calibration { conformal: Some(2.0), ..plain() }).contains("conformal"));
        assert!(refused(Calibration { out_of_scope: Some(f64::INFINITY), ..plain() }).contains("out_of_scope"));
        assert!(refused(Calibration { guards: one("nobody", 0.5), ..plain() }).contains("`nobody`"));
    }
}

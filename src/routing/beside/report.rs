//! Where a shadow agrees with the router in force: counts, and not a word of any mail.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use super::super::routers::rfc3339;
use super::super::{Decision, Outcome};

/// What one router decided on a mail.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    version: String,
    /// The queue that the mail was routed to, or why it was routed to none.
    label: String,
    /// The likeliest queue, routed or not.
    likeliest: Option<String>,
    confidence: Option<f64>,
}

impl Seen {
    pub(super) fn of(decision: &Decision) -> Self {
        let label = match (decision.decision, &decision.queue) {
            (Outcome::Route, Some(queue)) => queue.id.clone(),
            (Outcome::NotForAQueue, _) => "not_for_a_queue".to_owned(),
            _ => "needs_human".to_owned(),
        };
        Self {
            version: decision.model.version.clone(),
            label,
            likeliest: decision.candidates.first().map(|candidate| candidate.queue.clone()),
            confidence: decision.confidence,
        }
    }
}

/// Counts for one version of the router in force and one of the shadow; another version of either starts anew.
#[derive(Debug, Default)]
pub(super) struct Tally {
    versions: Option<(String, String)>,
    since: Option<SystemTime>,
    mails: u64,
    agreed: u64,
    same_likeliest: u64,
    /// Router in force, shadow, count.
    matrix: BTreeMap<String, BTreeMap<String, u64>>,
    /// Mails that both had a confidence for.
    compared: u64,
    difference: f64,
    distance: f64,
}

impl Tally {
    pub(super) fn add(&mut self, live: &Seen, shadow: &Seen) {
        let versions = (live.version.clone(), shadow.version.clone());
        if self.versions.as_ref() != Some(&versions) {
            *self = Self { versions: Some(versions), since: Some(SystemTime::now()), ..Self::default() };
        }
        self.mails += 1;
        self.agreed += u64::from(live.label == shadow.label);
        self.same_likeliest += u64::from(live.likeliest == shadow.likeliest);
        *self.matrix.entry(live.label.clone()).or_default().entry(shadow.label.clone()).or_default() += 1;
        if let (Some(live), Some(shadow)) = (live.confidence, shadow.confidence) {
            self.compared += 1;
            self.difference += shadow - live;
            self.distance += (shadow - live).abs();
        }
    }

    /// The comparison; what became of all mail is for the shadow to fill in.
    pub(super) fn report(&self, name: &str) -> ShadowReport {
        let share = |count: u64| (self.mails > 0).then(|| count as f64 / self.mails as f64);
        let mean = |sum: f64| (self.compared > 0).then(|| sum / self.compared as f64);
        ShadowReport {
            name: name.to_owned(),
            live_version: self.versions.as_ref().map(|(live, _)| live.clone()),
            shadow_version: self.versions.as_ref().map(|(_, shadow)| shadow.clone()),
            since: self.since.map(rfc3339),
            mails: self.mails,
            scored: 0,
            dropped: 0,
            failed: 0,
            agreement: share(self.agreed),
            same_likeliest_queue: share(self.same_likeliest),
            mean_confidence_difference: mean(self.difference),
            mean_confidence_distance: mean(self.distance),
            matrix: self.matrix.clone(),
        }
    }
}

/// How a shadow compares with the router in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShadowReport {
    /// The shadow's name.
    pub name: String,
    /// Version of the router in force that is compared; `None` before the first mail, as the next ones.
    pub live_version: Option<String>,
    /// Version of the shadow.
    pub shadow_version: Option<String>,
    /// Since when these two are compared, in RFC 3339.
    pub since: Option<String>,
    /// Mails that both of these decided on.
    pub mails: u64,
    /// Mails that any version of the shadow decided on, since the start.
    pub scored: u64,
    /// Mails that were not shown to the shadow, because there was too much to do; since the start.
    pub dropped: u64,
    /// Mails that the shadow failed on, or that came while it was not loaded; since the start.
    pub failed: u64,
    /// Share of mails with the same outcome: the same queue, or both to a person, or both to nobody.
    pub agreement: Option<f64>,
    /// Share of mails with the same likeliest queue, whatever the thresholds made of it.
    pub same_likeliest_queue: Option<f64>,
    /// Mean of the shadow's confidence less that of the router in force.
    pub mean_confidence_difference: Option<f64>,
    /// Mean of the same without its sign.
    pub mean_confidence_distance: Option<f64>,
    /// Outcome of the router in force, outcome of the shadow, mails.
    pub matrix: BTreeMap<String, BTreeMap<String, u64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(version: &str, label: &str, likeliest: &str, confidence: f64) -> Seen {
        let (version, label) = (version.to_owned(), label.to_owned());
        Seen { version, label, likeliest: Some(likeliest.to_owned()), confidence: Some(confidence) }
    }

    #[test]
    fn agreement_is_of_outcomes_and_likeliest_queues_apart() {
        let mut tally = Tally::default();
        tally.add(&seen("1", "refunds", "refunds", 0.9), &seen("2", "refunds", "refunds", 0.95));
        tally.add(&seen("1", "refunds", "refunds", 0.9), &seen("2", "needs_human", "refunds", 0.5));
        tally.add(&seen("1", "needs_human", "refunds", 0.5), &seen("2", "needs_human", "allergy", 0.6));
        tally.add(&seen("1", "refunds", "refunds", 0.8), &seen("2", "allergy", "allergy", 0.8));
        let report = tally.report("next");
        assert_eq!(report.mails, 4);
        assert_eq!((report.agreement, report.same_likeliest_queue), (Some(0.5), Some(0.5)));
        assert!((report.mean_confidence_difference.unwrap() - (0.05 - 0.4 + 0.1) / 4.0).abs() < 1e-12);
        assert!((report.mean_confidence_distance.unwrap() - (0.05 + 0.4 + 0.1) / 4.0).abs() < 1e-12);
        assert_eq!(report.matrix["refunds"]["needs_human"], 1);
        assert_eq!(report.matrix.values().flat_map(BTreeMap::values).sum::<u64>(), 4);
    }

    #[test]
    fn another_version_starts_anew() {
        let mut tally = Tally::default();
        tally.add(&seen("1", "refunds", "refunds", 0.9), &seen("2", "allergy", "allergy", 0.9));
        tally.add(&seen("1", "refunds", "refunds", 0.9), &seen("3", "refunds", "refunds", 0.9));
        let report = tally.report("next");
        assert_eq!((report.mails, report.agreement), (1, Some(1.0)));
        assert_eq!(report.shadow_version.as_deref(), Some("3"));
    }

    #[test]
    fn before_the_first_mail_there_are_no_rates() {
        let report = Tally::default().report("next");
        assert_eq!((report.mails, report.agreement, report.mean_confidence_difference), (0, None, None));
    }
}

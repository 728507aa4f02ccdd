//! From logits to a decision: a plain function of numbers and facts.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use super::decision::{Candidate, Outcome, QueueRef, Reason};
use crate::artifact::{Judgement, RouterInfo};
use crate::email::{CleanEmail, MailKind, Note};
use crate::queues::Queue;
use crate::tokenizer::EncodedEmail;

/// What to do with bounces and automatic replies. They are never dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutomaticMail {
    /// Answer `not_for_a_queue`.
    #[default]
    NotForAQueue,
    /// Route them like any mail; the reasons still say what they are.
    Route,
}

/// Settings of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// Least confidence for routing without a person, 0 to 1, whatever the queue; 1: nothing is routed. `None`: the
    /// router's own, solved when it was trained. Where it is below one of these, answers have no set of possible queues.
    pub threshold: Option<f64>,
    /// A mail of fewer words (subject and body) goes to a person. Words are those of Unicode (UAX #29), since not every
    /// script puts blanks between them.
    pub min_words: usize,
    /// How many candidates an answer lists.
    pub max_candidates: usize,
    /// Bounces and automatic replies.
    pub automatic_mail: AutomaticMail,
    /// Hand mail in a language that the router does not know to a person.
    pub check_language: bool,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            threshold: None,
            min_words: 2,
            max_candidates: 3,
            automatic_mail: AutomaticMail::default(),
            check_language: true,
        }
    }
}

/// What the policy decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub outcome: Outcome,
    pub queue: Option<QueueRef>,
    pub confidence: Option<f64>,
    pub reasons: Vec<Reason>,
    pub candidates: Vec<Candidate>,
    pub candidate_set: Option<Vec<String>>,
}

/// A mail that nothing can be read of is not shown to the network.
pub(super) fn readable(encoded: &EncodedEmail) -> bool {
    !encoded.tokens.is_empty()
}

/// Decides. `logits` is `None` where the network was not asked.
pub(super) fn decide(
    router: &RouterInfo,
    config: &PolicyConfig,
    email: &CleanEmail,
    encoded: &EncodedEmail,
    logits: Option<&[f32]>,
) -> Verdict {
    let judgement = logits.map(|logits| {
        router
            .calibration
            .judge(logits, config.threshold, |index| router.queues.get(index).map(|queue| queue.id.as_str()))
    });
    let ranked = judgement.as_ref().map(ranked).unwrap_or_default();
    let enabled_queue = |index: usize| router.queues.get(index).filter(|queue| queue.enabled);
    // Queues that are switched off go before anything is said of the set. Where only such remain there is no set: an
    // empty one would say that no queue is possible.
    let possible =
        |set: Vec<usize>| -> Vec<usize> { set.into_iter().filter(|&index| enabled_queue(index).is_some()).collect() };
    let mut reasons = reasons_of_mail(router, config, email, encoded);
    let set = judgement
        .as_ref()
        .filter(|judgement| set_is_promised(router, config, judgement, &reasons))
        .and_then(|judgement| router.calibration.candidate_set(judgement));
    let set = set.map(possible).filter(|set| !set.is_empty());
    if let Some(judgement) = &judgement {
        reasons.extend(reasons_of_numbers(judgement, set.as_deref()));
        if router.queues.get(judgement.best).is_some_and(|queue| !queue.enabled) {
            reasons.push(Reason::QueueDisabled);
        }
        if router.queues.get(judgement.best).is_some_and(|queue| queue.enabled && queue.suggest_only) {
            reasons.push(Reason::SuggestOnly);
        }
    }

    let automatic = matches!(email.kind, MailKind::AutoReply | MailKind::Bounce);
    let outcome = if automatic && config.automatic_mail == AutomaticMail::NotForAQueue {
        Outcome::NotForAQueue
    } else if judgement.is_none() || reasons.iter().any(|&reason| holds_back(reason)) {
        Outcome::NeedsHuman
    } else {
        Outcome::Route
    };
    let enabled = ranked.iter().filter_map(|&(index, confidence)| Some((enabled_queue(index)?, confidence)));
    let candidates: Vec<Candidate> = enabled
        .clone()
        .take(config.max_candidates)
        .map(|(queue, confidence)| Candidate { queue: queue.id.clone(), confidence: rounded(confidence) })
        .collect();
    let queue = enabled
        .map(|(queue, _)| QueueRef { id: queue.id.clone(), name: queue.name.clone() })
        .next()
        .filter(|_| outcome == Outcome::Route);
    let candidate_set = set
        .filter(|_| outcome == Outcome::NeedsHuman)
        .map(|set| set.into_iter().filter_map(enabled_queue).map(|queue| queue.id.clone()).collect());
    let confidence = judgement.as_ref().map(|judgement| rounded(judgement.confidence));
    Verdict { outcome, queue, confidence, reasons, candidates, candidate_set }
}

/// Whether what training solved the set on is mail like this one: mail that the numbers hand over, in a language that the
/// router knows, with no more of it let go than the router's own thresholds would. Of other mail nothing is promised.
fn set_is_promised(
    router: &RouterInfo,
    config: &PolicyConfig,
    judgement: &Judgement,
    reasons_of_mail: &[Reason],
) -> bool {
    let own = |queue: &Queue| router.calibration.threshold_of(Some(&queue.id));
    // Mail is only routed to these.
    let mut open = router.queues.iter().filter(|queue| queue.enabled && !queue.suggest_only);
    let laxer = config.threshold.is_some_and(|threshold| open.any(|queue| threshold < own(queue)));
    !judgement.routed_alone() && !laxer && !reasons_of_mail.contains(&Reason::UnsupportedLanguage)
}

/// Queues by falling confidence; ties keep the router's order.
fn ranked(judgement: &Judgement) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> = judgement.probabilities.iter().copied().enumerate().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

/// What the router's numbers say against routing alone, and whether more than one queue remains possible.
fn reasons_of_numbers(judgement: &Judgement, set: Option<&[usize]>) -> Vec<Reason> {
    let several = judgement.below_threshold && set.is_some_and(|set| set.len() > 1);
    let found = [
        (judgement.below_threshold, Reason::BelowThreshold),
        (judgement.out_of_scope, Reason::OutOfScope),
        (judgement.guarded_by.is_some(), Reason::SafetyQueue),
        (several, Reason::SeveralIntents),
    ];
    found.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect()
}

/// Reasons that keep a mail from being routed alone. The others inform.
fn holds_back(reason: Reason) -> bool {
    !matches!(reason, Reason::Truncated | Reason::AutoReply | Reason::Bounce | Reason::SeveralIntents)
}

fn reasons_of_mail(
    router: &RouterInfo,
    config: &PolicyConfig,
    email: &CleanEmail,
    encoded: &EncodedEmail,
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let has = |note| email.notes.contains(&note);
    if has(Note::Encrypted) || (has(Note::Unreadable) && email.body.is_blank()) {
        reasons.push(Reason::Unreadable);
    } else if email.body.is_blank() {
        reasons.push(Reason::EmptyBody);
    }
    let words = count_words(email.subject.text(), config.min_words) + count_words(email.body.text(), config.min_words);
    if words < config.min_words && !email.body.is_blank() {
        reasons.push(Reason::TooShort);
    }
    match email.kind {
        MailKind::AutoReply => reasons.push(Reason::AutoReply),
        MailKind::Bounce => reasons.push(Reason::Bounce),
        _ => {}
    }
    let foreign = email
        .language
        .is_some_and(|found| !router.languages.is_empty() && !router.languages.iter().any(|known| known == found.code));
    if config.check_language && foreign {
        reasons.push(Reason::UnsupportedLanguage);
    }
    if encoded.truncated() {
        reasons.push(Reason::Truncated);
    }
    reasons
}

/// Words with a letter in them, counted no further than the caller cares. By blanks a whole mail in Japanese or Thai would
/// be one word.
fn count_words(text: &str, enough: usize) -> usize {
    text.unicode_words().filter(|word| word.chars().any(char::is_alphabetic)).take(enough).count()
}

/// Six decimals are more than the calibration can promise, and keep answers short.
fn rounded(confidence: f64) -> f64 {
    (confidence * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests;

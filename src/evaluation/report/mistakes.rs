//! Single mails worth a look: sure and wrong, or with a label that the router does not believe.

use serde::Serialize;

use super::Answer;

/// A mail that went elsewhere than its label says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mistake {
    /// Id of the mail.
    pub id: String,
    /// Its subject; in the HTML page only.
    #[serde(skip)]
    pub subject: String,
    /// Id of the queue of its label.
    pub target: String,
    /// Id of the queue it was sent to.
    pub predicted: String,
    /// Probability of that queue.
    pub confidence: f64,
    /// Whether it would have gone there without a person.
    pub routed_alone: bool,
    /// `-ln` of the probability of its label: how little the router believes it.
    pub loss: f64,
}

/// Mistakes that are listed.
const WORST: usize = 20;
/// Suspected labels that are listed of each queue.
const SUSPECTS: usize = 5;

/// The surest wrong answers, the surest first.
pub(super) fn worst(answers: &[Answer<'_>], ids: &[&str]) -> Vec<Mistake> {
    let mut mistakes = wrong(answers, ids);
    mistakes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    mistakes.truncate(WORST);
    mistakes
}

/// The wrong answers with the highest loss of each queue, in the router's order.
pub(super) fn suspects(answers: &[Answer<'_>], ids: &[&str]) -> Vec<Mistake> {
    let mut mistakes = wrong(answers, ids);
    mistakes.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    ids.iter()
        .flat_map(|id| mistakes.iter().filter(move |mistake| mistake.target == *id).take(SUSPECTS))
        .cloned()
        .collect()
}

fn wrong(answers: &[Answer<'_>], ids: &[&str]) -> Vec<Mistake> {
    let mistake = |answer: &Answer<'_>| Mistake {
        id: answer.mail.id.clone(),
        subject: answer.mail.subject.clone(),
        target: ids[answer.mail.target].to_owned(),
        predicted: ids[answer.judgement.best].to_owned(),
        confidence: answer.judgement.confidence,
        routed_alone: answer.judgement.routed_alone(),
        loss: -answer.judgement.probabilities[answer.mail.target].max(f64::MIN_POSITIVE).ln(),
    };
    answers.iter().filter(|answer| !answer.right()).map(mistake).collect()
}

//! Evidence by taking parts out: sentence by sentence, then word by word in the strongest sentences.

use super::super::RoutingError;
use super::request::{EvidenceUnit, Target};
use super::rerun::Rerun;
use crate::explain::{Part, grouped, sentence_parts, word_parts};

/// Words are taken out one by one in so many sentences.
const STRONGEST: usize = 3;

/// A group of sentences is divided into so many.
const DIVISIONS: usize = 6;

/// Parts, and what the router says of the mail without each.
pub(super) struct Occluded {
    pub parts: Vec<Part>,
    /// For each part one logit per queue.
    pub logits: Vec<Vec<f32>>,
    /// How many sentences or words there were before they were put together.
    pub found: usize,
}

impl Occluded {
    /// What each part adds to a score; negative where the score is higher without it.
    pub(super) fn effects(&self, target: Target, full: &[f32]) -> Vec<f64> {
        let full = above_the_mean(target, full);
        self.logits.iter().map(|logits| full - above_the_mean(target, logits)).collect()
    }
}

/// A queue's logit above the mean of all queues, or its lead over another's. What is added to all logits alike decides nothing, but
/// a mail that loses a sentence loses some of that, too, whichever sentence it is.
fn above_the_mean(target: Target, logits: &[f32]) -> f64 {
    let mean = logits.iter().map(|&logit| f64::from(logit)).sum::<f64>() / logits.len().max(1) as f64;
    let shared = if target.against.is_none() && logits.len() > 1 { mean } else { 0.0 };
    target.of(logits) - shared
}

/// What was taken out of one mail.
#[derive(Default)]
pub(super) struct Occlusion {
    pub sentences: Option<Occluded>,
    pub words: Option<Occluded>,
}

/// Takes out what `unit` says. `first` decides which sentences are the strongest; `reserve` tokens are left for the check.
pub(super) async fn occlude(
    rerun: &mut Rerun<'_>,
    unit: EvidenceUnit,
    first: Target,
    limits: (usize, usize),
    reserve: usize,
) -> Result<Occlusion, RoutingError> {
    let (max_sentences, max_words) = limits;
    let mut occlusion = Occlusion::default();
    let left = |rerun: &Rerun<'_>| rerun.left().saturating_sub(reserve);
    if unit != EvidenceUnit::Word {
        let found = sentences(rerun);
        let allowance = if unit == EvidenceUnit::Auto { left(rerun) / 2 } else { left(rerun) };
        let mut taken_out = take_out(rerun, found.clone(), max_sentences, allowance).await?;
        let allowance = left(rerun) / 2;
        divide(rerun, &mut taken_out, &found, first, allowance).await?;
        occlusion.sentences = Some(taken_out);
    }
    if unit != EvidenceUnit::Sentence {
        let mail = &rerun.prepared.encoded;
        let found = match &occlusion.sentences {
            None => word_parts(mail, 0..mail.tokens.len()),
            Some(sentences) => strongest(sentences, first, &rerun.logits)
                .into_iter()
                .flat_map(|sentence| word_parts(mail, sentences.parts[sentence].tokens.clone()))
                .collect(),
        };
        let allowance = left(rerun);
        occlusion.words = Some(take_out(rerun, found, max_words, allowance).await?);
    }
    Ok(occlusion)
}

/// The sentences of the mail.
pub(super) fn sentences(rerun: &Rerun<'_>) -> Vec<Part> {
    let email = &rerun.prepared.email;
    sentence_parts(&rerun.prepared.encoded, email.subject.text(), email.body.text())
}

/// The parts from the one that moves the score most, up or down.
fn by_strength(parts: &Occluded, target: Target, full: &[f32]) -> Vec<usize> {
    let effects = parts.effects(target, full);
    let mut order: Vec<usize> = (0..effects.len()).collect();
    order.sort_by(|&a, &b| effects[b].abs().total_cmp(&effects[a].abs()));
    order
}

/// The sentences that move the score most, in the order of the mail. Groups of them come last: their words are too many.
fn strongest(sentences: &Occluded, target: Target, full: &[f32]) -> Vec<usize> {
    let mut order = by_strength(sentences, target, full);
    order.sort_by_key(|&part| sentences.parts[part].members > 1);
    order.truncate(STRONGEST);
    order.sort_unstable();
    order
}

/// Where sentences had to be put together, divides the strongest group again and again until the strongest part is one sentence, as
/// far as `allowance` tokens go: in a mail of hundreds of sentences somebody wants to know which one it was.
async fn divide(
    rerun: &mut Rerun<'_>,
    taken_out: &mut Occluded,
    sentences: &[Part],
    target: Target,
    allowance: usize,
) -> Result<(), RoutingError> {
    let spent = rerun.tokens;
    while let Some(&strongest) = by_strength(taken_out, target, &rerun.logits).first() {
        let group = &taken_out.parts[strongest];
        if group.members == 1 {
            break;
        }
        let inside = |part: &&Part| group.tokens.start <= part.tokens.start && part.tokens.end <= group.tokens.end;
        let finer = grouped(sentences.iter().filter(inside).cloned().collect(), DIVISIONS);
        let cost: usize = finer.iter().map(|part| rerun.cost_without(&part.tokens)).sum();
        if finer.len() < 2 || rerun.tokens - spent + cost > allowance {
            break;
        }
        let logits = rerun.without_each(&finer).await?;
        taken_out.parts.splice(strongest..=strongest, finer);
        taken_out.logits.splice(strongest..=strongest, logits);
    }
    Ok(())
}

async fn take_out(
    rerun: &mut Rerun<'_>,
    found: Vec<Part>,
    most: usize,
    allowance: usize,
) -> Result<Occluded, RoutingError> {
    let n_found = found.len();
    let parts = rerun.fitting(&found, most, allowance);
    let logits = rerun.without_each(&parts).await?;
    Ok(Occluded { parts, logits, found: n_found })
}

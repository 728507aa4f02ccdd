//! How faithful the methods are to the router, on one mail: ERASER's comprehensiveness and sufficiency (DeYoung et al. 2020).

use std::ops::Range;
use std::sync::Arc;

use super::super::RoutingError;
use super::super::policy;
use super::super::service::{Mail, RoutingService};
use super::attribution::attribute;
use super::check::{all_words, words_in};
use super::gradients::Gradients;
use super::occlusion::{occlude, sentences};
use super::request::{EvidenceUnit, Method, Perturb, Target};
use super::rerun::Rerun;
use super::{per_part, predicted, word_scores};
use crate::explain::{Part, top_share};
use crate::inference::Caller;
use crate::random::SplitMix64;
use crate::tokenizer::Field;

/// Shares of the words that are taken out, or left alone: those of ERASER.
pub const SHARES: [f64; 5] = [0.01, 0.05, 0.1, 0.2, 0.5];

/// Random orders that the methods are compared with.
const RANDOM_ORDERS: usize = 3;

/// How faithful one method is.
#[derive(Debug, Clone, PartialEq)]
pub struct Faithfulness {
    /// The method; `None` is a random order of the words, the mean of three.
    pub method: Option<Method>,
    /// How far the probability of the predicted queue falls without the highest words, the mean over [`SHARES`]. High is good.
    pub comprehensiveness: f64,
    /// How far it falls with them alone. Low is good.
    pub sufficiency: f64,
    /// The sentence of the body that weighs most (a subject line is none): where it stands as posted, in bytes.
    pub top_sentence: Option<(Field, Range<usize>)>,
}

/// How faithful the methods are on one mail, and the queue that was predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct MailFaithfulness {
    /// Id of the likeliest queue.
    pub queue: String,
    /// One row for each method, and one for chance.
    pub rows: Vec<Faithfulness>,
}

/// Measures the methods on one mail.
pub(in crate::routing) async fn faithfulness(
    service: &Arc<RoutingService>,
    mail: Mail,
    methods: &[Method],
    perturb: Perturb,
    seed: u64,
) -> Result<MailFaithfulness, RoutingError> {
    let caller = Caller::default();
    let prepared = service.prepare(mail, caller.client).await?;
    if !policy::readable(&prepared.encoded) {
        return Err(RoutingError::NothingToRead);
    }
    let mut rerun = Rerun::start(service, &prepared, perturb, caller).await?;
    let target = Target { class: predicted(&rerun.logits), against: None };
    let words = all_words(rerun.prepared);
    let sentences = sentences(&rerun);

    let mut scored: Vec<(Option<Method>, Vec<f64>, Vec<f64>)> = Vec::new();
    let by_sentence = |of_words: &[f64]| -> Vec<f64> {
        sentences.iter().map(|sentence| of_words[words_in(sentence, &words)].iter().sum()).collect()
    };
    if methods.contains(&Method::Occlusion) {
        let limits = (sentences.len().max(1), service.config().explain.max_words);
        let occlusion = occlude(&mut rerun, EvidenceUnit::Auto, target, limits, 0).await?;
        let of_words = word_scores(&occlusion, &words, target, &rerun.logits);
        let of_sentences = match &occlusion.sentences {
            Some(found) if found.parts.len() == sentences.len() => found.effects(target, &rerun.logits),
            _ => by_sentence(&of_words),
        };
        scored.push((Some(Method::Occlusion), of_words, of_sentences));
    }
    let budget = 4 * service.config().explain.max_tokens;
    let mut gradients = Gradients::open(service, &prepared, rerun.added.clone(), Caller::default(), budget).await?;
    for found in attribute(&mut gradients, methods, target, None, 0).await? {
        let of_words = per_part(&found.tokens, &words);
        let of_sentences = by_sentence(&of_words);
        scored.push((Some(found.method), of_words, of_sentences));
    }
    for run in 0..RANDOM_ORDERS {
        let mut random = SplitMix64::stream(seed, run as u64);
        scored.push((None, words.iter().map(|_| random.uniform()).collect(), Vec::new()));
    }

    let mut rows: Vec<Faithfulness> = Vec::new();
    for (method, of_words, of_sentences) in scored {
        let (comprehensiveness, sufficiency) = measure(&mut rerun, &words, &of_words, target.class).await?;
        let top = (0..of_sentences.len())
            .filter(|&sentence| sentences[sentence].field == Field::Body)
            .max_by(|&a, &b| of_sentences[a].total_cmp(&of_sentences[b]));
        let top_sentence = top.map(|top| {
            let Part { field, range, .. } = &sentences[top];
            let text = if *field == Field::Subject { &prepared.email.subject } else { &prepared.email.body };
            (*field, text.posted_range(range.clone()))
        });
        match rows.last_mut() {
            // The mean of the random orders.
            Some(last) if method.is_none() && last.method.is_none() => {
                last.comprehensiveness += comprehensiveness / RANDOM_ORDERS as f64;
                last.sufficiency += sufficiency / RANDOM_ORDERS as f64;
            }
            _ => {
                let part = if method.is_none() { RANDOM_ORDERS as f64 } else { 1.0 };
                let (comprehensiveness, sufficiency) = (comprehensiveness / part, sufficiency / part);
                rows.push(Faithfulness { method, comprehensiveness, sufficiency, top_sentence });
            }
        }
    }
    let queue = service.router().queues.get(target.class).map_or_else(String::new, |queue| queue.id.clone());
    Ok(MailFaithfulness { queue, rows })
}

/// Means over the shares of what the probability loses without the highest words, and with them alone.
async fn measure(
    rerun: &mut Rerun<'_>,
    words: &[Part],
    scores: &[f64],
    class: usize,
) -> Result<(f64, f64), RoutingError> {
    let mut removals = Vec::with_capacity(2 * SHARES.len());
    for share in SHARES {
        let without = rerun.removed(top_share(scores, share).into_iter().map(|word| &words[word]));
        let alone = without.iter().map(|gone| !gone).collect();
        removals.extend([without, alone]);
    }
    let full = rerun.probabilities(&rerun.logits)[class];
    let left = rerun.without(&removals).await?;
    let lost: Vec<f64> = left.iter().map(|logits| full - rerun.probabilities(logits)[class]).collect();
    let mean = |first: usize| lost.iter().skip(first).step_by(2).sum::<f64>() / SHARES.len() as f64;
    Ok((mean(0), mean(1)))
}

//! Two mails side by side: what the router says of each, which words they share, and whether the order of the words matters.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::super::RoutingError;
use super::super::policy;
use super::super::service::{Mail, Prepared, RoutingService};
use super::super::view::{MailView, rounded};
use super::check::all_words;
use super::predicted;
use super::request::Perturb;
use super::rerun::Rerun;
use crate::explain::{Part, aligned, total_variation};
use crate::inference::Caller;
use crate::metrics::softmax;
use crate::random::SplitMix64;
use crate::tokenizer::{EncodedEmail, OffsetUnit, Token};

/// Shuffles of the words of a mail.
const SHUFFLES: usize = 10;

/// The order of the words matters where a shuffle moves the probability by as much, or changes the queue.
const MATTERS: f64 = 0.1;

/// How two mails are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompareRequest {
    /// Whether the words of both are shuffled, to see what their order does.
    pub shuffle: bool,
    /// Draws the shuffles.
    pub seed: u64,
    /// What offsets count.
    pub offsets: OffsetUnit,
}

impl Default for CompareRequest {
    fn default() -> Self {
        Self { shuffle: true, seed: 0, offsets: OffsetUnit::default() }
    }
}

/// Compares two mails.
pub(in crate::routing) async fn compare(
    service: &Arc<RoutingService>,
    mails: [Mail; 2],
    request: CompareRequest,
    caller: Caller,
) -> Result<Value, RoutingError> {
    let started = Instant::now();
    let _turn = service.turn_to_explain()?;
    let [a, b] = mails;
    let (a, b) = (service.prepare(a, caller.client).await?, service.prepare(b, caller.client).await?);
    if !policy::readable(&a.encoded) || !policy::readable(&b.encoded) {
        return Err(RoutingError::NothingToRead);
    }
    let mut sides = [
        Side { rerun: Rerun::start(service, &a, Perturb::Delete, caller).await?, order: Value::Null },
        Side { rerun: Rerun::start(service, &b, Perturb::Delete, caller).await?, order: Value::Null },
    ];
    let mut too_long = false;
    for side in &mut sides {
        // Shuffles run every window anew.
        let affordable = side.rerun.left() >= SHUFFLES * side.rerun.prepared.windowed.cost();
        too_long |= request.shuffle && !affordable;
        if request.shuffle && affordable {
            side.order = order(service, &mut side.rerun, request.seed).await?;
        }
    }
    let [done_a, done_b] = sides.map(Side::done);
    let compared = Compared { service: Arc::clone(service), a: (a, done_a), b: (b, done_b), too_long, started };
    // Thousands of words: not on a thread that answers probes.
    let written = tokio::task::spawn_blocking(move || compared.reply(request.offsets));
    written.await.map_err(|_| RoutingError::Panicked)
}

/// One of the two mails while it is run.
struct Side<'a> {
    rerun: Rerun<'a>,
    order: Value,
}

impl Side<'_> {
    fn done(self) -> Done {
        let Rerun { logits, forwards, tokens, .. } = self.rerun;
        Done { logits, forwards, tokens, order: self.order }
    }
}

/// What running one of the mails has given.
struct Done {
    logits: Vec<f32>,
    forwards: usize,
    tokens: usize,
    order: Value,
}

/// All that the answer is made of.
struct Compared {
    service: Arc<RoutingService>,
    a: (Prepared, Done),
    b: (Prepared, Done),
    too_long: bool,
    started: Instant,
}

impl Compared {
    fn reply(&self, offsets: OffsetUnit) -> Value {
        let ((mail_a, a), (mail_b, b)) = (&self.a, &self.b);
        let router = self.service.router();
        let (view_a, view_b) = (MailView::new(router, mail_a, offsets), MailView::new(router, mail_b, offsets));
        let (words_a, words_b) = (all_words(mail_a), all_words(mail_b));
        let pairs = aligned(&texts(mail_a, &words_a), &texts(mail_b, &words_b));
        let alone = |count: usize, paired: Vec<usize>| -> Vec<usize> {
            (0..count).filter(|word| paired.binary_search(word).is_err()).collect()
        };
        let mut notes = Vec::new();
        if mail_a.counts_words {
            notes.push("word_counts_decide_too");
        }
        if self.too_long {
            notes.push("too_long_to_shuffle");
        }
        json!({
            "schema": "compare/1",
            "model": view_a.model(),
            "a": a.reply(&view_a, &words_a),
            "b": b.reply(&view_b, &words_b),
            "pairs": pairs,
            "only_a": alone(words_a.len(), pairs.iter().map(|pair| pair.0).collect()),
            "only_b": alone(words_b.len(), pairs.iter().map(|pair| pair.1).collect()),
            "differences": differences(&a.logits, &b.logits, &view_a),
            "cost": {
                "forwards": a.forwards + b.forwards, "tokens": a.tokens + b.tokens,
                "ms": u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            },
            "notes": notes,
        })
    }
}

impl Done {
    fn reply(&self, view: &MailView<'_>, words: &[Part]) -> Value {
        let units: Vec<Value> = words
            .iter()
            .enumerate()
            .map(|(index, word)| {
                let place = view.place(word.field, word.range.clone());
                json!({"i": index, "text": place.text, "field": word.field, "start": place.start, "end": place.end})
            })
            .collect();
        json!({
            "prediction": view.prediction(&self.logits), "text": view.text(), "units": units, "order": self.order,
        })
    }
}

/// The clean text of each word.
fn texts<'p>(prepared: &'p Prepared, words: &[Part]) -> Vec<&'p str> {
    let email = &prepared.email;
    let text = |word: &Part| {
        let field = if word.field == crate::tokenizer::Field::Subject { &email.subject } else { &email.body };
        field.text().get(word.range.clone()).unwrap_or_default()
    };
    words.iter().map(text).collect()
}

fn differences(a: &[f32], b: &[f32], view: &MailView<'_>) -> Value {
    let temperature = view.router.calibration.temperature;
    let (p_a, p_b) = (softmax(a, temperature), softmax(b, temperature));
    let mut order: Vec<usize> = (0..p_a.len()).collect();
    order.sort_by(|&x, &y| (p_b[y] - p_a[y]).abs().total_cmp(&(p_b[x] - p_a[x]).abs()));
    let score = |queue: usize| {
        let (logit_a, logit_b) = (f64::from(a[queue]), f64::from(b[queue]));
        json!({
            "queue": view.queue(queue),
            "logit_a": rounded(logit_a, 6), "logit_b": rounded(logit_b, 6), "logit_change": rounded(logit_b - logit_a, 6),
            "p_a": rounded(p_a[queue], 6), "p_b": rounded(p_b[queue], 6), "p_change": rounded(p_b[queue] - p_a[queue], 6),
        })
    };
    json!({
        "queue_changed": predicted(a) != predicted(b),
        "total_variation": rounded(total_variation(&p_a, &p_b), 6),
        "scores": order.into_iter().map(score).collect::<Vec<_>>(),
    })
}

/// What becomes of the decision when the words of the mail are shuffled.
async fn order(service: &RoutingService, rerun: &mut Rerun<'_>, seed: u64) -> Result<Value, RoutingError> {
    let class = predicted(&rerun.logits);
    let words = all_words(rerun.prepared);
    let shuffled: Vec<EncodedEmail> =
        (0..SHUFFLES).map(|run| shuffled(&rerun.prepared.encoded, &words, seed, run as u64)).collect();
    let logits = rerun.reordered(&shuffled).await?;
    let p = rerun.probabilities(&rerun.logits)[class];
    let after: Vec<f64> = logits.iter().map(|logits| rerun.probabilities(logits)[class]).collect();
    let largest = after.iter().map(|after| (after - p).abs()).fold(0.0, f64::max);
    let mean = after.iter().map(|after| (after - p).abs()).sum::<f64>() / after.len().max(1) as f64;
    let changed = logits.iter().filter(|logits| predicted(logits) != class).count();
    Ok(json!({
        "class": service.router().queues.get(class).map(|queue| queue.id.as_str()), "p": rounded(p, 6),
        "p_shuffled": after.iter().map(|&after| rounded(after, 6)).collect::<Vec<_>>(),
        "largest_change": rounded(largest, 6), "mean_change": rounded(mean, 6), "queue_changes": changed,
        "shuffles": SHUFFLES, "seed": seed, "threshold": MATTERS, "matters": largest >= MATTERS || changed > 0,
    }))
}

/// The mail with its words in another order; the pieces of a word stay together. Subject and body keep their numbers of
/// words: the reach of a negation ends between them, so a word counts as one of the field that it has come to stand in.
fn shuffled(mail: &EncodedEmail, words: &[Part], seed: u64, run: u64) -> EncodedEmail {
    let mut order: Vec<&Part> = words.iter().collect();
    SplitMix64::stream(seed, run).shuffle(&mut order);
    let mut tokens = Vec::with_capacity(mail.tokens.len());
    for (word, place) in order.into_iter().zip(words) {
        let pieces = mail.tokens[word.tokens.clone()].iter();
        tokens.extend(pieces.map(|piece| Token { field: place.field, ..piece.clone() }));
    }
    EncodedEmail { tokens, tokens_total: mail.tokens_total }
}

//! Why a mail is routed so: evidence for and against queues, each piece measured, and a verdict on the evidence.
//!
//! [`occlusion`] decides the mail again without parts of it, both legs of the router. [`attribution`] asks the encoder from inside, by
//! gradients and attention; what the words add is not its matter. [`check`] tells of each whether what it found is more than chance
//! would find.

mod attribution;
mod check;
mod compare;
mod faithful;
mod gradients;
mod heads;
mod occlusion;
mod reply;
mod request;
mod rerun;

pub use compare::CompareRequest;
pub(super) use compare::compare;
pub(super) use faithful::faithfulness;
pub use faithful::{Faithfulness, MailFaithfulness, SHARES};
pub(super) use gradients::{Gradients, Wanted};
pub use heads::HeadsRequest;
pub(super) use heads::heads;
pub use reply::Explanation;
pub(super) use request::Target;
pub use request::{Against, Classes, EvidenceUnit, ExplainRequest, Method, Perturb};

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::attribution::{Attribution, attribute, check_cost, least_passes};
use self::check::{Predicted, Trial, all_words, words_in};
use self::occlusion::{Occlusion, occlude};
use self::reply::Findings;
use self::rerun::Rerun;
use super::RoutingError;
use super::policy;
use super::service::{Mail, RoutingService};
use super::view::{MailView, rounded};
use crate::explain::{Part, kendall_tau_b, top10_overlap};
use crate::inference::Caller;

/// Bounds of explanations. They share the model's thread with the mail that is routed and never go before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExplainConfig {
    /// Explanations worked on at a time; one more is refused.
    pub max_running: usize,
    /// Tokens that an explanation runs at a time; mail that arrives meanwhile waits no longer than for these.
    pub max_batch_tokens: usize,
    /// Tokens that one explanation may run in all, and as many again for gradients. Long mail is explained in coarser parts for it.
    pub max_tokens: usize,
    /// Sentences taken out one by one; where a mail has more, neighbours go together.
    pub max_sentences: usize,
    /// Words taken out one by one; where there are more, neighbours go together.
    pub max_words: usize,
    /// Weights of a map in a binary form (npy, safetensors, png).
    pub max_binary_cells: usize,
}

impl Default for ExplainConfig {
    fn default() -> Self {
        Self {
            max_running: 2,
            max_batch_tokens: 1024,
            max_tokens: 65_536,
            max_sentences: 40,
            max_words: 60,
            max_binary_cells: 20_000_000,
        }
    }
}

/// Explains one mail.
pub(super) async fn explain(
    service: &Arc<RoutingService>,
    mail: Mail,
    request: &ExplainRequest,
    caller: Caller,
) -> Result<Explanation, RoutingError> {
    let started = Instant::now();
    let _turn = service.turn_to_explain()?;
    request.check_names(service.router())?;
    let prepared = service.prepare(mail, caller.client).await?;
    if !policy::readable(&prepared.encoded) {
        return Err(RoutingError::NothingToRead);
    }
    let budget = service.config().explain.max_tokens;
    // All scores share one budget. How many there are at the least is known before anything runs, how many exactly once
    // the router has said which queue is likeliest.
    let passes = least_passes(&request.methods, request.ig_steps, prepared.windowed.windows.len());
    let fewest = request.fewest_targets(service.router());
    check_cost(&prepared.windowed, fewest * passes, budget)?;
    let mut rerun = Rerun::start(service, &prepared, request.perturb, caller).await?;
    let targets = request.targets(service.router(), &rerun.logits)?;
    let Some(&first) = targets.first() else { return Err(RoutingError::NothingToRead) };
    // The check is about the decision, whatever queues were asked about.
    let decided = Target { class: predicted(&rerun.logits), against: None };
    let mut wanted = targets.clone();
    if request.check && !wanted.contains(&decided) {
        wanted.push(decided);
    }
    check_cost(&prepared.windowed, wanted.len() * passes, budget)?;
    let empty = rerun.without_text().await?;

    let occlusion = if request.methods.contains(&Method::Occlusion) {
        let config = &service.config().explain;
        let reserve = if request.check { check::cost(&rerun) } else { 0 };
        let limits = (config.max_sentences, config.max_words);
        Some(occlude(&mut rerun, request.unit, first, limits, reserve).await?)
    } else {
        None
    };
    let (mut attributions, mut asked) = (Vec::new(), (0, 0));
    if request.methods.iter().any(|&method| method != Method::Occlusion) {
        let mut gradients = Gradients::open(service, &prepared, rerun.added.clone(), caller, budget).await?;
        for (done, &target) in wanted.iter().enumerate() {
            // What one score could spend on more steps is what the next ones need.
            let reserved = (wanted.len() - done - 1) * passes;
            let found = attribute(&mut gradients, &request.methods, target, request.ig_steps, reserved).await?;
            attributions.extend(found);
        }
        asked = (gradients.forwards, gradients.tokens);
    }

    let view = MailView::new(service.router(), &prepared, request.offsets);
    let words = all_words(rerun.prepared);
    let found = Found { occlusion: occlusion.as_ref(), attributions: &attributions, words: &words };
    let agreed = agreements(&found.scores(&request.methods, first, &rerun.logits), first, &view);
    let mut checks = Vec::new();
    if request.check {
        let predicted = Predicted { class: decided.class, empty: &empty, seed: request.seed };
        let scores = found.scores(&request.methods, decided, &rerun.logits);
        let trial = Trial::prepare(&mut rerun, occlusion.as_ref(), &words, predicted).await?;
        for (method, of_words) in &scores {
            let sentences = occlusion.as_ref().and_then(|found| found.sentences.as_ref());
            let of_units = match sentences {
                Some(sentences) if trial.by_sentence() && *method == Method::Occlusion => {
                    sentences.effects(decided, &rerun.logits)
                }
                _ => trial.unit_scores(&words, of_words),
            };
            let mut checked = trial.check(&mut rerun, view.queue(decided.class), *method, &of_units).await?;
            checked["agreement_with_occlusion"] = match scores.iter().find(|(other, _)| *other == Method::Occlusion) {
                Some((_, occluded)) if *method != Method::Occlusion => agreement(of_words, occluded),
                _ => Value::Null,
            };
            checks.push(checked);
        }
    }
    let findings = Findings {
        request,
        targets: &targets,
        occlusion: occlusion.as_ref(),
        attributions: &attributions,
        empty: &empty,
        words: &words,
        agreement: agreed,
        checks,
        asked,
    };
    Ok(findings.reply(&view, &rerun, started.elapsed()))
}

fn predicted(logits: &[f32]) -> usize {
    (0..logits.len()).reduce(|best, other| if logits[other] > logits[best] { other } else { best }).unwrap_or(0)
}

/// What was found out, before it is told.
struct Found<'a> {
    occlusion: Option<&'a Occlusion>,
    attributions: &'a [Attribution],
    words: &'a [Part],
}

impl Found<'_> {
    /// What each method says of every word, for a score that all were asked about. `full` are the logits of the mail.
    fn scores(&self, methods: &[Method], target: Target, full: &[f32]) -> Vec<(Method, Vec<f64>)> {
        let of_words = |method: Method| match (method, self.occlusion) {
            (Method::Occlusion, Some(occlusion)) => Some(word_scores(occlusion, self.words, target, full)),
            _ => {
                let found = self.attributions.iter().find(|found| found.method == method && found.target == target)?;
                Some(per_part(&found.tokens, self.words))
            }
        };
        methods.iter().filter_map(|&method| Some((method, of_words(method)?))).collect()
    }
}

/// What each word adds to a score: its own effect where it was taken out, otherwise its share of its sentence's.
fn word_scores(occlusion: &Occlusion, words: &[Part], target: Target, full: &[f32]) -> Vec<f64> {
    let mut scores = vec![0.0; words.len()];
    for occluded in [&occlusion.sentences, &occlusion.words].into_iter().flatten() {
        for (part, effect) in occluded.parts.iter().zip(occluded.effects(target, full)) {
            let inside = words_in(part, words);
            let share = effect / inside.len().max(1) as f64;
            scores[inside].fill(share);
        }
    }
    scores
}

/// Sums over the tokens of each part.
fn per_part(tokens: &[f64], parts: &[Part]) -> Vec<f64> {
    parts.iter().map(|part| tokens[part.tokens.clone()].iter().sum()).collect()
}

fn agreement(a: &[f64], b: &[f64]) -> Value {
    json!({
        "kendall_tau_b": kendall_tau_b(a, b).map(|tau| rounded(tau, 4)),
        "top10_overlap": rounded(top10_overlap(a, b), 4),
    })
}

/// How far any two methods agree on the words, for one score.
fn agreements(scores: &[(Method, Vec<f64>)], target: Target, view: &MailView<'_>) -> Vec<Value> {
    let mut pairs = Vec::new();
    for (place, (a, scores_a)) in scores.iter().enumerate() {
        for (b, scores_b) in &scores[place + 1..] {
            let mut pair = json!({
                "a": a, "b": b, "class": view.queue(target.class),
                "against": target.against.map(|other| view.queue(other)),
            });
            let found = agreement(scores_a, scores_b);
            pair["kendall_tau_b"] = found["kendall_tau_b"].clone();
            pair["top10_overlap"] = found["top10_overlap"].clone();
            pairs.push(pair);
        }
    }
    pairs
}

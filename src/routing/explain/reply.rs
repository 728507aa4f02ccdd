//! The answer to a request for an explanation, in the shape `explain/1`.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::view::{MailView, rounded};
use super::attribution::Attribution;
use super::occlusion::{Occluded, Occlusion, sentences};
use super::request::{EvidenceUnit, ExplainRequest, Method, Target};
use super::rerun::Rerun;
use crate::explain::Part;

/// Spans of the short form.
const BRIEF_SPANS: usize = 5;

/// An explanation.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation(Value);

impl Explanation {
    /// The whole answer.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// The answer itself.
    #[must_use]
    pub fn into_json(self) -> Value {
        self.0
    }

    /// The few parts of the mail that speak most for the queue, strongest first, and the verdict: for answers that are about the
    /// decision. Sentences, or words where the mail has one or two sentences.
    #[must_use]
    pub fn brief(&self) -> Value {
        let evidence = |unit: &str| {
            let all = self.0["evidence"].as_array().map_or(&[][..], Vec::as_slice);
            all.iter().find(|evidence| evidence["unit"] == unit)
        };
        let count = |evidence: &Value| evidence["items"].as_array().map_or(0, Vec::len);
        let chosen = evidence("sentence").filter(|sentences| count(sentences) > 2).or_else(|| evidence("word"));
        let effect = |item: &Value| item["logit"].as_f64().unwrap_or(0.0);
        let mut spans: Vec<Value> =
            chosen.and_then(|evidence| evidence["items"].as_array()).cloned().unwrap_or_default();
        spans.retain(|item| effect(item) > 0.0);
        spans.sort_by(|a, b| effect(b).total_cmp(&effect(a)));
        spans.truncate(BRIEF_SPANS);
        json!({
            "available": true, "class": chosen.map(|evidence| evidence["class"].clone()),
            "unit": chosen.map(|evidence| evidence["unit"].clone()), "offset_unit": self.0["text"]["offset_unit"],
            "spans": spans, "check": self.0["check"], "cost": self.0["cost"],
        })
    }
}

/// What was found out about one mail.
pub(super) struct Findings<'a> {
    pub request: &'a ExplainRequest,
    pub targets: &'a [Target],
    pub occlusion: Option<&'a Occlusion>,
    pub attributions: &'a [Attribution],
    /// Logits of the mail without any text.
    pub empty: &'a [f32],
    /// All words of the mail.
    pub words: &'a [Part],
    pub agreement: Vec<Value>,
    pub checks: Vec<Value>,
    /// Passes of the readable network, and their tokens.
    pub asked: (usize, usize),
}

impl Findings<'_> {
    pub(super) fn reply(self, view: &MailView<'_>, rerun: &Rerun<'_>, took: Duration) -> Explanation {
        let evidence = self.evidence(view, rerun);
        let notes = self.notes(view);
        let check = self.checks.first().cloned();
        Explanation(json!({
            "schema": "explain/1",
            "model": view.model(),
            "prediction": view.prediction(&rerun.logits),
            "text": view.text(),
            "evidence": evidence,
            "check": check,
            "checks": self.checks,
            "agreement": self.agreement,
            "cost": {
                "forwards": rerun.forwards + self.asked.0, "tokens": rerun.tokens + self.asked.1,
                "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            },
            "notes": notes,
        }))
    }

    fn evidence(&self, view: &MailView<'_>, rerun: &Rerun<'_>) -> Vec<Value> {
        let mut evidence = Vec::new();
        let sentences = sentences(rerun);
        let wants = |unit| self.request.unit == EvidenceUnit::Auto || self.request.unit == unit;
        for &target in self.targets {
            for &method in &self.request.methods {
                if let (Method::Occlusion, Some(occlusion)) = (method, self.occlusion) {
                    for (unit, occluded) in [("sentence", &occlusion.sentences), ("word", &occlusion.words)] {
                        if let Some(occluded) = occluded {
                            evidence.push(self.occluded(view, rerun, target, unit, occluded));
                        }
                    }
                }
                let found = self.attributions.iter().find(|found| found.method == method && found.target == target);
                if let Some(found) = found {
                    if wants(EvidenceUnit::Sentence) {
                        evidence.push(attributed(view, found, "sentence", &sentences));
                    }
                    if wants(EvidenceUnit::Word) {
                        evidence.push(attributed(view, found, "word", self.words));
                    }
                }
            }
        }
        evidence
    }

    fn occluded(
        &self,
        view: &MailView<'_>,
        rerun: &Rerun<'_>,
        target: Target,
        unit: &str,
        occluded: &Occluded,
    ) -> Value {
        let before = rerun.probabilities(&rerun.logits)[target.class];
        let effects = occluded.effects(target, &rerun.logits);
        let items: Vec<Value> = occluded
            .parts
            .iter()
            .zip(&occluded.logits)
            .zip(effects)
            .map(|((part, logits), effect)| {
                let after = rerun.probabilities(logits)[target.class];
                let mut item = place(view, part);
                item["logit"] = rounded(effect, 6).into();
                item["p_before"] = rounded(before, 6).into();
                item["p_after"] = rounded(after, 6).into();
                item
            })
            .collect();
        json!({
            "method": Method::Occlusion, "class": view.queue(target.class),
            "against": target.against.map(|other| view.queue(other)),
            "perturb": self.request.perturb, "unit": unit, "signed": true, "leg": "all",
            "score_full": rounded(target.of(&rerun.logits), 6),
            "score_baseline": rounded(target.of(self.empty), 6),
            "approximation_error": null,
            "units_found": occluded.found, "units": items.len(), "items": items,
        })
    }

    fn notes(&self, view: &MailView<'_>) -> Vec<&'static str> {
        let grouped = |unit: fn(&Occlusion) -> &Option<Occluded>| {
            let found = self.occlusion.and_then(|occlusion| unit(occlusion).as_ref());
            found.is_some_and(|found| found.parts.len() < found.found)
        };
        let inside = !self.attributions.is_empty();
        let unfinished = |found: &Attribution| found.completeness.is_some_and(|complete| !complete.converged);
        let neutral = |found: &Attribution| matches!(found.method, Method::Attention | Method::Rollout);
        let noted = [
            (self.attributions.iter().any(neutral), "attention_is_a_clue"),
            (view.prepared.counts_words, "word_counts_decide_too"),
            (inside && view.prepared.counts_words, "gradients_see_the_encoder_only"),
            (self.attributions.iter().any(unfinished), "ig_not_converged"),
            (view.prepared.windowed.windows.len() > 1, "windows_keep_their_places"),
            (grouped(|occlusion| &occlusion.sentences), "sentences_grouped"),
            (grouped(|occlusion| &occlusion.words), "words_grouped"),
            (view.prepared.encoded.truncated(), "truncated"),
        ];
        noted.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note).collect()
    }
}

/// What a method that looks inside the encoder says of parts of the mail: `logit` where its numbers are shares of the score,
/// `weight` where they have no sign.
fn attributed(view: &MailView<'_>, found: &Attribution, unit: &str, parts: &[Part]) -> Value {
    let key = if found.method.signed() { "logit" } else { "weight" };
    let items: Vec<Value> = parts
        .iter()
        .map(|part| {
            let mut item = place(view, part);
            item[key] = rounded(found.tokens[part.tokens.clone()].iter().sum(), 6).into();
            item
        })
        .collect();
    let complete = found.completeness;
    json!({
        "method": found.method, "class": view.queue(found.target.class),
        "against": found.target.against.map(|other| view.queue(other)),
        "perturb": null, "unit": unit, "signed": found.method.signed(), "leg": "encoder",
        "score_full": rounded(found.score_full, 6),
        "score_baseline": found.score_baseline.map(|score| rounded(score, 6)),
        "approximation_error": complete.map(|complete| rounded(complete.error, 6)),
        "converged": complete.map(|complete| complete.converged), "steps": complete.map(|complete| complete.steps),
        "units_found": items.len(), "units": items.len(), "items": items,
    })
}

/// Where a part stands in the mail as posted.
fn place(view: &MailView<'_>, part: &Part) -> Value {
    let place = view.place(part.field, part.range.clone());
    let mut item = json!({"field": part.field, "start": place.start, "end": place.end, "text": place.text});
    if part.members > 1 {
        item["members"] = part.members.into();
    }
    item
}

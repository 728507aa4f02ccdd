//! What the answers about one mail have in common: the model, the prediction, where texts stand in the mail as posted.

use std::ops::Range;

use serde_json::{Value, json};

use super::decision::ModelRef;
use super::service::Prepared;
use crate::artifact::RouterInfo;
use crate::metrics::softmax;
use crate::tokenizer::{Field, OffsetIndex, OffsetUnit};

/// One mail with its offsets in the caller's unit.
pub(super) struct MailView<'a> {
    pub router: &'a RouterInfo,
    pub prepared: &'a Prepared,
    unit: OffsetUnit,
    subject: OffsetIndex,
    body: OffsetIndex,
}

/// A stretch of a mail as posted.
pub(super) struct Place<'a> {
    pub text: Option<&'a str>,
    pub start: usize,
    pub end: usize,
}

impl<'a> MailView<'a> {
    pub(super) fn new(router: &'a RouterInfo, prepared: &'a Prepared, unit: OffsetUnit) -> Self {
        Self {
            router,
            prepared,
            unit,
            subject: OffsetIndex::new(prepared.email.subject.posted()),
            body: OffsetIndex::new(prepared.email.body.posted()),
        }
    }

    pub(super) fn model(&self) -> Value {
        let config = &self.router.encoder_config;
        let ModelRef { router, version, encoder } = self.prepared.model.clone();
        json!({
            "id": router, "revision": version, "encoder": encoder, "layers": config.n_layers, "heads": config.n_heads,
            "pooling": self.router.pooling_name(), "max_length": self.router.windows.max_length,
            "max_tokens": self.router.windows.max_tokens,
        })
    }

    fn offset(&self, field: Field, byte: usize) -> usize {
        let index = match field {
            Field::Subject => &self.subject,
            Field::Body => &self.body,
        };
        index.convert(byte, self.unit)
    }

    /// Where a range of bytes of a field's clean text stands in the field as posted.
    pub(super) fn place(&self, field: Field, clean: Range<usize>) -> Place<'a> {
        let email = &self.prepared.email;
        let text = if field == Field::Subject { &email.subject } else { &email.body };
        let posted = text.posted_range(clean);
        Place {
            text: text.posted().get(posted.clone()),
            start: self.offset(field, posted.start),
            end: self.offset(field, posted.end),
        }
    }

    /// How the mail was read: its lengths, and what was cut out of it or lay past the ceiling.
    pub(super) fn text(&self) -> Value {
        let Prepared { email, encoded, .. } = self.prepared;
        let length = |field, posted: &str| self.offset(field, posted.len());
        let text_of = |field: Field| if field == Field::Subject { &email.subject } else { &email.body };
        let mut unread: Vec<Value> = Vec::new();
        if let Some(token) = encoded.tokens.last().filter(|_| encoded.truncated()) {
            let mut rest = |field: Field, from: usize| {
                let (start, end) = (self.offset(field, from), length(field, text_of(field).posted()));
                if start < end {
                    unread.push(json!({"field": field, "start": start, "end": end}));
                }
            };
            rest(token.field, text_of(token.field).posted_range(token.range.clone()).end);
            // The subject is read first: where the ceiling falls in it, nothing of the body was read.
            if token.field == Field::Subject && !email.body.is_blank() {
                rest(Field::Body, 0);
            }
        }
        json!({
            "offset_unit": self.unit,
            "length": length(Field::Body, email.body.posted()),
            "subject_length": length(Field::Subject, email.subject.posted()),
            "tokens_total": encoded.tokens_total, "tokens_used": encoded.tokens.len(),
            "windows": self.prepared.windowed.windows.len(),
            "unread": unread,
            "skipped": email.cut.iter().map(|cut| json!({
                "field": Field::Body, "why": cut.why,
                "start": self.offset(Field::Body, cut.start), "end": self.offset(Field::Body, cut.end),
            })).collect::<Vec<_>>(),
        })
    }

    /// Queues by falling probability.
    pub(super) fn prediction(&self, logits: &[f32]) -> Value {
        let ranked = ranked(self.router, logits);
        let best = ranked.first().copied();
        json!({
            "queue": best.map(|(index, _)| self.queue(index)),
            "confidence": best.map(|(_, p)| rounded(p, 6)),
            "scores": ranked.iter().map(|&(index, p)| json!({
                "queue": self.queue(index), "logit": rounded(f64::from(logits[index]), 6), "p": rounded(p, 6),
            })).collect::<Vec<_>>(),
        })
    }

    /// The id of a queue.
    pub(super) fn queue(&self, index: usize) -> &'a str {
        self.router.queues.get(index).map_or("", |queue| queue.id.as_str())
    }
}

/// Queues by falling probability; ties keep the router's order.
pub(super) fn ranked(router: &RouterInfo, logits: &[f32]) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> =
        softmax(logits, router.calibration.temperature).into_iter().enumerate().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

/// For answers, which need no more digits than that.
pub(super) fn rounded(value: f64, decimals: u8) -> f64 {
    let scale = 10f64.powi(i32::from(decimals));
    // Adding 0 makes a negative zero a plain one.
    (value * scale).round() / scale + 0.0
}

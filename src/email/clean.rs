//! The way of a mail through the floor: parts, text, zones, kind, language.

use std::ops::Range;

use super::body::{self, Body, Collected};
use super::cleaned::{CleanEmail, Language, Note, Zone};
use super::header::{self, Headers};
use super::mime::{self, Part};
use super::posted::{CleanOptions, Fields, Posted};
use super::zones::{self, Context, SubjectKind};
use super::{AlignedText, address, attached, cuts, kind, language, normalise};

/// Reads a mail and answers what its sender wrote.
///
/// Any input gives an answer: what cannot be read is missing from the text and noted.
#[must_use]
pub fn clean(posted: &Posted<'_>, options: &CleanOptions) -> CleanEmail {
    match posted {
        Posted::Mime(bytes) => clean_mime(bytes, options),
        Posted::Fields(fields) => clean_fields(fields, options),
    }
}

fn clean_mime(bytes: &[u8], options: &CleanOptions) -> CleanEmail {
    let bytes = mime::unix_lines(bytes);
    let parsed = mime::parse(&bytes, options);
    let mut mail = clean_part(&parsed.root, options);
    if parsed.incomplete {
        mail.notes.push(Note::Unreadable);
    }
    mail
}

fn clean_part(root: &Part<'_>, options: &CleanOptions) -> CleanEmail {
    let Collected { body, attached } = body::collect(root, options);
    let stated = root.headers.get("subject");
    let passes_on = body.text.is_blank() || zones::subject_kind(stated) == SubjectKind::Forward;
    let subject = AlignedText::identity(stated.unwrap_or_default());
    let mut mail = finish(Mail { headers: &root.headers, root: Some(root), subject, body }, options);
    if let Some(inner) = attached.filter(|_| passes_on) {
        attached::pass_on(&mut mail, clean_part(inner, options), options);
        mail.language = detected(&mail.subject, &mail.body, options);
    }
    mail
}

fn clean_fields(fields: &Fields<'_>, options: &CleanOptions) -> CleanEmail {
    let pairs = fields.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let own = [("subject", fields.subject), ("from", fields.from)];
    let own = own.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
    let headers = Headers::from_pairs(own.chain(pairs));
    let filled = |text: &&str| !text.trim().is_empty();
    let body = match (fields.text.filter(filled), fields.html) {
        (Some(text), Some(html)) if body::is_stub(text) => {
            let whole = body::from_field(html, true, options);
            if whole.text.is_blank() { body::from_field(text, false, options) } else { whole }
        }
        (Some(text), _) => body::from_field(text, false, options),
        (None, Some(html)) => body::from_field(html, true, options),
        (None, None) => Body::default(),
    };
    let stated = fields.subject.or_else(|| headers.get("subject")).unwrap_or_default();
    let subject = header::decode_aligned(stated);
    finish(Mail { headers: &headers, root: None, subject, body }, options)
}

/// A mail with its text collected and nothing cut yet.
struct Mail<'m, 'a> {
    headers: &'m Headers,
    root: Option<&'m Part<'a>>,
    subject: AlignedText,
    body: Body,
}

fn finish(mail: Mail<'_, '_>, options: &CleanOptions) -> CleanEmail {
    let Mail { headers, root, subject, body } = mail;
    let Body { text, marks, attachments, mut notes } = body;
    let one_line = normalise::line(subject.text());
    let subject = subject.then(&one_line);
    let context = Context {
        subject: zones::subject_kind(headers.get("subject")),
        in_reply: headers.get("in-reply-to").is_some() || headers.get("references").is_some(),
    };
    let zoned = zones::split(text.text(), &marks, context);
    let kept = cuts::kept_ranges(&zoned, options);
    let mut normal = normalise::body(text.text(), &kept);
    let mut whole = false;
    if normal.is_blank() && !text.is_blank() {
        let everything = 0..text.text().len();
        normal = normalise::body(text.text(), std::slice::from_ref(&everything));
        whole = !normal.is_blank();
        notes.extend(whole.then_some(Note::KeptWhole));
    }
    let forward = zoned.forward.as_ref();
    let verdict = kind::kind(headers, root, normal.text(), forward.is_some());
    let forwarded = forward.is_some();
    let original_from = forward.and_then(|forward| forward.from.clone());
    let original_subject = forward
        .and_then(|forward| forward.subject.clone())
        .or_else(|| forward.and(headers.get("subject")).map(|subject| zones::without_prefix(subject).to_owned()));
    let truncated = notes.contains(&Note::Truncated);
    let cut = if whole { Vec::new() } else { cuts::cuts(&zoned, &text, truncated, options) };
    let zones = zoned.zones.iter().map(|zone| {
        let Range { start, end } = text.posted_range(zone.range.clone());
        Zone { kind: zone.kind, start, end }
    });
    let zones = zones.collect();
    let body = text.then(&normal);
    if body.is_blank() {
        notes.push(Note::EmptyBody);
    }
    CleanEmail {
        language: detected(&subject, &body, options),
        subject,
        kind: verdict.kind,
        kind_evidence: verdict.evidence,
        forwarded,
        original_from,
        original_subject,
        cut,
        zones,
        attachments,
        notes,
        from: headers.get("from").and_then(address::find).map(str::to_owned),
        message_id: headers.get("message-id").map(|id| id.trim().trim_matches(['<', '>']).to_owned()),
        body,
    }
}

fn detected(subject: &AlignedText, body: &AlignedText, options: &CleanOptions) -> Option<Language> {
    let with_subject = || language::detect(&format!("{} {}", subject.text(), body.text()));
    options.detect_language.then(|| language::detect(body.text()).or_else(with_subject)).flatten()
}

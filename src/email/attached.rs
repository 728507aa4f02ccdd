//! A mail that is passed on as an attachment: its words below those of the one who passes it on.

use super::cleaned::{CleanEmail, Cut, MailKind, Note, Zone};
use super::posted::CleanOptions;

/// Adds a mail that was forwarded as an attachment, itself cleaned, to the words above it.
pub(super) fn pass_on(mail: &mut CleanEmail, inner: CleanEmail, options: &CleanOptions) {
    mail.forwarded = true;
    mail.original_from = inner.from;
    mail.original_subject = Some(inner.subject.text().to_owned());
    if mail.kind == MailKind::Person {
        mail.kind = MailKind::Forwarded;
        mail.kind_evidence = Some("content-type: message/rfc822".to_owned());
    }
    if mail.body.is_blank() {
        mail.body = inner.body;
        mail.cut = inner.cut;
        mail.zones = inner.zones;
        mail.notes.retain(|note| *note != Note::EmptyBody);
        mail.notes.extend(inner.notes);
    } else {
        let shift = mail.body.posted().len() + 1;
        mail.body.append(&inner.body);
        mail.cut.extend(inner.cut.into_iter().map(|cut| Cut { start: cut.start + shift, end: cut.end + shift, ..cut }));
        mail.zones.extend(inner.zones.into_iter().map(|zone| Zone {
            start: zone.start + shift,
            end: zone.end + shift,
            ..zone
        }));
        mail.notes.extend(inner.notes.into_iter().filter(|note| *note != Note::EmptyBody));
    }
    mail.attachments += inner.attachments;
    if mail.body.truncate(options.max_body_bytes) {
        mail.notes.push(Note::Truncated);
    }
    mail.notes.sort();
    mail.notes.dedup();
}

//! The way of a mail through the floor.

use super::{AlignedText, CleanEmail, CleanOptions, MailKind, Note, Posted, normalise};

/// Reads a mail and answers what its sender wrote.
#[must_use]
pub fn clean(posted: &Posted<'_>, _options: &CleanOptions) -> CleanEmail {
    let (subject, body) = match posted {
        Posted::Fields(fields) => {
            let text = fields.text.filter(|text| !text.trim().is_empty()).or(fields.html).unwrap_or_default();
            (fields.subject.unwrap_or_default().to_owned(), text.to_owned())
        }
        Posted::Mime(bytes) => read(bytes),
    };
    let body: AlignedText = normalise::body(&body, std::slice::from_ref(&(0..body.len())));
    let notes = if body.is_blank() { vec![Note::EmptyBody] } else { Vec::new() };
    CleanEmail {
        subject: normalise::line(&subject),
        body,
        kind: MailKind::Person,
        kind_evidence: None,
        forwarded: false,
        original_from: None,
        original_subject: None,
        language: None,
        cut: Vec::new(),
        zones: Vec::new(),
        attachments: 0,
        notes,
        from: None,
        message_id: None,
    }
}

fn read(bytes: &[u8]) -> (String, String) {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let bytes = bytes[start..].strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes[start..]);
    let Ok(mail) = mailparse::parse_mail(bytes) else {
        return (String::new(), String::from_utf8_lossy(bytes).into_owned());
    };
    let subject = mail.headers.iter().find(|header| header.get_key_ref().eq_ignore_ascii_case("subject"));
    let text = mail.parts().find(|part| part.ctype.mimetype == "text/plain").and_then(|part| part.get_body().ok());
    (subject.map(mailparse::MailHeader::get_value).unwrap_or_default(), text.unwrap_or_default())
}

//! What sort of mail this is, by headers and structure.
//!
//! Nothing is dropped on this ground: the kind and the header that decided are part of the answer. The evidence
//! names headers and their keywords, never an address or words of the mail.

mod words;

use std::sync::LazyLock;

use super::MailKind;
use super::address;
use super::header::Headers;
use super::mime::Part;
use crate::email::pattern::Pattern;
use words::{ABSENCE_SUBJECTS, BOUNCE_PHRASES, BOUNCE_SUBJECTS, MAIL_BOUNCE_SUBJECTS};

/// A kind and what decided it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) kind: MailKind,
    pub(super) evidence: Option<String>,
}

impl Verdict {
    fn new(kind: MailKind, evidence: impl Into<String>) -> Self {
        Self { kind, evidence: Some(evidence.into()) }
    }
}

/// Decides by the strongest sign: a delivery report, an automatic answer, a list, a forward.
pub(super) fn kind(headers: &Headers, root: Option<&Part<'_>>, body: &str, forwarded: bool) -> Verdict {
    bounce(headers, root, body)
        .or_else(|| automatic(headers, root))
        .or_else(|| list(headers))
        .or_else(|| forwarded.then(|| Verdict::new(MailKind::Forwarded, "forwarded mail in the body")))
        .unwrap_or(Verdict { kind: MailKind::Person, evidence: None })
}

fn bounce(headers: &Headers, root: Option<&Part<'_>>, body: &str) -> Option<Verdict> {
    let found = |evidence: &str| Some(Verdict::new(MailKind::Bounce, evidence));
    if let Some(root) = root.filter(|root| root.mime() == "multipart/report") {
        let delivery = root.param("report-type").is_some_and(|kind| kind.eq_ignore_ascii_case("delivery-status"));
        let has_status = root.children.iter().any(|part| part.mime().ends_with("/delivery-status"));
        if delivery || has_status {
            return found("content-type: multipart/report; report-type=delivery-status");
        }
    }
    if headers.get("x-failed-recipients").is_some() {
        return found("x-failed-recipients");
    }
    let daemon = from_daemon(headers);
    let is_null = |name| headers.get(name).is_some_and(|path| path.trim() == "<>");
    let null_sender = is_null("return-path") || is_null("from");
    let subject = headers.get("subject").unwrap_or_default().trim().to_lowercase();
    if is_answer(&subject) || absence(&subject).is_some() {
        return None;
    }
    let has_status =
        root.is_some_and(|root| root.children.iter().any(|part| part.mime().ends_with("/delivery-status")));
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| subject.contains(phrase));
    // A postmaster is a person at a small firm.
    let daemon = daemon && !is_postmaster(headers);
    if daemon && (has_status || says(BOUNCE_SUBJECTS) || reports_failure(body)) {
        return found("from: mail system");
    }
    // Web forms and shops send with an empty return path too, and people write to them about deliveries.
    let by_mail = has_status || says(MAIL_BOUNCE_SUBJECTS) || has_status_code(body);
    if by_mail && is_postmaster(headers) {
        return found("from: postmaster");
    }
    if by_mail && null_sender {
        return found("return-path: <>");
    }
    None
}

fn automatic(headers: &Headers, root: Option<&Part<'_>>) -> Option<Verdict> {
    let found = |evidence: String| Some(Verdict::new(MailKind::AutoReply, evidence));
    if let Some(root) = root.filter(|root| root.mime() == "multipart/report") {
        let report = root.param("report-type").unwrap_or_default().to_ascii_lowercase();
        let receipt = root.children.iter().any(|part| part.mime().ends_with("/disposition-notification"));
        if receipt || report == "disposition-notification" {
            return found("content-type: multipart/report; report-type=disposition-notification".to_owned());
        }
        if report == "feedback-report" {
            return found("content-type: multipart/report; report-type=feedback-report".to_owned());
        }
    }
    // Exchange stamps mail that a rule passes on as automatic, though a person wrote it.
    let by_rule = headers
        .get("x-ms-exchange-generated-message-source")
        .is_some_and(|source| source.contains("Mailbox Rules Agent"))
        || headers.get("x-ms-exchange-inbox-rules-loop").is_some() && headers.get("resent-from").is_some();
    if let Some(value) = auto_submitted(headers).filter(|_| !by_rule) {
        return found(format!("auto-submitted: {value}"));
    }
    let switched_on = |value: &str| !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "no" | "false" | "0");
    for name in
        ["x-autoreply", "x-autorespond", "x-autoresponder", "x-auto-reply", "x-autoreply-from", "x-mail-autoreply"]
    {
        if headers.get(name).is_some_and(switched_on) {
            return found(name.to_owned());
        }
    }
    if let Some(value) =
        headers.get("precedence").map(str::trim).filter(|value| value.eq_ignore_ascii_case("auto_reply"))
    {
        return found(format!("precedence: {}", value.to_ascii_lowercase()));
    }
    let subject = headers.get("subject").unwrap_or_default().trim().to_lowercase();
    absence(&subject).and_then(|phrase| found(format!("subject: {}", phrase.trim_end_matches([':', ' ']))))
}

/// The phrase with which the subject of an absence notice starts.
fn absence(subject: &str) -> Option<&'static str> {
    // Some programs put it into brackets.
    let head = subject.trim_start_matches(['[', '【', '(']);
    ABSENCE_SUBJECTS.iter().copied().find(|phrase| {
        let rest = head.strip_prefix(phrase);
        // "Automatic reply, but no refund" is about one: behind the phrase it ends, or what it answers begins.
        let whole = phrase.ends_with([':', '-']) || phrase.contains(" auf");
        rest.is_some_and(|rest| {
            whole || rest.is_empty() || rest.trim_start().starts_with([':', '：', '-', '–', ']', '】', ')', '('])
        })
    })
}

fn list(headers: &Headers) -> Option<Verdict> {
    for name in ["list-id", "list-unsubscribe", "list-post", "mailing-list", "x-mailing-list"] {
        if headers.get(name).is_some() {
            return Some(Verdict::new(MailKind::List, name));
        }
    }
    let precedence = headers.get("precedence")?.trim().to_ascii_lowercase();
    matches!(precedence.as_str(), "bulk" | "list" | "junk")
        .then(|| Verdict::new(MailKind::List, format!("precedence: {precedence}")))
}

/// The keyword of `Auto-Submitted` (RFC 3834), `None` when it is absent or says `no`, or that a rule passes on
/// what a person wrote.
fn auto_submitted(headers: &Headers) -> Option<String> {
    let value = headers.get("auto-submitted")?.split([';', '(']).next()?.trim().to_ascii_lowercase();
    let keyword: String = value.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    (!matches!(keyword.as_str(), "" | "no" | "auto-forwarded")).then_some(keyword)
}

fn from_daemon(headers: &Headers) -> bool {
    headers.all("from").chain(headers.all("sender")).any(|from| {
        let lower = from.to_lowercase();
        let local = address::find(from).map(address::local_part).unwrap_or_default();
        local.starts_with("mailer-daemon")
            || local.starts_with("postmaster")
            || matches!(
                local.as_str(),
                "mail-daemon" | "mailerdaemon" | "mdaemon" | "maildaemon" | "microsoftexchange" | "bounces"
            )
            || local.starts_with("microsoftexchange")
            || lower.contains("mailer-daemon")
            || lower.contains("mail delivery s")
            || lower.contains("postmaster")
            || lower.contains("post_master")
            || lower.contains("delivery subsystem")
    })
}

fn is_postmaster(headers: &Headers) -> bool {
    headers.all("from").any(|from| {
        let local = address::find(from).map(address::local_part).unwrap_or_default();
        local == "postmaster" || local.is_empty() && from.to_lowercase().contains("postmaster")
    })
}

/// A person may answer or pass on a delivery report.
fn is_answer(subject: &str) -> bool {
    use super::zones::{SubjectKind, subject_kind};
    matches!(subject_kind(Some(subject)), SubjectKind::Reply | SubjectKind::Forward)
}

/// Whether the text of the mail reads like a delivery report: a status code, a diagnosis.
fn reports_failure(body: &str) -> bool {
    let head = body[..body.floor_char_boundary(6000)].to_lowercase();
    BOUNCE_PHRASES.iter().any(|phrase| head.contains(phrase)) || has_status_code(body)
}

/// Whether the text holds the fields or codes of RFC 3463 and 3464, which absence notices do not. A date ("4.5.26") and an
/// amount ("550 euro") look like codes; a code stands behind a reply code, a `#`, or with the words of a mail server.
fn has_status_code(body: &str) -> bool {
    static CODE: LazyLock<Pattern> = LazyLock::new(|| {
        Pattern::new(
            r"(?xi)\b[45]\d\d[\s-]{1,2}\(?\#?[45]\.[0-7]\.\d{1,3}\b | \#\s?[45]\.[0-7]\.\d{1,3}\b | \bstatus:\s*[45]\.[0-7]\.\d
              | \b5\.[0-7]\.\d{1,3}[\s:]+(?:\(|<|user|mailbox|recipient|unknown|smtp|x-|unrout)
              | \b55\d[\s-]{1,2}(?:user|mailbox|recipient|unknown|no\ssuch|relay|requested|sender|sorry|rejected|permanent|<|\S+@)
              | final-recipient: | diagnostic-code: | \buser\sunknown\b | \bunknown\suser\b | \bmailbox\s(?:unavailable|full|is\sfull)\b
              | \brecipient\saddress\srejected\b | \bno\ssuch\suser\b | \bhost\sunknown\b",
        )
    });
    CODE.is_match(&body[..body.floor_char_boundary(6000)])
}

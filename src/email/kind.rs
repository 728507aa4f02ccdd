//! What sort of mail this is, by headers and structure.
//!
//! Nothing is dropped on this ground: the kind and the header that decided are part of the answer. The evidence
//! names headers and their keywords, never an address or words of the mail.

use std::sync::LazyLock;

use regex::Regex;

use super::MailKind;
use super::address;
use super::header::Headers;
use super::mime::Part;

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
    let machine = auto_submitted(headers).is_some() || null_sender;
    let subject = headers.get("subject").unwrap_or_default().to_lowercase();
    let failed_subject = !is_answer(&subject) && BOUNCE_SUBJECTS.iter().any(|phrase| subject.contains(phrase));
    let status_part =
        root.is_some_and(|root| root.children.iter().any(|part| part.mime().ends_with("/delivery-status")));
    let report_body = reports_failure(body);
    match () {
        () if daemon && (failed_subject || status_part || report_body) => found("from: mail system"),
        () if null_sender && (failed_subject || status_part || has_status_code(body)) => found("return-path: <>"),
        () if machine && failed_subject => found("auto-submitted and subject of a delivery report"),
        () => None,
    }
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
    ABSENCE_SUBJECTS
        .iter()
        .find(|phrase| subject.starts_with(*phrase))
        .and_then(|phrase| found(format!("subject: {}", phrase.trim_end_matches([':', ' ']))))
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

/// The keyword of `Auto-Submitted` (RFC 3834), `None` when it is absent or says `no`.
fn auto_submitted(headers: &Headers) -> Option<String> {
    let value = headers.get("auto-submitted")?.split([';', '(']).next()?.trim().to_ascii_lowercase();
    let keyword: String = value.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    (!keyword.is_empty() && keyword != "no").then_some(keyword)
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
            || lower.contains("mail administrator")
            || lower.contains("delivery subsystem")
            || lower.contains("system administrator")
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
    BOUNCE_PHRASES.iter().any(|phrase| head.contains(phrase))
}

/// Whether the text holds the fields or codes of RFC 3463 and 3464, which absence notices do not.
fn has_status_code(body: &str) -> bool {
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\b[45]\.\d{1,3}\.\d{1,3}\b|\b55\d[ -]|final-recipient:|diagnostic-code:")
            .expect("the pattern is constant")
    });
    CODE.is_match(&body[..body.floor_char_boundary(6000)])
}

const BOUNCE_SUBJECTS: &[&str] = &[
    "undeliver",
    "not delivered",
    "delivery status notification",
    "delivery fail",
    "failed delivery",
    "mail delivery",
    "returned mail",
    "delivery report",
    "failure notice",
    "delivery notification",
    "message delivery",
    "returned to sender",
    "could not be delivered",
    "non-delivery",
    "nondeliverable",
    "delivery error",
    "mail could not",
    "mail failed",
    "message status",
    "delivery has failed",
    "cannot be delivered",
    "delivery problem",
    "mail system error",
    "warning: could not send",
    "message not delivered",
    "unzustellbar",
    "nicht zugestellt",
    "non remis",
    "échec de la remise",
    "no se puede entregar",
    "no se entregó",
    "mancato recapito",
    "non recapitabile",
    "não entregue",
    "falha na entrega",
    "onbestelbaar",
    "kunne ikke leveres",
    "olevererbart",
    "toimittaminen epäonnistui",
    "niedostarczon",
    "nedoručiteln",
    "не доставлено",
    "недоставлен",
    "配信不能",
    "配信できません",
    "無法傳遞",
    "退信",
    "반송",
    "teslim edilemedi",
    "unknown user",
    "user unknown",
    "mail error",
    "sendmail error",
    "delayed mail",
    "mail not delivered",
    "error in mail",
    "mail failure",
    "mail system errors",
    "delayed",
    "エラーメール",
    "メールエラー",
    "エラーメッセージ",
    "送信エラー",
];

const BOUNCE_PHRASES: &[&str] = &[
    "could not be delivered",
    "couldn't be delivered",
    "was not delivered",
    "wasn't delivered",
    "unable to deliver",
    "delivery to the following",
    "delivery has failed",
    "delivery failed",
    "permanent error",
    "permanent fatal error",
    "undeliver",
    "user unknown",
    "unknown user",
    "mailbox unavailable",
    "mailbox is full",
    "mailbox full",
    "over quota",
    "final-recipient:",
    "diagnostic-code:",
    "action: failed",
    "550 ",
    "551 ",
    "552 ",
    "553 ",
    "554 ",
    "5.1.1",
    "5.0.0",
    "5.7.1",
    "5.2.2",
    "4.4.1",
    "returned message",
    "original message follows",
    "does not exist",
    "no such user",
    "host unknown",
    "domain not found",
    "failed to deliver",
    "cannot be delivered",
    "not be able to deliver",
    "the following address",
    "bounced",
    "message could not",
    "recipient address rejected",
    "returned to sender",
    "i'm afraid i wasn't able to deliver",
    "this is a permanent error",
    "i couldn't find",
    "nicht zugestellt",
    "no se pudo entregar",
    "n'a pas pu être remis",
    "не может быть доставлено",
    "配信できません",
    "届けられません",
    "送信できません",
    "宛先不明",
    "receiver not found",
];

const ABSENCE_SUBJECTS: &[&str] = &[
    "automatic reply:",
    "automatic reply -",
    "auto reply:",
    "autoreply:",
    "auto-reply:",
    "auto response:",
    "autoresponse:",
    "auto-response:",
    "out of office:",
    "out of office reply",
    "out of the office:",
    "out-of-office:",
    "automated reply:",
    "vacation reply",
    "on vacation:",
    "automatische antwort:",
    "automatische antwort auf",
    "abwesenheitsnotiz",
    "abwesend:",
    "autoantwort:",
    "réponse automatique",
    "absence du bureau",
    "respuesta automática",
    "fuera de la oficina",
    "resposta automática",
    "risposta automatica",
    "fuori sede:",
    "automatisch antwoord",
    "afwezigheidsbericht",
    "autosvar",
    "automatisk svar",
    "automatiskt svar",
    "frånvaro:",
    "automaattinen vastaus",
    "odpowiedź automatyczna",
    "automatyczna odpowiedź",
    "automatická odpověď",
    "автоматический ответ",
    "автоответ",
    "otomatik yanıt",
    "自動応答",
    "自動返信",
    "不在通知",
    "自动回复",
    "自動回覆",
    "자동 회신",
    "부재중",
    "תשובה אוטומטית",
    "رد تلقائي",
];

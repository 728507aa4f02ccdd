//! A quoted reply of another queue must not change what the router reads.

use std::path::Path;

use postroom::email::{CleanOptions, CutReason, Fields, MailKind, Note, Posted, clean};
use serde_json::Value;

/// Subjects and bodies of the sample week.
fn week() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/crumb/week.jsonl");
    let lines = std::fs::read_to_string(path).expect("the sample mail is part of the repository");
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("one mail a line"))
        .map(|row| (text(&row, "subject"), text(&row, "body")))
        .collect()
}

/// The mails whose subject does not say that they pass on another mail; below "Fwd:" a header block is the start of
/// the forwarded text, and that is kept.
fn week_without_forwards() -> impl Iterator<Item = (String, String)> {
    week().into_iter().filter(|(subject, _)| !subject.to_lowercase().starts_with("fw"))
}

fn body(subject: &str, text: &str, html: Option<&str>) -> String {
    let text = html.is_none().then_some(text);
    let fields = Fields { subject: Some(subject), text, html, ..Fields::default() };
    clean(&Posted::Fields(fields), &CleanOptions::default()).body.text().to_owned()
}

/// The ways in which mail programs put an earlier mail below a new one.
const REPLIES: &[(&str, &str)] = &[
    (
        "quoted lines below a header",
        "\n\nOn Mon, 3 Mar 2025 at 10:12, Crumb & Co <hello@crumb.example> wrote:\n> Your refund of 12.50 is on its way.\n\
         > It takes three working days.\n> Sorry for the trouble, Anna",
    ),
    (
        "a wrapped header",
        "\n\nOn Mon, 3 Mar 2025 at 10:12, Crumb & Co Customer Care and Deliveries <\nhello@crumb.example> wrote:\n\n\
         > Your refund is on its way.\n>\n> Anna",
    ),
    (
        "an Outlook block",
        "\n\nFrom: Crumb & Co <hello@crumb.example>\nSent: Monday, 3 March 2025 10:12\nTo: Sam Example\n\
         Subject: Your refund\n\nYour refund of 12.50 is on its way.\nIt takes three working days.\nSorry, Anna",
    ),
    (
        "an Outlook block below a rule",
        "\n\n________________________________\nFrom: Crumb & Co <hello@crumb.example>\nSent: Monday, March 3, 2025 10:12 AM\n\
         To: Sam Example <sam@kunde.example>\nSubject: Your refund\n\nYour refund is on its way.\nAnna\nCrumb & Co",
    ),
    (
        "an original message",
        "\n\n-----Original Message-----\nFrom: Crumb & Co [mailto:hello@crumb.example]\nSent: 03 March 2025 10:12\n\
         To: Sam\nSubject: Your refund\n\nYour refund is on its way.\nAnna",
    ),
    (
        "a German block",
        "\n\nVon: Crumb & Co <hello@crumb.example>\nGesendet: Montag, 3. März 2025 10:12\nAn: Sam\nBetreff: Ihre Erstattung\n\n\
         Ihre Erstattung ist unterwegs.\nEs dauert drei Tage.\nAnna",
    ),
    (
        "a French header",
        "\n\nLe lun. 3 mars 2025 à 10:12, Crumb & Co <hello@crumb.example> a écrit :\n\n> Votre remboursement est en route.\n\
         > Anna\n> Crumb",
    ),
    (
        "a quoted header",
        "\n\n> On 3 Mar 2025, at 10:12, Crumb & Co <hello@crumb.example> wrote:\n> \n> Your refund is on its way.\n> Anna",
    ),
];

#[test]
fn an_appended_reply_leaves_the_clean_text_as_it_was() {
    let mut changed = Vec::new();
    for (subject, text) in week_without_forwards() {
        for subject in [subject.clone(), format!("Re: {subject}")] {
            let without = body(&subject, &text, None);
            for (name, reply) in REPLIES {
                let with = body(&subject, &format!("{text}{reply}"), None);
                if with != without {
                    changed.push(format!("{name}\n{without:?}\n{with:?}"));
                }
            }
        }
    }
    assert!(changed.is_empty(), "{} changed, first:\n{}", changed.len(), changed[0]);
}

#[test]
fn quotes_of_html_mail_leave_the_clean_text_as_it_was() {
    let quotes = [
        "<div class=\"gmail_quote\"><div dir=\"ltr\" class=\"gmail_attr\">On Mon, Mar 3, 2025 at 10:12 AM Crumb &lt;<a>hello@crumb.example</a>&gt; \
         wrote:<br></div><blockquote class=\"gmail_quote\"><div>Your refund is on its way.</div></blockquote></div>",
        "<div class=\"moz-cite-prefix\">Jeudi, Crumb a dit :<br></div><blockquote type=\"cite\">Your refund is on its way.</blockquote>",
        "<hr><div id=\"divRplyFwdMsg\"><b>From:</b> Crumb<br><b>Sent:</b> Monday, March 3, 2025 10:12<br><b>To:</b> Sam<br>\
         <b>Subject:</b> Refund</div><div>Your refund is on its way.</div>",
        "<div class=\"yahoo_quoted\"><div>In a language nobody knows:</div><div>Your refund is on its way.</div></div>",
        "<div style=\"border-top:solid #E1E1E1 1.0pt\"><p class=MsoNormal><b>From:</b> Crumb &lt;hello@crumb.example&gt;<br><b>Sent:</b> \
         Monday, March 3, 2025 10:12 AM<br><b>To:</b> Sam<br><b>Subject:</b> Refund</p></div><p class=MsoNormal>Your refund is on its way.</p>",
    ];
    for (subject, text) in week_without_forwards() {
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('\n', "<br>");
        let own = format!("<html><body><div>{escaped}</div>");
        let without = body(&subject, "", Some(&own));
        for quote in quotes {
            assert_eq!(body(&subject, "", Some(&format!("{own}{quote}</body></html>"))), without);
        }
    }
}

#[test]
fn a_week_of_plain_mail_is_read_whole() {
    for (subject, text) in week() {
        let fields = Fields { subject: Some(&subject), text: Some(&text), ..Fields::default() };
        let mail = clean(&Posted::Fields(fields), &CleanOptions::default());
        let passes_on = subject.to_lowercase().starts_with("fw");
        assert!(mail.kind == MailKind::Person || passes_on && mail.kind == MailKind::Forwarded, "{subject}");
        // Some writers of the sample quote an earlier mail or have a signature; nothing else is ever taken out.
        for cut in &mail.cut {
            let taken = &mail.body.posted()[cut.start..cut.end];
            let right = match cut.why {
                CutReason::Quote => taken.contains("wrote:") || taken.contains("From:") || taken.contains("\n>"),
                CutReason::Signature => taken.starts_with("Sent from") || taken.starts_with("--"),
                CutReason::ForwardHeader => passes_on,
                _ => false,
            };
            assert!(right, "{subject}: {:?} {taken:?}\n{text}", cut.why);
        }
        assert!(!mail.notes.contains(&Note::KeptWhole), "{subject}");
        assert!(mail.language.is_none_or(|language| language.code == "en"), "{:?} {subject} {text}", mail.language);
    }
}

#[test]
fn the_deciding_words_of_each_sample_mail_are_kept() {
    let collapse = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lost = Vec::new();
    for name in ["week.jsonl", "train.jsonl"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/crumb").join(name);
        for line in std::fs::read_to_string(path).expect("the sample mail is part of the repository").lines() {
            let row: Value = serde_json::from_str(line).expect("one mail a line");
            let subject = row["subject"].as_str().unwrap_or_default();
            let text = body(subject, row["body"].as_str().unwrap_or_default(), None);
            let decisive = collapse(row["decisive"].as_str().unwrap_or_default());
            if !collapse(&format!("{subject} {text}")).contains(&decisive) && !collapse(&text).contains(&decisive) {
                lost.push(format!("{}: {decisive:?} is not in {text:?}", row["id"]));
            }
        }
    }
    assert!(lost.is_empty(), "{} lost\n{}", lost.len(), lost.join("\n"));
}

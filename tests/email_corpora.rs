//! How well the cleaner does on the collections of other projects, as figures with a floor under each.
//!
//! The collections are read from `../shared/email/corpora` beside the checkout and are not part of the
//! repository; without them these tests pass and say nothing. The figures are in `docs/email.md`; with
//! `--nocapture` the tests print them, and with `POSTROOM_CORPUS_MISSES=1` each miss as well.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a broken row fails the test; the table is its output")]

use std::path::{Path, PathBuf};

use postroom::email::{CleanEmail, CleanOptions, Fields, MailKind, Posted, ZoneKind, clean};
use serde_json::Value;

/// One row of a collection's `expected.jsonl` with its input.
struct Row {
    id: String,
    expected: Value,
    kind: String,
    subject: Option<String>,
    input: Vec<u8>,
}

fn corpus(name: &str) -> Option<Vec<Row>> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/email/corpora").join(name);
    let lines = std::fs::read_to_string(root.join("expected.jsonl")).ok()?;
    let rows = lines.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect("each line is one row");
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        Row {
            id: text("id").unwrap(),
            kind: text("input_kind").unwrap(),
            subject: text("subject"),
            input: std::fs::read(root.join(text("input").unwrap())).unwrap_or_default(),
            expected: row["expected"].clone(),
        }
    });
    Some(rows.collect())
}

impl Row {
    fn clean(&self) -> CleanEmail {
        self.clean_with(&CleanOptions::default())
    }

    fn clean_with(&self, options: &CleanOptions) -> CleanEmail {
        if self.kind == "eml" {
            return clean(&Posted::Mime(&self.input), options);
        }
        let text = String::from_utf8_lossy(&self.input);
        let fields = match self.kind.as_str() {
            "html" => Fields { html: Some(&text), ..Fields::default() },
            _ => Fields { text: Some(&text), subject: self.subject.as_deref(), ..Fields::default() },
        };
        clean(&Posted::Fields(fields), options)
    }

    fn string(&self, key: &str) -> Option<&str> {
        self.expected[key].as_str()
    }

    fn strings(&self, key: &str) -> Vec<&str> {
        self.expected[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Counts rows that hold and prints those that do not when asked to.
struct Score {
    name: &'static str,
    held: usize,
    of: usize,
}

impl Score {
    fn new(name: &'static str) -> Self {
        Self { name, held: 0, of: 0 }
    }

    fn count(&mut self, row: &Row, holds: bool, detail: impl FnOnce() -> String) {
        self.of += 1;
        self.held += usize::from(holds);
        if !holds && std::env::var_os("POSTROOM_CORPUS_MISSES").is_some() {
            println!("MISS {} {}\n{}\n", self.name, row.id, detail());
        }
    }

    fn gate(&self, at_least: usize) {
        println!("| {} | {} of {} | {at_least} |", self.name, self.held, self.of);
        assert!(self.held >= at_least, "{}: {} of {}, wanted {at_least}", self.name, self.held, self.of);
    }
}

/// The text in front of a forwarded mail; the whole text where nothing is forwarded.
fn before_forward(mail: &CleanEmail) -> String {
    let header = mail.zones.iter().find(|zone| zone.kind == ZoneKind::ForwardHeader).map(|zone| zone.start);
    let Some(header) = header else { return mail.body.text().to_owned() };
    let text = mail.body.text();
    let end = (0..=text.len())
        .filter(|&at| text.is_char_boundary(at))
        .find(|&at| at == text.len() || mail.body.posted_range(at..at).start >= header);
    let before = text[..end.unwrap_or(text.len())].to_owned();
    if before.trim().is_empty() { text.to_owned() } else { before }
}

#[test]
fn reply_texts_of_email_reply_trimmer() {
    let Some(rows) = corpus("email_reply_trimmer") else { return };
    let mut exact = Score::new("email_reply_trimmer, exact text");
    let mut near = Score::new("email_reply_trimmer, contains and excludes");
    for row in &rows {
        let mail = row.clean();
        let wanted = collapse(row.string("text").unwrap_or_default());
        let found = collapse(&before_forward(&mail));
        let detail = || format!("wanted {wanted:?}\nfound  {found:?}\nzones {:?}", mail.zones);
        exact.count(row, found == wanted, detail);
        // Every line of the wanted text is there, and hardly a line of what was to be taken out.
        let contained = row.string("text").unwrap_or_default().lines().all(|line| found.contains(&collapse(line)));
        let elided: Vec<String> = row.string("elided").unwrap_or_default().lines().map(collapse).collect();
        let long: Vec<&String> =
            elided.iter().filter(|line| line.len() > 12 && !wanted.contains(line.as_str())).collect();
        let left = long.iter().filter(|line| found.contains(line.as_str())).count();
        near.count(row, contained && left * 10 <= long.len(), || {
            format!("left {left} of {}\n{}", long.len(), detail())
        });
    }
    exact.gate(40);
    near.gate(58);
}

#[test]
fn reply_texts_of_crisp() {
    let Some(rows) = corpus("crisp-email-reply-parser") else { return };
    let mut score = Score::new("crisp reply parser");
    for row in &rows {
        let mail = row.clean();
        let found = collapse(mail.body.text());
        let source = collapse(&String::from_utf8_lossy(&row.input));
        // The first fragment of a mail with answers below the quote is the start of its text.
        let first = row.string("first_fragment").is_none_or(|text| {
            let wanted = collapse(text);
            found == wanted || found.starts_with(&wanted) && answers_below(&mail)
        });
        let contains = row.strings("first_fragment_contains").iter().all(|text| found.contains(&collapse(text)));
        let whole = row.expected["nothing_removed"].as_bool() != Some(true) || found == source;
        let signature = row.expected["second_fragment_is_signature"].as_bool() != Some(true)
            || mail.zones.iter().any(|zone| zone.kind == ZoneKind::Signature);
        score.count(row, first && contains && whole && signature, || {
            format!("wanted {}\nfound {found:?}\nsource {source:?}", row.expected)
        });
    }
    score.gate(60);
}

/// Whether the sender's text goes on below a quote.
fn answers_below(mail: &CleanEmail) -> bool {
    let quote = mail.zones.iter().position(|zone| zone.kind == ZoneKind::Quote);
    quote.is_some_and(|at| mail.zones[at..].iter().any(|zone| zone.kind == ZoneKind::Text))
}

#[test]
fn reply_texts_of_talon() {
    let Some(rows) = corpus("talon") else { return };
    let mut score = Score::new("talon reply texts");
    for row in &rows {
        let mail = row.clean();
        let found = collapse(mail.body.text());
        let text = row.string("text").is_none_or(|text| found == collapse(text));
        let contains = row.strings("text_contains").iter().all(|text| found.contains(&collapse(text)));
        let signature = row.string("signature").is_none_or(|signature| !found.contains(&collapse(signature)));
        score.count(row, text && contains && signature, || format!("wanted {}\nfound {found:?}", row.expected));
    }
    score.gate(40);
}

#[test]
fn forwards_of_crisp() {
    let Some(rows) = corpus("crisp-email-forward-parser") else { return };
    let mut told = Score::new("crisp forwards, forwarded or not");
    let mut text = Score::new("crisp forwards, text of the forwarded mail");
    let mut from = Score::new("crisp forwards, original sender");
    let mut subject = Score::new("crisp forwards, original subject");
    for row in &rows {
        let mail = row.clean();
        let wanted = row.expected["forwarded"].as_bool().unwrap();
        let detail = || {
            format!(
                "subject {:?}\nwanted {}\nfound {:?} {:?}\n{}",
                row.subject,
                row.expected,
                mail.original_from,
                mail.original_subject,
                mail.body.text()
            )
        };
        told.count(row, mail.forwarded == wanted, detail);
        if wanted {
            let found = collapse(mail.body.text());
            text.count(
                row,
                row.strings("text_contains").iter().all(|wanted| found.contains(&collapse(wanted))),
                detail,
            );
            let address = row.string("original_from_address");
            from.count(row, address.is_none() || mail.original_from.as_deref() == address, detail);
            let original = row.string("original_subject");
            subject.count(row, original.is_none() || mail.original_subject.as_deref() == original, detail);
        }
    }
    told.gate(198);
    text.gate(186);
    from.gate(180);
    subject.gate(170);
}

#[test]
fn bounces_of_sisimai() {
    let Some(rows) = corpus("sisimai-bounces") else { return };
    let mut bounces = Score::new("sisimai, bounces recognised");
    let mut automatic = Score::new("sisimai, automatic replies and feedback reports");
    for row in &rows {
        let mail = row.clean();
        let detail = || {
            let head: String = String::from_utf8_lossy(&row.input).chars().take(1500).collect();
            format!("{:?} {:?}\n{head}", mail.kind, mail.kind_evidence)
        };
        match row.string("category") {
            Some("bounce") => bounces.count(row, mail.kind == MailKind::Bounce, detail),
            Some("auto_reply" | "feedback_report") => {
                automatic.count(row, matches!(mail.kind, MailKind::AutoReply | MailKind::Bounce), detail);
            }
            _ => {}
        }
    }
    bounces.gate((bounces.of * 95).div_ceil(100));
    automatic.gate(automatic.of / 2);
}

#[test]
fn mail_of_persons_is_no_bounce() {
    let mut persons = Score::new("mail of persons not called automatic");
    for name in
        ["talon", "crisp-email-reply-parser", "crisp-email-forward-parser", "email_reply_trimmer", "mail-parser"]
    {
        for row in corpus(name).into_iter().flatten() {
            let mail = row.clean();
            persons.count(&row, !matches!(mail.kind, MailKind::AutoReply | MailKind::Bounce), || {
                format!("{:?} by {:?}", mail.kind, mail.kind_evidence)
            });
        }
    }
    persons.gate(persons.of);
}

#[test]
fn texts_of_mail_parser() {
    let Some(rows) = corpus("mail-parser") else { return };
    let mut subjects = Score::new("mail-parser, subject");
    let mut texts = Score::new("mail-parser, text");
    let mut both = Score::new("mail-parser, subject and text");
    let options = CleanOptions { keep_quotes: true, keep_signatures: true, ..CleanOptions::default() };
    for row in &rows {
        let mail = row.clean_with(&options);
        let wanted_subject = row.string("subject").unwrap_or_default();
        let subject =
            holds_words(mail.subject.text(), wanted_subject) && holds_words(wanted_subject, mail.subject.text());
        // The decoded part before a zone is cut; where that is HTML, what is left of it as text. The reference
        // lists no text for some mails that have one: there is nothing to compare then.
        let wanted = row.strings("text_body").join("\n");
        let text = holds_words(mail.body.text(), &wanted) || holds_words(mail.body.posted(), &wanted);
        let detail = || {
            format!(
                "subject {:?}\nwanted  {wanted_subject:?}\ntext   {:?}\nwanted {wanted:?}",
                mail.subject.text(),
                mail.body.text()
            )
        };
        subjects.count(row, subject, detail);
        if !wanted.trim().is_empty() {
            texts.count(row, text, detail);
        }
        both.count(row, subject && text, detail);
    }
    subjects.gate((subjects.of * 95).div_ceil(100));
    texts.gate((texts.of * 95).div_ceil(100));
    both.gate((both.of * 95).div_ceil(100));
}

/// Whether a text holds the wanted words in order. A word in which either has U+FFFD agrees with any word that
/// has the rest of its letters: one decoder gave up where the other read on.
fn holds_words(found: &str, wanted: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let separator = |c: char| !c.is_alphanumeric() && c != '\u{fffd}';
        text.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let found = words(found);
    let mut rest = found.iter();
    words(wanted).iter().all(|wanted| rest.any(|found| word_agrees(found, wanted) || word_agrees(wanted, found)))
}

fn word_agrees(found: &str, wanted: &str) -> bool {
    let mut rest = found;
    for (index, piece) in wanted.split('\u{fffd}').enumerate() {
        match rest.find(piece) {
            Some(0) => rest = &rest[piece.len()..],
            Some(at) if index > 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || wanted.ends_with('\u{fffd}')
}

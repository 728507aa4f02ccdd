//! Public reports of mail that other software read wrongly, each with its input and its link.
//!
//! What concerns the HTTP interface in these cases (status codes, JSON errors) is tested with the server; here
//! they are what the cleaner sees.

#![expect(clippy::unwrap_used, reason = "a fixture that does not parse fails the test")]

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use postroom::email::{CleanEmail, CleanOptions, Fields, MailKind, Note, Posted, clean};
use serde_json::Value;

/// Cases without a word for the cleaner, and why.
const NOT_FOR_THE_CLEANER: &[(&str, &str)] =
    &[("api-lone-surrogate", "the JSON document is refused before any field reaches the cleaner")];

/// Cases whose `truncated` is about tokens, of which the cleaner knows nothing.
const TRUNCATED_BY_TOKENS: &[&str] = &["api-over-token-limit"];

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/email"))
}

fn cases() -> Vec<Value> {
    let lines = std::fs::read_to_string(fixtures().join("cases.jsonl")).expect("cases.jsonl is part of the repository");
    lines.lines().map(|line| serde_json::from_str(line).expect("each line is one case")).collect()
}

#[test]
fn every_public_case_holds() {
    let mut failures = Vec::new();
    let mut run = 0;
    for case in cases() {
        let id = case["id"].as_str().unwrap();
        if NOT_FOR_THE_CLEANER.iter().any(|(name, _)| *name == id) {
            continue;
        }
        run += 1;
        let started = Instant::now();
        let mail = read(&case);
        let mut wrong = check(&case, &mail);
        let limit = Duration::from_millis(case["expected"]["max_ms"].as_u64().unwrap_or(0)).max(Duration::from_secs(5));
        if started.elapsed() > limit {
            wrong.push(format!("took {:?}", started.elapsed()));
        }
        let source = case["source"].as_str().unwrap();
        failures.extend(wrong.into_iter().map(|what| format!("{id} ({source}): {what}")));
    }
    assert_eq!(run + NOT_FOR_THE_CLEANER.len(), 62, "the number of cases");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// The bytes of an input; those that say the same thousands of times lie there compressed.
fn input(name: &str) -> Vec<u8> {
    let path = fixtures().join(name);
    if path.is_file() {
        return std::fs::read(path).unwrap();
    }
    let packed = std::fs::File::open(fixtures().join(format!("{name}.gz"))).expect("the input lies beside the cases");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn read(case: &Value) -> CleanEmail {
    let name = case["input_file"].as_str().unwrap();
    let bytes = input(name);
    let options = CleanOptions::default();
    if !name.ends_with(".json") {
        return clean(&Posted::Mime(&bytes), &options);
    }
    let mut input: Value = serde_json::from_slice(&bytes).expect("JSON that parses");
    if let Some(generate) = input.get("x_generate").cloned() {
        let text = generate["prefix"].as_str().unwrap().to_owned()
            + &generate["repeat"]
                .as_str()
                .unwrap()
                .repeat(usize::try_from(generate["times"].as_u64().unwrap()).unwrap());
        input[generate["field"].as_str().unwrap()] = Value::String(text);
    }
    let fields = Fields { subject: input["subject"].as_str(), text: input["text"].as_str(), ..Fields::default() };
    clean(&Posted::Fields(fields), &options)
}

fn check(case: &Value, mail: &CleanEmail) -> Vec<String> {
    let expected = &case["expected"];
    let text = collapse(mail.body.text());
    let mut wrong = Vec::new();
    let mut demand = |holds: bool, what: String| {
        if !holds {
            wrong.push(format!("{what}; text: {:?}", text.chars().take(300).collect::<String>()));
        }
    };
    if let Some(subject) = expected["subject"].as_str() {
        demand(mail.subject.text() == subject, format!("subject {:?}, expected {subject:?}", mail.subject.text()));
    }
    for wanted in strings(&expected["text_contains"]) {
        demand(text.contains(&collapse(wanted)), format!("lacks {wanted:?}"));
    }
    for unwanted in strings(&expected["text_excludes"]) {
        demand(
            !mail.body.text().contains(unwanted) && !text.contains(&collapse_or(unwanted)),
            format!("holds {unwanted:?}"),
        );
    }
    if let Some(equal) = expected["text_equals"].as_str() {
        demand(text == collapse(equal), format!("is not {equal:?}"));
    }
    let automatic = mail.kind == MailKind::AutoReply;
    let bounce = mail.kind == MailKind::Bounce;
    for (name, found) in [
        ("is_auto_reply", automatic),
        ("is_bounce", bounce),
        ("forwarded", mail.forwarded),
        ("has_attachments", mail.attachments > 0),
        ("truncated", mail.notes.contains(&Note::Truncated)),
    ] {
        let by_tokens = name == "truncated" && TRUNCATED_BY_TOKENS.contains(&case["id"].as_str().unwrap());
        if let Some(wanted) = expected[name].as_bool().filter(|_| !by_tokens) {
            demand(found == wanted, format!("{name} is {found}, kind {:?} by {:?}", mail.kind, mail.kind_evidence));
        }
    }
    match expected["category"].as_str() {
        Some("empty") => {
            demand(mail.body.is_blank() && mail.notes.contains(&Note::EmptyBody), "is not empty".to_owned())
        }
        Some("auto_reply") => demand(automatic, "is no automatic reply".to_owned()),
        Some("bounce") => demand(bounce, "is no bounce".to_owned()),
        _ => {}
    }
    if let Some(from) = expected["original_from"].as_str() {
        demand(mail.original_from.as_deref() == Some(from), format!("original_from is {:?}", mail.original_from));
    }
    wrong
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text of blanks or invisible characters alone is compared as it stands.
fn collapse_or(text: &str) -> String {
    let collapsed = collapse(text);
    if collapsed.is_empty() { text.to_owned() } else { collapsed }
}

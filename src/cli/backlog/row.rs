//! One row of the results.

use std::io;
use std::path::Path;

use anyhow::bail;
use serde::Serialize;

use crate::routing::{Candidate, Decision, Outcome, Reason};

/// What became of one mail.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// File, and line where the file holds many.
    pub(super) place: String,
    /// The id in the data.
    pub(super) id: Option<String>,
    /// Absent where the mail could not be read or answered.
    pub(super) decision: Option<Outcome>,
    pub(super) queue: Option<String>,
    pub(super) confidence: Option<f64>,
    pub(super) reasons: Vec<Reason>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) truncated: bool,
    /// Why there is no decision.
    pub(super) error: Option<String>,
}

impl Row {
    /// The row of a mail that was decided on; `cut`: of which only a part was read from the data.
    pub(super) fn of(place: String, id: Option<String>, decision: Decision, cut: bool) -> Self {
        let mut reasons = decision.reasons;
        if cut && !decision.input.truncated {
            reasons.push(Reason::Truncated);
        }
        Self {
            place,
            id,
            decision: Some(decision.decision),
            queue: decision.queue.map(|queue| queue.id),
            confidence: decision.confidence,
            reasons,
            candidates: decision.candidates,
            truncated: decision.input.truncated || cut,
            error: None,
        }
    }

    pub(super) fn failed(place: String, id: Option<String>, error: &dyn std::error::Error) -> Self {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason = format!("{reason}: {error}");
            cause = error.source();
        }
        Self {
            place,
            id,
            decision: None,
            queue: None,
            confidence: None,
            reasons: Vec::new(),
            candidates: Vec::new(),
            truncated: false,
            error: Some(reason),
        }
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutFormat {
    Csv,
    Jsonl,
}

const COLUMNS: [&str; 10] = [
    "place",
    "id",
    "decision",
    "queue",
    "confidence",
    "reasons",
    "likeliest",
    "likeliest_confidence",
    "truncated",
    "error",
];

impl OutFormat {
    /// By the name of the file.
    pub(super) fn of(path: &Path) -> anyhow::Result<Self> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("jsonl" | "ndjson") => Ok(Self::Jsonl),
            _ => bail!("{} names no format: the results are .csv or .jsonl", path.display()),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
        }
    }

    /// What stands above the rows.
    pub(super) fn header(self) -> String {
        match self {
            Self::Csv => COLUMNS.join(",") + "\n",
            Self::Jsonl => String::new(),
        }
    }

    /// Writes a row.
    pub(super) fn write(self, row: &Row, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Jsonl => {
                serde_json::to_writer(&mut *out, row)?;
                out.push(b'\n');
                Ok(())
            }
            Self::Csv => {
                let likeliest = row.candidates.first();
                let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
                let reasons: Vec<String> = row.reasons.iter().map(|reason| name_of(*reason)).collect();
                let cells = [
                    no_formula(&row.place),
                    no_formula(row.id.as_deref().unwrap_or_default()),
                    row.decision.map_or("error", Outcome::name).to_owned(),
                    row.queue.clone().unwrap_or_default(),
                    number(row.confidence),
                    reasons.join(" "),
                    likeliest.map_or_else(String::new, |candidate| candidate.queue.clone()),
                    number(likeliest.map(|candidate| candidate.confidence)),
                    row.truncated.to_string(),
                    no_formula(row.error.as_deref().unwrap_or_default()),
                ];
                let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
                writer.write_record(&cells)?;
                writer.flush()
            }
        }
    }
}

/// The name of a reason in answers.
pub(super) fn name_of(reason: Reason) -> String {
    serde_json::to_value(reason).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Text that others chose, so that no spreadsheet takes it for a formula: an apostrophe before what would be one.
fn no_formula(text: &str) -> String {
    let starts = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if starts && text.parse::<f64>().is_err() { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_no_formula_in_a_spreadsheet() {
        assert_eq!(no_formula("=HYPERLINK(\"http://x\")"), "'=HYPERLINK(\"http://x\")");
        assert_eq!(no_formula("-12"), "-12");
        assert_eq!(no_formula("a/b.eml"), "a/b.eml");
    }

    #[test]
    fn a_row_is_one_line_whatever_the_mail_holds() {
        let error = io::Error::other("two\nlines, \"quoted\"");
        let row = Row::failed("mail.csv line 2".to_owned(), Some("a,b".to_owned()), &error);
        let mut out = Vec::new();
        OutFormat::Jsonl.write(&row, &mut out).unwrap();
        assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let mut out = OutFormat::Csv.header().into_bytes();
        OutFormat::Csv.write(&row, &mut out).unwrap();
        let mut table = csv::Reader::from_reader(&out[..]);
        let read = table.records().next().unwrap().unwrap();
        assert_eq!((&read[1], &read[2], &read[9]), ("a,b", "error", "two\nlines, \"quoted\""));
    }

    #[test]
    fn the_name_of_the_file_is_the_format() {
        assert_eq!(OutFormat::of(Path::new("a.CSV")).unwrap(), OutFormat::Csv);
        assert!(OutFormat::of(Path::new("a.xlsx")).unwrap_err().to_string().contains(".csv or .jsonl"));
    }
}

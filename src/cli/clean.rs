//! `postroom clean`: what was kept and cut of one mail.

use clap::Args;
use serde_json::json;

use super::input::InputArgs;
use super::output::{print, print_line};
use crate::email::{CleanEmail, CleanOptions};

/// Arguments of `postroom clean`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  postroom clean mail.eml")]
pub(super) struct CleanArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CleanArgs) -> anyhow::Result<()> {
    let email = args.input.read()?.content.clean(&CleanOptions::default());
    if args.json { print_line(serde_json::to_string_pretty(&as_json(&email))?) } else { print(as_text(&email)?) }
}

fn as_json(email: &CleanEmail) -> serde_json::Value {
    json!({
        "subject": email.subject.text(),
        "text": email.body.text(),
        "kind": email.kind,
        "kind_evidence": email.kind_evidence,
        "forwarded": email.forwarded,
        "original_from": email.original_from,
        "language": email.language.map(|language| language.code),
        "cut": email.cut,
        "attachments": email.attachments,
        "reasons": email.notes,
    })
}

/// Every line of the mail behind the zone that it was put in; zones that were cut are marked.
fn as_text(email: &CleanEmail) -> anyhow::Result<String> {
    let mut out = format!("subject        {}\n", email.subject.text());
    let posted = email.body.posted();
    for zone in &email.zones {
        let name = serde_json::to_value(zone.kind)?;
        let cut = email.cut.iter().any(|cut| cut.start <= zone.start && zone.end <= cut.end);
        let mark = if cut { '-' } else { ' ' };
        for line in posted.get(zone.start..zone.end).unwrap_or_default().lines() {
            let line: String = line.chars().filter(|character| !character.is_control()).collect();
            out.push_str(&format!("{mark}{:<14}{line}\n", name.as_str().unwrap_or_default()));
        }
    }
    out.push_str(&format!("\nkind {}", serde_json::to_value(email.kind)?.as_str().unwrap_or_default()));
    if let Some(evidence) = &email.kind_evidence {
        out.push_str(&format!(" ({evidence})"));
    }
    out.push_str(&format!(", attachments {}", email.attachments));
    for note in &email.notes {
        out.push_str(&format!(", {}", serde_json::to_value(note)?.as_str().unwrap_or_default()));
    }
    out.push('\n');
    Ok(out)
}

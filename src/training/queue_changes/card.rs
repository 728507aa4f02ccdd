//! The model card of a router whose queues changed: the table of queues as it is now, and what happened since the training.

use std::fmt::Write;

use crate::artifact::StoredRouter;
use crate::queues::Queue;

const QUEUES: &str = "## Queues\n";
const CHANGES: &str = "## Changes since the training\n";

/// Brings the card up to date and adds a line on what happened.
pub(super) fn tell(router: &mut StoredRouter, line: &str) {
    let card = with_section(&router.card, QUEUES, &table(&router.manifest.queues));
    let changes = section(&card, CHANGES).map_or_else(
        || "The figures above are those of the training and were not measured again.\n\n".to_owned(),
        |(start, end)| format!("{}\n", card[start + CHANGES.len()..end].trim()),
    );
    router.card = with_section(&card, CHANGES, &format!("{changes}- {line}\n"));
}

/// A table of the queues, in Markdown.
fn table(queues: &[Queue]) -> String {
    let mut out = "| id | name | for |\n|---|---|---|\n".to_owned();
    for queue in queues {
        let state = match (queue.enabled, queue.suggest_only) {
            (false, _) => " (off)",
            (true, true) => " (only suggested)",
            (true, false) => "",
        };
        let _ = writeln!(out, "| `{}` | {}{state} | {} |", queue.id, queue.name, queue.description);
    }
    out
}

/// Where a section stands, its heading included, up to the next heading.
fn section(card: &str, heading: &str) -> Option<(usize, usize)> {
    let start = card.find(heading)?;
    let body = start + heading.len();
    Some((start, card[body..].find("\n## ").map_or(card.len(), |next| body + next + 1)))
}

/// The card with one section replaced, or added at its end.
fn with_section(card: &str, heading: &str, text: &str) -> String {
    match section(card, heading) {
        Some((start, end)) => {
            let rest = &card[end..];
            let gap = if rest.is_empty() { "" } else { "\n" };
            format!("{}{heading}\n{text}{gap}{rest}", &card[..start])
        }
        None => format!("{}\n\n{heading}\n{text}", card.trim_end()).trim_start().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_where_it_stands_or_added_at_the_end() {
        let card = "# R\n\n## Queues\n\n| old |\n\n## Figures\n\n1\n";
        let changed = with_section(card, QUEUES, "| new |\n");
        assert_eq!(changed, "# R\n\n## Queues\n\n| new |\n\n## Figures\n\n1\n");
        assert!(with_section(&changed, CHANGES, "- a\n").ends_with("1\n\n## Changes since the training\n\n- a\n"));
    }
}

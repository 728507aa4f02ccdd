//! The card below a letter's closing: title, firm, telephone, links.
//!
//! The closing and the name stay; they are the sender's words. What is below is cut only where telephone
//! numbers, links or addresses show that it is a card, and nothing but short lines follows.

use std::sync::LazyLock;

use super::lines::Line;
use super::words::{CLOSINGS, lower};
use super::{ZoneKind, voice};
use crate::email::pattern::Pattern;

/// A line that is, or ends in, a way to reach somebody.
static CONTACT: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)
        ^(?:www\.|https?://)\S+$
      | ^\W{0,3}(?:e-?mail|mail|web|site|w|e)?\s?[:.]?\s?<?[\w.+-]+@[\w-]+(?:\.[\w-]+)+>?(?:<mailto:[^>]*>)?$
      | \b(?:tel|telefon|téléphone|teléfono|telefono|telefone|phone|ph|mob|mobil|mobile|cell|fax|office|direct|t|m|p|f|d)
            \W{0,4}\+?\(?\d[\d\s()./-]{5,}
      | ^\W{0,2}\+\d[\d\s()./-]{7,}\d$
      | \|.*(?:\+?\d[\d\s()./-]{6,}|www\.|https?://)",
    )
});

/// A card has at most this many filled lines, the name included.
const MAX_LINES: usize = 14;
/// One address may be where the sender wants the answer; two ways to reach somebody are a card.
const MIN_CONTACTS: usize = 2;
/// Longer lines are sentences.
const MAX_LINE: usize = 100;

/// Marks the card at the end of a section.
pub(super) fn mark(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    let Some(closing) = lines.iter().rposition(|line| is_closing(line.text)) else { return };
    let below: Vec<usize> =
        (closing + 1..lines.len()).filter(|&at| !lines[at].is_blank() && kinds[at] == ZoneKind::Text).collect();
    let short = below.len() <= MAX_LINES && below.iter().all(|&at| lines[at].text.len() <= MAX_LINE);
    // The first line below the closing is the name.
    let Some((_, card)) = below.split_first().filter(|_| short) else { return };
    // A card says nothing of the matter, whatever it offers.
    if card.iter().any(|&at| voice::is_said(lines[at].text)) {
        return;
    }
    if card.iter().filter(|&&at| CONTACT.is_match(lines[at].text)).count() >= MIN_CONTACTS {
        card.iter().for_each(|&at| kinds[at] = ZoneKind::Signature);
    }
}

/// Words after "thanks" that go on with a sentence: it closes nothing.
const GOES_ON: [&str; 9] = ["for", "to", "that", "but", "if", "you", "your", "we", "it"];
/// A closing is a short line.
const MAX_CLOSING: usize = 48;

fn is_closing(text: &str) -> bool {
    if text.len() > MAX_CLOSING {
        return false;
    }
    let lower = lower(text);
    CLOSINGS.iter().any(|closing| {
        let rest = lower.strip_prefix(closing);
        rest.is_some_and(|rest| rest.split_whitespace().next().is_none_or(|word| !GOES_ON.contains(&word)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        let lines = split(text, &[]);
        let mut kinds = vec![ZoneKind::Text; lines.len()];
        mark(&lines, &mut kinds);
        lines.iter().zip(kinds).filter(|(_, kind)| *kind == ZoneKind::Signature).map(|(line, _)| line.text).collect()
    }

    #[test]
    fn a_card_below_the_name_is_cut() {
        let text = "It is late.\n\nKind regards,\nMara\n\nHead of Lamps | Kunde GmbH\nTel. +49 30 555 0199\nwww.kunde.example\n";
        assert_eq!(cut(text), ["Head of Lamps | Kunde GmbH", "Tel. +49 30 555 0199", "www.kunde.example"]);
    }

    #[test]
    fn names_and_requests_below_a_closing_stay() {
        assert!(cut("It is late.\n\nRegards,\nMara\nHead of Lamps\n").is_empty());
        let long = "Thanks\nMara\nPS: please call me before the driver comes, the number on the order is wrong and the right one is +49 30 555 0199\n";
        assert!(cut(long).is_empty());
        let details = "It was lovely.\n\nThanks for the quick answer.\nMy details are these.\nPhone: 030 1234567\n\
                       E-mail: ann@x.example\nOne thing before you bake: are there nuts in it?\n";
        assert!(cut(details).is_empty());
        let question = "It was lovely.\n\nThanks\nAnn\nPhone: 030 1234567\nE-mail: ann@x.example\nAre there nuts in it? My son is allergic.\n";
        assert!(cut(question).is_empty());
        let son = "They were lovely.\n\nThanks\nAnn\nPhone: 030 1234567\nE-mail: ann@x.example\nOur son is allergic to nuts. Tell us what is in the brownies.\n";
        assert!(cut(son).is_empty());
        let offer = "It was late.\n\nKind regards,\nAnn Poe\nPoe Events\nTel. +49 30 555 0199\nwww.poe.example\nNeed catering for your wedding? Ask us for a quote!\n";
        assert_eq!(cut(offer).len(), 4);
    }
}

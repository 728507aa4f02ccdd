//! Whether somebody speaks: what tells a request from a notice, a card or a footer where their words are alike.
//!
//! What a program or a lawyer adds to a mail hardly ever says "I" or "my", and asks nothing. Languages without such words are
//! judged by the question mark alone.

use std::sync::LazyLock;

use crate::email::pattern::Pattern;

/// The first person singular, as a word of its own: "acme.me" is an address. Words that are names, countries or week days elsewhere
/// ("Mia", "EU", "Mon") are left out.
static FIRST_PERSON: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r#"(?xi)(?:^|[\s"'(“‘«*_,])(?:
            (?-i:I) | i['’](?:m|d|ve|ll) | i\s(?:am|have|had|was|want|wanted|need|would|will|can|cannot|can['’]t|did|do|don['’]t|paid|ordered|got)
          | me | my | mine | myself
          | ich | mich | mir | mein(?:e[mnrs]?)?
          | je | j['’]\w+ | moi
          | yo | mi | mis | conmigo
          | ik | mij | mijn
          | meu | minha | meus | minhas
          | jeg | jag | mig | meg | mitt
          | minä | minun | minulle
          | mój | moja | moje | mnie
          | я | мне | меня | мой | моя | моё | моего | мою
        )(?:$|[\s"'’)”»*_,.;:!?]) | 私 | 我 | 저는 | 제가 | 나는"#,
    )
});

/// Polite words that a request is opened with.
static PLEASE: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)\b(?:please|kindly|pls|plz|bitte|s['’]il\svous\spla[iî]t|svp|merci\sde|por\sfavor|per\sfavore|alstublieft|
          graag|proszę|prosím|пожалуйста|lütfen|vennligst|venligst|vänligen)\b | ください | 请 | 請 | 부탁",
    )
});

/// The first person plural. Firms use it too, so it tells less.
static PLURAL: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r#"(?xi)(?:^|[\s"'(“‘«*_,])(?:we | us | our | ours | wir | uns | unser(?:e[mnrs]?)? | nous | notre | nos | nosotros | nuestr[oa]s? | noi | nostr[oaei]
          | wij | ons | onze | nós | nosso | nossa | vi | vores | vår | naszej? | мы | нас | наш\w* )(?:$|[\s"'’)”»*_,.;:!?])"#,
    )
});

/// How an advertisement below a name begins.
static OFFER: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)^\W*(?:need|looking\sfor|want(?:ing)?|interested|questions|did\syou|have\syou|follow|visit|book|call|contact|find|join|discover|
          check\sout|ask\sus|see|read|try|get|save|please\s(?:consider|think|visit|follow|note\sthat))\b",
    )
});

/// Whether a person speaks of themselves.
pub(super) fn first_person(text: &str) -> bool {
    FIRST_PERSON.is_match(text)
}

/// Whether somebody speaks of themselves or of their own.
pub(super) fn we_or_i(text: &str) -> bool {
    first_person(text) || PLURAL.is_match(text)
}

/// Words of a line that is said rather than printed below every mail.
const MIN_SAID: usize = 5;

/// Whether a line is said in the mail at hand, as against what stands below each of its sender's: an advertisement, a slogan, a title.
pub(super) fn is_said(line: &str) -> bool {
    if first_person(line) {
        return true;
    }
    let sentence = line.ends_with(['.', '!']) && line.split_whitespace().count() >= MIN_SAID;
    !OFFER.is_match(line)
        && (asks(line) || sentence || PLURAL.is_match(line) && line.split_whitespace().count() >= MIN_SAID)
}

/// Whether a question is asked. Links have question marks too, but not at a word's end.
pub(super) fn questions(text: &str) -> bool {
    text.contains('？')
        || text.split_whitespace().any(|word| {
            let end = word.trim_end_matches(['"', '”', ')', '!', '.']);
            end.ends_with(['?', '؟']) && !word.contains("://")
        })
}

/// Whether something is asked: a question, or a polite word.
pub(super) fn asks(text: &str) -> bool {
    PLEASE.is_match(text) || questions(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_speak_of_themselves_and_ask() {
        for text in [
            "I paid",
            "my son",
            "it’s what I’m told",
            "Das ist mein Kuchen",
            "j'attends",
            "mi pedido",
            "я жду",
            "我的蛋糕",
        ] {
            assert!(first_person(text), "{text}");
        }
        for text in [
            "Sent by mail",
            "Registered in England",
            "Mit freundlichen Grüßen",
            "Mia Poe, acme.me",
            "Mon 9-17",
            "afdeling i Aarhus",
            "intended recipient",
        ] {
            assert!(!first_person(text), "{text}");
        }
        for text in ["We want our money back", "Unser Kuchen fehlt", "c'est pour nous"] {
            assert!(we_or_i(text) && !first_person(text), "{text}");
        }
        for line in [
            "One box was mouldy. We want our money back for that box.",
            "Refund that box to the card that was used.",
            "Are there nuts in it?",
        ] {
            assert!(is_said(line), "{line}");
        }
        for line in [
            "Need catering or a wholesale quote for your wedding? Call us",
            "Head of Lamps",
            "Quality since 1904.",
            "Poe Events",
        ] {
            assert!(!is_said(line), "{line}");
        }
        for text in ["Are there nuts in it? Thanks", "please call", "bitte melden", "届きますか？"] {
            assert!(asks(text), "{text}");
        }
        for text in ["https://x.example/a?b=c", "https://x.example/?", "Tel. 030 1234567"] {
            assert!(!asks(text), "{text}");
        }
    }
}

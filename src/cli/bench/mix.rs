//! Made-up mail of given lengths, from a word list of our own: for measuring speed, not for judging answers.

use std::fmt;

use clap::ValueEnum;

use super::mails::BenchMail;
use crate::random::SplitMix64;

/// How long the mails are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mix {
    /// 8 to 40 words.
    Short,
    /// Six of ten short, three of 60 to 200 words, one long.
    Mixed,
    /// 250 to 900 words.
    Long,
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "short",
            Self::Mixed => "mixed",
            Self::Long => "long",
        })
    }
}

/// How many different mails a mix has.
const MAILS: usize = 200;

const WORDS: [&str; 112] = [
    "order",
    "parcel",
    "cake",
    "box",
    "invoice",
    "refund",
    "the",
    "a",
    "my",
    "our",
    "your",
    "it",
    "this",
    "that",
    "we",
    "I",
    "you",
    "they",
    "arrived",
    "came",
    "sent",
    "paid",
    "charged",
    "asked",
    "called",
    "wrote",
    "waited",
    "opened",
    "found",
    "broken",
    "late",
    "cold",
    "wrong",
    "missing",
    "twice",
    "again",
    "still",
    "never",
    "yesterday",
    "today",
    "Monday",
    "Friday",
    "week",
    "morning",
    "before",
    "after",
    "with",
    "without",
    "for",
    "from",
    "to",
    "in",
    "on",
    "at",
    "and",
    "but",
    "because",
    "so",
    "if",
    "when",
    "please",
    "could",
    "would",
    "can",
    "should",
    "change",
    "cancel",
    "return",
    "replace",
    "check",
    "tell",
    "help",
    "address",
    "street",
    "name",
    "number",
    "account",
    "card",
    "payment",
    "delivery",
    "driver",
    "shop",
    "party",
    "birthday",
    "wedding",
    "chocolate",
    "lemon",
    "sponge",
    "gluten-free",
    "almond",
    "icing",
    "candles",
    "allergic",
    "ingredients",
    "label",
    "photo",
    "attached",
    "reply",
    "email",
    "website",
    "password",
    "voucher",
    "discount",
    "price",
    "total",
    "twelve",
    "20",
    "dozen",
    "small",
    "large",
    "thanks",
    "disappointed",
];

/// The mails of a mix, the same for the same seed.
pub(super) fn mails(mix: Mix, seed: u64) -> Vec<BenchMail> {
    (0..MAILS)
        .map(|index| {
            let mut random = SplitMix64::stream(seed, index as u64);
            let (least, most) = match (mix, random.below(10)) {
                (Mix::Short, _) | (Mix::Mixed, 0..6) => (8, 40),
                (Mix::Mixed, 6..9) => (60, 200),
                (Mix::Mixed | Mix::Long, _) => (250, 900),
            };
            let words = least + random.below(most - least + 1);
            let subject = sentence(&mut random, 3);
            BenchMail::of_fields(subject, text(&mut random, words), None)
        })
        .collect()
}

/// Sentences of 5 to 18 words, a blank line after every few.
fn text(random: &mut SplitMix64, words: usize) -> String {
    let mut text = String::new();
    let mut left = words;
    while left > 0 {
        let length = (5 + random.below(14)).min(left);
        text.push_str(&sentence(random, length));
        text.push_str(if random.below(5) == 0 { ".\n\n" } else { ". " });
        left -= length;
    }
    text
}

fn sentence(random: &mut SplitMix64, words: usize) -> String {
    let words: Vec<&str> = (0..words).map(|_| WORDS[random.below(WORDS.len())]).collect();
    let sentence = words.join(" ");
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::MailContent;

    fn lengths(mix: Mix) -> Vec<usize> {
        let words = |mail: BenchMail| match mail.mail.content {
            MailContent::Fields(fields) => fields.text.unwrap_or_default().split_whitespace().count(),
            MailContent::Mime(_) => 0,
        };
        mails(mix, 7).into_iter().map(words).collect()
    }

    #[test]
    fn a_seed_gives_the_same_mail_and_another_seed_other_mail() {
        assert_eq!(mails(Mix::Mixed, 3), mails(Mix::Mixed, 3));
        assert_ne!(mails(Mix::Mixed, 3), mails(Mix::Mixed, 4));
    }

    #[test]
    fn lengths_are_those_of_the_mix() {
        assert!(lengths(Mix::Short).iter().all(|words| (8..=40).contains(words)));
        assert!(lengths(Mix::Long).iter().all(|words| (250..=900).contains(words)));
        let mixed = lengths(Mix::Mixed);
        assert!(mixed.iter().any(|&words| words <= 40) && mixed.iter().any(|&words| words >= 250));
    }
}

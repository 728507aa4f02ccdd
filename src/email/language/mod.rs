//! The language of a mail, for routers that only know some.
//!
//! The script decides where it can: Hangul, kana, Greek. Within the Latin and Cyrillic scripts the small words
//! of each language are counted: they are frequent, rarely misspelled, and seldom lent. A mail is only called
//! foreign when its own small words clearly outnumber English ones, so that short, odd or misspelled English
//! raises no alarm; with too little to go by the answer is `None`.

mod words;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Language;
use words::{CYRILLIC_WORDS, LATIN_WORDS};

type WordTable = HashMap<&'static str, Vec<usize>>;

fn table(words: &'static [(&'static str, &'static str)]) -> WordTable {
    let mut table = WordTable::new();
    for (index, (_, list)) in words.iter().enumerate() {
        for word in list.split_whitespace() {
            let languages = table.entry(word).or_default();
            if !languages.contains(&index) {
                languages.push(index);
            }
        }
    }
    table
}

static LATIN: LazyLock<WordTable> = LazyLock::new(|| table(LATIN_WORDS));
static CYRILLIC: LazyLock<WordTable> = LazyLock::new(|| table(CYRILLIC_WORDS));

/// As much text as is looked at.
const MAX_BYTES: usize = 8192;
/// Fewer letters than this say nothing.
const MIN_LETTERS: usize = 12;
/// Foreign small words needed before a mail is called foreign.
const MIN_FOREIGN: usize = 3;

/// Detects the language of a text.
pub(super) fn detect(text: &str) -> Option<Language> {
    let head = &text[..text.floor_char_boundary(MAX_BYTES)];
    let scripts = Scripts::count(head);
    if let Some(language) = scripts.language() {
        return Some(language);
    }
    if scripts.cyrillic * 2 > scripts.letters {
        return by_words(head, &CYRILLIC, CYRILLIC_WORDS).or(Some(Language { code: "ru", confidence: 0.6 }));
    }
    if scripts.latin < MIN_LETTERS {
        return None;
    }
    by_words(head, &LATIN, LATIN_WORDS)
}

/// Letters by script.
#[derive(Debug, Default)]
struct Scripts {
    letters: usize,
    latin: usize,
    cyrillic: usize,
    han: usize,
    kana: usize,
    hangul: usize,
    others: [usize; 5],
}

const OTHER_SCRIPTS: [&str; 5] = ["ar", "he", "el", "th", "hi"];

impl Scripts {
    fn count(text: &str) -> Self {
        let mut scripts = Self::default();
        for c in text.chars().filter(|c| c.is_alphabetic()) {
            scripts.letters += 1;
            match c {
                'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => scripts.latin += 1,
                '\u{400}'..='\u{52f}' => scripts.cyrillic += 1,
                '\u{3040}'..='\u{30ff}' => scripts.kana += 1,
                '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => scripts.han += 1,
                '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7af}' => scripts.hangul += 1,
                '\u{600}'..='\u{6ff}' => scripts.others[0] += 1,
                '\u{590}'..='\u{5ff}' => scripts.others[1] += 1,
                '\u{370}'..='\u{3ff}' => scripts.others[2] += 1,
                '\u{e00}'..='\u{e7f}' => scripts.others[3] += 1,
                '\u{900}'..='\u{97f}' => scripts.others[4] += 1,
                _ => {}
            }
        }
        scripts
    }

    /// The language where the script alone tells. One ideograph says as much as three letters.
    fn language(&self) -> Option<Language> {
        let confident = |code, count: usize| {
            let confidence = (count as f32 / self.letters.max(1) as f32).min(0.99);
            Some(Language { code, confidence })
        };
        let east_asian = self.han + self.kana + self.hangul;
        if east_asian >= 4 && east_asian * 3 > self.latin {
            let code = if self.hangul * 2 > east_asian {
                "ko"
            } else if self.kana * 10 > east_asian {
                "ja"
            } else {
                "zh"
            };
            return confident(code, east_asian);
        }
        let (index, &count) = self.others.iter().enumerate().max_by_key(|(_, count)| **count)?;
        (count >= 4 && count * 2 > self.letters).then_some(())?;
        confident(OTHER_SCRIPTS[index], count)
    }
}

fn by_words(text: &str, table: &WordTable, languages: &'static [(&'static str, &'static str)]) -> Option<Language> {
    let mut hits = vec![0.0f32; languages.len()];
    let mut distinct = vec![Vec::new(); languages.len()];
    let mut words = 0usize;
    for word in text.split(|c: char| !c.is_alphabetic() && !matches!(c, '\'' | '’')).filter(|word| !word.is_empty()) {
        words += 1;
        if word.len() > 20 {
            continue;
        }
        let lower = word.to_lowercase().replace('’', "'");
        let Some((key, owners)) = table.get_key_value(lower.as_str()) else {
            continue;
        };
        for &owner in owners {
            // A word that several languages share is weaker evidence for each.
            hits[owner] += 1.0 / (owners.len() as f32).sqrt();
            if !distinct[owner].contains(key) {
                distinct[owner].push(*key);
            }
        }
    }
    let best = (0..hits.len()).max_by(|&a, &b| hits[a].total_cmp(&hits[b]))?;
    let share = hits[best] / words.max(1) as f32;
    let confidence = (share * 2.5).min(0.99);
    let code = languages[best].0;
    if code == "en" || code == "ru" {
        return (hits[best] >= 1.0).then_some(Language { code, confidence });
    }
    let base = hits[0];
    let enough = hits[best] >= 2.0 && distinct[best].len() >= MIN_FOREIGN && share >= min_share(code);
    let clearly = enough && hits[best] >= 2.0 * base;
    // A short question without a single English word: "Wo ist mein Paket?"
    let short = base == 0.0 && words >= 3 && distinct[best].len() >= 2 && share >= 0.4;
    if clearly || short {
        return Some(Language { code, confidence });
    }
    // Not clearly anything else: the first language of the script, if it was heard at all.
    (base >= 1.0).then_some(Language { code: languages[0].0, confidence: base / words.max(1) as f32 })
}

/// The share of small words below which a text is a listing rather than a letter. Languages that put into endings
/// what others put into small words have fewer of them.
fn min_share(code: &str) -> f32 {
    match code {
        "fi" | "hu" | "tr" => 0.12,
        _ => 0.17,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<&'static str> {
        detect(text).map(|language| language.code)
    }

    #[test]
    fn languages_are_told_apart() {
        for (expected, text) in [
            ("en", "My order has not arrived and I would like a refund please."),
            ("de", "Meine Bestellung ist noch nicht angekommen, bitte schicken Sie mir eine neue."),
            ("fr", "Bonjour, ma commande n'est pas arrivée et je ne suis pas content."),
            ("es", "Hola, mi pedido no ha llegado y quiero que me devuelvan el dinero, gracias."),
            ("it", "Buongiorno, il mio ordine non è ancora arrivato, vorrei un rimborso."),
            ("pt", "Olá, o meu pedido ainda não chegou e quero o reembolso, obrigado."),
            ("nl", "Mijn bestelling is nog niet aangekomen, kan ik mijn geld terug krijgen?"),
            ("da", "Hej, min ordre er ikke kommet endnu, kan jeg få pengene tilbage? Jeg har ventet en uge."),
            ("sv", "Hej, min beställning har inte kommit ännu och jag vill ha pengarna tillbaka."),
            ("fi", "Hei, tilaukseni ei ole vielä saapunut ja se on myöhässä, kiitos kun autatte."),
            ("pl", "Dzień dobry, moje zamówienie jeszcze nie przyszło, proszę o zwrot pieniędzy."),
            ("cs", "Dobrý den, moje objednávka ještě nepřišla, prosím o vrácení peněz, je to už týden."),
            ("tr", "Merhaba, siparişim hala gelmedi, lütfen bana bilgi verin, çok bekledim."),
            ("ru", "Здравствуйте, мой заказ ещё не пришёл, верните деньги."),
            ("uk", "Вітаю, моє замовлення ще не прийшло, я чекаю вже тиждень, дякую."),
            ("ja", "注文した商品がまだ届きません。"),
            ("zh", "我的订单还没有收到，请退款。"),
            ("ko", "주문한 상품이 아직 도착하지 않았습니다."),
            ("he", "ההזמנה שלי עדיין לא הגיעה"),
            ("ar", "طلبي لم يصل بعد"),
            ("de", "Wo ist mein Paket?"),
            ("es", "¿Dónde está mi pedido?"),
            ("it", "Dov'è il mio ordine?"),
        ] {
            assert_eq!(code(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn short_or_odd_english_raises_no_alarm() {
        for text in [
            "pain au chocolat x2 pls",
            "where is my croissant",
            "I no receive order, is long time, please to give money",
            "Hola! I ordered the pan de muerto and la tarta, where are they?",
            "refund now!!!",
            "re: order 12, de la Cruz",
            "thx",
            "pan de la casa late again",
            "Crème brûlée du jour, la grande, out of stock?",
            "Dulce de leche alfajores por favor",
            "wheres my pain de campagne",
            "Hallo! Broken stollen, order 12",
            "LOL nope",
        ] {
            assert!(matches!(code(text), None | Some("en")), "{text}: {:?}", code(text));
        }
    }
}

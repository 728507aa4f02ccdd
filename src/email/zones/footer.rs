//! What stands under the sender's words: signatures, the footers of mail programs, and trailing rules.

use std::sync::LazyLock;

use super::lines::Line;
use super::markers::is_punctuation;
use super::{ZoneKind, contact, voice};
use crate::email::pattern::Pattern;

/// The lines that mail programs add: "Sent from my phone", in its languages.
static PROGRAM_FOOTER: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)
        ^[\s*_>\[(-]*(?:
            (?:sent|written|posted|composed|typed)\s(?:from|via|with|using|by|on)\s(?:(?:my|the|a|an)\s)?[\w\s’'.-]{0,30}?
                (?:mail|outlook|iphone|ipad|ipod|android|samsung|galaxy|blackberry|windows|mailbox|airmail|proton|
                   yahoo|gmail|hotmail|aol|nokia|huawei|xiaomi|pixel|htc|alcatel|mobile|phone|cell|tablet|device|
                   handheld|handset|smartphone|watch|spark|superhuman|front|thunderbird|k-9|ti-85|pc|mac)\b
          | (?:get|download)\s\[?outlook\sfor
          | sent\sfrom\s\[?(?:outlook|mail|yahoo)\b
          | sent\sfrom\smy(?:\s[^\s.]+){1,6}$
          | (?:sent|gesendet|envoyé|enviado|inviato|verzonden|skickat|sendt)\s\w+\s[^<]{1,40}<https?://
          | from\smy\s(?:iphone|ipad|android|mobile|phone|blackberry)
          | \w+\sfrom\smobile$
          | <{1,2}sent\sby\s\w+>
          | von\smeine[mr]\s.{1,40}\s(?:gesendet|geschickt|verschickt)
          | gesendet\s(?:von|vom|mit|über|via)\s
          | diese\s(?:nachricht|e-?mail|mail)\swurde\s(?:von|mit)\s.{1,60}\s(?:gesendet|verschickt)
          | (?:envoyé|envoyée)\s(?:de|depuis|à\spartir|avec|via)\s
          | enviad[oa]\s(?:desde|do|da|a\spartir|pelo|con|com|via)\s
          | inviat[oa]\s(?:da|dal|dall['’]|con|tramite)\s?
          | (?:verstuurd|verzonden)\s(?:vanaf|vanuit|met|via|van)\s
          | sendt\s(?:fra|via|med)\s
          | skickat\s(?:från|via|med)\s
          | lähetetty\s(?:\w+\s)?\w+(?:sta|stä|lta|ltä|ni)\b
          | (?:wysłan[eoy])\s(?:z|za)\s
          | (?:odeslán[oa]|odoslané)\s(?:z|ze|zo)\s
          | отправлено\s(?:с|из|через)\s
          | (?:надіслано|відправлено)\s(?:з|із|зі)\s
          | (?:trimis|expediat)\s(?:de\spe|din)\s
          | küldve:?\s
          | στάλθηκε\sαπό\s
          | .{1,40}(?:ımdan|imden|umdan|ümden|dan|den)\sgönderildi
          | .{1,40}から送信
          | (?:发|發)自我的
          | (?:从|從)我的.{1,20}(?:发送|傳送|寄出)
          | 나의\s.{1,20}에서\s(?:보냄|보낸)
          | .{1,20}에서\s(?:보냄|보냈)
          | נשלח\sמ
          | (?:مرسل|أُرسلت|أرسلت|تم\sالإرسال)\sمن\s
        )",
    )
});

/// What such a line names: a device, a program, or a link to one.
static DEVICE: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)phone|ipad|ipod|android|outlook|mail|samsung|galaxy|huawei|xiaomi|nokia|blackberry|windows|mobil|móvil|
          handy|telefon|téléphone|teléfono|celular|cell|tablet|yahoo|proton|gmx|web\.de|app\b|devi[cs]e|gerät|dispositivo|
          appareil|thunderbird|https?:|[\p{Han}\p{Hangul}\p{Hebrew}\p{Arabic}]",
    )
});

/// A line that names no device is a footer only when it is as short as one and no sentence.
const MAX_NAMELESS: usize = 48;
/// A line that names a device, but not as the sender's own, has at most this many words.
const MAX_WORDS: usize = 8;

/// Footers may go on in a sentence ("please excuse my thumbs") where they name the device as the sender's own, or a link.
static OWN_DEVICE: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)https?: | ^\W*(?:\w+\s){0,3}(?:from|with|on|via|using|von|vom|mit|de|depuis|desde|do|da|dal|vanaf|met|fra|från|med|z|ze|с)\s
          (?:my|meine[mr]|mon|ma|mi|mio|mia|il\smio|meu|minha|o\smeu|mijn|min|mit|mojego|moj\w+|моего|iphone|ipad|android|outlook|yahoo)\b",
    )
});

/// People send things too: "Sent by mail, they came smashed". What a program adds is no sentence, but for those above.
fn is_program_footer(text: &str) -> bool {
    if text.len() > MAX_FOOTER || !PROGRAM_FOOTER.is_match(text) {
        return false;
    }
    let clauses = text.contains(", ") || text.ends_with(['!', '?']);
    if DEVICE.is_match(text) {
        OWN_DEVICE.is_match(text) || !clauses && text.split_whitespace().count() <= MAX_WORDS
    } else {
        text.len() <= MAX_NAMELESS && !clauses && !text.ends_with('.')
    }
}

/// A footer is one short line.
const MAX_FOOTER: usize = 160;
/// A signature after its delimiter has at most this many filled lines.
const MAX_SIGNATURE: usize = 30;

/// Marks signatures, footers and trailing rules in a section of the sender's own lines; `text_above` when the
/// sender has written something before the section.
pub(super) fn mark(lines: &[Line<'_>], kinds: &mut [ZoneKind], text_above: bool) {
    mark_elements(lines, kinds);
    mark_delimited(lines, kinds, text_above);
    mark_list_footer(lines, kinds);
    contact::mark(lines, kinds);
    mark_trailing(lines, kinds);
    mark_alone(lines, kinds);
}

/// What HTML says is a signature.
fn mark_elements(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    for (line, kind) in lines.iter().zip(kinds) {
        if line.signature {
            *kind = ZoneKind::Signature;
        }
    }
}

/// The standard delimiter `-- ` (RFC 3676, 4.3), with or without its blank. Without it people draw lines through
/// their text with the same two dashes: the last one counts, and only where nobody speaks or asks below it.
fn mark_delimited(lines: &[Line<'_>], kinds: &mut [ZoneKind], text_above: bool) {
    let standard = lines.iter().position(|line| line.text == "--" && line.ends_in_blank);
    let Some(at) = standard.or_else(|| lines.iter().rposition(|line| is_delimiter(line.text))) else { return };
    let below: Vec<usize> = (at + 1..lines.len()).filter(|&at| !lines[at].is_blank()).collect();
    let something_above = text_above || lines[..at].iter().any(|line| !line.is_blank());
    // A legal notice may say "please", and is known by now.
    let own = |at: usize| kinds[at] == ZoneKind::Text && !is_program_footer(lines[at].text);
    let speaks = below.iter().any(|&at| own(at) && voice::is_said(lines[at].text));
    if something_above && below.len() <= MAX_SIGNATURE && (standard.is_some() || !speaks) {
        kinds[at..].fill(ZoneKind::Signature);
    }
}

fn is_delimiter(text: &str) -> bool {
    matches!(text, "--" | "—" | "– –" | "- --" | "-- --" | "**--**" | "\\--")
}

/// The footer of a mailing list: a rule, and below it the list's name and link. Below the rule of a web form somebody may ask to
/// unsubscribe.
fn mark_list_footer(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    let Some(rule) = lines.iter().rposition(|line| line.text.len() >= 2 && is_punctuation(line.text)) else {
        return;
    };
    let below = &lines[rule + 1..];
    let filled = below.iter().filter(|line| !line.is_blank()).count();
    let says = |words: &[&str], line: &Line<'_>| {
        let lower = line.text.to_lowercase();
        words.iter().any(|word| lower.contains(word))
    };
    // "Unsubscribe" is what people ask for, too: there a link stands beside it.
    let listed = below.iter().any(|line| {
        says(&["mailing list", "listinfo", "groups.google", "list-archive"], line)
            || says(&["unsubscribe"], line)
                && says(&["http:", "https:", "www.", "mailto:", "@", "to unsubscribe"], line)
    });
    let speaks = below.iter().any(|line| voice::first_person(line.text) || is_field(line.text));
    if listed && !speaks && (1..=6).contains(&filled) {
        kinds[rule..].fill(ZoneKind::Signature);
    }
}

/// A field of a web form.
fn is_field(text: &str) -> bool {
    let name = text.split_once(": ").map_or("", |(name, _)| name).to_ascii_lowercase();
    matches!(
        name.as_str(),
        "name"
            | "email"
            | "e-mail"
            | "message"
            | "comment"
            | "comments"
            | "enquiry"
            | "question"
            | "nachricht"
            | "mensaje"
    )
}

/// Footers of mail programs and lines of punctuation with nothing of the sender's below them.
fn mark_trailing(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    for index in (0..lines.len()).rev() {
        let text = lines[index].text;
        if text.is_empty() || kinds[index] != ZoneKind::Text {
            continue;
        }
        if is_program_footer(text) {
            kinds[index] = ZoneKind::Signature;
        } else if is_punctuation(text) && text.chars().count() >= 2 || text == "ᐧ" {
            kinds[index] = ZoneKind::Delimiter;
        } else {
            break;
        }
    }
}

/// The footer of a mail program in a paragraph of its own, wherever the sender went on below it.
fn mark_alone(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    for index in 0..lines.len() {
        let text = lines[index].text;
        let alone = index > 0
            && lines[index - 1].is_blank()
            && lines.get(index + 1).is_none_or(Line::is_blank)
            && kinds[index] == ZoneKind::Text;
        if alone && is_program_footer(text) {
            kinds[index] = ZoneKind::Signature;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    #[test]
    fn footers_of_programs_are_recognised() {
        for text in [
            "Sent from my iPhone",
            "Sent from Mail<https://go.microsoft.com/fwlink/?LinkId=550986> for Windows 10",
            "Get Outlook for iOS<https://aka.ms/o0ukef>",
            "Von meinem iPhone gesendet",
            "Verstuurd vanaf mijn iPad",
            "Envoyé de mon iPhone",
            "Wysłane z iPhone'a",
            "Отправлено с iPhone",
            "iPhone'umdan gönderildi",
            "iPhoneから送信",
            "從我的 iPhone 傳送",
            "<<sent by galaxy>>",
            "Get [Outlook for Android](https://aka.ms/ghei36)",
            "Sent from my iPhone, please excuse my thumbs.",
            "Sent from Yahoo Mail on Android",
            "Sent via Samsung Mobile.",
            "Diese Nachricht wurde von meinem Android-Mobiltelefon mit WEB.DE Mail gesendet.",
            "Envoyé de mon iPhone.",
            "Gesendet mit der GMX Mail App",
        ] {
            assert!(is_program_footer(text), "{text}");
        }
        for text in [
            "Sent from the warehouse on Monday, it never arrived",
            "The parcel was sent from my old address",
            "Envoyé de Lyon lundi, toujours rien reçu.",
            "Enviado desde Madrid el lunes, todavía no ha llegado.",
            "Sent by mail, they came smashed and mouldy and I want my money back.",
            "Posted by Royal Mail on 3 May but the refund has not come, please send me the money.",
            "Posted by Royal Mail on 3 May but the refund has not come",
            "Sent with the Windows courier, it was broken.",
        ] {
            assert!(!is_program_footer(text), "{text}");
        }
    }

    fn cut(text: &str) -> bool {
        let lines = split(text, &[]);
        let mut kinds = vec![ZoneKind::Text; lines.len()];
        mark(&lines, &mut kinds, false);
        kinds.contains(&ZoneKind::Signature)
    }

    #[test]
    fn what_is_asked_below_a_rule_is_no_signature() {
        assert!(cut("It is late.\n--\nAnn Poe\nHead of Lamps\n"));
        assert!(cut(
            "It is late.\n_____\nlamps mailing list\nhttps://x.example/listinfo/lamps\nTo unsubscribe send a mail\n"
        ));
        for text in [
            "I ordered this:\n--\n2 cakes with hazelnuts\nPlease refund me, one was mouldy.\nAnn",
            "I ordered this:\n--\n2 cakes\nI want the money back for one.\nAnn",
            "New message from the website\n-----------\nI cannot unsubscribe: cancel my weekly bread box.",
            "They were lovely.\n--\nOne box was mouldy. We want our money back for that box.\nAnn",
            "They were lovely.\n--\nRefund that box to the card that was used.\nAnn",
            "New message from the website\n-----------\nName: Ann\nEmail: ann@x.example\nMessage: Please cancel order 4411 and unsubscribe the address.",
            "New message from the website\n-----------\nHow can one unsubscribe from the weekly box",
        ] {
            assert!(!cut(text), "{text}");
        }
    }
}

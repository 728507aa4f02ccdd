//! What others wrote into the mail: legal notices at its end, warnings of a gateway at its top.

use std::sync::LazyLock;

use super::lines::Line;
use super::{ZoneKind, voice};
use crate::email::pattern::Pattern;

/// How a legal notice starts.
static NOTICE_START: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)^[\s*_\[(=-]*(?:
            (?:this|the\scontents?\sof\sthis)\s(?:e-?mail|electronic\smail|message|communication|transmission|document)\b
                [^.]{0,90}(?:confidential|privileged|intended\s(?:only|solely|for\sthe))
          | this\s(?:e-?mail|message|communication)(?:\s\w+){0,3}\s(?:and|with)\s(?:any|its|all)\s(?:files|attachments?)\b
                [^.]{0,90}(?:confidential|privileged|intended|transmitted|virus)
          | the\sinformation\s(?:contained\s|transmitted\s)?(?:in\sthis|by\sthis|is)\b[^.]{0,90}
                (?:confidential|privileged|intended\s(?:only|solely|for\sthe))
          | (?:notice|important|note)\s?[:.–-][^.]{0,90}(?:confidential|privileged|intended\s(?:only|solely|for))
          | privileged\W{1,3}(?:and\s|or\s)?confidential\sinformation
          | if\syou\sare\snot\sthe\s(?:intended|named|correct)\s(?:recipient|addressee)
          | if\syou\s(?:have\s)?receiv(?:e|ed)\sthis\s(?:e-?mail|message|communication|transmission)\s(?:in\serror|by\smistake|erroneously)
          | [^.]{0,30}(?:consider|think\sof)\sthe\senvironment\sbefore
          | (?:diese|der\sinhalt\sdieser|die\sinformationen\sin\sdieser)\s(?:e-?mail|nachricht|mail)\b[^.]{0,90}(?:vertraulich|ausschließlich\sfür|nur\sfür\sde[nr]|adressaten|rechtlich\sgeschützt)
          | (?:ce|le\sprésent|le\scontenu\sde\sce)\s(?:message|courriel|mail|e-?mail)\b[^.]{0,90}(?:confidentiel|destinataire|usage\sexclusif|exclusivement|à\sl['’]intention\sexclusive)
          | este\s(?:mensaje|correo|e-?mail|mail)\b[^.]{0,90}(?:confidencial|destinatari|privilegiad|exclusivamente)
          | (?:il\spresente\smessaggio|questo\smessaggio|questa\se-?mail|le\sinformazioni\scontenute)\b[^.]{0,90}(?:riservat|confidenzial|destinatari|esclusiv)
          | (?:esta\smensagem|este\se-?mail|a\sinformação\scontida)\b[^.]{0,90}(?:confidencia|destinatári|privilegiad|exclusiv)
          | (?:dit\se-?mail\w*|dit\sbericht|deze\se-?mail|de\sinformatie\s\w+)\b[^.]{0,90}(?:vertrouwelijk|uitsluitend|geadresseerde)
          | denne\s(?:e-?mail|e-?post|mail|meddelelse|melding)\b[^.]{0,90}(?:fortrolig|konfidensiel|kun\s(?:beregnet|bestemt)|udelukkende|utelukkende)
          | (?:detta|denna)\s(?:e-?post\w*|e-?mail|meddelande|mejl)\b[^.]{0,90}(?:konfidentiell|sekretess|endast\savse|enbart\savse)
          | tämä\s(?:viesti|sähköposti)\b[^.]{0,90}(?:luottamuksell|tarkoitettu\s(?:vain|ainoastaan)|(?:vain|ainoastaan)\starkoitettu)
          | (?:ta|niniejsza|treść\stej)\s(?:wiadomość|wiadomości|korespondencja)\b[^.]{0,90}(?:poufn|wyłącznie)
          | (?:tato|obsah\stéto)\s(?:zpráva|zprávy|e-?mail)\b[^.]{0,90}(?:důvěrn|výhradně|pouze\spro)
          | (?:это|данное|настоящее)\s(?:сообщение|письмо)\b[^.]{0,90}(?:конфиденциальн|исключительно)
          | bu\s(?:e-?posta|mesaj|ileti)\b[^.]{0,90}(?:gizli|kişiye)
          | (?:本メール|このメール|本電子メール)[^。]{0,60}(?:機密|秘密)
          | (?:本邮件|本電子郵件|本郵件|此邮件)[^。]{0,60}(?:保密|机密|機密)
          | (?:이|본)\s?(?:메일|이메일|전자우편)[^.]{0,60}(?:기밀|비밀)
        )",
    )
});

/// The heading of a legal notice. People write "Legal notice:" over a threat and "Privacy:" over a request, so it needs
/// [`LEGAL`] below it.
static HEADING: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)^[\s*_\[(=-]*(?:
            (?:confidentiality|legal|privacy|disclaimer|privileged)(?:\s(?:notice|note|disclaimer|statement|warning))?\s?(?:[:.–-]|$)
          | (?:e-?mail\s)?(?:confidentiality|legal)\s(?:notice|disclaimer|note)
          | (?:vertraulichkeitshinweis|haftungsausschluss|rechtlicher\shinweis)
          | (?:avis|clause)\sde\sconfidentialité
          | aviso\s(?:legal|de\sconfidencialidad)
          | avviso\sdi\sriservatezza
        )",
    )
});

/// What legal notices are about: who may read the mail, and who answers for it.
static LEGAL: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)\b(?:confidential|privileged|recipients?\b|addressees?\b|intended\s(?:only|solely|for)|unauthori[sz]ed|disclos|liab(?:le|ility)|virus
          | (?:opinions|views)\b[^.]{0,40}\b(?:author|sender|company|expressed)
          | vertraulich|empfänger|adressat|haftung|haften|unbefugt|destinat|confidenti|confidenci|confidenzial|riservat|responsab
          | vertrouwelijk|geadresseerd|aansprakelijk|fortrolig|konfidens|luottamuksel|poufn|důvěrn|конфиденциальн|gizli)",
    )
});

/// A warning that a mail gateway puts on top.
static BANNER: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)
        ^\W*(?:\p{L}+\W+){0,3}(?:this|the)\s(?:e-?mail|message|sender)\s[^.]{0,20}?
            (?:originated|came|comes|sent|received|is|was)\s
            (?:(?:sent|received|coming)\s)?(?:from|by)\s(?:an?\s|the\s|someone\s)?(?:outside|external|untrusted|unknown)
        | ^\W*(?:\p{L}+\W+){0,3}(?:this|the)\s(?:e-?mail|message)\s(?:originated|came|comes)\s(?:from\s)?outside
        | (?:caution|warning|attention|external)\W+[^.]{0,40}(?:external|outside)\s(?:of\s)?(?:the\s|your\s|our\s)?
            (?:e-?mail|sender|message|source|network|domain)
        | (?:caution|warning|attention|external)\W+[^.]{0,40}(?:e-?mail|sender|message)\b[^.]{0,40}
            (?:external|outside)\s(?:of\s)?(?:the\s|your\s|our\s)?(?:organi[sz]ation|company)
        | ^\W*(?:external\s(?:e-?mail|sender|message)|\[\s?(?:external|externe?|ext)\s?\]|\*+\s?externe?\s?\*+)\W*$
        | ^\W*external\b(?:\s(?:e-?mail|sender|message))?\W[^.]{0,60}(?:caution|careful|click|links?|attachments?)
        | ^\W*external\ssender\W
        | ^\W*(?:the\s)?sender\sis\sexternal
        | ^\W*attention\s?[:!]\s?(?:courriel|message|mail|e-?mail)\sexterne
        | you\sdon['’]t\soften\sget\se-?mail\sfrom
        | do\snot\sclick\s(?:on\s)?(?:any\s)?(?:links?|attachments?)\s[^.]{0,80}(?:sender|attachments?|safe)
        | unless\syou\s(?:recogni[sz]e|know|trust)\sthe\ssender
        | diese\s(?:e-?mail|nachricht)\s(?:kommt|stammt|wurde)\s[^.]{0,30}(?:externe[nmr]?\b|außerhalb)
        | (?:vorsicht|achtung|warnung)\s?[:!]\s?[^.]{0,30}\bextern
        | ce\s(?:courriel|message|mail|e-?mail)\s[^.]{0,40}(?:provient|vient|externe|extérieur)[^.]{0,40}(?:externe|extérieur|organisation)
        | este\s(?:correo|mensaje|e-?mail)\s[^.]{0,40}(?:remitente\sexterno|fuera\sde\s(?:la|su|nuestra)\s(?:organización|empresa))
        | questa?o?\s(?:e-?mail|messaggio)\s(?:proviene|arriva)\s[^.]{0,30}(?:estern|fuori)
        | (?:deze\se-?mail|dit\sbericht)\s(?:is\s)?(?:afkomstig|komt|ontvangen|verzonden)\s[^.]{0,40}(?:extern|buiten)
        | este\se-?mail\s[^.]{0,40}(?:remetente\sexterno|fora\sda\s(?:organização|empresa))
        ",
    )
});

/// What a firm has to print on its letters.
static REGISTER: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?xi)\bregistered\s(?:in|office|number|address)\b | \bcompany\s(?:number|registration)\b | \bVAT\s(?:no|number|reg)\b |
          sitz\sder\sgesellschaft | \bamtsgericht\b | \bregistergericht\b | \bHR[AB]\s?\d | geschäftsführ(?:er|ung)\s?: | \bust-?id |
          \bSIRET\b | \bRCS\s | capital\sde\s\d | \bKvK\b | \bKRS\b | \bNIP\b",
    )
});

/// What follows a warning in the same paragraph.
static ADVICE: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(r"(?i)\b(?:careful|caution|click|links?|attachments?|learn why|anhänge|liens|enlaces|bijlagen)\b")
});

/// A banner is at most this long.
const MAX_BANNER: usize = 600;
/// A paragraph shorter than this is no legal notice unless it opens with a heading.
const MIN_NOTICE: usize = 40;

/// Marks banners at the top and legal notices below the first paragraph of a section.
pub(super) fn mark(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    mark_banner(lines, kinds);
    mark_notices(lines, kinds);
}

fn mark_banner(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    let mut seen = 0;
    let mut in_banner = false;
    for (line, kind) in lines.iter().zip(kinds) {
        if line.is_blank() {
            in_banner = false;
            continue;
        }
        seen += line.text.len();
        // Where lines are not wrapped, one holds a whole paragraph.
        let warns = BANNER.is_match(line.text) || in_banner && ADVICE.is_match(line.text);
        in_banner = warns && !voice::first_person(line.text);
        if seen > MAX_BANNER || !in_banner {
            break;
        }
        *kind = ZoneKind::Banner;
    }
}

fn mark_notices(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    let mut index = 0;
    let mut text_before = false;
    while index < lines.len() {
        let end = (index..lines.len()).find(|&at| lines[at].is_blank()).unwrap_or(lines.len());
        let own = kinds[index..end].contains(&ZoneKind::Text);
        if own && text_before && is_notice(&lines[index..end]) {
            kinds[index..end].fill(ZoneKind::Disclaimer);
        }
        text_before |= own;
        index = end + 1;
    }
}

fn stands_twice(pattern: &Pattern, text: &str) -> bool {
    pattern.find(text).and_then(|first| pattern.find_from(text, first.end)).is_some()
}

fn is_notice(paragraph: &[Line<'_>]) -> bool {
    let text = paragraph.iter().take(6).map(|line| line.text).collect::<Vec<_>>().join(" ");
    let length: usize = paragraph.iter().map(|line| line.text.len()).sum();
    let head = &text[..text.floor_char_boundary(400)];
    let headed = HEADING.find(head).is_some_and(|heading| LEGAL.is_match(&text[heading.end..]));
    // An order for an invoice names a firm's numbers as well, but says what to do with them.
    let registered = stands_twice(&REGISTER, head) && !voice::asks(&text) && !voice::we_or_i(&text);
    length >= MIN_NOTICE && !is_personal(&text) && (NOTICE_START.is_match(head) || headed || registered)
}

/// Whether a paragraph that reads like a notice asks a question or speaks of the sender. Notices do say "please" and "notify me".
fn is_personal(text: &str) -> bool {
    static NOTIFY_ME: LazyLock<Pattern> = LazyLock::new(|| {
        Pattern::new(
            r"(?i)\b(?:notify|inform|contact|call|advise|tell|alert|return it to|reply to)\s(?:me|mich)\b|\bto me\b|\bmy own\b|\bby me\b",
        )
    });
    let mut rest = text.to_owned();
    while let Some(found) = NOTIFY_ME.find(&rest) {
        rest.replace_range(found, " ");
    }
    voice::questions(text) || voice::first_person(&rest)
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    #[test]
    fn notices_and_requests_are_told_apart() {
        for text in [
            "This e-mail and any attachments are confidential and intended solely for the addressee.",
            "Diese E-Mail enthält vertrauliche Informationen und ist nur für den Adressaten bestimmt.",
        ] {
            assert!(NOTICE_START.is_match(text), "{text}");
        }
        for text in [
            "This message keeps popping up in the app.",
            "If you received my parcel please call me.",
            "This week I sent three attachments and nobody has read them.",
            "This email and any attachments I sent before were ignored.",
            "If you have received this message please call me before noon.",
            "Diese Nachricht ist bestimmt schon die dritte, die ich Ihnen schreibe.",
            "Este mensaje va dirigido al departamento de ventas de su empresa.",
            "Ce message avec ses pièces jointes est resté sans réponse depuis lundi.",
            "The information in this leaflet is wrong, it says the shop is open.",
        ] {
            assert!(!NOTICE_START.is_match(text), "{text}");
        }
    }

    fn cut(paragraph: &str) -> bool {
        let text = format!("Hello,\n\n{paragraph}\n\nAnn");
        let lines = split(&text, &[]);
        let mut kinds = vec![ZoneKind::Text; lines.len()];
        mark(&lines, &mut kinds);
        kinds.contains(&ZoneKind::Disclaimer)
    }

    #[test]
    fn a_heading_or_a_number_alone_makes_no_notice() {
        for notice in [
            "CONFIDENTIALITY NOTICE: The contents of this e-mail are confidential.",
            "Legal notice\nThe sender accepts no liability for damage by viruses.",
            "This e-mail is confidential. If you are not the intended recipient please notify me and return it to me at once.",
            "Haftungsausschluss: Der Inhalt ist nur für den Empfänger bestimmt.",
            "Acme Ltd is registered in England and Wales. Company number 01234567. VAT number GB123456789.",
        ] {
            assert!(cut(notice), "{notice}");
        }
        for request in [
            "Legal notice: one of your cakes sent my son to hospital because of the nuts in it, tell me what was in it.",
            "Privacy: please delete all the data that you hold about me, and say when it is done.",
            "Important: the cake is intended for a boy with a severe nut allergy. Are there nuts or traces in it?",
            "Legal notice: my son had an allergic reaction to nuts in one of them and we hold you liable. What was in it?",
            "This message is intended for the manager: the last box was mouldy and I want my money back for it.",
            "Privacy: the recipient of my order must stay a surprise, so please change the delivery address of order 4411.",
            "Disclaimer: I am no baker, but the sponge was raw in the middle and I want my money back.",
            "Please correct this invoice: our VAT number is GB123456789 and our company number is 01234567.",
            "The invoice is wrong. The VAT number is GB123456789 and the company number is 01234567, can it be sent again?",
        ] {
            assert!(!cut(request), "{request}");
        }
    }

    #[test]
    fn banners_are_told_from_words_about_mail() {
        assert!(BANNER.is_match("CAUTION: This email originated from outside of the organization."));
        assert!(!BANNER.is_match("This message is sent from the outskirts."));
        let cut = |text: &str| {
            let lines = split(text, &[]);
            let mut kinds = vec![ZoneKind::Text; lines.len()];
            mark(&lines, &mut kinds);
            kinds.contains(&ZoneKind::Banner)
        };
        assert!(cut("This message was sent from outside the company. Be careful with links.\n\nMy cake is late."));
        assert!(cut("[EXTERNAL EMAIL] This email originated from an external source.\n\nMy cake is late."));
        for text in [
            "The message was sent by an external courier firm, and the cake it was about came smashed: please refund me the 40 euro.",
            "The email came from an unknown sender in your name and wants my card number. Is it yours?",
            "I was told that the message came from outside your shop.",
            "Attention: the courier left the cakes outside our company in the rain, all were ruined. We want our money back.",
        ] {
            assert!(!cut(text), "{text}");
        }
    }
}

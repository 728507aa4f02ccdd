//! What mail programs write around earlier mails, by language.
//!
//! These tables are the place to teach the cleaner another language or mail program. All entries are in lower
//! case; a test in `tests/email_zones.rs` shows how each is used.

/// A field of the header block that Outlook and others write above an earlier mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    From,
    Date,
    To,
    Copy,
    Subject,
    Other,
}

/// The labels of header blocks.
pub(super) const LABELS: &[(Field, &[&str])] = &[
    (
        Field::From,
        &[
            "from", "von", "absender", "de", "expéditeur", "remitente", "da", "mittente", "remetente", "van", "afzender",
            "fra", "afsender", "avsender", "från", "avsändare", "lähettäjä", "od", "nadawca", "odesílatel", "odosielateľ",
            "от", "от кого", "отправитель", "від", "від кого", "kimden", "gönderen", "feladó", "šalje", "pošiljatelj",
            "expeditor", "expeditorul", "de la", "saatja", "από", "差出人", "送信者", "发件人", "寄件者", "寄件人", "보낸 사람",
            "보낸사람", "발신", "מאת", "من", "từ", "จาก", "dari",
        ],
    ),
    (
        Field::Date,
        &[
            "sent", "date", "sent on", "gesendet", "datum", "gesendet am", "envoyé", "envoyé le", "date d'envoi", "enviado",
            "enviado el", "enviado em", "enviada em", "fecha", "data", "inviato", "inviata", "data invio", "verzonden",
            "verzonden op", "sendt", "dato", "skickat", "lähetetty", "päivämäärä", "päiväys", "wysłano", "odesláno",
            "odoslané", "dátum", "дата", "отправлено", "надіслано", "відправлено", "tarih", "gönderildi",
            "gönderme tarihi", "elküldve", "küldve", "dată", "trimis", "saadetud", "kuupäev", "poslano", "ημερομηνία",
            "στάλθηκε", "送信日時", "日時", "日付", "发送时间", "发送日期", "日期", "时间", "寄件日期", "傳送時間", "보낸 날짜", "보낸날짜", "날짜",
            "보낸 시간", "נשלח", "תאריך", "تم الإرسال", "التاريخ", "تاريخ الإرسال", "đã gửi", "ngày", "วันที่", "tanggal",
        ],
    ),
    (
        Field::To,
        &[
            "to", "an", "à", "a", "pour", "para", "destinataire", "destinatario", "aan", "til", "till", "vastaanottaja",
            "kenelle", "do", "adresat", "komu", "pre", "кому", "получатель", "kime", "alıcı", "címzett", "prima", "za",
            "destinatar", "destinatarul", "către", "catre", "saaja", "προς", "宛先", "收件人", "收件者", "받는 사람", "받는사람",
            "수신", "אל", "إلى", "đến", "ถึง", "kepada",
        ],
    ),
    (
        Field::Copy,
        &[
            "cc", "bcc", "kopie", "kopie (cc)", "kopi", "kopia", "kopio", "copie", "copie à", "copia", "cópia", "dw", "udw",
            "másolat", "másolatot kap", "kópia", "копия", "копія", "bilgi", "抄送", "副本", "참조", "עותק", "نسخة", "κοιν.",
        ],
    ),
    (
        Field::Subject,
        &[
            "subject", "betreff", "objet", "sujet", "asunto", "oggetto", "assunto", "onderwerp", "emne", "ämne", "aihe",
            "temat", "předmět", "predmet", "vec", "тема", "konu", "tárgy", "naslov", "subiect", "subiectul", "teema",
            "θέμα", "件名", "主题", "主旨", "標題", "제목", "נושא", "الموضوع", "chủ đề", "tiêu đề", "เรื่อง", "subjek",
        ],
    ),
    (
        Field::Other,
        &[
            "reply-to", "reply to", "antwort an", "répondre à", "responder a", "risposta", "rispondi a", "svar til",
            "importance", "priority", "priorität", "wichtigkeit", "importancia", "prioriteit", "attachments", "anlagen",
            "pièces jointes", "adjuntos", "allegati", "bijlagen", "message-id", "newsgroups", "organization", "mailed-by",
        ],
    ),
];

/// The verb of "On ... somebody wrote:".
pub(super) const WROTE: &[&str] = &[
    "wrote", "writes", "schrieb", "geschrieben", "schreef", "a écrit", "a ecrit", "écrivait", "escribió", "escribio",
    "ha escrito", "ha scritto", "scrive", "escreveu", "skrev", "kirjoitti", "napisał", "napisała", "pisze", "napsal",
    "napsala", "napísal", "napísala", "написал", "написала", "написав", "написала", "пишет", "пише", "писал", "написа",
    "yazdı", "yazmış", "írta", "a scris", "napisao", "napisala", "je napisal", "kirjutas", "rakstīja", "rašė", "έγραψε",
    "va escriure", "menulis", "đã viết", "เขียน", "書きました", "書き込みました", "のメール", "のメッセージ", "写道", "寫道", "写到",
    "님이 작성", "님이 씀", "작성", "כתב", "כתבה", "‫מאת", "מאת", "كتب", "كتبت", "odesílatel", "пользователь", "użytkownik",
];

/// How a line "On ... somebody wrote:" starts, in the languages that start it with such a word.
pub(super) const OPENERS: &[&str] = &[
    "on ", "at ", "am ", "le ", "el ", "il ", "em ", "no dia ", "op ", "den ", "d. ", "på ", "dne ", "dňa ", "dnia ",
    "w dniu ", "în ", "in data ", "pe ", "στις ", "vào ", "pada ", "a ", "בתאריך ", "ב-", "في ", "بتاريخ ", "在 ", "在",
    "於 ", "于", "le\u{a0}",
];

/// Word stems of "forwarded message". They count between dashes, or above a header block.
pub(super) const FORWARDED: &[&str] = &[
    "forwarded", "fwd.msg", "weitergeleitet", "transféré", "transmis", "réexpédié", "faire suivre", "reenviad",
    "inoltrat", "encaminhad", "doorgestuurd", "doorgezonden", "videresend", "vidarebefordra", "välitet", "välitetty",
    "edelleenlähet", "przekaz", "přeposl", "přeposíl", "preposl", "пересыл", "пересла", "перенаправл", "переадрес",
    "továbbít", "redirecționat", "redirectionat", "proslijeđen", "prosleđen", "iletil", "ileti başlangıcı",
    "yönlendiril", "edastatud", "edasi saadetud", "προωθ", "chuyển tiếp", "転送", "转发", "轉寄", "전달", "שהועבר",
    "מועבר", "محول", "توجيه", "mesajul redirec",
];

/// "Original message" between dashes: a reply or a forward, as the rest of the mail decides.
pub(super) const ORIGINAL: &[&str] = &[
    "original message", "original email", "original e-mail", "original appointment", "ursprüngliche nachricht",
    "ursprungsnachricht", "originalnachricht", "original-nachricht", "message d'origine", "message d’origine",
    "message original", "message initial", "mensaje original", "messaggio originale", "mensagem original",
    "oorspronkelijk bericht", "originele bericht", "oprindelig meddelelse", "original meddelelse", "original besked",
    "opprinnelig melding", "original melding", "ursprungligt meddelande", "originalmeddelande", "alkuperäinen viesti",
    "oryginalna wiadomość", "wiadomość oryginalna", "wiadomość pierwotna", "původní zpráva", "pôvodná správa",
    "исходное сообщение", "оригинальное сообщение", "eredeti üzenet", "özgün ileti", "orijinal mesaj",
    "orijinal ileti", "mesajul original", "αρχικό μήνυμα", "元のメッセージ", "元のメール", "原始邮件", "原始郵件", "原始信件",
    "원본 메시지", "원본 메일", "원본 이메일", "הודעה מקורית", "الرسالة الأصلية", "reply message",
];

/// "Please write above this line", which helpdesks put into their notices.
pub(super) const REPLY_ABOVE: &[&str] = &[
    "reply above this line", "reply above this email", "type your reply above", "write your reply above",
    "reply above the line", "respond above this line", "antworten sie oberhalb", "oberhalb dieser zeile",
    "über dieser zeile", "au-dessus de cette ligne", "au dessus de cette ligne", "por encima de esta línea",
    "encima de esta línea", "sopra questa riga", "sopra questa linea", "acima desta linha", "boven deze regel",
    "boven deze lijn", "over denne linje", "ovanför denna rad", "ovanför den här raden", "tämän rivin yläpuolelle",
    "powyżej tej linii", "nad tento řádek", "nad tímto řádkem", "выше этой строки", "выше этой линии", "bu satırın üst",
    "この行より上", "この線より上", "在此行上方", "在此线上方", "이 줄 위에", "מעל לשורה זו", "מעל שורה זו", "فوق هذا السطر",
];

/// Subject prefixes of replies.
pub(super) const REPLY_PREFIXES: &[&str] = &[
    "re", "aw", "antw", "antwort", "sv", "res", "rif", "r", "odp", "ynt", "yan", "ref", "réf", "ответ", "на", "відповідь",
    "回复", "答复", "回覆", "返信", "답장", "회신", "תגובה", "השב", "رد", "bls", "atb", "ats", "vá", "αντ", "απ", "trả lời",
];

/// Subject prefixes of forwards.
pub(super) const FORWARD_PREFIXES: &[&str] = &[
    "fw", "fwd", "wg", "tr", "rv", "enc", "i", "pd", "vb", "vl", "doorst", "videresend", "vidarebefordrat", "redir",
    "i̇lt", "ilt", "tov", "továbbítás", "prosl", "переслано", "пересл", "fs", "转发", "轉寄", "転送", "전달", "הועבר", "إعادة توجيه",
    "πρθ", "chuyển tiếp", "weitergeleitet", "reenviado", "rvd", "transf",
];

/// Prefixes that mean "reply" in one language and "forward" in another.
pub(super) const EITHER_PREFIXES: &[&str] = &["vs"];

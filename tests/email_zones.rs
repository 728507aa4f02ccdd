//! How mail programs write replies, forwards and footers, by language and program.

use postroom::email::{CleanEmail, CleanOptions, CutReason, Fields, MailKind, Note, Posted, ZoneKind, clean};

fn plain(subject: Option<&str>, text: &str) -> CleanEmail {
    clean(&Posted::Fields(Fields { subject, text: Some(text), ..Fields::default() }), &CleanOptions::default())
}

fn html(subject: Option<&str>, html: &str) -> CleanEmail {
    clean(&Posted::Fields(Fields { subject, html: Some(html), ..Fields::default() }), &CleanOptions::default())
}

fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line that introduces a quote, as Gmail, Apple Mail, Thunderbird or Outlook for Mac write it.
const REPLY_HEADERS: &[(&str, &str)] = &[
    ("en", "On Mon, May 4, 2026 at 4:20 PM Acme Desk <desk@acme.example> wrote:"),
    ("en", "On 04/05/2026 16:20, Acme Desk wrote:"),
    ("en", "On May 4, 2026, at 16:20, Acme Desk <desk@acme.example> wrote:"),
    ("de", "Am Mo., 4. Mai 2026 um 16:20 Uhr schrieb Acme Desk <desk@acme.example>:"),
    ("de", "Am 04.05.26 um 16:20 schrieb Acme Desk:"),
    ("de", "Acme Desk <desk@acme.example> schrieb am Mo., 4. Mai 2026, 16:20:"),
    ("fr", "Le lun. 4 mai 2026 à 16:20, Acme Desk <desk@acme.example> a écrit :"),
    ("fr", "Le 04/05/2026 à 16:20, Acme Desk a écrit\u{a0}:"),
    ("es", "El lun, 4 may 2026 a las 16:20, Acme Desk (<desk@acme.example>) escribió:"),
    ("es", "El 4/5/26 a las 16:20, Acme Desk escribió:"),
    ("it", "Il giorno lun 4 mag 2026 alle ore 16:20 Acme Desk <desk@acme.example> ha scritto:"),
    ("it", "Il 04/05/2026 16:20, Acme Desk ha scritto:"),
    ("pt", "Em seg., 4 de mai. de 2026 às 16:20, Acme Desk <desk@acme.example> escreveu:"),
    ("pt", "Em 04/05/2026 16:20, Acme Desk escreveu:"),
    ("nl", "Op ma 4 mei 2026 om 16:20 schreef Acme Desk <desk@acme.example>:"),
    ("nl", "Op 4 mei 2026, om 16:20 heeft Acme Desk <desk@acme.example> het volgende geschreven:"),
    ("da", "Den man. 4. maj 2026 kl. 16.20 skrev Acme Desk <desk@acme.example>:"),
    ("sv", "Den mån 4 maj 2026 kl 16:20 skrev Acme Desk <desk@acme.example>:"),
    ("no", "man. 4. mai 2026 kl. 16:20 skrev Acme Desk <desk@acme.example>:"),
    ("no", "Den 04.05.2026 16:20, skrev Acme Desk:"),
    ("fi", "ma 4. toukok. 2026 klo 16.20 Acme Desk (desk@acme.example) kirjoitti:"),
    ("pl", "pon., 4 maj 2026 o 16:20 Acme Desk <desk@acme.example> napisał(a):"),
    ("pl", "W dniu 4.05.2026 o 16:20, Acme Desk pisze:"),
    ("cs", "po 4. 5. 2026 v 16:20 odesílatel Acme Desk <desk@acme.example> napsal:"),
    ("cs", "Dne 04. 05. 26 v 16:20 Acme Desk napsal(a):"),
    ("ru", "пн, 4 мая 2026 г. в 16:20, Acme Desk <desk@acme.example>:"),
    ("ru", "04.05.2026 16:20, Acme Desk пишет:"),
    ("ja", "2026年5月4日(月) 16:20 Acme Desk <desk@acme.example>:"),
    ("ja", "2026/05/04 16:20、Acme Desk <desk@acme.example>のメール:"),
    ("ja", "On 2026/05/04 16:20, Acme Desk wrote:"),
    ("zh", "Acme Desk <desk@acme.example> 于2026年5月4日周一 16:20写道："),
    ("zh", "在 2026年5月4日，16:20，Acme Desk <desk@acme.example> 写道："),
    ("zh", "Acme Desk <desk@acme.example> 於 2026年5月4日 週一 下午4:20寫道："),
    ("ko", "2026년 5월 4일 (월) 오후 4:20, Acme Desk <desk@acme.example>님이 작성:"),
    (
        "he",
        "\u{200f}בתאריך יום ב׳, 4 במאי 2026 ב-16:20 מאת \u{202a}Acme Desk\u{202c}\u{200f} <\u{202a}desk@acme.example\u{202c}\u{200f}>:\u{200f}",
    ),
    (
        "ar",
        "\u{200f}في الاثنين، 4 مايو 2026 في 4:20 م تمت كتابة ما يلي بواسطة \u{202a}Acme Desk\u{202c}\u{200f} <\u{202a}desk@acme.example\u{202c}\u{200f}>:\u{200f}",
    ),
    ("tr", "Acme Desk <desk@acme.example>, 4 May 2026 Pzt, 16:20 tarihinde şunu yazdı:"),
    ("hu", "Acme Desk <desk@acme.example> ezt írta (időpont: 2026. máj. 4., H, 16:20):"),
    ("ro", "În lun., 4 mai 2026 la 16:20, Acme Desk <desk@acme.example> a scris:"),
    ("uk", "пн, 4 трав. 2026 р. о 16:20 Acme Desk <desk@acme.example> пише:"),
    ("el", "Στις Δευ 4 Μαΐ 2026 στις 4:20 μ.μ., ο χρήστης Acme Desk <desk@acme.example> έγραψε:"),
    ("vi", "Vào Th 2, 4 thg 5, 2026 vào lúc 16:20 Acme Desk <desk@acme.example> đã viết:"),
];

#[test]
fn reply_headers_are_cut_in_every_language() {
    let mut wrong = Vec::new();
    for (language, header) in REPLY_HEADERS {
        let quoted = format!("The answer is seven.\n\n{header}\n\n> How many?\n> Acme\n");
        let unquoted = format!("The answer is seven.\n\n{header}\n\nHow many?\n\nAcme\n");
        for (form, text) in [("quoted", quoted), ("unquoted", unquoted)] {
            let mail = plain(Some("Re: Question"), &text);
            if mail.body.text() != "The answer is seven." {
                wrong.push(format!("{language} {form} {header}: {:?}", mail.body.text()));
            }
        }
        // Cut at the places where programs wrap.
        if let Some(at) = header.find('<').filter(|at| *at > 40) {
            let wrapped = format!("The answer is seven.\n\n{}\n{}\n\n> How many?\n", &header[..=at], &header[at + 1..]);
            let mail = plain(Some("Re: Question"), &wrapped);
            if mail.body.text() != "The answer is seven." {
                wrong.push(format!("{language} wrapped {header}: {:?}", mail.body.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// From, date, to and subject as Outlook labels them.
const BLOCK_LABELS: &[(&str, [&str; 4])] = &[
    ("en", ["From:", "Sent:", "To:", "Subject:"]),
    ("de", ["Von:", "Gesendet:", "An:", "Betreff:"]),
    ("fr", ["De :", "Envoyé :", "À :", "Objet :"]),
    ("es", ["De:", "Enviado el:", "Para:", "Asunto:"]),
    ("it", ["Da:", "Inviato:", "A:", "Oggetto:"]),
    ("pt", ["De:", "Enviado:", "Para:", "Assunto:"]),
    ("nl", ["Van:", "Verzonden:", "Aan:", "Onderwerp:"]),
    ("da", ["Fra:", "Sendt:", "Til:", "Emne:"]),
    ("sv", ["Från:", "Skickat:", "Till:", "Ämne:"]),
    ("no", ["Fra:", "Dato:", "Til:", "Emne:"]),
    ("fi", ["Lähettäjä:", "Lähetetty:", "Vastaanottaja:", "Aihe:"]),
    ("pl", ["Od:", "Wysłano:", "Do:", "Temat:"]),
    ("cs", ["Od:", "Odesláno:", "Komu:", "Předmět:"]),
    ("ru", ["От:", "Отправлено:", "Кому:", "Тема:"]),
    ("ja", ["差出人:", "送信日時:", "宛先:", "件名:"]),
    ("zh", ["发件人:", "发送时间:", "收件人:", "主题:"]),
    ("zh", ["寄件者：", "寄件日期：", "收件者：", "主旨："]),
    ("ko", ["보낸 사람:", "보낸 날짜:", "받는 사람:", "제목:"]),
    ("he", ["מאת:", "נשלח:", "אל:", "נושא:"]),
    ("ar", ["من:", "تم الإرسال:", "إلى:", "الموضوع:"]),
    ("tr", ["Kimden:", "Gönderildi:", "Kime:", "Konu:"]),
    ("hu", ["Feladó:", "Elküldve:", "Címzett:", "Tárgy:"]),
];

fn block(labels: &[&str; 4], form: &str) -> String {
    let [from, date, to, subject] = labels;
    let lines = [
        format!("{from} Acme Desk <desk@acme.example>"),
        format!("{date} 04.05.2026 16:20"),
        format!("{to} Mara Lindqvist"),
        format!("{subject} Ticket 12"),
    ];
    match form {
        "bold" => lines.map(|line| line.replacen(':', ":*", 1)).map(|line| format!("*{line}")).join("\n"),
        "spaced" => lines.join("\n\n"),
        _ => lines.join("\n"),
    }
}

#[test]
fn header_blocks_are_cut_in_every_language() {
    let mut wrong = Vec::new();
    for (language, labels) in BLOCK_LABELS {
        for form in ["plain", "bold", "spaced"] {
            for rule in ["", "________________________________\n", "-----Original Message-----\n"] {
                let text = format!("The answer is seven.\n\n{rule}{}\n\nHow many?\n\nAcme\n", block(labels, form));
                for subject in [Some("Re: Ticket 12"), Some("Ticket 12"), None] {
                    let mail = plain(subject, &text);
                    if mail.body.text() != "The answer is seven." || mail.forwarded {
                        wrong.push(format!("{language} {form} {rule:?} {subject:?}: {:?}", mail.body.text()));
                    }
                }
            }
        }
        let forwarded =
            plain(Some("Fwd: Ticket 12"), &format!("Can you take this?\n\n{}\n\nHow many?\n", block(labels, "plain")));
        if forwarded.original_from.as_deref() != Some("desk@acme.example")
            || !forwarded.body.text().ends_with("How many?")
        {
            wrong.push(format!("{language} forward: {:?} {:?}", forwarded.original_from, forwarded.body.text()));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn forwarded_mail_keeps_its_text_in_every_language() {
    for marker in [
        "---------- Forwarded message ---------",
        "-------- Weitergeleitete Nachricht --------",
        "---------- Message transféré ----------",
        "---------- Mensaje reenviado ----------",
        "---------- Messaggio inoltrato ----------",
        "---------- Mensagem encaminhada ----------",
        "---------- Doorgestuurd bericht ----------",
        "---------- Videresendt meddelelse ----------",
        "---------- Vidarebefordrat meddelande ----------",
        "---------- Välitetty viesti ----------",
        "---------- Przekazana wiadomość ----------",
        "---------- Přeposlaná zpráva ----------",
        "---------- Пересылаемое сообщение ----------",
        "---------- 転送メッセージ ----------",
        "---------- 转发的邮件 ----------",
        "---------- 전달된 메시지 ----------",
        "---------- הודעה שהועברה ----------",
        "---------- رسالة مُعاد توجيهها / محولة ----------",
        "---------- Yönlendirilmiş/İletilen ileti ----------",
        "Begin forwarded message:",
        "Anfang der weitergeleiteten Nachricht:",
    ] {
        let text = format!(
            "Can billing take this?\n\n{marker}\nFrom: Priya <priya@kunde.example>\nDate: Mon, May 4, 2026\nSubject: Double charge\n\
             To: <jonas@acme.example>\n\nI was charged twice.\n\nOn Sun, 3 May 2026 at 9:00, Acme <a@acme.example> wrote:\n> Your receipt\n"
        );
        let mail = plain(Some("Double charge"), &text);
        assert_eq!(mail.body.text(), "Can billing take this?\n\nI was charged twice.", "{marker}");
        assert_eq!(mail.original_from.as_deref(), Some("priya@kunde.example"), "{marker}");
        assert_eq!(mail.original_subject.as_deref(), Some("Double charge"), "{marker}");
        assert_eq!(mail.kind, MailKind::Forwarded, "{marker}");
    }
}

#[test]
fn a_pointer_above_a_block_passes_the_mail_on() {
    for (pointer, kept) in
        [("FYI", true), ("Please see below.", true), ("Zur Info", true), ("Yes, Friday is fine.", false)]
    {
        let mail = plain(
            Some("Ticket 12"),
            &format!("{pointer}\n\n{}\n\nMy lamp is broken.\n", block(&BLOCK_LABELS[0].1, "plain")),
        );
        assert_eq!((mail.forwarded, mail.body.text().contains("My lamp")), (kept, kept), "{pointer}");
    }
}

#[test]
fn a_quoted_forward_loses_its_quote_marks() {
    let text = "See below.\n\n> Begin forwarded message:\n> \n> From: Priya <priya@kunde.example>\n> Subject: Broken\n\
                > Date: 4 May 2026 at 18:02:11 CEST\n> To: jonas@acme.example\n> \n> My lamp is broken.\n>> Did you try it?\n> Yes.\n";
    let mail = plain(Some("Fwd: Broken"), text);
    assert_eq!(mail.body.text(), "See below.\n\nMy lamp is broken.\nYes.");
    let at = mail.body.text().find("My lamp").unwrap();
    assert_eq!(&mail.body.posted()[mail.body.posted_range(at..at + 7)], "My lamp");
}

#[test]
fn footers_of_mail_programs_are_cut() {
    for footer in [
        "Sent from my iPhone",
        "Sent from my Galaxy",
        "Sent from Yahoo Mail on Android",
        "Sent from Outlook for iOS<https://aka.ms/o0ukef>",
        "Get Outlook for Android",
        "Sent with Proton Mail secure email.",
        "Von meinem iPad gesendet",
        "Gesendet mit der GMX Mail App",
        "Envoyé de mon iPhone",
        "Envoyé à partir d’Outlook pour iOS",
        "Enviado desde mi iPhone",
        "Enviado do meu iPhone",
        "Inviato da iPhone",
        "Inviato dal mio dispositivo Android",
        "Verstuurd vanaf mijn iPhone",
        "Verzonden vanuit Mail voor Windows",
        "Sendt fra min iPhone",
        "Skickat från min iPhone",
        "Lähetetty iPhonesta",
        "Wysłane z iPhone'a",
        "Odesláno z iPhonu",
        "Отправлено с iPhone",
        "iPhone'umdan gönderildi",
        "iPhoneから送信",
        "发自我的 iPhone",
        "從我的 iPhone 傳送",
        "나의 iPhone에서 보냄",
        "נשלח מה-iPhone שלי",
        "مرسل من الـ iPhone",
    ] {
        let mail = plain(Some("Lamp"), &format!("The lamp is broken.\n\n{footer}\n"));
        assert_eq!(mail.body.text(), "The lamp is broken.", "{footer}");
        assert_eq!(mail.cut[0].why, CutReason::Signature, "{footer}");
    }
}

#[test]
fn words_that_only_look_like_furniture_stay() {
    for text in [
        "On Monday your driver came at 10:30 and wrote:\nnothing at all on the card.\nWhere is my parcel?",
        "From Berlin to Munich on 3 May, two seats.\nTo: be confirmed\nSubject: to change\nPlease book it.",
        "- two blue mugs\n- one tea pot\n-- both broken\n\nCan you send them again?",
        "Sent from the warehouse on Monday, it never arrived.",
        "I wrote the following on the form:\n\nPlease call me after six.",
        "My quote number is 12.\n> error: no space left\n> abort\nWhat does it mean?",
        "Le problème vient du lecteur.\nLe 5 mai, j'ai écrit à votre service :\naucune réponse.",
        "This email address is wrong, please change it to ann@x.example",
        "If you have received my parcel, please tell me.\n\nThis message is the third one I send you.",
        "Please forward this message to accounts:\n\nInvoice 12 is paid twice.",
        "Caution: the glass door at the external entrance is broken.",
        "Dear team,\nOn 3 May 2026 I ordered a lamp and on 4 May you wrote:\n\"it ships today\".\nIt did not.",
        "On 03/05/2026 your driver wrote:\n\nnobody at home\n\nbut we were here all day.",
        "You told me to reply above this line but it does not work.\nPlease help.",
        "You have a new message from the website.\n\nFrom: Ann <ann@x.example>\nDate: 3 May 2026 10:12\nSubject: Lamp\nMessage: my lamp is broken",
        "Warning: there is water outside the door!\nPlease come.",
        "The email is about the outside lights.",
        "Diese E-Mail schreibe ich Ihnen außerhalb der Öffnungszeiten.",
        "Este correo es para decir que estoy fuera de casa el lunes.",
        "Name: Lena Ruiz\nOrder: A-1042\nDate: 3 May 2026\nProblem: it is late",
        "The file is:\n\n-----\nnumber 12\n-----\nnumber 13\n\nWhich one is right?",
        "Hi,\n\n* one\n* two\n\n***\n\nthree",
        "The order:\n--\nnumber 12\na blue lamp\n--\nCan you send it again?",
    ] {
        let mail = plain(Some("Question"), text);
        assert_eq!(collapse(mail.body.text()), collapse(text), "{:?}", mail.zones);
        assert!(!mail.forwarded && mail.cut.is_empty(), "{text}");
    }
}

#[test]
fn answers_between_and_below_quotes_stay() {
    let text = "On 4 May 2026 at 16:20, Acme Desk <desk@acme.example> wrote:\n> Which browser?\nFirefox.\n> Which system?\n\nLinux.\n\n> Since when?\n\n\
                Since Monday.\n\nMara\n";
    assert_eq!(plain(Some("Re: x"), text).body.text(), "Firefox.\nLinux.\n\nSince Monday.\n\nMara");
    let bottom =
        "> On 4 May 2026, at 16:20, Acme <desk@acme.example> wrote:\n> \n> Which browser?\n\nFirefox, as I said.\n";
    assert_eq!(plain(Some("AW: x"), bottom).body.text(), "Firefox, as I said.");
}

#[test]
fn an_earlier_mail_keeps_its_own_forwards_to_itself() {
    let text = "Thanks, that works.\n\nOn 4 May 2026 at 16:20, Acme <a@acme.example> wrote:\n> See below.\n>\n\
                > ---------- Forwarded message ---------\n> From: Bo <bo@acme.example>\n> Date: 3 May 2026\n> Subject: Lamps\n>\n> Old words.\n";
    let mail = plain(Some("Re: Lamps"), text);
    assert_eq!((mail.body.text(), mail.forwarded), ("Thanks, that works.", false));
    let bare = "Please see below.\n\n-----Original message-----\nFrom: Brenda\nPlease change the message on my cake.\n";
    assert!(plain(Some("FW: cake"), bare).body.text().ends_with("change the message on my cake."));
    assert_eq!(plain(Some("Re: cake"), bare).body.text(), "Please see below.");
}

#[test]
fn line_ends_of_every_system_are_lines() {
    let text = "Yes.\n\nOn 4 May 2026 at 16:20, Acme <a@acme.example> wrote:\n> Really?\n";
    for ends in ["\n", "\r\n", "\r"] {
        assert_eq!(plain(Some("Re: x"), &text.replace('\n', ends)).body.text(), "Yes.", "{ends:?}");
    }
}

#[test]
fn where_nothing_would_remain_the_whole_text_stays() {
    let mail = plain(Some("Re: x"), "> On 4 May 2026, at 16:20, Acme <desk@acme.example> wrote:\n> Which browser?\n");
    assert!(mail.notes.contains(&Note::KeptWhole));
    assert!(mail.body.text().contains("Which browser?"));
    assert!(mail.cut.is_empty());
}

#[test]
fn html_replies_are_cut_by_structure_in_any_language() {
    let own = "<div dir=ltr>The lamp is broken.</div>";
    for quote in [
        "<div class=gmail_quote><div class=gmail_attr>Ar Lua, scríobh Acme:<br></div><blockquote class=gmail_quote>Which lamp?</blockquote></div>",
        "<div class=moz-cite-prefix>Acme skrifaði þann 4.5.:</div><blockquote type=cite>Which lamp?</blockquote>",
        "<blockquote type=\"cite\"><div>Which lamp?</div></blockquote>",
        "<div id=appendonsend></div><hr><div id=divRplyFwdMsg><b>Sendandi:</b> Acme<br><b>Sent:</b> mánudagur</div><div>Which lamp?</div>",
        "<div class=x_x_yahoo_quoted>Which lamp?</div>",
        "<div class=protonmail_quote>Acme wrote<blockquote class=protonmail_quote>Which lamp?</blockquote></div>",
        "<div class=\"gmail_signature\">Mara<br>Head of Lamps</div>",
        "<div id=Signature><p>Mara</p></div>",
        "<div name=messageReplySection>Which lamp?</div>",
    ] {
        let mail = html(Some("Re: Lamp"), &format!("<html><body>{own}{quote}</body></html>"));
        assert_eq!(mail.body.text(), "The lamp is broken.", "{quote}");
        assert!(!mail.cut.is_empty(), "{quote}");
    }
}

#[test]
fn html_answers_between_quotes_and_own_blockquotes_stay() {
    let inline = "<div class=gmail_quote><div class=gmail_attr>On Mon, May 4, 2026 at 9:00 Acme &lt;a@acme.example&gt; wrote:</div>\
                  <blockquote class=gmail_quote>Which lamp?</blockquote><div>The blue one.</div><blockquote class=gmail_quote>Since when?</blockquote>\
                  <div>Since Monday.</div></div>";
    assert_eq!(html(Some("Re: Lamp"), inline).body.text(), "The blue one.\n\nSince Monday.");
    let own = "<p>The screen says:</p><blockquote>Error 12</blockquote><p>What now?</p>";
    assert_eq!(html(Some("Error"), own).body.text(), "The screen says:\n\nError 12\n\nWhat now?");
}

#[test]
fn html_forwards_keep_the_forwarded_text() {
    let gmail = "<div>Please help.</div><div class=gmail_quote><div class=gmail_attr>---------- Forwarded message ---------<br>From: <b>Priya</b> \
                 &lt;<a>priya@kunde.example</a>&gt;<br>Date: Mon, May 4, 2026 at 6:02 PM<br>Subject: Lamp<br>To: &lt;j@acme.example&gt;<br></div>\
                 <br><br><div>My lamp is broken.</div></div>";
    let mail = html(Some("Fwd: Lamp"), gmail);
    assert_eq!(collapse(mail.body.text()), "Please help. My lamp is broken.");
    assert_eq!(mail.original_from.as_deref(), Some("priya@kunde.example"));
    let outlook = "<p>Please help.</p><hr><div id=divRplyFwdMsg><b>From:</b> Priya &lt;priya@kunde.example&gt;<br><b>Sent:</b> Monday, May 4, 2026 6:02 PM<br>\
                   <b>To:</b> Jonas<br><b>Subject:</b> Lamp</div><div>My lamp is broken.</div>";
    let mail = html(Some("FW: Lamp"), outlook);
    assert_eq!(collapse(mail.body.text()), "Please help. My lamp is broken.");
    let apple = "<div>Please help.<br><blockquote type=cite><div>Begin forwarded message:</div><br><div><b>From: </b>Priya &lt;priya@kunde.example&gt;</div>\
                 <div><b>Subject: </b>Lamp</div><div><b>Date: </b>4 May 2026 at 18:02:11 CEST</div><div><b>To: </b>j@acme.example</div><br>\
                 <div>My lamp is broken.</div></blockquote></div>";
    let mail = html(Some("Fwd: Lamp"), apple);
    assert_eq!(collapse(mail.body.text()), "Please help. My lamp is broken.");
    assert!(mail.forwarded);
}

#[test]
fn reply_markers_of_helpdesks_cut_what_is_below() {
    for marker in [
        "##- Please type your reply above this line -##",
        "--- Please reply above this line ---",
        "=== Bitte antworten Sie oberhalb dieser Zeile ===",
        "##- Veuillez répondre au-dessus de cette ligne -##",
        "----- Antwort bitte über dieser Zeile -----",
        "## この行より上に返信してください ##",
        "Please reply above this line to add a comment",
        "-- please write your reply above\nthis line --",
    ] {
        let mail = plain(
            Some("Re: [12] Lamp"),
            &format!("It works again.\n\n{marker}\n\nTicket 12 was updated:\nWe sent a lamp.\n"),
        );
        assert_eq!(mail.body.text(), "It works again.", "{marker}");
    }
}

#[test]
fn notices_and_banners_are_cut_from_the_ends() {
    let text = "[EXTERNAL]\n\nThe lamp is broken.\n\nMara\n\nThis e-mail and any attachments are confidential and may be privileged. If you are not \
                the intended recipient please delete it.\n\nPlease consider the environment before printing this e-mail.\n";
    let mail = plain(Some("Lamp"), text);
    assert_eq!(mail.body.text(), "The lamp is broken.\n\nMara");
    let kinds: Vec<_> = mail.zones.iter().map(|zone| zone.kind).collect();
    assert_eq!(kinds, [ZoneKind::Banner, ZoneKind::Text, ZoneKind::Disclaimer]);
    let german = "Die Lampe ist kaputt.\n\nDiese E-Mail kann vertrauliche Informationen enthalten. Wenn Sie nicht der richtige Adressat sind, \
                  löschen Sie sie bitte.\n";
    assert_eq!(plain(Some("Lampe"), german).body.text(), "Die Lampe ist kaputt.");
}

#[test]
fn signed_text_loses_its_armour() {
    let text = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe lamp is broken.\n-----BEGIN PGP SIGNATURE-----\n\niQEzBAEBCAAdFiEE\n=abcd\n\
                -----END PGP SIGNATURE-----\n";
    assert_eq!(plain(Some("Lamp"), text).body.text(), "The lamp is broken.");
    let encrypted = b"Subject: x\n\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n";
    let mail = clean(&Posted::Mime(encrypted), &CleanOptions::default());
    assert!(mail.body.is_blank() && mail.notes.contains(&Note::Encrypted));
}

#[test]
fn what_is_cut_can_be_kept() {
    let text = "Yes.\n\nOn 4 May 2026 at 16:20, Acme <a@acme.example> wrote:\n> Really?\n\n-- \nMara\n";
    let fields = Fields { subject: Some("Re: x"), text: Some(text), ..Fields::default() };
    let options = CleanOptions { keep_quotes: true, keep_signatures: true, ..CleanOptions::default() };
    let mail = clean(&Posted::Fields(fields), &options);
    assert!(mail.body.text().contains("> Really?") && mail.body.text().ends_with("Mara"));
    assert!(mail.cut.is_empty());
}

#[test]
fn warnings_of_gateways_are_cut_from_the_top() {
    for banner in [
        "[External Email] Please use caution when opening attachments.",
        "***EXTERNAL EMAIL*** This message is from an external sender. Think before you click!",
        "This Message Is From an External Sender\nThis message came from outside your organization.",
        "You don't often get email from mara@x.example. Learn why this is important<https://aka.ms/x>",
        "EXTERNAL: Do not click links or open attachments if you do not recognize the sender.",
        "⚠ External sender. Be careful with links and attachments.",
        "ACHTUNG: Diese E-Mail kommt von einem externen Absender.",
        "Diese E-Mail stammt von außerhalb der Organisation.",
        "ATTENTION : courriel externe. Ne cliquez pas sur les liens.",
        "WARNING: This email came from outside Acme.\nBe careful with links and attachments.",
        "EXTERNAL EMAIL",
        "[EXT]",
        "*** EXTERN ***",
        "CAUTION - EXTERNAL EMAIL: Do not open attachments from unknown senders.",
        "Sender is external to the company",
        "AVISO: Este correo es de un remitente externo.",
        "ATTENZIONE: questa email proviene dall'esterno.",
    ] {
        let mail = plain(Some("Lamp"), &format!("{banner}\n\nThe lamp is broken.\n"));
        assert_eq!(mail.body.text(), "The lamp is broken.", "{banner}");
        assert_eq!(mail.cut[0].why, CutReason::Banner, "{banner}");
    }
}

#[test]
fn legal_notices_are_cut_from_the_end() {
    for notice in [
        "NOTICE: This email may contain privileged information. If you are not the recipient delete it.",
        "Privileged/Confidential Information may be contained in this message. If you are not the addressee, destroy it.",
        "*** This message is intended for the named person only and may be confidential. ***",
        "The contents of this message are confidential and for the addressee only.",
        "This transmission may contain confidential information intended solely for the recipient.",
        "Disclaimer: opinions are those of the author and not of the company at all, ever.",
        "Ce courriel et ses pièces jointes sont confidentiels et destinés à l'usage exclusif du destinataire.",
        "Este mensaje y sus anexos son confidenciales y están dirigidos a su destinatario.",
        "Die Informationen in dieser E-Mail sind vertraulich und ausschließlich für den Adressaten bestimmt.",
        "Der Inhalt dieser E-Mail ist vertraulich und ausschließlich für den Adressaten bestimmt.",
        "Le contenu de ce message est confidentiel et réservé à son destinataire unique, merci.",
        "Dit bericht is uitsluitend bestemd voor de geadresseerde en kan vertrouwelijk zijn.",
        "Think before you print: consider the environment before printing this mail.",
        "Please consider the environment before printing this email.",
        "Acme Ltd is registered in England and Wales. Registered number 123456. Registered office: 1 Street, London.",
        "Sitz der Gesellschaft: Berlin, Amtsgericht Charlottenburg HRB 12345, Geschäftsführer: A. Beispiel",
    ] {
        let mail = plain(Some("Lamp"), &format!("The lamp is broken.\n\nMara\n\n{notice}\n"));
        assert_eq!(mail.body.text(), "The lamp is broken.\n\nMara", "{notice}");
        assert_eq!(mail.cut[0].why, CutReason::Disclaimer, "{notice}");
    }
}

#[test]
fn headers_of_many_programs_are_cut() {
    for header in [
        "On Monday, May 4, 2026, Acme Desk <desk@acme.example> wrote:",
        "On 5/4/26, Acme Desk <desk@acme.example> wrote:",
        "On Mon, 04 May 2026 16:20:11 +0200\nAcme Desk <desk@acme.example> wrote:",
        "desk@acme.example wrote on 05/04/2026 04:20:11 PM:",
        "Acme Desk wrote on 4/5/26 16:20:",
        "On May 4, 2026 at 4:20:11 PM, Acme Desk (desk@acme.example) wrote:",
        "---- On Mon, 04 May 2026 16:20:11 +0200 Acme Desk <desk@acme.example> wrote ----",
        "Quoting Acme Desk <desk@acme.example>:",
        "Zitat von Acme Desk <desk@acme.example>:",
        "Acme Desk via Zendesk <desk@acme.example> wrote:",
        "Le 4 mai 2026 à 16:20, Acme Desk <desk@acme.example> a écrit :",
        "Am 04.05.2026 16:20 schrieb desk@acme.example:",
        "> Am 04.05.2026 um 16:20 schrieb Acme Desk <desk@acme.example>:",
        "From: Acme Desk [mailto:desk@acme.example] \nSent: Monday, May 04, 2026 4:20 PM\nTo: mara@x.example\nCc: bo@x.example\nSubject: RE: Lamp\nImportance: High",
        "*From:* Acme Desk <desk@acme.example>\n*Date:* Mon, May 4, 2026 at 4:20 PM\n*To:* Mara\n*Subject:* Lamp",
        "From:	Acme Desk <desk@acme.example>\nTo:	Mara <m@x.example>\nDate:	05/04/2026 04:20 PM\nSubject:	Lamp",
        "Acme Desk---05/04/2026 04:20:11 PM---Which lamp?\n\nFrom: Acme Desk <desk@acme.example>\nTo: Mara\nDate: 05/04/2026 04:20 PM\nSubject: Lamp",
        "-------- Original message --------\nFrom: Acme Desk <desk@acme.example>\nDate: 04/05/2026 16:20 (GMT+01:00)\nTo: Mara <m@x.example>\nSubject: Lamp",
        "-----Original Message-----\nFrom: Acme Desk",
        "_____________________________________________\nVon: Acme Desk <desk@acme.example>\nGesendet: Montag, 4. Mai 2026 16:20\nAn: 'Mara'\nBetreff: AW: Lampe",
        "Gesendet: Montag, 04. Mai 2026 um 16:20 Uhr\nVon: \"Acme Desk\" <desk@acme.example>\nAn: mara@x.example\nBetreff: Lampe",
        "El 04/05/2026 a las 16:20, Acme Desk <desk@acme.example> escribió:",
        "Op 04-05-2026 om 16:20 schreef Acme Desk:",
        "W dniu 2026-05-04 16:20:11 użytkownik Acme Desk <desk@acme.example> napisał:",
        "Dňa 4. mája 2026 o 16:20 Acme Desk <desk@acme.example> napísal:",
        "4 мая 2026 г., в 16:20, Acme Desk <desk@acme.example> написал(а):",
        "Понедельник, 4 мая 2026, 16:20 +03:00 от Acme Desk <desk@acme.example>:",
        "------------------ 原始邮件 ------------------\n发件人: \"Acme\" <desk@acme.example>;\n发送时间: 2026年5月4日(星期一) 下午4:20\n收件人: \"Mara\";\n主题: Lamp",
        "At 2026-05-04 16:20:11, \"Acme Desk\" <desk@acme.example> wrote:",
        "2026년 5월 4일 (월) 오후 4:20, Acme Desk <desk@acme.example>님이 작성:",
        "-----Original Message-----\nFrom: \"Acme\"<desk@acme.example>\nTo: <m@x.example>;\nCc:\nSent: 2026-05-04 (월) 16:20:11\nSubject: Lamp",
        "On Mon, May 4, 2026, 4:20 PM Acme Desk <desk@acme.example> wrote:",
        "Mara, on 4 May 2026 Acme Desk <desk@acme.example> wrote:",
        "Sent: Monday, May 04, 2026 at 4:20 PM\nFrom: \"Acme Desk\" <desk@acme.example>\nTo: m@x.example\nSubject: Lamp",
        "From: Acme Desk <desk@acme.example> On Behalf Of Bo\nSent: Monday, May 4, 2026 4:20 PM\nTo: Mara\nSubject: Lamp",
        "From: Acme Desk Date: Monday, 4 May 2026 at 16:20 To: Mara <m@x.example> Subject: Lamp",
    ] {
        let quote = if header.starts_with("> ") { "> Which lamp?" } else { "Which lamp?" };
        for quote in ["> Which lamp?\n> Acme", quote] {
            let mail = plain(Some("Re: Lamp"), &format!("The blue one.\n\n{header}\n\n{quote}\n"));
            assert_eq!(mail.body.text(), "The blue one.", "{header} {quote}");
        }
    }
}

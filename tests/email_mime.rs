//! Raw mail as programs send it: headers, charsets, transfer encodings, structures and kinds.

use postroom::email::{CleanEmail, CleanOptions, Fields, MailKind, Note, Posted, clean};

fn mime(mail: &str) -> CleanEmail {
    clean(&Posted::Mime(mail.as_bytes()), &CleanOptions::default())
}

fn bytes(mail: &[u8]) -> CleanEmail {
    clean(&Posted::Mime(mail), &CleanOptions::default())
}

#[test]
fn subjects_are_decoded_however_they_are_sent() {
    for (raw, expected) in [
        (&b"Subject: =?UTF-8?B?VMO8cg==?= =?UTF-8?Q?_zu?=\n\nx"[..], "Tür zu"),
        (b"Subject: =?utf-8?Q?T=C3=BCr_?=\r\n =?utf-8?Q?zu?=\r\n\r\nx", "Tür zu"),
        (b"SUBJECT:=?ISO-8859-1?Q?T=FCr?=: zu\n\nx", "Tür: zu"),
        (b"Subject: =?utf-8?Q?T=C3?= =?utf-8?Q?=BCr?=\n\nx", "Tür"),
        (b"Subject: =?gb2312?B?1tDOxA==?=\n\nx", "中文"),
        (b"Subject: =?euc-kr?B?x9GxuQ==?=\n\nx", "한국"),
        (b"Subject: =?Big5?B?pKSk5Q==?=\n\nx", "中文"),
        (b"Subject: =?shift_jis?B?k/qWew==?=\n\nx", "日本"),
        (b"Subject: =?iso-2022-jp?B?GyRCRnxLXBsoQg==?= =?iso-2022-jp?B?GyRCOGwbKEI=?=\n\nx", "日本語"),
        (b"Subject: =?koi8-r?B?8NLJ18XU?=\n\nx", "Привет"),
        (b"Subject: =?utf-7?Q?T+APw-r?=\n\nx", "Tür"),
        (b"Subject: =?us-ascii?Q?T=C3=BCr?=\n\nx", "Tür"),
        (b"Subject: =?x-strange?Q?T=FCr?=\n\nx", "Tür"),
        (b"Subject: T\xc3\xbcr zu\n\nx", "Tür zu"),
        (b"Subject: T\xfcr zu\n\nx", "Tür zu"),
        (b"Subject: \xc7\xd1\xb1\xb9\nContent-Type: text/plain; charset=\"euc-kr\"\n\nx", "한국"),
        (b"Subject: T\xfcr zu\nContent-Type: text/plain; charset=utf-8\n\nx", "Tür zu"),
        (b"Subject: \"=?utf-8?Q?T=C3=BCr?=\" zu\n\nx", "\"Tür\" zu"),
        (b"Subject: =?utf-8?Q?T=C3=BCr auf und zu?=\n\nx", "Tür auf und zu"),
        (b"Subject: a\n\tb\n  c\n\nx", "a b c"),
        (b"\xef\xbb\xbfSubject: a\n\nx", "a"),
        (b"\r\n\r\nSubject: a\n\nx", "a"),
        (b"From ann@x.example Mon May  4 16:20:00 2026\nSubject: a\n\nx", "a"),
        (b"From: b@x.example\rSubject: a\r\rx", "a"),
        (b"Subject: 100% =?= ok?\n\nx", "100% =?= ok?"),
    ] {
        let mail = bytes(raw);
        assert_eq!(mail.subject.text(), expected, "{}", String::from_utf8_lossy(raw));
        assert_eq!(mail.body.text(), "x", "{}", String::from_utf8_lossy(raw));
    }
}

#[test]
fn bodies_are_decoded_however_they_are_labelled() {
    let body = |kind: &str, encoding: &str, body: &[u8]| {
        let mut mail = format!("Content-Type: {kind}\nContent-Transfer-Encoding: {encoding}\n\n").into_bytes();
        mail.extend(body);
        bytes(&mail).body.text().to_owned()
    };
    for (kind, encoding, source, expected) in [
        ("text/plain; charset=utf-8", "8bit", "Tür".as_bytes(), "Tür"),
        ("text/plain; charset=iso-8859-1", "8bit", b"T\xfcr", "Tür"),
        ("text/plain; charset=windows-1252", "8bit", "Tür".as_bytes(), "Tür"),
        ("text/plain; charset=utf-8", "8bit", b"T\xfcr", "Tür"),
        ("text/plain; charset=\"nobody-knows\"", "8bit", b"T\xfcr", "Tür"),
        ("text/plain", "8bit", "Tür".as_bytes(), "Tür"),
        ("text/plain; charset=cp1252", "quoted-printable", b"T=fcr =80 5", "Tür € 5"),
        ("text/plain; charset=utf-16", "base64", b"//5UAPwAcgA=", "Tür"),
        ("text/plain; charset=utf-8", "BASE64", b"VMO8\ncg\n", "Tür"),
        ("text/plain; charset=utf-8", "base64", b"VMO8cg==\nIHp1\n", "Tür zu"),
        ("text/plain; charset=utf-8", "quoted-printable", b"T=C3=BCr =\nzu 1=2 =", "Tür zu 1=2"),
        ("text/plain; charset=gbk", "8bit", b"\xd6\xd0\xce\xc4", "中文"),
        ("text/plain; charset=ks_c_5601-1987", "8bit", b"\xc7\xd1\xb1\xb9", "한국"),
        ("text/plain; charset=iso-8859-2", "8bit", b"\xb3\xf3d\xbc", "łódź"),
        ("text/plain; charset=x-user-defined", "8bit", b"T\xfcr", "Tür"),
        ("text/html", "8bit", b"<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
        ("text/plain; charset", "7bit", b"plain", "plain"),
        ("text", "7bit", b"plain", "plain"),
        ("TEXT/PLAIN; CHARSET=\"UTF-8\"", "8BIT", "Tür".as_bytes(), "Tür"),
    ] {
        assert_eq!(body(kind, encoding, source), expected, "{kind} {encoding}");
    }
}

#[test]
fn the_text_is_found_in_any_structure() {
    let part = |boundary: &str, kind: &str, body: &str| format!("--{boundary}\nContent-Type: {kind}\n\n{body}\n");
    let alternative = format!(
        "Content-Type: multipart/alternative; boundary=alt\n\n{}{}--alt--\n",
        part("alt", "text/plain", "The lamp is broken."),
        part("alt", "text/html", "<p>The lamp is broken.</p>")
    );
    let related = format!(
        "Content-Type: multipart/related; boundary=rel\n\n--rel\n{alternative}\n--rel\nContent-Type: image/png\nContent-ID: <1>\n\nAAAA\n--rel--\n"
    );
    let mixed = |inner: &str| {
        format!(
            "Content-Type: multipart/mixed; boundary=mix\n\n--mix\n{inner}\n--mix\nContent-Type: application/pdf; name=a.pdf\n\nAAAA\n--mix--\n"
        )
    };
    let signed = format!(
        "Content-Type: multipart/signed; boundary=sig\n\n--sig\n{alternative}\n--sig\nContent-Type: application/pgp-signature\n\nxx\n--sig--\n"
    );
    for (mail, attachments) in [
        (alternative.clone(), 0),
        (related.clone(), 0),
        (mixed(&related), 1),
        (mixed(&alternative), 1),
        (signed.clone(), 0),
        (mixed(&signed), 1),
    ] {
        let read = mime(&mail);
        assert_eq!(read.body.text(), "The lamp is broken.", "{mail}");
        assert_eq!(read.attachments, attachments, "{mail}");
    }
}

#[test]
fn attachments_are_counted_and_never_read() {
    let mail = mime(
        "Subject: log\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nSee the log.\n\
         --b\nContent-Type: text/plain; name=\"a.log\"\n\nsecret log\n--b\nContent-Type: text/html\nContent-Disposition: attachment; filename*=utf-8''b.html\n\n\
         <p>secret page</p>\n--b\nContent-Type: text/csv\n\nsecret,table\n--b\nContent-Type: text/plain\nContent-Disposition: inline\n\nThank you.\n--b--\n",
    );
    assert_eq!(mail.body.text(), "See the log.\nThank you.");
    assert_eq!(mail.attachments, 3);
}

#[test]
fn a_forward_as_attachment_is_read_and_an_attached_mail_is_not() {
    let inner = "Content-Type: message/rfc822\n\nFrom: Priya <priya@kunde.example>\nSubject: Lamp\nContent-Type: text/html\n\n<p>My lamp is <b>broken</b>.</p>\n";
    let alone = mime(&format!(
        "Subject: Fwd: Lamp\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n\n--b\n{inner}--b--\n"
    ));
    assert_eq!(alone.body.text(), "My lamp is broken.");
    assert_eq!((alone.kind, alone.original_from.as_deref()), (MailKind::Forwarded, Some("priya@kunde.example")));
    assert_eq!(alone.original_subject.as_deref(), Some("Lamp"));
    let handed_on = mime(&format!(
        "Subject: FW: Lamp\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nPlease handle.\n\n-- \nJonas\n--b\n{inner}--b--\n"
    ));
    assert_eq!(handed_on.body.text(), "Please handle.\nMy lamp is broken.");
    let at = handed_on.body.text().find("broken").unwrap();
    assert_eq!(&handed_on.body.posted()[handed_on.body.posted_range(at..at + 6)], "broken");
    let beside = mime(&format!(
        "Subject: Bill\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nWhy this bill?\n--b\n{inner}--b--\n"
    ));
    assert_eq!(beside.body.text(), "Why this bill?");
    assert!(!beside.forwarded && beside.attachments == 1);
}

#[test]
fn a_digest_gives_the_texts_of_its_mails() {
    let mail = mime(
        "Subject: digest\nContent-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: one\n\nFirst lamp.\n--b\n\nSubject: two\n\nSecond lamp.\n--b--\n",
    );
    assert_eq!(mail.body.text(), "First lamp.\nSecond lamp.");
}

#[test]
fn meeting_requests_give_their_words() {
    let mail = mime(
        "Subject: Repair\nContent-Type: text/calendar; method=REQUEST; charset=utf-8\n\nBEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:x\nEND:VTIMEZONE\nBEGIN:VEVENT\n\
         SUMMARY;LANGUAGE=en:Lift repair\nDESCRIPTION:The lift is stuck\\, again.\\nGate 2\n .\nDTSTART:20260504T100000Z\nEND:VEVENT\nEND:VCALENDAR\n",
    );
    assert_eq!(mail.body.text(), "Lift repair\nThe lift is stuck, again.\nGate 2.");
    assert!(mail.notes.contains(&Note::Calendar));
}

#[test]
fn encrypted_mail_is_empty_and_says_so() {
    for mail in [
        "Subject: x\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data\nContent-Transfer-Encoding: base64\n\nMIAGCSq\n",
        "Subject: x\nContent-Type: multipart/encrypted; protocol=\"application/pgp-encrypted\"; boundary=b\n\n--b\nContent-Type: application/pgp-encrypted\n\n\
         Version: 1\n--b\nContent-Type: application/octet-stream\n\n-----BEGIN PGP MESSAGE-----\n--b--\n",
    ] {
        let mail = mime(mail);
        assert!(mail.body.is_blank());
        assert!(mail.notes.contains(&Note::Encrypted) && mail.notes.contains(&Note::EmptyBody));
    }
}

#[test]
fn html_gives_what_a_reader_sees() {
    for (source, expected) in [
        ("<p>Hello<o:p></o:p></p><p>&nbsp;</p><p>Bye</p>", "Hello\n\nBye"),
        ("<div>a</div><div>b</div>", "a\nb"),
        ("a<br/>b<br><br>c", "a\nb\n\nc"),
        ("<ul><li>one<li>two</ul>", "one\ntwo"),
        ("<table><tr><th>A</th><td>1</td><tr><td>B<td>2</table>", "A 1\nB 2"),
        ("<head><title>t</title><style>p{}</style><body>text", "text"),
        ("<!-- x --><![CDATA[y]]>text<!--[if mso]>m<![endif]--><![if !mso]>seen<![endif]>", "textseen"),
        ("<span style=\"display: none !important\">no</span>yes<div hidden>no</div>", "yes"),
        ("<div style='font-size:1px;max-height:0;overflow:hidden'>no</div>yes", "yes"),
        ("<img src=\"data:image/png;base64,AAAA\" alt=pic>text", "text"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2 &euro; &#8364; &#x20ac; &unreal; &", "1 < 2 && 3 > 2 € € € &unreal; &"),
        ("<script>if (a<b) {}</script><style>a>b{}</style>text", "text"),
        ("write to <ann@x.example> please", "write to <ann@x.example> please"),
        ("un<b>break</b>able", "unbreakable"),
        ("<p>a<p>b<div>c</p>d</div>", "a\n\nb\nc\n\nd"),
        ("<pre>one\n  two</pre>", "one\ntwo"),
        ("<textarea>no</textarea><select><option>no</select>yes", "yes"),
        ("<a href='x>y'>link</a> > text", "link > text"),
    ] {
        let mail = clean(&Posted::Fields(Fields { html: Some(source), ..Fields::default() }), &CleanOptions::default());
        assert_eq!(mail.body.text(), expected, "{source}");
    }
}

#[test]
fn kinds_are_told_by_their_headers() {
    let long = "Subject: Lamp\nFrom: Ann <ann@x.example>\n";
    for (headers, kind, evidence) in [
        ("", MailKind::Person, None),
        ("Auto-Submitted: no\nX-Auto-Response-Suppress: All\n", MailKind::Person, None),
        ("Auto-Submitted: auto-replied\n", MailKind::AutoReply, Some("auto-submitted: auto-replied")),
        ("Auto-Submitted: auto-generated (rejected)\n", MailKind::AutoReply, Some("auto-submitted: auto-generated")),
        (
            "Auto-Submitted: auto-generated\nX-MS-Exchange-Generated-Message-Source: Mailbox Rules Agent\n",
            MailKind::Person,
            None,
        ),
        ("X-Autoreply: yes\n", MailKind::AutoReply, Some("x-autoreply")),
        ("Precedence: auto_reply\n", MailKind::AutoReply, Some("precedence: auto_reply")),
        ("Precedence: bulk\n", MailKind::List, Some("precedence: bulk")),
        ("List-Id: <lamps.x.example>\n", MailKind::List, Some("list-id")),
        ("X-Failed-Recipients: bob@y.example\n", MailKind::Bounce, Some("x-failed-recipients")),
    ] {
        let mail = mime(&format!("{long}{headers}\nThe lamp was not delivered.\n"));
        assert_eq!((mail.kind, mail.kind_evidence.as_deref()), (kind, evidence), "{headers}");
    }
}

#[test]
fn customers_who_write_about_delivery_are_no_bounce() {
    for subject in [
        "Order not delivered",
        "Undelivered parcel",
        "Delivery failed again",
        "Returned mail",
        "Fwd: Undelivered Mail Returned to Sender",
    ] {
        let mail = mime(&format!(
            "Subject: {subject}\nFrom: Ann <ann@x.example>\n\nIt says 550 5.1.1 user unknown and that the parcel could not be delivered.\n"
        ));
        assert!(
            mail.kind == MailKind::Person || mail.kind == MailKind::Forwarded,
            "{subject}: {:?}",
            mail.kind_evidence
        );
    }
}

#[test]
fn persons_whose_address_or_subject_sounds_like_a_mail_system_are_no_bounce() {
    for (headers, body) in [
        (
            "From: System Administrator <it@school.example>\nSubject: Friday\n",
            "Please bring 550 croissants to the following address. One child is allergic to nuts: are they safe?",
        ),
        (
            "From: Postmaster <postmaster@inn.example>\nSubject: Refund\n",
            "Please refund the 550 euro, the cake does not exist.",
        ),
        ("From: form@shop.example\nReturn-Path: <>\nSubject: My delivery is delayed\n", "I paid 550 euro on 5.5.26."),
        ("From: form@shop.example\nReturn-Path: <>\nSubject: Delivery problem: order not delivered\n", "Where is it?"),
        (
            "From: Postmaster <postmaster@inn.example>\nSubject: Order 4411\n",
            "The cake was not delivered. Where is it?",
        ),
        ("From: form@shop.example\nReturn-Path: <>\nSubject: Order\n", "Order 551 delivery was promised for Monday."),
        ("From: form@shop.example\nReturn-Path: <>\nSubject: Order\n", "Wanted on 5.5.26: delivery never came."),
        ("From: a@x.example\nSubject: 自動返信メールが届きません\n", "いつ届きますか。"),
        ("From: a@x.example\nSubject: R\u{e9}ponse automatique mais toujours pas de remboursement\n", "Rien."),
        ("From: a@x.example\nSubject: 不在通知が入っていましたが荷物が届きません\n", "いつ届きますか。"),
        ("From: a@x.example\nSubject: 부재중이라 택배를 못 받았습니다\n", "다시 보내 주세요."),
    ] {
        let mail = mime(&format!("{headers}\n{body}\n"));
        assert_eq!(mail.kind, MailKind::Person, "{headers} {:?}", mail.kind_evidence);
    }
    for subject in ["不在通知", "不在通知: 山田", "[부재중] 김철수"] {
        assert_eq!(
            mime(&format!("From: a@x.example\nSubject: {subject}\n\nx\n")).kind,
            MailKind::AutoReply,
            "{subject}"
        );
    }
}

#[test]
fn delivery_reports_and_absence_notices_are_told_apart() {
    for (headers, kind) in [
        (
            "From: Mail Delivery Subsystem <mailer-daemon@x.example>\nSubject: Delivery Status Notification (Failure)\n",
            MailKind::Bounce,
        ),
        ("From: postmaster@x.example\nSubject: Undeliverable: Your ticket\n", MailKind::Bounce),
        (
            "From: Microsoft Outlook <MicrosoftExchange329e71@x.example>\nSubject: Unzustellbar: Ihr Ticket\n",
            MailKind::Bounce,
        ),
        ("From: a@x.example\nReturn-Path: <>\nSubject: Undelivered Mail Returned to Sender\n", MailKind::Bounce),
        ("From: a@x.example\nReturn-Path: <>\nSubject: Automatic reply: Delivery failed\n", MailKind::AutoReply),
        ("From: a@x.example\nReturn-Path: <>\nSubject: Abwesenheitsnotiz: Lampe\n", MailKind::AutoReply),
        ("From: a@x.example\nSubject: R\u{e9}ponse automatique : Lampe\n", MailKind::AutoReply),
        ("From: a@x.example\nReturn-Path: <>\nSubject: Re: Lamp\n", MailKind::Person),
        ("From: postmaster@x.example\nSubject: Our mail server\n", MailKind::Person),
        ("From: shop@x.example\nAuto-Submitted: auto-generated\nSubject: Your order is delayed\n", MailKind::AutoReply),
        ("From: a@x.example\nSubject: Out of office chairs?\n", MailKind::Person),
    ] {
        assert_eq!(mime(&format!("{headers}\nHello, the lamp.\n")).kind, kind, "{headers}");
    }
}

#[test]
fn reports_are_told_by_their_type() {
    let report = |kind: &str, part: &str| {
        mime(&format!(
            "From: MAILER-DAEMON@x.example\nSubject: Report\nContent-Type: multipart/report; report-type={kind}; boundary=b\n\n--b\n\nA report.\n\
             --b\nContent-Type: message/{part}\n\nx: y\n--b--\n"
        ))
    };
    assert_eq!(report("delivery-status", "delivery-status").kind, MailKind::Bounce);
    assert_eq!(report("disposition-notification", "disposition-notification").kind, MailKind::AutoReply);
    assert_eq!(report("feedback-report", "feedback-report").kind, MailKind::AutoReply);
}

#[test]
fn fields_and_headers_of_json_are_used() {
    let headers =
        [("Auto-Submitted".to_owned(), "auto-replied".to_owned()), ("Message-ID".to_owned(), "<1@x>".to_owned())];
    let fields = Fields {
        subject: Some("=?utf-8?Q?T=C3=BCr?="),
        text: Some("  \n"),
        html: Some("<p>Away</p>"),
        from: Some("Ann <ann@x.example>"),
        headers: &headers,
    };
    let mail = clean(&Posted::Fields(fields), &CleanOptions::default());
    assert_eq!((mail.subject.text(), mail.body.text()), ("Tür", "Away"));
    assert_eq!((mail.from.as_deref(), mail.message_id.as_deref()), (Some("ann@x.example"), Some("1@x")));
    assert_eq!(mail.kind, MailKind::AutoReply);
}

/// Inbound webhooks hand over both alternatives, and the plain one may only send the reader to the other.
#[test]
fn a_text_that_only_points_to_the_html_is_not_taken_for_the_mail() {
    let read = |text: &str, html: &str| {
        let fields = Fields { text: Some(text), html: Some(html), ..Fields::default() };
        clean(&Posted::Fields(fields), &CleanOptions::default()).body.text().to_owned()
    };
    let stub = "Please view this message in an HTML capable mail program.";
    assert_eq!(read(stub, "<p>The cake was mouldy.</p>"), "The cake was mouldy.");
    assert_eq!(read(stub, "<p> </p>"), stub);
    assert_eq!(read("The cake was mouldy.", "<p>Sent by the form</p>"), "The cake was mouldy.");
}

/// Apple Mail puts files and attached mail beside the HTML, within the alternative that is not read.
#[test]
fn what_is_attached_within_the_other_alternative_is_counted_and_passed_on() {
    let of = |subject: &str, attached: &str| {
        mime(&format!(
            "Subject: {subject}\nContent-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: text/plain\n\nPlease handle this.\n\
             --a\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>Please handle this.</p>\n\
             --b\n{attached}\n--b--\n--a--\n"
        ))
    };
    let inner =
        "Content-Type: message/rfc822\n\nFrom: Priya <priya@x.example>\nSubject: Cake\n\nThe cake was mouldy.\n";
    let mail = of("Fwd: cake", inner);
    assert_eq!((mail.attachments, mail.kind), (1, MailKind::Forwarded));
    assert!(mail.body.text().contains("mouldy") && mail.body.text().matches("Please handle this").count() == 1);
    let file = "Content-Type: application/pdf\nContent-Disposition: attachment\n\nx\n";
    assert_eq!(of("cake", file).attachments, 1);
}

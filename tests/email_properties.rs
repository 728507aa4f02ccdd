//! What holds for any mail whatever: an answer, and offsets that point into it.

use postroom::email::{AlignedText, CleanEmail, CleanOptions, Fields, Posted, clean};
use proptest::prelude::*;

/// Every range of the cleaned text has its place in the posted one, and places keep their order.
fn check_alignment(text: &AlignedText) {
    let boundaries: Vec<usize> = (0..=text.text().len()).filter(|&at| text.text().is_char_boundary(at)).collect();
    let mut last = 0..0;
    for pair in boundaries.windows(2) {
        let range = text.posted_range(pair[0]..pair[1]);
        assert!(range.start <= range.end && range.end <= text.posted().len());
        assert!(text.posted().is_char_boundary(range.start) && text.posted().is_char_boundary(range.end));
        assert!(range.start >= last.start && range.end >= last.end, "{last:?} then {range:?}");
        last = range;
    }
    let whole = text.posted_range(0..text.text().len());
    assert!(whole.end <= text.posted().len());
    let _ = text.posted_range(0..usize::MAX);
    let _ = text.posted_range(usize::MAX - 1..usize::MAX);
}

fn check(mail: &CleanEmail) {
    check_alignment(&mail.subject);
    check_alignment(&mail.body);
    assert!(!mail.subject.text().contains('\n'));
    for text in [mail.subject.text(), mail.body.text()] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(text.trim(), text);
    }
    let posted = mail.body.posted();
    let ranges =
        mail.cut.iter().map(|cut| (cut.start, cut.end)).chain(mail.zones.iter().map(|zone| (zone.start, zone.end)));
    for (start, end) in ranges {
        assert!(start <= end && posted.get(start..end).is_some());
    }
    let in_order = mail.zones.windows(2).all(|pair| pair[0].end <= pair[1].start);
    assert!(in_order, "{:?}", mail.zones);
}

/// Pieces of mail that mean something to the cleaner, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,6}",
        Just("\n".to_owned()),
        Just("\r\n\r\n".to_owned()),
        Just("> ".to_owned()),
        Just("On Mon, 3 Mar 2025 at 10:12, Desk <d@x.example> wrote:\n".to_owned()),
        Just("From: A <a@x.example>\nSent: 3 May 2025 10:12\nTo: B\nSubject: c\n".to_owned()),
        Just("---------- Forwarded message ---------\n".to_owned()),
        Just("-- \n".to_owned()),
        Just("<blockquote type=cite>".to_owned()),
        Just("</blockquote>".to_owned()),
        Just("<div style='display:none'>".to_owned()),
        Just("<br>&nbsp;&eacute;&#x301;".to_owned()),
        Just("e\u{301}\u{200d}\u{ad}\0".to_owned()),
        Just("=?utf-8?Q?=C3=BC?= ".to_owned()),
        Just("Content-Type: multipart/mixed; boundary=b\n\n--b\n".to_owned()),
        Just("Content-Type: text/html\n\n".to_owned()),
        Just("Content-Type: text/plain; format=flowed; delsp=yes\n\n".to_owned()),
        Just("Content-Transfer-Encoding: base64\n".to_owned()),
        Just("한\u{1100}\u{1161} ".to_owned()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        check(&clean(&Posted::Mime(&bytes), &CleanOptions::default()));
    }

    #[test]
    fn any_mail_is_answered(mail in pieces()) {
        check(&clean(&Posted::Mime(mail.as_bytes()), &CleanOptions::default()));
    }

    #[test]
    fn any_fields_are_answered(subject in "\\PC{0,30}", text in pieces(), html in pieces()) {
        let options = CleanOptions::default();
        check(&clean(&Posted::Fields(Fields { subject: Some(&subject), text: Some(&text), ..Fields::default() }), &options));
        check(&clean(&Posted::Fields(Fields { subject: Some(&subject), html: Some(&html), ..Fields::default() }), &options));
    }

    #[test]
    fn small_limits_are_kept(mail in pieces(), limit in 0usize..60) {
        let options = CleanOptions {
            max_body_bytes: limit,
            max_html_bytes: limit,
            max_header_bytes: limit,
            max_parts: limit % 4,
            max_depth: limit % 3,
            ..CleanOptions::default()
        };
        check(&clean(&Posted::Mime(mail.as_bytes()), &options));
    }

    #[test]
    fn words_of_plain_text_point_at_themselves(words in prop::collection::vec("[a-zà-ž]{1,9}", 1..12)) {
        let text = words.join(" \n ");
        let mail = clean(&Posted::Fields(Fields { text: Some(&text), ..Fields::default() }), &CleanOptions::default());
        let mut at = 0;
        for word in mail.body.text().split_whitespace() {
            let start = at + mail.body.text()[at..].find(word).unwrap();
            at = start + word.len();
            prop_assert_eq!(&mail.body.posted()[mail.body.posted_range(start..at)], word);
        }
    }
}

#[test]
fn the_clean_text_is_clean_already() {
    let text = "Hello,\n\nmy order 12 is late.\nPlease help.";
    let once = clean(&Posted::Fields(Fields { text: Some(text), ..Fields::default() }), &CleanOptions::default());
    assert_eq!(once.body.text(), text);
}

#[test]
fn offsets_lead_through_every_layer() {
    let mail = "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; format=flowed\n\n\
                > old \n> words\n\nThe cafe\u{301} is \nclosed to\u{ad}day.\n--b\nContent-Type: text/html\n\n<p>Caf&eacute; &amp; <b>bar</b></p>\n--b--\n";
    let mail = clean(&Posted::Mime(mail.as_bytes()), &CleanOptions::default());
    let text = mail.body.text();
    for (word, posted) in [
        ("café", "cafe\u{301}"),
        ("today", "to\u{ad}day"),
        ("closed", "closed"),
        ("Café &", "Caf&eacute; &amp;"),
        ("bar", "bar"),
    ] {
        let at = text.find(word).unwrap_or_else(|| panic!("{word} in {text}"));
        assert_eq!(&mail.body.posted()[mail.body.posted_range(at..at + word.len())], posted);
    }
}

//! Mail made to hurt: each is answered in bounded time and memory, and what can be read is kept.
//!
//! The time limit is generous because these tests also run unoptimised on a busy machine; what it catches is
//! work that grows with the square of the input.

use std::time::{Duration, Instant};

use postroom::email::{CleanEmail, CleanOptions, Fields, Note, Posted, clean};

const LIMIT: Duration = Duration::from_secs(20);

fn timed(posted: &Posted<'_>) -> CleanEmail {
    let started = Instant::now();
    let mail = clean(posted, &CleanOptions::default());
    assert!(started.elapsed() < LIMIT, "took {:?}", started.elapsed());
    assert!(mail.body.text().len() <= CleanOptions::default().max_body_bytes);
    mail
}

fn mime(mail: &str) -> CleanEmail {
    timed(&Posted::Mime(mail.as_bytes()))
}

fn html(source: &str) -> CleanEmail {
    timed(&Posted::Fields(Fields { html: Some(source), ..Fields::default() }))
}

fn text(source: &str) -> CleanEmail {
    timed(&Posted::Fields(Fields { subject: Some("Re: x"), text: Some(source), ..Fields::default() }))
}

#[test]
fn html_of_any_depth_is_read() {
    for element in ["div", "blockquote", "table><tr><td", "b", "x@y", "span style='display:block'"] {
        let mail = html(&format!("<p>before</p>{}inside", format!("<{element}>").repeat(20_000)));
        assert!(mail.body.text().contains("before"), "{element}");
    }
    let closed = html(&format!("{}deep{}after", "<div class=x>".repeat(100_000), "</div>".repeat(100_000)));
    assert_eq!(closed.body.text(), "deep\nafter");
}

#[test]
fn broken_html_costs_what_its_bytes_cost() {
    for piece in [
        "<!--",
        "<style>",
        "<a href=\"",
        "<a b='",
        "</",
        "<![",
        "&#",
        "&amp",
        "<",
        "\"",
        "<p class=gmail_quote",
        "<title><",
        "]]>",
    ] {
        let _ = html(&format!("words first {}", piece.repeat(200_000)));
    }
    let _ = html(&format!("<style>{}</style>text", ".a{display:none}".repeat(50_000)));
}

#[test]
fn ten_thousand_parts_are_bounded() {
    let part = "--b\nContent-Type: text/plain\n\nword\n";
    let mail =
        mime(&format!("Subject: many\nContent-Type: multipart/mixed; boundary=b\n\n{}--b--\n", part.repeat(10_000)));
    assert_eq!(mail.subject.text(), "many");
    assert!(mail.body.text().starts_with("word"));
    assert!(mail.notes.contains(&Note::Unreadable));
    let attachments = "--b\nContent-Type: application/octet-stream\n\nAAAA\n".repeat(10_000);
    let mail = mime(&format!("Content-Type: multipart/mixed; boundary=b\n\n--b\n\nhello\n{attachments}--b--\n"));
    assert_eq!(mail.body.text(), "hello");
    assert!(mail.attachments > 100);
}

#[test]
fn four_hundred_nested_multiparts_are_bounded() {
    let mut mail = "Subject: deep\n".to_owned();
    for depth in 0..400 {
        mail.push_str(&format!(
            "Content-Type: multipart/mixed; boundary=b{depth}\n\n--b{depth}\n\nlevel {depth}\n--b{depth}\n"
        ));
    }
    let read = mime(&mail);
    assert_eq!(read.subject.text(), "deep");
    assert!(read.body.text().starts_with("level 0\nlevel 1\n"));
    assert!(read.notes.contains(&Note::Unreadable));
    let read = mime(&"Content-Type: message/rfc822\n\n".repeat(5000));
    assert!(read.notes.contains(&Note::Unreadable));
}

#[test]
fn a_header_of_fifty_megabytes_is_cut_and_the_body_kept() {
    for filler in [
        "X-Fill: a\n",
        " folded line of filler\n",
        "Subject: =?utf-8?Q?=C3?= =?utf-8?Q?=BC?=\n",
        "Subject: =?=?=?=?=?=?\n",
    ] {
        let mail = format!("Subject: large\n{}\nthe body\n", filler.repeat(50_000_000 / filler.len()));
        let mail = mime(&mail);
        assert!(mail.subject.text().starts_with("large"), "{filler}");
        assert!(mail.notes.contains(&Note::Unreadable), "{filler}");
        assert_eq!(mail.body.text(), "the body", "{filler}");
    }
}

#[test]
fn encoded_bombs_are_cut() {
    let base64 = "QUFBQSBBQUFBIEFBQUEg".repeat(2_000_000);
    let mail = mime(&format!("Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n{base64}"));
    assert!(mail.notes.contains(&Note::Truncated));
    let quoted = "=C3=BC".repeat(2_000_000);
    let mail = mime(&format!(
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n{quoted}"
    ));
    assert!(mail.notes.contains(&Note::Truncated) && mail.body.text().starts_with("üü"));
    let mail = mime(&format!("Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n{base64}"));
    assert!(mail.notes.contains(&Note::Truncated));
}

#[test]
fn lines_that_nearly_match_cost_what_their_bytes_cost() {
    for line in [
        "On Mon, 3 Mar 2025 at 10:12 somebody wrote\n",
        "On Mon, 3 Mar 2025 at 10:12, Desk <desk@acme.example\n",
        "Am 3. März 2025 schrieb und schrieb und schrieb\n",
        "From: a\n",
        "From: a@b.example\nTo:\n",
        "> > > > > > > > > >\n",
        "-- \n",
        "---------- Forwarded message ---------\n",
        "________________________________\n",
        "This message is confidential and intended only for\n\n",
        "##- Please type your reply above\n",
        "|\n",
        "a: b\n",
    ] {
        let _ = text(&format!("Hello\n{}", line.repeat(30_000)));
    }
    let _ = text(&"On at wrote On at wrote ".repeat(40_000));
    let _ = text(&">".repeat(1_000_000));
    let _ = text(&format!("a{}", "\u{301}".repeat(400_000)));
    let _ = text(&"\u{200d}\u{ad}\0".repeat(150_000));
}

#[test]
fn headers_of_garbage_are_survived() {
    let _ = mime(&format!("Content-Type: text/plain; {}\n\nx", "a*0*=\"b\"; ".repeat(20_000)));
    let _ = mime(&format!("From: {}\n\nx", "<a@".repeat(60_000)));
    let _ = mime(&format!("Content-Type: multipart/mixed; boundary=\"{}\"\n\n--x\n\ny", "b".repeat(200_000)));
    let _ = timed(&Posted::Mime(&[0xff; 1_000_000]));
    let _ = timed(&Posted::Mime(&[b'\r'; 1_000_000]));
    let _ = timed(&Posted::Mime(&[0; 1_000_000]));
}

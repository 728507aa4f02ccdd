//! Replies and forwards as HTML, in the forms that desktop, web and mobile programs give them.

use postroom::email::{CleanEmail, CleanOptions, Fields, Posted, clean};

const OWN: &str = "<p>The lamp is broken.</p>";

fn html(subject: &str, rest: &str) -> CleanEmail {
    let source = format!("<html><body>{OWN}{rest}</body></html>");
    let fields = Fields { subject: Some(subject), html: Some(&source), ..Fields::default() };
    clean(&Posted::Fields(fields), &CleanOptions::default())
}

#[test]
fn what_is_below_the_reply_is_cut() {
    for below in [
        "<div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'><p class=MsoNormal><b><span lang=DE>Von:</span></b><span lang=DE> Acme &lt;desk@acme.example&gt; <br><b>Gesendet:</b> Montag, 4. Mai 2026 16:20<br><b>An:</b> Mara<br><b>Betreff:</b> Lampe<o:p></o:p></span></p></div><p class=MsoNormal><o:p>&nbsp;</o:p></p><p class=MsoNormal>Welche Lampe?</p>",
        "<div id=\"mail-editor-reference-message-container\"><div class=\"ms-outlook-mobile-reference-message\"><b>From:</b> Acme<br><b>Date:</b> Monday, 4 May 2026 at 16:20<br><b>To:</b> Mara<br><b>Subject:</b> Lamp</div><p>Which lamp?</p></div>",
        "<div><br><blockquote type=\"cite\"><div>On 4 May 2026, at 16:20, Acme &lt;<a href=\"mailto:desk@acme.example\">desk@acme.example</a>&gt; wrote:</div><br class=\"Apple-interchange-newline\"><div>Which lamp?</div></blockquote></div><br>",
        "<div>Sent from my iPhone</div><div><br><blockquote type=\"cite\">On May 4, 2026, at 4:20 PM, Acme &lt;desk@acme.example&gt; wrote:<br><br></blockquote></div><blockquote type=\"cite\"><div dir=\"ltr\">Which lamp?</div></blockquote>",
        "<div name=\"quote\" style=\"margin:10px\"><div><b>Gesendet:</b>&nbsp;Montag, 04. Mai 2026 um 16:20 Uhr<br/><b>Von:</b>&nbsp;&quot;Acme&quot; &lt;desk@acme.example&gt;<br/><b>An:</b>&nbsp;mara@x.example<br/><b>Betreff:</b>&nbsp;Lampe</div><div name=\"quoted-content\">Welche Lampe?</div></div>",
        "<div class=\"zmail_extra\"><blockquote><br>---- On Mon, 04 May 2026 16:20:11 +0200 <b>desk@acme.example</b> wrote ----<br><br>Which lamp?</blockquote></div>",
        "<div class=\"protonmail_signature_block\"><div>Sent with <a>Proton Mail</a> secure email.</div></div><div class=\"protonmail_quote\">------- Original Message -------<br>On Monday, May 4th, 2026 at 4:20 PM, Acme &lt;desk@acme.example&gt; wrote:<br><br><blockquote class=\"protonmail_quote\" type=\"cite\">Which lamp?</blockquote></div>",
        "<br><br><div class=\"gmail_quote\">On Mon, May 4, 2026 at 4:20 PM Acme <span dir=\"ltr\">&lt;<a>desk@acme.example</a>&gt;</span> wrote:<br><blockquote style=\"margin:0\">Which lamp?</blockquote></div>",
        "<div id=\"ydp12yahoo_quoted_123\" class=\"ydp12yahoo_quoted\"><div>On Monday, 4 May 2026 at 16:20:11 BST, Acme &lt;desk@acme.example&gt; wrote: </div><div><br></div><div>Which lamp?</div></div>",
        "<hr><p>From: desk@acme.example<br>To: mara@x.example<br>Subject: Lamp<br>Date: Mon, 4 May 2026 16:20:11 +0000</p><p>Which lamp?</p>",
        "<hr tabindex=\"-1\"><div id=\"x_divRplyFwdMsg\" dir=\"ltr\"><font><b>De :</b> Acme<br><b>Envoyé :</b> lundi 4 mai 2026 16:20<br><b>À :</b> Mara<br><b>Objet :</b> Lampe</font></div><div>Quelle lampe ?</div>",
        "<table><tr><td>From:</td><td>Acme &lt;desk@acme.example&gt;</td></tr><tr><td>Sent:</td><td>4 May 2026 16:20</td></tr><tr><td>To:</td><td>Mara</td></tr><tr><td>Subject:</td><td>Lamp</td></tr></table><p>Which lamp?</p>",
        "<div>&mdash;&mdash;&mdash; Original Message &mdash;&mdash;&mdash;</div><div>From: Acme</div><div>Sent: 4 May 2026 16:20</div><div>Subject: Lamp</div><div>Which lamp?</div>",
        "<p>--&nbsp;<br>Mara Lindqvist<br>Head of Lamps</p>",
        "<div class=\"moz-signature\">-- <br>Mara</div>",
        "<p style=\"font-size:8pt\">This email and any attachments are confidential and intended solely for the addressee.</p>",
        "<div style=\"display:none\">hidden</div><div style='mso-hide:all;display:none'>x</div>",
        "<blockquote style=\"border-left:1px solid\">On Mon, 4 May 2026, Acme wrote:<br>Which lamp?</blockquote>",
    ] {
        assert_eq!(html("Re: Lamp", below).body.text(), "The lamp is broken.", "{below}");
    }
}

#[test]
fn forwarded_mail_is_kept() {
    for below in [
        "<div><br></div><div>---------- Forwarded message ---------<br>From: Priya &lt;priya@kunde.example&gt;<br>Date: Mon, May 4, 2026<br>Subject: Lamp<br>To: &lt;j@acme.example&gt;<br></div><p>Which lamp?</p>",
        "<div class=\"moz-forward-container\"><br><br>-------- Forwarded Message --------<table><tr><th>Subject: </th><td>Lamp</td></tr><tr><th>Date: </th><td>Mon, 4 May 2026 16:20:11 +0200</td></tr><tr><th>From: </th><td>Priya &lt;priya@kunde.example&gt;</td></tr><tr><th>To: </th><td>j@acme.example</td></tr></table><br><br><p>Which lamp?</p></div>",
        "<div class=\"yahoo_quoted\"><div>----- Forwarded Message -----</div><div><b>From:</b> Priya &lt;priya@kunde.example&gt;</div><div><b>To:</b> j@acme.example</div><div><b>Sent:</b> Monday, 4 May 2026</div><div><b>Subject:</b> Lamp</div><div>Which lamp?</div></div>",
        "<div style='border-top:solid #E1E1E1 1.0pt'><p><b>From:</b> Priya &lt;priya@kunde.example&gt;<br><b>Sent:</b> Monday, 4 May 2026 16:20<br><b>To:</b> Jonas<br><b>Subject:</b> Lamp</p></div><p>Which lamp?</p>",
        "<br><blockquote type=cite><div>Begin forwarded message:</div><br><div><b>From: </b>Priya &lt;priya@kunde.example&gt;<br><b>Date: </b>4 May 2026 at 16:20:11 CEST<br><b>To: </b>j@acme.example<br><b>Subject: </b><b>Lamp</b><br></div><br></blockquote><blockquote type=cite><div>Which lamp?</div></blockquote>",
    ] {
        let mail = html("Fwd: Lamp", below);
        let words: Vec<_> = mail.body.text().split_whitespace().collect();
        assert_eq!(words.join(" "), "The lamp is broken. Which lamp?", "{below}");
        assert_eq!(mail.original_from.as_deref(), Some("priya@kunde.example"), "{below}");
        assert_eq!(mail.original_subject.as_deref(), Some("Lamp"), "{below}");
    }
}

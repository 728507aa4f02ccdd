//! The report as one page: no scripts, nothing loaded, no text of a mail but subjects, and those escaped.
//!
//! The page forbids itself everything but its own style (Content-Security-Policy), so even text that slipped through
//! could neither run nor call home.

mod charts;
mod markup;
mod sections;

use super::{Origin, Report};
use markup::Html;

const STYLE: &str = include_str!("style.css");

/// The whole page.
#[must_use]
pub fn page(report: &Report) -> String {
    let mut out = Html::new();
    out.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; ")
        .raw("base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>")
        .text(format_args!("{} on {}", report.router, report.data))
        .raw("</title>\n<style>\n")
        .raw(STYLE)
        .raw("</style>\n</head>\n<body>\n<main>\n");
    head(&mut out, report);
    sections::alone(&mut out, report);
    sections::trust(&mut out, report);
    sections::queues(&mut out, report);
    sections::confusion(&mut out, report);
    sections::slices(&mut out, report);
    sections::mistakes(&mut out, report);
    out.raw("</main>\n</body>\n</html>\n");
    out.finish()
}

fn head(out: &mut Html, report: &Report) {
    out.raw("<h1>How ").text(&report.router).raw(" did on ").text(&report.data).raw("</h1>\n<p>");
    out.text(report.mails).raw(" labelled mails. ");
    match report.origin {
        Origin::HeldOut => out
            .raw("This is the mail the router was trained on, each mail judged by models that had not seen it. ")
            .raw("Temperature and thresholds were chosen on it, so new mail may fare a little worse."),
        Origin::Labelled => {
            out.raw("Judged by the router as it is; if it was trained on some of this mail, the figures flatter it.")
        }
    };
    out.raw("</p>\n<p class=\"note\">This page holds subjects of mails: share it as you would share the mails.</p>\n");
    for warning in &report.warnings {
        out.raw("<p class=\"warning\">").text(warning).raw("</p>\n");
    }
    sections::cards(out, report);
}

#[cfg(test)]
mod tests {
    use super::super::tests::report_with_subject;
    use super::*;

    #[test]
    fn the_page_loads_nothing_and_runs_nothing() {
        let page = page(&report_with_subject("Where is my order?"));
        assert!(page.contains("default-src 'none'") && page.contains("Where is my order?"));
        for banned in ["<script", "http://", "https://", "src=", "url(", "@import", "<a ", "<link", " style="] {
            assert!(!page.contains(banned), "{banned}");
        }
        let handler = regex::Regex::new(r"<[^>]*\son\w+\s*=").unwrap();
        assert!(!handler.is_match(&page));
    }

    #[test]
    fn a_hostile_subject_stays_text() {
        let subject = "</td><script>alert('1')</script><img src=x onerror=\"a()\">&amp; \u{202e}gnp.exe\u{0} ${7*7}";
        let page = page(&report_with_subject(subject));
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("onerror=\""));
        assert!(page.contains("&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)") && page.contains("&amp;amp;"));
        assert!(!page.contains('\u{202e}') && !page.contains('\u{0}'));
    }

    #[test]
    fn a_hostile_router_file_and_mail_name_stay_text_too() {
        let mut report = report_with_subject("s");
        let hostile = "\"><svg onload=x>";
        report.router = hostile.to_owned();
        report.data = hostile.to_owned();
        report.worst[0].id = hostile.to_owned();
        report.queues[0].queue = hostile.to_owned();
        report.warnings.push(hostile.to_owned());
        assert!(!page(&report).contains("<svg onload"));
    }
}

//! A map as one page that needs nothing else: the answer in it, and a few lines that draw it.

use super::Caption;
use super::svg::escaped;

/// The page's own script. Words reach the page as text only.
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// A page that shows `answer`, an answer of the shape `attention/1` in JSON.
#[must_use]
pub fn html(answer: &str, caption: &Caption) -> String {
    // Inside a script element only `<` could end it, or open a comment.
    let data = answer.replace('<', "\\u003c");
    let line = escaped(&caption.line());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n\
         <title>Attention map</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<p id=\"caption\">{line}</p>\n\
         <main id=\"maps\"></main>\n<p id=\"value\" role=\"status\"></p>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::caption;
    use super::*;

    #[test]
    fn nothing_of_a_mail_can_end_the_script_or_load_anything() {
        let page = html(r#"{"units":[{"text":"</script><img src=x onerror=alert(1)><!--"}]}"#, &caption());
        assert_eq!(page.matches("</script>").count(), 2, "{page}");
        assert!(!page.contains("<img") && !page.contains("<!--") && !page.contains("http://"));
        assert!(page.contains(r"\u003c/script>\u003cimg"));
        for said in ["clue, not a proof", "crumb 1", "2026-01-05T10:12:00Z", "refunds"] {
            assert!(page.contains(said), "{said}");
        }
    }
}

//! What an element means for the text: where lines break, what is hidden, what mail programs use to mark quotes
//! and signatures.
//!
//! A new mail program is added to [`MARKS`]: the class, id or name it gives to the element.

use super::MarkKind;
use super::tag::attributes;

/// Elements whose content is not read at all, up to their end tag.
pub(super) const RAW: &[&str] = &[
    "style", "script", "title", "xml", "template", "noframes", "noembed", "iframe", "object", "svg", "select",
    "textarea",
];

/// Elements that have no content and no end tag.
pub(super) const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    "o:p",
];

/// How an element breaks lines around itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    None,
    /// A blank between table cells.
    Cell,
    Line,
    Paragraph,
}

/// How the element of this name breaks lines.
pub(super) fn line_break(name: &str) -> Break {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "pre" | "table" | "ul" | "ol" | "dl" | "hr" => {
            Break::Paragraph
        }
        "br" | "div" | "li" | "tr" | "dt" | "dd" | "address" | "article" | "aside" | "body" | "caption" | "center"
        | "fieldset" | "figure" | "figcaption" | "footer" | "form" | "header" | "main" | "nav" | "option"
        | "section" | "tbody" | "thead" | "tfoot" | "summary" | "details" | "legend" => Break::Line,
        "td" | "th" => Break::Cell,
        _ => Break::None,
    }
}

/// What an element does to the text inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    Hidden,
    /// Hidden by its size alone; what sets a size of its own inside is seen.
    Small,
    Preformatted,
    Marked(MarkKind),
}

/// How a name in [`MARKS`] is compared.
#[derive(Debug, Clone, Copy)]
enum Match {
    Is,
    StartsWith,
}

/// Classes, ids and names that mail programs give to the parts of a reply.
const MARKS: &[(Match, &str, MarkKind)] = &[
    // The line "On ... wrote:" in any language.
    (Match::Is, "gmail_attr", MarkKind::ReplyHeader),
    (Match::Is, "moz-cite-prefix", MarkKind::ReplyHeader),
    (Match::Is, "reply-intro", MarkKind::ReplyHeader),
    (Match::Is, "zmail_extra_hr", MarkKind::ReplyHeader),
    // A header block; the old mail follows it as sibling.
    (Match::Is, "divrplyfwdmsg", MarkKind::HistoryHeader),
    (Match::Is, "appendonsend", MarkKind::HistoryHeader),
    (Match::Is, "outlookmessageheader", MarkKind::HistoryHeader),
    (Match::Is, "mail-editor-reference-message-container", MarkKind::HistoryHeader),
    (Match::Is, "zwchr", MarkKind::HistoryHeader),
    (Match::Is, "stopspelling", MarkKind::HistoryHeader),
    // A container of the old mail.
    (Match::Is, "yahoo_quoted", MarkKind::Quote),
    (Match::StartsWith, "yahoo_quoted_", MarkKind::Quote),
    (Match::Is, "ymail_quoted", MarkKind::Quote),
    (Match::Is, "protonmail_quote", MarkKind::Quote),
    (Match::Is, "tutanota_quote", MarkKind::Quote),
    (Match::Is, "freshdesk_quote", MarkKind::Quote),
    (Match::Is, "front-blockquote", MarkKind::Quote),
    (Match::Is, "zmail_extra", MarkKind::Quote),
    (Match::Is, "olk_src_body_section", MarkKind::Quote),
    (Match::Is, "messagereplysection", MarkKind::Quote),
    (Match::Is, "mailbird_quote", MarkKind::Quote),
    (Match::Is, "sh-quoted-content", MarkKind::Quote),
    (Match::Is, "wisestamp_quote", MarkKind::Quote),
    // Signatures.
    (Match::Is, "gmail_signature", MarkKind::Signature),
    (Match::Is, "gmail_signature_prefix", MarkKind::Signature),
    (Match::Is, "moz-signature", MarkKind::Signature),
    (Match::Is, "applemailsignature", MarkKind::Signature),
    (Match::Is, "signature", MarkKind::Signature),
    (Match::Is, "ms-outlook-mobile-signature", MarkKind::Signature),
    (Match::Is, "ms-outlook-mobile-body-separator-line", MarkKind::Signature),
    (Match::Is, "protonmail_signature_block", MarkKind::Signature),
    (Match::Is, "messagesignaturesection", MarkKind::Signature),
    (Match::Is, "ymail_android_signature", MarkKind::Signature),
    (Match::Is, "yahoo-signature", MarkKind::Signature),
    (Match::Is, "tutanota_signature", MarkKind::Signature),
    (Match::Is, "sh-signature", MarkKind::Signature),
    (Match::Is, "front-signature", MarkKind::Signature),
];

/// The role of an element by its name and attributes; `hidden_classes` are those a style sheet does not show.
pub(super) fn role(name: &str, attribute_source: &str, hidden_classes: &[String]) -> Role {
    let mut role = match name {
        "pre" | "listing" | "plaintext" | "xmp" => Role::Preformatted,
        "blockquote" if is_indent(attribute_source) => Role::Plain,
        "blockquote" => Role::Marked(MarkKind::Blockquote),
        _ => Role::Plain,
    };
    for (key, value) in attributes(attribute_source) {
        let found = match key.to_ascii_lowercase().as_str() {
            "hidden" => Some(Role::Hidden),
            "style" => style_role(value),
            "type" if name == "blockquote" && value.eq_ignore_ascii_case("cite") => Some(Role::Marked(MarkKind::Quote)),
            "class" | "id" | "name" | "data-smartmail" => named_role(name, value, hidden_classes),
            _ => None,
        };
        match found {
            Some(Role::Hidden) => return Role::Hidden,
            Some(found) => role = found,
            None => {}
        }
    }
    role
}

/// Whether a `blockquote` is what Gmail and Apple Mail make of "increase indent": the sender's own text. An attribute that says
/// otherwise (`type=cite`, `gmail_quote`) still counts.
fn is_indent(attribute_source: &str) -> bool {
    attributes(attribute_source).any(|(key, value)| match key.to_ascii_lowercase().as_str() {
        "class" => value.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("webkit-indent-blockquote")),
        "style" => {
            let style = squeezed(value);
            declares(&style, "border:none")
                && style.split(';').any(|part| matches!(part, "margin:00040px" | "margin:0px0px0px40px"))
        }
        _ => false,
    })
}

/// The declarations of a style, without blanks and in lower case.
fn squeezed(style: &str) -> String {
    style.chars().take(4096).filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase()
}

fn named_role(element: &str, value: &str, hidden_classes: &[String]) -> Option<Role> {
    value.split_ascii_whitespace().find_map(|word| {
        let word = word.to_ascii_lowercase();
        if hidden_classes.contains(&word) {
            return Some(Role::Hidden);
        }
        // Outlook on the web puts "x_" before the names of each mail it quotes.
        let word = word.trim_start_matches("x_");
        if element == "blockquote" && word == "gmail_quote" {
            return Some(Role::Marked(MarkKind::Quote));
        }
        MARKS
            .iter()
            .find(|(how, mark, _)| match how {
                Match::Is => word == *mark,
                Match::StartsWith => word.starts_with(mark),
            })
            .map(|&(_, _, kind)| Role::Marked(kind))
    })
}

fn style_role(value: &str) -> Option<Role> {
    let style = squeezed(value);
    if hides(&style) {
        return Some(Role::Hidden);
    }
    if declares(&style, "font-size:0") && (declares(&style, "line-height:0") || declares(&style, "height:0")) {
        return Some(Role::Small);
    }
    (style.contains("white-space:pre")).then_some(Role::Preformatted)
}

/// Whether declarations (blanks removed, lower case) hide an element from sight.
fn hides(style: &str) -> bool {
    let zero_height = (declares(style, "max-height:0") || declares(style, "height:0"))
        && (declares(style, "overflow:hidden") || declares(style, "mso-hide:all"));
    style.contains("display:none")
        || declares(style, "visibility:hidden")
        || declares(style, "opacity:0")
        || zero_height
}

/// Whether an element sets a size that can be seen: generators of mail write `font-size:0` around tables, and the size into each cell.
pub(super) fn sets_size(name: &str, attribute_source: &str) -> bool {
    attributes(attribute_source).any(|(key, value)| match key.to_ascii_lowercase().as_str() {
        "style" => squeezed(value).split(';').any(|part| {
            let size = part.strip_prefix("font-size:").or_else(|| part.strip_prefix("font:"));
            size.is_some_and(|size| {
                size.contains(|c: char| ('1'..='9').contains(&c) || c.is_ascii_alphabetic()) && !size.starts_with("0p")
            })
        }),
        "size" => name == "font",
        _ => false,
    })
}

/// Elements that end what was left open inside them when they end themselves.
pub(super) fn contains_others(name: &str) -> bool {
    match line_break(name) {
        Break::None => false,
        Break::Cell => true,
        Break::Line | Break::Paragraph => !matches!(name, "br" | "hr" | "p" | "li" | "dt" | "dd" | "option"),
    }
}

/// Whether an element may lack its end tag: those within a line by mistake, the others by the rules of HTML.
pub(super) fn may_stay_open(name: &str) -> bool {
    line_break(name) == Break::None || matches!(name, "p" | "li" | "dt" | "dd" | "td" | "th" | "tr" | "option")
}

/// Whether an open element ends because another one starts (HTML, 13.1.2.4 "Optional tags").
pub(super) fn ends_before(open: &str, next: &str) -> bool {
    match open {
        "p" => matches!(line_break(next), Break::Paragraph | Break::Line) && next != "br",
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "td" | "th" => matches!(next, "td" | "th" | "tr"),
        "tr" => next == "tr",
        "option" => next == "option",
        _ => false,
    }
}

/// Whether a style holds this declaration; "opacity:0" is not "opacity:0.9".
fn declares(style: &str, declaration: &str) -> bool {
    style.split(';').any(|part| {
        let rest =
            part.strip_prefix(declaration).map(|rest| rest.trim_start_matches("px").trim_end_matches("!important"));
        rest == Some("")
    })
}

/// More hidden classes than any sheet has.
pub(super) const MAX_HIDDEN_CLASSES: usize = 200;

/// Classes that a style sheet never shows: `.name{...display:none...}` outside of any `@media`.
pub(super) fn hidden_classes(sheet: &str) -> Vec<String> {
    let mut classes = Vec::new();
    let mut depth = 0usize;
    let mut selector_start = 0;
    let mut rule_start = 0;
    for (at, byte) in sheet.bytes().enumerate() {
        match byte {
            b'{' => {
                depth += 1;
                rule_start = at + 1;
            }
            b'}' => {
                if depth == 1 && selector_start < rule_start {
                    let rule: String = sheet[rule_start..at].chars().filter(|c| !c.is_whitespace()).collect();
                    if hides(&rule.to_ascii_lowercase()) {
                        classes.extend(simple_classes(&sheet[selector_start..rule_start - 1]));
                    }
                }
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    selector_start = at + 1;
                }
            }
            _ => {}
        }
    }
    classes.truncate(MAX_HIDDEN_CLASSES);
    classes
}

/// The class names of a selector list that consist of one class alone.
fn simple_classes(selectors: &str) -> impl Iterator<Item = String> {
    let alone = |name: &&str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let at_rule = selectors.contains('@');
    selectors
        .split(',')
        .filter(move |_| !at_rule)
        .filter_map(|selector| {
            selector.trim().rsplit_once('.').filter(|(element, _)| !element.contains([' ', '.', ':']))
        })
        .map(|(_, class)| class)
        .filter(alone)
        .map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_elements_are_recognised_by_style_class_and_attribute() {
        let hidden =
            hidden_classes(".pre, span.teaser { display: none } .x{color:red} @media print { .y{display:none} }");
        assert_eq!(hidden, ["pre", "teaser"]);
        for attributes in
            ["style='DISPLAY : none'", "hidden", "class=\"a pre\"", "style=\"max-height:0px;overflow:hidden\""]
        {
            assert_eq!(role("div", attributes, &hidden), Role::Hidden, "{attributes}");
        }
        assert_eq!(role("div", "style='opacity:0.9'", &hidden), Role::Plain);
        assert_eq!(role("div", "style='line-height:0; font-size:0'", &hidden), Role::Small);
        for (attributes, seen) in
            [("style='font-size:16px'", true), ("style='font-size: .8em'", true), ("style='font-size:0px'", false)]
        {
            assert_eq!(sets_size("td", attributes), seen, "{attributes}");
        }
    }

    #[test]
    fn marks_of_mail_programs_are_recognised() {
        assert_eq!(role("div", "class=\"x_x_gmail_attr\" dir=ltr", &[]), Role::Marked(MarkKind::ReplyHeader));
        assert_eq!(role("blockquote", "type=cite", &[]), Role::Marked(MarkKind::Quote));
        assert_eq!(role("blockquote", "", &[]), Role::Marked(MarkKind::Blockquote));
        for indent in ["style=\"margin:0 0 0 40px;border:none;padding:0px\"", "class=webkit-indent-blockquote"] {
            assert_eq!(role("blockquote", indent, &[]), Role::Plain);
            assert_eq!(role("blockquote", &format!("{indent} type=cite"), &[]), Role::Marked(MarkKind::Quote));
        }
        let quote = "class=gmail_quote style=\"margin:0 0 0 .8ex;border-left:1px #ccc solid\"";
        assert_eq!(role("blockquote", quote, &[]), Role::Marked(MarkKind::Quote));
        assert_eq!(role("div", "id=yahoo_quoted_123", &[]), Role::Marked(MarkKind::Quote));
    }
}

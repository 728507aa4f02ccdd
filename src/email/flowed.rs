//! `format=flowed` (RFC 3676): lines that end in a blank go on in the next one.
//!
//! Quote marks stay at the front of each joined line, so that the zones read flowed mail like any other.

use super::AlignedText;
use super::aligned::AlignedBuilder;

/// Joins the soft line breaks of a text; `delete_space` is the parameter `DelSp=yes`.
pub(super) fn unflow(text: &str, delete_space: bool) -> AlignedText {
    let mut out = AlignedBuilder::new(text);
    let mut flowing_at_depth = None;
    let mut start = 0;
    for raw in text.split_inclusive('\n') {
        let content = raw.trim_end_matches(['\n', '\r']);
        let depth = content.bytes().take_while(|&byte| byte == b'>').count();
        let stuffed = usize::from(content[depth..].starts_with(' ') && depth == 0);
        let quoted_blank = usize::from(content[depth..].starts_with(' ') && depth > 0);
        let body = &content[depth + stuffed + quoted_blank..];
        let joins = flowing_at_depth == Some(depth) && body != "-- ";
        if joins {
            out.copy(start + content.len() - body.len()..start + content.len());
        } else {
            if flowing_at_depth.is_some() {
                out.replace(start..start, "\n");
            }
            // Marks and the blank after them stay; only stuffing goes.
            out.copy(start..start + depth + quoted_blank);
            out.copy(start + depth + quoted_blank + stuffed..start + content.len());
        }
        let flows = body.ends_with(' ') && body != "-- " && raw.ends_with('\n');
        if flows {
            if delete_space {
                out.drop_last_byte();
            }
        } else {
            out.copy(start + content.len()..start + raw.len());
        }
        flowing_at_depth = flows.then_some(depth);
        start += raw.len();
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(flowed: &str, delete_space: bool) -> String {
        unflow(flowed, delete_space).text().to_owned()
    }

    #[test]
    fn soft_breaks_join_within_one_depth() {
        assert_eq!(text("a \nb\n\nc\n", false), "a b\n\nc\n");
        assert_eq!(text("tele \nphone\n", true), "telephone\n");
        assert_eq!(text("> a \n> b \nc\n", false), "> a b \nc\n");
        assert_eq!(text(" >no quote\n-- \nAnn\n", false), ">no quote\n-- \nAnn\n");
    }
}

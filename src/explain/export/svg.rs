//! A map as a drawing with its words, for papers; with too many of them as an embedded picture.

use std::fmt::Write;

use super::{Caption, ExportError, Sheet, colour, largest, panels, png};

/// More words than this on an axis would be no longer readable; the cells become one embedded picture then.
const MAX_WORDS: usize = 128;

/// Sides of a cell, and of the room for the words.
const CELL: usize = 14;
const MARGIN: usize = 120;
const TITLE: usize = 18;

/// A drawing has room for words of the caption.
const NARROWEST: usize = 240;
/// Letters of this size are at most about so wide on average.
const WIDEST_LETTER: usize = 7;

/// The maps of one window: layers down, heads across.
///
/// # Errors
/// As [`png()`] where there are too many words.
pub fn svg(sheet: &Sheet, caption: &Caption) -> Result<String, ExportError> {
    let [layers, heads, queries, keys] = sheet.map.shape;
    if queries > MAX_WORDS || keys > MAX_WORDS {
        return embedded(sheet, caption);
    }
    let (wide, high) = (keys * CELL + MARGIN, queries * CELL + MARGIN + TITLE);
    let mut out = start(heads * wide + CELL, layers * high + TITLE, caption);
    for (layer, head, map) in panels(sheet) {
        let (left, top) = (head * wide + MARGIN, layer * high + MARGIN + TITLE);
        let name = |names: &[String], index: usize| escaped(names.get(index).map_or("", String::as_str));
        let title = format!("layer {}, head {}", name(&sheet.layers, layer), name(&sheet.heads, head));
        let _ = writeln!(out, r#"<text x="{left}" y="{}" class="title">{title}</text>"#, layer * high + TITLE);
        for (row, word) in sheet.rows.iter().enumerate() {
            let y = top + row * CELL + CELL - 3;
            let _ = writeln!(out, r#"<text x="{}" y="{y}" text-anchor="end">{}</text>"#, left - 4, escaped(word));
        }
        for (column, word) in sheet.columns.iter().enumerate() {
            let x = left + column * CELL + CELL - 3;
            let place = format!(r#"x="{x}" y="{0}" transform="rotate(-90 {x} {0})""#, top - 4);
            let _ = writeln!(out, "<text {place}>{}</text>", escaped(word));
        }
        let highest = largest(map);
        for (index, weight) in map.iter().enumerate() {
            let (x, y) = (left + index % keys * CELL, top + index / keys * CELL);
            let [red, green, blue] = colour(weight / highest);
            let _ = writeln!(
                out,
                r##"<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="#{red:02x}{green:02x}{blue:02x}"><title>{weight:.4}</title></rect>"##
            );
        }
    }
    out.push_str("</svg>\n");
    Ok(out)
}

fn embedded(sheet: &Sheet, caption: &Caption) -> Result<String, ExportError> {
    let file = png(sheet, caption)?;
    // Width and height stand in the first chunk of every PNG.
    let side = |at: usize| {
        file.get(at..at + 4).map_or(0, |bytes| bytes.iter().fold(0usize, |sum, &byte| sum << 8 | usize::from(byte)))
    };
    let (width, height) = (side(16), side(20));
    let mut out = start(width, height, caption);
    let data = data_encoding::BASE64.encode(&file);
    let _ = writeln!(out, r#"<image width="{width}" height="{height}" href="data:image/png;base64,{data}"/>"#);
    out.push_str("</svg>\n");
    Ok(out)
}

/// A drawing of this size with the whole caption below it.
fn start(width: usize, height: usize, caption: &Caption) -> String {
    let width = width.max(NARROWEST);
    let line = caption.line();
    let lines = wrapped(&line, (width - 8) / WIDEST_LETTER);
    let all = height + (lines.len() + 1) * TITLE;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{all}\" viewBox=\"0 0 {width} {all}\">\n\
         <desc>{}</desc>\n\
         <style>text{{font:11px sans-serif;fill:#222}}.title{{font-weight:bold}}</style>\n",
        escaped(&line)
    );
    for (number, line) in lines.iter().enumerate() {
        let _ = writeln!(out, r#"<text x="4" y="{}">{}</text>"#, height + (number + 1) * TITLE, escaped(line));
    }
    out
}

/// Words in lines of at most so many letters; a word that is longer has a line of its own.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Text that means nothing in XML, and no character that XML does not allow.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::{caption, sheet};
    use super::*;

    #[test]
    fn a_drawing_has_a_cell_for_each_weight_and_hostile_words_are_text() {
        let drawing = svg(&sheet(), &caption()).unwrap();
        assert_eq!(drawing.matches("<rect").count(), 6);
        assert!(!drawing.contains("<script") && !drawing.contains("<b>"));
        assert!(drawing.contains("&lt;/script&gt;&lt;b&gt;&amp;&quot;"));
        for said in ["clue, not a proof", "crumb 1", "2026-01-05T10:12:00Z", "refunds"] {
            assert!(drawing.contains(said), "{said}");
        }
    }

    #[test]
    fn many_words_become_a_picture() {
        let mut sheet = sheet();
        sheet.map.shape = [1, 1, 1, 200];
        sheet.map.data = vec![0.5; 200];
        let drawing = svg(&sheet, &caption()).unwrap();
        assert!(drawing.contains("data:image/png;base64,") && !drawing.contains("<rect"));
    }

    #[test]
    fn the_caption_is_never_cut_by_the_edge_of_a_small_map() {
        let drawing = svg(&sheet(), &caption()).unwrap();
        let width: usize =
            drawing.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().parse().unwrap();
        let lines: Vec<&str> = drawing
            .split("<text x=\"4\"")
            .skip(1)
            .map(|rest| &rest[rest.find('>').unwrap() + 1..rest.find('<').unwrap()])
            .collect();
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() * WIDEST_LETTER <= width), "{lines:?}");
        assert_eq!(wrapped("a bb ccc dddddd", 4), ["a bb", "ccc", "dddddd"]);
    }

    #[test]
    fn characters_that_xml_does_not_allow_are_replaced() {
        assert_eq!(escaped("a\u{0}b\u{b}c\nd"), "a\u{fffd}b\u{fffd}c d");
    }
}

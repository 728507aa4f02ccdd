//! A heat map for the terminal: queries on rows, keys on columns; a single row is shown as a list of words.

use std::fmt::Write;
use std::io::IsTerminal;

use serde_json::Value;

/// How cells are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Background colours.
    Colour,
    /// Characters of rising darkness, for files and pipes.
    Plain,
}

impl Style {
    pub(super) fn of_stdout() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        if colour { Self::Colour } else { Self::Plain }
    }
}

/// Grey-violet, light to dark (xterm's colour numbers): attention is for nothing and against nothing.
const COLOURS: [u8; 6] = [255, 189, 183, 140, 97, 54];
const SHADES: [char; 6] = [' ', '.', ':', '+', '#', '@'];

/// Draws every layer and head of the answer.
pub(super) fn render(reply: &Value, style: Style) -> String {
    let mut out = String::new();
    let first = std::slice::from_ref(reply);
    let windows = reply["windows"].as_array().map_or(first, Vec::as_slice);
    for (index, window) in windows.iter().enumerate() {
        if windows.len() > 1 {
            let _ = writeln!(out, "window {} of {}", index + 1, windows.len());
        }
        render_window(window, style, &mut out);
    }
    let _ = writeln!(out, "Attention is a clue, not a proof: it has no sign and knows no queue.");
    out
}

fn render_window(window: &Value, style: Style, out: &mut String) {
    let attention = &window["attention"];
    let words = |axis: &str| -> Vec<String> {
        items(&attention[axis])
            .iter()
            .filter_map(Value::as_u64)
            .map(|unit| label(&window["units"][usize::try_from(unit).unwrap_or(0)]))
            .collect()
    };
    let (queries, keys) = (words("queries"), words("keys"));
    for (layer, heads) in items(&attention["layers"]).iter().zip(items(&attention["data"])) {
        for (head, map) in items(&attention["heads"]).iter().zip(items(heads)) {
            let (layer, head) = (layer.as_str().unwrap_or("?"), head.as_str().unwrap_or("?"));
            let _ = writeln!(out, "layer {layer}, head {head}: rows look, columns are looked at");
            let rows: Vec<Vec<f64>> = items(map).iter().map(numbers).collect();
            match rows.as_slice() {
                [row] => render_list(&queries[0], &keys, row, style, out),
                rows => render_grid(&queries, &keys, rows, style, out),
            }
        }
    }
}

fn render_list(query: &str, keys: &[String], row: &[f64], style: Style, out: &mut String) {
    let _ = writeln!(out, "{query} looks at");
    let largest = largest(row);
    let width = widest(keys);
    for (key, &weight) in keys.iter().zip(row) {
        let bar = "#".repeat((30.0 * weight / largest).round() as usize);
        let cell = cell(weight / largest, style);
        let _ = writeln!(out, "{cell} {key:<width$} {weight:.4} {bar}");
    }
}

fn render_grid(queries: &[String], keys: &[String], rows: &[Vec<f64>], style: Style, out: &mut String) {
    let width = widest(queries);
    let largest = rows.iter().map(|row| largest(row)).fold(f64::MIN_POSITIVE, f64::max);
    for (query, row) in queries.iter().zip(rows) {
        let cells: String = row.iter().map(|weight| cell(weight / largest, style)).collect();
        let _ = writeln!(out, "{query:>width$} {cells}");
    }
    let _ = writeln!(out, "columns, left to right: {}", keys.join(" "));
}

/// Square roots spread the many small weights over the shades.
fn cell(share: f64, style: Style) -> String {
    let level = (share.max(0.0).sqrt() * (COLOURS.len() - 1) as f64).round() as usize;
    let level = level.min(COLOURS.len() - 1);
    match style {
        Style::Colour => format!("\u{1b}[48;5;{}m  \u{1b}[0m", COLOURS[level]),
        Style::Plain => format!("{0}{0}", SHADES[level]),
    }
}

/// The unit's text without anything that a terminal would act on, cut to a column's width.
fn label(unit: &Value) -> String {
    let text = unit["text"].as_str().unwrap_or("?");
    let clean = without_controls(text);
    if clean.chars().count() <= MAX_LABEL {
        clean
    } else {
        clean.chars().take(MAX_LABEL - 1).chain(['\u{2026}']).collect()
    }
}

/// The text without anything that a terminal would act on.
pub(super) fn without_controls(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_control() || is_bidi(character) { '\u{b7}' } else { character })
        .collect()
}

const MAX_LABEL: usize = 18;

fn is_bidi(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn numbers(value: &Value) -> Vec<f64> {
    items(value).iter().map(|number| number.as_f64().unwrap_or(0.0)).collect()
}

fn largest(row: &[f64]) -> f64 {
    row.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
}

fn widest(words: &[String]) -> usize {
    words.iter().map(|word| word.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_grid_has_a_row_for_each_query() {
        let reply = json!({
            "units": [{"text": "[CLS]"}, {"text": "cake"}],
            "attention": {"layers": ["5"], "heads": ["0"], "queries": [0, 1], "keys": [0, 1],
                          "data": [[[[1.0, 0.0], [0.25, 0.75]]]]},
        });
        insta::assert_snapshot!(render(&reply, Style::Plain), @r"
        layer 5, head 0: rows look, columns are looked at
        [CLS] @@  
         cake ++##
        columns, left to right: [CLS] cake
        Attention is a clue, not a proof: it has no sign and knows no queue.
        ");
    }

    #[test]
    fn escape_codes_of_a_mail_never_reach_the_terminal() {
        assert_eq!(label(&json!({"text": "\u{1b}[31mred\u{202e}"})), "\u{b7}[31mred\u{b7}");
    }
}

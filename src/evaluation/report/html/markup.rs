//! Markup that cannot be injected into: markup is written in the program, everything else is escaped.

use std::fmt::{Display, Write};

/// A page in the making.
pub(super) struct Html(String);

impl Html {
    pub(super) fn new() -> Self {
        Self(String::new())
    }

    /// Markup. Only what stands in the program's own text can come in here.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text or a number, for an element or a quoted attribute.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        // Writing to a string does not fail.
        let _ = write!(Escaping(&mut self.0), "{text}");
        self
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Writes text with all that means something in HTML replaced.
struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Controls, and marks that turn the direction of what follows: shown, not obeyed.
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.push('\u{fffd}'),
                control if control.is_control() => self.0.push(if control == '\n' { ' ' } else { '\u{fffd}' }),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

/// A share as a percentage with one decimal.
pub(super) struct Percent(pub f64);

impl Display for Percent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.1}%", 100.0 * self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_means_something_is_escaped() {
        let mut out = Html::new();
        out.raw("<b>").text("<&>\"'\n\t").raw("</b>").text(Percent(0.9412));
        assert_eq!(out.finish(), "<b>&lt;&amp;&gt;&quot;&#39; \u{fffd}</b>94.1%");
    }
}

//! The words of a meeting request: summary and description of an iCalendar object (RFC 5545).

/// The text of the first event, unfolded and unescaped.
pub(super) fn text(source: &str) -> String {
    let unfolded = source.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "");
    let event = unfolded.split_once("BEGIN:VEVENT").map_or(unfolded.as_str(), |(_, event)| event);
    let mut texts: Vec<String> = Vec::new();
    for wanted in ["SUMMARY", "DESCRIPTION", "LOCATION"] {
        let line = event.lines().find(|line| {
            let name = line.split([':', ';']).next().unwrap_or_default();
            name.eq_ignore_ascii_case(wanted)
        });
        if let Some(value) = line.and_then(value) {
            texts.push(unescape(value).trim().to_owned());
        }
    }
    texts.retain(|text| !text.is_empty());
    texts.join("\n")
}

/// What follows the colon; parameters may hold colons in quotes.
fn value(line: &str) -> Option<&str> {
    let mut quoted = false;
    let colon = line.char_indices().find(|&(_, c)| {
        quoted ^= c == '"';
        c == ':' && !quoted
    });
    colon.map(|(at, _)| &line[at + 1..])
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n' | 'N') => out.push('\n'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_and_escaped_values_are_read() {
        let source = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY;LANGUAGE=\"x:y\":Lift\r\nDESCRIPTION:stuck\\, a\r\n gain\\nnow\r\nEND:VEVENT\r\n";
        assert_eq!(text(source), "Lift\nstuck, again\nnow");
    }
}

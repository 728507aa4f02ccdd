//! Whether a file starts like a raw message (RFC 5322), or with words that only look like a header.
//!
//! "To: the baker. My cake is cold" is a text: what is taken for headers would not be read. So a message needs a block
//! of nothing but header lines, and in it a header that mail has, whose value fits it where its name is an everyday word.

/// Whether the text starts with a header block, or with the separator of an mbox file above one.
pub(super) fn is_message(text: &[u8]) -> bool {
    if text.starts_with(b"From ") {
        let mut lines = lines(text);
        return lines.next().is_some_and(is_separator) && lines.next().is_some_and(|line| header(line).is_some());
    }
    let mut headers: Vec<(&[u8], Vec<u8>)> = Vec::new();
    for line in lines(text) {
        if line.trim_ascii().is_empty() {
            break;
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            // A folded line belongs to the header above it.
            let Some((_, value)) = headers.last_mut() else { return false };
            value.extend_from_slice(line);
        } else {
            let Some((name, value)) = header(line) else { return false };
            headers.push((name, value.to_vec()));
        }
    }
    let known: Vec<bool> = headers.iter().filter_map(|(name, value)| fits(name, value)).collect();
    known.len() >= 2 || known.contains(&true)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Name and value of a header line.
fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = line[..colon].trim_ascii_end();
    let named = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    named.then(|| (name, &line[colon + 1..]))
}

/// What the value of a header holds.
#[derive(Clone, Copy)]
enum Holds {
    /// Anything: the name alone tells a header.
    Anything,
    /// An address, or the id of a message.
    Address,
    /// A date with a time.
    Time,
}

/// Headers that mail starts with. All but the subject whose names are everyday words must hold what mail holds there.
const KNOWN: [(&str, Holds); 25] = [
    ("subject", Holds::Anything),
    ("from", Holds::Address),
    ("to", Holds::Address),
    ("cc", Holds::Address),
    ("bcc", Holds::Address),
    ("sender", Holds::Address),
    ("references", Holds::Address),
    ("date", Holds::Time),
    ("received", Holds::Time),
    ("return-path", Holds::Anything),
    ("reply-to", Holds::Anything),
    ("in-reply-to", Holds::Anything),
    ("message-id", Holds::Anything),
    ("delivered-to", Holds::Anything),
    ("envelope-to", Holds::Anything),
    ("x-original-to", Holds::Anything),
    ("x-mailer", Holds::Anything),
    ("mime-version", Holds::Anything),
    ("content-type", Holds::Anything),
    ("content-transfer-encoding", Holds::Anything),
    ("dkim-signature", Holds::Anything),
    ("authentication-results", Holds::Anything),
    ("received-spf", Holds::Anything),
    ("auto-submitted", Holds::Anything),
    ("list-id", Holds::Anything),
];

/// Whether a known header holds what it should; `None` for one that is not known.
fn fits(name: &[u8], value: &[u8]) -> Option<bool> {
    let (_, holds) = KNOWN.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))?;
    let value = String::from_utf8_lossy(value);
    let mut words = value.split_ascii_whitespace();
    Some(match holds {
        Holds::Anything => true,
        Holds::Address => words.any(is_address),
        Holds::Time => words.clone().any(is_time) && words.any(is_year),
    })
}

fn is_address(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
}

/// `09:12` or `09:12:00`.
fn is_time(word: &str) -> bool {
    let mut parts = word.split(':');
    (2..=3).contains(&parts.clone().count()) && parts.all(|part| part.len() == 2 && digits(part))
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && digits(word)
}

fn digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// `From ann@example.org Mon Jan  5 09:12:00 2026`, perhaps with a zone.
fn is_separator(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    // The word and the sender stand before the time.
    let mut words = line.split_ascii_whitespace().skip(2);
    words.any(is_time) && words.any(is_year)
}

#[cfg(test)]
mod tests {
    use super::is_message;

    #[test]
    fn a_text_that_begins_with_an_everyday_word_is_no_message() {
        let texts = [
            "From what I can see the refund of 09:12 in 2026 has not arrived.",
            "Pre-order: can I get a refund for it?",
            "To: the baker. my cake is cold",
            "From the bakery I got a cold cake.\nI want my money back.",
            "Follow-up: my cake is late\nplease help",
            "Date: tomorrow is my party, and there is no cake",
            "Subject: my cake\nIt is late.",
            "Received: a cold cake",
            "",
        ];
        for text in texts {
            assert!(!is_message(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_message_is_told_by_its_header_block() {
        let messages = [
            "Subject: x\n\nbody",
            "subject : x\r\n\r\nbody",
            "From: Ann <ann@example.org>\n\nbody",
            "From: Ann\nTo: the baker\n\nbody",
            "Date: Mon, 5 Jan 2026 09:12:00 +0000\n\nbody",
            "Received: from a by b;\r\n\tMon, 5 Jan 2026 09:12:00 +0000\r\n\r\nbody",
            "X-Shop: crumb\nMIME-Version: 1.0\n",
            "From ann@example.org Mon Jan  5 09:12:00 2026\nX-Shop: crumb\n\nbody",
        ];
        for message in messages {
            assert!(is_message(message.as_bytes()), "{message}");
        }
    }
}

//! Tags and comments, found by one pass over the source.
//!
//! No tree is built, so that a mail of 20,000 nested elements costs what its bytes cost. Every search that may
//! run to the end of the source and fail is done once: [`Scanner`] remembers that there is no more.

/// A start or end tag.
#[derive(Debug)]
pub(super) struct Tag<'a> {
    /// The name as written.
    pub(super) name: &'a str,
    pub(super) is_end: bool,
    /// The source between the name and the closing `>`.
    pub(super) attributes: &'a str,
    /// One past the closing `>`.
    pub(super) end: usize,
}

/// What stands at a `<`.
#[derive(Debug)]
pub(super) enum Markup<'a> {
    Tag(Tag<'a>),
    /// A comment, doctype or processing instruction that ends here.
    Comment(usize),
    /// The `<` means itself.
    Text,
}

/// Finds markup in a source.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    source: &'a str,
    /// Behind this place no tag can close any more.
    last_close: usize,
    no_more_comment_ends: bool,
    no_more_end_tags: Vec<String>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            last_close: source.rfind('>').unwrap_or(0),
            no_more_comment_ends: false,
            no_more_end_tags: Vec::new(),
        }
    }

    /// Reads what stands at the `<` at byte `at`.
    pub(super) fn markup(&mut self, at: usize) -> Markup<'a> {
        if at > self.last_close {
            return Markup::Text;
        }
        let rest = &self.source[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            return self.comment(at + 4, comment);
        }
        let is_end = rest.starts_with('/');
        let name_start = at + 1 + usize::from(is_end);
        match self.source.as_bytes().get(name_start) {
            Some(byte) if byte.is_ascii_alphabetic() => self.tag(name_start, is_end),
            Some(b'!' | b'?') => self.bogus_comment(at),
            Some(_) if is_end => self.bogus_comment(at),
            _ => Markup::Text,
        }
    }

    /// Where the content of a raw element (`style`, `script`, ...) ends; `None` when it is never closed.
    pub(super) fn raw_text_end(&mut self, from: usize, name: &str) -> Option<usize> {
        if self.no_more_end_tags.iter().any(|known| known == name) {
            return None;
        }
        let bytes = self.source.as_bytes();
        let mut at = from;
        while let Some(found) = self.source[at..].find("</").map(|offset| at + offset) {
            let candidate = bytes.get(found + 2..found + 2 + name.len());
            if candidate.is_some_and(|candidate| candidate.eq_ignore_ascii_case(name.as_bytes())) {
                return Some(found);
            }
            at = found + 2;
        }
        self.no_more_end_tags.push(name.to_owned());
        None
    }

    fn comment(&mut self, from: usize, rest: &str) -> Markup<'a> {
        if rest.starts_with('>') {
            return Markup::Comment(from + 1);
        }
        let end = if self.no_more_comment_ends { None } else { rest.find("-->") };
        match end {
            Some(offset) => Markup::Comment(from + offset + 3),
            // Never closed: browsers drop the rest of the mail, we only drop the opening.
            None => {
                self.no_more_comment_ends = true;
                Markup::Comment(from)
            }
        }
    }

    fn bogus_comment(&self, at: usize) -> Markup<'a> {
        self.source[at..].find('>').map_or(Markup::Text, |offset| Markup::Comment(at + offset + 1))
    }

    fn tag(&self, name_start: usize, is_end: bool) -> Markup<'a> {
        let bytes = self.source.as_bytes();
        let name_end = bytes[name_start..]
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'<'))
            .map_or(bytes.len(), |offset| name_start + offset);
        let Some(close) = self.tag_close(name_end) else {
            return Markup::Text;
        };
        Markup::Tag(Tag {
            name: &self.source[name_start..name_end],
            is_end,
            attributes: &self.source[name_end..close],
            end: close + 1,
        })
    }

    /// The `>` that closes a tag, quoted values skipped; a quote that never closes is no quote.
    fn tag_close(&self, from: usize) -> Option<usize> {
        let bytes = self.source.as_bytes();
        let mut at = from;
        loop {
            match bytes.get(at)? {
                b'>' => return Some(at),
                quote @ (b'"' | b'\'') if is_value_start(bytes, at) => {
                    let value = &bytes[at + 1..];
                    at += 1 + value.iter().position(|byte| byte == quote).map_or(0, |offset| offset + 1);
                }
                _ => at += 1,
            }
        }
    }
}

/// A quote opens a value only after `=`.
fn is_value_start(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'=')
}

/// The attributes of a tag as name and value, in order.
pub(super) fn attributes(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = source;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let name_end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/')).unwrap_or(rest.len());
        let name_end = if name_end == 0 { 1 } else { name_end };
        let name = &rest[..name_end];
        rest = rest[name_end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        let Some(value) = rest.strip_prefix('=') else {
            return Some((name, ""));
        };
        let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let quoted = quote.and_then(|quote| Some((quote, value[1..].find(quote)?)));
        let value = match quoted {
            Some((_, length)) => {
                rest = &value[length + 2..];
                &value[1..=length]
            }
            None => {
                let length = value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len());
                rest = &value[length..];
                &value[..length]
            }
        };
        Some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_end_at_their_own_bracket() {
        let source = "<a title=\"x > y\" b='c'>text";
        let Markup::Tag(tag) = Scanner::new(source).markup(0) else { panic!("a tag") };
        assert_eq!((tag.name, &source[tag.end..]), ("a", "text"));
        let pairs: Vec<_> = attributes(tag.attributes).collect();
        assert_eq!(pairs, [("title", "x > y"), ("b", "c")]);
    }

    #[test]
    fn broken_markup_stays_text_or_costs_only_itself() {
        assert!(matches!(Scanner::new("< b").markup(0), Markup::Text));
        assert!(matches!(Scanner::new("<!-- never closed <b>").markup(0), Markup::Comment(4)));
        let source = "<p class=\"open>text";
        let Markup::Tag(tag) = Scanner::new(source).markup(0) else { panic!("a tag") };
        assert_eq!(&source[tag.end..], "text");
        assert_eq!(attributes("= x=1").collect::<Vec<_>>(), [("=", ""), ("x", "1")]);
    }
}

//! `Content-Type`: which kind of mail a body is, and in which charset.

use axum::http::{HeaderMap, header};
use encoding_rs::Encoding;

use super::super::problem::{Problem, excerpt};

/// A parsed `Content-Type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct MediaType {
    /// `type/subtype` in lower case; empty where the header is missing or unreadable.
    pub essence: String,
    /// The parameter `charset`.
    charset: Option<String>,
}

impl MediaType {
    pub(in crate::server) fn of(headers: &HeaderMap) -> Self {
        Self::parse(headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default())
    }

    fn parse(value: &str) -> Self {
        let mut parts = value.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts
            .filter_map(|parameter| parameter.split_once('='))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
            .map(|(_, value)| value.trim().trim_matches('"').to_owned());
        Self { essence, charset }
    }

    /// The problem for a type that an endpoint does not read.
    pub(in crate::server) fn refuse(&self, valid: &[&str]) -> Problem {
        let detail = match self.essence.as_str() {
            "" => "the header content-type is missing".to_owned(),
            // What curl sends when nobody says otherwise: the most likely mistake of a first request.
            "application/x-www-form-urlencoded" => {
                "content-type is application/x-www-form-urlencoded, which curl sends unless it is told otherwise"
                    .to_owned()
            }
            other => format!("content-type `{}` is not read here", excerpt(other)),
        };
        Problem::unsupported_media_type("unsupported_media_type", detail)
            .field("content-type")
            .given(excerpt(&self.essence))
            .valid(valid)
            .remedy(format!("Send one of {}, with curl: -H 'content-type: {}'.", valid.join(", "), valid[0]))
    }

    /// Decodes text; without a charset it is UTF-8. A byte order mark wins over both.
    pub(in crate::server) fn decode(&self, bytes: &[u8]) -> Result<String, Problem> {
        let encoding = match &self.charset {
            None => encoding_rs::UTF_8,
            Some(label) => Encoding::for_label(label.as_bytes()).ok_or_else(|| {
                Problem::unsupported_media_type("unsupported_charset", "the charset is not known")
                    .field("content-type")
                    .given(excerpt(label))
                    .remedy("Use a name of the WHATWG encoding standard, such as utf-8, windows-1252 or shift_jis.")
            })?,
        };
        let (text, used, malformed) = encoding.decode(bytes);
        if malformed {
            return Err(not_text(used.name(), std::str::from_utf8(bytes).err().filter(|_| used == encoding_rs::UTF_8)));
        }
        Ok(text.into_owned())
    }

    /// JSON is UTF-8 (RFC 8259, section 8.1); another charset is refused instead of misread.
    pub(in crate::server) fn decode_utf8<'a>(&self, bytes: &'a [u8]) -> Result<&'a str, Problem> {
        if let Some(charset) = self.charset.as_deref().filter(|name| !name.eq_ignore_ascii_case("utf-8")) {
            return Err(Problem::unsupported_media_type("unsupported_charset", "JSON is read as UTF-8 only")
                .field("content-type")
                .given(excerpt(charset))
                .valid(["utf-8"]));
        }
        // Some clients write a byte order mark before JSON; readers may skip it.
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        std::str::from_utf8(bytes).map_err(|error| not_text("UTF-8", Some(error)))
    }
}

fn not_text(charset: &str, error: Option<std::str::Utf8Error>) -> Problem {
    let place = error.map_or(String::new(), |error| format!(" from byte {} on", error.valid_up_to()));
    Problem::bad_request("invalid_text", format!("the body is not valid {charset}{place}"))
        .field("body")
        .remedy("Name the charset it is in (content-type: text/plain; charset=...), send the raw mail as message/rfc822, or send UTF-8.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_case_do_not_matter() {
        let parsed = MediaType::parse("Text/Plain; format=flowed; Charset=\"ISO-8859-1\"");
        assert_eq!(parsed, MediaType { essence: "text/plain".into(), charset: Some("ISO-8859-1".into()) });
        assert_eq!(parsed.decode(b"r\xe9fund").unwrap(), "r\u{e9}fund");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_place() {
        let problem = MediaType::parse("text/plain").decode(b"ab\xff").unwrap_err();
        assert!(serde_json::to_string(&problem).unwrap().contains("from byte 2 on"));
    }
}

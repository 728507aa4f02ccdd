//! W3C Trace Context: the trace that a request belongs to, so that it can be found from the caller's side.
//!
//! <https://www.w3.org/TR/trace-context/>: `traceparent: 00-<32 hex digits>-<16 hex digits>-<2 hex digits>`. What does not
//! look like that is ignored, as the standard asks, and `tracestate` with it.

use axum::http::{HeaderMap, HeaderName};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Longest `tracestate` that is taken over, as the standard asks at least.
const MAX_STATE: usize = 512;

/// The caller's place in its trace, in lower-case hex digits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parent<'h> {
    /// 32 digits.
    pub(super) trace_id: &'h str,
    /// 16 digits: the caller's span.
    pub(super) span_id: &'h str,
    /// 2 digits: whether the caller records its part.
    pub(super) flags: &'h str,
}

/// The caller's place in its trace, where it says so.
pub(super) fn parent(headers: &HeaderMap) -> Option<Parent<'_>> {
    let parent = headers.get(TRACEPARENT)?.to_str().ok()?;
    let mut parts = parent.split('-');
    let (version, trace_id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // Later versions may add parts; this one has none.
    let ends = version != "00" || parts.next().is_none();
    let sound = hex(version, 2) && version != "ff" && id(trace_id, 32) && id(span_id, 16) && hex(flags, 2) && ends;
    sound.then_some(Parent { trace_id, span_id, flags })
}

/// What tracing systems on the way added, as pairs; empty where it is too long. Pairs that could hold an address are left out.
pub(super) fn state(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = headers.get_all(TRACESTATE).iter().filter_map(|line| line.to_str().ok()).collect();
    if lines.iter().map(|line| line.len() + 1).sum::<usize>() > MAX_STATE + 1 {
        return Vec::new();
    }
    let pairs = lines.into_iter().flat_map(|line| line.split(','));
    pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(_, value)| !value.contains(['@', ' '])).collect()
}

fn id(text: &str, digits: usize) -> bool {
    hex(text, digits) && text.bytes().any(|digit| digit != b'0')
}

fn hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn of(value: &'static str) -> Option<[String; 3]> {
        let headers = HeaderMap::from_iter([(TRACEPARENT, HeaderValue::from_static(value))]);
        parent(&headers).map(|parent| [parent.trace_id, parent.span_id, parent.flags].map(str::to_owned))
    }

    #[test]
    fn a_sound_header_gives_its_trace_and_anything_else_nothing() {
        let parts = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "01"].map(str::to_owned);
        assert_eq!(of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").as_ref(), Some(&parts));
        assert_eq!(of("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").as_ref(), Some(&parts));
        for value in [
            "",
            "ann@mail.example",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(of(value), None, "{value}");
        }
    }

    #[test]
    fn the_state_of_several_headers_is_one_list_without_addresses() {
        let state_of = |lines: &[&str]| -> Vec<(String, String)> {
            let values = lines.iter().map(|line| (TRACESTATE, HeaderValue::from_str(line).unwrap()));
            let headers = HeaderMap::from_iter(values);
            state(&headers).into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let lines = ["rojo=00f067aa, a@congo=t61rc", "who=ann@mail.example,said=where is it,broken"];
        assert_eq!(state_of(&lines), [pair("rojo", "00f067aa"), pair("a@congo", "t61rc")]);
        assert_eq!(state_of(&[&format!("a={}", "b".repeat(600))]), []);
    }
}

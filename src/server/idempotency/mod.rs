//! `Idempotency-Key`: a request that is sent again gets the answer that it got, and is not done again.
//!
//! A key counts for its client and endpoint. As in the IETF's draft, the same key with another body is refused (422),
//! and a key whose request is still being answered too (409). Only answers of status 200 are kept, and of these none in
//! which something was refused for the moment ([`Passing`]); after an error the key is free, so that sending again tries
//! again. How long and how many answers are kept is bounded (`[server] idempotency_*`); they live in this process's memory.

mod store;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

use self::store::{Answer, Claim, Fingerprint, Key};
pub(super) use self::store::{Bounds, Store};
use super::asker::Asker;
use super::extract::read_body;
use super::problem::Problem;
use super::state::Handle;

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// `true` on an answer that was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// On an answer of status 200 in which something is refused for the moment: sending it again must try again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passing;

/// Longest key, in characters.
const MAX_KEY: usize = 255;

/// Around the endpoints that honour the key.
pub(super) async fn honour(State(server): State<Handle>, request: Request, next: Next) -> Response {
    match answer(&server, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn answer(server: &Handle, request: Request, next: Next) -> Result<Response, Problem> {
    let Some(key) = key(request.headers())? else { return Ok(next.run(request).await) };
    let (mut parts, body) = request.into_parts();
    let Ok(asker) = Asker::from_request_parts(&mut parts, server).await;
    let key = Key { client: asker.client(), path: parts.uri.path().to_owned(), key };
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let asked = fingerprint(parts.headers.get(header::CONTENT_TYPE), parts.uri.query(), &bytes);
    let place = match server.idempotency().claim(key, asked) {
        Claim::Free(place) => place,
        Claim::Answered(answer) => return Ok(replay(answer)),
        Claim::InFlight => return Err(in_flight()),
        Claim::AnotherRequest => return Err(another_request()),
    };
    // Dropped with the request where the client goes away: the key is free again.
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    if response.status() != StatusCode::OK || response.extensions().get::<Passing>().is_some() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| Problem::internal("internal_error"))?.to_bytes();
    place.keep(Answer { headers: parts.headers.clone(), body: body.clone() });
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// The key, which may stand in quotes as the draft has it.
fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().map(|text| text.trim());
    let key = key.map(|text| text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text));
    let usable = |key: &&str| (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    match key.filter(usable).filter(|_| values.next().is_none()) {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(Problem::bad_request(
            "invalid_idempotency_key",
            format!("the key must be 1 to {MAX_KEY} visible ASCII characters, and stand once"),
        )
        .field(IDEMPOTENCY_KEY.as_str())
        .limit(MAX_KEY)
        .remedy("Send a random UUID for each request, and the same one when you send it again.")),
    }
}

/// What two requests must have in common to be the same one.
fn fingerprint(content_type: Option<&HeaderValue>, query: Option<&str>, body: &Bytes) -> Fingerprint {
    let mut hash = Sha256::new();
    for part in [content_type.map_or(&[][..], HeaderValue::as_bytes), query.unwrap_or_default().as_bytes(), body] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn replay(Answer { mut headers, body }: Answer) -> Response {
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    (StatusCode::OK, headers, body).into_response()
}

fn in_flight() -> Problem {
    Problem::conflict("idempotency_in_flight", "the request with this key is still being answered")
        .field(IDEMPOTENCY_KEY.as_str())
        .remedy("Wait for its answer, or send it again in a second.")
}

fn another_request() -> Problem {
    Problem::unprocessable("idempotency_key_reused", "this key came with another request before")
        .field(IDEMPOTENCY_KEY.as_str())
        .remedy("Send a new key with each new request; the same key only with the same body, query and content type.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_stand_in_quotes_and_must_be_visible_ascii() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IDEMPOTENCY_KEY, value.parse().unwrap());
            key(&headers)
        };
        assert_eq!(of("\"8e03978e\"").unwrap().as_deref(), Some("8e03978e"));
        assert_eq!(of("8e03978e").unwrap().as_deref(), Some("8e03978e"));
        for value in ["", "\"\"", "a b", &"x".repeat(256)] {
            assert!(of(value).is_err(), "{value}");
        }
        let mut headers = HeaderMap::new();
        headers.append(IDEMPOTENCY_KEY, "a".parse().unwrap());
        headers.append(IDEMPOTENCY_KEY, "b".parse().unwrap());
        assert!(key(&headers).is_err());
        assert_eq!(key(&HeaderMap::new()).unwrap(), None);
    }

    #[test]
    fn content_type_query_and_body_make_the_fingerprint() {
        let json = HeaderValue::from_static("application/json");
        let of = |kind, query, body: &'static str| fingerprint(kind, query, &Bytes::from_static(body.as_bytes()));
        let first = of(Some(&json), None, "{}");
        assert_eq!(first, of(Some(&json), None, "{}"));
        assert_ne!(first, of(None, None, "application/json{}"));
        assert_ne!(first, of(Some(&json), Some("a"), "{}"));
        assert_ne!(first, of(Some(&json), None, "{} "));
    }
}

//! A request's body, within its size and its time.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::super::ServerConfig;
use super::super::problem::Problem;

/// How much of a body that is refused anyway is still taken in, so that a client which reads only after it has sent
/// everything sees the answer instead of a reset connection.
const SWALLOWED_BYTES: usize = 32 * 1024 * 1024;
const SWALLOWED_FOR: Duration = Duration::from_secs(2);

pub(in crate::server) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    config: &ServerConfig,
) -> Result<Bytes, Problem> {
    refuse_encoding(headers)?;
    let limit = config.max_body_bytes;
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if let Some(length) = declared.filter(|&length| length > limit) {
        // A client that asks before it sends gets its answer before it sends.
        if !headers.contains_key(header::EXPECT) {
            swallow(body).await;
        }
        return Err(too_large(limit).given(length));
    }
    collect(body, limit, declared.unwrap_or(0), config.body_timeout()).await
}

async fn collect(mut body: Body, limit: usize, expected: usize, time: Duration) -> Result<Bytes, Problem> {
    let deadline = Instant::now() + time;
    let mut bytes = Vec::with_capacity(expected);
    loop {
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(too_slow(time, bytes.len())),
            Ok(None) => return Ok(bytes.into()),
            Ok(Some(Err(_))) => {
                return Err(Problem::bad_request("incomplete_body", "the connection broke off within the body")
                    .given(bytes.len()));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            drop(bytes);
            swallow(body).await;
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&data);
    }
}

async fn swallow(mut body: Body) {
    let deadline = Instant::now() + SWALLOWED_FOR;
    let mut swallowed = 0;
    while swallowed < SWALLOWED_BYTES {
        match timeout_at(deadline, body.frame()).await {
            Ok(Some(Ok(frame))) => swallowed += frame.data_ref().map_or(0, Bytes::len),
            _ => return,
        }
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::too_large("body_too_large", format!("the body is longer than {limit} bytes"))
        .field("body")
        .limit(limit)
        .remedy("Leave out attachments, send long mail by itself, or raise server.max_body_bytes.")
}

fn too_slow(time: Duration, received: usize) -> Problem {
    let detail = format!("the body did not arrive within {} ms", time.as_millis());
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail)
        .field("body")
        .limit(format!("{} ms", time.as_millis()))
        .given(format!("{received} bytes"))
        .remedy("Send the body faster, or raise server.body_timeout_ms.")
}

fn refuse_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(header::CONTENT_ENCODING) {
        None => Ok(()),
        Some(encoding) if encoding.as_bytes().eq_ignore_ascii_case(b"identity") => Ok(()),
        Some(encoding) => {
            Err(Problem::unsupported_media_type("unsupported_encoding", "compressed bodies are not read")
                .field("content-encoding")
                .given(String::from_utf8_lossy(encoding.as_bytes()))
                .valid(["identity"])
                .remedy("Send the body as it is."))
        }
    }
}

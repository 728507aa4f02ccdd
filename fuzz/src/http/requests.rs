//! From an input to a request.

use std::fmt::Write;

use axum::body::Body;
use axum::http::Request;
use axum::http::request::Builder;
use libfuzzer_sys::arbitrary::{Error, Result, Unstructured};
use serde_json::{Value, json};

use super::edits::{WORDS, edited, rarely};
use super::{Operation, ROUTERS, Service};

/// A request whose body is an example that was changed.
///
/// # Errors
/// Where the input makes no request.
pub fn body(service: &Service, input: &mut Unstructured<'_>) -> Result<Request<Body>> {
    let operation = *input.choose(&service.document.with_body())?;
    let (kind, example) = input.choose(&operation.bodies)?;
    let fields = &service.document.fields;
    let mut request =
        Request::builder().method("POST").uri(path(service, operation, &mut |names, _| Ok(names[0].clone()))?);
    let kind = if rarely(input, 32)? { *input.choose(KINDS)? } else { kind.as_str() };
    request = headers(service, input, request)?.header("content-type", kind);
    if operation.path.ends_with("/infer") && rarely(input, 2)? {
        let (body, length) = tensors(input, fields)?;
        return finish(request.header("inference-header-content-length", length), body);
    }
    let body = match example {
        // A raw mail, or lines: a text, with anything put in.
        Value::String(text) => {
            let mut bytes = text.clone().into_bytes();
            let at = input.int_in_range(0..=bytes.len())?;
            bytes.splice(at..at, input.arbitrary::<&[u8]>()?.iter().copied());
            bytes
        }
        example => edited(input, example, fields)?,
    };
    finish(request, body)
}

/// A request whose path and query are anything, and whose body is in order.
///
/// # Errors
/// Where the input makes no request.
pub fn query(service: &Service, input: &mut Unstructured<'_>) -> Result<Request<Body>> {
    let operation = input.choose(&service.document.operations)?;
    let mut uri = path(service, operation, &mut |names, encode| {
        Ok(match input.int_in_range(0..=3)? {
            0 | 1 => input.choose(names)?.clone(),
            2 => encode(input.choose(WORDS)?),
            _ => encode(input.arbitrary::<&str>()?),
        })
    })?;
    for index in 0..input.int_in_range(0..=4)? {
        let (name, words) = match input.choose_index(operation.parameters.len() + 1)?.checked_sub(1) {
            Some(known) => (operation.parameters[known].0.as_str(), operation.parameters[known].1.as_slice()),
            None if rarely(input, 2)? => ("router", &[][..]),
            None => (input.arbitrary::<&str>()?, &[][..]),
        };
        let value = match input.int_in_range(0..=3)? {
            0 | 1 if !words.is_empty() => input.choose(words)?.as_str(),
            0..=2 => *input.choose(WORDS)?,
            _ => input.arbitrary::<&str>()?,
        };
        // Sometimes as it is, so that signs of the syntax count.
        let encode = if rarely(input, 4)? { legal } else { percent };
        let (sign, name, value) = (if index == 0 { '?' } else { '&' }, encode(name), encode(value));
        let _ = write!(uri, "{sign}{name}={value}");
    }
    let method = if rarely(input, 32)? { *input.choose(METHODS)? } else { operation.method.as_str() };
    let request = headers(service, input, Request::builder().method(method).uri(uri))?;
    match operation.bodies.first() {
        // The first form of every body is JSON.
        Some((kind, example)) => finish(request.header("content-type", kind), example.to_string().into_bytes()),
        None => finish(request, Vec::new()),
    }
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "X"];

const KINDS: &[&str] = &[
    "",
    "application/json; charset=utf-8",
    "application/json; charset=utf-16",
    "text/plain; charset=shift_jis",
    "text/plain; charset=none",
    "message/rfc822",
    "application/x-ndjson",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=a",
    ";charset",
    "text/plain;charset=\"",
];

type Encode = fn(&str) -> String;

/// The path with its parts filled in; `part` is given the names that are right.
fn path(
    service: &Service,
    operation: &Operation,
    part: &mut dyn FnMut(&[String], Encode) -> Result<String>,
) -> Result<String> {
    let routers = ROUTERS.map(str::to_owned);
    let mut path = String::new();
    for segment in operation.path.split('/').skip(1) {
        path.push('/');
        match segment {
            "{version}" => path.push_str(&part(&service.versions, percent)?),
            segment if segment.starts_with('{') => path.push_str(&part(&routers, percent)?),
            segment => path.push_str(segment),
        }
    }
    Ok(path)
}

/// A key, and now and then what else a head may say.
fn headers(service: &Service, input: &mut Unstructured<'_>, mut request: Builder) -> Result<Builder> {
    if !rarely(input, 64)? {
        request = request.header("authorization", format!("Bearer {}", service.key));
    }
    for name in ["idempotency-key", "x-request-timeout-ms", "content-encoding", "x-request-id", "x-forwarded-for"] {
        if rarely(input, 32)? {
            request = request.header(name, input.arbitrary::<&[u8]>()?);
        }
    }
    Ok(request)
}

/// Texts behind the JSON, as Triton's client sends them, with lengths that may be wrong; and the length of the JSON.
fn tensors(input: &mut Unstructured<'_>, fields: &[String]) -> Result<(Vec<u8>, usize)> {
    let (mut binary, count) = (Vec::new(), input.int_in_range(0..=3)?);
    for _ in 0..count {
        let text = if rarely(input, 2)? { input.choose(WORDS)?.as_bytes() } else { input.arbitrary::<&[u8]>()? };
        let length = if rarely(input, 8)? { input.arbitrary()? } else { text.len() as u32 };
        binary.extend(length.to_le_bytes());
        binary.extend(text);
    }
    let parameters = json!({"binary_data_size": binary.len()});
    let tensor = json!({"name": "text", "shape": [count], "datatype": "BYTES", "parameters": parameters});
    let mut body = edited(input, &json!({"inputs": [tensor]}), fields)?;
    let length = if rarely(input, 8)? { input.int_in_range(0..=body.len() + 9)? } else { body.len() };
    body.extend(binary);
    Ok((body, length))
}

/// What is no head of a request is no input either.
fn finish(request: Builder, body: Vec<u8>) -> Result<Request<Body>> {
    request.body(body.into()).map_err(|_| Error::IncorrectFormat)
}

/// Every byte that is no letter or digit as `%XX`.
fn percent(text: &str) -> String {
    encode(text, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Only those that no path or query may hold.
fn legal(text: &str) -> String {
    encode(text, |byte| byte.is_ascii_graphic() && !b"#\"<>\\^`{|}".contains(&byte))
}

fn encode(text: &str, plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if plain(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

//! What to show or explain: query parameters or, beside a mail in JSON, fields of the body of the same names.
//!
//! `"layers": "last"`, `"layers": [0, 5]` and `"words": false` in a body mean what they mean in a query.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Uri, request::Parts};
use serde_json::Value;

use super::super::asker::Asker;
use super::super::deadline::TIMEOUT;
use super::super::problem::{Problem, excerpt};
use super::super::state::Handle;
use super::{Asked, MediaType, Object, ROUTER, query, read_body, read_mail};
use crate::routing::{Mail, RoutingService};

/// Parameters as names and texts, each once.
pub(in crate::server) type Parameters = Vec<(&'static str, String)>;

/// The router of a request, its mail, and the parameters that stand beside it, all of them among `names`.
pub(in crate::server) async fn mail_with_parameters(
    server: &Handle,
    asker: &Asker,
    router: Asked,
    request: Request,
    names: &'static [&'static str],
) -> Result<(Arc<RoutingService>, Mail, Parameters), Problem> {
    let (parts, body): (Parts, Body) = request.into_parts();
    let mut asked = of_query(&parts.uri, names)?;
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let fields = [names, &[TIMEOUT, ROUTER]].concat();
    let mut request = read_mail(&MediaType::of(&parts.headers), bytes, &fields)?;
    asker.deadline.of_body(request.rest.take(TIMEOUT))?;
    let service = router.or_of_body(server, &mut request.rest)?;
    of_body(request.rest, names, &mut asked)?;
    Ok((service, request.mail, asked))
}

/// The parameters of a query.
pub(in crate::server) fn of_query(uri: &Uri, names: &'static [&'static str]) -> Result<Parameters, Problem> {
    let mut asked = Parameters::new();
    // `Asked` has read the router.
    for (name, value) in query::parameters(uri)?.into_iter().filter(|(name, _)| name != ROUTER) {
        let known = names.iter().find(|known| **known == name);
        let known = known.ok_or_else(|| query::unknown(&name, names.iter().copied().chain([ROUTER])))?;
        add(&mut asked, known, value)?;
    }
    Ok(asked)
}

/// The parameters among the fields of a body.
pub(in crate::server) fn of_body(
    mut rest: Object,
    names: &'static [&'static str],
    asked: &mut Parameters,
) -> Result<(), Problem> {
    for name in names {
        if let Some(value) = rest.take(name) {
            add(asked, name, as_text(name, &value)?)?;
        }
    }
    Ok(())
}

fn add(asked: &mut Parameters, name: &'static str, value: String) -> Result<(), Problem> {
    if asked.iter().any(|(other, _)| *other == name) {
        return Err(Problem::unprocessable("repeated_parameter", "a parameter was given twice")
            .field(name)
            .remedy("Give it once, in the query or in the body."));
    }
    asked.push((name, value));
    Ok(())
}

/// `5` and `[0, "2-4"]` mean what they mean in a query.
fn as_text(name: &str, value: &Value) -> Result<String, Problem> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Array(parts) if parts.iter().all(|part| part.is_string() || part.is_u64()) => {
            let parts: Vec<String> =
                parts.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), ToOwned::to_owned)).collect();
            Ok(parts.join(","))
        }
        _ => Err(invalid(name, &value.to_string(), &["a text", "a number", "true", "false", "a list"])),
    }
}

/// The value of a word.
pub(in crate::server) fn one_of<T: Copy>(name: &str, text: &str, valid: &[(&str, T)]) -> Result<T, Problem> {
    let words: Vec<&str> = valid.iter().map(|(word, _)| *word).collect();
    let found = valid.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| invalid(name, text, &words))
}

/// `true` or `false`.
pub(in crate::server) fn truth(name: &str, text: &str) -> Result<bool, Problem> {
    one_of(name, text, &[("true", true), ("false", false)])
}

/// The largest seed: what every language's numbers hold exactly, fifteen digits.
pub(in crate::server) const MOST_SEED: u64 = 999_999_999_999_999;

/// What random choices are drawn from.
pub(in crate::server) fn seed(text: &str) -> Result<u64, Problem> {
    let digits = text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    let valid = ["a whole number from 0 to 999999999999999"];
    text.parse().ok().filter(|_| digits).ok_or_else(|| invalid("seed", text, &valid))
}

/// What offsets count.
pub(in crate::server) fn offsets(text: &str) -> Result<crate::tokenizer::OffsetUnit, Problem> {
    use crate::tokenizer::OffsetUnit::{Byte, Char, Utf16};
    one_of("offsets", text, &[("char", Char), ("byte", Byte), ("utf16", Utf16)])
}

/// The problem of a value that a parameter does not take.
pub(in crate::server) fn invalid(name: &str, text: &str, valid: &[&str]) -> Problem {
    Problem::unprocessable("invalid_parameter", format!("`{name}` does not take this value"))
        .field(name)
        .given(excerpt(text))
        .valid(valid)
}

//! `POST /v1/attention`: which words each head looked at, for one mail.
//!
//! The mail comes as for `/v1/route`. What to show comes as query parameters or, beside a mail in JSON, as fields of the
//! body: `"layers": "last"`, `"layers": [0, 5]`, `"words": false`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Uri;
use serde_json::Value;

use super::extract::{MediaType, Object, query, read_body, read_mail};
use super::problem::{Problem, excerpt};
use super::state::Handle;
use crate::explain::{Heads, Layers, Reduce, Rows, Special};
use crate::routing::AttentionRequest;
use crate::tokenizer::OffsetUnit;

const PARAMETERS: [&str; 10] =
    ["layers", "heads", "reduce", "rows", "words", "special", "offsets", "precision", "format", "weight"];

pub(super) async fn attention(State(server): State<Handle>, request: Request) -> Result<Json<Value>, Problem> {
    let service = server.service()?;
    let (parts, body) = request.into_parts();
    let mut asked = of_query(&parts.uri)?;
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let request = read_mail(&MediaType::of(&parts.headers), bytes, &PARAMETERS)?;
    of_body(request.rest, &mut asked)?;
    let mut shown = AttentionRequest::default();
    for (name, value) in &asked {
        set(&mut shown, name, value)?;
    }
    Ok(Json(service.attend(request.mail, shown).await?.into_json()))
}

/// Parameters as names and texts, each once.
type Parameters = Vec<(&'static str, String)>;

fn of_query(uri: &Uri) -> Result<Parameters, Problem> {
    let mut asked = Parameters::new();
    for (name, value) in query::parameters(uri)? {
        let known = PARAMETERS.into_iter().find(|known| *known == name);
        let known = known.ok_or_else(|| query::unknown(&name, PARAMETERS.into_iter()))?;
        add(&mut asked, known, value)?;
    }
    Ok(asked)
}

fn of_body(mut rest: Object, asked: &mut Parameters) -> Result<(), Problem> {
    for name in PARAMETERS {
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
        _ => Err(invalid(name, &value.to_string(), &["a text", "a number", "true", "false", "a list of numbers"])),
    }
}

fn set(shown: &mut AttentionRequest, name: &str, text: &str) -> Result<(), Problem> {
    let select = |error| Problem::from(crate::routing::RoutingError::Select(error));
    match name {
        "layers" => shown.layers = Layers::parse(text).map_err(select)?,
        "heads" => shown.heads = Heads::parse(text).map_err(select)?,
        "rows" => shown.rows = Rows::parse(text).map_err(select)?,
        "reduce" => {
            let valid = [("none", Reduce::None), ("mean", Reduce::Mean), ("max", Reduce::Max)];
            shown.reduce = one_of(name, text, &valid, &["rollout", "relevance"])?;
        }
        "words" => shown.words = one_of(name, text, &[("true", true), ("false", false)], &[])?,
        "special" => shown.special = one_of(name, text, &[("keep", Special::Keep), ("drop", Special::Drop)], &[])?,
        "offsets" => {
            let valid = [("char", OffsetUnit::Char), ("byte", OffsetUnit::Byte), ("utf16", OffsetUnit::Utf16)];
            shown.offsets = one_of(name, text, &valid, &[])?;
        }
        "precision" => {
            let digits = text.parse().ok().filter(|digits| (1..=9).contains(digits));
            shown.precision = digits.ok_or_else(|| invalid(name, text, &["1-9"]))?;
        }
        "format" => one_of(name, text, &[("json", ())], &["npy", "safetensors", "png", "svg", "html"])?,
        "weight" => one_of(name, text, &[("alpha", ())], &["norm"])?,
        other => return Err(query::unknown(other, PARAMETERS.into_iter())),
    }
    Ok(())
}

/// The value of a word. `later` are words that have a meaning, but not in this version.
fn one_of<T: Copy>(name: &str, text: &str, valid: &[(&str, T)], later: &[&str]) -> Result<T, Problem> {
    let words: Vec<&str> = valid.iter().map(|(word, _)| *word).collect();
    match valid.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None if later.contains(&text) => {
            let detail = format!("{name}={text} is not available in this version, only {}", words.join(", "));
            Err(Problem::unprocessable("not_available", detail).field(name).given(text).valid(words))
        }
        None => Err(invalid(name, text, &words)),
    }
}

fn invalid(name: &str, text: &str, valid: &[&str]) -> Problem {
    Problem::unprocessable("invalid_parameter", format!("`{name}` does not take this value"))
        .field(name)
        .given(excerpt(text))
        .valid(valid)
}

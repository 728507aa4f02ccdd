//! The mail of a request, in any of the three forms that it comes in.

use axum::body::Bytes;
use serde_json::Value;

use super::super::problem::{Problem, excerpt};
use super::json::wrong_type;
use super::{Item, MediaType, Object, decode_json, parse_json};
use crate::routing::{Mail, MailContent, MailFields};

/// Fields of a mail in JSON.
pub(in crate::server) const MAIL_FIELDS: [&str; 6] = ["subject", "text", "html", "from", "id", "headers"];

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const MIME: &str = "message/rfc822";

/// Longest id of a caller, in characters.
const MAX_ID: usize = 200;

/// Most headers of a mail in JSON.
const MAX_HEADERS: usize = 1000;

/// A mail, and the fields of a JSON body that are none of its own.
pub(in crate::server) struct MailRequest {
    pub mail: Mail,
    /// What is left of the JSON object: values of `further` fields.
    pub rest: Object,
}

/// Reads a body by its content type; a JSON body may have `further` fields beside those of the mail.
pub(in crate::server) fn read_mail(
    media_type: &MediaType,
    bytes: Bytes,
    further: &[&str],
) -> Result<MailRequest, Problem> {
    match media_type.essence.as_str() {
        JSON => {
            let mut object = parse_json::<Item>(&decode_json(&bytes, media_type)?)?.object("the body")?;
            object.check(MAIL_FIELDS.into_iter().chain(further.iter().copied()))?;
            Ok(MailRequest { mail: take_mail(&mut object)?, rest: object })
        }
        TEXT => {
            let fields = MailFields { text: Some(media_type.decode(&bytes)?), ..MailFields::default() };
            Ok(MailRequest { mail: Mail { id: None, content: MailContent::Fields(fields) }, rest: Object::default() })
        }
        MIME => Ok(MailRequest {
            mail: Mail { id: None, content: MailContent::Mime(Vec::from(bytes)) },
            rest: Object::default(),
        }),
        _ => Err(media_type.refuse(&[JSON, TEXT, MIME])),
    }
}

/// The mail in a JSON object that has no other fields.
pub(in crate::server) fn mail_of_object(mut object: Object) -> Result<Mail, Problem> {
    object.check(MAIL_FIELDS.into_iter())?;
    take_mail(&mut object)
}

fn take_mail(object: &mut Object) -> Result<Mail, Problem> {
    let fields = MailFields {
        subject: object.take_text("subject")?,
        text: object.take_text("text")?,
        html: object.take_text("html")?,
        from: object.take_text("from")?,
        headers: take_headers(object)?,
    };
    if [&fields.subject, &fields.text, &fields.html].iter().all(|part| part.is_none()) {
        return Err(Problem::unprocessable("missing_field", "the mail has none of subject, text and html")
            .field("text")
            .valid(["subject", "text", "html"])
            .remedy("Send at least one of them; an empty text is allowed and goes to a person."));
    }
    Ok(Mail { id: take_id(object)?, content: MailContent::Fields(fields) })
}

fn take_id(object: &mut Object) -> Result<Option<String>, Problem> {
    let Some(id) = object.take_text("id")? else { return Ok(None) };
    let length = id.chars().count();
    if length == 0 || length > MAX_ID || id.chars().any(char::is_control) {
        return Err(Problem::unprocessable(
            "invalid_field",
            "`id` must have 1 to 200 characters, none of them a control character",
        )
        .field("id")
        .limit(MAX_ID)
        .given(length));
    }
    Ok(Some(id))
}

/// `{"Name": "value"}`, a list of values for a header that stands several times, or `[["Name", "value"]]`.
fn take_headers(object: &mut Object) -> Result<Vec<(String, String)>, Problem> {
    const SHAPE: &str = "object of strings, or array of [name, value]";
    let Some(value) = object.take("headers") else { return Ok(Vec::new()) };
    let mut headers = Vec::new();
    let mut push = |name: &str, value: &Value| match value {
        Value::String(text) => {
            headers.push((name.to_owned(), text.clone()));
            Ok(())
        }
        other => Err(wrong_type(&format!("headers.{}", excerpt(name)), other, "string")),
    };
    match &value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::Array(values) => values.iter().try_for_each(|value| push(name, value))?,
                    value => push(name, value)?,
                }
            }
        }
        Value::Array(pairs) => {
            for pair in pairs {
                match pair.as_array().map(Vec::as_slice) {
                    Some([Value::String(name), value]) => push(name, value)?,
                    _ => return Err(wrong_type("headers", pair, SHAPE)),
                }
            }
        }
        other => return Err(wrong_type("headers", other, SHAPE)),
    }
    if headers.len() > MAX_HEADERS {
        return Err(Problem::unprocessable(
            "too_many_headers",
            format!("the mail has more than {MAX_HEADERS} headers"),
        )
        .field("headers")
        .limit(MAX_HEADERS)
        .given(headers.len()));
    }
    Ok(headers)
}

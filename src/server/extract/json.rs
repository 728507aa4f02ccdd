//! JSON objects whose every mistake can be named: unknown fields, repeated ones, wrong types.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;

use super::super::problem::{Problem, excerpt};
use super::MediaType;
use super::surrogates::replace_lone_surrogates;
use super::values::Budget;

/// Any JSON value, looked at as a possible object.
#[derive(Debug)]
pub(in crate::server) enum Item {
    Object(Object),
    /// Something else, by the name of its type.
    Other(&'static str),
}

/// The fields of an object in the order in which they were sent.
#[derive(Debug, Default)]
pub(in crate::server) struct Object {
    fields: Vec<(String, Value)>,
    /// The first field that stands twice.
    repeated: Option<String>,
}

impl Item {
    /// The object, or the problem that this is none.
    pub(in crate::server) fn object(self, what: &str) -> Result<Object, Problem> {
        match self {
            Self::Object(object) => Ok(object),
            Self::Other(given) => Err(Problem::unprocessable("wrong_type", format!("{what} must be an object"))
                .given(given)
                .valid(["object"])),
        }
    }
}

impl Object {
    /// Refuses fields that are none of `valid`, and those that stand twice.
    pub(in crate::server) fn check<'v>(&self, valid: impl Iterator<Item = &'v str> + Clone) -> Result<(), Problem> {
        if let Some((name, _)) = self.fields.iter().find(|(name, _)| valid.clone().all(|known| known != name)) {
            return Err(Problem::unprocessable("unknown_field", "the body has a field that is not known")
                .field(excerpt(name))
                .valid(valid)
                .remedy("Leave it out or correct its name; nothing that is sent is ignored."));
        }
        match &self.repeated {
            Some(name) => Err(Problem::unprocessable("repeated_field", "a field stands twice in the body")
                .field(excerpt(name))
                .remedy("Send it once.")),
            None => Ok(()),
        }
    }

    /// Takes a field out; `null` counts as absent.
    pub(in crate::server) fn take(&mut self, name: &str) -> Option<Value> {
        let position = self.fields.iter().position(|(field, _)| field == name)?;
        Some(self.fields.swap_remove(position).1).filter(|value| !value.is_null())
    }

    /// Takes a text out.
    pub(in crate::server) fn take_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, &other, "string")),
        }
    }
}

/// The problem of a field that holds another type than it should.
pub(in crate::server) fn wrong_type(field: &str, given: &Value, expected: &str) -> Problem {
    Problem::unprocessable("wrong_type", format!("`{field}` must be of type {expected}"))
        .field(field)
        .given(type_name(given))
        .valid([expected])
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The text of a JSON body, ready to be parsed.
pub(in crate::server) fn decode_json<'a>(bytes: &'a [u8], media_type: &MediaType) -> Result<Cow<'a, str>, Problem> {
    Ok(replace_lone_surrogates(media_type.decode_utf8(bytes)?))
}

/// Parses JSON, nested 127 deep at most.
pub(in crate::server) fn parse_json<T: for<'de> Deserialize<'de>>(json: &str) -> Result<T, Problem> {
    parse_json_by(json, PhantomData::<T>)
}

/// As [`parse_json`], by a seed that knows what a type alone does not, such as a limit.
pub(in crate::server) fn parse_json_by<'de, S: DeserializeSeed<'de>>(
    json: &'de str,
    seed: S,
) -> Result<S::Value, Problem> {
    let mut parser = serde_json::Deserializer::from_str(json);
    let parsed = seed.deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    parsed.map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        let problem = match error.classify() {
            Category::Eof => Problem::bad_request("incomplete_json", format!("the JSON breaks off at {place}"))
                .remedy("Send the whole body; check content-length and whatever cuts texts on the way."),
            Category::Data => Problem::unprocessable("wrong_type", error.to_string()),
            Category::Syntax | Category::Io => Problem::bad_request("invalid_json", error.to_string()).remedy(
                "Write the body with a JSON library, so that quotes, line breaks and control characters are escaped.",
            ),
        };
        problem.field("body")
    })
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let (mut object, budget) = (Object::default(), Budget::new());
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(budget.value())?;
            if object.fields.iter().any(|(known, _)| *known == name) {
                object.repeated.get_or_insert(name);
            } else if object.fields.len() == MAX_FIELDS {
                return Err(A::Error::custom(format_args!("an object has more than {MAX_FIELDS} fields")));
            } else {
                object.fields.push((name, value));
            }
        }
        Ok(Item::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Item, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Item::Other("array"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Item, E> {
        Ok(Item::Other("string"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Item, E> {
        Ok(Item::Other("boolean"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Item, E> {
        Ok(Item::Other("number"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Item, E> {
        Ok(Item::Other("number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Item, E> {
        Ok(Item::Other("number"))
    }

    fn visit_unit<E>(self) -> Result<Item, E> {
        Ok(Item::Other("null"))
    }
}

/// Looking for repeats is quadratic in the fields, so their number is bounded well above what any mail has.
const MAX_FIELDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        parse_json::<Item>(json).unwrap().object("the body").unwrap()
    }

    fn code(problem: &Problem) -> String {
        serde_json::to_value(problem).unwrap()["code"].as_str().unwrap().to_owned()
    }

    #[test]
    fn unknown_and_repeated_fields_are_told_by_name() {
        let valid = ["text", "subject"];
        let problem = object(r#"{"text": "a", "body": "b"}"#).check(valid.into_iter()).unwrap_err();
        assert_eq!(code(&problem), "unknown_field");
        assert_eq!(serde_json::to_value(&problem).unwrap()["field"], "body");
        let problem = object(r#"{"text": "a", "text": "b"}"#).check(valid.into_iter()).unwrap_err();
        assert_eq!(code(&problem), "repeated_field");
    }

    #[test]
    fn an_object_of_far_too_many_values_is_refused_while_it_is_read() {
        let with =
            |count: usize| format!(r#"{{"text": "a", "headers": [{}]}}"#, vec![r#"["To","a"]"#; count].join(","));
        assert!(object(&with(1001)).check(["text", "headers"].into_iter()).is_ok());
        assert_eq!(code(&parse_json::<Item>(&with(100_000)).unwrap_err()), "wrong_type");
    }

    #[test]
    fn json_that_breaks_off_is_told_from_json_that_is_wrong() {
        assert_eq!(code(&parse_json::<Item>(r#"{"text": "My or"#).unwrap_err()), "incomplete_json");
        assert_eq!(code(&parse_json::<Item>("").unwrap_err()), "incomplete_json");
        for json in ["{'text': 1}", "{\"text\": \"a\0b\"}", &format!("{{\"text\": {}", "[".repeat(100_000)), "{} {}"] {
            assert_eq!(code(&parse_json::<Item>(json).unwrap_err()), "invalid_json");
        }
    }
}

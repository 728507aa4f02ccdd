//! JSON values, so many at most: a short one becomes fifty times as long as itself, so the length of a body does not
//! bound what is made of it.

use std::cell::Cell;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Values of one object, those in its lists and objects counted. Two mails with a thousand headers each, given as
/// pairs, have six thousand; no request has more.
const MAX_VALUES: usize = 10_000;

/// How many values may still be read.
pub(in crate::server) struct Budget {
    left: Cell<usize>,
}

impl Budget {
    pub(in crate::server) fn new() -> Self {
        Self { left: Cell::new(MAX_VALUES) }
    }

    /// Reads a value on this budget; where it does not suffice, that is an error of the JSON.
    pub(in crate::server) fn value(&self) -> ValueSeed<'_> {
        ValueSeed(self)
    }
}

/// Reads a value.
#[derive(Clone, Copy)]
pub(in crate::server) struct ValueSeed<'b>(&'b Budget);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = &self.0.left;
        let Some(rest) = left.get().checked_sub(1) else {
            return Err(D::Error::custom(format_args!("an object holds more than {MAX_VALUES} values")));
        };
        left.set(rest);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            values.insert(name, map.next_value_seed(self)?);
        }
        Ok(Value::Object(values))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> serde_json::Result<Value> {
        let budget = Budget::new();
        budget.value().deserialize(&mut serde_json::Deserializer::from_str(json))
    }

    #[test]
    fn what_is_read_is_what_stands_there() {
        for json in
            ["null", "[true, -7, 7, 0.5, 1e300, \"a\\n\\u00e9\", [], {}]", r#"{"a": {"b": [1]}, "a": 2, "": ""}"#]
        {
            assert_eq!(read(json).unwrap(), serde_json::from_str::<Value>(json).unwrap(), "{json}");
        }
    }

    #[test]
    fn too_many_values_are_refused_wherever_they_stand() {
        let flat = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert!(read(&flat(MAX_VALUES - 1)).is_ok());
        let nested = format!("[{}]", vec!["[1]"; MAX_VALUES / 2].join(","));
        for json in [flat(MAX_VALUES), nested] {
            assert!(read(&json).unwrap_err().to_string().contains("more than 10000 values"));
        }
    }
}

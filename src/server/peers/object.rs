//! Objects that must be objects: serde's own structs would be read from lists too.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A value that is read from an object alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::server) struct Object<T>(pub(in crate::server) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::<String, Value>::deserialize(deserializer)?;
        serde_json::from_value(Value::Object(map)).map(Self).map_err(D::Error::custom)
    }
}

/// Described as what it holds.
impl<T: JsonSchema> JsonSchema for Object<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Two {
        a: u8,
        b: Option<u8>,
    }

    #[test]
    fn a_list_is_no_object() {
        assert_eq!(serde_json::from_str::<Object<Two>>("{\"a\": 1}").unwrap(), Object(Two { a: 1, b: None }));
        assert_eq!(serde_json::from_str::<Two>("[1, 2]").unwrap(), Two { a: 1, b: Some(2) });
        for json in ["[1, 2]", "null", "{\"a\": \"x\"}"] {
            assert!(serde_json::from_str::<Object<Two>>(json).is_err(), "{json}");
        }
    }
}

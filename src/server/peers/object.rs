//! Objects that must be objects: serde's own structs would be read from lists too.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value that is read from an object alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::server) struct Object<T>(pub(in crate::server) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

/// Reads the fields as they come: a map of them first would be many times as long as the body.
struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
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

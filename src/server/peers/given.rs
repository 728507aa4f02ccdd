//! What stands where texts are expected, read so that a list of far too many takes no memory: a short element becomes
//! thirty times as long as itself, and how many there are is known only at the list's end.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use super::refusal::Refusal;
use crate::server::ServerConfig;

/// Elements that are kept: of a list as many as the settings can allow, of a list in it one more than any shape has.
const KEPT: [usize; 2] = [ServerConfig::MOST_BATCH_EMAILS, 3];

/// A JSON value, as far as it can be texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum Given {
    Text(String),
    List(List),
    /// Nothing that any shape has.
    Other,
}

/// A list, of which only the first elements are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct List {
    pub(super) kept: Vec<Given>,
    /// All of them.
    pub(super) given: usize,
}

impl Given {
    pub(super) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::List(_) | Self::Other => None,
        }
    }

    /// A text, or a list of at most `limit`.
    ///
    /// # Errors
    /// `shape`, which says so, for anything else; a refusal of its own for a longer list.
    pub(super) fn texts(self, limit: usize, shape: &str) -> Result<Vec<String>, Refusal> {
        let invalid = || Refusal::Invalid(shape.to_owned());
        match self {
            Self::Text(text) => Ok(vec![text]),
            Self::List(List { kept, given }) => {
                let texts: Option<Vec<String>> = kept.into_iter().map(Self::text).collect();
                whole(texts.ok_or_else(invalid)?, given, limit)
            }
            Self::Other => Err(invalid()),
        }
    }
}

/// What was kept of so many inputs, where that is all of them.
pub(super) fn whole<T>(kept: Vec<T>, given: usize, limit: usize) -> Result<Vec<T>, Refusal> {
    if given <= limit && given == kept.len() {
        return Ok(kept);
    }
    Err(Refusal::Invalid(format!("{given} inputs in one request, at most {limit} are taken")))
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        GivenSeed { keep: &KEPT }.deserialize(deserializer)
    }
}

/// Reads a value; `keep` says how many elements are kept of a list, and of the lists in it.
struct GivenSeed {
    keep: &'static [usize],
}

impl<'de> DeserializeSeed<'de> for GivenSeed {
    type Value = Given;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Given, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for GivenSeed {
    type Value = Given;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Given, A::Error> {
        let Some((&most, keep)) = self.keep.split_first() else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Given::Other);
        };
        let mut kept = Vec::new();
        while kept.len() < most {
            match list.next_element_seed(Self { keep })? {
                Some(item) => kept.push(item),
                None => return Ok(Given::List(List { given: kept.len(), kept })),
            }
        }
        let mut given = kept.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            given += 1;
        }
        Ok(Given::List(List { kept, given }))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Given::Other)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Given, E> {
        Ok(Given::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Given, E> {
        Ok(Given::Text(text))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Given, E> {
        Ok(Given::Other)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Given, E> {
        Ok(Given::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Given {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_first_elements_are_kept_and_all_are_counted() {
        let many = ServerConfig::MOST_BATCH_EMAILS + 2;
        let Given::List(list) = read(&format!("[{}]", vec!["\"a\""; many].join(","))) else { panic!("no list") };
        assert_eq!((list.kept.len(), list.given), (ServerConfig::MOST_BATCH_EMAILS, many));
        let text = || Given::Text("a".to_owned());
        let inner = Given::List(List { kept: vec![text(), text(), text()], given: 4 });
        assert_eq!(read(r#"[["a", "a", "a", "a"]]"#), Given::List(List { kept: vec![inner], given: 1 }));
        let deep = format!("[[{}]]", "[".repeat(100_000) + &"]".repeat(100_000));
        let inner = Given::List(List { kept: vec![Given::Other], given: 1 });
        assert_eq!(read(&deep), Given::List(List { kept: vec![inner], given: 1 }));
        for other in ["null", "true", "7", "-7", "0.5", r#"{"text": ["a"]}"#] {
            assert_eq!(read(other), Given::Other, "{other}");
        }
    }

    #[test]
    fn a_list_that_is_too_long_is_refused_with_its_length() {
        let refused = |json: &str, limit| read(json).texts(limit, "texts only").unwrap_err().message();
        assert_eq!(read(r#"["a", "b"]"#).texts(2, "").unwrap(), ["a", "b"]);
        assert_eq!(read(r#""a""#).texts(1, "").unwrap(), ["a"]);
        assert!(refused(r#"["a", "b", "c"]"#, 2).contains("3 inputs in one request, at most 2"));
        for json in ["7", "null", "{}", r#"["a", 7]"#, r#"[["a"]]"#] {
            assert_eq!(refused(json, 2), "texts only", "{json}");
        }
        let many = format!("[{}]", vec!["\"a\""; ServerConfig::MOST_BATCH_EMAILS + 1].join(","));
        // Whatever the limit, what was passed over is not left out silently.
        assert!(refused(&many, usize::MAX).contains("10001 inputs"));
    }
}

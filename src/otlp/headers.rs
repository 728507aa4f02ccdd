//! The headers of an export: they let in, so they are shown nowhere.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use ureq::http::{HeaderName, HeaderValue};

use super::OtlpError;
use super::attributes;

/// Headers as they are written in the settings. Whatever prints or writes the settings shows that there are some, not which.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Headers(String);

impl Headers {
    /// Headers from `name=value,name=value`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The headers one by one.
    ///
    /// # Errors
    /// [`OtlpError::Headers`].
    pub(super) fn parse(&self) -> Result<Vec<(HeaderName, HeaderValue)>, OtlpError> {
        let pairs = attributes::parse(&self.0).ok_or(OtlpError::Headers)?;
        let header = |(name, value): (String, String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        };
        pairs.into_iter().map(header).collect::<Option<_>>().ok_or(OtlpError::Headers)
    }

    fn shown(&self) -> &'static str {
        if self.0.is_empty() { "" } else { "(not shown)" }
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.shown())
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_never_shown() {
        let headers = Headers::new("authorization=Bearer%20quetzal, x-tenant=shop");
        let parsed = headers.parse().unwrap();
        assert_eq!((parsed[0].0.as_str(), parsed[0].1.to_str().unwrap()), ("authorization", "Bearer quetzal"));
        assert_eq!((parsed[1].0.as_str(), parsed[1].1.to_str().unwrap()), ("x-tenant", "shop"));
        let shown = format!("{headers:?} {parsed:?} {}", serde_json::to_string(&headers).unwrap());
        assert!(!shown.contains("quetzal"), "{shown}");
        for bad in ["quetzal", "a b=quetzal", "a=quetzal%0A"] {
            let error = Headers::new(bad).parse().unwrap_err().to_string();
            assert!(!error.contains("quetzal"), "{error}");
        }
    }
}

//! Where exports go.

use ureq::http::Uri;

use super::OtlpError;

/// The path of traces in the standard.
const PATH: &str = "/v1/traces";

/// A URL that exports are posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    url: String,
    shown: String,
}

impl Endpoint {
    /// The endpoint of the settings; `None` where it is empty. A URL that does not end in `/traces` is the base that
    /// `/v1/traces` is added to.
    ///
    /// # Errors
    /// [`OtlpError::Endpoint`] for anything that is no plain URL.
    pub(super) fn of(text: &str) -> Result<Option<Self>, OtlpError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let uri: Uri = text.parse().map_err(|_| OtlpError::Endpoint)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(OtlpError::Endpoint);
        };
        let plain = matches!(scheme, "http" | "https")
            && !authority.host().is_empty()
            && !authority.as_str().contains('@')
            && uri.query().is_none()
            && !text.contains('#');
        if !plain {
            return Err(OtlpError::Endpoint);
        }
        let path = uri.path().trim_end_matches('/');
        let path = if path.ends_with("/traces") { path.to_owned() } else { format!("{path}{PATH}") };
        let shown = format!("{scheme}://{authority}");
        Ok(Some(Self { url: format!("{shown}{path}"), shown }))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Scheme, host and port, for the log: a path may hold a key.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_path_is_added_to_a_base_and_not_to_a_whole_url() {
        for (given, url) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("https://gateway.example/otlp", "https://gateway.example/otlp/v1/traces"),
            ("http://collector:4318/v1/traces", "http://collector:4318/v1/traces"),
            ("http://[::1]:4318/api/v0.2/traces", "http://[::1]:4318/api/v0.2/traces"),
        ] {
            assert_eq!(Endpoint::of(given).unwrap().unwrap().url(), url);
        }
        assert_eq!(Endpoint::of(" ").unwrap(), None);
    }

    #[test]
    fn what_is_no_plain_url_is_refused() {
        for bad in [
            "collector:4318",
            "collector",
            "grpc://collector:4317",
            "http://",
            "http://user:quetzal@collector",
            "http://collector?key=quetzal",
            "http://collector/#a",
        ] {
            let error = Endpoint::of(bad).unwrap_err().to_string();
            assert!(error.contains("http://HOST:PORT") && !error.contains("quetzal"), "{bad}: {error}");
        }
    }
}

//! Settings of the export.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::attributes;
use super::endpoint::Endpoint;
use super::headers::Headers;

/// Where traces go, how many, and in whose name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OtlpConfig {
    /// URL of the collector, such as `http://collector:4318`; empty: nothing is exported.
    pub endpoint: String,
    /// Headers of each export, `name=value,name=value`, the values percent-encoded. Secret.
    pub headers: Headers,
    /// Certificates (PEM) that an https collector's must come from; unset: those of the public authorities.
    pub certificate: Option<PathBuf>,
    /// How long an export may take, repetitions included, in milliseconds.
    pub timeout_ms: u64,
    /// Share of requests without a trace of their caller that are traced, 0 to 1.
    pub sampling_ratio: f64,
    /// `service.name` of every span.
    pub service_name: String,
    /// Further attributes of the resource, `key=value,key=value`, the values percent-encoded.
    pub resource_attributes: String,
}

impl Default for OtlpConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            headers: Headers::default(),
            certificate: None,
            timeout_ms: 10_000,
            sampling_ratio: 1.0,
            service_name: "postroom".to_owned(),
            resource_attributes: String::new(),
        }
    }
}

impl OtlpConfig {
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Checks what types do not say.
    ///
    /// # Errors
    /// [`OtlpError`], which never holds a header.
    pub fn check(&self) -> Result<(), OtlpError> {
        Endpoint::of(&self.endpoint)?;
        self.headers.parse()?;
        attributes::parse(&self.resource_attributes).map(drop).ok_or(OtlpError::Attributes)
    }
}

const ENDPOINT: &str = "http://HOST:PORT or https://HOST:PORT, with a path where the collector wants one, without name, password or \
    query (what lets in belongs into telemetry.otlp.headers)";
const HEADERS: &str = "name=value,name=value with percent-encoded values (a space is %20, a comma %2C)";
const ATTRIBUTES: &str = "key=value,key=value with percent-encoded values (a space is %20, a comma %2C)";

/// Why traces cannot be exported. Endpoint and headers may hold what lets in, so the texts do not repeat them.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The endpoint is no URL that can be sent to.
    #[error("the collector's endpoint is not {}", ENDPOINT)]
    Endpoint,
    /// The headers cannot be read.
    #[error("the collector's headers are not {}", HEADERS)]
    Headers,
    /// The attributes cannot be read.
    #[error("the resource attributes are not {}", ATTRIBUTES)]
    Attributes,
    /// The certificates cannot be read.
    #[error("cannot read the collector's certificates in {}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no certificate.
    #[error("{} holds no certificate in PEM", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
}

impl OtlpError {
    /// The setting at fault, and what would be valid.
    #[must_use]
    pub fn expected(&self) -> (&'static str, &'static str) {
        match self {
            Self::Endpoint => ("telemetry.otlp.endpoint", ENDPOINT),
            Self::Headers => ("telemetry.otlp.headers", HEADERS),
            Self::Attributes => ("telemetry.otlp.resource_attributes", ATTRIBUTES),
            Self::Certificate { .. } | Self::NoCertificate { .. } => {
                ("telemetry.otlp.certificate", "a file with certificates in PEM")
            }
        }
    }
}

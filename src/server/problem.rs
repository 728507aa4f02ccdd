//! What a client sees when a request fails: RFC 9457 `application/problem+json` with a stable `code`.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

/// One problem. `code` is stable and what programs branch on; the texts are for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Problem(Box<Members>);

/// The members of RFC 9457, and ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Members {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// The field, parameter or header at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<Value>,
    /// What would be accepted instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid: Vec<String>,
    /// What the caller can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    #[serde(rename = "retry_after_s", skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self(Box::new(Members {
            kind: format!("urn:postroom:problem:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            code,
            detail: detail.into(),
            field: None,
            limit: None,
            given: None,
            valid: Vec::new(),
            remedy: None,
            retry_after: None,
        }))
    }

    /// The body is not what its content type says.
    pub(super) fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Well formed, but not something that can be answered.
    pub(super) fn unprocessable(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    pub(super) fn too_large(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, code, detail)
    }

    pub(super) fn unsupported_media_type(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail)
    }

    pub(super) fn unavailable(code: &'static str, detail: impl Into<String>, retry_after: Duration) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
        problem.0.retry_after = Some(retry_after.as_secs().max(1));
        problem
    }

    /// Something of ours failed; the log says what.
    pub(super) fn internal(code: &'static str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, "the request failed inside the service; its log says why")
            .remedy("Report it with the x-request-id of this answer. Other requests are not affected.")
    }

    pub(super) fn loading() -> Self {
        Self::unavailable("not_ready", "the router is still being loaded", Duration::from_secs(1))
            .remedy("Wait until GET /readyz answers 200.")
    }

    pub(super) fn stopping() -> Self {
        Self::unavailable("shutting_down", "this instance is shutting down", Duration::from_secs(5))
            .remedy("Send the request to another instance, or again later.")
    }

    pub(super) fn field(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    pub(super) fn limit(mut self, limit: impl Into<Value>) -> Self {
        self.0.limit = Some(limit.into());
        self
    }

    pub(super) fn given(mut self, given: impl Into<Value>) -> Self {
        self.0.given = Some(given.into());
        self
    }

    pub(super) fn valid<T: ToString>(mut self, valid: impl IntoIterator<Item = T>) -> Self {
        self.0.valid = valid.into_iter().map(|one| one.to_string()).collect();
        self
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// The status as a number, for answers that carry several problems.
    pub(super) fn status(&self) -> u16 {
        self.0.status.as_u16()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.0.status, self.0.retry_after);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// At most 80 characters of what the caller sent, for an error's text.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

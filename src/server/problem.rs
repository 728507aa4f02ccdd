//! What a client sees when a request fails: RFC 9457 `application/problem+json` with a stable `code`.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::spans::ProblemCode;

/// One problem. `code` is stable and what programs branch on; the texts are for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Problem(Box<Members>);

/// An RFC 9457 problem: its members, and ours.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct Members {
    /// `urn:postroom:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// What the status says.
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    #[schemars(with = "u16", range(min = 400, max = 599))]
    status: StatusCode,
    /// What programs branch on; it never changes.
    #[schemars(regex(pattern = "^[a-z_]+$"))]
    code: &'static str,
    /// What is wrong, for people.
    detail: String,
    /// The field, parameter or header at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The bound that was overstepped.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Value>,
    /// What was sent, cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<Value>,
    /// What would be accepted instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    valid: Vec<String>,
    /// What the caller can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Seconds after which the request may be sent again, as in `Retry-After`.
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

    /// Another request stands in the way.
    pub(super) fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::CONFLICT, code, detail);
        problem.0.retry_after = Some(1);
        problem
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

    /// This client sends more than its share.
    pub(super) fn too_many_requests(code: &'static str, detail: impl Into<String>, retry_after: Duration) -> Self {
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail);
        problem.0.retry_after = Some(retry_after.as_secs().max(1));
        problem
    }

    /// The deadline passed before the answer.
    pub(super) fn timed_out() -> Self {
        Self::unavailable("timed_out", "the request took too long and was given up", Duration::from_secs(1))
            .remedy("Send it again later; shorter mail and fewer requests at a time are answered sooner.")
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

    /// What is wrong and what to do, for answers in other shapes.
    pub(super) fn sentence(&self) -> String {
        match &self.0.remedy {
            Some(remedy) => format!("{}. {remedy}", self.0.detail),
            None => self.0.detail.clone(),
        }
    }

    /// What programs branch on.
    pub(super) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The text that was sent and is at fault.
    pub(super) fn given_text(&self) -> Option<&str> {
        self.0.given.as_ref().and_then(Value::as_str)
    }

    /// The status.
    pub(super) fn http_status(&self) -> StatusCode {
        self.0.status
    }

    /// Seconds after which the request may be sent again.
    pub(super) fn retry_after_s(&self) -> Option<u64> {
        self.0.retry_after
    }

    /// The status as a number, for answers that carry several problems.
    pub(super) fn status(&self) -> u16 {
        self.0.status.as_u16()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after, code) = (self.0.status, self.0.retry_after, self.0.code);
        let mut response = (status, Json(self)).into_response();
        response.extensions_mut().insert(ProblemCode(code));
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

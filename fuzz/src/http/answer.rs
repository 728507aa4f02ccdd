//! What holds for every answer, whatever was asked.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

/// An answer, and the head of its request.
#[derive(Debug)]
pub struct Answer {
    pub asked: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// Panics where an answer breaks what holds for all: nothing fails inside the service, what is JSON by its content type is
    /// JSON, and a refusal is a problem document or an error in the words of the server whose client asks.
    pub fn check(&self) {
        let status = self.status.as_u16();
        // 424 is the word of text-embeddings-inference for a network that failed.
        let sound = self.status.is_success() || status == 503 || ((400..500).contains(&status) && status != 424);
        assert!(sound, "{self:?}");
        let kind = self.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match kind.split(';').next().unwrap_or_default() {
            "application/json" => {
                let value = self.json(&self.body);
                assert!(self.status.is_success() || is_peers_error(&value), "{self:?}");
                self.check_for_faults(&value);
            }
            "application/problem+json" => {
                let problem = self.json(&self.body);
                let named =
                    problem["code"].is_string() && problem["title"].is_string() && problem["detail"].is_string();
                assert!(!self.status.is_success() && named && problem["status"] == status, "{self:?}");
                assert_eq!(problem["retry_after_s"].is_u64(), self.headers.contains_key("retry-after"), "{self:?}");
            }
            "application/x-ndjson" => {
                for line in self.body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                    self.check_for_faults(&self.json(line));
                }
            }
            _ => assert!(self.status.is_success(), "{self:?}"),
        }
    }

    fn json(&self, bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// An answer of status 200 may tell of a mail that failed inside the service.
    fn check_for_faults(&self, value: &Value) {
        match value {
            Value::Object(map) => {
                let failed = map.get("problem").is_some() && map.get("status").is_some_and(|status| status == 500);
                let unexplained = map.get("reason").is_some_and(|reason| reason == "failed");
                assert!(!failed && !unexplained, "{self:?}");
                map.values().for_each(|inner| self.check_for_faults(inner));
            }
            Value::Array(list) => list.iter().for_each(|inner| self.check_for_faults(inner)),
            _ => {}
        }
    }
}

/// `{"error": "..."}`, or vLLM's `{"error": {"message": "..."}}`.
fn is_peers_error(value: &Value) -> bool {
    value["error"].is_string() || value["error"]["message"].is_string()
}

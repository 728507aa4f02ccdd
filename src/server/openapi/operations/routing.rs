//! Mail in, decisions out.

use serde_json::{Value, json};

use super::super::operation::{JSON, Operation, PROBLEM, Problems, Schemas, named, text};
use super::super::shapes::BatchReply;
use crate::routing::Decision;
use crate::server::problem::Members as Problem;

const TAG: &str = "routing";

pub(super) const MAIL: &str = "My eggless cake arrived cold. Can I get a refund for it?";
pub(super) const RAW: &str = "Subject: Cold cake\r\n\r\nCan I get a refund for it?\r\n";

/// Of endpoints that read a mail.
pub(super) const READING: &Problems = &[
    (
        400,
        "The body or the query is not what it says it is: `invalid_json`, `incomplete_json`, `invalid_text`, \
         `incomplete_body`, `invalid_query`, `invalid_path`.",
    ),
    (408, "The body did not arrive in time: `body_timeout`."),
    (413, "The body is too large: `body_too_large`."),
    (415, "A body of another kind: `unsupported_media_type`, `unsupported_charset`, `unsupported_encoding`."),
    (
        422,
        "Well formed, but nothing that can be answered: `missing_field`, `unknown_field`, `repeated_field`, `wrong_type`, \
         `invalid_field`, `too_many_headers`, `unknown_parameter`, `repeated_parameter`, `invalid_parameter`, \
         `unknown_router`.",
    ),
    (429, "Most of what waits is of this client: `over_share`."),
    (500, "Something failed inside the service: `internal_error`, `model_failed`."),
    (
        503,
        "Not now: `not_ready`, `router_unavailable`, `queue_full`, `deadline_too_short`, `timed_out`, `shutting_down`.",
    ),
];

/// Of endpoints that honour a key, in place of the same above.
const WITH_KEY: &Problems = &[
    (
        400,
        "The body, the query or the key is not what it says it is: `invalid_json`, `incomplete_json`, `invalid_text`, \
         `incomplete_body`, `invalid_query`, `invalid_path`, `invalid_idempotency_key`.",
    ),
    (409, "The request with this key is still being answered: `idempotency_in_flight`."),
    (
        422,
        "Well formed, but nothing that can be answered: `missing_field`, `unknown_field`, `repeated_field`, `wrong_type`, \
         `invalid_field`, `too_many_headers`, `unknown_parameter`, `repeated_parameter`, `invalid_parameter`, \
         `unknown_router`, or a key that came with another request: `idempotency_key_reused`.",
    ),
];

const OF_BATCH: &Problems = &[(413, "Too much in one request: `body_too_large`, `too_many_emails`.")];

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let problem = schemas.answer::<Problem>();
    let route = Operation::post("/v1/route", "route", TAG, "Route one mail")
        .describe(
            "The mail comes as its fields (`application/json`), as text (`text/plain`, with its charset) or raw \
             (`message/rfc822`). It is never refused for what it says: mail without text goes to a person.",
        )
        .body(JSON, named("RouteJson"), json!({"subject": "Cold cake", "text": MAIL}))
        .body("text/plain", text(), MAIL.into())
        .body("message/rfc822", text(), RAW.into())
        .parameter(
            "query",
            "explain",
            "`brief`: a few words of why, as `explanation`. Where API keys are asked for, one with the scope `explain` as well.",
            json!({"enum": ["brief", "none"]}),
        )
        .answer(200, "The decision.", JSON, with_explanation(&schemas.answer::<Decision>()))
        .header(200, "Server-Timing", "Where the time went, in milliseconds.", text())
        .problems(READING, PROBLEM, &problem);
    let batch = Operation::post("/v1/route/batch", "route_batch", TAG, "Route many mails")
        .describe(
            "Order is kept, and a mail that cannot be read fails alone, at its place. Lines are answered line by line.",
        )
        .body(JSON, named("Batch"), json!({"emails": [{"id": "a", "text": "Where is my order?"}]}))
        .body("application/x-ndjson", text(), "{\"id\": \"a\", \"text\": \"Where is my order?\"}\n".into())
        .answer(200, "What became of each mail.", JSON, schemas.answer::<BatchReply>())
        .answer(200, "What became of each mail.", "application/x-ndjson", text())
        .problems(READING, PROBLEM, &problem)
        .problems(OF_BATCH, PROBLEM, &problem);
    vec![with_key(route, &problem), with_key(batch, &problem)]
}

fn with_key(operation: Operation, problem: &Value) -> Operation {
    let key = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"});
    operation
        .parameter(
            "header",
            "Idempotency-Key",
            "The same request with the same key gets the same answer again and is not done again.",
            key,
        )
        .problems(WITH_KEY, PROBLEM, problem)
        .header(200, "Idempotency-Replayed", "`true` where the answer was given before.", json!({"enum": ["true"]}))
}

/// A decision, and why where that was asked for.
fn with_explanation(decision: &Value) -> Value {
    let explanation = json!({
        "type": "object", "required": ["available"],
        "properties": {
            "available": {"type": "boolean"},
            "reason": {
                "enum": ["busy", "failed", "no_time", "nothing_to_read", "router_exchanged", "too_long"],
                "description": "`no_time`: the decision came in time, the explanation would not have. `router_exchanged`: the router that decided has gone since.",
            },
            "spans": {"type": "array", "items": {"type": "object"}},
        },
    });
    json!({"allOf": [decision, {"type": "object", "properties": {"explanation": explanation}}]})
}

//! What is loaded, whether it answers, and this document.

use serde_json::json;

use super::super::operation::{JSON, Operation, PROBLEM, Problems, Schemas, text};
use super::super::shapes::{Alive, ModelReply, QueuesReply, ReadyReply, RoutersReply};
use crate::server::problem::Members as Problem;

const TAG: &str = "operating";

/// Of endpoints that read nothing but a query, which must be empty.
const QUERY: &Problems = &[
    (400, "`invalid_query`, `invalid_path`."),
    (422, "`unknown_parameter`, `repeated_parameter`, `unknown_router`."),
    (500, "`internal_error`."),
    (503, "`not_ready`, `router_unavailable`, `timed_out`."),
];

const NOT_READY: &Problems = &[(503, "Not now: `not_ready`, `shutting_down`.")];

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let problem = schemas.answer::<Problem>();
    vec![
        Operation::get("/v1/model", "model", TAG, "The router and the limits in force")
            .answer(200, "What is loaded.", JSON, schemas.answer::<ModelReply>())
            .problems(QUERY, PROBLEM, &problem),
        Operation::get("/v1/queues", "queues", TAG, "The queues")
            .answer(200, "All queues, those that are switched off too.", JSON, schemas.answer::<QueuesReply>())
            .problems(QUERY, PROBLEM, &problem),
        Operation::get("/v1/routers", "routers", TAG, "The routers that a request can name")
            .answer(200, "The default one first.", JSON, schemas.answer::<RoutersReply>())
            .problems(QUERY, PROBLEM, &problem),
        Operation::get("/livez", "live", TAG, "Whether the process runs").answer(
            200,
            "It does.",
            JSON,
            schemas.answer::<Alive>(),
        ),
        Operation::get("/readyz", "ready", TAG, "Whether mail is answered")
            .answer(200, "It is.", JSON, schemas.answer::<ReadyReply>())
            .problems(NOT_READY, PROBLEM, &problem),
        Operation::get("/metrics", "metrics", TAG, "Figures for Prometheus")
            .describe("On `admin_port` where that is set.")
            .answer(200, "OpenMetrics text.", "application/openmetrics-text", text()),
        Operation::get("/openapi.json", "openapi", TAG, "This document").answer(
            200,
            "OpenAPI 3.1.",
            JSON,
            json!({"type": "object"}),
        ),
        Operation::get("/docs", "docs", TAG, "This document for people").answer(
            200,
            "A page that needs nothing from elsewhere.",
            "text/html",
            text(),
        ),
        Operation::get("/docs/viewer.css", "docs_style", TAG, "The page's style").answer(
            200,
            "A style sheet.",
            "text/css",
            text(),
        ),
        Operation::get("/docs/viewer.js", "docs_script", TAG, "The page's script").answer(
            200,
            "A script.",
            "text/javascript",
            text(),
        ),
    ]
}

//! What changes the running service. Described where the first port answers it: with API keys and without `admin_port`.

use serde_json::json;

use super::super::operation::{JSON, Operation, PROBLEM, Problems, Schemas};
use crate::server::problem::Members as Problem;

const TAG: &str = "admin";

const ASKING: &Problems = &[
    (400, "`invalid_query`."),
    (404, "There is none: `unknown_router`, `no_shadow`."),
    (422, "`unknown_parameter`."),
    (500, "`internal_error`."),
    (503, "`not_ready`, `timed_out`."),
];

const RELOADING: &Problems = &[
    (422, "The router stays as it is: `router_refused`, `router_fixed`, `unknown_parameter`."),
    (500, "`reload_failed`, `internal_error`."),
];

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let problem = schemas.answer::<Problem>();
    let object = |required: &[&str]| json!({"type": "object", "required": required});
    vec![
        Operation::post("/admin/reload", "admin_reload", TAG, "Read keys and certificate again").answer(
            200,
            "Whether all could be read.",
            JSON,
            json!({"type": "object", "properties": {"status": {"enum": ["reloaded", "old_version_in_force"]}}}),
        ),
        Operation::get("/admin/routers", "admin_routers", TAG, "What became of the routers")
            .answer(200, "Every router with its state.", JSON, object(&["default", "routers"]))
            .problems(ASKING, PROBLEM, &problem),
        Operation::post("/admin/routers/{router}/reload", "admin_reload_router", TAG, "Read a router's files again")
            .parameter("path", "router", "Name of the router.", json!({"type": "string", "minLength": 1}))
            .answer(200, "What it led to.", JSON, object(&["router", "outcome"]))
            .problems(ASKING, PROBLEM, &problem)
            .problems(RELOADING, PROBLEM, &problem),
        Operation::get("/admin/shadow", "admin_shadow", TAG, "How the router beside the default one compares")
            .answer(200, "Counts of both.", JSON, object(&[]))
            .problems(ASKING, PROBLEM, &problem),
    ]
}

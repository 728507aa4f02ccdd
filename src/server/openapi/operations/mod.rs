//! The operations, group by group.

mod admin;
mod explaining;
mod operating;
mod pages;
mod peers;
mod routing;

use serde_json::{Value, json};

use super::operation::{Operation, Schemas};
use crate::server::problem::Members as Problem;

/// Endpoints of the default router, and the same of a router that the path names.
const OF_ROUTER: [(&str, &str); 8] = [
    ("/v1/route", "/v1/routers/{router}/route"),
    ("/v1/route/batch", "/v1/routers/{router}/route/batch"),
    ("/v1/attention", "/v1/routers/{router}/attention"),
    ("/v1/explain", "/v1/routers/{router}/explain"),
    ("/v1/heads", "/v1/routers/{router}/heads"),
    ("/v1/compare", "/v1/routers/{router}/compare"),
    ("/v1/model", "/v1/routers/{router}/model"),
    ("/v1/queues", "/v1/routers/{router}/queues"),
];

/// All operations, in the order in which people read them; with those that change the service where `with_admin`.
pub(super) fn all(schemas: &mut Schemas, with_admin: bool) -> Vec<Operation> {
    let problem = schemas.answer::<Problem>();
    let admin = if with_admin { admin::operations(schemas) } else { Vec::new() };
    let groups = [
        routing::operations(schemas),
        explaining::operations(schemas),
        operating::operations(schemas),
        peers::operations(schemas),
        pages::operations(schemas),
        admin,
    ];
    let timed =
        |operation: Operation| if operation.method == "post" { operation.timeouts(&problem) } else { operation };
    let operations = groups.into_iter().flatten().map(timed);
    operations.flat_map(|operation| with_routers(operation, &problem)).collect()
}

/// An operation, and where it asks a router the same of any router.
fn with_routers(operation: Operation, problem: &Value) -> Vec<Operation> {
    let Some((_, path)) = OF_ROUTER.into_iter().find(|(path, _)| *path == operation.path) else {
        return vec![operation];
    };
    let of_router = operation.of_router(path, problem);
    let schema = json!({"type": "string", "minLength": 1});
    let description = "Name of the router; the default one where it is absent. Beside JSON also a field of the body.";
    vec![operation.parameter("query", "router", description, schema), of_router]
}
